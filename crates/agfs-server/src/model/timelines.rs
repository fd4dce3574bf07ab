//! Reading timelines and building lineages from the store.

use super::{keys, record};
use crate::store::{Read, Step};
use agfs_core::error::{Error, Result};
use agfs_core::event::LogRecord;
use agfs_core::id::{Seq, SpaceId, TimelineId};
use agfs_core::space::Point;
use agfs_core::timeline::{self, Lineage, Timeline};
use agfs_proto::v1;

/// The timeline, with its last seq. Fails with `Corrupt` when its record is missing.
pub fn get(read: &dyn Read, id: TimelineId) -> Result<Timeline> {
    let mut timeline: Timeline = record::get::<v1::Timeline, _>(read, &keys::timeline(id), "timeline")?
        .ok_or_else(|| Error::corrupt(format!("the timeline {id} has no record")))?;
    if let Some(bytes) = read.get(&keys::head(id))? {
        timeline.head = Seq(record::decode_number(&bytes, "head of a timeline")?);
    }
    Ok(timeline)
}

/// Where to look for the records visible at `point`.
pub fn lineage(read: &dyn Read, point: Point) -> Result<Lineage> {
    timeline::lineage(point, |id| get(read, id))
}

/// Where a new timeline should branch off to show the state at `point`.
pub fn branch_point(read: &dyn Read, point: Point) -> Result<Point> {
    timeline::branch_point(point, |id| get(read, id))
}

/// The ancestry of a point: each timeline with the first and last of its own seqs that count, nearest first. Unlike a
/// lineage it goes on below flattened timelines: the log is never copied.
pub fn ancestry(read: &dyn Read, point: Point) -> Result<Vec<(Timeline, Seq)>> {
    let (mut out, mut next) = (Vec::new(), Some(point));
    while let Some(p) = next {
        let timeline = get(read, p.timeline)?;
        let parent = timeline.parent.filter(|parent| parent.timeline < p.timeline);
        next = parent.map(|parent| Point { seq: parent.seq.min(p.seq), ..parent });
        if p.seq >= timeline.first {
            out.push((timeline, p.seq.min(timeline.head)));
        }
    }
    Ok(out)
}

/// The timeline of the space whose own history has `seq`, looked for among the space's heads, then among what the
/// space was forked from. Fails with `NotFound`.
pub fn owner_of(read: &dyn Read, space: SpaceId, head: Point, seq: Seq) -> Result<TimelineId> {
    let missing = || Error::not_found(format!("{seq} is not in the history of the space, which goes to {}", head.seq));
    if seq > head.seq || seq == Seq(0) {
        return Err(missing());
    }
    let (start, end) = keys::heads_from(space, seq);
    let mut found = None;
    read.scan(&start, &end, &mut |_, value| {
        found = Some(TimelineId(record::decode_number(value, "head of a space")?));
        Ok(Step::Stop)
    })?;
    if let Some(id) = found {
        return Ok(id);
    }
    ancestry(read, head)?
        .into_iter()
        .find(|(t, last)| t.first <= seq && seq <= *last)
        .map(|(t, _)| t.id)
        .ok_or_else(missing)
}

/// The log record of a seq in a timeline.
pub fn log_record(read: &dyn Read, timeline: TimelineId, seq: Seq) -> Result<Option<LogRecord>> {
    record::get::<v1::LogRecord, _>(read, &keys::log(timeline, seq), "log record")
}

/// Visits the log records of a timeline from `first` to `last`, both included, in order.
pub fn log_range(
    read: &dyn Read,
    timeline: TimelineId,
    first: Seq,
    last: Seq,
    visit: &mut dyn FnMut(LogRecord) -> Result<()>,
) -> Result<()> {
    read.scan(&keys::log(timeline, first), &keys::log(timeline, last.next()), &mut |_, value| {
        visit(record::decode::<v1::LogRecord, _>(value, "log record")?)?;
        Ok(Step::Next)
    })
}
