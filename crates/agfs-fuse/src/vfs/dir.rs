//! Open directories: opendir, readdir, readdirplus, releasedir, fsyncdir.
//!
//! A handle lists a snapshot, taken whenever it is read from the start; so offsets stay good whatever comes and goes.

use super::route::{Room, as_shadow, local, shadow_handle};
use super::{DirItem, Entry, Vfs};
use crate::shadow;
use agfs_core::name::Name;
use agfs_core::node::NodeKind;
use agfs_core::{Error, FileId, Result};
use parking_lot::Mutex;
use std::sync::Arc;

type Snapshot = Arc<Vec<(Name, FileId)>>;

/// One open of a directory of the tree.
pub(super) struct DirHandle {
    id: FileId,
    snapshot: Mutex<Option<Snapshot>>,
}

/// Takes a listing entry by entry, and says whether there was room for the one given.
pub type Taker<'a> = dyn FnMut(DirItem<'_>) -> bool + Send + 'a;

impl Vfs {
    /// Opens a directory.
    ///
    /// # Errors
    /// `NotADirectory`, `Stale`, and what loading it fails with.
    pub async fn opendir(&self, ino: u64) -> Result<u64> {
        let id = match Self::room_of(ino) {
            // A directory that was removed is empty for those who hold it.
            Room::Tree(id) if self.orphan(id).is_some() => id,
            _ => match self.room_below(ino).await? {
                Room::Shadow(place) => return self.shadow.opendir(place).map(shadow_handle).map_err(local),
                Room::Tree(id) => id,
            },
        };
        // Loaded now, so that what hinders it is told by the open.
        self.list(id).await?;
        Ok(self.dirs.insert(DirHandle { id, snapshot: Mutex::new(None) }))
    }

    async fn list(&self, id: FileId) -> Result<Snapshot> {
        let node = self.node_or_orphan(id).await?;
        if !node.kind().is_dir() {
            return Err(Error::not_a_directory(format!("{id} is not a directory")));
        }
        loop {
            if let Some(entries) = self.world.tree.entries(id) {
                return Ok(Arc::new(entries));
            }
            if self.orphan(id).is_some() {
                return Ok(Snapshot::default());
            }
            self.world.tree.load_dir(self.world.up.as_ref(), id).await?;
        }
    }

    /// Lists from `offset` (0, or the `next` of an entry) until `take` has no room; `plus` looks each entry up.
    ///
    /// # Errors
    /// What loading fails with.
    pub async fn readdir(&self, fh: u64, offset: u64, plus: bool, take: &mut Taker<'_>) -> Result<()> {
        if let Some(fh) = as_shadow(fh) {
            return self.readdir_shadow(fh, offset, plus, take).map_err(local);
        }
        let handle = self.dirs.get(fh)?;
        let kept = handle.snapshot.lock().clone().filter(|_| offset > 0);
        let snapshot = match kept {
            Some(snapshot) => snapshot,
            None => {
                let snapshot = self.list(handle.id).await?;
                *handle.snapshot.lock() = Some(snapshot.clone());
                snapshot
            }
        };
        self.give(handle.id, &snapshot, offset, plus, take)
    }

    fn give(&self, dir: FileId, snapshot: &Snapshot, offset: u64, plus: bool, take: &mut Taker<'_>) -> Result<()> {
        let parent = self.world.tree.node(dir).and_then(|node| node.link().map(|link| link.parent));
        let dots = [(&b"."[..], dir), (b"..", parent.unwrap_or(dir))];
        for (i, (name, id)) in dots.into_iter().enumerate().skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
            let item = DirItem { ino: id.0, next: i as u64 + 1, kind: NodeKind::Dir, name, entry: None };
            if !take(item) {
                return Ok(());
            }
        }
        let skip = usize::try_from(offset.saturating_sub(2)).unwrap_or(usize::MAX);
        for (i, (name, id)) in snapshot.iter().enumerate().skip(skip) {
            // What is gone since is left out.
            let Some(node) = self.world.tree.node(*id) else { continue };
            let kind = node.kind();
            let entry: Option<Entry> = plus.then(|| self.entry(node));
            let item = DirItem { ino: id.0, next: i as u64 + 3, kind, name: name.as_bytes(), entry };
            if !take(item) {
                if plus {
                    self.give_back(*id, 1);
                }
                break;
            }
        }
        Ok(())
    }

    fn readdir_shadow(&self, fh: u64, offset: u64, plus: bool, take: &mut Taker<'_>) -> shadow::Result<()> {
        let mut each = |item: shadow::DirEntry<'_>| {
            let entry = item.entry.map(|entry| self.shadow_entry(entry));
            take(DirItem { ino: item.ino, next: item.next, kind: item.kind, name: item.name, entry })
        };
        if plus { self.shadow.readdirplus(fh, offset, &mut each) } else { self.shadow.readdir(fh, offset, &mut each) }
    }

    /// Closes a directory.
    ///
    /// # Errors
    /// Only for a handle that is not open.
    pub fn releasedir(&self, fh: u64) -> Result<()> {
        match as_shadow(fh) {
            Some(fh) => self.shadow.releasedir(fh).map_err(local),
            None => self.dirs.remove(fh).map(drop),
        }
    }

    /// Makes every change of names made through this mount durable on the server.
    ///
    /// # Errors
    /// What the server fails with.
    pub async fn fsyncdir(&self, fh: u64, datasync: bool) -> Result<()> {
        match as_shadow(fh) {
            Some(fh) => self.shadow.fsyncdir(fh, datasync).map_err(local),
            None => self.world.sync().await,
        }
    }
}
