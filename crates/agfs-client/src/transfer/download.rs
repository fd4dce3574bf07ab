//! Copies out of a space to the local disk. Files appear complete, by renaming.

use super::upload::local_error;
use super::{CopyStats, check_source, frozen};
use crate::connection::Connection;
use crate::files::unblocked;
use crate::paths::show;
use crate::system::random_u64;
use agfs_core::node::{Body, Content, Node};
use agfs_core::{FileId, Result, Timestamp};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::fs::{self, FileTimes, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

impl Connection {
    /// Copies what is at `from` in a space (at the reference `at`, empty: now) to the local path `local`; into it when that is a
    /// directory. A directory only with `recursive`; it is copied as it was when the copy began. Fails with `NotFound`,
    /// `IsADirectory`, `NotADirectory`, `PermissionDenied`, `NoSpace`.
    pub async fn download(
        &self,
        space: &str,
        at: &str,
        from: &[u8],
        local: &Path,
        recursive: bool,
    ) -> Result<CopyStats> {
        let source = self.place(space, at, from, !recursive).await?;
        let (frozen, name) = (frozen(at, &source), source.name.clone());
        let node = source.existing(from)?;
        check_source(&node, &show(from), recursive)?;
        let here = local.to_owned();
        let into = unblocked(move || here.is_dir()).await?;
        let to = match &name {
            Some(name) if into => local.join(OsStr::from_bytes(name.as_bytes())),
            _ => local.to_owned(),
        };
        let mut download = Download {
            conn: self,
            space,
            at: &frozen,
            linked: FxHashMap::default(),
            finished: Vec::new(),
            stats: CopyStats::default(),
        };
        let done = download.tree(node, to).await;
        done.map_err(|e| e.context(format!("copying {} to {}", show(from), local.display())))?;
        Ok(download.stats)
    }
}

struct Download<'a> {
    conn: &'a Connection,
    space: &'a str,
    at: &'a str,
    /// Files with several links that were copied already.
    linked: FxHashMap<FileId, PathBuf>,
    /// New directories, whose modes and times are set when nothing more goes into them.
    finished: Vec<(PathBuf, u32, Timestamp)>,
    stats: CopyStats,
}

impl Download<'_> {
    async fn tree(&mut self, root: Node, to: PathBuf) -> Result<()> {
        let mut todo = vec![(root, to)];
        while let Some((node, path)) = todo.pop() {
            match &node.body {
                Body::File(content) => self.file(&node, content, &path).await?,
                Body::Symlink(target) => self.symlink(target, &path).await?,
                Body::Special { .. } => self.stats.skipped += 1,
                Body::Dir(dir) if dir.shadow => self.stats.skipped += 1,
                Body::Dir(_) => {
                    self.dir(&node, &path).await?;
                    let listing = self.conn.list_dir(self.space, self.at, node.file_id).await?;
                    let below = listing.entries.into_iter().rev();
                    todo.extend(below.map(|(name, node)| (node, path.join(OsStr::from_bytes(name.as_bytes())))));
                }
            }
        }
        // The deepest first, since setting the mode may close the way.
        let finished = std::mem::take(&mut self.finished);
        unblocked(move || finished.into_iter().rev().try_for_each(|(path, mode, mtime)| seal(&path, mode, mtime)))
            .await?
    }

    async fn dir(&mut self, node: &Node, path: &Path) -> Result<()> {
        let here = path.to_owned();
        let made = unblocked(move || match fs::create_dir(&here) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && here.is_dir() => Ok(false),
            made => made.map(|()| true),
        });
        if made.await?.map_err(|e| local_error(path, &e))? {
            self.finished.push((path.to_owned(), node.attr.mode, node.attr.mtime));
        }
        self.stats.dirs += 1;
        Ok(())
    }

    async fn file(&mut self, node: &Node, content: &Content, path: &Path) -> Result<()> {
        self.stats.files += 1;
        if let Some(first) = self.linked.get(&node.file_id).cloned() {
            let here = path.to_owned();
            return unblocked(move || replace(&here, |new| fs::hard_link(&first, new))).await?;
        }
        let manifest = self.conn.manifest_of(content).await?;
        let new = beside(path);
        let written = self.write(&manifest, &new).await;
        let (here, from, mode, mtime) = (path.to_owned(), new.clone(), node.attr.mode, node.attr.mtime);
        let placed = match written {
            Ok(()) => {
                unblocked(move || {
                    seal(&from, mode, mtime)?;
                    fs::rename(&from, &here).map_err(|e| local_error(&here, &e))
                })
                .await?
            }
            Err(error) => Err(error),
        };
        if placed.is_err() {
            // What could not be completed must not stay; that it cannot be removed is no second error to report.
            let _ = tokio::fs::remove_file(&new).await;
        }
        placed?;
        self.stats.bytes += content.size;
        if !node.more_links.is_empty() {
            self.linked.insert(node.file_id, path.to_owned());
        }
        Ok(())
    }

    async fn write(&self, manifest: &agfs_core::manifest::Manifest, new: &Path) -> Result<()> {
        let file = tokio::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(new).await;
        let mut file = tokio::io::BufWriter::with_capacity(1 << 20, file.map_err(|e| local_error(new, &e))?);
        self.conn.read_manifest(manifest, &mut file).await.map(|_| ())
    }

    async fn symlink(&mut self, target: &[u8], path: &Path) -> Result<()> {
        self.stats.symlinks += 1;
        let (here, target) = (path.to_owned(), PathBuf::from(OsStr::from_bytes(target)));
        unblocked(move || replace(&here, |new| std::os::unix::fs::symlink(&target, new))).await?
    }
}

/// A name that nobody uses, in the same directory.
fn beside(path: &Path) -> PathBuf {
    path.with_file_name(format!(".agfs-{:016x}", random_u64()))
}

/// Makes something beside `path` and renames it there, over what is not a directory.
fn replace(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    let new = beside(path);
    let placed = make(&new).and_then(|()| {
        fs::rename(&new, path).inspect_err(|_| {
            // Reported is why it could not be placed.
            let _ = fs::remove_file(&new);
        })
    });
    placed.map_err(|e| local_error(path, &e))?;
    // Renaming a link over another link of the same file does nothing and leaves both.
    match fs::remove_file(&new) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(local_error(&new, &e)),
        _ => Ok(()),
    }
}

/// Sets mode and modification time.
fn seal(path: &Path, mode: u32, mtime: Timestamp) -> Result<()> {
    let set = || {
        let file = fs::File::open(path)?;
        file.set_times(FileTimes::new().set_modified(system_time(mtime)))?;
        file.set_permissions(Permissions::from_mode(mode))
    };
    set().map_err(|e| local_error(path, &e))
}

fn system_time(time: Timestamp) -> SystemTime {
    let distance = Duration::from_nanos(time.0.unsigned_abs());
    let moved = if time.0 < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    moved.unwrap_or(UNIX_EPOCH)
}
