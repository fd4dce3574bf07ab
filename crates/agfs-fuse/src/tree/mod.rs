//! The VersionTree: the part of a space's tree that this mount has seen, as of the last change it has taken note of.
//!
//! It is changed by the push stream and by loads of what was not seen before, and by nothing else; so it always shows the
//! committed log up to one sequence number. Directories are loaded whole: a name that a loaded directory does not have does
//! not exist. Kernel caches, open files and uncommitted writes are not known here.

#[cfg_attr(not(test), expect(dead_code, reason = "no mount asks for a space to itself"))]
pub mod ahead;
mod load;
pub mod node;
mod state;

#[cfg(test)]
mod ahead_test;
#[cfg(test)]
mod memory_test;
#[cfg(test)]
mod race_test;

pub use node::TreeNode;
pub use state::Touched;

use agfs_core::change::ChangeSet;
use agfs_core::name::Name;
use agfs_core::node::Node;
use agfs_core::space::Point;
use agfs_core::{FileId, Result, Seq};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use state::State;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What a name leads to, as far as it is in memory.
#[derive(Clone, Debug)]
pub enum Child {
    /// This node.
    Node(Arc<TreeNode>),
    /// To nothing, for certain.
    Absent,
    /// The directory is not a directory.
    NotADirectory,
    /// The directory's node must be fetched first.
    NoParent,
    /// The directory's entries must be loaded first.
    NotLoaded,
    /// The node with this id must be fetched first.
    NoNode(FileId),
}

/// How far the tree is: the count of resets, and the last change seen.
type Progress = (u64, Seq);

/// The part of a space's tree that this mount has seen.
pub struct VersionTree {
    state: RwLock<State>,
    progress: watch::Sender<Progress>,
    /// Directories being loaded, with what those who wait for the load are told.
    loads: Mutex<FxHashMap<FileId, watch::Receiver<Option<Result<()>>>>>,
    /// How long a load waits for the stream to reach the point at which it was read.
    patience: Duration,
}

impl VersionTree {
    /// A tree that has seen nothing. `patience` bounds how long an answer of the server waits for the stream.
    pub fn new(patience: Duration) -> Self {
        VersionTree {
            state: RwLock::default(),
            progress: watch::channel((0, Seq(0))).0,
            loads: Mutex::default(),
            patience,
        }
    }

    /// Begins at `head`, where `root` was as given. Changes may have come before; then `root` is fetched when needed.
    /// `live`: the present is shown, so that answers from another timeline are ahead of the stream.
    pub fn begin(&self, head: Point, root: Node, live: bool) {
        let mut state = self.state.write();
        if state.seen <= head.seq {
            state.seen = head.seq;
            state.confirmed = head.seq;
            state.hold(Arc::new(TreeNode::new(root, None)));
        }
        let seq = state.seen;
        if live {
            state.head.get_or_insert(Point { timeline: head.timeline, seq });
        }
        self.advance(&state);
    }

    /// Takes note of a change set and says which nodes it touched.
    pub fn apply(&self, set: &ChangeSet) -> Vec<Touched> {
        let mut state = self.state.write();
        let touched = state.apply(set);
        self.advance(&state);
        touched
    }

    /// Takes note of a change set that this mount made before the server, as [`VersionTree::plan`] gave it.
    #[cfg_attr(not(test), expect(dead_code, reason = "no mount asks for a space to itself"))]
    pub fn take(&self, set: &ChangeSet) -> Vec<Touched> {
        let mut state = self.state.write();
        let touched = state.take(set);
        self.advance(&state);
        touched
    }

    /// Drops everything: the tree has another state now.
    pub fn reset(&self, head: Point) {
        let old = {
            let mut state = self.state.write();
            let old = state.reset(head);
            self.advance(&state);
            old
        };
        // A large tree takes a while to free, which the stream must not wait for.
        if old.nodes.len() > 10_000 {
            std::thread::spawn(move || drop(old));
        }
    }

    fn advance(&self, state: &State) {
        self.progress.send_replace((state.generation, state.seen));
    }

    /// The last change seen.
    pub fn seen(&self) -> Seq {
        self.state.read().seen
    }

    /// How many nodes are held, and how many directories are loaded.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.state.read();
        (state.nodes.len() as u64, state.dirs.len() as u64)
    }

    /// The node, if it is held.
    pub fn node(&self, id: FileId) -> Option<Arc<TreeNode>> {
        self.state.read().nodes.get(&id).cloned()
    }

    /// What `name` leads to in `parent`, without waiting.
    pub fn child(&self, parent: FileId, name: &[u8]) -> Child {
        let state = self.state.read();
        if let Some(children) = state.dirs.get(&parent) {
            return match children.get(name) {
                None => Child::Absent,
                Some(id) => state.nodes.get(id).map_or(Child::NoNode(*id), |node| Child::Node(node.clone())),
            };
        }
        match state.nodes.get(&parent) {
            None => Child::NoParent,
            Some(node) if !node.kind().is_dir() => Child::NotADirectory,
            // Nothing of a shadow directory is ever in the tree.
            Some(node) if node.is_shadow() => Child::Absent,
            Some(_) => Child::NotLoaded,
        }
    }

    /// The entries of a directory, in order of name, if it is loaded.
    pub fn entries(&self, dir: FileId) -> Option<Vec<(Name, FileId)>> {
        let mut entries: Vec<_> = {
            let state = self.state.read();
            state.dirs.get(&dir)?.iter().map(|(name, id)| (name.clone(), *id)).collect()
        };
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Some(entries)
    }
}
