//! Nodes, their attributes and their content.

use super::{FromWire, ToWire, file_id, name, required, time};
use crate::v1;
use agfs_core::attr::{Attr, AttrChange, PERMISSION_BITS};
use agfs_core::error::{Error, Result};
use agfs_core::id::{ChunkHash, FileId, Seq};
use agfs_core::manifest::{ChunkSlice, Extent, Manifest};
use agfs_core::node::{Body, Content, DirInfo, Layout, Link, Node, NodeKind, SegmentRef, Xattrs};
use std::sync::Arc;

impl FromWire<i32> for NodeKind {
    fn from_wire(wire: i32) -> Result<Self> {
        match v1::NodeKind::try_from(wire) {
            Ok(v1::NodeKind::File) => Ok(NodeKind::File),
            Ok(v1::NodeKind::Dir) => Ok(NodeKind::Dir),
            Ok(v1::NodeKind::Symlink) => Ok(NodeKind::Symlink),
            Ok(v1::NodeKind::Fifo) => Ok(NodeKind::Fifo),
            Ok(v1::NodeKind::Socket) => Ok(NodeKind::Socket),
            Ok(v1::NodeKind::CharDevice) => Ok(NodeKind::CharDevice),
            Ok(v1::NodeKind::BlockDevice) => Ok(NodeKind::BlockDevice),
            Ok(v1::NodeKind::Unspecified) | Err(_) => Err(Error::invalid(format!("{wire} is no kind of node"))),
        }
    }
}

impl ToWire<i32> for NodeKind {
    fn to_wire(&self) -> i32 {
        match self {
            NodeKind::File => v1::NodeKind::File as i32,
            NodeKind::Dir => v1::NodeKind::Dir as i32,
            NodeKind::Symlink => v1::NodeKind::Symlink as i32,
            NodeKind::Fifo => v1::NodeKind::Fifo as i32,
            NodeKind::Socket => v1::NodeKind::Socket as i32,
            NodeKind::CharDevice => v1::NodeKind::CharDevice as i32,
            NodeKind::BlockDevice => v1::NodeKind::BlockDevice as i32,
        }
    }
}

impl FromWire<v1::Link> for Link {
    fn from_wire(wire: v1::Link) -> Result<Self> {
        Ok(Link { parent: file_id(wire.parent, "link.parent")?, name: name(&wire.name)? })
    }
}

impl ToWire<v1::Link> for Link {
    fn to_wire(&self) -> v1::Link {
        v1::Link { parent: self.parent.0, name: self.name.as_bytes().to_vec() }
    }
}

impl FromWire<v1::Attr> for Attr {
    fn from_wire(w: v1::Attr) -> Result<Self> {
        Ok(Attr {
            mode: w.mode & PERMISSION_BITS,
            uid: w.uid,
            gid: w.gid,
            atime: time(w.atime_ns),
            mtime: time(w.mtime_ns),
            ctime: time(w.ctime_ns),
            btime: time(w.btime_ns),
        })
    }
}

impl ToWire<v1::Attr> for Attr {
    fn to_wire(&self) -> v1::Attr {
        v1::Attr {
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            atime_ns: self.atime.0,
            mtime_ns: self.mtime.0,
            ctime_ns: self.ctime.0,
            btime_ns: self.btime.0,
        }
    }
}

impl FromWire<v1::AttrChange> for AttrChange {
    fn from_wire(w: v1::AttrChange) -> Result<Self> {
        Ok(AttrChange {
            mode: w.mode,
            uid: w.uid,
            gid: w.gid,
            atime: w.atime_ns.map(time),
            mtime: w.mtime_ns.map(time),
        })
    }
}

impl ToWire<v1::AttrChange> for AttrChange {
    fn to_wire(&self) -> v1::AttrChange {
        v1::AttrChange {
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            atime_ns: self.atime.map(|t| t.0),
            mtime_ns: self.mtime.map(|t| t.0),
        }
    }
}

impl FromWire<v1::Extent> for Extent {
    fn from_wire(w: v1::Extent) -> Result<Self> {
        let chunk = match w.hash.as_slice() {
            [] => None,
            hash => Some(ChunkSlice { hash: ChunkHash::from_slice(hash)?, offset: w.offset }),
        };
        Ok(Extent { len: w.len, chunk })
    }
}

impl ToWire<v1::Extent> for Extent {
    fn to_wire(&self) -> v1::Extent {
        let (hash, offset) = self.chunk.map_or((Vec::new(), 0), |c| (c.hash.0.to_vec(), c.offset));
        v1::Extent { len: self.len, hash, offset }
    }
}

impl FromWire<v1::Segment> for Vec<Extent> {
    fn from_wire(w: v1::Segment) -> Result<Self> {
        super::all(w.extents)
    }
}

impl ToWire<v1::Segment> for [Extent] {
    fn to_wire(&self) -> v1::Segment {
        v1::Segment { extents: self.iter().map(ToWire::to_wire).collect() }
    }
}

