//! Going back with the whole space: rollback, undo, redo. Each moves the head to a new timeline; none touches a file.

use super::dedup::{self, Answer};
use super::history::{HistoryOp, HistoryResult};
use crate::engine::{Engine, SpaceCell, SpaceState};
use crate::hub::Message;
use crate::model::txn::Origin;
use crate::model::{keys, record, timelines};
use crate::store::Batch;
use agfs_core::error::Result;
use agfs_core::event::{Event, EventKind, LogRecord};
use agfs_core::id::{FileId, OpId, TimelineId};
use agfs_core::node::NodeKind;
use agfs_core::op::Author;
use agfs_core::space::{Point, Space};
use agfs_core::timeline::Timeline;
use agfs_proto::v1;
use std::sync::Arc;

/// A call that moves the head.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub(super) kind: EventKind,
    pub(super) subject: Option<OpId>,
    /// The entries of the record that it changes.
    pub(super) marks: Vec<HistoryOp>,
    pub(super) set_aside: u64,
}

impl Engine {
    /// Makes the space what it was at `text`. What it was before stays in history and `undo` leads back to it.
    pub fn rollback(
        self: &Arc<Self>,
        cell: &SpaceCell,
        op_id: OpId,
        text: &str,
        author: Author,
        dry_run: bool,
    ) -> Result<HistoryResult> {
        let target = self.point(cell, text)?;
        let mut state = cell.lock();
        if let Some(done) = self.answered(op_id)? {
            return HistoryResult::decode(&done.body);
        }
        let set_aside = self.changes_between(target, state.head())?;
        let step = Move { kind: EventKind::Rollback, subject: None, marks: Vec::new(), set_aside };
        self.move_head(cell, &mut state, target, op_id, author, step, dry_run)
    }

    /// Takes back a rollback or restore: the one named, or the last. After a rollback the head goes back to where it was;
    /// after a restore only its paths do, when something else was changed since.
    pub fn undo(
        self: &Arc<Self>,
        cell: &SpaceCell,
        op_id: OpId,
        named: Option<OpId>,
        author: Author,
        dry_run: bool,
    ) -> Result<HistoryResult> {
        let mut state = cell.lock();
        if let Some(done) = self.answered(op_id)? {
            return HistoryResult::decode(&done.body);
        }
        let entry = self.undo_subject(cell, named)?;
        let subject = Some(entry.op_id);
        let marked = HistoryOp { undone: true, ..entry.clone() };
        if entry.kind == EventKind::Restore && state.head() != entry.after {
            let call =
                super::restore::Call { op_id, author, dry_run, kind: EventKind::Undo, subject, marks: vec![marked] };
            return self.restore_locked(cell, &mut state, entry.before, &entry.paths, call);
        }
        let set_aside = self.changes_between(entry.after, state.head())?;
        let step = Move { kind: EventKind::Undo, subject, marks: vec![marked], set_aside };
        self.move_head(cell, &mut state, entry.before, op_id, author, step, dry_run)
    }

    /// Does again what the last undo took back.
    pub fn redo(
        self: &Arc<Self>,
        cell: &SpaceCell,
        op_id: OpId,
        named: Option<OpId>,
        author: Author,
        dry_run: bool,
    ) -> Result<HistoryResult> {
        let mut state = cell.lock();
        if let Some(done) = self.answered(op_id)? {
            return HistoryResult::decode(&done.body);
        }
        let undo = self.redo_subject(cell, named)?;
        let subject = undo.subject;
        let again = subject.map(|s| self.history_op(cell, s)).transpose()?.flatten();
        let mut marks = vec![HistoryOp { undone: true, ..undo.clone() }];
        marks.extend(again.clone().map(|op| HistoryOp { undone: false, ..op }));
        if let Some(restore) = again.filter(|op| op.kind == EventKind::Restore && state.head() != undo.after) {
            // Something else was changed since: only the paths of the restore go forward again.
            let call = super::restore::Call { op_id, author, dry_run, kind: EventKind::Redo, subject, marks };
            return self.restore_locked(cell, &mut state, restore.after, &restore.paths, call);
        }
        let set_aside = self.changes_between(undo.after, state.head())?;
        let step = Move { kind: EventKind::Redo, subject, marks, set_aside };
        self.move_head(cell, &mut state, undo.before, op_id, author, step, dry_run)
    }

