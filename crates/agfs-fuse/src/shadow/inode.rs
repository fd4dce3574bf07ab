//! The inode table: which inode numbers the kernel holds, and where each can be found again. Pure bookkeeping, no I/O.
//!
//! Why names and not file handles: a path descriptor cannot be kept for every inode, so an evicted one must be opened again.
//! `open_by_handle_at` would survive any rename, but needs CAP_DAC_READ_SEARCH, which containers drop, and a file system that
//! exports handles, which overlayfs by default does not: agents run in just these places. The names are as good here, because
//! the base directory is this mount's alone and every rename and deletion comes through this table:
//! - each slot keeps names under which its inode was last seen; a rename changes them in the same call, and a slot refers to
//!   its parents by number, so renaming a directory costs nothing below it;
//! - when the last name known goes, the descriptor is held (`held`) until the slot is forgotten: the inode stays reachable,
//!   and while it is held the local file system cannot give its number to another file;
//! - whoever opens a name again compares device, inode number and birth time. Should another process have changed the base
//!   directory, the answer is ESTALE, on which the kernel looks the path up afresh; never another file.
//!
//! An inode number is the local one with [`SHADOW_BIT`], as long as it is on the base's device and not taken: so numbers
//! outlive a forget and a remount, which git's index, `tail -F` and backup tools rely on.

use super::SHADOW_BIT;
use super::meta::Found;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use agfs_core::time::Timestamp;

/// The local identity of an inode, for as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) dev: u64,
    pub(super) ino: u64,
}

/// A key, and the birth time that tells apart two inodes that had the same one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) key: Key,
    pub(super) btime: Timestamp,
}

/// A name in a directory; the parent is an inode number, or a file id for a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) parent: u64,
    pub(super) name: Box<[u8]>,
}

/// More names of one inode than this are not kept: any one of them is enough.
const MAX_NAMES: usize = 4;
/// Marks a number that is counted up, where the local one cannot serve.
const COUNTED: u64 = 1 << 62;

struct Slot {
    identity: Identity,
    lookups: u64,
    /// How many names in the table have this slot as parent: it stays while there are any.
    children: u32,
    /// Where it was last seen, the latest last.
    names: SmallVec<[Link; 1]>,
    /// Held when no name leads to it any more.
    held: Option<Arc<OwnedFd>>,
}

/// What was taken out of the table; to be dropped with no lock held.
#[derive(Default)]
pub(super) struct Freed {
    pub(super) inos: SmallVec<[u64; 2]>,
    fds: SmallVec<[Arc<OwnedFd>; 2]>,
}

/// All slots, by number and by local identity.
pub(super) struct Table {
    slots: FxHashMap<u64, Slot>,
    by_key: FxHashMap<Key, u64>,
    base_dev: u64,
    counter: u64,
    held: usize,
    freed: Freed,
}

impl Table {
    pub(super) fn new(base_dev: u64) -> Self {
        Table {
            slots: FxHashMap::default(),
            by_key: FxHashMap::default(),
            base_dev,
            counter: 0,
            held: 0,
            freed: Freed::default(),
        }
    }

