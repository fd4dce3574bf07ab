//! What belongs to an inode rather than to a name: attributes, times, extended attributes, and a directory's entries.

use super::{Posix, check, of};
use crate::op::{Mode, On, Owner, Path, Stamp, XHow, XName, XValue};
use crate::outcome::{Answer, Kind, Outcome, Stat};
use rustix::fs::{self, AtFlags, Gid, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};

/// The largest list of names that is read.
const ROOM: usize = 1 << 17;

fn time(stamp: Stamp) -> Timespec {
    match stamp {
        Stamp::Omit => Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT },
        Stamp::Now => Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW },
        Stamp::At(seconds, nanos) => Timespec { tv_sec: seconds, tv_nsec: nanos.into() },
    }
}

/// Attributes as the kernel gives them.
pub(super) fn stat_of(s: &fs::Stat) -> Stat {
    let nanos = |seconds: i64, nanos: u64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    Stat {
        ino: s.st_ino,
        kind: Kind::of(s.st_mode),
        mode: s.st_mode & 0o7777,
        nlink: s.st_nlink,
        uid: s.st_uid,
        gid: s.st_gid,
        rdev: s.st_rdev,
        size: s.st_size as u64,
        blocks: s.st_blocks as u64,
        atime: nanos(s.st_atime, s.st_atime_nsec),
        mtime: nanos(s.st_mtime, s.st_mtime_nsec),
        ctime: nanos(s.st_ctime, s.st_ctime_nsec),
    }
}

/// The names and kinds in an open directory, sorted.
pub(super) fn entries(dir: &OwnedFd) -> Result<Vec<(Vec<u8>, Kind)>, i32> {
    let mut names = Vec::new();
    for entry in fs::Dir::new(dir.try_clone().map_err(|e| e.raw_os_error().unwrap_or(0))?).map_err(of)?.by_ref() {
        let entry = entry.map_err(of)?;
        names.push((entry.file_name().to_bytes().to_vec(), Kind::of(entry.file_type().as_raw_mode())));
    }
    names.sort();
    Ok(names)
}

/// The attribute calls of one kind of subject: by path, by link, by open file.
struct Xattr<'a>(&'a Posix, &'a On);

impl Xattr<'_> {
    fn call<T>(
        &self,
        by_path: impl FnOnce(&CString) -> rustix::io::Result<T>,
        by_link: impl FnOnce(&CString) -> rustix::io::Result<T>,
        by_file: impl FnOnce(&OwnedFd) -> rustix::io::Result<T>,
    ) -> Result<T, i32> {
        match self.1 {
            On::Path(path) => self.0.within(path, |path| by_path(path).map_err(of)),
            On::Link(path) => self.0.within(path, |path| by_link(path).map_err(of)),
            On::Slot(slot) => by_file(self.0.file(*slot)?).map_err(of),
        }
    }
}

