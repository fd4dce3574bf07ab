//! Attributes: reading them off the local disk and setting them. No names, no content.

use super::inode::{Identity, Key};
use super::types::{Attr, Errno, Place, Result, SetAttr, SetTime, Statfs};
use super::{ShadowFs, data};
use agfs_core::attr::{PERMISSION_BITS, SET_GID, SET_UID};
use agfs_core::node::NodeKind;
use agfs_core::time::Timestamp;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RawMode, Statx, StatxFlags, StatxTimestamp, Timespec, Timestamps, UTIME_NOW,
    UTIME_OMIT, Uid,
};
use rustix::path::DecInt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a look at a local inode shows. `attr.ino` is to be filled in by whoever knows the number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) identity: Identity,
    pub(super) attr: Attr,
}

const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// Looks at the inode behind a descriptor.
pub(super) fn stat_fd(fd: impl AsFd) -> Result<Found> {
    stat(fd.as_fd(), b"", AtFlags::EMPTY_PATH)
}

/// Looks at what `name` in `dir` is, not following a symbolic link.
pub(super) fn stat_at(dir: impl AsFd, name: &[u8]) -> Result<Found> {
    stat(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT)
}

fn stat(dir: BorrowedFd<'_>, name: &[u8], flags: AtFlags) -> Result<Found> {
    let st = rustix::fs::statx(dir, name, flags, WANTED)?;
    let key = Key { dev: u64::from(st.stx_dev_major) << 32 | u64::from(st.stx_dev_minor), ino: st.stx_ino };
    let attr = attr_of(&st)?;
    Ok(Found { identity: Identity { key, btime: attr.btime }, attr })
}

fn attr_of(st: &Statx) -> Result<Attr> {
    let known_btime = st.stx_mask & StatxFlags::BTIME.bits() != 0;
    Ok(Attr {
        ino: 0,
        kind: kind_of(FileType::from_raw_mode(RawMode::from(st.stx_mode))).ok_or(Errno::IO)?,
        mode: u32::from(st.stx_mode) & PERMISSION_BITS,
        uid: st.stx_uid,
        gid: st.stx_gid,
        nlink: st.stx_nlink,
        rdev: encode_rdev(st.stx_rdev_major, st.stx_rdev_minor),
        size: st.stx_size,
        blocks: st.stx_blocks,
        blksize: st.stx_blksize,
        atime: time_of(&st.stx_atime),
        mtime: time_of(&st.stx_mtime),
        ctime: time_of(&st.stx_ctime),
        btime: if known_btime { time_of(&st.stx_btime) } else { Timestamp::default() },
    })
}

fn time_of(t: &StatxTimestamp) -> Timestamp {
    Timestamp::from_parts(t.tv_sec, t.tv_nsec)
}

/// The kind that a local file type is; `None` for one that no Linux file system has.
pub(super) fn kind_of(file_type: FileType) -> Option<NodeKind> {
    Some(match file_type {
        FileType::RegularFile => NodeKind::File,
        FileType::Directory => NodeKind::Dir,
        FileType::Symlink => NodeKind::Symlink,
        FileType::Fifo => NodeKind::Fifo,
        FileType::Socket => NodeKind::Socket,
        FileType::CharacterDevice => NodeKind::CharDevice,
        FileType::BlockDevice => NodeKind::BlockDevice,
        _ => return None,
    })
}

fn encode_rdev(major: u32, minor: u32) -> u32 {
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & 0xfff00) << 12
}

/// The device that a FUSE device number names.
pub(super) fn decode_rdev(rdev: u32) -> rustix::fs::Dev {
    rustix::fs::makedev((rdev >> 8) & 0xfff, (rdev & 0xff) | (rdev >> 12) & 0xfff00)
}

/// Permission bits as the local kernel takes them.
pub(super) fn mode_bits(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & PERMISSION_BITS)
}

/// Changes the owner behind a descriptor, a path descriptor too.
pub(super) fn chown(fd: impl AsFd, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
    // The all-ones id means "no change" to the kernel: the constructors forbid it, so it is refused here as chown(2) would not.
    if uid == Some(u32::MAX) || gid == Some(u32::MAX) {
        return Err(Errno::INVAL);
    }
    rustix::fs::chownat(fd, c"", uid.map(Uid::from_raw), gid.map(Gid::from_raw), AtFlags::EMPTY_PATH)
}

