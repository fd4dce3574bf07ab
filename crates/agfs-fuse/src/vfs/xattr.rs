//! Extended attributes, in the namespaces that a local file system has; access control lists are not offered.

use super::route::{Room, local};
use super::{Caller, Vfs};
use agfs_core::node::Xattrs;
use agfs_core::op::{Op, XattrMode};
use agfs_core::{Error, ErrorKind, FileId, Result, xattr};
use std::sync::Arc;

/// The namespaces of attributes that are only kept. Those of `system.` (access control lists) would have to be enforced.
const OFFERED: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];

fn check(name: &[u8]) -> Result<()> {
    if OFFERED.contains(&name) {
        return Err(Error::invalid("a namespace of extended attributes is no name by itself"));
    }
    if OFFERED.iter().any(|space| name.starts_with(space)) {
        return Ok(());
    }
    let name = String::from_utf8_lossy(name);
    Err(Error::unsupported(format!("the attribute {name} is in none of the namespaces user, trusted and security")))
}

impl Vfs {
    /// The value of an attribute.
    ///
    /// # Errors
    /// `NoAttribute`, `Unsupported` (access control lists), `InvalidArgument` (a namespace alone), `Stale`.
    pub async fn getxattr(&self, ino: u64, name: &[u8]) -> Result<Vec<u8>> {
        check(name)?;
        let xattrs = match Self::room_of(ino) {
            Room::Shadow(place) => return self.shadow.getxattr(place, name).map_err(local),
            Room::Tree(id) => self.xattrs(id).await?,
        };
        xattrs.and_then(|all| all.get(name).cloned()).ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            Error::new(ErrorKind::NoAttribute, format!("there is no extended attribute {name}"))
        })
    }

    /// The names of all attributes, each followed by a NUL. Those of the namespace `trusted` are there for root only.
    ///
    /// # Errors
    /// `Stale`.
    pub async fn listxattr(&self, ino: u64, caller: Caller) -> Result<Vec<u8>> {
        let all = match Self::room_of(ino) {
            Room::Shadow(place) => self.shadow.listxattr(place).map_err(local)?,
            Room::Tree(id) => {
                let xattrs = self.xattrs(id).await?;
                xattrs.iter().flat_map(|all| all.keys()).flat_map(|name| [name.as_slice(), &[0]].concat()).collect()
            }
        };
        if caller.uid == 0 {
            return Ok(all);
        }
        let names = all.split_inclusive(|byte| *byte == 0).filter(|name| !name.starts_with(b"trusted."));
        Ok(names.flatten().copied().collect())
    }

    async fn xattrs(&self, id: FileId) -> Result<Option<Arc<Xattrs>>> {
        if let Some(node) = self.world.tree.node(id) {
            return Ok(node.xattrs.clone());
        }
        if let Some(data) = self.inodes.held(&self.world, id) {
            data.follow().await?;
        }
        Ok(self.node_or_orphan(id).await?.xattrs.clone())
    }

    /// Sets an attribute, with the flags of setxattr(2).
    ///
    /// # Errors
    /// `AlreadyExists`, `NoAttribute`, `BufferTooSmall` (the name), `ValueTooLarge`, `NoSpace`, `Unsupported`, `Stale`.
    pub async fn setxattr(&self, ino: u64, name: &[u8], value: &[u8], flags: i32) -> Result<()> {
        check(name)?;
        let file_id = match Self::room_of(ino) {
            Room::Shadow(place) => {
                let flags = u32::try_from(flags).unwrap_or(0);
                return self.shadow.setxattr(place, name, value, flags).map_err(local);
            }
            Room::Tree(id) => id,
        };
        let mode = match flags {
            0 => XattrMode::Set,
            libc::XATTR_CREATE => XattrMode::Create,
            libc::XATTR_REPLACE => XattrMode::Replace,
            // To create and to replace at once fails either way; for the reason that a local file system gives.
            both if both == libc::XATTR_CREATE | libc::XATTR_REPLACE => match self.getxattr(ino, name).await {
                Ok(_) => XattrMode::Create,
                Err(_) => XattrMode::Replace,
            },
            _ => return Err(Error::invalid(format!("setxattr with the flags {flags:#x} is not offered"))),
        };
        let op = Op::SetXattr { file_id, name: name.to_vec(), value: value.to_vec(), mode };
        self.change_xattrs(file_id, op, |xattrs| xattr::set(xattrs, file_id, name, value, mode)).await
    }

    /// Removes an attribute.
    ///
    /// # Errors
    /// `NoAttribute`, `Stale`.
    pub async fn removexattr(&self, ino: u64, name: &[u8]) -> Result<()> {
        check(name)?;
        match Self::room_of(ino) {
            Room::Shadow(place) => self.shadow.removexattr(place, name).map_err(local),
            Room::Tree(file_id) => {
                let op = Op::RemoveXattr { file_id, name: name.to_vec() };
                self.change_xattrs(file_id, op, |xattrs| xattr::remove(xattrs, file_id, name).map(|()| true)).await
            }
        }
    }

    /// Applies `op`; for a node that no name leads to, `edit` does the same here.
    async fn change_xattrs(&self, id: FileId, op: Op, edit: impl FnOnce(&mut Xattrs) -> Result<bool>) -> Result<()> {
        self.world.writable()?;
        if self.orphan(id).is_none() {
            match self.world.apply(op).await {
                Err(e) if e.kind() == ErrorKind::Stale && self.orphan(id).is_some() => {}
                other => return other.map(drop),
            }
        }
        let orphan = self.orphan(id).ok_or_else(|| Error::stale(format!("the node {id} is gone")))?;
        let now = self.world.up.now();
        orphan.edit_gone(|node| {
            let mut xattrs = node.xattrs.as_deref().cloned().unwrap_or_default();
            if edit(&mut xattrs)? {
                node.xattrs = (!xattrs.is_empty()).then(|| Arc::new(xattrs));
                node.attr.ctime = now;
            }
            Ok(())
        })
    }
}