impl Posix {
    /// The path of a call that can follow its last link or not.
    fn following<'a>(&self, on: &'a On) -> Option<(&'a Path, AtFlags)> {
        match on {
            On::Path(path) => Some((path, AtFlags::empty())),
            On::Link(path) => Some((path, AtFlags::SYMLINK_NOFOLLOW)),
            On::Slot(_) => None,
        }
    }

    /// Does something to a path or, if it is none, to an open file.
    fn on<T>(
        &self,
        on: &On,
        by_path: impl FnOnce(std::os::fd::BorrowedFd<'_>, &CString, AtFlags) -> rustix::io::Result<T>,
        by_file: impl FnOnce(&OwnedFd) -> rustix::io::Result<T>,
    ) -> Result<T, i32> {
        match (self.following(on), on) {
            (Some((path, flags)), _) => {
                let (dir, name) = self.at(path)?;
                by_path(dir, &name, flags).map_err(of)
            }
            (None, On::Slot(slot)) => by_file(self.file(*slot)?).map_err(of),
            (None, _) => Err(libc::EBADF),
        }
    }

    pub(super) fn chmod(&self, on: &On, mode: Mode) -> Answer {
        let mode = fs::Mode::from_raw_mode(mode.0);
        // There is no chmod of a link.
        let by_path =
            |dir: std::os::fd::BorrowedFd<'_>, name: &CString, _| fs::chmodat(dir, name, mode, AtFlags::empty());
        self.on(on, by_path, |fd| fs::fchmod(fd, mode))?;
        Ok(Outcome::Done)
    }

    pub(super) fn chown(&self, on: &On, uid: Owner, gid: Owner) -> Answer {
        let (uid, gid) = (uid.0.map(Uid::from_raw), gid.0.map(Gid::from_raw));
        self.on(on, |dir, name, flags| fs::chownat(dir, name, uid, gid, flags), |fd| fs::fchown(fd, uid, gid))?;
        Ok(Outcome::Done)
    }

    pub(super) fn utimens(&self, on: &On, atime: Stamp, mtime: Stamp) -> Answer {
        let times = Timestamps { last_access: time(atime), last_modification: time(mtime) };
        self.on(on, |dir, name, flags| fs::utimensat(dir, name, &times, flags), |fd| fs::futimens(fd, &times))?;
        Ok(Outcome::Done)
    }

    pub(super) fn stat(&self, on: &On) -> Answer {
        let found = self.on(on, |dir, name, flags| fs::statat(dir, name, flags), |fd| fs::fstat(fd))?;
        Ok(Outcome::Stat(stat_of(&found)))
    }

    pub(super) fn setxattr(&self, on: &On, name: XName, value: XValue, how: XHow) -> Answer {
        let (name, value) = (name.name(), value.bytes());
        let flags = match how {
            XHow::Set => XattrFlags::empty(),
            XHow::Create => XattrFlags::CREATE,
            XHow::Replace => XattrFlags::REPLACE,
        };
        Xattr(self, on).call(
            |path| fs::setxattr(path, &name, &value, flags),
            |path| fs::lsetxattr(path, &name, &value, flags),
            |fd| fs::fsetxattr(fd, &name, &value, flags),
        )?;
        Ok(Outcome::Done)
    }

    pub(super) fn getxattr(&self, on: &On, name: XName) -> Answer {
        let name = name.name();
        let room = || vec![0_u8; ROOM];
        let cut = |n: rustix::io::Result<usize>, mut room: Vec<u8>| {
            room.truncate(n?);
            Ok(room)
        };
        let value = Xattr(self, on).call(
            |path| {
                let mut room = room();
                cut(fs::getxattr(path, &name, &mut room[..]), room)
            },
            |path| {
                let mut room = room();
                cut(fs::lgetxattr(path, &name, &mut room[..]), room)
            },
            |fd| {
                let mut room = room();
                cut(fs::fgetxattr(fd, &name, &mut room[..]), room)
            },
        )?;
        Ok(Outcome::Data(value))
    }

    pub(super) fn listxattr(&self, on: &On) -> Answer {
        let mut room = vec![0_u8; ROOM];
        let at = std::cell::RefCell::new(&mut room[..]);
        let n = Xattr(self, on).call(
            |path| fs::listxattr(path, &mut **at.borrow_mut()),
            |path| fs::llistxattr(path, &mut **at.borrow_mut()),
            |fd| fs::flistxattr(fd, &mut **at.borrow_mut()),
        )?;
        room.truncate(n);
        Ok(Outcome::Names(ours(&room).map(|name| (name, Kind::Other)).collect()))
    }

    pub(super) fn removexattr(&self, on: &On, name: XName) -> Answer {
        let name = name.name();
        Xattr(self, on).call(
            |path| fs::removexattr(path, &name),
            |path| fs::lremovexattr(path, &name),
            |fd| fs::fremovexattr(fd, &name),
        )?;
        Ok(Outcome::Done)
    }

    pub(super) fn list(&self, on: &On) -> Answer {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let names = match on {
            On::Path(path) | On::Link(path) => {
                let (dir, name) = self.at(path)?;
                entries(&fs::openat(dir, &name, flags, fs::Mode::empty()).map_err(of)?)?
            }
            On::Slot(slot) => {
                let fd = self.file(*slot)?;
                if Kind::of(fs::fstat(fd).map_err(of)?.st_mode) != Kind::Dir {
                    return Err(libc::ENOTDIR);
                }
                // SAFETY: the descriptor is open.
                let rewind = || check(unsafe { libc::lseek(fd.as_raw_fd(), 0, libc::SEEK_SET) });
                rewind()?;
                let names = entries(fd)?;
                // What its end is numbered with is the file system's own business.
                rewind()?;
                names
            }
        };
        Ok(Outcome::Names(names))
    }
}

/// The names of a list of attributes that scripts can set, sorted: the machine may have put others there.
pub(super) fn ours(list: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let mut names: Vec<Vec<u8>> = list.split(|b| *b == 0).map(<[u8]>::to_vec).collect();
    names.retain(|n| n.starts_with(b"user.") || n.starts_with(b"trusted."));
    names.sort();
    names.into_iter()
}
