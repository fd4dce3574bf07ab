//! Checkpoints: names for points. Making one touches no file.

use super::dedup::{self, Answer};
use crate::engine::{Engine, SpaceCell};
use crate::model::txn::Origin;
use crate::model::{keys, record};
use crate::store::{Batch, Step};
use agfs_core::error::{Error, Result};
use agfs_core::id::{CheckpointId, OpId, SpaceId};
use agfs_core::op::Author;
use agfs_core::space::{Cause, Checkpoint, Point, check_checkpoint_name};
use agfs_proto::v1;

/// What a new checkpoint is to be.
#[derive(Clone, Debug)]
pub struct NewCheckpoint {
    /// The call.
    pub op_id: OpId,
    /// Its name, or empty.
    pub name: String,
    /// A remark.
    pub note: String,
    /// Why it is made.
    pub cause: Cause,
    /// Who makes it.
    pub author: Author,
}

/// The longest note, in bytes.
const MAX_NOTE: usize = 4_096;

impl Engine {
    /// Names the present. Everything that was committed before the call is in it. Fails with `AlreadyExists` when the
    /// name is taken in the space. The caller makes it durable before it answers.
    pub fn create_checkpoint(&self, cell: &SpaceCell, new: NewCheckpoint) -> Result<Checkpoint> {
        if !new.name.is_empty() {
            check_checkpoint_name(&new.name)?;
        }
        if new.note.len() > MAX_NOTE {
            return Err(Error::invalid(format!("a note has at most {MAX_NOTE} bytes, this one {}", new.note.len())));
        }
        let state = cell.lock();
        if let Some(done) = self.answered(new.op_id)? {
            return record::decode::<v1::Checkpoint, _>(&done.body, "answer of an operation");
        }
        if !new.name.is_empty() && self.meta.get(&keys::checkpoint_name(cell.id, &new.name))?.is_some() {
            return Err(Error::already_exists(format!(
                "the space {} already has a checkpoint {:?}; choose another name or delete that one",
                state.space.name, new.name
            )));
        }
        let checkpoint = Checkpoint {
            id: CheckpointId(self.alloc.next("checkpoint")?),
            space: cell.id,
            name: new.name,
            at: state.head(),
            cause: new.cause,
            author: new.author,
            note: new.note,
            pinned: false,
            created: state.tick(&*self.clock),
        };
        let mut batch = Batch::new();
        self.put_checkpoint(&mut batch, &checkpoint);
        if !checkpoint.name.is_empty() {
            batch.put(keys::checkpoint_name(cell.id, &checkpoint.name), record::encode_number(checkpoint.id.0));
        }
        self.keep_checkpoint(&mut batch, new.op_id, &checkpoint);
        self.meta.write(batch)?;
        Ok(checkpoint)
    }

    /// The checkpoints of a space, newest first.
    pub fn list_checkpoints(&self, cell: &SpaceCell) -> Result<Vec<Checkpoint>> {
        let (start, end) = keys::checkpoints(cell.id);
        let mut out = Vec::new();
        self.meta.scan(&start, &end, &mut |_, value| {
            out.push(record::decode::<v1::Checkpoint, _>(value, "checkpoint")?);
            Ok(Step::Next)
        })?;
        Ok(out)
    }

    /// Takes the name of a point away. The history stays. Fails with `Refused` when the checkpoint is pinned.
    pub fn delete_checkpoint(&self, cell: &SpaceCell, op_id: OpId, text: &str) -> Result<Checkpoint> {
        let _state = cell.lock();
        if let Some(done) = self.answered(op_id)? {
            return record::decode::<v1::Checkpoint, _>(&done.body, "answer of an operation");
        }
        let checkpoint = self.checkpoint(cell, text)?;
        if checkpoint.pinned {
            return Err(Error::refused(format!(
                "the checkpoint {text:?} is pinned; unpin it first with `agfs checkpoint pin --off`"
            )));
        }
        let mut batch = Batch::new();
        batch.delete(keys::checkpoint(cell.id, checkpoint.id));
        if !checkpoint.name.is_empty() {
            batch.delete(keys::checkpoint_name(cell.id, &checkpoint.name));
        }
        self.keep_checkpoint(&mut batch, op_id, &checkpoint);
        self.meta.write(batch)?;
        Ok(checkpoint)
    }

    /// Keeps a checkpoint from expiry, or lets it expire again.
    pub fn pin_checkpoint(&self, cell: &SpaceCell, op_id: OpId, text: &str, pinned: bool) -> Result<Checkpoint> {
        let _state = cell.lock();
        if let Some(done) = self.answered(op_id)? {
            return record::decode::<v1::Checkpoint, _>(&done.body, "answer of an operation");
        }
        let checkpoint = Checkpoint { pinned, ..self.checkpoint(cell, text)? };
        let mut batch = Batch::new();
        self.put_checkpoint(&mut batch, &checkpoint);
        self.keep_checkpoint(&mut batch, op_id, &checkpoint);
        self.meta.write(batch)?;
        Ok(checkpoint)
    }

    /// Names the state that a rollback leaves, in the batch that carries the rollback out.
    pub(super) fn keep_before_rollback(
        &self,
        batch: &mut Batch,
        at: Point,
        origin: &Origin,
        space: SpaceId,
    ) -> Result<()> {
        let checkpoint = Checkpoint {
            id: CheckpointId(self.alloc.next("checkpoint")?),
            space,
            name: String::new(),
            at,
            cause: Cause::BeforeRollback,
            author: origin.author.clone(),
            note: format!("before {}", origin.op_id),
            pinned: false,
            created: origin.time,
        };
        self.put_checkpoint(batch, &checkpoint);
        Ok(())
    }

    fn put_checkpoint(&self, batch: &mut Batch, checkpoint: &Checkpoint) {
        batch.put(keys::checkpoint(checkpoint.space, checkpoint.id), record::encode::<v1::Checkpoint>(checkpoint));
    }

    fn keep_checkpoint(&self, batch: &mut Batch, op_id: OpId, checkpoint: &Checkpoint) {
        let body = record::encode::<v1::Checkpoint>(checkpoint).to_vec();
        dedup::keep(
            batch,
            op_id,
            Answer { from: checkpoint.at.seq, after: checkpoint.at, space: checkpoint.space, body },
        );
    }
}
