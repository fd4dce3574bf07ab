//! Reading a file: uncommitted bytes over the base version, chunks by way of the cache, and the next ones ahead of time.

use super::extents::{Extents, Piece};
use super::inode::{DataState, InodeData};
use super::local::{Local, Part, stored_blocks};
use crate::tree::TreeNode;
use agfs_core::{Error, ErrorKind, Result};
use bytes::{Bytes, BytesMut};
use std::ops::Range;
use std::sync::Arc;

/// How many chunks are asked for ahead of a reader that goes on where it was.
const AHEAD_CHUNKS: usize = 6;
/// A reader that has got within this many bytes of what was asked for gets more asked for.
const AHEAD_BYTES: u64 = 4 << 20;

enum Plan {
    Parts(Vec<Part>, u64),
    NeedExtents(Arc<TreeNode>),
}

impl InodeData {
    /// The bytes of `range`, fewer where the file ends.
    ///
    /// # Errors
    /// `Corrupt` with the file and version named, `Io`, and what fetching a chunk fails with.
    pub async fn read(self: &Arc<Self>, range: Range<u64>) -> Result<Bytes> {
        loop {
            let plan = {
                let mut state = self.current();
                self.read_ahead(&mut state, &range);
                Self::plan(&mut state, range.clone())?
            };
            match plan {
                Plan::NeedExtents(node) => self.load_extents(&node).await?,
                Plan::Parts(parts, version_no) => return self.assemble(parts, version_no).await,
            }
        }
    }

    /// As [`InodeData::read`], of exactly what a commit captures: changes wait meanwhile, and the tree is not followed.
    pub(super) async fn read_captured(&self, range: Range<u64>) -> Result<Bytes> {
        loop {
            let plan = Self::plan(&mut self.state.lock(), range.clone())?;
            match plan {
                Plan::NeedExtents(node) => self.load_extents(&node).await?,
                Plan::Parts(parts, version_no) => return self.assemble(parts, version_no).await,
            }
        }
    }

    fn plan(state: &mut DataState, range: Range<u64>) -> Result<Plan> {
        let extents = Self::inline_extents(state);
        let version_no = state.base.node.version_no;
        let parts = match &state.local {
            Some(local) => local.parts(range, extents.as_deref())?,
            None => extents.map(|extents| base_parts(&extents, range)),
        };
        Ok(match parts {
            Some(parts) => Plan::Parts(parts, version_no),
            None => Plan::NeedExtents(state.base.node.clone()),
        })
    }

    async fn assemble(&self, parts: Vec<Part>, version_no: u64) -> Result<Bytes> {
        if let [part] = parts.as_slice() {
            return self.part(part, version_no).await;
        }
        let mut out = BytesMut::new();
        for part in &parts {
            out.extend_from_slice(&self.part(part, version_no).await?);
        }
        Ok(out.freeze())
    }

    async fn part(&self, part: &Part, version_no: u64) -> Result<Bytes> {
        let piece = match part {
            Part::Here(bytes) => return Ok(bytes.clone()),
            Part::Base(piece) => piece,
        };
        let len = usize::try_from(piece.len).unwrap_or(usize::MAX);
        let Some(slice) = piece.chunk else { return Ok(vec![0u8; len].into()) };
        let chunk = self.world.up.get_chunk(slice.hash).await.map_err(|e| self.blame(e, version_no))?;
        let from = slice.offset as usize;
        match from.checked_add(len).filter(|to| *to <= chunk.len()) {
            Some(to) => Ok(chunk.slice(from..to)),
            None => Err(self.blame(
                Error::corrupt(format!(
                    "chunk {} has {} bytes, bytes {from} to {} are wanted",
                    slice.hash,
                    chunk.len(),
                    from.saturating_add(len)
                )),
                version_no,
            )),
        }
    }

    /// Names the file and version that an error of a chunk is about. A chunk that is missing is damage, not absence.
    fn blame(&self, error: Error, version_no: u64) -> Error {
        let what = format!("{} version {version_no}", self.world.describe(self.id));
        match error.kind() {
            ErrorKind::NotFound => Error::corrupt(format!("{what}: {}", error.message())),
            _ => error.context(what),
        }
    }

    /// Asks for the chunks that a sequential reader comes to next.
    fn read_ahead(&self, state: &mut DataState, range: &Range<u64>) {
        let sequential = range.start == state.read_end && range.start > 0;
        state.read_end = range.end;
        if !sequential {
            state.ahead_to = range.end;
            return;
        }
        if state.local.as_ref().is_some_and(Local::differs) || range.end.saturating_add(AHEAD_BYTES) < state.ahead_to {
            return;
        }
        let (Some(extents), Ok(runtime)) = (state.base.extents.clone(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let hashes = extents.chunks_after(range.end.saturating_sub(1), AHEAD_CHUNKS);
        state.ahead_to = range.end.saturating_add(2 * AHEAD_BYTES);
        for hash in hashes {
            let up = self.world.up.clone();
            // Should it fail, the read that needs the chunk says so.
            runtime.spawn(async move { up.get_chunk(hash).await.map(drop) });
        }
    }

    /// The first offset at or after `offset` that is a hole (or data); `None` beyond the end, or when no data follows.
    ///
    /// # Errors
    /// What loading extents fails with.
    pub async fn seek(&self, offset: u64, hole: bool) -> Result<Option<u64>> {
        loop {
            let node = {
                let mut state = self.current();
                if let Some(extents) = Self::inline_extents(&mut state) {
                    let (data, size) = match &state.local {
                        Some(local) => (local.data(&extents), local.size),
                        None => (extents.data(extents.size()).collect(), extents.size()),
                    };
                    if offset >= size {
                        return Ok(None);
                    }
                    let data = stored_blocks(&data, size);
                    return Ok(if hole {
                        Some(data.get(&offset).map_or(offset, |range| range.end.min(size)))
                    } else if data.contains(&offset) {
                        Some(offset)
                    } else {
                        data.overlapping(offset..u64::MAX).next().map(|range| range.start)
                    });
                }
                state.base.node.clone()
            };
            self.load_extents(&node).await?;
        }
    }
}

fn base_parts(extents: &Extents, range: Range<u64>) -> Vec<Part> {
    let range = range.start..range.end.min(extents.size());
    if range.start >= range.end {
        return Vec::new();
    }
    let pieces: Vec<Piece> = extents.pieces(range);
    pieces.into_iter().map(Part::Base).collect()
}
