//! Committing a file: one version for what changed since the last one.
//!
//! A commit first captures: it reads what it needs while changes wait, so that a version is never a mixture. Then it sends;
//! what changes meanwhile belongs to the next version. When it fails, everything is uncommitted again.

use super::chunker::{self, Large};
use super::extents::Extents;
use super::inode::{Base, DataState, InodeData};
use super::local::{Local, Part, stored_blocks};
use crate::tree::TreeNode;
use crate::upstream::Durable;
use agfs_client::EncodedChunk;
use agfs_core::attr::AttrChange;
use agfs_core::manifest::{Extent, Manifest, Splice};
use agfs_core::op::{ContentEdit, Op, TimedOp};
use agfs_core::{ChunkHash, Error, ErrorKind, Result, Seq, Timestamp};
use bytes::Bytes;
use rangemap::RangeSet;
use std::sync::Arc;

/// How much of a file is read at once for a commit, in bytes.
const STEP: u64 = 4 << 20;
/// How often a commit that met another one is made again.
const ATTEMPTS: usize = 4;
/// In a file changed in place, the most block runs that are sent as such; more than that, and it is sent whole.
const MAX_RUNS: usize = 4_096;

/// What a commit sends.
struct Capture {
    /// `None` when only times changed.
    edit: Option<ContentEdit>,
    chunks: Vec<EncodedChunk>,
    /// The version that the file's base was.
    base: u64,
    /// The hash of the file's base.
    base_hash: ChunkHash,
    mtime: Timestamp,
    ctime: Timestamp,
    atime: Option<Timestamp>,
    mode: Option<u32>,
}

/// How the content is to be captured.
enum Way {
    Times,
    /// With the content and where it is not a hole, if that takes no time.
    Small(Option<(Bytes, RangeSet<u64>)>),
    Whole,
    Splices(RangeSet<u64>),
}

/// Lets changes go on when a capture ends, however it ends.
struct Capturing<'a>(&'a InodeData);

impl Drop for Capturing<'_> {
    fn drop(&mut self) {
        self.0.state.lock().capturing = false;
        self.0.captured.notify_waiters();
    }
}

impl InodeData {
    /// Commits what is uncommitted, as one version. Returns its sequence number, or `None` when there was nothing to commit
    /// (also for a file that no name leads to).
    ///
    /// # Errors
    /// What the server or the local disk fails with; everything stays for another attempt.
    pub async fn commit(self: &Arc<Self>, durable: Durable) -> Result<Option<Seq>> {
        if !self.is_dirty() {
            return Ok(None);
        }
        let _one = self.commit.lock().await;
        let (mut whole, mut committed) = (false, None);
        for _ in 0..ATTEMPTS {
            let Some(capture) = self.capture(whole).await.inspect_err(|e| self.failed(e))? else {
                return Ok(committed);
            };
            match self.send(capture, durable).await {
                Ok(seq) => {
                    committed = Some(seq);
                    return Ok(committed);
                }
                // Somebody else's version came first. Ours is the later close: it goes on top, whole.
                Err(e) if e.kind() == ErrorKind::Conflict => whole = true,
                Err(e) if matches!(e.kind(), ErrorKind::Stale | ErrorKind::NotFound) => {
                    self.mark_gone(None, None);
                    return Ok(committed);
                }
                Err(e) => {
                    self.failed(&e);
                    return Err(e);
                }
            }
        }
        let e = Error::new(ErrorKind::Conflict, format!("{} was changed elsewhere each time", self.id));
        self.failed(&e);
        Err(e)
    }

    /// Returns when no commit is under way; none begins while the result lives.
    pub async fn no_commit(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.commit.lock().await
    }

    fn failed(&self, error: &Error) {
        self.state.lock().failure = Some(error.clone());
        tracing::warn!(file = %self.world.describe(self.id), %error, "a commit failed; the data is kept for another attempt");
    }

