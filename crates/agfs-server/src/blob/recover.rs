//! What a start finds in the staging directory, after a close, a kill or a power loss.
//!
//! A finished pack is entered into the index where that lacks it, and queued for upload. Of an unfinished one every
//! record that is whole and has the right hash is kept; the sealer finishes it. Blocks on the disk.

use super::codec::decode;
use super::error;
use super::index::Index;
use super::pack::{self, Entry};
use super::pack_id::PackId;
use super::staging::{FullPack, LocalPack, SealedPack, Staging};
use agfs_core::{Error, Result};
use bytes::Bytes;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

/// Makes the staging directory and takes it for this process alone; it stays taken while the file is open. Fails with
/// `Refused` when another process keeps it for longer than a dying one needs to end.
pub(super) fn lock(dir: &Path) -> Result<File> {
    std::fs::create_dir_all(dir).map_err(|e| error::file("make the staging directory", dir, &e))?;
    let path = dir.join("LOCK");
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|e| error::file("open", &path, &e))?;
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            Err(TryLockError::WouldBlock) => {
                let what = "is in use by another process; stop it or choose another directory";
                return Err(Error::refused(format!("the staging directory {} {what}", dir.display())));
            }
            Err(TryLockError::Error(e)) => return Err(error::file("lock", &path, &e)),
        }
    }
}

/// Takes every pack in the staging directory into the tables. The directory is locked, and nothing else runs yet.
pub(super) fn run(staging: &Staging, index: &Index) -> Result<()> {
    let list = || std::fs::read_dir(staging.dir())?.collect::<std::io::Result<Vec<_>>>();
    let mut paths: Vec<_> =
        list().map_err(|e| error::file("list", staging.dir(), &e))?.into_iter().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        let part = |part: Option<&std::ffi::OsStr>| part.and_then(|p| p.to_str()).unwrap_or("").to_owned();
        match (PackId::parse(&part(path.file_stem())), part(path.extension()).as_str()) {
            (Some(id), "pack") => finished(staging, index, id, &path)?,
            (Some(id), "open") => unfinished(staging, id, &path)?,
            _ if path.file_name().is_some_and(|n| n == "LOCK") => {}
            _ => tracing::warn!(path = %path.display(), "a file in the staging directory is no pack and is left alone"),
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<(File, Bytes)> {
    let read = || {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok((file, bytes.into()))
    };
    read().map_err(|e| error::file("read", path, &e))
}

fn finished(staging: &Staging, index: &Index, id: PackId, path: &Path) -> Result<()> {
    let (file, bytes) = read(path)?;
    match pack::decode_footer(&bytes) {
        Ok(entries) => {
            index.add(id, &entries)?;
            let local = LocalPack::new(id, file);
            staging.recovered(SealedPack { local, len: bytes.len() as u64, recovered: true });
            Ok(())
        }
        Err(error) => {
            tracing::error!(pack = %id, %error, "a finished pack is damaged; its whole records are kept");
            let open = staging.open_path(id);
            std::fs::rename(path, &open).map_err(|e| error::file("rename", path, &e))?;
            salvage(staging, id, &open, file, &bytes)
        }
    }
}

fn unfinished(staging: &Staging, id: PackId, path: &Path) -> Result<()> {
    let (file, bytes) = read(path)?;
    salvage(staging, id, path, file, &bytes)
}

/// Keeps the records that are whole and right. What lies behind the last of them is cut off when the pack is sealed.
fn salvage(staging: &Staging, id: PackId, path: &Path, file: File, bytes: &Bytes) -> Result<()> {
    let right = |(entry, chunk): (Entry, _)| match decode(&chunk) {
        Ok(_) => Some(entry),
        Err(error) => {
            tracing::warn!(pack = %id, %error, "a record of an unfinished pack is damaged and is dropped");
            None
        }
    };
    let entries: Vec<Entry> = pack::records(bytes).filter_map(right).collect();
    let Some(last) = entries.last() else {
        return std::fs::remove_file(path).map_err(|e| error::file("remove the empty pack", path, &e));
    };
    let len = last.end();
    if len < bytes.len() as u64 {
        tracing::warn!(pack = %id, bytes = bytes.len() as u64 - len, "the torn tail of an unfinished pack is cut off");
    }
    let local = LocalPack::new(id, file);
    staging.opened(&local);
    staging.appended(id, &entries);
    staging.filled(FullPack { local, len, entries });
    Ok(())
}
