//! What a mount that was killed has left in its journal. Reads only; a damaged tail ends what can be read, and says so.

use super::{SUFFIX, record, remove};
use crate::chunking::EncodedChunk;
use crate::transfer::local_error;
use agfs_core::op::{Author, TimedOp};
use agfs_core::{OpId, Result, SpaceId};
use agfs_proto::v1::journal_record::Record;
use agfs_proto::{FromWire, convert};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Changes that are to be sent together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftBatch {
    /// The id under which they were sent before, perhaps in vain; `None` for what was never sent.
    pub op_id: Option<OpId>,
    /// The operations.
    pub ops: Vec<TimedOp>,
    /// The chunks that they name.
    pub chunks: Vec<EncodedChunk>,
}

/// Everything that a journal holds and the server was not known to have.
#[derive(Debug)]
pub struct Left {
    /// The space.
    pub space: SpaceId,
    /// Who made the changes.
    pub author: Author,
    /// In the order in which they were made.
    pub batches: Vec<LeftBatch>,
    /// Where reading ended before the end, and why.
    pub damage: Option<String>,
    segments: Vec<PathBuf>,
}

struct Entry {
    number: u64,
    batch: LeftBatch,
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    head: Option<(SpaceId, Author)>,
    entries: VecDeque<Entry>,
    /// Batches as sent, by the last entry of each.
    sent: Vec<(u64, OpId)>,
    confirmed: u64,
    next: Option<u64>,
}

impl Left {
    /// What is left in `dir`; `None` when there is no journal. Fails as the local disk does, and for a record that another
    /// version of this program has written.
    pub fn read(dir: &Path) -> Result<Option<Left>> {
        let segments = segments(dir)?;
        let (mut reading, mut damage) = (Reading::default(), None);
        for path in &segments {
            let bytes = std::fs::read(path).map_err(|e| local_error(path, &e))?;
            let mut rest = &bytes[..];
            while let Some((record, len)) = record::decode(rest) {
                if !reading.take(record)? {
                    break;
                }
                rest = rest.get(len..).unwrap_or_default();
            }
            if !rest.is_empty() {
                damage = Some(format!("{} ends in {} bytes that are no record", path.display(), rest.len()));
            }
        }
        let Some((space, author)) = reading.head.take() else {
            return Ok(None);
        };
        Ok(Some(Left { space, author, batches: reading.batches(), damage, segments }))
    }

    /// Takes the journal away: everything in it is at the server, or kept elsewhere. Fails as the local disk does.
    pub fn remove(self) -> Result<()> {
        self.segments.iter().try_for_each(|path| remove(path))
    }
}

impl Reading {
    /// Takes a record in; false where something is missing before it.
    fn take(&mut self, record: Record) -> Result<bool> {
        match record {
            Record::Head(head) => {
                let author = head.author.map(Author::from_wire).transpose()?.unwrap_or_default();
                self.head.get_or_insert((SpaceId(head.space), author));
            }
            Record::Changes(changes) => {
                if self.next.is_some_and(|next| next != changes.number) {
                    return Ok(false);
                }
                self.next = changes.number.checked_add(1);
                let chunks = changes.chunks.into_iter().map(EncodedChunk::from_wire).collect::<Result<_>>()?;
                let batch = LeftBatch { op_id: None, ops: convert::all(changes.ops)?, chunks };
                self.entries.push_back(Entry { number: changes.number, batch });
            }
            Record::Sent(sent) => self.sent.push((sent.through, OpId::from_wire(sent.op_id)?)),
            Record::Confirmed(confirmed) => self.confirmed = self.confirmed.max(confirmed.through),
        }
        Ok(true)
    }

    /// What is not confirmed, grouped as it was sent.
    fn batches(mut self) -> Vec<LeftBatch> {
        let mut batches = Vec::new();
        for (through, op_id) in std::mem::take(&mut self.sent) {
            let mut batch = LeftBatch { op_id: Some(op_id), ..LeftBatch::default() };
            while let Some(entry) = self.entries.pop_front_if(|entry| entry.number <= through) {
                batch.ops.extend(entry.batch.ops);
                batch.chunks.extend(entry.batch.chunks);
            }
            if through > self.confirmed && !batch.ops.is_empty() {
                batches.push(batch);
            }
        }
        batches.extend(self.entries.into_iter().filter(|e| e.number > self.confirmed).map(|e| e.batch));
        batches
    }
}

/// The segments in `dir`, in order.
fn segments(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|e| local_error(dir, &e))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| local_error(dir, &e))?.path();
        if path.to_string_lossy().ends_with(SUFFIX) {
            found.push(path);
        }
    }
    // The number of the first entry is in the name, with as many digits as a number can have.
    found.sort();
    Ok(found)
}
