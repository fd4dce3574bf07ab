//! The client's side of AGFS: a connection that retries, the calls of the server, a mount's session, a chunk cache.
//!
//! The command line and the FUSE client are built on this. No rule of the file system is decided here (that is the server's
//! and the core's work), nothing is printed, and no kernel interface is known.

pub mod cache;
pub mod chunking;
mod chunks;
mod connection;
mod files;
mod history;
pub mod journal;
mod paths;
mod retry;
pub mod session;
mod spaces;
mod system;
#[cfg(test)]
mod testing;
mod transfer;
mod tree;

pub use cache::{CacheStats, ChunkCache};
pub use chunking::EncodedChunk;
pub use chunks::ChunkStream;
pub use connection::{ConnectOptions, Connection};
pub use files::Written;
pub use history::{FileVersion, HistoryResult, LogFilter, LogLine, WatchStream};
pub use session::{AttachOptions, MountSession, Recall, TreeSink, Welcome};
pub use spaces::{MountState, NewSpace, ServerInfo, SpaceInfo};
pub use system::{SystemClock, random_u64};
pub use transfer::CopyStats;
pub use tree::{Applied, Durable, Held, Listing, Resolved};
