//! What RocksDB reports, by meaning. The engine's errors are text; the texts it is matched by are here and nowhere else.

use agfs_core::{Error, ErrorKind};
use std::io;
use std::path::Path;

/// The kind behind a message, and what an operator can do about it.
fn classify(error: &rocksdb::Error) -> (ErrorKind, &'static str) {
    let text: &str = error.as_ref();
    let has = |part: &str| text.contains(part);
    if has("No space left on device") || has("Disk quota exceeded") {
        return (ErrorKind::NoSpace, "free space on that disk; writing resumes by itself");
    }
    if has("While lock file") || has("lock hold by current process") {
        return (ErrorKind::Refused, "another process has this database open; stop it or use another directory");
    }
    if has("Permission denied") || has("Read-only file system") || has("Operation not permitted") {
        return (ErrorKind::PermissionDenied, "give the server's user write access to the directory");
    }
    if error.kind() == rocksdb::ErrorKind::Corruption || has("Corruption:") || has("checksum mismatch") {
        return (ErrorKind::Corrupt, "restore the directory from a backup; it was left as it is");
    }
    match error.kind() {
        rocksdb::ErrorKind::InvalidArgument => (ErrorKind::InvalidArgument, "the directory holds no database of AGFS"),
        _ => (ErrorKind::Io, "look at the disk and at the file LOG in the directory"),
    }
}

fn io_kind(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::PermissionDenied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => ErrorKind::NotADirectory,
        _ => ErrorKind::Io,
    }
}

/// The directory could not be made.
pub(super) fn from_create_dir(dir: &Path, error: &io::Error) -> Error {
    Error::new(io_kind(error), format!("cannot make the metadata directory {}: {error}", dir.display()))
}

/// A file beside the engine's own could not be opened.
pub(super) fn from_file(path: &Path, error: &io::Error) -> Error {
    Error::new(io_kind(error), format!("cannot open {}: {error}", path.display()))
}

/// The replay of the log ended before what had been synced.
pub(super) fn lost_synced(dir: &Path, replayed: u64, synced: u64) -> Error {
    Error::corrupt(format!(
        "the write-ahead log in {} is damaged: it can be read up to change {replayed}, but change {synced} had been \
         synced. Restore a backup, or go back to change {replayed} by opening it once with salvage set; the files were \
         left as they are",
        dir.display()
    ))
}

/// Whether the engine refused a file for what is in it.
pub(super) fn is_corruption(error: &rocksdb::Error) -> bool {
    classify(error).0 == ErrorKind::Corrupt
}

/// The database could not be opened.
pub(super) fn from_open(dir: &Path, error: &rocksdb::Error) -> Error {
    let (kind, advice) = classify(error);
    Error::new(kind, format!("cannot open the metadata in {}: {error} ({advice})", dir.display()))
}

/// A batch or the log could not be written.
pub(super) fn from_write(dir: &Path, error: &rocksdb::Error) -> Error {
    let (kind, advice) = classify(error);
    Error::new(kind, format!("cannot write the metadata in {}: {error} ({advice})", dir.display()))
}

/// A value could not be read.
pub(super) fn from_read(error: &rocksdb::Error) -> Error {
    let (kind, advice) = classify(error);
    Error::new(kind, format!("cannot read the metadata: {error} ({advice})"))
}
