//! What a mount tells about itself. Values only.

use agfs_core::{MountId, Seq, SpaceId};
use std::path::PathBuf;

/// The state of a live mount.
#[derive(Clone, Debug)]
pub struct Status {
    /// The space.
    pub space: SpaceId,
    /// Its name.
    pub space_name: String,
    /// The mount's id at the server.
    pub mount: MountId,
    /// Where it is mounted.
    pub mountpoint: PathBuf,
    /// Whether the push stream is up.
    pub connected: bool,
    /// The last change that the tree shows.
    pub seen: Seq,
    /// Files with writes that are not committed.
    pub dirty_files: u64,
    /// Bytes in those files that are not committed.
    pub dirty_bytes: u64,
    /// Nodes held in memory.
    pub cached_nodes: u64,
    /// Directories whose entries are all in memory.
    pub loaded_dirs: u64,
    /// The chunk cache.
    pub cache: CacheStatus,
    /// What lies outside the tree, on this machine's disk.
    pub shadow: ShadowStatus,
    /// How often each file system request came, by name, in order of name.
    pub requests: Vec<(&'static str, u64)>,
    /// How often each call was made to the server, by name, in order of name.
    pub upstream_calls: Vec<(&'static str, u64)>,
}

/// The chunk cache of a mount.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheStatus {
    /// Reads answered from memory.
    pub memory_hits: u64,
    /// Reads answered from the disk.
    pub disk_hits: u64,
    /// Reads that went to the server.
    pub misses: u64,
    /// Entries that did not match their hash and were dropped.
    pub damaged: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Bytes in memory.
    pub memory_bytes: u64,
}

/// Shadow directories of a mount.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShadowStatus {
    /// How many shadow directories this mount has made use of.
    pub dirs: u64,
    /// Bytes that lie in them.
    pub bytes: u64,
    /// Files that lie in them.
    pub files: u64,
}

/// What is not committed or not durable on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Files with writes that are not committed.
    pub files: u64,
    /// Bytes that are not committed.
    pub bytes: u64,
    /// Where they are on the local disk.
    pub scratch: PathBuf,
    /// Paths in the space of (at most a hundred of) them, and why each could not be committed.
    pub paths: Vec<(String, String)>,
    /// Why the server could not make everything durable, empty when that was not the trouble.
    pub reason: String,
}
