//! Operations: what a client asks to be changed. What they do to a tree is in `apply`.

use crate::attr::AttrChange;
use crate::id::{ChunkHash, FileId, MountId, OpId};
use crate::manifest::{Extent, Splice};
use crate::name::Name;
use crate::node::NodeKind;
use crate::time::Timestamp;
use std::sync::Arc;

/// Who makes a change, as every log record and version keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Author {
    /// The mount it came through; zero when through another entrance.
    pub mount: MountId,
    /// The agent, empty when unknown.
    pub agent: Arc<str>,
    /// The task, empty when unknown.
    pub task: Arc<str>,
    /// The step of the task, empty when unknown.
    pub step: Arc<str>,
}

/// What a new node is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewNode {
    /// An empty regular file.
    File,
    /// An empty directory, possibly a shadow.
    Dir {
        /// Whether what lies below stays on each client's disk.
        shadow: bool,
    },
    /// A symbolic link to this target, 1 to 4,095 bytes without NUL.
    Symlink(Vec<u8>),
    /// A fifo, socket or device.
    Special {
        /// Which.
        kind: NodeKind,
        /// The device number.
        rdev: u32,
    },
}

/// How a rename treats its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameMode {
    /// Replace what is there.
    Replace,
    /// Fail with `AlreadyExists` when something is there.
    NoReplace,
    /// Swap the two.
    Exchange,
}

/// How an extended attribute is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XattrMode {
    /// Create or replace.
    Set,
    /// Fail with `AlreadyExists` when it is there.
    Create,
    /// Fail with `NoAttribute` when it is not there.
    Replace,
}

/// A change of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentEdit {
    /// The whole file, as extents.
    Whole(Vec<Extent>),
    /// Splices of the content `base`, then a size in bytes. Fails with `Conflict` when the file has another content by now.
    Splices {
        /// The hash of the content that the splices are made for. Not its number: after a rollback numbers come again.
        base: ChunkHash,
        /// In order.
        splices: Vec<Splice>,
        /// The size after them.
        size: u64,
    },
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A new node, with an id that the caller has reserved.
    Create {
        /// The directory.
        parent: FileId,
        /// The name in it.
        name: Name,
        /// The reserved id.
        file_id: FileId,
        /// What it is to be.
        node: NewNode,
        /// Permission bits.
        mode: u32,
        /// Owner.
        uid: u32,
        /// Group; a set-group-id directory passes its own on instead.
        gid: u32,
    },
    /// Another hard link to a file.
    Link {
        /// The file.
        file_id: FileId,
        /// The directory of the new name.
        parent: FileId,
        /// The new name.
        name: Name,
    },
    /// A name of anything but a directory taken away.
    Unlink {
        /// The directory.
        parent: FileId,
        /// The name.
        name: Name,
    },
    /// An empty directory taken away.
    Rmdir {
        /// The directory that holds it.
        parent: FileId,
        /// Its name.
        name: Name,
    },
    /// A node moved.
    Rename {
        /// The old directory.
        parent: FileId,
        /// The old name.
        name: Name,
        /// The new directory.
        new_parent: FileId,
        /// The new name.
        new_name: Name,
        /// What becomes of the target.
        mode: RenameMode,
    },
    /// Attributes changed.
    SetAttr {
        /// The node.
        file_id: FileId,
        /// The change.
        change: AttrChange,
    },
    /// An extended attribute set.
    SetXattr {
        /// The node.
        file_id: FileId,
        /// The attribute's name.
        name: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
        /// Create, replace, or either.
        mode: XattrMode,
    },
    /// An extended attribute taken away.
    RemoveXattr {
        /// The node.
        file_id: FileId,
        /// The attribute's name.
        name: Vec<u8>,
    },
    /// New content for a regular file: one version.
    SetContent {
        /// The file.
        file_id: FileId,
        /// The new content.
        edit: ContentEdit,
        /// The modification time to show.
        mtime: Timestamp,
        /// Permission bits to set along with it (a writer that is not the owner loses set-id bits), if any.
        mode: Option<u32>,
    },
}

/// An operation and when the caller made it (its own clock, which the caller already showed to programs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedOp {
    /// When.
    pub time: Timestamp,
    /// What.
    pub op: Op,
}

/// Operations that are applied together or not at all, and answered once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Identifies the call when it is repeated.
    pub op_id: OpId,
    /// Who makes it.
    pub author: Author,
    /// In order.
    pub ops: Vec<TimedOp>,
}
