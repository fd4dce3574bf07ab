//! Open files: open, read, write, flush, fsync, release.

use super::route::{Room, as_shadow, local, shadow_handle};
use super::{Caller, Opened, Vfs};
use crate::cache_policy::{self, Opening};
use crate::content::{Edit, InodeData};
use crate::tree::TreeNode;
use crate::upstream::Durable;
use agfs_core::node::NodeKind;
use agfs_core::{Error, FileId, Result};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a close waits for a server that cannot be reached.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

/// One open of a file of the tree.
pub(super) struct FileHandle {
    pub data: Arc<InodeData>,
    pub writes: bool,
    /// As the descriptor has it now: fcntl(2) can change it.
    pub append: AtomicBool,
    /// Opened with O_SYNC or O_DSYNC. The kernel asks for an fsync after each write by itself, but after nothing else.
    pub syncs: bool,
}

impl FileHandle {
    fn appends(&self) -> bool {
        self.append.load(Ordering::Relaxed)
    }
}

impl Vfs {
    /// Opens a regular file, with the flags of open(2); `O_TRUNC` included.
    ///
    /// # Errors
    /// `Stale` (gone), `IsADirectory`, `ReadOnly`, `TextBusy`, and what the server fails with.
    pub async fn open(&self, ino: u64, flags: i32, caller: Caller) -> Result<Opened> {
        self.executed.check(ino, flags)?;
        let opened = self.open_in_room(ino, flags, caller).await?;
        self.executed.opened(opened.fh, ino, flags);
        Ok(opened)
    }

    async fn open_in_room(&self, ino: u64, flags: i32, caller: Caller) -> Result<Opened> {
        match Self::room_of(ino) {
            Room::Shadow(_) => {
                let fh = self.shadow.open(ino, flags).map_err(local)?;
                if flags & libc::O_TRUNC != 0 && caller.uid != 0 {
                    self.shadow.kill_suidgid(crate::shadow::Place::Inner(ino)).map_err(local)?;
                }
                let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
                Ok(Opened { fh: shadow_handle(fh), keep_cache: false, no_flush: !writes })
            }
            Room::Tree(id) => {
                let node = self.node_or_orphan(id).await?;
                if let Some(data) = self.inodes.get(id) {
                    // A commit that reads the file ends before it is truncated.
                    data.wait_capture().await;
                }
                self.open_node(node, flags, caller, false)
            }
        }
    }

    pub(super) fn open_node(&self, node: Arc<TreeNode>, flags: i32, caller: Caller, created: bool) -> Result<Opened> {
        match node.kind() {
            NodeKind::File => {}
            NodeKind::Dir => return Err(Error::is_a_directory(format!("{} is a directory", node.id))),
            _ => return Err(Error::invalid(format!("{} is not a regular file", node.id))),
        }
        let id = node.id;
        // On Linux O_TRUNC cuts a file that is opened for reading, too.
        let cuts = flags & libc::O_TRUNC != 0 && !created;
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY || cuts;
        if writes {
            self.world.writable()?;
        }
        let data = self.inodes.open(&self.world, node);
        if cuts {
            let truncated = data.try_edit(&Edit::Resize(0), caller.uid != 0, self.world.up.now());
            if let Err(e) = truncated.unwrap_or_else(|| Err(Error::stale("a commit is reading the file"))) {
                self.inodes.close(id);
                return Err(e);
            }
        }
        let version_no = data.base_version();
        // A new file has no pages yet, so those that come are its own.
        let pages = if created { Some(version_no) } else { self.world.known.pages(id) };
        let how = cache_policy::open(Opening { writes, pages, version_no });
        self.world.known.set_pages(id, version_no);
        let append = AtomicBool::new(flags & libc::O_APPEND != 0);
        let syncs = flags & libc::O_DSYNC != 0;
        let fh = self.files.insert(FileHandle { data, writes, append, syncs });
        Ok(Opened { fh, keep_cache: how.keep_cache, no_flush: how.no_flush })
    }

