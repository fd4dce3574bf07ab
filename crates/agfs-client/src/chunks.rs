//! Chunks on their way to and from the server, on a channel of their own. Every chunk that arrives is verified.

use crate::chunking::{EncodedChunk, decode};
use crate::connection::Connection;
use crate::retry::{Effort, Failure, Policy};
use crate::system::random_u64;
use agfs_core::{ChunkHash, Error, Result};
use agfs_proto::v1;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use rustc_hash::FxHashSet;
use tokio::time::Instant;
use tonic::Streaming;

/// The most bytes of chunks in one message of an upload.
const PART: usize = 4 << 20;
/// How many hashes go into one call.
const HASHES_A_CALL: usize = 4_096;

/// Chunks as they arrive, each once, verified and unpacked, in no particular order.
pub type ChunkStream = BoxStream<'static, Result<(ChunkHash, Bytes)>>;

/// Groups chunks into messages.
fn parts(chunks: &[EncodedChunk]) -> Vec<v1::PutChunksRequest> {
    let (mut parts, mut part, mut size) = (Vec::new(), Vec::new(), 0usize);
    for chunk in chunks {
        if !part.is_empty() && size.saturating_add(chunk.data.len()) > PART {
            parts.push(v1::PutChunksRequest { chunks: std::mem::take(&mut part) });
            size = 0;
        }
        size = size.saturating_add(chunk.data.len());
        part.push(chunk.clone().into_wire());
    }
    if !part.is_empty() {
        parts.push(v1::PutChunksRequest { chunks: part });
    }
    parts
}

impl Connection {
    /// Stores chunks. Repeating is harmless.
    pub async fn put_chunks(&self, chunks: Vec<EncodedChunk>) -> Result<()> {
        if chunks.is_empty() {
            return Ok(());
        }
        let send = || self.put_once(&chunks);
        Ok(self.call("sending contents", Effort::Long, send).await?)
    }

    async fn put_once(&self, chunks: &[EncodedChunk]) -> Result<(), Failure> {
        self.bulk().put_chunks(tokio_stream::iter(parts(chunks))).await?;
        Ok(())
    }

