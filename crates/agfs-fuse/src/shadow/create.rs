//! New inodes: files, directories, symbolic links and special files, with the owner and mode they were asked with.

use super::ShadowFs;
use super::data::{self, OpenFile};
use super::meta::{Found, chown, decode_rdev, mode_bits, stat_fd};
use super::resolve::{check_name, open_path};
use super::types::{Entry, Errno, Owner, Place, Result};
use agfs_core::attr::{PERMISSION_BITS, SET_GID, SET_UID};
use agfs_core::node::NodeKind;
use rustix::fs::{AtFlags, FileType, OFlags};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// While it still belongs to this process's user, a new inode must not run as that user.
const HARMLESS: u32 = PERMISSION_BITS & !(SET_UID | SET_GID);

impl ShadowFs {
    /// Makes a regular file and opens it. `flags` are those of open(2). A file that exists is opened, unless `flags` has O_EXCL.
    /// The umask is taken to be applied already.
    pub fn create(&self, parent: Place, name: &[u8], mode: u32, flags: i32, owner: Owner) -> Result<(Entry, u64)> {
        check_name(name)?;
        let dir = self.inodes.fd(parent.ino())?;
        let make = data::open_flags(flags) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        match rustix::fs::openat(&dir, name, make, mode_bits(mode & HARMLESS)) {
            Ok(fd) => {
                let found = self.settle(&dir, name, &fd, mode, owner)?;
                let entry = self.inodes.entry(parent, name, &found);
                Ok((entry, self.files.insert(OpenFile::new(fd, entry.ino))))
            }
            Err(Errno::EXIST) if flags & libc::O_EXCL == 0 => {
                let entry = self.lookup(parent, name)?;
                match self.open(entry.ino, flags) {
                    Ok(fh) => Ok((entry, fh)),
                    Err(errno) => {
                        self.forget(entry.ino, 1);
                        Err(errno)
                    }
                }
            }
            Err(errno) => Err(errno),
        }
    }

    /// Makes a directory. The umask is taken to be applied already. In a directory with the set-group-id bit it inherits the
    /// group and the bit; a root has no such bit on disk, so whoever knows the tree node passes its group and the bit.
    pub fn mkdir(&self, parent: Place, name: &[u8], mode: u32, owner: Owner) -> Result<Entry> {
        self.make(parent, name, mode, owner, |dir| rustix::fs::mkdirat(dir, name, mode_bits(mode & HARMLESS)))
    }

    /// Makes a regular file, fifo, socket or device. `mode` has the file type bits of mknod(2), `rdev` is as FUSE encodes it.
    pub fn mknod(&self, parent: Place, name: &[u8], mode: u32, rdev: u32, owner: Owner) -> Result<Entry> {
        let file_type = match FileType::from_raw_mode(mode) {
            // No type bits: a regular file.
            FileType::Unknown if mode & libc::S_IFMT == 0 => FileType::RegularFile,
            FileType::Directory => return Err(Errno::PERM),
            FileType::Symlink | FileType::Unknown => return Err(Errno::INVAL),
            known => known,
        };
        let dev = decode_rdev(rdev);
        self.make(parent, name, mode, owner, |dir| {
            rustix::fs::mknodat(dir, name, file_type, mode_bits(mode & HARMLESS), dev)
        })
    }

    /// Makes a symbolic link to `target`, which is kept as given.
    pub fn symlink(&self, parent: Place, name: &[u8], target: &[u8], owner: Owner) -> Result<Entry> {
        self.make(parent, name, 0o777, owner, |dir| rustix::fs::symlinkat(target, dir, name))
    }

    fn make(
        &self,
        parent: Place,
        name: &[u8],
        mode: u32,
        owner: Owner,
        make: impl FnOnce(&OwnedFd) -> Result<()>,
    ) -> Result<Entry> {
        check_name(name)?;
        let dir = self.inodes.fd(parent.ino())?;
        make(&dir)?;
        let fd = open_path(&dir, name)?;
        let found = self.settle(&dir, name, &fd, mode, owner)?;
        let entry = self.inodes.entry(parent, name, &found);
        if found.attr.kind.is_dir() {
            self.inodes.keep(entry.ino, Arc::new(fd));
        }
        Ok(entry)
    }

    /// Gives a new inode its owner and its whole mode. When that fails the inode is removed again.
    fn settle(&self, dir: &OwnedFd, name: &[u8], fd: &OwnedFd, mode: u32, owner: Owner) -> Result<Found> {
        let settled = self.own(dir, fd, mode, owner);
        if let Err(errno) = settled {
            let flags = match stat_fd(fd) {
                Ok(found) if found.attr.kind.is_dir() => AtFlags::REMOVEDIR,
                _ => AtFlags::empty(),
            };
            if let Err(left) = rustix::fs::unlinkat(dir, name, flags) {
                tracing::warn!(%errno, %left, "a new file could not be given to its owner, nor removed again");
            }
        }
        settled
    }

    fn own(&self, dir: &OwnedFd, fd: &OwnedFd, mode: u32, owner: Owner) -> Result<Found> {
        let mut found = stat_fd(fd)?;
        let made = found.attr;
        if self.privileged && (made.uid != owner.uid || made.gid != owner.gid) {
            let inherits = stat_fd(dir)?.attr.mode & SET_GID != 0;
            let uid = (made.uid != owner.uid).then_some(owner.uid);
            let gid = (!inherits && made.gid != owner.gid).then_some(owner.gid);
            if uid.is_some() || gid.is_some() {
                chown(fd, uid, gid)?;
                found = stat_fd(fd)?;
            }
        }
        // What the process's umask took away, or the set-id bits left out so far; a directory keeps an inherited bit.
        let inherited = if made.kind.is_dir() { made.mode & SET_GID } else { 0 };
        let wanted = mode & PERMISSION_BITS | inherited;
        if made.kind != NodeKind::Symlink && found.attr.mode != wanted {
            self.chmod(fd, wanted)?;
            found = stat_fd(fd)?;
        }
        Ok(found)
    }
}
