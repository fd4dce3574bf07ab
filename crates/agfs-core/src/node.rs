//! FileNode: one file, directory, link or special file of a tree, at one version.
//!
//! A value without behaviour beyond its own consistency; what changes it is in `apply`.

use crate::attr::Attr;
use crate::id::{ChunkHash, FileId, Seq};
use crate::manifest::Manifest;
use crate::name::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most hard links that one file can have, as on ext4.
pub const MAX_LINKS: usize = 65_000;
/// The longest symbolic link target, in bytes.
pub const MAX_SYMLINK: usize = 4_095;
/// The largest extended attribute value, in bytes.
pub const MAX_XATTR_VALUE: usize = 65_536;
/// The longest extended attribute name, in bytes.
pub const MAX_XATTR_NAME: usize = 255;

/// What kind of thing a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A Unix-domain socket's name.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl NodeKind {
    /// Whether this is a directory.
    pub const fn is_dir(self) -> bool {
        matches!(self, NodeKind::Dir)
    }
}

/// A place in the tree: a name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// The directory.
    pub parent: FileId,
    /// The name in it.
    pub name: Name,
}

/// The extents of a file: with the node when they are few, in content-addressed segments of their own when many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All extents.
    Inline(Manifest),
    /// References to segments, in order; each holds consecutive extents of the file.
    Segments(Vec<SegmentRef>),
}

/// A stored run of consecutive extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRef {
    /// How many bytes of the file it covers.
    pub len: u64,
    /// The hash of the encoded run.
    pub hash: ChunkHash,
}

/// The content of a regular file at one version. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Size in bytes.
    pub size: u64,
    /// Bytes stored, holes left out.
    pub allocated: u64,
    /// What [`Manifest::content_hash`] says of it.
    pub hash: ChunkHash,
    /// Where the bytes are.
    pub layout: Arc<Layout>,
}

impl Content {
    /// The content of a file that was never written.
    pub fn empty() -> Self {
        Content::inline(Manifest::empty())
    }

    /// Content whose extents stay with the node.
    pub fn inline(manifest: Manifest) -> Self {
        Content {
            size: manifest.size(),
            allocated: manifest.allocated(),
            hash: manifest.content_hash(),
            layout: Arc::new(Layout::Inline(manifest)),
        }
    }
}

/// What a directory knows of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirInfo {
    /// How many entries it has.
    pub entries: u64,
    /// How many of them are directories (each adds a link to this one).
    pub subdirs: u32,
    /// How many names were unbound since the entries were last written afresh: the store's measure of when to do so.
    pub dead: u64,
    /// Under which id the entries are stored: the directory's own until they are first written afresh.
    pub entry_set: FileId,
    /// Whether what lies below stays on each client's own disk.
    pub shadow: bool,
}

/// What a node holds, by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A regular file's content.
    File(Content),
    /// A directory's bookkeeping; the entries are dentries of their own.
    Dir(DirInfo),
    /// A symbolic link's target, in bytes.
    Symlink(Arc<[u8]>),
    /// A fifo, socket or device, with its device number (zero for fifo and socket).
    Special {
        /// Which of the four.
        kind: NodeKind,
        /// The device number as the operating system encodes it.
        rdev: u32,
    },
}

/// Extended attributes, in order of name.
pub type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

/// One node of the tree at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The inode number.
    pub file_id: FileId,
    /// Where it is; `None` only for the root. For a file with several links, the one made last.
    pub link: Option<Link>,
    /// Its other hard links.
    pub more_links: Vec<Link>,
    /// Attributes.
    pub attr: Attr,
    /// Extended attributes; shared, since most nodes have none.
    pub xattrs: Option<Arc<Xattrs>>,
    /// What it holds.
    pub body: Body,
    /// The change that made it as it is.
    pub version: Seq,
    /// How many contents the file has had (0: never written).
    pub version_no: u64,
}

impl Node {
    /// What kind of thing it is.
    pub const fn kind(&self) -> NodeKind {
        match &self.body {
            Body::File(_) => NodeKind::File,
            Body::Dir(_) => NodeKind::Dir,
            Body::Symlink(_) => NodeKind::Symlink,
            Body::Special { kind, .. } => *kind,
        }
    }

    /// Whether it is a shadow directory.
    pub const fn is_shadow(&self) -> bool {
        matches!(&self.body, Body::Dir(DirInfo { shadow: true, .. }))
    }

    /// The number of hard links, counted as a local file system does.
    pub fn nlink(&self) -> u32 {
        match &self.body {
            Body::Dir(dir) => dir.subdirs.saturating_add(2),
            _ => self.link.is_some() as u32 + self.more_links.len() as u32,
        }
    }

    /// The size that `stat` shows, in bytes.
    pub fn size(&self) -> u64 {
        match &self.body {
            Body::File(content) => content.size,
            // A directory is as large as its entries make it; 4,096 is what people know.
            Body::Dir(_) => 4_096,
            Body::Symlink(target) => target.len() as u64,
            Body::Special { .. } => 0,
        }
    }

    /// The content of a regular file.
    pub const fn content(&self) -> Option<&Content> {
        match &self.body {
            Body::File(content) => Some(content),
            _ => None,
        }
    }

    /// The bookkeeping of a directory.
    pub const fn dir(&self) -> Option<&DirInfo> {
        match &self.body {
            Body::Dir(dir) => Some(dir),
            _ => None,
        }
    }

    /// Every place where the node is, the one made last first.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.link.iter().chain(&self.more_links)
    }
}
