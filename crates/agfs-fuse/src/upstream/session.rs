//! The server by way of a mount's session, with chunks through the cache. Counts the calls; decides nothing.

use super::Upstream;
use crate::counters::{Call, Counters};
use agfs_client::{ChunkCache, Durable, EncodedChunk, Listing, MountSession};
use agfs_core::manifest::Manifest;
use agfs_core::node::{Content, Node};
use agfs_core::op::TimedOp;
use agfs_core::{ChunkHash, Error, FileId, Result, Seq, Timestamp};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;

/// The server as a mount sees it.
pub struct SessionUpstream {
    /// The session.
    pub session: Arc<MountSession>,
    /// The cache of chunks.
    pub cache: Arc<ChunkCache>,
    /// The space, by id.
    pub space: String,
    /// The reference that is shown; empty for the present.
    pub at: String,
    /// How often each call was made.
    pub calls: Arc<Counters>,
}

impl SessionUpstream {
    fn count(&self, call: Call) {
        self.calls.count(call as usize);
    }
}

#[async_trait]
impl Upstream for SessionUpstream {
    async fn apply(&self, ops: Vec<TimedOp>, chunks: Vec<EncodedChunk>, durable: Durable) -> Result<Seq> {
        if !self.at.is_empty() {
            return Err(Error::read_only(format!("the past ({}) cannot be changed", self.at)));
        }
        self.count(Call::Apply);
        self.session.apply(ops, chunks, durable).await
    }

    async fn list_dir(&self, dir: FileId) -> Result<Listing> {
        self.count(Call::ListDir);
        self.session.connection().list_dir(&self.space, &self.at, dir).await
    }

    async fn get_nodes(&self, ids: &[FileId]) -> Result<(Vec<Node>, Seq)> {
        self.count(Call::GetNodes);
        self.session.connection().get_nodes(&self.space, &self.at, ids).await
    }

    async fn manifest_of(&self, content: &Content) -> Result<Manifest> {
        self.count(Call::ManifestOf);
        self.session.connection().manifest_of(content).await
    }

    async fn get_chunk(&self, hash: ChunkHash) -> Result<Bytes> {
        self.count(Call::GetChunk);
        self.cache.get(self.session.connection(), hash).await
    }

    async fn put_chunks(&self, chunks: Vec<EncodedChunk>) -> Result<()> {
        if chunks.is_empty() {
            return Ok(());
        }
        self.count(Call::PutChunks);
        let conn = self.session.connection();
        let hashes: Vec<ChunkHash> = chunks.iter().map(|chunk| chunk.hash).collect();
        let have = conn.have_chunks(&hashes).await?;
        let lacking = chunks.into_iter().zip(have).filter(|(_, have)| !have).map(|(chunk, _)| chunk).collect();
        conn.put_chunks(lacking).await
    }

    fn keep_chunk(&self, hash: ChunkHash, raw: Bytes) {
        self.cache.insert(hash, raw);
    }

    async fn next_file_id(&self) -> Result<FileId> {
        self.session.next_file_id().await
    }

    async fn sync(&self, object: bool) -> Result<Seq> {
        self.count(Call::Sync);
        self.session.sync(object).await
    }

    async fn capacity(&self) -> Result<Option<(u64, u64)>> {
        self.count(Call::Capacity);
        Ok(self.session.connection().server_info().await?.capacity)
    }

    async fn wait_connected(&self) -> Result<()> {
        self.session.wait_connected().await
    }

    fn set_pending(&self, bytes: u64) {
        self.session.set_pending(bytes);
    }

    fn now(&self) -> Timestamp {
        self.session.connection().now()
    }
}
