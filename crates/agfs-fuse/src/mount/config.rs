//! What a mount is asked to be. Values only; checking them against the machine happens when mounting.

use agfs_client::Connection;
use agfs_core::op::Author;
use agfs_core::space::{Consistency, Durability};
use std::path::PathBuf;
use std::time::Duration;

/// How to mount one space.
pub struct MountConfig {
    /// The way to the server. Its `io_timeout` is how long a program waits for a server that does not answer.
    pub connection: Connection,
    /// How long a program waits for a server that does not answer, before it gets an error (60 s is usual).
    pub io_timeout: Duration,
    /// The space, by name or id.
    pub space: String,
    /// A reference in its history; empty for the present. A reference makes the mount read-only.
    pub at: String,
    /// The directory of the space to show as the root of the mount, as an absolute path; empty or `/` for the whole space.
    pub sub_path: Vec<u8>,
    /// The directory to mount at; it must exist.
    pub mountpoint: PathBuf,
    /// Where chunks, unsent writes and shadow directories are kept.
    pub cache_dir: PathBuf,
    /// The most that chunks may take of the disk, in bytes.
    pub cache_size: u64,
    /// The most that chunks may take of memory, in bytes.
    pub memory_limit: u64,
    /// Whether every change is refused.
    pub read_only: bool,
    /// Whether users other than the one who mounts may look in.
    pub allow_other: bool,
    /// How soon other mounts' closes are seen here, and this one's there.
    pub consistency: Consistency,
    /// When a closed file is safe.
    pub durability: Durability,
    /// Shadow rules of this mount, in place of those of the space; the single rule `none` turns them off.
    pub shadow_rules: Option<Vec<String>>,
    /// The tenant, empty when there is none.
    pub tenant: String,
    /// The user, empty when unknown.
    pub user: String,
    /// The conversation, empty when there is none.
    pub conversation: String,
    /// Agent, task and step of everything done through the mount (the mount id is filled in).
    pub author: Author,
    /// This host's name.
    pub host: String,
    /// Event loops, each a thread; zero to choose by the number of processors.
    pub threads: usize,
}
