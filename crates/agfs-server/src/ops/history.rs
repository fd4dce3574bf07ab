//! The record of rollbacks, restores, undos and redos: what undo and redo go by.

use crate::engine::{Engine, SpaceCell};
use crate::model::{keys, record};
use crate::store::{Batch, Step};
use agfs_core::error::{Error, Result};
use agfs_core::event::EventKind;
use agfs_core::id::{OpId, Seq};
use agfs_core::space::Point;
use agfs_proto::{FromWire, Message, ToWire, v1};

/// What a rollback, restore, undo or redo did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryResult {
    /// The call.
    pub op_id: OpId,
    /// The head after it.
    pub seq: Seq,
    /// How many changes, made since the point gone to, are set aside by it; they stay in history.
    pub set_aside: u64,
    /// For an undo or redo: the operation that it is about.
    pub subject: Option<OpId>,
    /// For a restore: how many nodes and names it changed.
    pub changed: u64,
}

impl HistoryResult {
    pub(super) fn encode(&self) -> Vec<u8> {
        v1::HistoryReply {
            op_id: self.op_id.to_wire(),
            seq: self.seq.0,
            set_aside: self.set_aside,
            subject: self.subject.and_then(|s| s.to_wire()),
            changed: self.changed,
        }
        .encode_to_vec()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let w: v1::HistoryReply = record::message(bytes, "answer of an operation")?;
        Ok(HistoryResult {
            op_id: OpId::from_wire(w.op_id)?,
            seq: Seq(w.seq),
            set_aside: w.set_aside,
            subject: w.subject.map(|s| OpId::from_wire(Some(s))).transpose()?,
            changed: w.changed,
        })
    }
}

/// One entry of the record.
#[derive(Clone, Debug)]
pub(super) struct HistoryOp {
    /// Rollback, Restore, Undo or Redo.
    pub(super) kind: EventKind,
    pub(super) op_id: OpId,
    /// The head before it.
    pub(super) before: Point,
    /// The head after it.
    pub(super) after: Point,
    /// For a restore: the paths.
    pub(super) paths: Vec<Vec<u8>>,
    /// For an undo or redo: what it is about.
    pub(super) subject: Option<OpId>,
    /// Whether it was taken back.
    pub(super) undone: bool,
}

impl HistoryOp {
    fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::corrupt("a stored history operation is damaged");
        let w: v1::HistoryOp = record::message(bytes, "history operation")?;
        Ok(HistoryOp {
            kind: EventKind::from_code(&w.kind).ok_or_else(damaged)?,
            op_id: OpId::from_wire(w.op_id)?,
            before: Point::from_wire(w.before.ok_or_else(damaged)?)?,
            after: Point::from_wire(w.after.ok_or_else(damaged)?)?,
            paths: w.paths,
            subject: w.subject.map(|s| OpId::from_wire(Some(s))).transpose()?,
            undone: w.undone,
        })
    }

    /// Puts the entry into a batch; its place is the seq after it.
    pub(super) fn put(&self, batch: &mut Batch, cell: &SpaceCell) {
        let w = v1::HistoryOp {
            kind: self.kind.code().to_owned(),
            op_id: self.op_id.to_wire(),
            before: Some(self.before.to_wire()),
            after: Some(self.after.to_wire()),
            paths: self.paths.clone(),
            subject: self.subject.and_then(|s| s.to_wire()),
            undone: self.undone,
        };
        batch.put(keys::history_op(cell.id, self.after.seq), w.encode_to_vec());
    }
}

impl Engine {
    /// Visits the entries of a space, newest first, until `visit` returns something.
    fn find_history<T>(
        &self,
        cell: &SpaceCell,
        mut visit: impl FnMut(HistoryOp) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let (start, end) = keys::history_ops(cell.id);
        let mut found = None;
        self.meta.scan(&start, &end, &mut |_, value| {
            found = visit(HistoryOp::decode(value)?)?;
            Ok(if found.is_some() { Step::Stop } else { Step::Next })
        })?;
        Ok(found)
    }

    /// The entry of an operation.
    pub(super) fn history_op(&self, cell: &SpaceCell, op: OpId) -> Result<Option<HistoryOp>> {
        self.find_history(cell, |entry| Ok((entry.op_id == op).then_some(entry)))
    }

    /// The entry that `undo` takes back: the one named, or the last rollback or restore that was not taken back.
    pub(super) fn undo_subject(&self, cell: &SpaceCell, named: Option<OpId>) -> Result<HistoryOp> {
        match named {
            Some(op) => {
                let entry = self.history_op(cell, op)?.filter(|e| e.subject.is_none()).ok_or_else(|| {
                    Error::not_found(format!(
                        "{op} is no rollback or restore of this space; `agfs log` shows its operations"
                    ))
                })?;
                if entry.undone {
                    return Err(Error::refused(format!("{op} was already taken back; `agfs redo` does it again")));
                }
                Ok(entry)
            }
            None => self
                .find_history(cell, |e| Ok((e.subject.is_none() && !e.undone).then_some(e)))?
                .ok_or_else(|| Error::not_found("there is no rollback or restore to take back")),
        }
    }

    /// The undo that `redo` takes back: the last one, unless something was rolled back or restored after it.
    pub(super) fn redo_subject(&self, cell: &SpaceCell, named: Option<OpId>) -> Result<HistoryOp> {
        let nothing = || Error::not_found("there is nothing to do again: no undo since the last rollback or restore");
        let last = self.find_history(cell, |e| {
            Ok(match e.kind {
                EventKind::Undo if !e.undone => Some(Some(e)),
                EventKind::Undo | EventKind::Redo => None,
                _ if e.undone => None,
                // A rollback or restore that was done again by a redo stands before its undo; a newer one ends the search.
                _ => Some(None),
            })
        })?;
        match (last.flatten(), named) {
            (Some(undo), None) => Ok(undo),
            (Some(undo), Some(op)) if undo.op_id == op || undo.subject == Some(op) => Ok(undo),
            (_, Some(op)) => Err(Error::not_found(format!("{op} is not the last thing that was taken back"))),
            (None, None) => Err(nothing()),
        }
    }
}
