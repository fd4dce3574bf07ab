//! Changing a tree: a batch of operations as one atomic write.

use super::dedup::{self, Answer};
use crate::engine::{Engine, SpaceCell, SpaceState};
use crate::hub::Message;
use crate::model::txn::{Finished, Origin, Txn};
use agfs_core::apply::apply;
use agfs_core::change::ChangeSet;
use agfs_core::error::{Error, Result};
use agfs_core::id::{ChunkHash, FileId, OpId, Seq};
use agfs_core::manifest::Extent;
use agfs_core::op::{Batch, ContentEdit, Op};
use std::ops::Range;
use std::sync::Arc;

/// The most operations that one batch may have.
const MAX_OPS: usize = 65_536;

/// When a call may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// When it survives a kill of the server's process.
    No,
    /// When it is on the server's disk.
    Disk,
    /// When its contents are in the object store too.
    Object,
}

/// Where a batch ended up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The seq before its first change.
    pub from: Seq,
    /// The seq of its last change.
    pub to: Seq,
    /// Whether it had been applied before.
    pub repeated: bool,
}

/// What a mount that has the space to itself says of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Under which grant.
    pub epoch: u64,
    /// The change that the first of the batch follows on.
    pub follows: Seq,
}

impl Engine {
    /// Applies a batch: all of it or, with an error that names the operation, nothing. A batch that comes again is
    /// answered as the first time. Does not wait for mounts nor for the disk.
    pub fn apply(&self, cell: &SpaceCell, batch: &Batch) -> Result<Applied> {
        self.apply_held(cell, batch, None)
    }

    /// [`Engine::apply`] for the mount that has the space to itself. Fails with `Conflict`, too, when it has not any more, or
    /// when the space is not where the mount takes it to be.
    pub fn apply_held(&self, cell: &SpaceCell, batch: &Batch, held: Option<Held>) -> Result<Applied> {
        if batch.ops.len() > MAX_OPS {
            return Err(Error::invalid(format!(
                "a batch has at most {MAX_OPS} operations, this one {}",
                batch.ops.len()
            )));
        }
        self.check_chunks(batch)?;
        let mut state = cell.lock();
        if let Some(done) = self.answered(batch.op_id)? {
            return Ok(Applied { from: done.from, to: done.after.seq, repeated: true });
        }
        let from = state.timeline.head;
        if let Some(held) = held {
            // With the space locked: whoever was let in has made changes before this or makes them after.
            cell.lease.check(batch.author.mount, held.epoch)?;
            if held.follows != from {
                return Err(Error::conflict(format!(
                    "the changes follow on {}, but the space is at {from}: they were made on another state",
                    held.follows
                )));
            }
        }
        let origin = Origin { op_id: batch.op_id, author: batch.author.clone(), time: state.tick(&*self.clock) };
        let lineage = Arc::clone(&state.lineage);
        let mut txn = Txn::new(self.read(), &lineage, state.timeline.id, from.next());
        for (index, op) in batch.ops.iter().enumerate() {
            self.check_reserved(&state, &op.op)?;
            let seq = txn.next();
            match apply(&mut txn, op, seq) {
                Ok(Some(step)) => txn.add(step, &origin),
                Ok(None) => {}
                Err(e) if batch.ops.len() > 1 => return Err(e.context(format!("operation {index} of the batch"))),
                Err(e) => return Err(e),
            }
        }
        let finished = self.finish(txn, &state)?;
        let to = self.commit(cell, &mut state, finished, &origin, None)?;
        Ok(Applied { from, to, repeated: false })
    }

    /// Ends a transaction on the head of a space, which the caller has locked.
    pub(super) fn finish(&self, txn: Txn<'_>, state: &SpaceState) -> Result<Finished> {
        let family = state.space.family;
        txn.finish(&mut || Ok(FileId(self.alloc.file_ids(family, 1)?.start)))
    }

