//! From an inode number to a descriptor: the table, the cache of descriptors, and opening again what was evicted.
//! It changes nothing on the disk.

use super::fds::FdCache;
use super::inode::{Identity, Link, Table};
use super::is_shadow;
use super::meta::{Found, stat_fd};
use super::types::{Entry, Errno, Place, Result};
use agfs_core::id::FileId;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rustc_hash::FxHashSet;
use rustix::fs::{CWD, Mode, OFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

/// Opens a name for use as a path only, whatever it is, without following it.
const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The name of a root's local directory.
pub(super) fn root_name(dir: FileId) -> String {
    format!("{:016x}", dir.0)
}

/// A path descriptor of what `name` in `dir` is.
pub(super) fn open_path(dir: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    rustix::fs::openat(dir, name, PATH_ONLY, Mode::empty())
}

/// Refuses what is not the name of one entry: the local kernel would take a path.
pub(super) fn check_name(name: &[u8]) -> Result<()> {
    match name {
        b"" => Err(Errno::NOENT),
        b"." | b".." => Err(Errno::INVAL),
        _ if name.contains(&b'/') || name.contains(&0) => Err(Errno::INVAL),
        _ => Ok(()),
    }
}

/// All inodes that the kernel holds, and the descriptors that lead to them.
///
/// Lock order: `moves`, then `table`, then `cache`; no call on the disk is made with `table` or `cache` locked.
pub(super) struct Inodes {
    base: Arc<OwnedFd>,
    proc_fds: OwnedFd,
    table: Mutex<Table>,
    cache: Mutex<FdCache>,
    /// Shared while a name changes on disk and in the table; exclusive for who must see the two agree.
    moves: RwLock<()>,
}

impl Inodes {
    pub(super) fn open(base: &Path, path_fds: usize) -> Result<Self> {
        match rustix::fs::mkdirat(CWD, base, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let base = rustix::fs::open(base, flags, Mode::empty())?;
        let proc_fds = rustix::fs::open("/proc/self/fd", flags | OFlags::PATH, Mode::empty())?;
        let dev = stat_fd(&base)?.identity.key.dev;
        Ok(Inodes {
            base: Arc::new(base),
            proc_fds,
            table: Mutex::new(Table::new(dev)),
            cache: Mutex::new(FdCache::new(path_fds)),
            moves: RwLock::new(()),
        })
    }

    /// The base directory.
    pub(super) fn base(&self) -> &Arc<OwnedFd> {
        &self.base
    }

    /// The directory in which a descriptor's number leads to what is behind it, opened anew.
    pub(super) fn proc_fds(&self) -> &OwnedFd {
        &self.proc_fds
    }

    pub(super) fn len(&self) -> usize {
        self.table.lock().len()
    }

    pub(super) fn held_fds(&self) -> usize {
        let held = self.table.lock().held();
        held + self.cache.lock().len()
    }

    /// To be held while names change on disk and until the table knows. Take every descriptor that is needed before:
    /// `fd` may wait for this guard.
    pub(super) fn moving(&self) -> RwLockReadGuard<'_, ()> {
        self.moves.read()
    }

    /// A path descriptor for an inode number, or for a root's file id. ESTALE when the number is not known or the inode is not
    /// where it should be; ENOENT for a root that was never made.
    pub(super) fn fd(&self, ino: u64) -> Result<Arc<OwnedFd>> {
        if let Some(fd) = self.known(ino) {
            return Ok(fd);
        }
        if !is_shadow(ino) {
            return self.open_root(ino);
        }
        match self.reopen(ino) {
            // It may have been moved just as its old name was tried.
            Err(Errno::STALE) => {
                let _settled = self.moves.write();
                self.reopen(ino)
            }
            other => other,
        }
    }

    fn known(&self, ino: u64) -> Option<Arc<OwnedFd>> {
        self.cache.lock().get(ino).or_else(|| self.table.lock().held_fd(ino))
    }

    /// Keeps a path descriptor that was opened anyway.
    pub(super) fn keep(&self, ino: u64, fd: Arc<OwnedFd>) {
        let evicted = self.cache.lock().insert(ino, fd);
        drop(evicted);
    }

    /// Lets go of the cached descriptor of a root or an inode.
    pub(super) fn let_go(&self, ino: u64) {
        let removed = self.cache.lock().remove(ino);
        drop(removed);
    }

    fn open_root(&self, id: u64) -> Result<Arc<OwnedFd>> {
        let name = root_name(FileId(id));
        let fd = rustix::fs::openat(&self.base, name, PATH_ONLY | OFlags::DIRECTORY, Mode::empty())?;
        let fd = Arc::new(fd);
        self.keep(id, fd.clone());
        Ok(fd)
    }

    /// Walks up from `wanted` until a directory is open, then opens down. No recursion, since a path may be very deep, and no
    /// directory is walked through twice, since names that another process changed might form a circle.
    fn reopen(&self, wanted: u64) -> Result<Arc<OwnedFd>> {
        let mut tried = FxHashSet::default();
        tried.insert(wanted);
        let mut stack = vec![wanted];
        let mut last: Option<(u64, Arc<OwnedFd>)> = None;
        while let Some(&ino) = stack.last() {
            if !is_shadow(ino) {
                // A missing root leads nowhere; the next name, if any, is tried.
                last = self.open_root(ino).ok().map(|fd| (ino, fd));
                stack.pop();
                continue;
            }
            let (identity, places) = self.table.lock().places(ino).ok_or(Errno::STALE)?;
            let mut found = None;
            let mut way_up = None;
            for place in &places {
                let dir = match &last {
                    Some((parent, fd)) if *parent == place.parent => Some(fd.clone()),
                    _ => self.known(place.parent),
                };
                match dir {
                    Some(dir) => found = open_verified(&dir, &place.name, identity)?,
                    None if way_up.is_none() && !tried.contains(&place.parent) => way_up = Some(place.parent),
                    None => {}
                }
                if found.is_some() {
                    break;
                }
            }
            if let Some(fd) = found {
                let fd = Arc::new(fd);
                self.keep(ino, fd.clone());
                last = Some((ino, fd));
                stack.pop();
            } else if let Some(parent) = way_up {
                tried.insert(parent);
                stack.push(parent);
            } else {
                stack.pop();
            }
        }
        last.filter(|(ino, _)| *ino == wanted).map(|(_, fd)| fd).ok_or(Errno::STALE)
    }

    /// Records an inode seen as `name` in `parent`, with one more lookup.
    pub(super) fn entry(&self, parent: Place, name: &[u8], found: &Found) -> Entry {
        let ino = self.change(|table| table.remember(link(parent, name), found, 1));
        Entry { ino, attr: super::Attr { ino, ..found.attr } }
    }

    /// Gives back lookups.
    pub(super) fn forget(&self, nodes: impl IntoIterator<Item = (u64, u64)>) {
        self.change(|table| nodes.into_iter().for_each(|(ino, lookups)| table.forget(ino, lookups)));
    }

    /// Reads or changes the table, and lets go of what the change freed after unlocking it.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Table) -> R) -> R {
        let (result, freed) = {
            let mut table = self.table.lock();
            let result = change(&mut table);
            (result, table.take_freed())
        };
        if !freed.inos.is_empty() {
            let closed: Vec<_> = {
                let mut cache = self.cache.lock();
                freed.inos.iter().filter_map(|&ino| cache.remove(ino)).collect()
            };
            drop(closed);
        }
        result
    }
}

/// A table link for a name in a place.
pub(super) fn link(parent: Place, name: &[u8]) -> Link {
    Link { parent: parent.ino(), name: name.into() }
}

/// A descriptor of `name` in `dir` if it is the inode looked for; `None` when something else is there, or nothing.
fn open_verified(dir: &OwnedFd, name: &[u8], identity: Identity) -> Result<Option<OwnedFd>> {
    let fd = match open_path(dir, name) {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::STALE) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    Ok((stat_fd(&fd)?.identity == identity).then_some(fd))
}
