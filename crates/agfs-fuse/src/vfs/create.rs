//! New nodes: mknod, mkdir, symlink, create.

use super::route::{Room, local, shadow_handle};
use super::{Caller, Entry, Opened, Vfs};
use crate::shadow;
use crate::tree::TreeNode;
use agfs_core::name::Name;
use agfs_core::node::NodeKind;
use agfs_core::op::{NewNode, Op};
use agfs_core::{Error, ErrorKind, FileId, Result};
use std::sync::Arc;

/// What the type bits of a mode ask for. Fails with `InvalidArgument` for what mknod(2) does not make.
fn new_node(mode: u32, rdev: u32) -> Result<NewNode> {
    let kind = match mode & libc::S_IFMT {
        0 | libc::S_IFREG => return Ok(NewNode::File),
        libc::S_IFIFO => NodeKind::Fifo,
        libc::S_IFSOCK => NodeKind::Socket,
        libc::S_IFCHR => NodeKind::CharDevice,
        libc::S_IFBLK => NodeKind::BlockDevice,
        other => return Err(Error::invalid(format!("mknod makes no node of type {other:#o}"))),
    };
    Ok(NewNode::Special { kind, rdev })
}

const fn owner(caller: Caller) -> shadow::Owner {
    shadow::Owner { uid: caller.uid, gid: caller.gid }
}

impl Vfs {
    /// Makes a regular file, fifo, socket or device. Counts as a lookup.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound` (the directory is gone), `NameTooLong`, `InvalidArgument`, and what the server fails with.
    pub async fn mknod(&self, parent: u64, name: &[u8], mode: u32, rdev: u32, caller: Caller) -> Result<Entry> {
        match self.room_below(parent).await? {
            Room::Shadow(place) => {
                self.shadow.mknod(place, name, mode, rdev, owner(caller)).map(|e| self.shadow_entry(e)).map_err(local)
            }
            Room::Tree(parent) => {
                let node = self.make(parent, Name::new(name)?, new_node(mode, rdev)?, mode, caller).await?;
                Ok(self.entry(node))
            }
        }
    }

    /// Makes a directory; a shadow if the rules say so. Counts as a lookup.
    ///
    /// # Errors
    /// As [`Vfs::mknod`].
    pub async fn mkdir(&self, parent: u64, name: &[u8], mode: u32, caller: Caller) -> Result<Entry> {
        let parent = match self.room_below(parent).await? {
            Room::Shadow(place) => {
                return self
                    .shadow
                    .mkdir(place, name, mode, owner(caller))
                    .map(|e| self.shadow_entry(e))
                    .map_err(local);
            }
            Room::Tree(parent) => parent,
        };
        let name = Name::new(name)?;
        let shadow = self.matches_rules(parent, &name).await?;
        let node = self.make(parent, name, NewNode::Dir { shadow }, mode, caller).await?;
        if shadow {
            self.shadow.ensure_root(node.id).map_err(local)?;
        }
        Ok(self.entry(node))
    }

    /// Makes a symbolic link. Counts as a lookup.
    ///
    /// # Errors
    /// As [`Vfs::mknod`], and `NotFound` for an empty target.
    pub async fn symlink(&self, parent: u64, name: &[u8], target: &[u8], caller: Caller) -> Result<Entry> {
        match self.room_below(parent).await? {
            Room::Shadow(place) => {
                self.shadow.symlink(place, name, target, owner(caller)).map(|e| self.shadow_entry(e)).map_err(local)
            }
            Room::Tree(parent) => {
                let new = NewNode::Symlink(target.to_vec());
                let node = self.make(parent, Name::new(name)?, new, 0o777, caller).await?;
                Ok(self.entry(node))
            }
        }
    }

    /// Makes a regular file and opens it. The entry counts as a lookup.
    ///
    /// When the name was taken meanwhile and `O_EXCL` was not asked for, this is `Stale`: the kernel then looks the name up
    /// again and opens what it finds, with the permission checks that a create skips.
    ///
    /// # Errors
    /// As [`Vfs::mknod`].
    pub async fn create(
        &self,
        parent: u64,
        name: &[u8],
        mode: u32,
        flags: i32,
        caller: Caller,
    ) -> Result<(Entry, Opened)> {
        let parent = match self.room_below(parent).await? {
            Room::Shadow(place) => {
                let (entry, fh) = self.shadow.create(place, name, mode, flags, owner(caller)).map_err(local)?;
                let opened = Opened { fh: shadow_handle(fh), keep_cache: false, no_flush: false };
                return Ok((self.shadow_entry(entry), opened));
            }
            Room::Tree(parent) => parent,
        };
        let node = match self.make(parent, Name::new(name)?, NewNode::File, mode, caller).await {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && flags & libc::O_EXCL == 0 => {
                return Err(Error::stale(e.message()));
            }
            other => other?,
        };
        let entry = self.entry(node.clone());
        let opened = self.open_node(node, flags, caller, true)?;
        Ok((entry, opened))
    }

    async fn make(
        &self,
        parent: FileId,
        name: Name,
        node: NewNode,
        mode: u32,
        caller: Caller,
    ) -> Result<Arc<TreeNode>> {
        self.world.writable()?;
        let file_id = self.world.up.next_file_id().await?;
        let mode = mode & agfs_core::attr::PERMISSION_BITS;
        self.world.apply(Op::Create { parent, name, file_id, node, mode, uid: caller.uid, gid: caller.gid }).await?;
        match self.world.tree.fetch(self.world.up.as_ref(), file_id).await {
            // Somebody else has removed it already.
            Err(e) if e.kind() == ErrorKind::Stale => Err(Error::not_found(e.message())),
            other => other,
        }
    }
}