    /// Captures what is uncommitted; `None` when there is nothing.
    async fn capture(&self, whole: bool) -> Result<Option<Capture>> {
        let (way, mut capture, size) = {
            let mut state = self.state.lock();
            let Some((way, capture, size)) = Self::begin(&mut state, whole)? else { return Ok(None) };
            if let Way::Small(Some(_)) | Way::Times = way {
                Self::taken(&mut state);
            } else {
                state.capturing = true;
            }
            (way, capture, size)
        };
        let up = self.world.up.as_ref();
        let capturing = match way {
            Way::Times => return Ok(Some(capture)),
            Way::Small(Some((raw, data))) => {
                let made = chunker::small(up, raw, &data).await.inspect_err(|_| self.put_back())?;
                return Ok(Some(capture.with(made)));
            }
            Way::Small(None) | Way::Whole | Way::Splices(_) => Capturing(self),
        };
        match way {
            Way::Times | Way::Small(_) => {
                let (data, raw) = (self.captured_data().await?, self.read_captured(0..size).await?);
                capture = capture.with(chunker::small(up, raw, &data).await?);
            }
            Way::Whole => capture.edit = Some(ContentEdit::Whole(self.capture_large(size).await?)),
            Way::Splices(ranges) => capture = self.capture_splices(capture, ranges, size).await?,
        }
        Self::taken(&mut self.state.lock());
        drop(capturing);
        Ok(Some(capture))
    }

    /// Decides how to capture. In memory and small, it is done at once.
    fn begin(state: &mut DataState, whole: bool) -> Result<Option<(Way, Capture, u64)>> {
        let gone = state.gone;
        let Some(local) = state.local.as_ref().filter(|local| local.changed() && !gone) else { return Ok(None) };
        let (base, size) = (&state.base.node, local.size);
        let way = if !local.content_changed() {
            Way::Times
        } else if chunker::is_small(size) {
            Way::Small(if local.all_in_memory() { Some(Self::copy(local, size)?) } else { None })
        } else {
            let ranges = local.differing_blocks(base.size());
            let bytes: u64 = ranges.iter().map(|r| r.end - r.start).sum();
            let in_place = !whole && !local.without_base() && ranges.len() <= MAX_RUNS && bytes <= size / 2;
            if in_place { Way::Splices(ranges) } else { Way::Whole }
        };
        let Some(local) = &state.local else { return Ok(None) };
        let capture = Capture {
            edit: None,
            chunks: Vec::new(),
            base: state.base.node.version_no,
            base_hash: state.base.node.content().map(|c| c.hash).unwrap_or_default(),
            mtime: local.mtime,
            ctime: local.ctime,
            atime: local.atime,
            mode: local.mode,
        };
        Ok(Some((way, capture, size)))
    }

    /// The whole of a small content in which the base has no part, and where it is not a hole.
    fn copy(local: &Local, size: u64) -> Result<(Bytes, RangeSet<u64>)> {
        let empty = Extents::new(Manifest::empty());
        let parts = local.parts(0..size, Some(&empty))?.unwrap_or_default();
        let mut out = bytes::BytesMut::with_capacity(usize::try_from(size).unwrap_or(0));
        for part in parts {
            match part {
                Part::Here(bytes) => out.extend_from_slice(&bytes),
                Part::Base(piece) => out.resize(out.len() + piece.len as usize, 0),
            }
        }
        Ok((out.freeze(), stored_blocks(&local.data(&empty), size)))
    }

    fn taken(state: &mut DataState) {
        if let Some(local) = &mut state.local {
            local.capture();
        }
    }

    fn put_back(&self) {
        if let Some(local) = &mut self.state.lock().local {
            local.put_back();
        }
    }

    /// Where what is being captured is not a hole.
    async fn captured_data(&self) -> Result<RangeSet<u64>> {
        loop {
            let node = {
                let mut state = self.state.lock();
                match (Self::inline_extents(&mut state), &state.local) {
                    (Some(extents), Some(local)) => return Ok(stored_blocks(&local.data(&extents), local.size)),
                    (_, None) => return Ok(RangeSet::new()),
                    (None, _) => state.base.node.clone(),
                }
            };
            self.load_extents(&node).await?;
        }
    }

    async fn capture_large(&self, size: u64) -> Result<Vec<Extent>> {
        let data = self.captured_data().await?;
        let mut large = Large::new(self.world.up.as_ref());
        let mut at = 0;
        for range in data.iter() {
            if range.start > at {
                large.hole(range.start - at).await?;
            }
            at = range.start;
            while at < range.end {
                let end = range.end.min(at + STEP);
                large.data(self.read_captured(at..end).await?).await?;
                at = end;
            }
        }
        if at < size {
            large.hole(size - at).await?;
        }
        large.finish().await
    }

