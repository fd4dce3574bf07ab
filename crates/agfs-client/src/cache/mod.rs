//! The cache of chunks on a client: the most used in memory, more on disk, the rest from the server.
//!
//! A cache and nothing else: whatever it loses is fetched again, so no failure of its disk fails a read, and nothing that
//! exists only here may be put into it. Memory is in `memory`, files in `disk`, their order of use in `index`, writing and
//! evicting in `worker`.

mod disk;
mod index;
mod memory;
#[cfg(test)]
mod tests;
mod worker;

use crate::connection::Connection;
use agfs_core::{ChunkHash, Error, Result};
use bytes::Bytes;
use disk::{Disk, Found};
use futures::FutureExt;
use futures::future::Shared;
use memory::Memory;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;
use worker::Worker;

/// Counters of a cache since it was opened, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Reads answered from memory.
    pub memory_hits: u64,
    /// Reads answered from disk.
    pub disk_hits: u64,
    /// Reads that went to the server.
    pub misses: u64,
    /// Chunks on disk that were found damaged and dropped.
    pub damaged: u64,
    /// Failures of the cache's disk.
    pub disk_errors: u64,
    /// Chunks evicted from disk.
    pub evicted: u64,
    /// Bytes in memory.
    pub memory_bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Chunks on disk.
    pub disk_chunks: u64,
}

type Fetch = Shared<oneshot::Receiver<Result<Bytes>>>;

struct Inner {
    memory: Memory,
    disk: Arc<Disk>,
    worker: Worker,
    /// Chunks that are being read or fetched: everybody who wants one waits for the same.
    fetching: Mutex<FxHashMap<ChunkHash, Fetch>>,
    memory_hits: AtomicU64,
    disk_hits: AtomicU64,
    misses: AtomicU64,
}

/// A cache of chunks. Cheap to clone; clones share all.
#[derive(Clone)]
pub struct ChunkCache {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for ChunkCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ChunkCache").field(&self.stats()).finish()
    }
}

impl ChunkCache {
    /// Opens the cache in `dir`, which is made if need be: at most `max_bytes` on disk and `max_memory` in memory (0: none).
    /// What is there from before is counted in the background. Fails when the directory cannot be made.
    pub fn open(dir: impl AsRef<Path>, max_bytes: u64, max_memory: u64) -> Result<ChunkCache> {
        let disk = Arc::new(Disk::open(dir.as_ref(), max_bytes)?);
        let worker = Worker::start(disk.clone())?;
        let inner = Inner {
            memory: Memory::new(max_memory),
            disk,
            worker,
            fetching: Mutex::new(FxHashMap::default()),
            memory_hits: AtomicU64::new(0),
            disk_hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        };
        Ok(ChunkCache { inner: Arc::new(inner) })
    }

    /// The chunk's bytes, verified: from memory, from disk, or from the server. Callers who want the same chunk at the same time share
    /// one fetch. Fails as [`Connection::get_chunk`] does, never because of the cache's own disk.
    pub async fn get(&self, conn: &Connection, hash: ChunkHash) -> Result<Bytes> {
        if let Some(data) = self.in_memory(hash) {
            return Ok(data);
        }
        let fetch = {
            let mut fetching = self.inner.fetching.lock();
            match fetching.get(&hash) {
                Some(fetch) => fetch.clone(),
                None => {
                    let (done, receiver) = oneshot::channel();
                    let fetch = receiver.shared();
                    fetching.insert(hash, fetch.clone());
                    let fetcher = Fetcher { inner: self.inner.clone(), hash };
                    // A task of its own, so that a caller who gives up does not take the others' answer along.
                    tokio::spawn(fetcher.run(conn.clone(), done));
                    fetch
                }
            }
        };
        fetch.await.unwrap_or_else(|_| Err(Error::internal(format!("fetching chunk {hash} was abandoned"))))
    }

    /// The chunk's bytes if they are in memory; never waits.
    pub fn in_memory(&self, hash: ChunkHash) -> Option<Bytes> {
        let found = self.inner.memory.get(&hash);
        if found.is_some() {
            self.inner.memory_hits.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// Keeps a chunk whose bytes are at hand, `hash` being theirs; it is written to disk in the background. Never waits, never fails.
    pub fn insert(&self, hash: ChunkHash, data: Bytes) {
        self.inner.keep(hash, data);
    }

    /// Counters and sizes.
    pub fn stats(&self) -> CacheStats {
        let inner = &self.inner;
        let (disk_bytes, disk_chunks) = inner.disk.size();
        CacheStats {
            memory_hits: inner.memory_hits.load(Ordering::Relaxed),
            disk_hits: inner.disk_hits.load(Ordering::Relaxed),
            misses: inner.misses.load(Ordering::Relaxed),
            damaged: inner.disk.counters.damaged.load(Ordering::Relaxed),
            disk_errors: inner.disk.counters.errors.load(Ordering::Relaxed),
            evicted: inner.disk.counters.evicted.load(Ordering::Relaxed),
            memory_bytes: inner.memory.bytes(),
            disk_bytes,
            disk_chunks,
        }
    }

    /// Returns when everything inserted before is on disk or was dropped. Blocks.
    pub fn flush(&self) {
        self.inner.worker.flush();
    }
}

impl Inner {
    fn keep(&self, hash: ChunkHash, data: Bytes) {
        self.memory.insert(hash, &data);
        self.worker.write(hash, data);
    }
}

/// Gets one chunk into the cache, for everybody who waits for it.
struct Fetcher {
    inner: Arc<Inner>,
    hash: ChunkHash,
}

impl Fetcher {
    async fn run(self, conn: Connection, done: oneshot::Sender<Result<Bytes>>) {
        let result = self.get(&conn).await;
        // Out of the map first: who comes now finds the chunk in memory or begins anew.
        drop(self);
        // Nobody may be waiting any more.
        let _ = done.send(result);
    }

    async fn get(&self, conn: &Connection) -> Result<Bytes> {
        let (disk, hash) = (self.inner.disk.clone(), self.hash);
        match tokio::task::spawn_blocking(move || disk.read(hash)).await {
            Ok(Found::Here(data)) => {
                self.inner.disk_hits.fetch_add(1, Ordering::Relaxed);
                self.inner.memory.insert(hash, &data);
                return Ok(data);
            }
            Ok(Found::Nothing) | Err(_) => {}
        }
        self.inner.misses.fetch_add(1, Ordering::Relaxed);
        let data = conn.get_chunk(hash).await?;
        self.inner.keep(hash, data.clone());
        Ok(data)
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.inner.fetching.lock().remove(&self.hash);
    }
}
