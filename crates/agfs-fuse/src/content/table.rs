//! The files that are open on this mount or have uncommitted writes.

use super::inode::InodeData;
use crate::tree::TreeNode;
use crate::world::World;
use agfs_core::FileId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;

struct Entry {
    data: Arc<InodeData>,
    opens: u64,
}

/// All [`InodeData`] of a mount.
#[derive(Default)]
pub struct InodeTable {
    entries: Mutex<FxHashMap<FileId, Entry>>,
}

impl InodeTable {
    /// The file's data, if it is open or has uncommitted writes.
    pub fn get(&self, id: FileId) -> Option<Arc<InodeData>> {
        self.entries.lock().get(&id).map(|entry| entry.data.clone())
    }

    /// The file's data for a new handle, which must be given back with [`InodeTable::close`].
    pub fn open(&self, world: &Arc<World>, node: Arc<TreeNode>) -> Arc<InodeData> {
        let mut entries = self.entries.lock();
        let entry = entries
            .entry(node.id)
            .or_insert_with(|| Entry { data: Arc::new(InodeData::new(world.clone(), node)), opens: 0 });
        entry.opens += 1;
        entry.data.clone()
    }

    /// Gives a handle's use back. The data stays as long as it is open elsewhere or not committed.
    pub fn close(&self, id: FileId) {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get_mut(&id) {
            entry.opens = entry.opens.saturating_sub(1);
            if entry.opens == 0 && !entry.data.is_dirty() {
                entries.remove(&id);
            }
        }
    }

    /// Forgets files that are not open and were committed after their last close.
    pub fn sweep(&self) {
        self.entries.lock().retain(|_, entry| entry.opens > 0 || entry.data.is_dirty());
    }

    /// The files with uncommitted writes; `closed` for those only that are not open.
    pub fn dirty(&self, closed: bool) -> Vec<Arc<InodeData>> {
        let entries = self.entries.lock();
        let wanted = entries.values().filter(|entry| (!closed || entry.opens == 0) && entry.data.is_dirty());
        wanted.map(|entry| entry.data.clone()).collect()
    }
}
