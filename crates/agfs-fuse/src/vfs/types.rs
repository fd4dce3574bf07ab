//! The values that cross the border between the file system and the kernel's adapter.

use crate::content::Overlay;
use crate::shadow;
use crate::tree::TreeNode;
use agfs_core::Timestamp;
use agfs_core::node::NodeKind;
use std::time::Duration;

/// What `stat` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Inode number: a file id, or a number of the shadow room.
    pub ino: u64,
    /// What it is.
    pub kind: NodeKind,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Hard links.
    pub nlink: u32,
    /// Device number.
    pub rdev: u32,
    /// Size in bytes.
    pub size: u64,
    /// Allocated space in units of 512 bytes.
    pub blocks: u64,
    /// Last access.
    pub atime: Timestamp,
    /// Last change of content.
    pub mtime: Timestamp,
    /// Last change of anything.
    pub ctime: Timestamp,
    /// Creation.
    pub btime: Timestamp,
}

/// Stored bytes in units of 512, in whole blocks of 4 KiB as local file systems have them.
const fn blocks(stored: u64) -> u64 {
    stored.div_ceil(4_096).saturating_mul(8)
}

impl Stat {
    /// What is shown of a node, with its uncommitted state on top.
    pub fn of(node: &TreeNode, overlay: Option<Overlay>, gone: bool) -> Stat {
        let attr = &node.attr;
        let mut stat = Stat {
            ino: node.id.0,
            kind: node.kind(),
            mode: attr.mode,
            uid: attr.uid,
            gid: attr.gid,
            nlink: if gone { 0 } else { node.nlink() },
            rdev: node.rdev(),
            size: node.size(),
            blocks: blocks(node.allocated()),
            atime: attr.atime,
            mtime: attr.mtime,
            ctime: attr.ctime,
            btime: attr.btime,
        };
        if let Some(local) = overlay {
            stat.size = local.size;
            stat.blocks = blocks(local.allocated);
            stat.mtime = local.mtime;
            stat.ctime = local.ctime.max(stat.ctime);
            stat.atime = local.atime.unwrap_or(stat.atime);
            stat.mode = local.mode.unwrap_or(stat.mode);
        }
        stat
    }
}

impl From<shadow::Attr> for Stat {
    fn from(a: shadow::Attr) -> Stat {
        Stat {
            ino: a.ino,
            kind: a.kind,
            mode: a.mode,
            uid: a.uid,
            gid: a.gid,
            nlink: a.nlink,
            rdev: a.rdev,
            size: a.size,
            blocks: a.blocks,
            atime: a.atime,
            mtime: a.mtime,
            ctime: a.ctime,
            btime: a.btime,
        }
    }
}

/// Attributes and how long the kernel may keep them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The attributes.
    pub stat: Stat,
    /// How long they hold.
    pub ttl: Duration,
}

/// What a name leads to, and how long the kernel may keep that. Each counts as one lookup until it is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The attributes.
    pub stat: Stat,
    /// How long the name holds.
    pub entry_ttl: Duration,
    /// How long the attributes hold.
    pub attr_ttl: Duration,
}

/// A file that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The handle.
    pub fh: u64,
    /// The kernel keeps the pages it has.
    pub keep_cache: bool,
    /// The kernel need not say when a descriptor is closed.
    pub no_flush: bool,
}

/// For whom something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// A change of attributes; what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Last access; `Some(None)` for the present.
    pub atime: Option<Option<Timestamp>>,
    /// Last change of content; `Some(None)` for the present.
    pub mtime: Option<Option<Timestamp>>,
}

/// One entry of a listing.
#[derive(Clone, Debug)]
pub struct DirItem<'a> {
    /// Inode number.
    pub ino: u64,
    /// From where a reader goes on after this entry.
    pub next: u64,
    /// What it is.
    pub kind: NodeKind,
    /// The name.
    pub name: &'a [u8],
    /// The entry looked up, if that was asked for; `None` for `.` and `..`.
    pub entry: Option<Entry>,
}

/// What `statfs` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statfs {
    /// Unit of the counts, in bytes.
    pub block: u32,
    /// All blocks.
    pub blocks: u64,
    /// Free blocks.
    pub free: u64,
    /// Free blocks for ordinary users.
    pub available: u64,
    /// All inodes.
    pub files: u64,
    /// Free inodes.
    pub files_free: u64,
}