    /// How many changes lie between a point and a later one that may be on another branch. The first seq of a timeline,
    /// which only says how it began, is none.
    fn changes_between(&self, from: Point, to: Point) -> Result<u64> {
        let theirs = timelines::ancestry(self.read(), from)?;
        let mut count = 0u64;
        for (timeline, last) in timelines::ancestry(self.read(), to)? {
            let common = theirs.iter().find(|(t, _)| t.id == timeline.id).map(|(_, common)| *common);
            count = count.saturating_add(last.0.saturating_sub(common.unwrap_or(timeline.first).0));
            // Below the first common timeline everything is shared.
            if common.is_some() {
                break;
            }
        }
        Ok(count)
    }

    /// Moves the head of a locked space to a new timeline that branches at `target`.
    #[allow(clippy::too_many_arguments)] // One call, spelled out: the alternative is a struct that is used once.
    pub(super) fn move_head(
        self: &Arc<Self>,
        cell: &SpaceCell,
        state: &mut SpaceState,
        target: Point,
        op_id: OpId,
        author: Author,
        step: Move,
        dry_run: bool,
    ) -> Result<HistoryResult> {
        let before = state.head();
        let seq = before.seq.next();
        let mut result = HistoryResult { op_id, seq, set_aside: step.set_aside, subject: step.subject, changed: 0 };
        if dry_run {
            result.seq = before.seq;
            return Ok(result);
        }
        let timeline = Timeline {
            id: TimelineId(self.alloc.next("timeline")?),
            family: state.space.family,
            space: cell.id,
            parent: Some(timelines::branch_point(self.read(), target)?),
            first: seq,
            head: seq,
            flat: false,
        };
        let after = Point { timeline: timeline.id, seq };
        let origin = Origin { op_id, author, time: state.tick(&*self.clock) };
        let space = Space { head: timeline.id, ..state.space.clone() };
        let mut batch = Batch::new();
        put_timeline(&mut batch, &timeline);
        batch.put(keys::head_since(cell.id, seq), record::encode_number(timeline.id.0));
        batch.put(keys::space(cell.id), record::encode::<v1::Space>(&space));
        put_event(&mut batch, after, &origin, step.kind);
        if step.kind == EventKind::Rollback {
            self.keep_before_rollback(&mut batch, before, &origin, cell.id)?;
        }
        for marked in &step.marks {
            marked.put(&mut batch, cell);
        }
        let entry = HistoryOp {
            kind: step.kind,
            op_id,
            before,
            after,
            paths: Vec::new(),
            subject: step.subject,
            undone: false,
        };
        entry.put(&mut batch, cell);
        dedup::keep(&mut batch, op_id, Answer { from: before.seq, after, space: cell.id, body: result.encode() });
        // The lineage is built before the write: once the write is done nothing may fail.
        let staged = Staged { engine: self, timeline };
        let lineage = staged.lineage()?;
        self.meta.write(batch)?;
        self.shorten_later(&lineage);
        state.space = space;
        state.timeline = timeline;
        state.lineage = Arc::new(lineage);
        state.last_time = origin.time;
        cell.hub.publish(&Message::Reset { head: after, op_id }, after);
        Ok(result)
    }
}

/// A timeline whose record is not written yet.
struct Staged<'a> {
    engine: &'a Engine,
    timeline: Timeline,
}

impl Staged<'_> {
    fn lineage(&self) -> Result<agfs_core::timeline::Lineage> {
        let tip = Point { timeline: self.timeline.id, seq: self.timeline.head };
        let lineage = agfs_core::timeline::lineage(tip, |id| {
            if id == self.timeline.id { Ok(self.timeline) } else { timelines::get(self.engine.read(), id) }
        })?;
        Ok(lineage.as_of(agfs_core::Seq(u64::MAX)))
    }
}

/// Puts a new timeline and its head.
pub(super) fn put_timeline(batch: &mut Batch, timeline: &Timeline) {
    batch.put(keys::timeline(timeline.id), record::encode::<v1::Timeline>(timeline));
    batch.put(keys::head(timeline.id), record::encode_number(timeline.head.0));
}

/// Puts a log record about the whole space.
pub(super) fn put_event(batch: &mut Batch, at: Point, origin: &Origin, kind: EventKind) {
    let event = Event {
        kind,
        file_id: FileId::ROOT,
        node_kind: NodeKind::Dir,
        link: None,
        from: None,
        replaced: None,
        version_no: 0,
    };
    let log = LogRecord { seq: at.seq, time: origin.time, op_id: origin.op_id, author: origin.author.clone(), event };
    batch.put(keys::log(at.timeline, at.seq), record::encode::<v1::LogRecord>(&log));
}
