//! The local directories of shadow nodes: made, looked at, removed, discarded. Nothing here looks below their first level
//! except to delete what was discarded.

use super::ShadowFs;
use super::resolve::{open_path, root_name};
use super::types::{Errno, Result};
use agfs_core::id::FileId;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Discarded roots bear this before a number until they are deleted.
const DISCARDED: &[u8] = b"discarded-";

/// Opens a directory for reading, not following a link.
pub(super) fn open_for_reading(dir: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

fn is_dot(name: &[u8]) -> bool {
    name == b"." || name == b".."
}

/// Names and types in a directory, without `.` and `..`.
pub(super) fn names_in(dir: impl AsFd) -> Result<Vec<(Vec<u8>, FileType)>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !is_dot(name) {
            names.push((name.to_vec(), entry.file_type()));
        }
    }
    Ok(names)
}

impl ShadowFs {
    /// Makes the local directory of a shadow node if it is missing.
    pub fn ensure_root(&self, dir: FileId) -> Result<()> {
        match rustix::fs::mkdirat(self.inodes.base(), root_name(dir), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.inodes.fd(super::Place::Root(dir).ino()).map(drop),
            Err(errno) => Err(errno),
        }
    }

    /// Whether nothing lies in a shadow directory on this mount; a missing local directory is empty.
    pub fn root_is_empty(&self, dir: FileId) -> Result<bool> {
        let fd = match open_for_reading(self.inodes.base(), root_name(dir).as_bytes()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(true),
            Err(errno) => return Err(errno),
        };
        for entry in Dir::read_from(&fd)? {
            if !is_dot(entry?.file_name().to_bytes()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes the local directory of a shadow node. ENOTEMPTY when something is in it; a missing one is removed already.
    pub fn remove_root(&self, dir: FileId) -> Result<()> {
        match rustix::fs::unlinkat(self.inodes.base(), root_name(dir), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {
                self.inodes.let_go(super::Place::Root(dir).ino());
                Ok(())
            }
            Err(errno) => Err(errno),
        }
    }

    /// Puts the local directory of a shadow node aside, whatever is in it, and deletes it in the background. What is open
    /// in it stays usable; other inodes below answer ESTALE or ENOENT from now on.
    pub fn discard_root(&self, dir: FileId) -> Result<()> {
        let base = self.inodes.base();
        let aside = loop {
            let number = self.discarded.fetch_add(1, Ordering::Relaxed);
            let aside = format!("{}{number}", String::from_utf8_lossy(DISCARDED)).into_bytes();
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(base, root_name(dir), base, &*aside, flags) {
                Ok(()) => break aside,
                Err(Errno::NOENT) => return Ok(()),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        };
        self.inodes.let_go(super::Place::Root(dir).ino());
        delete_in_background(base.clone(), vec![aside])
    }

    /// The shadow nodes that have a local directory here.
    pub fn roots(&self) -> Result<Vec<FileId>> {
        let base = open_for_reading(self.inodes.base(), b".")?;
        let id = |name: Vec<u8>| {
            let text = String::from_utf8(name).ok()?;
            let id = FileId(u64::from_str_radix(&text, 16).ok()?);
            (root_name(id) == text).then_some(id)
        };
        Ok(names_in(&base)?.into_iter().filter_map(|(name, _)| id(name)).collect())
    }

    /// Deletes what an earlier process had put aside.
    pub(super) fn resume_discarding(&self) -> Result<()> {
        let base = open_for_reading(self.inodes.base(), b".")?;
        let aside: Vec<_> =
            names_in(&base)?.into_iter().map(|(name, _)| name).filter(|n| n.starts_with(DISCARDED)).collect();
        if aside.is_empty() { Ok(()) } else { delete_in_background(self.inodes.base().clone(), aside) }
    }
}

fn delete_in_background(base: Arc<OwnedFd>, aside: Vec<Vec<u8>>) -> Result<()> {
    let work = move || {
        for name in aside {
            if let Err(errno) = delete_tree(&base, &name) {
                tracing::warn!(%errno, directory = %String::from_utf8_lossy(&name), "a discarded shadow directory is left");
            }
        }
    };
    let spawned = std::thread::Builder::new().name("shadow-discard".into()).spawn(work);
    spawned.map(drop).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))
}

/// Deletes a directory in `base` with all that is in it. However deep the tree: a directory inside is first moved up
/// beside the others, so that no path, stack or set of open directories grows with the depth.
fn delete_tree(base: &OwnedFd, top: &[u8]) -> Result<()> {
    let mut waiting: VecDeque<Vec<u8>> = VecDeque::from([top.to_vec()]);
    let mut moved = 0_u64;
    while let Some(name) = waiting.pop_front() {
        let dir = open_for_reading(base, &name)?;
        for (entry, _) in names_in(&dir)? {
            match rustix::fs::unlinkat(&dir, &*entry, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                // EPERM is what some file systems say of a directory.
                Err(Errno::ISDIR | Errno::PERM) => {
                    let up = [top, format!("-{moved}").as_bytes()].concat();
                    moved += 1;
                    give_back(&dir, &entry)?;
                    rustix::fs::renameat(&dir, &*entry, base, &*up)?;
                    waiting.push_back(up);
                }
                Err(errno) => return Err(errno),
            }
        }
        rustix::fs::unlinkat(base, &*name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// Gives this process's user the right to list, empty and move a directory, which a program below may have taken away.
fn give_back(dir: &OwnedFd, name: &[u8]) -> Result<()> {
    let fd = open_path(dir, name)?;
    // Not by name: a program that still works in the discarded tree could put a link there.
    rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), Mode::RWXU)
}
