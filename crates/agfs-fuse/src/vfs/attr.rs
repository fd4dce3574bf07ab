//! Attributes: getattr, setattr.

use super::route::{Room, as_shadow, local};
use super::{Attributes, Caller, SetAttr, Stat, Vfs};
use crate::cache_policy;
use crate::content::{Edit, InodeData, without_set_ids};
use crate::shadow;
use crate::tree::TreeNode;
use agfs_core::attr::AttrChange;
use agfs_core::node::NodeKind;
use agfs_core::op::Op;
use agfs_core::{Error, FileId, Result, Timestamp};
use std::sync::Arc;

impl Vfs {
    /// The attributes of a node.
    ///
    /// # Errors
    /// `Stale` when it is gone and not open here, and what the server fails with.
    pub async fn getattr(&self, ino: u64) -> Result<Attributes> {
        let id = match Self::room_of(ino) {
            Room::Shadow(place) => return self.shadow.getattr(place).map(|a| self.shadow_attributes(a)).map_err(local),
            Room::Tree(id) => id,
        };
        self.world.current().await?;
        let stat = match self.inodes.held(&self.world, id) {
            Some(data) => {
                data.follow().await?;
                self.shown(self.stat_open(&data))
            }
            None => self.stat(self.world.tree.fetch(self.world.up.as_ref(), id).await?.as_ref()),
        };
        Ok(Attributes { stat, ttl: cache_policy::attr_ttl() })
    }

    /// What is shown of a file that is open here; without a link if it is gone.
    fn stat_open(&self, data: &InodeData) -> Stat {
        // First what is not committed, then the tree: a commit that ends in between is seen in the tree.
        let overlay = data.overlay();
        match self.world.tree.node(data.id) {
            Some(node) => Stat::of(&node, overlay, false),
            None => Stat::of(&data.last_node().0, overlay, true),
        }
    }

    /// Changes attributes and returns those that result. `fh`: an open handle that the size is changed through; then it is
    /// committed with the file, otherwise before this returns.
    ///
    /// # Errors
    /// `Stale`, `ReadOnly`, `IsADirectory`, `InvalidArgument` (the size of what has none), `FileTooLarge`, and what the
    /// server fails with.
    pub async fn setattr(&self, ino: u64, fh: Option<u64>, set: SetAttr, caller: Caller) -> Result<Attributes> {
        let id = match Self::room_of(ino) {
            Room::Shadow(place) => return self.setattr_shadow(place, fh, set, caller),
            Room::Tree(id) => id,
        };
        self.world.writable()?;
        if let Some(size) = set.size {
            self.resize(id, fh, size, caller).await?;
        }
        let now = self.world.up.now();
        let mut change = AttrChange {
            mode: set.mode,
            uid: set.uid,
            gid: set.gid,
            atime: set.atime.map(|t| t.unwrap_or(now)),
            mtime: set.mtime.map(|t| t.unwrap_or(now)),
        };
        if change.is_empty() && set.size.is_none() {
            // chown(2) with neither owner nor group: all that it does for a new one, to the one there is.
            change.uid = Some(self.node_or_orphan(id).await?.attr.uid);
        }
        if !change.is_empty() {
            let data = self.inodes.held(&self.world, id);
            // A commit under way carries the times and the mode from before this change: it must not come to the server
            // after it.
            let _no_commit = match &data {
                Some(data) => Some(data.no_commit().await),
                None => None,
            };
            if let Some(data) = &data {
                data.follow().await?;
                self.keep_times(data, &mut change, now).await?;
            }
            self.change(id, data.clone(), change, now).await?;
        }
        self.getattr(ino).await
    }

    /// Times of a file with uncommitted writes go with its commit, which would overwrite them.
    async fn keep_times(&self, data: &Arc<InodeData>, change: &mut AttrChange, now: Timestamp) -> Result<()> {
        if (change.atime.is_some() || change.mtime.is_some()) && data.has_changes() && !data.is_gone() {
            let edit = Edit::Times { atime: change.atime.take(), mtime: change.mtime.take() };
            data.edit(&edit, false, now).await?;
        }
        Ok(())
    }

    async fn change(
        &self,
        id: FileId,
        data: Option<Arc<InodeData>>,
        mut change: AttrChange,
        now: Timestamp,
    ) -> Result<()> {
        if change.is_empty() {
            return Ok(());
        }
        let gone = data.as_ref().filter(|data| data.is_gone());
        let node = match gone {
            Some(data) => data.last_node().0,
            None => self.node(id).await?,
        };
        if change.mode.is_none() {
            change.mode = lost_by_chown(&node, &change);
        }
        if let Some(data) = gone {
            data.set_attr_gone(&change, now);
            return Ok(());
        }
        self.world.apply(Op::SetAttr { file_id: id, change }).await?;
        if let Some(data) = data.filter(|_| change.mode.is_some()) {
            data.mode_was_set();
        }
        Ok(())
    }

    async fn resize(&self, id: FileId, fh: Option<u64>, size: u64, caller: Caller) -> Result<()> {
        let (edit, drop_ids) = (Edit::Resize(size), caller.uid != 0);
        if let Some(fh) = fh {
            let handle = self.files.get(fh)?;
            return handle.data.edit(&edit, drop_ids, self.world.up.now()).await.map(drop);
        }
        let node = self.node_or_orphan(id).await?;
        match node.kind() {
            NodeKind::File => {}
            NodeKind::Dir => return Err(Error::is_a_directory(format!("{id} is a directory, it has no size to set"))),
            _ => return Err(Error::invalid(format!("{id} is not a regular file, it has no size to set"))),
        }
        let data = self.inodes.open(&self.world, node);
        let mut result = data.edit(&edit, drop_ids, self.world.up.now()).await.map(drop);
        if result.is_ok() {
            result = data.commit(self.world.on_close()).await.map(drop);
        }
        self.inodes.close(id);
        result
    }

    fn setattr_shadow(
        &self,
        place: shadow::Place,
        fh: Option<u64>,
        set: SetAttr,
        caller: Caller,
    ) -> Result<Attributes> {
        let time = |t: Option<Timestamp>| t.map_or(shadow::SetTime::Now, shadow::SetTime::At);
        let set = shadow::SetAttr {
            mode: set.mode,
            uid: set.uid,
            gid: set.gid,
            size: set.size,
            atime: set.atime.map(time),
            mtime: set.mtime.map(time),
            kill_suidgid: set.size.is_some() && caller.uid != 0,
        };
        self.shadow.setattr(place, fh.and_then(as_shadow), &set).map(|a| self.shadow_attributes(a)).map_err(local)
    }
}

/// The mode after a change of owner or group, which takes the set-id bits of everything but a directory; as ext4 does.
fn lost_by_chown(node: &TreeNode, change: &AttrChange) -> Option<u32> {
    let changes_owner = change.uid.is_some() || change.gid.is_some();
    if changes_owner && !node.kind().is_dir() { without_set_ids(node.attr.mode) } else { None }
}
