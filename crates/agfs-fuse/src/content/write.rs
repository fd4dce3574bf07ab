//! Changing a file's uncommitted state. A change that comes while a commit reads the file waits for that.

use super::inode::{DataState, InodeData};
use super::local::Local;
use agfs_core::attr::{SET_GID, SET_UID};
use agfs_core::{Result, Timestamp};
use std::ops::Range;

/// A change of a file's bytes, size or times.
#[derive(Clone, Debug)]
pub enum Edit<'a> {
    /// Bytes at an offset.
    Write {
        /// Where; for `append` only what the caller thought was the end.
        offset: u64,
        /// What.
        data: &'a [u8],
        /// At the end of the file as this mount knows it, wherever the caller thought that was.
        append: bool,
    },
    /// Another size.
    Resize(u64),
    /// At least this size.
    Extend(u64),
    /// A hole in this range, within the size.
    Zero(Range<u64>),
    /// Nothing but the times of a change.
    Touch,
    /// Times set explicitly.
    Times {
        /// Of last access.
        atime: Option<Timestamp>,
        /// Of last change.
        mtime: Option<Timestamp>,
    },
}

impl InodeData {
    /// Makes a change now, unless a commit is reading the file. `drop_ids`: the caller may not keep set-id bits.
    /// Returns where a write went.
    ///
    /// # Errors
    /// `NoSpace` and `Io` of the local disk, `FileTooLarge`.
    pub fn try_edit(&self, edit: &Edit<'_>, drop_ids: bool, now: Timestamp) -> Option<Result<u64>> {
        let mut state = self.current();
        if state.capturing {
            return None;
        }
        let before = state.local.as_ref().map_or(0, Local::pending);
        let result = self.edit_locked(&mut state, edit, drop_ids, now);
        let after = state.local.as_ref().map_or(0, Local::pending);
        let gone = state.gone;
        drop(state);
        if !gone && after > before {
            self.world.add_pending(after - before);
        }
        Some(result)
    }

    /// Makes a change, after a commit that is reading the file.
    ///
    /// # Errors
    /// As [`InodeData::try_edit`].
    pub async fn edit(&self, edit: &Edit<'_>, drop_ids: bool, now: Timestamp) -> Result<u64> {
        loop {
            let captured = self.captured.notified();
            if let Some(result) = self.try_edit(edit, drop_ids, now) {
                return result;
            }
            captured.await;
        }
    }

    fn edit_locked(&self, state: &mut DataState, edit: &Edit<'_>, drop_ids: bool, now: Timestamp) -> Result<u64> {
        let node = state.base.node.clone();
        let scratch = &self.world.scratch;
        let local = state
            .local
            .get_or_insert_with(|| Local::new(scratch.clone(), node.size(), node.attr.mtime, node.attr.ctime));
        if !local.differs() {
            // Times may have been set in the tree since the last commit.
            (local.mtime, local.ctime) = (node.attr.mtime, node.attr.ctime);
        }
        let mut at = 0;
        match edit {
            Edit::Write { offset, data, append } => {
                at = if *append { local.size } else { *offset };
                local.write(at, data, now)?;
            }
            Edit::Resize(size) => local.resize(*size, now)?,
            Edit::Extend(size) => local.resize((*size).max(local.size), now)?,
            Edit::Zero(range) => local.zero(range.clone(), now)?,
            Edit::Touch => local.touch(now),
            Edit::Times { atime, mtime } => local.set_times(*atime, *mtime, now),
        }
        if drop_ids && !matches!(edit, Edit::Times { .. }) && local.changed() {
            // The base may be older than the last change of the mode.
            let mode = self.world.tree.node(self.id).map_or(node.attr.mode, |now| now.attr.mode);
            local.mode = without_set_ids(local.mode.unwrap_or(mode)).or(local.mode);
        }
        Ok(at)
    }

    /// Whether the file has uncommitted changes that times can be set on without a commit of their own.
    pub fn has_changes(&self) -> bool {
        self.current().local.as_ref().is_some_and(Local::changed)
    }
}

/// The mode after a writer that may not keep them took the set-id bits; `None` when nothing changes.
pub(crate) const fn without_set_ids(mode: u32) -> Option<u32> {
    let mut after = mode & !SET_UID;
    // Without group execution, set-group-id means mandatory locking and stays.
    if mode & 0o010 != 0 {
        after &= !SET_GID;
    }
    if after == mode { None } else { Some(after) }
}
