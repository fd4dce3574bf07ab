//! Turning what a commit captures into extents and chunks. Large contents are sent ahead in portions, so that a file of
//! any size takes little memory.

use crate::upstream::Upstream;
use agfs_client::EncodedChunk;
use agfs_client::chunking::{Splitter, encode};
use agfs_core::manifest::{BLOCK, Extent, SINGLE_CHUNK};
use agfs_core::{Error, Result};
use bytes::Bytes;

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

/// One small content: its extents and its one chunk, which is offered to the cache.
pub(super) async fn small(up: &dyn Upstream, raw: Bytes) -> Result<(Vec<Extent>, Vec<EncodedChunk>)> {
    if raw.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let chunk = pack(raw.clone()).await?;
    up.keep_chunk(chunk.hash, raw);
    Ok((vec![Extent::whole(chunk.hash, u64::from(chunk.raw_len))], vec![chunk]))
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

/// The extents and chunks of a block-aligned run of a file changed in place: a chunk for each block, longer ones for long
/// runs, nothing for zeros.
pub(super) async fn run(up: &dyn Upstream, bytes: Bytes) -> Result<(Vec<Extent>, Vec<EncodedChunk>)> {
    let step = if bytes.len() > LONG_BLOCK { LONG_BLOCK } else { BLOCK as usize };
    let (mut extents, mut chunks) = (Vec::new(), Vec::new());
    for from in (0..bytes.len()).step_by(step) {
        let raw = bytes.slice(from..bytes.len().min(from + step));
        if raw.iter().fold(0u8, |all, byte| all | byte) == 0 {
            extents.push(Extent::hole(raw.len() as u64));
            continue;
        }
        let chunk = pack(raw.clone()).await?;
        up.keep_chunk(chunk.hash, raw);
        extents.push(Extent::whole(chunk.hash, u64::from(chunk.raw_len)));
        chunks.push(chunk);
    }
    Ok((extents, chunks))
}

/// Whether a content of this size is one chunk.
pub(super) const fn is_small(size: u64) -> bool {
    size <= SINGLE_CHUNK
}
