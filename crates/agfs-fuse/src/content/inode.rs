//! One file's data on this mount: its base version, and its uncommitted state if it has one.
//!
//! A file without uncommitted state follows the tree. One with uncommitted state keeps the base it was begun on until its
//! commit; what others commit meanwhile is met then. The lock of a file is never held while waiting.

use super::extents::Extents;
use super::local::Local;
use super::table::lost_at;
use crate::tree::TreeNode;
use crate::world::World;
use agfs_core::attr::AttrChange;
use agfs_core::node::Layout;
use agfs_core::{Error, ErrorKind, FileId, Result, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use tokio::sync::Notify;

/// A committed version that reads are answered from.
pub(super) struct Base {
    pub node: Arc<TreeNode>,
    /// Where its bytes are, when that is known.
    pub extents: Option<Arc<Extents>>,
}

pub(super) struct DataState {
    pub base: Base,
    pub local: Option<Local>,
    /// No name leads to the file any more: nothing of it is committed.
    pub gone: bool,
    /// A commit is reading the file: changes wait.
    pub capturing: bool,
    /// Where the last read ended, and up to where chunks were asked for ahead of reads.
    pub read_end: u64,
    pub ahead_to: u64,
    /// Why the last commit failed, for whoever closes or syncs next without having anything new.
    pub failure: Option<Error>,
}

/// What a file's uncommitted state changes of its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlay {
    /// The size in bytes.
    pub size: u64,
    /// Bytes stored, roughly.
    pub allocated: u64,
    /// Times.
    pub mtime: Timestamp,
    /// As `mtime`.
    pub ctime: Timestamp,
    /// A time of last access, if one was set.
    pub atime: Option<Timestamp>,
    /// The mode without lost set-id bits, if some were lost.
    pub mode: Option<u32>,
}

/// The data of one file on this mount.
pub struct InodeData {
    /// The file.
    pub id: FileId,
    pub(super) world: Arc<World>,
    pub(super) state: Mutex<DataState>,
    /// Told when a capture ends.
    pub(super) captured: Notify,
    /// One commit at a time.
    pub(super) commit: tokio::sync::Mutex<()>,
}

impl InodeData {
    /// The data of a file whose newest version is `node`.
    pub fn new(world: Arc<World>, node: Arc<TreeNode>) -> Self {
        InodeData {
            id: node.id,
            world,
            state: Mutex::new(DataState {
                base: Base { node, extents: None },
                local: None,
                gone: false,
                capturing: false,
                read_end: 0,
                ahead_to: 0,
                failure: None,
            }),
            captured: Notify::new(),
            commit: tokio::sync::Mutex::new(()),
        }
    }

