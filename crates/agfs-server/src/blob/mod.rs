//! Contents: chunks addressed by their hash, kept in pack objects. Knows no file, no tree and no history.
//!
//! A chunk is appended to the open pack, a local file. A full or idle pack is finished (`sealer`), then moved into the
//! object store (`uploader`). A reader looks at memory, then at the local packs, then at the object store. What a chunk
//! is needed for, and when it is not needed any more, is decided above.

mod codec;
mod config;
mod error;
mod index;
mod pack;
mod pack_id;
mod reader;
mod recover;
mod sealer;
mod staging;
#[cfg(test)]
mod tests;
mod uploader;
mod url;
mod writer;

use crate::store::MetaStore;
use agfs_core::manifest::MAX_CHUNK;
use agfs_core::time::Clock;
use agfs_core::{ChunkHash, Error, ErrorKind, Result};
use bytes::Bytes;
use index::Index;
use pack_id::PackIds;
use reader::Reader;
use sealer::SyncRequest;
use staging::Staging;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio_util::sync::{CancellationToken, DropGuard};
use uploader::Uploader;
use writer::Writer;

pub use codec::{EncodedChunk, MAX_ENCODED, decode, encode};
pub use config::BlobConfig;
pub use url::Target;

/// Stores and finds chunks. Dropping it without [`ChunkStore::close`] is what a kill is: nothing that was put is lost,
/// the next start goes on.
pub struct ChunkStore {
    staging: Arc<Staging>,
    writer: Arc<Writer>,
    reader: Arc<Reader>,
    syncs: mpsc::Sender<SyncRequest>,
    puts: Arc<Semaphore>,
    max_pending: usize,
    close_timeout: Duration,
    put_permits: u32,
    cancel: CancellationToken,
    _cancel_on_drop: DropGuard,
}

impl ChunkStore {
    /// Opens the store at `config.url`, takes over what is in the staging directory and starts the background work.
    /// Does not need the object store to be reachable. Must be called within a tokio runtime.
    ///
    /// Fails with `InvalidArgument` on a URL or number that cannot be, with `Refused` when another process uses the
    /// staging directory, and with the disk's errors.
    pub async fn open(config: BlobConfig, meta: Arc<dyn MetaStore>, clock: Arc<dyn Clock>) -> Result<Arc<Self>> {
        let target = Target::open(&config.url)?;
        ChunkStore::open_on(config, target, meta, clock).await
    }

