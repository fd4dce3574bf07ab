//! What the file system needs of the world: the server's calls, the chunk cache and the clock, as one trait.
//!
//! The session implements it for mounts; tests implement it over a map. No retry, caching or protocol is decided here.

mod session;

pub use session::SessionUpstream;

use agfs_client::{EncodedChunk, Listing};
use agfs_core::manifest::Manifest;
use agfs_core::node::{Content, Node};
use agfs_core::op::TimedOp;
use agfs_core::{ChunkHash, FileId, Result, Seq, Timestamp};
use async_trait::async_trait;
use bytes::Bytes;

/// How safe a change must be before the call returns.
pub use agfs_client::Durable;

/// The server as one mount of one space sees it.
///
/// Every call may take as long as the mount's I/O timeout and then fails with `Unavailable`, `TimedOut` or
/// `OutcomeUnknown`. No call may be made with a lock held.
#[async_trait]
pub trait Upstream: Send + Sync + 'static {
    /// Applies `ops` together or not at all and returns the sequence number of the last, when the push stream has
    /// delivered it: the tree then shows it. After an error the tree shows at least what caused it.
    async fn apply(&self, ops: Vec<TimedOp>, chunks: Vec<EncodedChunk>, durable: Durable) -> Result<Seq>;
    /// All entries of a directory, with the point at which they were read.
    async fn list_dir(&self, dir: FileId) -> Result<Listing>;
    /// Those of `ids` that exist, with the sequence number at which they were read.
    async fn get_nodes(&self, ids: &[FileId]) -> Result<(Vec<Node>, Seq)>;
    /// The extents of a content.
    async fn manifest_of(&self, content: &Content) -> Result<Manifest>;
    /// A chunk, raw and verified, from the cache or the server.
    async fn get_chunk(&self, hash: ChunkHash) -> Result<Bytes>;
    /// Chunks sent ahead of the operation that names them; those that the server has are not sent.
    async fn put_chunks(&self, chunks: Vec<EncodedChunk>) -> Result<()>;
    /// Offers a raw chunk to the cache, for reads to come.
    fn keep_chunk(&self, hash: ChunkHash, raw: Bytes);
    /// A file id that nobody else gets.
    async fn next_file_id(&self) -> Result<FileId>;
    /// Makes everything applied so far durable on the server's disk, or in the object store.
    async fn sync(&self, object: bool) -> Result<Seq>;
    /// Bytes of the disk that the server keeps everything on, and those free; `None` when there is no such limit.
    async fn capacity(&self) -> Result<Option<(u64, u64)>>;
    /// Returns at once when the stream is up, else when it is up again.
    async fn wait_connected(&self) -> Result<()>;
    /// Tells the server with the next acknowledgement how many bytes here are not committed.
    fn set_pending(&self, bytes: u64);
    /// The present time.
    fn now(&self) -> Timestamp;
}
