//! From the text of a reference to a point in history.

use crate::engine::{Engine, SpaceCell};
use crate::model::{keys, record, timelines};
use crate::store::Step;
use agfs_core::error::{Error, Result};
use agfs_core::id::{CheckpointId, Seq};
use agfs_core::reference::{self, Ref};
use agfs_core::space::{Cause, Checkpoint, Point};
use agfs_core::time::Timestamp;
use agfs_core::timeline::Lineage;
use agfs_proto::v1;

/// An RFC 3339 time.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok().map(Timestamp)
}

impl Engine {
    /// The point that `text` names in the space; the empty text is the present. Fails with `InvalidArgument` when it is
    /// no reference and with `NotFound` when it names nothing.
    pub fn point(&self, cell: &SpaceCell, text: &str) -> Result<Point> {
        let head = cell.lock().head();
        if text.is_empty() {
            return Ok(head);
        }
        match reference::parse(text, parse_time)? {
            Ref::Head => Ok(head),
            Ref::Seq(seq) => self.point_at(cell, head, seq),
            Ref::Time(time) => self.point_at_time(cell, head, time),
            Ref::Ago(ns) => self.point_at_time(cell, head, Timestamp(self.clock.now().0.saturating_sub(ns))),
            Ref::Op(op) => {
                let missing = || Error::not_found(format!("the space has no operation {op}"));
                let answer = self.answer_of(op)?.filter(|a| a.space == cell.id).ok_or_else(missing)?;
                Ok(answer.after)
            }
            Ref::LastCheckpoint(_) | Ref::Checkpoint(_) | Ref::Name(_) => Ok(self.checkpoint(cell, text)?.at),
        }
    }

    /// The point that `text` names, with where to look for its records.
    pub fn at(&self, cell: &SpaceCell, text: &str) -> Result<(Point, Lineage)> {
        if text.is_empty() {
            let state = cell.lock();
            return Ok((state.head(), state.lineage_now()));
        }
        let point = self.point(cell, text)?;
        Ok((point, timelines::lineage(self.read(), point)?))
    }

    /// The checkpoint that `text` names: by name, by id, or `@-N`. Fails with `NotFound`.
    pub fn checkpoint(&self, cell: &SpaceCell, text: &str) -> Result<Checkpoint> {
        let none = || {
            Error::not_found(format!(
                "the space has no checkpoint {text:?}; `agfs checkpoint list` shows those there are"
            ))
        };
        let id = match reference::parse(text, parse_time)? {
            Ref::LastCheckpoint(n) => return self.last_checkpoint(cell, n)?.ok_or_else(none),
            Ref::Checkpoint(id) => id,
            Ref::Name(name) => match self.meta.get(&keys::checkpoint_name(cell.id, &name))? {
                Some(bytes) => CheckpointId(record::decode_number(&bytes, "name of a checkpoint")?),
                None => return Err(none()),
            },
            Ref::Head | Ref::Seq(_) | Ref::Time(_) | Ref::Ago(_) | Ref::Op(_) => {
                return Err(Error::invalid(format!("{text:?} does not name a checkpoint: give a name, an id or @-1")));
            }
        };
        record::get::<v1::Checkpoint, _>(self.read(), &keys::checkpoint(cell.id, id), "checkpoint")?.ok_or_else(none)
    }

    fn last_checkpoint(&self, cell: &SpaceCell, n: u32) -> Result<Option<Checkpoint>> {
        let (start, end) = keys::checkpoints(cell.id);
        let (mut left, mut found) = (n, None);
        self.meta.scan(&start, &end, &mut |_, value| {
            let checkpoint: Checkpoint = record::decode::<v1::Checkpoint, _>(value, "checkpoint")?;
            // What a rollback keeps of the state it leaves is found by its id and by `undo`; whoever says "the last
            // checkpoint" means one that was asked for.
            left = left.saturating_sub(u32::from(checkpoint.cause != Cause::BeforeRollback));
            if left > 0 {
                return Ok(Step::Next);
            }
            found = Some(checkpoint);
            Ok(Step::Stop)
        })?;
        Ok(found)
    }

    fn point_at(&self, cell: &SpaceCell, head: Point, seq: Seq) -> Result<Point> {
        let timeline = timelines::owner_of(self.read(), cell.id, head, seq)?;
        Ok(Point { timeline, seq })
    }

    /// The last point not after `time`, by bisection over the seqs of the space, whose times never go back.
    fn point_at_time(&self, cell: &SpaceCell, head: Point, time: Timestamp) -> Result<Point> {
        let time_of = |seq: Seq| -> Result<Option<Timestamp>> {
            let timeline = timelines::owner_of(self.read(), cell.id, head, seq)?;
            Ok(timelines::log_record(self.read(), timeline, seq)?.map(|r| r.time))
        };
        // Invariant: low is 0 or not after `time`; everything above high is after it.
        let (mut low, mut high) = (0, head.seq.0);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match time_of(Seq(middle))? {
                Some(t) if t <= time => low = middle,
                _ => high = middle - 1,
            }
        }
        if low == 0 {
            return Err(Error::not_found("the space did not exist at that time"));
        }
        self.point_at(cell, head, Seq(low))
    }
}
