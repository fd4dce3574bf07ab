//! The semantics of the mount, by verb: what each file system call does to the tree, to contents and to shadow directories.
//!
//! Knows no kernel protocol, so that it is tested with no mount. Every change of the namespace goes to the server and
//! returns when the tree shows it; contents are committed when they are closed or synced. Who may do what was checked by
//! the kernel. Every method is to be called within a Tokio runtime; those that find everything in memory finish at their
//! first poll.

mod attr;
mod create;
mod dir;
mod executed;
mod file;
mod handles;
mod name;
mod range;
mod route;
mod statfs;
mod types;
mod xattr;

#[cfg(test)]
mod tests;

pub use name::Removal;
pub use types::{Attributes, Caller, DirItem, Entry, Opened, SetAttr, Stat, Statfs};

use crate::cache_policy;
use crate::content::{InodeData, InodeTable};
use crate::shadow::ShadowFs;
use crate::tree::TreeNode;
use crate::world::World;
use agfs_core::shadow::Rules;
use agfs_core::{FileId, Result};
use dir::DirHandle;
use executed::Executed;
use file::FileHandle;
use handles::Handles;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One mount's file system.
pub struct Vfs {
    world: Arc<World>,
    inodes: Arc<InodeTable>,
    shadow: Arc<ShadowFs>,
    rules: Rules,
    root: FileId,
    files: Handles<FileHandle>,
    dirs: Handles<DirHandle>,
    has_epoch: AtomicBool,
    executed: Executed,
    capacity: statfs::Capacity,
}

impl Vfs {
    /// A file system whose root is the directory `root` of the space.
    pub fn new(
        world: Arc<World>,
        inodes: Arc<InodeTable>,
        shadow: Arc<ShadowFs>,
        rules: Rules,
        root: FileId,
    ) -> Arc<Self> {
        world.known.looked_up(root);
        Arc::new(Vfs {
            world,
            inodes,
            shadow,
            rules,
            root,
            files: Handles::default(),
            dirs: Handles::default(),
            has_epoch: AtomicBool::new(false),
            executed: Executed::default(),
            capacity: statfs::Capacity::default(),
        })
    }

    /// Notes whether the kernel has dentry epochs; names are kept for long only then.
    pub fn set_epoch(&self, has_epoch: bool) {
        self.has_epoch.store(has_epoch, Ordering::Release);
    }

    /// The directory of the space that is the root of the mount.
    pub const fn root(&self) -> FileId {
        self.root
    }

    /// The shared parts of the mount.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// The files that are open or have uncommitted writes.
    pub fn inodes(&self) -> &Arc<InodeTable> {
        &self.inodes
    }

    /// The shadow directories.
    pub fn shadow(&self) -> &Arc<ShadowFs> {
        &self.shadow
    }

    /// What is shown of a node now: with what is not committed on top.
    fn stat(&self, node: &TreeNode) -> Stat {
        // First what is not committed, then the tree: a commit that ends in between is seen in the tree.
        let overlay = self.inodes.get(node.id).and_then(|data| data.overlay());
        let now = self.world.tree.node(node.id);
        let node = now.as_deref().unwrap_or(node);
        let mut stat = Stat::of(node, overlay, false);
        if node.is_shadow() {
            self.add_shadow_root(&mut stat, node.id);
        }
        self.shown(stat)
    }

    /// What the kernel is to be told of `stat`.
    fn shown(&self, stat: Stat) -> Stat {
        Stat { nlink: self.world.known.links_to_show(FileId(stat.ino), stat.nlink), ..stat }
    }

    /// An entry for the kernel, which counts as a lookup.
    fn entry(&self, node: Arc<TreeNode>) -> Entry {
        // Counted first: from here on a change of the node is told to the kernel.
        self.world.known.looked_up(node.id);
        let node = self.world.tree.node(node.id).unwrap_or(node);
        Entry {
            stat: self.stat(&node),
            entry_ttl: cache_policy::entry_ttl(self.has_epoch.load(Ordering::Acquire)),
            attr_ttl: cache_policy::attr_ttl(),
        }
    }

    /// Takes lookups back from the kernel.
    fn give_back(&self, id: FileId, lookups: u64) {
        if self.world.known.forgotten(id, lookups) {
            self.inodes.forget(id);
        }
    }

    /// The node, as of now.
    async fn node(&self, id: FileId) -> Result<Arc<TreeNode>> {
        self.world.current().await?;
        self.world.tree.fetch(self.world.up.as_ref(), id).await
    }

    /// The node as of now; of an orphan, what it was last.
    async fn node_or_orphan(&self, id: FileId) -> Result<Arc<TreeNode>> {
        if let Some(orphan) = self.orphan(id) {
            return Ok(orphan.last_node().0);
        }
        self.node(id).await
    }

    /// The data of a node that no name leads to, if the kernel still knows it or it is open.
    fn orphan(&self, id: FileId) -> Option<Arc<InodeData>> {
        if self.world.tree.node(id).is_some() {
            return None;
        }
        self.inodes.held(&self.world, id).filter(|data| data.is_gone())
    }
}
