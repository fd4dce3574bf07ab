//! The nodes that need more than the tree has of them: files that are open on this mount or have uncommitted writes, and
//! orphans, which lost their last name while the kernel still knows them (an open directory, somebody's working directory,
//! a file reached through /proc). An orphan is shown to those who hold it until the kernel gives its last lookup back.

use super::inode::InodeData;
use crate::tree::TreeNode;
use crate::world::World;
use agfs_core::{FileId, Timestamp};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;

struct Entry {
    data: Arc<InodeData>,
    opens: u64,
}

impl Entry {
    fn is_used(&self) -> bool {
        self.opens > 0 || self.data.is_dirty()
    }
}

/// Invariant: the kernel knows every orphan, or is about to be found not to ([`InodeTable::orphan`]).
#[derive(Default)]
struct State {
    entries: FxHashMap<FileId, Entry>,
    /// What orphans were last; `None` for one whose data is in `entries` and says it.
    orphans: FxHashMap<FileId, Option<Arc<TreeNode>>>,
}

impl State {
    fn drop_unused(&mut self, id: FileId) {
        if !self.orphans.contains_key(&id) && self.entries.get(&id).is_some_and(|entry| !entry.is_used()) {
            self.entries.remove(&id);
        }
    }
}

/// All [`InodeData`] of a mount.
#[derive(Default)]
pub struct InodeTable {
    state: Mutex<State>,
}

impl InodeTable {
    /// The file's data, if it is open or has uncommitted writes, or is an orphan that was asked for before.
    pub fn get(&self, id: FileId) -> Option<Arc<InodeData>> {
        self.state.lock().entries.get(&id).map(|entry| entry.data.clone())
    }

    /// As [`InodeTable::get`], for every orphan too.
    pub fn held(&self, world: &Arc<World>, id: FileId) -> Option<Arc<InodeData>> {
        let mut state = self.state.lock();
        let State { entries, orphans } = &mut *state;
        if let Some(entry) = entries.get(&id) {
            return Some(entry.data.clone());
        }
        let last = orphans.get_mut(&id)?.take()?;
        let data = Arc::new(InodeData::new(world.clone(), last));
        data.mark_gone(None, None);
        entries.insert(id, Entry { data: data.clone(), opens: 0 });
        Some(data)
    }

    /// The file's data for a new handle, which must be given back with [`InodeTable::close`].
    pub fn open(&self, world: &Arc<World>, node: Arc<TreeNode>) -> Arc<InodeData> {
        let mut state = self.state.lock();
        let entry = state
            .entries
            .entry(node.id)
            .or_insert_with(|| Entry { data: Arc::new(InodeData::new(world.clone(), node)), opens: 0 });
        entry.opens += 1;
        entry.data.clone()
    }

    /// Gives a handle's use back. The data stays as long as it is open elsewhere, not committed, or an orphan.
    pub fn close(&self, id: FileId) {
        let mut state = self.state.lock();
        if let Some(entry) = state.entries.get_mut(&id) {
            entry.opens = entry.opens.saturating_sub(1);
        }
        state.drop_unused(id);
    }

    /// A node has lost its last name, at the time `when`; `last` is what the tree held of it. It stays an orphan if the
    /// kernel knows it, which `is_known` is asked after it was noted: a [`InodeTable::forget`] that comes in between finds it.
    pub fn orphan(
        &self,
        id: FileId,
        last: Option<Arc<TreeNode>>,
        when: Option<Timestamp>,
        is_known: impl FnOnce() -> bool,
    ) {
        let data = {
            let mut state = self.state.lock();
            let data = state.entries.get(&id).map(|entry| entry.data.clone());
            if data.is_none() && last.is_none() {
                return;
            }
            let alone = last.clone().filter(|_| data.is_none());
            state.orphans.insert(id, alone.map(|node| lost_at(&node, when)));
            data
        };
        if let Some(data) = data {
            data.mark_gone(last, when);
        }
        if !is_known() {
            self.forget(id);
        }
    }

    /// The kernel does not know the node any more.
    pub fn forget(&self, id: FileId) {
        let mut state = self.state.lock();
        if state.orphans.remove(&id).is_some() {
            state.drop_unused(id);
        }
    }

    /// Forgets files that are not open and were committed after their last close.
    pub fn sweep(&self) {
        let mut state = self.state.lock();
        let State { entries, orphans } = &mut *state;
        entries.retain(|id, entry| entry.is_used() || orphans.contains_key(id));
    }

    /// The files with uncommitted writes; `closed` for those only that are not open.
    pub fn dirty(&self, closed: bool) -> Vec<Arc<InodeData>> {
        let state = self.state.lock();
        let wanted = state.entries.values().filter(|entry| (!closed || entry.opens == 0) && entry.data.is_dirty());
        wanted.map(|entry| entry.data.clone()).collect()
    }

    /// How many nodes are held.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        let state = self.state.lock();
        state.entries.len() + state.orphans.values().filter(|last| last.is_some()).count()
    }
}

/// The node after losing a name, which is a change of its attributes.
pub(super) fn lost_at(node: &Arc<TreeNode>, when: Option<Timestamp>) -> Arc<TreeNode> {
    let Some(when) = when else { return node.clone() };
    let mut node = node.as_ref().clone();
    node.attr.ctime = node.attr.ctime.max(when);
    Arc::new(node)
}
