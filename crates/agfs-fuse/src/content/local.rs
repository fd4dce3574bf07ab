//! A file's uncommitted state on this mount: which bytes are here, which of them the server does not have, size and times.
//!
//! Changed under the inode's lock; knows neither the server nor other inodes.

use super::extents::{Extents, Piece};
use super::scratch::{Scratch, ScratchDir};
use agfs_core::manifest::{BLOCK, MAX_FILE_SIZE};
use agfs_core::{Error, ErrorKind, Result, Timestamp};
use bytes::Bytes;
use rangemap::RangeSet;
use std::ops::Range;

/// Up to how many ranges the allocated space is counted exactly.
const COUNTED: usize = 512;
/// The unit of allocation that programs see, in bytes: that of most local file systems.
pub const UNIT: u64 = 4_096;

/// Part of an answer to a read.
#[derive(Clone, Debug)]
pub enum Part {
    /// These bytes.
    Here(Bytes),
    /// A piece of the base.
    Base(Piece),
}

/// What was taken out for a commit, to be put back when it fails.
struct Captured {
    dirty: RangeSet<u64>,
    content: bool,
    pending: u64,
    /// The size captured, and the least since: from there on the next base does not count.
    limit: u64,
}

/// The uncommitted state of a file.
///
/// The file's bytes are: where `present`, those of the scratch; elsewhere, below `base_limit` and where not `hidden`, those of
/// the base; else zeros, which are holes. `dirty` is within `present` and `hidden`.
pub struct Local {
    scratch: Scratch,
    present: RangeSet<u64>,
    hidden: RangeSet<u64>,
    dirty: RangeSet<u64>,
    base_limit: u64,
    captured: Option<Captured>,
    /// Anything changed since the last capture; and bytes or the size did.
    changed: bool,
    content: bool,
    /// Bytes written since the last capture.
    pending: u64,
    /// The size in bytes.
    pub size: u64,
    /// The times that programs see.
    pub mtime: Timestamp,
    /// As `mtime`.
    pub ctime: Timestamp,
    /// A time of last access that was set and is not committed.
    pub atime: Option<Timestamp>,
    /// The mode without the set-id bits that a write took away.
    pub mode: Option<u32>,
}

impl Local {
    /// The state of a file of `size` bytes in which nothing is changed.
    pub fn new(dir: ScratchDir, size: u64, mtime: Timestamp, ctime: Timestamp) -> Self {
        Local {
            scratch: Scratch::new(dir),
            present: RangeSet::new(),
            hidden: RangeSet::new(),
            dirty: RangeSet::new(),
            base_limit: size,
            captured: None,
            changed: false,
            content: false,
            pending: 0,
            size,
            mtime,
            ctime,
            atime: None,
            mode: None,
        }
    }

    /// Whether something is not committed, or is being committed: the base is not what programs see.
    pub const fn differs(&self) -> bool {
        self.changed || self.captured.is_some()
    }

    /// Whether something is not committed and not being committed.
    pub const fn changed(&self) -> bool {
        self.changed
    }

    /// Bytes written that are not committed.
    pub fn pending(&self) -> u64 {
        self.pending + self.captured.as_ref().map_or(0, |c| c.pending)
    }

    /// Whether bytes or the size changed since the last capture, and not times alone.
    pub const fn content_changed(&self) -> bool {
        self.content
    }

    /// The file was changed by a call that left its bytes as they were.
    pub const fn touch(&mut self, now: Timestamp) {
        self.changed = true;
        self.mtime = now;
        self.ctime = now;
    }

