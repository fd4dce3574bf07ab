//! Copies from the local disk into a space.

use super::builder::{Builder, NewFile};
use super::{CopyStats, Entries, Target};
use crate::chunking::split;
use crate::connection::Connection;
use crate::files::unblocked;
use crate::paths::show;
use crate::system::to_timestamp;
use agfs_core::attr::PERMISSION_BITS;
use agfs_core::manifest::SINGLE_CHUNK;
use agfs_core::op::Author;
use agfs_core::{Error, ErrorKind, FileId, Name, Result, Timestamp};
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

impl Connection {
    /// Copies a local file or, with `recursive`, a directory to `to` in a space; into it when that is a directory. Large contents
    /// that the server has already are not sent. Fails with `NotFound`, `IsADirectory`, `NotADirectory`, `PermissionDenied`.
    pub async fn upload(
        &self,
        local: &Path,
        space: &str,
        to: &[u8],
        recursive: bool,
        author: &Author,
    ) -> Result<CopyStats> {
        let (path, first) = (local.to_owned(), local.to_owned());
        let looked = unblocked(move || if recursive { fs::symlink_metadata(path) } else { fs::metadata(path) }).await?;
        let meta = looked.map_err(|e| local_error(local, &e))?;
        if meta.is_dir() && !recursive {
            let shown = local.display();
            return Err(Error::is_a_directory(format!(
                "{shown} is a directory: copy it recursively, or name a file in it"
            )));
        }
        let name = local.file_name().map(|name| Name::new(name.as_bytes())).transpose()?;
        let target = self.copy_target(space, to, name.as_ref()).await?;
        let mut upload =
            Upload { conn: self, space, builder: Builder::new(self, space, author), linked: HashMap::new() };
        let done = upload.tree(first, meta, target).await;
        done.map_err(|e| e.context(format!("copying {} to {}", local.display(), show(to))))?;
        upload.builder.finish().await
    }
}

struct Upload<'a> {
    conn: &'a Connection,
    space: &'a str,
    builder: Builder<'a>,
    /// Files with several links that were copied already, by device and inode.
    linked: HashMap<(u64, u64), FileId>,
}

impl Upload<'_> {
    async fn tree(&mut self, path: PathBuf, meta: Metadata, target: Target) -> Result<()> {
        let mut todo = vec![(path, meta, target)];
        while let Some((path, meta, target)) = todo.pop() {
            if !meta.is_dir() {
                self.leaf(path, &meta, &target).await?;
                continue;
            }
            let (id, new) = self.builder.dir(&target, meta.mode() & PERMISSION_BITS, mtime(&meta)).await?;
            let mut there = if new { Entries::new() } else { self.conn.entries_of(self.space, id).await? };
            let dir = path.clone();
            let entries = unblocked(move || entries(&dir)).await?.map_err(|e| local_error(&path, &e))?;
            for (path, meta) in entries.into_iter().rev() {
                let name = Name::new(path.file_name().map(OsStrExt::as_bytes).unwrap_or_default())?;
                let existing = there.remove(&name);
                todo.push((path, meta, Target::entry(id, name, existing)));
            }
        }
        Ok(())
    }

    async fn leaf(&mut self, path: PathBuf, meta: &Metadata, target: &Target) -> Result<()> {
        if meta.is_symlink() {
            let link = path.clone();
            let to = unblocked(move || fs::read_link(link)).await?.map_err(|e| local_error(&path, &e))?;
            return self.builder.symlink(target, to.into_os_string().as_bytes().to_vec(), mtime(meta)).await;
        }
        if !meta.is_file() {
            self.builder.stats.skipped += 1;
            return Ok(());
        }
        let identity = (meta.dev(), meta.ino());
        if let Some(&copied) = self.linked.get(&identity) {
            return self.builder.hard_link(target, copied).await;
        }
        let (extents, chunks) = if meta.len() <= SINGLE_CHUNK {
            let file = path.clone();
            let cut = unblocked(move || fs::read(file).map(|bytes| split(&bytes))).await?;
            cut.map_err(|e| local_error(&path, &e))?
        } else {
            let file = tokio::fs::File::open(&path).await.map_err(|e| local_error(&path, &e))?;
            self.conn.send_content(file).await.map_err(|e| e.context(path.display()))?
        };
        let (mode, mtime) = (meta.mode() & PERMISSION_BITS, mtime(meta));
        let id = self.builder.file(target, NewFile { extents, chunks, mode, mtime }).await?;
        if meta.nlink() > 1 {
            self.linked.insert(identity, id);
        }
        Ok(())
    }
}

/// The entries of a directory in order of name.
fn entries(dir: &Path) -> io::Result<Vec<(PathBuf, Metadata)>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        match fs::symlink_metadata(&path) {
            Ok(meta) => out.push((path, meta)),
            // Removed meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    out.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(out)
}

fn mtime(meta: &Metadata) -> Timestamp {
    meta.modified().map_or(Timestamp::default(), to_timestamp)
}

/// A failure of the local disk, with the path.
pub(crate) fn local_error(path: &Path, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
        io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
        io::ErrorKind::NotADirectory => ErrorKind::NotADirectory,
        io::ErrorKind::IsADirectory => ErrorKind::IsADirectory,
        io::ErrorKind::DirectoryNotEmpty => ErrorKind::NotEmpty,
        io::ErrorKind::StorageFull => ErrorKind::NoSpace,
        io::ErrorKind::QuotaExceeded => ErrorKind::QuotaExceeded,
        io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
        io::ErrorKind::InvalidFilename => ErrorKind::NameTooLong,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("{}: {error}", path.display()))
}