    async fn capture_splices(&self, mut capture: Capture, ranges: RangeSet<u64>, size: u64) -> Result<Capture> {
        let mut splices = Vec::with_capacity(ranges.len());
        let written = self.state.lock().local.as_ref().map(|local| local.written().clone()).unwrap_or_default();
        let mut ready = 0;
        for range in ranges.iter() {
            let mut at = range.start;
            while at < range.end {
                let end = range.end.min(at + STEP);
                let bytes = self.read_captured(at..end).await?;
                let (with, chunks) = chunker::run(self.world.up.as_ref(), at, bytes, &written).await?;
                ready += chunks.iter().map(|c| c.data.len() as u64).sum::<u64>();
                capture.chunks.extend(chunks);
                splices.push(Splice { offset: at, len: end - at, with });
                at = end;
                if ready >= STEP {
                    self.world.up.put_chunks(std::mem::take(&mut capture.chunks)).await?;
                    ready = 0;
                }
            }
        }
        capture.edit = Some(ContentEdit::Splices { base: capture.base_hash, splices, size });
        Ok(capture)
    }

    async fn send(&self, capture: Capture, durable: Durable) -> Result<Seq> {
        let Capture { edit, chunks, base, base_hash: _, mtime, ctime, atime, mode } = capture;
        let times_only = edit.is_none();
        let made = match &edit {
            Some(ContentEdit::Whole(extents)) => Manifest::new(extents.iter().copied()).ok().map(|m| m.content_hash()),
            Some(ContentEdit::Splices { .. }) | None => None,
        };
        // A change of attributes that came after the last write has been shown already.
        let time = self.world.tree.node(self.id).map_or(ctime, |node| node.attr.ctime.max(ctime));
        let timed = |op| TimedOp { time, op };
        let set = |change| timed(Op::SetAttr { file_id: self.id, change });
        let mut ops = match edit {
            Some(edit) => vec![timed(Op::SetContent { file_id: self.id, edit, mtime, mode })],
            None => vec![set(AttrChange { mtime: Some(mtime), mode, ..AttrChange::default() })],
        };
        if atime.is_some() {
            ops.push(set(AttrChange { atime, ..AttrChange::default() }));
        }
        let seq = self.world.apply_with(ops, chunks, durable).await.inspect_err(|_| self.put_back())?;
        // After a reset the tree may have forgotten the file.
        let current = self.world.tree.fetch(self.world.up.as_ref(), self.id).await.ok();
        let ours = |state: &DataState, node: &TreeNode| {
            if times_only {
                // Somebody else may have written meanwhile: times go onto any content, what is kept here onto its own alone.
                return node.same_content(&state.base.node);
            }
            node.version == seq || (made.is_some() && node.content().map(|c| c.hash) == made)
        };
        let mut state = self.state.lock();
        let before = state.local.as_ref().map_or(0, Local::pending);
        state.failure = None;
        match current {
            // Those who hold it are shown what is here.
            _ if state.gone => {
                state.local.as_mut().map(Local::forget_pending);
            }
            Some(node) if ours(&state, &node) => {
                self.world.known.pages_became(self.id, base, node.version_no);
                state.base = Base { node, extents: None };
                if let Some(local) = &mut state.local {
                    local.committed();
                }
            }
            // Somebody else's version is on top of ours by now: what was not changed since follows the tree.
            Some(_) if !state.local.as_ref().is_some_and(Local::changed) => state.local = None,
            // Changed since, on a base that is none any more; or the file is gone, or cannot be looked at.
            _ => {
                if let Some(local) = &mut state.local {
                    local.put_back();
                }
            }
        }
        let after = state.local.as_ref().map_or(0, Local::pending);
        drop(state);
        self.world.sub_pending(before.saturating_sub(after));
        Ok(seq)
    }
}

impl Capture {
    fn with(mut self, (extents, chunks): (Vec<Extent>, Vec<EncodedChunk>)) -> Self {
        self.edit = Some(ContentEdit::Whole(extents));
        self.chunks = chunks;
        self
    }
}