    /// What the calls since the last take have taken out of the table.
    pub(super) fn take_freed(&mut self) -> Freed {
        std::mem::take(&mut self.freed)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many descriptors are held for inodes without a name.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// The number of an inode just seen as `link`, with `lookups` more references.
    pub(super) fn remember(&mut self, link: Link, found: &Found, lookups: u64) -> u64 {
        let identity = found.identity;
        let ino = match self.by_key.get(&identity.key).copied() {
            Some(ino) if self.slots.get(&ino).is_some_and(|s| s.identity == identity) => ino,
            // Taken over by another inode behind this table's back: the old slot keeps its number and leads nowhere.
            _ => self.give_number(identity),
        };
        if let Some(slot) = self.slots.get_mut(&ino) {
            slot.lookups = slot.lookups.saturating_add(lookups);
        }
        self.add_name(ino, link);
        ino
    }

    fn give_number(&mut self, identity: Identity) -> u64 {
        let mut ino = self.predict(identity.key);
        while self.slots.contains_key(&ino) {
            ino = SHADOW_BIT | COUNTED | self.counter;
            self.counter = (self.counter + 1) % COUNTED;
        }
        let slot = Slot { identity, lookups: 0, children: 0, names: SmallVec::new(), held: None };
        self.slots.insert(ino, slot);
        self.by_key.insert(identity.key, ino);
        ino
    }

    /// The number that an inode has or would get.
    pub(super) fn predict(&self, key: Key) -> u64 {
        match self.by_key.get(&key) {
            Some(&ino) => ino,
            None if key.dev == self.base_dev && key.ino < COUNTED => SHADOW_BIT | key.ino,
            None => SHADOW_BIT | COUNTED | self.counter,
        }
    }

    /// Adds a name, or makes it the latest.
    fn add_name(&mut self, ino: u64, link: Link) {
        let Some(slot) = self.slots.get_mut(&ino) else { return };
        if slot.names.last() == Some(&link) {
            return;
        }
        let parent = link.parent;
        let dropped = match slot.names.iter().position(|l| *l == link) {
            Some(at) => Some(slot.names.remove(at)),
            None if slot.names.len() >= MAX_NAMES => Some(slot.names.remove(0)),
            None => None,
        };
        slot.names.push(link);
        // A name leads to it again: the descriptor may be evicted like any other.
        self.held -= usize::from(slot.held.take().is_some());
        if let Some(parent) = self.slots.get_mut(&parent) {
            parent.children = parent.children.saturating_add(1);
        }
        if let Some(link) = dropped {
            self.release_child(link.parent);
        }
    }

    /// Every place where to look for an inode, the latest first, and what must be found there. `None` for an unknown number.
    pub(super) fn places(&self, ino: u64) -> Option<(Identity, SmallVec<[Link; 1]>)> {
        let slot = self.slots.get(&ino)?;
        Some((slot.identity, slot.names.iter().rev().cloned().collect()))
    }

    /// The descriptor of an inode that has no name. `None` for one that has; an unknown number is as one that has.
    pub(super) fn held_fd(&self, ino: u64) -> Option<Arc<OwnedFd>> {
        self.slots.get(&ino)?.held.clone()
    }

    /// The directory where an inode was last seen.
    pub(super) fn parent(&self, ino: u64) -> Option<u64> {
        Some(self.slots.get(&ino)?.names.last()?.parent)
    }

    /// Records that `link` no longer leads to `identity`. `gone`: the inode has no link left. `fd` is a descriptor of it,
    /// opened before the deletion so that its number could not be given to another in between.
    pub(super) fn unlinked(&mut self, identity: Identity, link: &Link, gone: bool, fd: Arc<OwnedFd>) {
        let Some(&ino) = self.by_key.get(&identity.key) else { return };
        let Some(slot) = self.slots.get_mut(&ino).filter(|s| s.identity == identity) else { return };
        let mut parents: SmallVec<[u64; 2]> = SmallVec::new();
        slot.names.retain(|l| {
            let leaves = gone || *l == *link;
            if leaves {
                parents.push(l.parent);
            }
            !leaves
        });
        if slot.names.is_empty() && slot.held.is_none() {
            slot.held = Some(fd);
            self.held += 1;
        }
        if gone {
            self.by_key.remove(&identity.key);
        }
        for parent in parents {
            self.release_child(parent);
        }
    }

    /// Records that `identity` moved from one name to another.
    pub(super) fn renamed(&mut self, identity: Identity, from: &Link, to: Link) {
        let Some(&ino) = self.by_key.get(&identity.key) else { return };
        if self.slots.get(&ino).is_none_or(|s| s.identity != identity) {
            return;
        }
        self.add_name(ino, to);
        let Some(slot) = self.slots.get_mut(&ino) else { return };
        let before = slot.names.len();
        slot.names.retain(|l| *l != *from);
        if slot.names.len() < before {
            self.release_child(from.parent);
        }
    }

    /// Gives back `lookups` references. What nothing refers to any more leaves the table.
    pub(super) fn forget(&mut self, ino: u64, lookups: u64) {
        if let Some(slot) = self.slots.get_mut(&ino) {
            slot.lookups = slot.lookups.saturating_sub(lookups);
            self.drop_if_unused(ino);
        }
    }

    fn release_child(&mut self, parent: u64) {
        if let Some(slot) = self.slots.get_mut(&parent) {
            slot.children = slot.children.saturating_sub(1);
            self.drop_if_unused(parent);
        }
    }

    /// Takes a slot without lookups and children out, and then its parents as far as that leaves them unused.
    fn drop_if_unused(&mut self, ino: u64) {
        let mut unsure: SmallVec<[u64; 4]> = SmallVec::from_slice(&[ino]);
        while let Some(ino) = unsure.pop() {
            if self.slots.get(&ino).is_none_or(|s| s.lookups > 0 || s.children > 0) {
                continue;
            }
            let Some(slot) = self.slots.remove(&ino) else { continue };
            if self.by_key.get(&slot.identity.key) == Some(&ino) {
                self.by_key.remove(&slot.identity.key);
            }
            self.held -= usize::from(slot.held.is_some());
            self.freed.inos.push(ino);
            self.freed.fds.extend(slot.held);
            for link in slot.names {
                if let Some(parent) = self.slots.get_mut(&link.parent) {
                    parent.children = parent.children.saturating_sub(1);
                    unsure.push(link.parent);
                }
            }
        }
    }
}