    /// Up to `size` bytes from `offset`; fewer only at the end of the file.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, and what fetching a chunk fails with.
    pub async fn read(&self, fh: u64, offset: u64, size: u32) -> Result<Bytes> {
        if let Some(fh) = as_shadow(fh) {
            return self.shadow.read(fh, offset, size).map(Into::into).map_err(local);
        }
        let handle = self.files.get(fh)?;
        handle.data.follow().await?;
        handle.data.read(offset..offset.saturating_add(u64::from(size))).await
    }

    /// Notes the flags that a descriptor has by now, which come with every write.
    pub fn set_flags(&self, fh: u64, flags: i32) {
        if as_shadow(fh).is_none()
            && let Ok(handle) = self.files.get(fh)
        {
            handle.append.store(flags & libc::O_APPEND != 0, Ordering::Relaxed);
        }
    }

    /// Writes now, unless a commit is reading the file; then `None`, and [`Vfs::write`] waits for that. `drop_ids`: the
    /// writer may not keep set-id bits.
    pub fn try_write(&self, fh: u64, offset: u64, data: &[u8], drop_ids: bool) -> Option<Result<u32>> {
        if let Some(fh) = as_shadow(fh) {
            return Some(self.write_shadow(fh, offset, data, drop_ids));
        }
        let handle = match self.files.get(fh) {
            Ok(handle) => handle,
            Err(e) => return Some(Err(e)),
        };
        let edit = Edit::Write { offset, data, append: handle.appends() };
        let written = handle.data.try_edit(&edit, drop_ids, self.world.up.now())?;
        Some(written.map(|at| self.written(&handle, (offset, at), data.len(), drop_ids)))
    }

    /// Writes what a program changed in a page of a shared mapping. It goes to its place, by whatever handle it comes: also
    /// by one that appends.
    ///
    /// # Errors
    /// As [`Vfs::write`].
    pub async fn write_page(&self, fh: u64, offset: u64, data: &[u8]) -> Result<u32> {
        if as_shadow(fh).is_some() {
            return self.write(fh, offset, data, false).await;
        }
        let handle = self.files.get(fh)?;
        let edit = Edit::Write { offset, data, append: false };
        handle.data.edit(&edit, false, self.world.up.now()).await?;
        Ok(u32::try_from(data.len()).unwrap_or(u32::MAX))
    }

    /// Writes at `offset`, or at the end for a handle that appends.
    ///
    /// # Errors
    /// `NoSpace` (the disk of the cache directory), `FileTooLarge`, `Io`.
    pub async fn write(&self, fh: u64, offset: u64, data: &[u8], drop_ids: bool) -> Result<u32> {
        if let Some(result) = self.try_write(fh, offset, data, drop_ids) {
            return result;
        }
        let handle = self.files.get(fh)?;
        let edit = Edit::Write { offset, data, append: handle.appends() };
        let at = handle.data.edit(&edit, drop_ids, self.world.up.now()).await?;
        Ok(self.written(&handle, (offset, at), data.len(), drop_ids))
    }

    fn written(&self, handle: &FileHandle, (offset, at): (u64, u64), len: usize, drop_ids: bool) -> u32 {
        let id = handle.data.id;
        if drop_ids && handle.data.overlay().is_some_and(|local| local.mode.is_some()) {
            // The kernel leaves this to the file system and keeps the mode that it knows.
            self.world.kernel.invalidate_attr_soon(id);
        }
        if at != offset {
            // The kernel has put the bytes into its page at `offset`, where they are not.
            self.world.known.clear_pages(id);
            self.world.kernel.invalidate_pages_soon(id);
        }
        u32::try_from(len).unwrap_or(u32::MAX)
    }

    fn write_shadow(&self, fh: u64, offset: u64, data: &[u8], drop_ids: bool) -> Result<u32> {
        let written = self.shadow.write(fh, offset, data).map_err(local)?;
        self.drop_ids_shadow(fh, drop_ids)?;
        Ok(u32::try_from(written).unwrap_or(u32::MAX))
    }

