//! Names: finding, removing, renaming, linking. What makes a new inode is in `create`.

use super::ShadowFs;
use super::inode::Identity;
use super::meta::{stat_at, stat_fd};
use super::resolve::{check_name, link, open_path};
use super::types::{Entry, Errno, Place, Result};
use rustix::fs::{AtFlags, RenameFlags};
use rustix::path::DecInt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// An inode about to lose a name: held so that its number stays its own until the table knows.
struct Leaving {
    fd: Arc<OwnedFd>,
    identity: Identity,
}

impl Leaving {
    fn hold(dir: &OwnedFd, name: &[u8]) -> Result<Leaving> {
        let fd = open_path(dir, name)?;
        let identity = stat_fd(&fd)?.identity;
        Ok(Leaving { fd: Arc::new(fd), identity })
    }
}

impl ShadowFs {
    /// Finds `name`; one lookup more for what it is. ENOENT when there is no such name.
    pub fn lookup(&self, parent: Place, name: &[u8]) -> Result<Entry> {
        check_name(name)?;
        let dir = self.inodes.fd(parent.ino())?;
        let found = stat_at(&dir, name)?;
        Ok(self.inodes.entry(parent, name, &found))
    }

    /// Gives back `lookups` of an inode. Numbers that are not known are passed over.
    pub fn forget(&self, ino: u64, lookups: u64) {
        self.inodes.forget([(ino, lookups)]);
    }

    /// Gives back lookups of many inodes: pairs of number and count.
    pub fn forget_many(&self, nodes: impl IntoIterator<Item = (u64, u64)>) {
        self.inodes.forget(nodes);
    }

    /// The target of a symbolic link. EINVAL for anything else.
    pub fn readlink(&self, ino: u64) -> Result<Vec<u8>> {
        let fd = self.inodes.fd(ino)?;
        let target = rustix::fs::readlinkat(&fd, c"", Vec::new()).map_err(|errno| match errno {
            // Without a name, readlinkat(2) says ENOENT where readlink(2) says EINVAL.
            Errno::NOENT => Errno::INVAL,
            other => other,
        })?;
        Ok(target.into_bytes())
    }

    /// Removes a name of anything but a directory.
    pub fn unlink(&self, parent: Place, name: &[u8]) -> Result<()> {
        self.remove(parent, name, AtFlags::empty())
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, parent: Place, name: &[u8]) -> Result<()> {
        self.remove(parent, name, AtFlags::REMOVEDIR)
    }

    fn remove(&self, parent: Place, name: &[u8], flags: AtFlags) -> Result<()> {
        check_name(name)?;
        let dir = self.inodes.fd(parent.ino())?;
        let _moving = self.inodes.moving();
        let leaving = Leaving::hold(&dir, name)?;
        rustix::fs::unlinkat(&dir, name, flags)?;
        self.left(parent, name, leaving, flags.contains(AtFlags::REMOVEDIR));
        Ok(())
    }

    /// Tells the table that a name is gone from the disk. `gone`: certainly the last one.
    fn left(&self, parent: Place, name: &[u8], leaving: Leaving, gone: bool) {
        let gone = gone || stat_fd(&leaving.fd).is_ok_and(|found| found.attr.nlink == 0);
        self.inodes.change(|table| table.unlinked(leaving.identity, &link(parent, name), gone, leaving.fd));
    }

    /// Renames, with the flags of renameat2(2): RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT.
    pub fn rename(&self, parent: Place, name: &[u8], newparent: Place, newname: &[u8], flags: u32) -> Result<()> {
        check_name(name)?;
        check_name(newname)?;
        let flags = RenameFlags::from_bits_retain(flags);
        let from = self.inodes.fd(parent.ino())?;
        let to = self.inodes.fd(newparent.ino())?;
        let _moving = self.inodes.moving();
        let source = Leaving::hold(&from, name);
        let target = match Leaving::hold(&to, newname) {
            Ok(target) => Some(target),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => None,
            Err(errno) => return Err(errno),
        };
        // Also without a source: which of several errors comes first is the local kernel's choice.
        rustix::fs::renameat_with(&from, name, &to, newname, flags)?;
        let source = source?;
        let (old, new) = (link(parent, name), link(newparent, newname));
        match target {
            // Two names of one inode: rename(2) does nothing, and exchanging them changes nothing.
            Some(target) if target.identity == source.identity => {}
            Some(target) if flags.contains(RenameFlags::EXCHANGE) => self.inodes.change(|table| {
                table.renamed(source.identity, &old, new.clone());
                table.renamed(target.identity, &new, old);
            }),
            Some(target) => {
                let is_dir = stat_fd(&target.fd).is_ok_and(|found| found.attr.kind.is_dir());
                self.left(newparent, newname, target, is_dir);
                self.inodes.change(|table| table.renamed(source.identity, &old, new));
            }
            None => self.inodes.change(|table| table.renamed(source.identity, &old, new)),
        }
        Ok(())
    }

    /// Makes another name for an inode; one lookup more for it.
    pub fn link(&self, ino: u64, newparent: Place, newname: &[u8]) -> Result<Entry> {
        check_name(newname)?;
        let fd = self.inodes.fd(ino)?;
        let dir = self.inodes.fd(newparent.ino())?;
        // AT_EMPTY_PATH would need CAP_DAC_READ_SEARCH. The link followed here is the one in /proc, and no other.
        rustix::fs::linkat(self.inodes.proc_fds(), DecInt::from_fd(&*fd), &dir, newname, AtFlags::SYMLINK_FOLLOW)?;
        let found = stat_fd(&fd)?;
        Ok(self.inodes.entry(newparent, newname, &found))
    }
}