    /// Writes a finished transaction with its answer, moves the head, and tells the mounts. Returns the new head.
    pub(super) fn commit(
        &self,
        cell: &SpaceCell,
        state: &mut SpaceState,
        mut finished: Finished,
        origin: &Origin,
        body: Option<Vec<u8>>,
    ) -> Result<Seq> {
        let from = state.timeline.head;
        let after = agfs_core::space::Point { timeline: state.timeline.id, seq: finished.last };
        let answer = Answer { from, after, space: cell.id, body: body.unwrap_or_default() };
        dedup::keep(&mut finished.batch, origin.op_id, answer);
        self.meta.write(finished.batch)?;
        state.timeline.head = finished.last;
        state.last_time = origin.time;
        if finished.last > from {
            let set = ChangeSet { from, to: finished.last, op_id: origin.op_id, changes: finished.changes };
            cell.hub.publish(&Message::Changes(Arc::new(set)), state.head());
        }
        Ok(finished.last)
    }

    /// Ids for new nodes of the space, for the caller alone.
    pub fn reserve_ids(&self, cell: &SpaceCell, count: u32) -> Result<Range<u64>> {
        if count == 0 || count > 1_000_000 {
            return Err(Error::invalid(format!("{count} ids cannot be reserved at once; ask for 1 to 1,000,000")));
        }
        let family = cell.lock().space.family;
        self.alloc.file_ids(family, u64::from(count))
    }

    /// Returns when everything applied so far is durable, and the head of the space at that time.
    pub async fn sync(self: &Arc<Self>, cell: &SpaceCell, durable: Durable) -> Result<Seq> {
        let seq = cell.lock().timeline.head;
        self.make_durable(durable).await?;
        Ok(seq)
    }

    /// Returns when everything written so far is as durable as asked. Contents go first: metadata must never be safer
    /// than what it names.
    pub async fn make_durable(self: &Arc<Self>, durable: Durable) -> Result<()> {
        match durable {
            Durable::No => return Ok(()),
            Durable::Disk => self.chunks.sync().await?,
            Durable::Object => self.chunks.sync_object().await?,
        }
        let engine = Arc::clone(self);
        tokio::task::spawn_blocking(move || engine.meta.sync())
            .await
            .map_err(|e| Error::internal(format!("the task that syncs the store failed: {e}")))?
    }

    /// A created node must have an id that was given out.
    fn check_reserved(&self, state: &SpaceState, op: &Op) -> Result<()> {
        match op {
            Op::Create { file_id, .. } if !self.alloc.is_reserved(state.space.family, file_id.0)? => {
                Err(Error::invalid(format!("the id {file_id} was not reserved in this family of spaces")))
            }
            _ => Ok(()),
        }
    }

    /// Every chunk that the batch names must be here: a version must never point at nothing.
    fn check_chunks(&self, batch: &Batch) -> Result<()> {
        let named = |extents: &[Extent], out: &mut Vec<ChunkHash>| {
            out.extend(extents.iter().filter_map(|e| e.chunk.map(|c| c.hash)))
        };
        let mut hashes = Vec::new();
        for op in &batch.ops {
            if let Op::SetContent { edit, .. } = &op.op {
                match edit {
                    ContentEdit::Whole(extents) => named(extents, &mut hashes),
                    ContentEdit::Splices { splices, .. } => splices.iter().for_each(|s| named(&s.with, &mut hashes)),
                }
            }
        }
        hashes.sort_unstable();
        hashes.dedup();
        let have = self.chunks.have(&hashes)?;
        match hashes.iter().zip(have).find(|(_, have)| !have) {
            Some((hash, _)) => {
                Err(Error::invalid(format!("the chunk {hash} is not here: send it before the operation that names it")))
            }
            None => Ok(()),
        }
    }

    /// Whether the operation was carried out.
    pub fn was_applied(&self, op: OpId) -> Result<bool> {
        Ok(self.answer_of(op)?.is_some())
    }
}