    /// Takes the set-id bits of a file in a shadow when its writer may not keep them: the local call was this process's own.
    pub(super) fn drop_ids_shadow(&self, fh: u64, drop_ids: bool) -> Result<()> {
        match self.shadow.backing_fd(fh).filter(|_| drop_ids) {
            Some(backing) => self.shadow.kill_suidgid(crate::shadow::Place::Inner(backing.ino())).map_err(local),
            None => Ok(()),
        }
    }

    /// A descriptor was closed: commits what was written.
    ///
    /// While the server cannot be reached a close does not hold its program up for long: the commit goes on behind it. A
    /// process that forks closes the descriptors it inherited; were those closes to wait for a server that this very
    /// process is about to start, it would never be started. Whoever needs to know that the data is safe calls fsync, or
    /// mounts with `--durability close`, which waits.
    ///
    /// # Errors
    /// What the commit fails with; the data stays for another attempt.
    pub async fn flush(&self, fh: u64) -> Result<()> {
        if let Some(fh) = as_shadow(fh) {
            return self.shadow.flush(fh).map_err(local);
        }
        let handle = self.files.get(fh)?;
        if !handle.writes || !handle.data.is_dirty() {
            return Ok(());
        }
        let (data, durable) = (handle.data.clone(), self.world.on_close());
        if !matches!(durable, Durable::No) {
            return data.commit(durable).await.map(drop);
        }
        // A task of its own: the commit must not be cut off in the middle when the close stops waiting for it.
        let commit = tokio::spawn(async move { data.commit(durable).await.map(drop) });
        tokio::select! {
            done = commit => done.unwrap_or_else(|e| Err(Error::internal(format!("the task of a commit failed: {e}")))),
            () = self.world.stream.down_for(CLOSE_PATIENCE) => {
                tracing::warn!(file = %self.world.describe(handle.data.id), "closed while the server cannot be reached; its content is sent when it is back");
                Ok(())
            }
        }
    }

    /// Commits what was written and makes it durable on the server.
    ///
    /// # Errors
    /// As [`Vfs::flush`].
    pub async fn fsync(&self, fh: u64, datasync: bool) -> Result<()> {
        if let Some(fh) = as_shadow(fh) {
            return self.shadow.fsync(fh, datasync).map_err(local);
        }
        self.sync_data(&self.files.get(fh)?.data).await
    }

    /// Commits what was written to a file and makes it durable on the server.
    pub(super) async fn sync_data(&self, data: &Arc<InodeData>) -> Result<()> {
        data.commit(self.world.on_fsync()).await?;
        self.world.sync().await
    }

    /// The last use of a handle ended; pages of a mapping may have come since the last flush.
    ///
    /// # Errors
    /// As [`Vfs::flush`]; nobody hears of it, so it is logged, and the data is committed later.
    pub async fn release(&self, fh: u64) -> Result<()> {
        self.executed.released(fh);
        if let Some(fh) = as_shadow(fh) {
            return self.shadow.release(fh).map_err(local);
        }
        let handle = self.files.remove(fh)?;
        let result = if handle.writes { handle.data.commit(self.world.on_close()).await.map(drop) } else { Ok(()) };
        self.inodes.close(handle.data.id);
        result
    }

    /// Commits every file that has uncommitted writes. Returns those that could not be, with the reason.
    pub async fn commit_all(&self) -> Vec<(FileId, u64, Error)> {
        let mut failed = Vec::new();
        for data in self.inodes.dirty(false) {
            if let Err(e) = data.commit(self.world.on_fsync()).await {
                failed.push((data.id, data.pending().0, e));
            }
        }
        self.inodes.sweep();
        failed
    }

    /// Tries again to commit files that were closed while the server could not be reached.
    pub async fn retry_closed(&self) {
        for data in self.inodes.dirty(true) {
            if data.commit(self.world.on_close()).await.is_ok() {
                tracing::info!(file = %self.world.describe(data.id), "committed after all");
            }
        }
        self.inodes.sweep();
    }
}
