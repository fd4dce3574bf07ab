//! The chunk cache.

use crate::connection::Connection;
use agfs_core::{ChunkHash, Result};
use bytes::Bytes;
use std::path::Path;

/// Counters of a cache, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Reads answered from memory.
    pub memory_hits: u64,
    /// Reads answered from disk.
    pub disk_hits: u64,
    /// Reads that went to the server.
    pub misses: u64,
    /// Entries found damaged, dropped and fetched again.
    pub damaged: u64,
    /// Failures of the cache's disk.
    pub disk_errors: u64,
    /// Entries evicted from disk.
    pub evicted: u64,
    /// Bytes in memory.
    pub memory_bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Chunks on disk.
    pub disk_chunks: u64,
}

/// Chunks kept near: the most used in memory, more on disk.
#[derive(Debug)]
pub struct ChunkCache {}

impl ChunkCache {
    /// Opens (and makes) the cache in `dir`.
    pub fn open(dir: &Path, max_bytes: u64, max_memory: u64) -> Result<ChunkCache> {
        let _ = (dir, max_bytes, max_memory);
        Ok(ChunkCache {})
    }
    /// The chunk.
    pub async fn get(&self, conn: &Connection, hash: ChunkHash) -> Result<Bytes> {
        conn.get_chunk(hash).await
    }
    /// Keeps a chunk.
    pub fn insert(&self, hash: ChunkHash, data: Bytes) {
        let _ = (hash, data);
    }
    /// Counters.
    pub fn stats(&self) -> CacheStats {
        CacheStats::default()
    }
}