    /// Which of the chunks the server has, one answer for each hash.
    pub async fn have_chunks(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>> {
        let send = || self.have_once(hashes);
        Ok(self.call("asking for known contents", Effort::Short, send).await?)
    }

    async fn have_once(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Failure> {
        let mut have = Vec::with_capacity(hashes.len());
        for part in hashes.chunks(HASHES_A_CALL) {
            let request = v1::HaveChunksRequest { hashes: part.iter().map(|h| h.0.to_vec()).collect() };
            let reply = self.bulk().have_chunks(request).await?.into_inner();
            if reply.have.len() != part.len() {
                return Err(Error::internal("the server answered for another number of chunks than asked").into());
            }
            have.extend(reply.have);
        }
        Ok(have)
    }

    /// Stores those of the chunks that the server lacks; one attempt.
    pub(crate) async fn send_ahead(&self, chunks: &[EncodedChunk]) -> Result<(), Failure> {
        if chunks.is_empty() {
            return Ok(());
        }
        let hashes: Vec<ChunkHash> = chunks.iter().map(|c| c.hash).collect();
        let have = self.have_once(&hashes).await?;
        let lacking: Vec<EncodedChunk> =
            chunks.iter().zip(have).filter(|(_, have)| !have).map(|(chunk, _)| chunk.clone()).collect();
        if lacking.is_empty() { Ok(()) } else { self.put_once(&lacking).await }
    }

    /// The chunks with these hashes. A broken transfer goes on with what is missing; ends after an error: `NotFound` when the
    /// server lacks one, `Corrupt` when one arrives damaged.
    pub fn get_chunks(&self, hashes: &[ChunkHash]) -> ChunkStream {
        let missing: FxHashSet<ChunkHash> = hashes.iter().copied().collect();
        let get = Get { conn: self.clone(), missing, stream: None, failures: 0, lost: None, ended: false };
        futures::stream::unfold(get, |mut get| async move { get.next().await.map(|item| (item, get)) }).boxed()
    }

    /// One chunk, verified and unpacked. Fails with `NotFound`, `Corrupt`.
    pub async fn get_chunk(&self, hash: ChunkHash) -> Result<Bytes> {
        match self.get_chunks(&[hash]).next().await {
            Some(chunk) => chunk.map(|(_, data)| data),
            None => Err(Error::not_found(format!("the server has no chunk {hash}"))),
        }
    }
}

struct Get {
    conn: Connection,
    missing: FxHashSet<ChunkHash>,
    stream: Option<Streaming<v1::Chunk>>,
    failures: u32,
    /// Since when nothing has arrived.
    lost: Option<Instant>,
    ended: bool,
}

impl Get {
    async fn next(&mut self) -> Option<Result<(ChunkHash, Bytes)>> {
        while !self.ended && !self.missing.is_empty() {
            let failure = match self.step().await {
                Ok(Some(chunk)) => return Some(Ok(chunk)),
                Ok(None) => continue,
                Err(failure) => failure,
            };
            self.stream = None;
            self.failures = self.failures.saturating_add(1);
            let lost = self.lost.get_or_insert_with(Instant::now).elapsed();
            match Policy::new(self.conn.io_timeout()).pause(&failure, self.failures, lost, random_u64()) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => {
                    self.ended = true;
                    let server = self.conn.server();
                    return Some(Err(failure.error.context(format!("reading contents from {server}"))));
                }
            }
        }
        None
    }

    async fn step(&mut self) -> Result<Option<(ChunkHash, Bytes)>, Failure> {
        let wait = self.conn.io_timeout();
        let timed_out =
            |_| Error::new(agfs_core::ErrorKind::TimedOut, format!("no chunk came for {} s", wait.as_secs()));
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let hashes = self.missing.iter().take(HASHES_A_CALL).map(|h| h.0.to_vec()).collect();
                let request = v1::GetChunksRequest { hashes };
                let mut client = self.conn.bulk();
                let reply = tokio::time::timeout(wait, client.get_chunks(request)).await.map_err(timed_out)??;
                self.stream.insert(reply.into_inner())
            }
        };
        let Some(chunk) = tokio::time::timeout(wait, stream.message()).await.map_err(timed_out)?? else {
            // The end of one part of a long list; or the server left something out without saying so.
            self.stream = None;
            if self.lost.is_some() || self.failures > 0 || self.missing.is_empty() {
                return Err(Error::not_found("the server left chunks out").into());
            }
            self.lost = Some(Instant::now());
            return Ok(None);
        };
        let chunk = EncodedChunk::from_wire(chunk)?;
        if !self.missing.contains(&chunk.hash) {
            return Ok(None);
        }
        let data = decode(&chunk)?;
        self.missing.remove(&chunk.hash);
        self.lost = None;
        self.failures = 0;
        Ok(Some((chunk.hash, data)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunking::encode;

    #[test]
    fn messages_of_an_upload_stay_small_and_lose_nothing() {
        let noise = |i: u32| {
            let mut bytes = vec![0u8; 700_000];
            blake3::Hasher::new().update(&i.to_le_bytes()).finalize_xof().fill(&mut bytes);
            encode(Bytes::from(bytes))
        };
        let chunks: Vec<_> = (0..20).map(noise).collect();
        let parts = parts(&chunks);
        assert!(parts.len() > 2);
        let sizes: Vec<usize> = parts.iter().map(|p| p.chunks.iter().map(|c| c.data.len()).sum()).collect();
        assert!(sizes.iter().all(|&s| s <= PART && s > 0), "{sizes:?}");
        let sent: Vec<Vec<u8>> = parts.into_iter().flat_map(|p| p.chunks).map(|c| c.hash).collect();
        assert_eq!(sent, chunks.iter().map(|c| c.hash.0.to_vec()).collect::<Vec<_>>());
    }
}
