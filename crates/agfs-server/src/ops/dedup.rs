//! Answers by operation id: a call that comes again is answered, not redone. The same records lead from an operation
//! id to the state after it.

use crate::engine::Engine;
use crate::model::{keys, record};
use crate::store::Batch;
use agfs_core::error::{Error, Result};
use agfs_core::id::{OpId, Seq, SpaceId};
use agfs_core::space::Point;
use agfs_proto::{FromWire, Message, ToWire, v1};

/// The answer of a call that was carried out.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The head before it.
    pub from: Seq,
    /// The state after it.
    pub after: Point,
    /// The space it was made in.
    pub space: SpaceId,
    /// For calls that answer more than a range of seqs: their answer, encoded.
    pub body: Vec<u8>,
}

impl Engine {
    /// The answer of a call that was already carried out, or `None`. Fails with `InvalidArgument` for the zero id.
    pub(super) fn answered(&self, op: OpId) -> Result<Option<Answer>> {
        if op == OpId::default() {
            return Err(Error::invalid("a mutating call needs an operation id that is not zero"));
        }
        self.answer_of(op)
    }

    /// The stored answer of an operation.
    pub(super) fn answer_of(&self, op: OpId) -> Result<Option<Answer>> {
        let Some(bytes) = self.meta.get(&keys::answer(op))? else { return Ok(None) };
        let stored: v1::BatchResult = record::message(&bytes, "answer of an operation")?;
        let after = stored.after.map(Point::from_wire).transpose()?;
        Ok(Some(Answer {
            from: Seq(stored.from),
            after: after.ok_or_else(|| Error::corrupt(format!("the stored answer of {op} is damaged")))?,
            space: SpaceId(stored.space),
            body: stored.answer,
        }))
    }
}

/// Puts the answer of `op` into the batch that carries it out.
pub(super) fn keep(batch: &mut Batch, op: OpId, answer: Answer) {
    let stored = v1::BatchResult {
        from: answer.from.0,
        after: Some(answer.after.to_wire()),
        space: answer.space.0,
        answer: answer.body,
    };
    batch.put(keys::answer(op), stored.encode_to_vec());
}
