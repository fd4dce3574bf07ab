//! Changes and change sets.

use super::{FromWire, ToWire, all, file_id, name, required};
use crate::v1;
use agfs_core::change::{Change, ChangeSet};
use agfs_core::error::Result;
use agfs_core::id::{OpId, Seq};
use agfs_core::node::{Node, NodeKind};

impl FromWire<v1::Change> for Change {
    fn from_wire(w: v1::Change) -> Result<Self> {
        use v1::change::Change as W;
        Ok(match required(w.change, "change.change")? {
            W::Put(node) => Change::Put(Node::from_wire(node)?),
            W::Drop(id) => Change::Drop(file_id(id, "change.drop")?),
            W::Bind(b) => Change::Bind {
                parent: file_id(b.parent, "bind.parent")?,
                entry_set: file_id(b.entry_set, "bind.entry_set")?,
                name: name(&b.name)?,
                file_id: file_id(b.file_id, "bind.file_id")?,
                kind: NodeKind::from_wire(b.kind)?,
            },
            W::Unbind(u) => Change::Unbind {
                parent: file_id(u.parent, "unbind.parent")?,
                entry_set: file_id(u.entry_set, "unbind.entry_set")?,
                name: name(&u.name)?,
            },
        })
    }
}

impl ToWire<v1::Change> for Change {
    fn to_wire(&self) -> v1::Change {
        use v1::change::Change as W;
        let change = match self {
            Change::Put(node) => W::Put(node.to_wire()),
            Change::Drop(id) => W::Drop(id.0),
            Change::Bind { parent, entry_set, name, file_id, kind } => W::Bind(v1::Bind {
                parent: parent.0,
                entry_set: entry_set.0,
                name: name.as_bytes().to_vec(),
                file_id: file_id.0,
                kind: kind.to_wire(),
            }),
            Change::Unbind { parent, entry_set, name } => {
                W::Unbind(v1::Unbind { parent: parent.0, entry_set: entry_set.0, name: name.as_bytes().to_vec() })
            }
        };
        v1::Change { change: Some(change) }
    }
}

impl FromWire<v1::ChangeSet> for ChangeSet {
    fn from_wire(w: v1::ChangeSet) -> Result<Self> {
        Ok(ChangeSet { from: Seq(w.from), to: Seq(w.to), op_id: OpId::from_wire(w.op_id)?, changes: all(w.changes)? })
    }
}

impl ToWire<v1::ChangeSet> for ChangeSet {
    fn to_wire(&self) -> v1::ChangeSet {
        v1::ChangeSet {
            from: self.from.0,
            to: self.to.0,
            op_id: self.op_id.to_wire(),
            changes: self.changes.iter().map(ToWire::to_wire).collect(),
        }
    }
}