    /// Puts bytes at `offset`. Fails with `FileTooLarge`, and as the local disk does.
    pub fn write(&mut self, offset: u64, data: &[u8], now: Timestamp) -> Result<()> {
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= MAX_FILE_SIZE).ok_or_else(|| {
            Error::new(ErrorKind::FileTooLarge, format!("byte {offset} is beyond what a file can have"))
        })?;
        if data.is_empty() {
            return Ok(());
        }
        self.scratch.write(offset, data)?;
        self.present.insert(offset..end);
        self.dirty.insert(offset..end);
        self.size = self.size.max(end);
        self.pending += data.len() as u64;
        self.content = true;
        self.touch(now);
        Ok(())
    }

    /// Cuts or extends the file; to the size it has, it is a change of times. Fails with `FileTooLarge`.
    pub fn resize(&mut self, size: u64, now: Timestamp) -> Result<()> {
        if size > MAX_FILE_SIZE {
            return Err(Error::new(ErrorKind::FileTooLarge, format!("a file cannot have {size} bytes")));
        }
        if size < self.size {
            self.base_limit = self.base_limit.min(size);
            if let Some(captured) = &mut self.captured {
                captured.limit = captured.limit.min(size);
            }
            for ranges in [&mut self.present, &mut self.hidden, &mut self.dirty] {
                ranges.remove(size..u64::MAX);
            }
        }
        self.content |= size != self.size;
        self.size = size;
        self.touch(now);
        Ok(())
    }

    /// Makes a range a hole without changing the size. Fails as the local disk does.
    pub fn zero(&mut self, range: Range<u64>, now: Timestamp) -> Result<()> {
        let range = range.start..range.end.min(self.size);
        if range.start < range.end {
            // What is not present is not read from the scratch; this gives its space back.
            self.scratch.zero(range.start, range.end - range.start)?;
            self.present.remove(range.clone());
            self.hidden.insert(range.clone());
            self.dirty.insert(range);
            self.content = true;
        }
        self.touch(now);
        Ok(())
    }

    /// Sets times explicitly; they survive the commit.
    pub fn set_times(&mut self, atime: Option<Timestamp>, mtime: Option<Timestamp>, now: Timestamp) {
        self.atime = atime.or(self.atime);
        self.mtime = mtime.unwrap_or(self.mtime);
        self.ctime = now;
        self.changed = true;
    }

    /// What a read of `range` consists of; `None` when the base's extents are needed and not given.
    pub fn parts(&self, range: Range<u64>, base: Option<&Extents>) -> Result<Option<Vec<Part>>> {
        let range = range.start..range.end.min(self.size);
        let mut parts = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let here = self.present.get(&at).cloned();
            if let Some(here) = here {
                let end = here.end.min(range.end);
                let mut bytes = vec![0u8; usize::try_from(end - at).unwrap_or(0)];
                self.scratch.read(at, &mut bytes)?;
                parts.push(Part::Here(bytes.into()));
                at = end;
                continue;
            }
            let end = self.present.overlapping(at..range.end).next().map_or(range.end, |next| next.start);
            let masked = self.hidden.get(&at).map(|hidden| hidden.end.min(end));
            let end = masked.unwrap_or_else(|| {
                let hidden = self.hidden.overlapping(at..end).next().map_or(end, |next| next.start);
                // Up to where the base counts, then beyond.
                if at < self.base_limit { hidden.min(self.base_limit) } else { hidden }
            });
            if masked.is_none() && at < self.base_limit {
                let Some(base) = base else { return Ok(None) };
                parts.extend(base.pieces(at..end).into_iter().map(Part::Base));
            } else {
                parts.push(Part::Base(Piece { len: end - at, chunk: None }));
            }
            at = end;
        }
        Ok(Some(parts))
    }

    /// Whether every byte of the file is known here, where reading takes no time.
    pub fn all_in_memory(&self) -> bool {
        self.scratch.in_memory() && self.without_base()
    }

    /// Whether the base has no part in the file.
    pub fn without_base(&self) -> bool {
        let end = self.base_limit.min(self.size);
        let mut rest: RangeSet<u64> = std::iter::once(0..end).filter(|all| all.end > 0).collect();
        for range in self.present.iter().chain(self.hidden.iter()) {
            rest.remove(range.clone());
        }
        rest.is_empty()
    }

    /// The ranges that hold stored bytes, in order; the rest are holes.
    pub fn data(&self, base: &Extents) -> RangeSet<u64> {
        let mut data: RangeSet<u64> = base.data(self.base_limit.min(self.size)).collect();
        for range in self.hidden.iter() {
            data.remove(range.clone());
        }
        for range in self.present.iter() {
            data.insert(range.clone());
        }
        data.remove(self.size..u64::MAX);
        data
    }

    /// The ranges whose bytes were written here.
    pub const fn written(&self) -> &RangeSet<u64> {
        &self.present
    }

    /// The bytes that are stored or will be: what `st_blocks` is made of. Without the base's extents, or with very many
    /// ranges, only roughly: `stored` are the bytes that the base stores.
    pub fn allocated(&self, base: Option<&Extents>, stored: u64) -> u64 {
        let ranges = self.present.len() + self.hidden.len();
        match base.filter(|base| ranges + base.count() <= COUNTED) {
            Some(base) => stored_blocks(&self.data(base), self.size).iter().map(|r| r.end - r.start).sum(),
            None => {
                let here: u64 = self.present.iter().map(|r| r.end - r.start).sum();
                here.max(stored.min(self.base_limit)).min(self.size)
            }
        }
    }

    /// The block-aligned ranges in which the file differs from a base of `base_size` bytes.
    pub fn differing_blocks(&self, base_size: u64) -> RangeSet<u64> {
        let mut ranges = self.dirty.clone();
        let cut = self.base_limit..base_size.min(self.size);
        if cut.start < cut.end {
            ranges.insert(cut);
        }
        // The unit in which the base ends is whole now: written again, it counts as such.
        if base_size < self.size && !base_size.is_multiple_of(UNIT) {
            ranges.insert(base_size - 1..base_size);
        }
        ranges
            .iter()
            .map(|r| r.start / BLOCK * BLOCK..r.end.div_ceil(BLOCK).saturating_mul(BLOCK).min(self.size))
            .filter(|r| r.start < r.end)
            .collect()
    }

    /// Takes out what a commit has captured. Until it ends, further changes are kept apart.
    pub fn capture(&mut self) {
        let dirty = std::mem::take(&mut self.dirty);
        let (content, pending) = (std::mem::take(&mut self.content), std::mem::take(&mut self.pending));
        self.captured = Some(Captured { dirty, content, pending, limit: self.size });
        self.changed = false;
    }

    /// The written bytes need no commit any more: they are shown from here as long as somebody holds the file. Returns how
    /// many they were.
    pub fn forget_pending(&mut self) -> u64 {
        // A commit under way has no say any more: its result is not going to be the base.
        self.put_back();
        std::mem::take(&mut self.pending)
    }

    /// The commit succeeded, and what it made is the base now.
    pub fn committed(&mut self) {
        if let Some(captured) = self.captured.take() {
            self.base_limit = captured.limit;
        }
        if !self.changed {
            self.atime = None;
            self.mode = None;
        }
    }

    /// The commit failed, or its result is not the base: everything is uncommitted again.
    pub fn put_back(&mut self) {
        let Some(captured) = self.captured.take() else { return };
        for range in captured.dirty.iter() {
            self.dirty.insert(range.clone());
        }
        self.dirty.remove(self.size..u64::MAX);
        self.pending += captured.pending;
        self.content |= captured.content;
        self.changed = true;
    }
}

/// The data of a file of `size` bytes in whole units of allocation: what programs see as not a hole.
pub fn stored_blocks(data: &RangeSet<u64>, size: u64) -> RangeSet<u64> {
    let up = |end: u64| end.div_ceil(UNIT).saturating_mul(UNIT).min(size);
    data.iter().map(|r| r.start / UNIT * UNIT..up(r.end)).filter(|r| r.start < r.end).collect()
}
