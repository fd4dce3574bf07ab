//! Names found, moved and taken away: lookup, readlink, unlink, rmdir, rename, forget.

use super::route::{Room, local};
use super::{Entry, Vfs};
use crate::shadow::is_shadow;
use agfs_core::name::Name;
use agfs_core::op::{Op, RenameMode};
use agfs_core::{Error, ErrorKind, FileId, Result};
use std::sync::Arc;

/// The flags of renameat2(2), as a mode. Fails with `InvalidArgument` for what is not offered.
fn rename_mode(flags: u32) -> Result<RenameMode> {
    match flags {
        0 => Ok(RenameMode::Replace),
        libc::RENAME_NOREPLACE => Ok(RenameMode::NoReplace),
        libc::RENAME_EXCHANGE => Ok(RenameMode::Exchange),
        _ => Err(Error::invalid(format!("rename with the flags {flags:#x} is not offered"))),
    }
}

fn across() -> Error {
    Error::new(ErrorKind::CrossDevice, "a shadow directory lies on the other side: copy instead")
}

impl Vfs {
    /// What `name` leads to in `parent`. Counts as a lookup.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, `NameTooLong`, `Stale`, and what the server fails with.
    pub async fn lookup(&self, parent: u64, name: &[u8]) -> Result<Entry> {
        match self.room_below(parent).await? {
            Room::Shadow(place) => self.shadow.lookup(place, name).map(Self::shadow_entry).map_err(local),
            Room::Tree(parent) => {
                Name::new(name)?;
                self.world.current().await?;
                let node = self.world.tree.lookup(self.world.up.as_ref(), parent, name).await?;
                Ok(self.entry(node))
            }
        }
    }

    /// Gives lookups back.
    pub fn forget(&self, ino: u64, lookups: u64) {
        if is_shadow(ino) {
            self.shadow.forget(ino, lookups);
        } else if FileId(ino) != self.root {
            self.give_back(FileId(ino), lookups);
        }
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `InvalidArgument` for anything else, `Stale`.
    pub async fn readlink(&self, ino: u64) -> Result<Arc<[u8]>> {
        match Self::room_of(ino) {
            Room::Shadow(_) => self.shadow.readlink(ino).map(Into::into).map_err(local),
            Room::Tree(id) => {
                let node = self.node_or_orphan(id).await?;
                node.target().ok_or_else(|| Error::invalid(format!("{id} is not a symbolic link")))
            }
        }
    }

    /// Takes the name of anything but a directory away.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory`, and what the server fails with.
    pub async fn unlink(&self, parent: u64, name: &[u8]) -> Result<()> {
        match self.room_below(parent).await? {
            Room::Shadow(place) => self.shadow.unlink(place, name).map_err(local),
            Room::Tree(parent) => {
                let name = Name::new(name)?;
                self.world.apply(Op::Unlink { parent, name }).await.map(drop)
            }
        }
    }

    /// Takes an empty directory away.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, `NotEmpty` (also for a shadow with something in it here), and what the server fails with.
    pub async fn rmdir(&self, parent: u64, name: &[u8]) -> Result<()> {
        let parent = match self.room_below(parent).await? {
            Room::Shadow(place) => return self.shadow.rmdir(place, name).map_err(local),
            Room::Tree(parent) => parent,
        };
        let name = Name::new(name)?;
        let node = self.world.tree.lookup(self.world.up.as_ref(), parent, name.as_bytes()).await?;
        let shadow = node.is_shadow().then_some(node.id);
        if let Some(dir) = shadow {
            self.require_empty_shadow(dir)?;
        }
        self.world.apply(Op::Rmdir { parent, name }).await?;
        if let Some(dir) = shadow
            && let Err(error) = self.shadow.remove_root(dir)
        {
            tracing::warn!(%dir, %error, "the local directory of a removed shadow stays");
        }
        Ok(())
    }

    /// Moves a node, with the flags of renameat2(2).
    ///
    /// # Errors
    /// `InvalidArgument` (flags, or a directory into itself), `CrossDevice` (a shadow's border), `NotFound`,
    /// `AlreadyExists`, `NotEmpty`, `IsADirectory`, `NotADirectory`, and what the server fails with.
    pub async fn rename(&self, from: (u64, &[u8]), to: (u64, &[u8]), flags: u32) -> Result<()> {
        let mode = rename_mode(flags)?;
        let rooms = (self.room_below(from.0).await?, self.room_below(to.0).await?);
        let (parent, new_parent) = match rooms {
            (Room::Shadow(a), Room::Shadow(b)) => {
                return self.shadow.rename(a, from.1, b, to.1, flags).map_err(local);
            }
            (Room::Tree(a), Room::Tree(b)) => (a, b),
            (Room::Tree(_), Room::Shadow(_)) | (Room::Shadow(_), Room::Tree(_)) => return Err(across()),
        };
        let (name, new_name) = (Name::new(from.1)?, Name::new(to.1)?);
        let mut replaced = None;
        if mode == RenameMode::Replace {
            match self.world.tree.lookup(self.world.up.as_ref(), new_parent, new_name.as_bytes()).await {
                Ok(target) if target.is_shadow() => {
                    self.require_empty_shadow(target.id)?;
                    replaced = Some(target.id);
                }
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        self.world.apply(Op::Rename { parent, name, new_parent, new_name, mode }).await?;
        if let Some(dir) = replaced.filter(|dir| self.world.tree.node(*dir).is_none())
            && let Err(error) = self.shadow.remove_root(dir)
        {
            tracing::warn!(%dir, %error, "the local directory of a replaced shadow stays");
        }
        Ok(())
    }

    /// Makes another name for a file. Counts as a lookup.
    ///
    /// # Errors
    /// `CrossDevice` (a shadow's border), `AlreadyExists`, `NotPermitted` (a directory), `TooManyLinks`, `NotFound` (the file
    /// is gone), and what the server fails with.
    pub async fn link(&self, ino: u64, parent: u64, name: &[u8]) -> Result<Entry> {
        match (Self::room_of(ino), self.room_below(parent).await?) {
            (Room::Shadow(_), Room::Shadow(place)) => {
                self.shadow.link(ino, place, name).map(Self::shadow_entry).map_err(local)
            }
            (Room::Tree(file_id), Room::Tree(parent)) => {
                let name = Name::new(name)?;
                match self.world.apply(Op::Link { file_id, parent, name }).await {
                    Err(e) if e.kind() == ErrorKind::Stale => return Err(Error::not_found(e.message())),
                    other => other?,
                };
                Ok(self.entry(self.node(file_id).await?))
            }
            (Room::Tree(_), Room::Shadow(_)) | (Room::Shadow(_), Room::Tree(_)) => Err(across()),
        }
    }
}