impl ShadowFs {
    /// The attributes of an inode; of a root, those of its local directory (useful are the times, the number of links and the
    /// allocated space: owner and mode are the tree node's). ESTALE for a number that is not known.
    pub fn getattr(&self, place: Place) -> Result<Attr> {
        let fd = self.inodes.fd(place.ino())?;
        Ok(Attr { ino: place.ino(), ..stat_fd(&fd)?.attr })
    }

    /// Changes attributes and returns those that result. With `fh`, an open file of this inode, the size is changed through
    /// it, so that a file opened before its mode was changed can still be truncated.
    pub fn setattr(&self, place: Place, fh: Option<u64>, set: &SetAttr) -> Result<Attr> {
        let fd = self.inodes.fd(place.ino())?;
        // One that sets nothing is a chown(2) with neither owner nor group, which touches ctime and takes set-id bits.
        let others = set.mode.is_some() || set.size.is_some() || set.atime.is_some() || set.mtime.is_some();
        if set.uid.is_some() || set.gid.is_some() || !others {
            chown(&fd, set.uid, set.gid)?;
        }
        if let Some(mode) = set.mode {
            self.chmod(&fd, mode)?;
        }
        if let Some(size) = set.size {
            self.truncate(&fd, fh, size)?;
        }
        if set.atime.is_some() || set.mtime.is_some() {
            let times = Timestamps { last_access: timespec(set.atime), last_modification: timespec(set.mtime) };
            rustix::fs::utimensat(&fd, c"", &times, AtFlags::EMPTY_PATH)?;
        }
        let mut attr = stat_fd(&fd)?.attr;
        if set.kill_suidgid && self.drop_privileges(&fd, &attr)? {
            attr = stat_fd(&fd)?.attr;
        }
        Ok(Attr { ino: place.ino(), ..attr })
    }

    /// Drops the set-user-id bit of a file, and its set-group-id bit if its group may execute it: what a write does when the
    /// writer has no right to keep them, which the kernel says with the write (FUSE_WRITE_KILL_SUIDGID).
    pub fn kill_suidgid(&self, place: Place) -> Result<()> {
        let fd = self.inodes.fd(place.ino())?;
        let attr = stat_fd(&fd)?.attr;
        self.drop_privileges(&fd, &attr).map(|_| ())
    }

    /// Attributes of the local file system that holds all shadow directories.
    pub fn statfs(&self) -> Result<Statfs> {
        let st = rustix::fs::fstatvfs(self.inodes.base())?;
        Ok(Statfs {
            frsize: st.f_frsize,
            bsize: st.f_bsize,
            blocks: st.f_blocks,
            bfree: st.f_bfree,
            bavail: st.f_bavail,
            files: st.f_files,
            ffree: st.f_ffree,
            namelen: st.f_namemax,
        })
    }

    /// Changes the mode behind a path descriptor, which fchmod(2) does not take.
    pub(super) fn chmod(&self, fd: &OwnedFd, mode: u32) -> Result<()> {
        rustix::fs::chmodat(self.inodes.proc_fds(), DecInt::from_fd(fd), mode_bits(mode), AtFlags::empty())
    }

    fn truncate(&self, fd: &OwnedFd, fh: Option<u64>, size: u64) -> Result<()> {
        match fh {
            Some(fh) => rustix::fs::ftruncate(&self.files.get(fh)?.fd, size),
            None => {
                let writable = data::reopen(self.inodes.proc_fds(), fd, OFlags::WRONLY | OFlags::NONBLOCK)?;
                rustix::fs::ftruncate(&writable, size)
            }
        }
    }

    /// Whether there was something to drop.
    fn drop_privileges(&self, fd: &OwnedFd, attr: &Attr) -> Result<bool> {
        const GROUP_EXECUTE: u32 = 0o010;
        let group = if attr.mode & GROUP_EXECUTE != 0 { SET_GID } else { 0 };
        let dropped = attr.mode & (SET_UID | group);
        if attr.kind != NodeKind::File || dropped == 0 {
            return Ok(false);
        }
        self.chmod(fd, attr.mode & !dropped).map(|()| true)
    }
}

fn timespec(time: Option<SetTime>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(SetTime::At(at)) => {
            let (tv_sec, nanos) = at.parts();
            Timespec { tv_sec, tv_nsec: nanos.into() }
        }
    }
}
