//! The values that cross this room's border. No behaviour beyond conversion.

use super::{SHADOW_BIT, is_shadow};
use agfs_core::id::FileId;
use agfs_core::node::NodeKind;
use agfs_core::time::Timestamp;

/// The local kernel's error number.
pub type Errno = rustix::io::Errno;

/// The result of a call on a shadow directory.
pub type Result<T, E = Errno> = std::result::Result<T, E>;

/// A directory or file of this room: the shadow directory itself, or something below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The shadow directory that this node of the tree is.
    Root(FileId),
    /// An inode number that this room gave out.
    Inner(u64),
}

impl Place {
    /// The place that an inode number of the mount stands for: a tree node's number is a root.
    pub const fn of(ino: u64) -> Place {
        if is_shadow(ino) { Place::Inner(ino) } else { Place::Root(FileId(ino)) }
    }

    /// The inode number that the mount shows for this place: the inverse of [`Place::of`].
    pub const fn ino(self) -> u64 {
        match self {
            Place::Root(id) => id.0 & !SHADOW_BIT,
            Place::Inner(ino) => ino | SHADOW_BIT,
        }
    }
}

/// What `stat` shows of a local inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    /// Inode number, with [`SHADOW_BIT`] (for a root: the tree node's).
    pub ino: u64,
    /// What it is.
    pub kind: NodeKind,
    /// Permission bits (0 to 0o7777).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Hard links, as the local file system counts them.
    pub nlink: u32,
    /// Device number of a device node, as FUSE encodes it (minor bits 0–7 and 20–31, major bits 8–19).
    pub rdev: u32,
    /// Size in bytes.
    pub size: u64,
    /// Allocated space in units of 512 bytes.
    pub blocks: u64,
    /// Preferred size of input and output, in bytes.
    pub blksize: u32,
    /// Last access.
    pub atime: Timestamp,
    /// Last change of content.
    pub mtime: Timestamp,
    /// Last change of anything.
    pub ctime: Timestamp,
    /// Creation; zero where the local file system does not know it.
    pub btime: Timestamp,
}

/// A name that was found or made. Each one handed out counts as one lookup, to be given back by `forget`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The inode number.
    pub ino: u64,
    /// Its attributes.
    pub attr: Attr,
}

/// One entry of a listing.
#[derive(Debug)]
pub struct DirEntry<'a> {
    /// The inode number that a lookup of this name would give, best effort.
    pub ino: u64,
    /// The offset from which a reader goes on after this entry.
    pub next: u64,
    /// What it is.
    pub kind: NodeKind,
    /// The name; `.` and `..` come too.
    pub name: &'a [u8],
    /// The looked-up entry, when the listing was asked for them; `None` for `.` and `..`.
    pub entry: Option<Entry>,
}

/// For whom something is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The caller's user.
    pub uid: u32,
    /// The caller's group; a directory with the set-group-id bit gives its own instead.
    pub gid: u32,
}

/// A time to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// The local kernel's present time.
    Now,
    /// This time.
    At(Timestamp),
}

/// A change of attributes; what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// New permission bits.
    pub mode: Option<u32>,
    /// New owner.
    pub uid: Option<u32>,
    /// New group.
    pub gid: Option<u32>,
    /// New size in bytes.
    pub size: Option<u64>,
    /// New time of last access.
    pub atime: Option<SetTime>,
    /// New time of last change of content.
    pub mtime: Option<SetTime>,
    /// Drop the set-user-id bit, and the set-group-id bit of a group-executable file, after the rest: the kernel asks for
    /// it when a caller without the right to keep them changes the size.
    pub kill_suidgid: bool,
}

/// What `statfs` shows of the local file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statfs {
    /// Unit of the block counts, in bytes.
    pub frsize: u64,
    /// Preferred size of input and output, in bytes.
    pub bsize: u64,
    /// All blocks.
    pub blocks: u64,
    /// Free blocks.
    pub bfree: u64,
    /// Free blocks for unprivileged users.
    pub bavail: u64,
    /// All inodes.
    pub files: u64,
    /// Free inodes.
    pub ffree: u64,
    /// Longest name, in bytes.
    pub namelen: u64,
}