    /// The state, following the tree if nothing is uncommitted.
    pub(super) fn current(&self) -> MutexGuard<'_, DataState> {
        let mut state = self.state.lock();
        if state.local.as_ref().is_some_and(Local::differs) {
            return state;
        }
        // The tree's lock is never held while this one is asked for, so the order is free.
        if let Some(node) = self.world.tree.node(self.id)
            && !Arc::ptr_eq(&node, &state.base.node)
        {
            if !node.same_content(&state.base.node) {
                state.base.extents = None;
                state.local = None;
            }
            state.base.node = node;
            state.gone = false;
        }
        state
    }

    /// The file has lost its last name, at the time `when` if that is known. What the tree held of it last is kept for those
    /// who have it open.
    pub fn mark_gone(&self, last: Option<Arc<TreeNode>>, when: Option<Timestamp>) {
        let mut state = self.state.lock();
        match last {
            // The bytes are those written here; attributes are never changed but in the tree.
            Some(last) if state.local.as_ref().is_some_and(Local::differs) => {
                let mut node = state.base.node.as_ref().clone();
                (node.attr, node.xattrs) = (last.attr, last.xattrs.clone());
                state.base.node = Arc::new(node);
            }
            Some(last) if last.version_no != state.base.node.version_no => {
                state.base = Base { node: last, extents: None };
                state.local = None;
            }
            Some(last) => state.base.node = last,
            None => {}
        }
        state.base.node = lost_at(&state.base.node, when);
        state.gone = true;
        let pending = state.local.as_mut().map_or(0, Local::forget_pending);
        drop(state);
        self.world.sub_pending(pending);
    }

    /// Makes sure that the tree has the file's node, which a reset has made it forget, or that the file is marked as gone.
    ///
    /// # Errors
    /// What the server's call fails with.
    pub async fn follow(&self) -> Result<()> {
        if self.world.tree.node(self.id).is_some() || self.is_gone() {
            return Ok(());
        }
        match self.world.tree.fetch(self.world.up.as_ref(), self.id).await {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == ErrorKind::Stale => {
                self.mark_gone(None, None);
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// Returns when no commit is reading the file.
    pub async fn wait_capture(&self) {
        loop {
            let captured = self.captured.notified();
            if !self.state.lock().capturing {
                return;
            }
            captured.await;
        }
    }

    /// Changes what is shown of a node that is gone, for those who hold it. `edit` sees the node, and must not wait.
    ///
    /// # Errors
    /// What `edit` fails with; then nothing is changed.
    pub fn edit_gone(&self, edit: impl FnOnce(&mut TreeNode) -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        let mut node = state.base.node.as_ref().clone();
        edit(&mut node)?;
        state.base.node = Arc::new(node);
        Ok(())
    }

    /// Changes the attributes of a node that is gone, for those who hold it.
    pub fn set_attr_gone(&self, change: &AttrChange, now: Timestamp) {
        let mut state = self.state.lock();
        let mut node = state.base.node.as_ref().clone();
        change.apply(&mut node.attr, now);
        state.base.node = Arc::new(node);
        // Without uncommitted state the node alone says the times.
        if let Some(local) = state.local.as_mut().filter(|local| local.differs()) {
            local.set_times(change.atime, change.mtime, now);
        }
    }

    /// The mode was set by somebody who may: set-id bits lost before do not count any more.
    pub fn mode_was_set(&self) {
        if let Some(local) = &mut self.state.lock().local {
            local.mode = None;
        }
    }

    /// Whether no name leads to it.
    pub fn is_gone(&self) -> bool {
        self.state.lock().gone
    }

    /// The node that attributes are shown from when the tree does not have it, and whether it is gone.
    pub fn last_node(&self) -> (Arc<TreeNode>, bool) {
        let state = self.state.lock();
        (state.base.node.clone(), state.gone)
    }

    /// The version that reads are answered from.
    pub fn base_version(&self) -> u64 {
        self.current().base.node.version_no
    }

    /// What the uncommitted state changes of the attributes.
    pub fn overlay(&self) -> Option<Overlay> {
        let mut state = self.current();
        state.local.as_ref().filter(|local| local.differs())?;
        let extents = Self::inline_extents(&mut state);
        let local = state.local.as_ref()?;
        Some(Overlay {
            size: local.size,
            allocated: local.allocated(extents.as_deref(), state.base.node.allocated()),
            mtime: local.mtime,
            ctime: local.ctime,
            atime: local.atime,
            mode: local.mode,
        })
    }

    /// Whether something is not committed that must be. What is being committed counts.
    pub fn is_dirty(&self) -> bool {
        let state = self.state.lock();
        !state.gone && state.local.as_ref().is_some_and(Local::differs)
    }

    /// Bytes written that are not committed, and why the last attempt failed.
    pub fn pending(&self) -> (u64, Option<Error>) {
        let state = self.state.lock();
        (state.local.as_ref().map_or(0, Local::pending), state.failure.clone())
    }

    /// The extents of the base, from memory when they are with the node.
    pub(super) fn inline_extents(state: &mut DataState) -> Option<Arc<Extents>> {
        if state.base.extents.is_none() {
            let content = state.base.node.content()?;
            if let Layout::Inline(manifest) = content.layout.as_ref() {
                state.base.extents = Some(Arc::new(Extents::new(manifest.clone())));
            }
        }
        state.base.extents.clone()
    }

    /// Loads the extents of `node`, and keeps them if it is still the base.
    ///
    /// # Errors
    /// What the server's call fails with.
    pub(super) async fn load_extents(&self, node: &Arc<TreeNode>) -> Result<()> {
        let content = node.content().ok_or_else(|| Error::invalid(format!("{} is not a regular file", self.id)))?;
        let manifest = self.world.up.manifest_of(&content).await?;
        let extents = Arc::new(Extents::new(manifest));
        let mut state = self.state.lock();
        if state.base.node.content().as_ref() == Some(&content) {
            state.base.extents = Some(extents);
        }
        Ok(())
    }
}
