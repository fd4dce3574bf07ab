//! A node as the VersionTree keeps it: everything that a node of the core says, in as few bytes as that takes.
//!
//! A file of one chunk, which most files are, keeps the hash and the size only; its extents follow from them.

use agfs_core::attr::Attr;
use agfs_core::manifest::{Extent, Manifest, SINGLE_CHUNK};
use agfs_core::name::Name;
use agfs_core::node::{Body, Content, DirInfo, Layout, Link, Node, NodeKind, Xattrs};
use agfs_core::{ChunkHash, FileId, Seq};
use std::sync::Arc;

/// One node at one version. Immutable: a change replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeNode {
    /// The inode number.
    pub id: FileId,
    /// Attributes.
    pub attr: Attr,
    /// Extended attributes.
    pub xattrs: Option<Arc<Xattrs>>,
    /// The change that made it as it is.
    pub version: Seq,
    /// How many contents the file has had.
    pub version_no: u64,
    link: Option<Link>,
    /// Boxed twice, so that nodes without any, which most are, pay 8 bytes.
    more_links: Option<Box<Box<[Link]>>>,
    body: Small,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Small {
    Empty,
    OneChunk { hash: ChunkHash, size: u32 },
    Content(Box<Content>),
    Dir(DirInfo),
    Symlink(Arc<[u8]>),
    Special { kind: NodeKind, rdev: u32 },
}

impl Small {
    fn of(content: Content) -> Small {
        let Layout::Inline(manifest) = content.layout.as_ref() else {
            return Small::Content(Box::new(content));
        };
        match manifest.extents() {
            [] => Small::Empty,
            [Extent { len, chunk: Some(c) }] if c.offset == 0 && *len <= SINGLE_CHUNK && content.hash == c.hash => {
                Small::OneChunk { hash: c.hash, size: *len as u32 }
            }
            _ => Small::Content(Box::new(content)),
        }
    }
}

impl TreeNode {
    /// Takes a node of the core. `name` is used in place of an equal name of the node's link, to share its bytes.
    pub fn new(node: Node, name: Option<&Name>) -> TreeNode {
        let link = node.link.map(|mut link| {
            if let Some(name) = name
                && *name == link.name
            {
                link.name = name.clone();
            }
            link
        });
        TreeNode {
            id: node.file_id,
            attr: node.attr,
            xattrs: node.xattrs,
            version: node.version,
            version_no: node.version_no,
            link,
            more_links: (!node.more_links.is_empty()).then(|| Box::new(node.more_links.into_boxed_slice())),
            body: match node.body {
                Body::File(content) => Small::of(content),
                Body::Dir(dir) => Small::Dir(dir),
                Body::Symlink(target) => Small::Symlink(target),
                Body::Special { kind, rdev } => Small::Special { kind, rdev },
            },
        }
    }

    /// The node as the core has it.
    pub fn to_node(&self) -> Node {
        let body = match &self.body {
            Small::Dir(dir) => Body::Dir(*dir),
            Small::Symlink(target) => Body::Symlink(target.clone()),
            Small::Special { kind, rdev } => Body::Special { kind: *kind, rdev: *rdev },
            Small::Empty | Small::OneChunk { .. } | Small::Content(_) => {
                Body::File(self.content().unwrap_or_else(Content::empty))
            }
        };
        Node {
            file_id: self.id,
            link: self.link.clone(),
            more_links: self.more_links.as_ref().map(|links| links.to_vec()).unwrap_or_default(),
            attr: self.attr,
            xattrs: self.xattrs.clone(),
            body,
            version: self.version,
            version_no: self.version_no,
        }
    }

    /// What kind of thing it is.
    pub const fn kind(&self) -> NodeKind {
        match &self.body {
            Small::Empty | Small::OneChunk { .. } | Small::Content(_) => NodeKind::File,
            Small::Dir(_) => NodeKind::Dir,
            Small::Symlink(_) => NodeKind::Symlink,
            Small::Special { kind, .. } => *kind,
        }
    }

