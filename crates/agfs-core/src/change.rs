//! Changes of a tree, as data: what one sequence number did to nodes and names.
//!
//! The store writes them, the push stream carries them, every client applies them; none of them interprets more than this.

use crate::event::Event;
use crate::id::{FileId, OpId, Seq};
use crate::name::Name;
use crate::node::{Node, NodeKind};
use crate::time::Timestamp;

/// One change of a node or a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The node is now as given.
    Put(Node),
    /// The node is gone: no name leads to it any more.
    Drop(FileId),
    /// The name now leads to the node.
    Bind {
        /// The directory.
        parent: FileId,
        /// The id under which the directory's entries are stored.
        entry_set: FileId,
        /// The name.
        name: Name,
        /// Where it leads.
        file_id: FileId,
        /// What that is.
        kind: NodeKind,
    },
    /// The name leads nowhere.
    Unbind {
        /// The directory.
        parent: FileId,
        /// The id under which the directory's entries are stored.
        entry_set: FileId,
        /// The name.
        name: Name,
    },
}

/// Everything that one sequence number did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// For the log.
    pub event: Event,
    /// For the tree, in an order that can be applied one by one.
    pub changes: Vec<Change>,
}

/// Steps with consecutive sequence numbers, made by one call: what the push stream carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSet {
    /// The sequence number before the first step.
    pub from: Seq,
    /// The sequence number of the last step.
    pub to: Seq,
    /// The call that made them.
    pub op_id: OpId,
    /// All changes, in order.
    pub changes: Vec<Change>,
}

impl ChangeSet {
    /// When the latest of the changes was made, as far as the nodes in it say: every change of a name puts a directory.
    pub fn time(&self) -> Option<Timestamp> {
        let ctime = |change: &Change| match change {
            Change::Put(node) => Some(node.attr.ctime),
            Change::Drop(_) | Change::Bind { .. } | Change::Unbind { .. } => None,
        };
        self.changes.iter().filter_map(ctime).max()
    }
}