impl FromWire<v1::Content> for Content {
    fn from_wire(w: v1::Content) -> Result<Self> {
        let layout = if w.segments.is_empty() {
            let manifest = Manifest::new(super::all::<_, Extent>(w.extents)?)?;
            if manifest.size() != w.size {
                return Err(Error::invalid(format!("extents of {} bytes for a file of {}", manifest.size(), w.size)));
            }
            Layout::Inline(manifest)
        } else {
            let segment = |s: v1::SegmentRef| Ok(SegmentRef { len: s.len, hash: ChunkHash::from_slice(&s.hash)? });
            let segments = w.segments.into_iter().map(segment).collect::<Result<Vec<_>>>()?;
            let total = segments.iter().fold(0u64, |sum, s| sum.saturating_add(s.len));
            if total != w.size {
                return Err(Error::invalid(format!("segments of {total} bytes for a file of {}", w.size)));
            }
            Layout::Segments(segments)
        };
        Ok(Content {
            size: w.size,
            allocated: w.allocated,
            hash: ChunkHash::from_slice(&w.hash)?,
            layout: Arc::new(layout),
        })
    }
}

impl ToWire<v1::Content> for Content {
    fn to_wire(&self) -> v1::Content {
        let (extents, segments) = match &*self.layout {
            Layout::Inline(manifest) => (manifest.extents().iter().map(ToWire::to_wire).collect(), Vec::new()),
            Layout::Segments(refs) => {
                (Vec::new(), refs.iter().map(|s| v1::SegmentRef { len: s.len, hash: s.hash.0.to_vec() }).collect())
            }
        };
        v1::Content { size: self.size, allocated: self.allocated, hash: self.hash.0.to_vec(), extents, segments }
    }
}

impl FromWire<v1::Special> for (NodeKind, u32) {
    fn from_wire(w: v1::Special) -> Result<Self> {
        let kind = NodeKind::from_wire(w.kind)?;
        match kind {
            NodeKind::Fifo | NodeKind::Socket | NodeKind::CharDevice | NodeKind::BlockDevice => Ok((kind, w.rdev)),
            NodeKind::File | NodeKind::Dir | NodeKind::Symlink => {
                Err(Error::invalid(format!("{kind:?} is not a special file")))
            }
        }
    }
}

impl FromWire<v1::Node> for Node {
    fn from_wire(w: v1::Node) -> Result<Self> {
        let body = match required(w.body, "node.body")? {
            v1::node::Body::File(content) => Body::File(Content::from_wire(content)?),
            v1::node::Body::Dir(d) => Body::Dir(DirInfo {
                entries: d.entries,
                subdirs: d.subdirs,
                dead: d.dead,
                entry_set: file_id(d.entry_set, "dir.entry_set")?,
                shadow: d.shadow,
            }),
            v1::node::Body::Symlink(target) => Body::Symlink(target.into()),
            v1::node::Body::Special(special) => {
                let (kind, rdev) = FromWire::from_wire(special)?;
                Body::Special { kind, rdev }
            }
        };
        let xattrs: Xattrs = w.xattrs.into_iter().map(|x| (x.name, x.value)).collect();
        Ok(Node {
            file_id: file_id(w.file_id, "node.file_id")?,
            link: w.link.map(Link::from_wire).transpose()?,
            more_links: super::all(w.more_links)?,
            attr: Attr::from_wire(required(w.attr, "node.attr")?)?,
            xattrs: (!xattrs.is_empty()).then(|| Arc::new(xattrs)),
            body,
            version: Seq(w.version),
            version_no: w.version_no,
        })
    }
}

impl ToWire<v1::Node> for Node {
    fn to_wire(&self) -> v1::Node {
        let body = match &self.body {
            Body::File(content) => v1::node::Body::File(content.to_wire()),
            Body::Dir(d) => v1::node::Body::Dir(v1::DirInfo {
                entries: d.entries,
                subdirs: d.subdirs,
                dead: d.dead,
                entry_set: d.entry_set.0,
                shadow: d.shadow,
            }),
            Body::Symlink(target) => v1::node::Body::Symlink(target.to_vec()),
            Body::Special { kind, rdev } => v1::node::Body::Special(v1::Special { kind: kind.to_wire(), rdev: *rdev }),
        };
        let xattr = |(name, value): (&Vec<u8>, &Vec<u8>)| v1::Xattr { name: name.clone(), value: value.clone() };
        v1::Node {
            file_id: self.file_id.0,
            link: self.link.as_ref().map(ToWire::to_wire),
            more_links: self.more_links.iter().map(ToWire::to_wire).collect(),
            attr: Some(self.attr.to_wire()),
            xattrs: self.xattrs.iter().flat_map(|x| x.iter()).map(xattr).collect(),
            body: Some(body),
            version: self.version.0,
            version_no: self.version_no,
        }
    }
}

/// An id that may be absent on the wire as zero.
pub(super) fn optional_id(id: u64) -> Option<FileId> {
    (id != 0).then_some(FileId(id))
}
