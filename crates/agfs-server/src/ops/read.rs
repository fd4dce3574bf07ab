//! Looking at a tree: paths, nodes, directories, manifests.

use crate::engine::{Engine, SpaceCell};
use crate::model::view::View;
use crate::model::{paths, segments};
use agfs_core::error::{Error, Result};
use agfs_core::id::{ChunkHash, FileId, Seq};
use agfs_core::manifest::{Extent, Manifest};
use agfs_core::name::Name;
use agfs_core::node::{Content, Node};
use agfs_core::path;
use agfs_core::space::Point;
use agfs_core::timeline::Lineage;

/// The nodes on the way to a path.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The root first.
    pub nodes: Vec<Node>,
    /// The state that was looked at.
    pub at: Point,
}

/// A directory of one state, read part by part.
#[derive(Debug)]
pub struct Listing {
    /// The directory.
    pub dir: Node,
    /// The state that is looked at.
    pub at: Point,
    lineage: Lineage,
    names: std::vec::IntoIter<(Name, FileId)>,
}

impl Engine {
    /// Follows a path (bytes, absolute) at a reference. With `partial` it returns what exists of the way.
    pub fn resolve(&self, cell: &SpaceCell, at: &str, path: &[u8], partial: bool) -> Result<Resolved> {
        let names = path::parse(path)?;
        let (at, lineage) = self.at(cell, at)?;
        let nodes = paths::walk(View::new(self.read(), &lineage), FileId::ROOT, &names)?;
        if !partial && nodes.len() != names.len() + 1 {
            return Err(paths::missing(&names, nodes.last(), nodes.len().saturating_sub(1)));
        }
        Ok(Resolved { nodes, at })
    }

    /// Those of the nodes that exist at a reference, and the seq of the state that was looked at.
    pub fn nodes(&self, cell: &SpaceCell, at: &str, ids: &[FileId]) -> Result<(Vec<Node>, Seq)> {
        let (at, lineage) = self.at(cell, at)?;
        let view = View::new(self.read(), &lineage);
        let found = ids.iter().map(|id| view.node(*id)).collect::<Result<Vec<_>>>()?;
        Ok((found.into_iter().flatten().collect(), at.seq))
    }

    /// Begins to list a directory at a reference.
    pub fn list_dir(&self, cell: &SpaceCell, at: &str, id: FileId) -> Result<Listing> {
        let (at, lineage) = self.at(cell, at)?;
        let view = View::new(self.read(), &lineage);
        let dir = view.require(id)?;
        let info = dir.dir().ok_or_else(|| Error::not_a_directory(format!("{id} is not a directory")))?;
        let names: Vec<(Name, FileId)> =
            view.entries(info.entry_set)?.into_iter().map(|(name, (id, _))| (name, id)).collect();
        Ok(Listing { dir, at, lineage, names: names.into_iter() })
    }

    /// The next entries of a listing, at most `count`, in order of name; empty at the end.
    pub fn list_part(&self, listing: &mut Listing, count: usize) -> Result<Vec<(Name, Node)>> {
        let view = View::new(self.read(), &listing.lineage);
        let mut out = Vec::with_capacity(count.min(listing.names.len()));
        for (name, id) in listing.names.by_ref().take(count) {
            let node = view
                .node(id)?
                .ok_or_else(|| Error::corrupt(format!("the entry {name:?} leads to {id}, which is missing")))?;
            out.push((name, node));
        }
        Ok(out)
    }

    /// The extents of a stored manifest segment.
    pub fn segment(&self, hash: ChunkHash) -> Result<Vec<Extent>> {
        segments::get(self.read(), &|_| None, hash)
    }

    /// All extents of a file.
    pub fn manifest(&self, content: &Content) -> Result<Manifest> {
        segments::load(self.read(), &|_| None, content)
    }
}
