//! Turning what a commit captures into extents and chunks. Large contents are sent ahead in portions, so that a file of
//! any size takes little memory.

use super::local::UNIT;
use crate::upstream::Upstream;
use agfs_client::EncodedChunk;
use agfs_client::chunking::{Splitter, encode};
use agfs_core::manifest::{BLOCK, ChunkSlice, Extent, SINGLE_CHUNK};
use agfs_core::{Error, Result};
use bytes::Bytes;
use rangemap::RangeSet;

/// Up to this size, in bytes, a chunk is packed on the thread that asks.
const INLINE: usize = 32 << 10;
/// How many bytes of packed chunks are sent ahead at once.
const PORTION: usize = 4 << 20;
/// The largest chunk of a file changed in place, in bytes.
const LONG_BLOCK: usize = 512 << 10;

/// Runs work that takes a processor for long where it keeps nobody waiting.
pub(super) async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|e| Error::internal(format!("a worker failed: {e}")))
}

/// One small content, of which `data` are the ranges that are no holes: its extents and its chunk, which is offered to the
/// cache.
pub(super) async fn small(
    up: &dyn Upstream,
    raw: Bytes,
    data: &RangeSet<u64>,
) -> Result<(Vec<Extent>, Vec<EncodedChunk>)> {
    if raw.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    if data.is_empty() {
        return Ok((vec![Extent::hole(raw.len() as u64)], Vec::new()));
    }
    let chunk = pack(raw.clone()).await?;
    up.keep_chunk(chunk.hash, raw);
    Ok((slices(&chunk, 0, data), vec![chunk]))
}

/// The extents of a chunk whose bytes begin at `start` of the file: those in `data` are its own, the others holes.
fn slices(chunk: &EncodedChunk, start: u64, data: &RangeSet<u64>) -> Vec<Extent> {
    let (mut extents, mut at, end) = (Vec::new(), start, start + u64::from(chunk.raw_len));
    for range in data.overlapping(start..end) {
        let (from, to) = (range.start.max(start), range.end.min(end));
        if from > at {
            extents.push(Extent::hole(from - at));
        }
        // A chunk has less than 4 GiB.
        let slice = ChunkSlice { hash: chunk.hash, offset: (from - start) as u32 };
        extents.push(Extent { len: to - from, chunk: Some(slice) });
        at = to;
    }
    if at < end {
        extents.push(Extent::hole(end - at));
    }
    extents
}

async fn pack(raw: Bytes) -> Result<EncodedChunk> {
    if raw.len() <= INLINE { Ok(encode(raw)) } else { elsewhere(move || encode(raw)).await }
}

/// A large content, piece by piece, cut where its bytes say.
pub(super) struct Large<'a> {
    up: &'a dyn Upstream,
    extents: Vec<Extent>,
    splitter: Splitter,
    ready: Vec<EncodedChunk>,
}

impl<'a> Large<'a> {
    pub(super) fn new(up: &'a dyn Upstream) -> Self {
        Large { up, extents: Vec::new(), splitter: Splitter::new(), ready: Vec::new() }
    }

    pub(super) async fn data(&mut self, bytes: Bytes) -> Result<()> {
        let mut splitter = std::mem::take(&mut self.splitter);
        let mut ready = std::mem::take(&mut self.ready);
        (self.splitter, self.ready) = elsewhere(move || {
            splitter.push(&bytes, &mut ready);
            (splitter, ready)
        })
        .await?;
        let size: usize = self.ready.iter().map(|chunk| chunk.data.len()).sum();
        if size >= PORTION { self.send().await } else { Ok(()) }
    }

    pub(super) async fn hole(&mut self, len: u64) -> Result<()> {
        self.end_run().await?;
        self.extents.push(Extent::hole(len));
        Ok(())
    }

    async fn end_run(&mut self) -> Result<()> {
        let splitter = std::mem::take(&mut self.splitter);
        let mut ready = std::mem::take(&mut self.ready);
        let (extents, ready) = elsewhere(move || {
            let extents = splitter.finish(&mut ready);
            (extents, ready)
        })
        .await?;
        self.extents.extend(extents);
        self.ready = ready;
        Ok(())
    }

    async fn send(&mut self) -> Result<()> {
        let chunks = std::mem::take(&mut self.ready);
        for chunk in chunks.iter().filter(|chunk| !chunk.zstd) {
            self.up.keep_chunk(chunk.hash, chunk.data.clone());
        }
        self.up.put_chunks(chunks).await
    }

    /// The extents of the whole content; every chunk has been sent.
    pub(super) async fn finish(mut self) -> Result<Vec<Extent>> {
        self.end_run().await?;
        self.send().await?;
        Ok(self.extents)
    }
}

/// The extents and chunks of a block-aligned run, from `start` on, of a file changed in place: a chunk for each block, longer
/// ones for long runs. What is zeros and not among the bytes `written` is a hole, and so is a whole block of zeros.
pub(super) async fn run(
    up: &dyn Upstream,
    start: u64,
    bytes: Bytes,
    written: &RangeSet<u64>,
) -> Result<(Vec<Extent>, Vec<EncodedChunk>)> {
    let step = if bytes.len() > LONG_BLOCK { LONG_BLOCK } else { BLOCK as usize };
    let (mut extents, mut chunks) = (Vec::new(), Vec::new());
    for from in (0..bytes.len()).step_by(step) {
        let raw = bytes.slice(from..bytes.len().min(from + step));
        if is_zeros(&raw) {
            extents.push(Extent::hole(raw.len() as u64));
            continue;
        }
        let (at, unit) = (start + from as u64, UNIT as usize);
        let data: RangeSet<u64> = (0..raw.len())
            .step_by(unit)
            .map(|i| (at + i as u64..at + raw.len().min(i + unit) as u64, raw.slice(i..raw.len().min(i + unit))))
            .filter(|(range, bytes)| !is_zeros(bytes) || written.overlaps(range))
            .map(|(range, _)| range)
            .collect();
        let chunk = pack(raw.clone()).await?;
        up.keep_chunk(chunk.hash, raw);
        extents.extend(slices(&chunk, at, &data));
        chunks.push(chunk);
    }
    Ok((extents, chunks))
}

fn is_zeros(bytes: &[u8]) -> bool {
    bytes.iter().fold(0u8, |all, byte| all | byte) == 0
}

/// Whether a content of this size is one chunk.
pub(super) const fn is_small(size: u64) -> bool {
    size <= SINGLE_CHUNK
}