    /// Where it is; `None` for the root of the space. For a file with several links, the one made last.
    pub const fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// Every place where it is.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.link.iter().chain(self.more_links.iter().flat_map(|links| links.iter()))
    }

    /// The number of hard links, counted as a local file system does.
    pub fn nlink(&self) -> u32 {
        match &self.body {
            Small::Dir(dir) => dir.subdirs.saturating_add(2),
            _ => u32::try_from(self.links().count()).unwrap_or(u32::MAX),
        }
    }

    /// The size that `stat` shows, in bytes.
    pub fn size(&self) -> u64 {
        match &self.body {
            Small::Empty | Small::Special { .. } => 0,
            Small::OneChunk { size, .. } => u64::from(*size),
            Small::Content(content) => content.size,
            Small::Dir(_) => 4_096,
            Small::Symlink(target) => target.len() as u64,
        }
    }

    /// The bytes that are stored, holes left out.
    pub fn allocated(&self) -> u64 {
        match &self.body {
            Small::Content(content) => content.allocated,
            Small::OneChunk { size, .. } => u64::from(*size),
            Small::Dir(_) => 4_096,
            Small::Empty | Small::Symlink(_) | Small::Special { .. } => 0,
        }
    }

    /// The device number, zero for what is no device.
    pub const fn rdev(&self) -> u32 {
        match &self.body {
            Small::Special { rdev, .. } => *rdev,
            _ => 0,
        }
    }

    /// The content of a regular file.
    pub fn content(&self) -> Option<Content> {
        match &self.body {
            Small::Empty => Some(Content::empty()),
            Small::OneChunk { hash, size } => {
                let extent = Extent::whole(*hash, u64::from(*size));
                // One extent within one chunk is always a valid manifest.
                Some(Content::inline(Manifest::new([extent]).unwrap_or_default()))
            }
            Small::Content(content) => Some(content.as_ref().clone()),
            Small::Dir(_) | Small::Symlink(_) | Small::Special { .. } => None,
        }
    }

    /// Whether both have the same content, byte for byte and version for version.
    pub fn same_content(&self, other: &TreeNode) -> bool {
        self.version_no == other.version_no && self.body == other.body
    }

    /// The bookkeeping of a directory.
    pub const fn dir(&self) -> Option<&DirInfo> {
        match &self.body {
            Small::Dir(dir) => Some(dir),
            _ => None,
        }
    }

    /// Whether it is a shadow directory.
    pub const fn is_shadow(&self) -> bool {
        matches!(&self.body, Small::Dir(DirInfo { shadow: true, .. }))
    }

    /// A symbolic link's target.
    pub fn target(&self) -> Option<Arc<[u8]>> {
        match &self.body {
            Small::Symlink(target) => Some(target.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agfs_core::apply::new_root;
    use agfs_core::manifest::ChunkSlice;
    use agfs_core::time::Timestamp;

    fn file(extents: Vec<Extent>) -> Node {
        let content = Content::inline(Manifest::new(extents).unwrap());
        Node { body: Body::File(content), ..new_root(Seq(1), Timestamp(5), 0o644, 1, 2) }
    }

    #[test]
    fn what_goes_in_comes_out() {
        let hash = ChunkHash::of(b"x");
        for extents in [
            vec![],
            vec![Extent::whole(hash, 10)],
            vec![Extent::hole(10)],
            vec![Extent { len: 5, chunk: Some(ChunkSlice { hash, offset: 1 }) }],
            vec![Extent::whole(hash, SINGLE_CHUNK + 1)],
            vec![Extent::whole(hash, 10), Extent::hole(70_000)],
        ] {
            let node = file(extents);
            let kept = TreeNode::new(node.clone(), None);
            assert_eq!(kept.content().as_ref(), node.content());
            assert_eq!((kept.size(), kept.allocated()), (node.size(), node.content().unwrap().allocated));
            assert_eq!((kept.kind(), kept.nlink()), (node.kind(), node.nlink()));
            assert_eq!(kept.to_node(), node);
        }
    }
}