    /// The same with an object store that is there already; `config.url` is not looked at.
    pub async fn open_on(
        config: BlobConfig,
        target: Target,
        meta: Arc<dyn MetaStore>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>> {
        let config = config.checked()?;
        let index = Arc::new(Index(meta));
        let (index_there, dir) = (Arc::clone(&index), config.staging_dir.clone());
        let job = spawn_blocking(move || {
            let lock = recover::lock(&dir)?;
            let staging = Arc::new(Staging::new(dir, lock));
            recover::run(&staging, &index_there).map(|()| staging)
        });
        let staging = job.await.unwrap_or_else(|e| Err(error::task(&e)))?;
        let ids = PackIds::new(clock);
        let writer = Arc::new(Writer::new(Arc::clone(&staging), Arc::clone(&index), ids, config.pack_size));
        let reader =
            Reader::new(Arc::clone(&staging), Arc::clone(&index), target.clone(), config.cache, config.read_ahead);
        let (syncs, requests) = mpsc::channel(1024);
        let cancel = CancellationToken::new();
        let store = ChunkStore {
            writer,
            reader: Arc::new(reader),
            syncs,
            puts: Arc::new(Semaphore::new(config.puts)),
            put_permits: config.puts as u32,
            max_pending: config.max_pending,
            close_timeout: config.close_timeout,
            _cancel_on_drop: cancel.clone().drop_guard(),
            cancel,
            staging,
        };
        store.start(&config, target, index, requests);
        Ok(Arc::new(store))
    }

    fn start(&self, config: &BlobConfig, target: Target, index: Arc<Index>, requests: mpsc::Receiver<SyncRequest>) {
        let (staging, writer) = (&self.staging, &self.writer);
        self.spawn(sealer::run(Arc::clone(staging), Arc::clone(&index), Arc::clone(writer), config.seal_after));
        self.spawn(sealer::run_sync(Arc::clone(staging), Arc::clone(writer), requests));
        let uploader = Uploader { staging: Arc::clone(staging), index, target, retry: config.retry };
        let uploader = Arc::new(uploader);
        for _ in 0..config.uploads {
            self.spawn(Arc::clone(&uploader).run());
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let cancel = self.cancel.clone();
        self.staging.tasks.spawn(async move {
            cancel.run_until_cancelled(task).await;
        });
    }

    /// Stores the chunks that are not there yet and returns how many those were. Each of them is decompressed and
    /// hashed first; those that are there already are not looked at. When it returns they survive a kill of the
    /// process. Waits while too many packs wait for the object store.
    ///
    /// Fails with `InvalidArgument` on a chunk over the size limit and with `Corrupt` on one that is not what its hash
    /// says (none of the call's chunks is stored then), and with `NoSpace` on a full staging disk (some may be).
    pub async fn put(&self, chunks: Vec<EncodedChunk>) -> Result<usize> {
        let max_pending = self.max_pending;
        self.staging.until(|staging| staging.counts().0 < max_pending).await?;
        // A permit goes along into the thread: a caller that gives up does not make room for more work.
        let permit = Arc::clone(&self.puts).acquire_owned().await.map_err(|_| error::closed())?;
        let (writer, reader) = (Arc::clone(&self.writer), Arc::clone(&self.reader));
        let job = move || {
            let _permit = permit;
            let mut new = Vec::with_capacity(chunks.len());
            for chunk in chunks {
                check_limits(&chunk)?;
                if !writer.has(&chunk.hash)? {
                    decode(&chunk).map_err(|e| e.context("a chunk to be stored"))?;
                    new.push(chunk);
                }
            }
            let stored = writer.append(&new)?;
            new.iter().for_each(|chunk| reader.remember(chunk));
            Ok(stored)
        };
        self.staging.blocking(job).await
    }

    /// For each hash, whether its chunk is stored. May read the index's disk: for many hashes call it from a blocking
    /// thread.
    pub fn have(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>> {
        hashes.iter().map(|hash| self.writer.has(hash)).collect()
    }

    /// The chunk as stored, checked against its hash. Fails with `NotFound` when it never was, with `Corrupt`, naming
    /// hash and pack, when its bytes are damaged or its pack is gone, and with `Unavailable` when the object store
    /// cannot be reached.
    pub async fn get(&self, hash: ChunkHash) -> Result<EncodedChunk> {
        self.reader.encoded(hash).await
    }

    /// The chunk's plain bytes, checked against its hash. Fails as [`ChunkStore::get`] does.
    pub async fn get_raw(&self, hash: ChunkHash) -> Result<Bytes> {
        self.reader.raw(hash).await
    }

    /// The key of the object that holds, or will hold, the chunk, below the store's prefix. May read the index's disk.
    /// Fails with `NotFound` when the chunk is not stored.
    pub fn object_key(&self, hash: ChunkHash) -> Result<String> {
        Ok(self.reader.locate(hash)?.pack.object_key())
    }

    /// Returns when everything put before is on the local disk, safe from a power loss. Concurrent callers share one
    /// fsync. When an fsync fails, this call and every later one does: what is on disk is not known until the next start
    /// has read it.
    pub async fn sync(&self) -> Result<()> {
        let (request, answer) = oneshot::channel();
        self.syncs.send(request).await.map_err(|_| error::closed())?;
        answer.await.map_err(|_| error::closed())?
    }

    /// Returns when everything put before is in the object store. Waits for as long as that cannot be reached; a caller
    /// with less patience puts a deadline around it.
    pub async fn sync_object(&self) -> Result<()> {
        let writer = Arc::clone(&self.writer);
        let packs = self.staging.blocking(move || Ok(writer.seal())).await?;
        let there = self.staging.until(|staging| packs.iter().all(|id| staging.pack(*id).is_none()));
        match self.cancel.run_until_cancelled(there).await {
            Some(result) => result,
            None => Err(error::closed()),
        }
    }

    /// Finishes and uploads every pack and ends the background work; later puts and syncs fail with `Refused`. Fails
    /// with `Unavailable` when the object store does not take everything in the configured time: the rest stays in the
    /// staging directory and is uploaded after the next start. The staging directory stays locked until the store is
    /// dropped; chunks can still be read. Closing a closed store does nothing.
    pub async fn close(&self) -> Result<()> {
        if self.cancel.is_cancelled() {
            return Ok(());
        }
        // With every permit in hand no put is under way; with the semaphore closed no other begins.
        let all = self.puts.acquire_many(self.put_permits).await;
        self.puts.close();
        drop(all);
        let uploaded = tokio::time::timeout(self.close_timeout, self.sync_object()).await;
        self.cancel.cancel();
        self.staging.tasks.close();
        self.staging.tasks.wait().await;
        uploaded.unwrap_or_else(|_| {
            let (pending, _) = self.staging.counts();
            let what = "packs are not in the object store; they stay on the local disk and are uploaded after a start";
            Err(Error::new(ErrorKind::Unavailable, format!("{pending} {what}")))
        })
    }

    /// Named counters for operators.
    pub fn stats(&self) -> Vec<(String, u64)> {
        let (pending, unindexed) = self.staging.counts();
        vec![
            ("blob.pending_packs".into(), pending as u64),
            ("blob.unindexed_chunks".into(), unindexed as u64),
            ("blob.cache_bytes".into(), self.reader.cached()),
        ]
    }
}

fn check_limits(chunk: &EncodedChunk) -> Result<()> {
    let limit = |what: &str, len: u64, limit: u32| {
        Err(Error::invalid(format!("chunk {} has {len} {what}, the most is {limit}", chunk.hash)))
    };
    if chunk.raw_len > MAX_CHUNK {
        return limit("bytes", u64::from(chunk.raw_len), MAX_CHUNK);
    }
    if chunk.data.len() > MAX_ENCODED as usize {
        return limit("stored bytes", chunk.data.len() as u64, MAX_ENCODED);
    }
    Ok(())
}
