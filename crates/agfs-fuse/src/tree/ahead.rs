//! Operations applied to the VersionTree before the server has them: what a mount does that has its space to itself.
//!
//! The same function decides here and there what an operation does ([`agfs_core::apply::apply`]), and nobody else changes
//! the space meanwhile; so the changes and their sequence numbers are those that the server will make. Only how a directory
//! stores its entries (`entry_set`, `dead`) is the server's own business, and nothing on a mount depends on it. Sending,
//! waiting and keeping a journal are not known here.

use super::VersionTree;
use super::state::State;
use agfs_core::apply::{Tree, apply};
use agfs_core::change::{Change, ChangeSet};
use agfs_core::manifest::{INLINE_EXTENTS, Manifest};
use agfs_core::name::Name;
use agfs_core::node::{Content, Layout, Node};
use agfs_core::op::TimedOp;
use agfs_core::{Error, FileId, OpId, Result};
use rustc_hash::{FxHashMap, FxHashSet};

/// What operations would do to the tree.
#[derive(Debug)]
pub enum Plan {
    /// These changes, which follow on what the tree has seen; an empty set when nothing changes.
    Changes(ChangeSet),
    /// That cannot be said before this node is in memory.
    NeedsNode(FileId),
    /// That cannot be said before the entries of this directory are in memory.
    NeedsEntries(FileId),
    /// Only the server can say it: manifests in segments take part.
    NeedsServer,
}

/// What a plan lacks.
#[derive(Clone, Copy)]
enum Lacks {
    Node(FileId),
    Entries(FileId),
    Server,
}

/// The tree with the steps of one plan on top.
struct Ahead<'a> {
    state: &'a State,
    absent: &'a FxHashSet<FileId>,
    nodes: FxHashMap<FileId, Option<Node>>,
    names: FxHashMap<(FileId, Name), Option<FileId>>,
    lacks: Option<Lacks>,
}

impl VersionTree {
    /// What `ops` would do, together or not at all. `absent` are nodes that the server was asked for and does not have.
    ///
    /// The caller makes sure that nothing else changes the tree between this and [`VersionTree::apply`] with the result.
    ///
    /// # Errors
    /// What the server would refuse them with.
    pub fn plan(&self, ops: &[TimedOp], op_id: OpId, absent: &FxHashSet<FileId>) -> Result<Plan> {
        let state = self.state.read();
        let from = state.seen;
        let mut ahead =
            Ahead { state: &state, absent, nodes: FxHashMap::default(), names: FxHashMap::default(), lacks: None };
        let (mut to, mut changes) = (from, Vec::new());
        for op in ops {
            let outcome = apply(&mut ahead, op, to.next());
            match ahead.lacks {
                Some(Lacks::Node(id)) => return Ok(Plan::NeedsNode(id)),
                Some(Lacks::Entries(dir)) => return Ok(Plan::NeedsEntries(dir)),
                Some(Lacks::Server) => return Ok(Plan::NeedsServer),
                None => {}
            }
            if let Some(step) = outcome? {
                step.changes.iter().for_each(|change| ahead.take(change));
                changes.extend(step.changes);
                to = to.next();
            }
        }
        Ok(Plan::Changes(ChangeSet { from, to, op_id, changes }))
    }
}

impl Ahead<'_> {
    fn take(&mut self, change: &Change) {
        match change {
            Change::Put(node) => {
                self.nodes.insert(node.file_id, Some(node.clone()));
            }
            Change::Drop(id) => {
                self.nodes.insert(*id, None);
            }
            Change::Bind { parent, name, file_id, .. } => {
                self.names.insert((*parent, name.clone()), Some(*file_id));
            }
            Change::Unbind { parent, name, .. } => {
                self.names.insert((*parent, name.clone()), None);
            }
        }
    }

    /// Ends the plan; the error is never seen by anybody.
    fn lacks<T>(&mut self, what: Lacks) -> Result<T> {
        self.lacks = Some(what);
        Err(Error::internal("the tree does not hold everything that the operation takes"))
    }
}

impl Tree for Ahead<'_> {
    fn node(&mut self, id: FileId) -> Result<Option<Node>> {
        if let Some(node) = self.nodes.get(&id) {
            return Ok(node.clone());
        }
        match self.state.nodes.get(&id) {
            Some(node) => Ok(Some(node.to_node())),
            None if self.absent.contains(&id) => Ok(None),
            None => self.lacks(Lacks::Node(id)),
        }
    }

    fn child(&mut self, dir: &Node, name: &Name) -> Result<Option<FileId>> {
        let key = (dir.file_id, name.clone());
        if let Some(target) = self.names.get(&key) {
            return Ok(*target);
        }
        match self.state.dirs.get(&dir.file_id) {
            Some(children) => Ok(children.get(name).copied()),
            // A directory made in this plan has the names of this plan alone.
            None if !self.state.nodes.contains_key(&dir.file_id) => Ok(None),
            None => self.lacks(Lacks::Entries(dir.file_id)),
        }
    }

    fn manifest(&mut self, content: &Content) -> Result<Manifest> {
        match content.layout.as_ref() {
            Layout::Inline(manifest) => Ok(manifest.clone()),
            Layout::Segments(_) => self.lacks(Lacks::Server),
        }
    }

    fn content(&mut self, manifest: Manifest) -> Result<Content> {
        if manifest.extents().len() > INLINE_EXTENTS {
            return self.lacks(Lacks::Server);
        }
        Ok(Content::inline(manifest))
    }
}
