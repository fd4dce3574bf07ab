//! The journal of a mount's changes that the server does not have: written when they are made, read by the next mount after
//! this process was killed. What survives is what the kernel of this machine has; a sync is not made here, since a program
//! that wants one waits for the server.
//!
//! Segments are files that are only appended to. One is removed when the server has everything in it. When a batch is sent
//! and what a change means are not known here.

mod left;
mod record;
#[cfg(test)]
mod tests;

pub use left::{Left, LeftBatch};

use crate::chunking::EncodedChunk;
use crate::transfer::local_error;
use agfs_core::op::{Author, TimedOp};
use agfs_core::{OpId, Result, SpaceId};
use agfs_proto::v1::journal_record::Record;
use agfs_proto::{ToWire, v1};
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A segment of this many bytes is full.
const SEGMENT: u64 = 64 << 20;
/// A journal of which the server has everything begins anew when it is longer, in bytes.
const WORTH: u64 = 4 << 20;
/// How the name of a segment ends.
const SUFFIX: &str = ".journal";

/// A journal that is written.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    space: SpaceId,
    author: Author,
    /// Full segments, each with its last entry, in order.
    full: VecDeque<(PathBuf, u64)>,
    current: Segment,
    /// The last entry, and the last that the server has.
    last: u64,
    confirmed: u64,
    /// [`SEGMENT`] and [`WORTH`].
    segment: u64,
    worth: u64,
}

#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
    len: u64,
}

impl Journal {
    /// Begins a journal in `dir`, which must hold none: [`Left::read`] says what is there. Fails as the local disk does.
    pub fn begin(dir: &Path, space: SpaceId, author: Author) -> Result<Journal> {
        std::fs::create_dir_all(dir).map_err(|e| local_error(dir, &e))?;
        let current = Segment::create(dir, 1, space, &author)?;
        Ok(Journal {
            dir: dir.to_owned(),
            space,
            author,
            full: VecDeque::new(),
            current,
            last: 0,
            confirmed: 0,
            segment: SEGMENT,
            worth: WORTH,
        })
    }

    /// Writes an entry and returns its number; numbers count up from 1. Fails as the local disk does (`NoSpace`), and then
    /// the journal is as before.
    pub fn append(&mut self, ops: &[TimedOp], chunks: &[EncodedChunk]) -> Result<u64> {
        let number = self.last + 1;
        let chunks = chunks.iter().map(|chunk| chunk.clone().into_wire()).collect();
        let changes = v1::JournalChanges { number, ops: ops.iter().map(ToWire::to_wire).collect(), chunks };
        if self.current.len >= self.segment {
            self.rotate()?;
        }
        self.current.append(Record::Changes(changes))?;
        self.last = number;
        Ok(number)
    }

    /// Notes that the entries up to `through` that are not noted yet are sent as one batch under `op_id`. To be called
    /// before they are: the batch is repeated with the same id then. Fails as the local disk does.
    pub fn sent(&mut self, op_id: OpId, through: u64) -> Result<()> {
        self.current.append(Record::Sent(v1::JournalSent { op_id: op_id.to_wire(), through }))
    }

    /// Notes that the server has the entries up to `through`, and gives their space back. Fails as the local disk does.
    pub fn confirm(&mut self, through: u64) -> Result<()> {
        self.confirmed = self.confirmed.max(through);
        while let Some((path, last)) = self.full.front()
            && *last <= self.confirmed
        {
            remove(path)?;
            self.full.pop_front();
        }
        if self.confirmed >= self.last && self.current.len > self.worth {
            let old = self.current.path.clone();
            self.current = Segment::create(&self.dir, self.last + 1, self.space, &self.author)?;
            return remove(&old);
        }
        self.current.append(Record::Confirmed(v1::JournalConfirmed { through: self.confirmed }))
    }

    /// How many entries the server does not have.
    pub const fn unconfirmed(&self) -> u64 {
        self.last - self.confirmed
    }

    /// Ends the journal: removed when the server has everything, else left for the next mount. Fails as the local disk does.
    pub fn end(self) -> Result<()> {
        if self.unconfirmed() > 0 {
            return Ok(());
        }
        self.full.iter().map(|(path, _)| path).chain([&self.current.path]).try_for_each(|path| remove(path))
    }

    fn rotate(&mut self) -> Result<()> {
        let fresh = Segment::create(&self.dir, self.last + 1, self.space, &self.author)?;
        let old = std::mem::replace(&mut self.current, fresh);
        self.full.push_back((old.path, self.last));
        Ok(())
    }
}

impl Segment {
    /// A segment whose first entry is to be `first`.
    fn create(dir: &Path, first: u64, space: SpaceId, author: &Author) -> Result<Segment> {
        let path = dir.join(format!("{first:020}{SUFFIX}"));
        let file = File::options().create(true).truncate(true).write(true).open(&path);
        let file = file.map_err(|e| local_error(&path, &e))?;
        let mut segment = Segment { path, file, len: 0 };
        segment.append(Record::Head(v1::JournalHead { space: space.0, author: Some(author.to_wire()) }))?;
        Ok(segment)
    }

    fn append(&mut self, record: Record) -> Result<()> {
        let bytes = record::encode(record)?;
        match self.file.write_all_at(&bytes, self.len) {
            Ok(()) => {
                self.len += bytes.len() as u64;
                Ok(())
            }
            // What was written of it is no whole record, and is written over by the next.
            Err(e) => Err(local_error(&self.path, &e)),
        }
    }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(local_error(path, &e)),
        _ => Ok(()),
    }
}
