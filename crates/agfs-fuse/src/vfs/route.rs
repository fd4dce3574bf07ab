//! Which room a request is for: the space's tree, or a shadow directory. And what of a shadow shows in the tree.

use super::{Attributes, Entry, Stat, Vfs};
use crate::cache_policy;
use crate::errno;
use crate::shadow::{self, Place, is_shadow};
use crate::tree::Child;
use agfs_core::name::Name;
use agfs_core::{Error, ErrorKind, FileId, Result};
use std::cell::Cell;

/// Marks a handle of the shadow room.
const SHADOW_HANDLE: u64 = 1 << 63;

/// The room of an inode number, and what it is called there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Tree(FileId),
    Shadow(Place),
}

/// The number that the kernel gets for a handle of the shadow room.
pub(super) const fn shadow_handle(fh: u64) -> u64 {
    fh | SHADOW_HANDLE
}

/// The shadow room's number of a handle, if it is one of that room.
pub(super) const fn as_shadow(fh: u64) -> Option<u64> {
    if fh & SHADOW_HANDLE == 0 { None } else { Some(fh & !SHADOW_HANDLE) }
}

/// A failure of the local disk: its errno is kept where a kind has it.
pub(super) fn local(e: shadow::Errno) -> Error {
    let raw = e.raw_os_error();
    let kind = match raw {
        libc::ENOTEMPTY => ErrorKind::NotEmpty,
        libc::ENAMETOOLONG => ErrorKind::NameTooLong,
        libc::EXDEV => ErrorKind::CrossDevice,
        libc::ETXTBSY => ErrorKind::TextBusy,
        libc::EMLINK => ErrorKind::TooManyLinks,
        libc::ESTALE => ErrorKind::Stale,
        libc::EOPNOTSUPP => ErrorKind::Unsupported,
        libc::ENODATA => ErrorKind::NoAttribute,
        libc::E2BIG => ErrorKind::ValueTooLarge,
        libc::ERANGE => ErrorKind::BufferTooSmall,
        libc::EINTR => ErrorKind::Interrupted,
        other => errno::kind_of(other),
    };
    Error::new(kind, format!("in a shadow directory: {e}"))
}

impl Vfs {
    /// The room of what lies in a directory. Fails with `NotFound` for one that was removed: nothing lies in it.
    pub(super) async fn room_below(&self, dir: u64) -> Result<Room> {
        if is_shadow(dir) {
            return Ok(Room::Shadow(Place::Inner(dir)));
        }
        let id = FileId(dir);
        let node = match self.world.tree.node(id) {
            Some(node) => node,
            None if self.orphan(id).is_some() => {
                return Err(Error::not_found(format!("the directory {id} was removed")));
            }
            None => self.node(id).await?,
        };
        if !node.is_shadow() {
            return Ok(Room::Tree(id));
        }
        // Another mount may have made it: here it begins empty.
        self.shadow.ensure_root(id).map_err(local)?;
        Ok(Room::Shadow(Place::Root(id)))
    }

    /// The room of a node itself; a shadow directory is a node of the tree.
    pub(super) const fn room_of(ino: u64) -> Room {
        if is_shadow(ino) { Room::Shadow(Place::Inner(ino)) } else { Room::Tree(FileId(ino)) }
    }

    pub(super) fn shadow_entry(&self, entry: shadow::Entry) -> Entry {
        let ttl = cache_policy::shadow_ttl();
        Entry { stat: self.shown(entry.attr.into()), entry_ttl: ttl, attr_ttl: ttl }
    }

    pub(super) fn shadow_attributes(&self, attr: shadow::Attr) -> Attributes {
        Attributes { stat: self.shown(attr.into()), ttl: cache_policy::shadow_ttl() }
    }

    /// What the local directory adds to what is shown of a shadow node.
    pub(super) fn add_shadow_root(&self, stat: &mut Stat, id: FileId) {
        if let Ok(attr) = self.shadow.getattr(Place::Root(id)) {
            stat.nlink = attr.nlink;
            stat.mtime = stat.mtime.max(attr.mtime);
            stat.ctime = stat.ctime.max(attr.ctime);
        }
    }

    /// Whether a new directory is a shadow by the rules.
    pub(super) async fn matches_rules(&self, parent: FileId, name: &Name) -> Result<bool> {
        // The path upwards, as far as the space's root.
        let (mut dirs, mut names) = (vec![parent], vec![name.clone()]);
        while let Some(&at) = dirs.last() {
            let node = self.world.tree.fetch(self.world.up.as_ref(), at).await?;
            let Some(link) = node.link() else { break };
            names.push(link.name.clone());
            dirs.push(link.parent);
            if names.len() > agfs_core::path::MAX_PATH {
                break;
            }
        }
        let path: Vec<&[u8]> = names.iter().rev().map(Name::as_bytes).collect();
        loop {
            let (matches, lacking) = self.match_loaded(&dirs, &path);
            match lacking {
                // A sibling would be in a directory that is not loaded: load it and ask again.
                Some(dir) => self.world.tree.load_dir(self.world.up.as_ref(), dir).await?,
                None => return Ok(matches),
            }
        }
    }

    /// Whether the rules match as far as directories are loaded, and one that is not and matters.
    fn match_loaded(&self, dirs: &[FileId], path: &[&[u8]]) -> (bool, Option<FileId>) {
        let lacking = Cell::new(None);
        let exists = |up: usize, sibling: &str| {
            let Some(&dir) = dirs.get(up) else { return false };
            match self.world.tree.child(dir, sibling.as_bytes()) {
                Child::Node(_) | Child::NoNode(_) => true,
                Child::Absent | Child::NotADirectory => false,
                Child::NoParent | Child::NotLoaded => {
                    lacking.set(Some(dir));
                    false
                }
            }
        };
        (self.rules.matches(path, exists), lacking.get())
    }

    /// Fails with `NotEmpty` when a directory that is to go away is a shadow with something in it.
    pub(super) fn require_empty_shadow(&self, dir: FileId) -> Result<()> {
        if self.shadow.root_is_empty(dir).map_err(local)? {
            return Ok(());
        }
        Err(Error::not_empty(format!("the shadow directory {dir} has entries on this machine")))
    }
}
