//! Names found, moved and taken away: lookup, readlink, unlink, rmdir, rename, forget.

use super::route::{Room, local};
use super::{Entry, Vfs};
use crate::shadow::is_shadow;
use crate::world::World;
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

/// Until it is answered, the kernel is told of the links that a node had before one of its names was removed: with the answer to
/// the removal it counts down by itself.
pub struct Removal {
    world: Arc<World>,
    id: FileId,
}

impl Removal {
    /// The answer to this thread follows.
    pub fn answer(&self, thread: u32) {
        self.world.known.answer_removal(self.id, thread);
    }
}

impl std::fmt::Debug for Removal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Removal").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        self.world.known.cancel_removal(self.id);
        self.world.kernel.invalidate_attr_soon(self.id);
    }
}

impl Vfs {
    /// What `name` leads to in `parent`. Counts as a lookup. `.` and `..` are asked for by number, of anything.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, `NameTooLong`, `Stale`, and what the server fails with.
    pub async fn lookup(&self, parent: u64, name: &[u8]) -> Result<Entry> {
        if let (b"." | b"..", Room::Tree(id)) = (name, Self::room_of(parent)) {
            let node = self.node(id).await?;
            let up = node.link().map(|link| link.parent).filter(|_| name == b".." && id != self.root);
            return Ok(self.entry(match up {
                Some(up) => self.node(up).await?,
                None => node,
            }));
        }
        match self.room_below(parent).await? {
            Room::Shadow(place) => self.shadow.lookup(place, name).map(|e| self.shadow_entry(e)).map_err(local),
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

    /// Takes the name of anything but a directory away. What is returned is to be kept until the kernel has its answer.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory`, and what the server fails with.
    pub async fn unlink(&self, parent: u64, name: &[u8]) -> Result<Option<Removal>> {
        let removal = self.removal(parent, name).await;
        match self.room_below(parent).await? {
            Room::Shadow(place) => self.shadow.unlink(place, name).map_err(local)?,
            Room::Tree(parent) => {
                let name = Name::new(name)?;
                self.world.apply(Op::Unlink { parent, name }).await?;
            }
        }
        Ok(removal)
    }

    /// The removal of a name of something that has others too, as far as the kernel's count of them goes.
    async fn removal(&self, parent: u64, name: &[u8]) -> Option<Removal> {
        let stat = self.lookup(parent, name).await.ok()?.stat;
        self.forget(stat.ino, 1);
        if stat.kind.is_dir() || stat.nlink < 2 {
            return None;
        }
        let id = FileId(stat.ino);
        self.world.known.begin_removal(id, stat.nlink);
        Some(Removal { world: self.world.clone(), id })
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

    /// Moves a node, with the flags of renameat2(2). What is returned is to be kept until the kernel has its answer.
    ///
    /// # Errors
    /// `InvalidArgument` (flags, or a directory into itself), `CrossDevice` (a shadow's border), `NotFound`,
    /// `AlreadyExists`, `NotEmpty`, `IsADirectory`, `NotADirectory`, and what the server fails with.
    pub async fn rename(&self, from: (u64, &[u8]), to: (u64, &[u8]), flags: u32) -> Result<Option<Removal>> {
        let mode = rename_mode(flags)?;
        let removal = if mode == RenameMode::Replace { self.removal(to.0, to.1).await } else { None };
        let rooms = (self.room_below(from.0).await?, self.room_below(to.0).await?);
        let (parent, new_parent) = match rooms {
            (Room::Shadow(a), Room::Shadow(b)) => {
                return self.shadow.rename(a, from.1, b, to.1, flags).map(|()| removal).map_err(local);
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
        Ok(removal)
    }

    /// Makes another name for a file. Counts as a lookup.
    ///
    /// # Errors
    /// `CrossDevice` (a shadow's border), `AlreadyExists`, `NotPermitted` (a directory), `TooManyLinks`, `NotFound` (the file
    /// is gone), and what the server fails with.
    pub async fn link(&self, ino: u64, parent: u64, name: &[u8]) -> Result<Entry> {
        match (Self::room_of(ino), self.room_below(parent).await?) {
            (Room::Shadow(_), Room::Shadow(place)) => {
                self.shadow.link(ino, place, name).map(|e| self.shadow_entry(e)).map_err(local)
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
