//! Flattening: copying what a timeline shows from its ancestors into itself, so that reads stop at it.
//!
//! Runs in the background and without the space's lock: what lies at or before a branch point never changes. The copies
//! keep their seqs; the mark that they are complete is written last, so that an interrupted run is simply done again.

use crate::engine::{Engine, head_lineage};
use crate::model::{keys, record, timelines};
use crate::store::{Batch, Step};
use agfs_core::error::{Error, Result};
use agfs_core::id::TimelineId;
use agfs_core::space::Point;
use agfs_core::timeline::{FLATTEN_AT, Lineage, Timeline};
use agfs_proto::v1;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many bytes of copies are written at once.
const BATCH_BYTES: usize = 1 << 20;

impl Engine {
    /// Shortens a long lineage: flattens the timeline in its middle, on a thread of its own. In the middle and not at the
    /// tip, so that the copies serve everything that branches off below, forks and later rollbacks alike, and a tree is
    /// copied once for several levels. One runs at a time; a lineage that stays long asks again when it grows. A failure
    /// is logged and costs only speed.
    pub(super) fn shorten_later(self: &Arc<Self>, lineage: &Lineage) {
        if lineage.0.len() <= FLATTEN_AT || self.flattening.swap(true, Ordering::AcqRel) {
            return;
        }
        let Some(timeline) = lineage.0.get(lineage.0.len() / 2).map(|p| p.timeline) else { return };
        let engine = Arc::clone(self);
        let run = move || {
            match engine.flatten(timeline).and_then(|copied| engine.adopt_flat(timeline).map(|()| copied)) {
                Ok(copied) => tracing::info!(%timeline, copied, "flattened"),
                Err(error) => tracing::warn!(%timeline, %error, "flattening failed"),
            }
            engine.flattening.store(false, Ordering::Release);
        };
        if let Err(error) = std::thread::Builder::new().name("flatten".into()).spawn(run) {
            tracing::warn!(%timeline, %error, "flattening could not start");
            self.flattening.store(false, Ordering::Release);
        }
    }

    /// Makes the heads that are read through a timeline stop at it, now that it is flat.
    fn adopt_flat(&self, id: TimelineId) -> Result<()> {
        for cell in self.all_spaces() {
            let mut state = cell.lock();
            if state.lineage.0.iter().any(|p| p.timeline == id) {
                state.timeline.flat |= state.timeline.id == id;
                state.lineage = Arc::new(head_lineage(self.read(), &state.timeline)?);
            }
        }
        Ok(())
    }

    /// Copies what `id` shows from its ancestors into it and marks it flat. Returns how many records were copied.
    pub fn flatten(&self, id: TimelineId) -> Result<u64> {
        let timeline = timelines::get(self.read(), id)?;
        let Some(branch) = timeline.parent.filter(|_| !timeline.flat) else { return Ok(0) };
        let mut copier = Copier { engine: self, to: id, batch: Batch::new(), copied: 0 };
        let levels = timelines::lineage(self.read(), branch)?;
        let (mut nodes, mut names) = (FxHashSet::default(), FxHashSet::default());
        for level in &levels.0 {
            copier.nodes(*level, &mut nodes)?;
            copier.dentries(*level, &mut names)?;
        }
        let flat = Timeline { flat: true, ..timeline };
        copier.batch.put(keys::timeline(id), record::encode::<v1::Timeline>(&flat));
        copier.write()?;
        Ok(copier.copied)
    }
}

struct Copier<'a> {
    engine: &'a Engine,
    to: TimelineId,
    batch: Batch,
    copied: u64,
}

impl Copier<'_> {
    /// Copies the newest visible version of each node that no nearer level had.
    fn nodes(&mut self, level: Point, seen: &mut FxHashSet<u64>) -> Result<()> {
        let (start, end) = keys::all_nodes(level.timeline);
        let engine = self.engine;
        engine.meta.scan(&start, &end, &mut |key, value| {
            let (id, seq) = keys::parse_node(key).ok_or_else(|| Error::corrupt("a node's key is damaged"))?;
            if seq > level.seq {
                return Ok(Step::Seek(keys::node(level.timeline, id, level.seq)));
            }
            if seen.insert(id.0) && !value.is_empty() {
                self.put(keys::node(self.to, id, seq), value)?;
            }
            Ok(Step::Seek(keys::node_bounds(level.timeline, id).1))
        })
    }

    /// Copies the newest visible version of each dentry that no nearer level had.
    fn dentries(&mut self, level: Point, seen: &mut FxHashSet<(u64, Vec<u8>)>) -> Result<()> {
        let (start, end) = keys::all_dentries(level.timeline);
        let engine = self.engine;
        engine.meta.scan(&start, &end, &mut |key, value| {
            let (set, name, seq) =
                keys::parse_dentry(key).ok_or_else(|| Error::corrupt("a dentry's key is damaged"))?;
            if seq > level.seq {
                return Ok(Step::Seek(keys::dentry(level.timeline, set, name, level.seq)));
            }
            if seen.insert((set.0, name.to_vec())) && !value.is_empty() {
                self.put(keys::dentry(self.to, set, name, seq), value)?;
            }
            Ok(Step::Seek(keys::dentry_bounds(level.timeline, set, name).1))
        })
    }

    fn put(&mut self, key: Vec<u8>, value: &[u8]) -> Result<()> {
        self.batch.put(key, value.to_vec());
        self.copied += 1;
        if self.batch.bytes() > BATCH_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        self.engine.meta.write(std::mem::take(&mut self.batch))
    }
}
