//! The log of a space: what was done, newest first, and as it happens.

use super::read::Resolved;
use crate::engine::{Engine, SpaceCell};
use crate::model::view::View;
use crate::model::{keys, paths, record, timelines};
use crate::store::Step;
use agfs_core::error::Result;
use agfs_core::event::LogRecord;
use agfs_core::id::{Seq, TimelineId};
use agfs_core::space::Point;
use agfs_core::time::Timestamp;

/// Which records are asked for.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    /// Only of this agent; empty: of all.
    pub agent: String,
    /// Only of this task; empty: of all.
    pub task: String,
    /// Only not before this time.
    pub since: Option<Timestamp>,
    /// At most this many; 0: all.
    pub limit: u64,
}

/// A record with the paths that it is about.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// The record.
    pub record: LogRecord,
    /// The path after the event (or that was taken away).
    pub path: Vec<u8>,
    /// For a rename: the path before.
    pub from_path: Option<Vec<u8>>,
}

/// How many records are read at once when reading backwards.
const WINDOW: u64 = 512;

impl Engine {
    /// Hands the log of a space to `sink`, newest first, everything it ever did, what was rolled back included, and then
    /// what the space was forked from. `sink` returns whether it wants more.
    pub fn log(
        &self,
        cell: &SpaceCell,
        filter: &LogFilter,
        sink: &mut dyn FnMut(LogLine) -> Result<bool>,
    ) -> Result<()> {
        let head = cell.lock().head();
        let mut left = if filter.limit == 0 { u64::MAX } else { filter.limit };
        for (timeline, first, last) in self.stretches(cell, head)? {
            let mut high = last;
            while high >= first {
                let low = Seq(high.0.saturating_sub(WINDOW - 1)).max(first);
                let mut window = Vec::new();
                timelines::log_range(self.read(), timeline, low, high, &mut |r| {
                    window.push(r);
                    Ok(())
                })?;
                for record in window.into_iter().rev() {
                    if filter.since.is_some_and(|since| record.time < since) {
                        return Ok(());
                    }
                    let other = |want: &str, have: &str| !want.is_empty() && want != have;
                    if other(&filter.agent, &record.author.agent) || other(&filter.task, &record.author.task) {
                        continue;
                    }
                    if !sink(self.line(timeline, record)?)? || left == 1 {
                        return Ok(());
                    }
                    left -= 1;
                }
                if low.0 == 0 || low == first {
                    break;
                }
                high = Seq(low.0 - 1);
            }
        }
        Ok(())
    }

    /// The stretches of seqs that make up the history of a space, newest first: its own heads, then its ancestry.
    fn stretches(&self, cell: &SpaceCell, head: Point) -> Result<Vec<(TimelineId, Seq, Seq)>> {
        let mut out = Vec::new();
        let mut last = head.seq;
        let (start, end) = keys::heads_from(cell.id, head.seq);
        self.meta.scan(&start, &end, &mut |key, value| {
            let first = keys::parse_head(key).unwrap_or_default();
            out.push((TimelineId(record::decode_number(value, "head of a space")?), first, last));
            last = Seq(first.0.saturating_sub(1));
            Ok(Step::Next)
        })?;
        if let Some(&(oldest, first, _)) = out.last() {
            let at = Point { timeline: oldest, seq: first };
            for (timeline, until) in timelines::ancestry(self.read(), at)? {
                if timeline.id != oldest {
                    out.push((timeline.id, timeline.first, until));
                }
            }
        }
        Ok(out)
    }

    /// A record with its paths, as they were just after it (just before it, for what it took away).
    pub(super) fn line(&self, timeline: TimelineId, record: LogRecord) -> Result<LogLine> {
        let lineage = timelines::lineage(self.read(), Point { timeline, seq: record.seq })?;
        let view = View::new(self.read(), &lineage);
        let path_of = |link: &agfs_core::node::Link| paths::of_link(view, link);
        let path = match &record.event.link {
            Some(link) => path_of(link)?.unwrap_or_else(|| [b"/", link.name.as_bytes()].concat()),
            None => b"/".to_vec(),
        };
        let from_path = record.event.from.as_ref().map(path_of).transpose()?.flatten();
        Ok(LogLine { record, path, from_path })
    }

    /// The records after `since` up to the head, in order, at most `max`; for watchers.
    pub fn log_since(&self, cell: &SpaceCell, since: Seq, max: u64) -> Result<Vec<LogLine>> {
        let head = cell.lock().head();
        let mut stretches = self.stretches(cell, head)?;
        stretches.reverse();
        let mut out = Vec::new();
        for (timeline, first, last) in stretches {
            let first = first.max(since.next());
            if first > last {
                continue;
            }
            let last = last.min(Seq(first.0.saturating_add(max.saturating_sub(out.len() as u64)).saturating_sub(1)));
            let mut records = Vec::new();
            timelines::log_range(self.read(), timeline, first, last, &mut |r| {
                records.push(r);
                Ok(())
            })?;
            for record in records {
                out.push(self.line(timeline, record)?);
            }
            if out.len() as u64 >= max {
                break;
            }
        }
        Ok(out)
    }
}

impl Resolved {
    /// The node at the end of the way.
    pub fn last(&self) -> Option<&agfs_core::node::Node> {
        self.nodes.last()
    }
}
