//! The values of the file system in the kernel's form, and back. No decision.

use crate::vfs::{DirItem, SetAttr, Stat};
use agfs_core::node::NodeKind;
use agfs_core::{FileId, Timestamp};
use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The preferred size of input and output, in bytes.
const BLKSIZE: u32 = 4_096;

/// What the kernel calls the root.
const ROOT: u64 = 1;

/// Turns the kernel's inode numbers into the file system's and back: the kernel calls the root 1, whatever it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub root: FileId,
}

impl Numbers {
    pub(super) const fn inner(self, ino: INodeNo) -> u64 {
        if ino.0 == ROOT { self.root.0 } else { ino.0 }
    }

    pub(super) const fn outer(self, ino: u64) -> INodeNo {
        INodeNo(if ino == self.root.0 { ROOT } else { ino })
    }

    /// What a listing says of `.` and `..`, of which the kernel takes the type alone.
    pub(super) fn dot(self, item: &DirItem<'_>) -> FileAttr {
        let stat = Stat {
            ino: item.ino,
            kind: item.kind,
            mode: 0o755,
            uid: 0,
            gid: 0,
            nlink: 2,
            rdev: 0,
            size: 0,
            blocks: 0,
            atime: Timestamp(0),
            mtime: Timestamp(0),
            ctime: Timestamp(0),
            btime: Timestamp(0),
        };
        self.attr(&stat)
    }

    pub(super) fn attr(self, stat: &Stat) -> FileAttr {
        FileAttr {
            ino: self.outer(stat.ino),
            size: stat.size,
            blocks: stat.blocks,
            atime: system_time(stat.atime),
            mtime: system_time(stat.mtime),
            ctime: system_time(stat.ctime),
            crtime: system_time(stat.btime),
            kind: file_type(stat.kind),
            // Permission bits are below 0o10000.
            perm: (stat.mode & 0o7777) as u16,
            nlink: stat.nlink,
            uid: stat.uid,
            gid: stat.gid,
            rdev: stat.rdev,
            blksize: BLKSIZE,
            flags: 0,
        }
    }
}

pub(super) const fn file_type(kind: NodeKind) -> FileType {
    match kind {
        NodeKind::File => FileType::RegularFile,
        NodeKind::Dir => FileType::Directory,
        NodeKind::Symlink => FileType::Symlink,
        NodeKind::Fifo => FileType::NamedPipe,
        NodeKind::Socket => FileType::Socket,
        NodeKind::CharDevice => FileType::CharDevice,
        NodeKind::BlockDevice => FileType::BlockDevice,
    }
}

fn system_time(time: Timestamp) -> SystemTime {
    let magnitude = Duration::from_nanos(time.0.unsigned_abs());
    let exact = if time.0 >= 0 { UNIX_EPOCH.checked_add(magnitude) } else { UNIX_EPOCH.checked_sub(magnitude) };
    exact.unwrap_or(UNIX_EPOCH)
}

/// The time that a program gave. fuser 0.18 makes a time before 1970, which the kernel gives as negative seconds and
/// nanoseconds to add to them, by subtracting both: here the nanoseconds are added again.
fn timestamp(time: SystemTime) -> Timestamp {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Timestamp(i64::try_from(after.as_nanos()).unwrap_or(i64::MAX)),
        Err(before) => {
            let d = before.duration();
            Timestamp::from_parts(i64::try_from(d.as_secs()).map_or(i64::MIN, |s| -s), d.subsec_nanos())
        }
    }
}

/// A time to be set: `None` for the present.
pub(super) fn set_time(time: TimeOrNow) -> Option<Timestamp> {
    match time {
        TimeOrNow::SpecificTime(time) => Some(timestamp(time)),
        TimeOrNow::Now => None,
    }
}

pub(super) fn set_attr(
    (mode, uid, gid, size): (Option<u32>, Option<u32>, Option<u32>, Option<u64>),
    atime: Option<TimeOrNow>,
    mtime: Option<TimeOrNow>,
) -> SetAttr {
    SetAttr {
        // The kernel sends the type bits along.
        mode: mode.map(|mode| mode & 0o7777),
        uid,
        gid,
        size,
        atime: atime.map(set_time),
        mtime: mtime.map(set_time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_both_ways() {
        for ns in [0, 1, 1_700_000_000_123_456_789, -5_000_000_000] {
            assert_eq!(timestamp(system_time(Timestamp(ns))), Timestamp(ns));
        }
        // As fuser hands on what the kernel gives as (-2 s, 250,000,000 ns): 1.75 s before 1970.
        let given = UNIX_EPOCH - Duration::new(2, 250_000_000);
        assert_eq!(timestamp(given), Timestamp(-1_750_000_000));
        assert_eq!(UNIX_EPOCH.duration_since(system_time(Timestamp(-1))).ok(), Some(Duration::from_nanos(1)));
    }

    #[test]
    fn the_root_of_a_subdirectory_mount_is_1_for_the_kernel() {
        let numbers = Numbers { root: FileId(42) };
        assert_eq!((numbers.inner(INodeNo(1)), numbers.inner(INodeNo(7))), (42, 7));
        assert_eq!((numbers.outer(42), numbers.outer(7)), (INodeNo(1), INodeNo(7)));
    }
}
