//! The ordered key-value engine below everything the server remembers: get, ordered scan, atomic batch, snapshot.
//!
//! The seam is small on purpose, so that another engine can stand behind it. No key or value has a meaning here:
//! what the bytes say belongs to the rooms above, and so does every retry and every lock across calls.

mod batch;
#[cfg(test)]
mod conformance;
pub mod group_sync;
pub mod memory;
pub mod rocks;

use agfs_core::{Error, Result};
use bytes::Bytes;

pub use batch::{Batch, Mutation};
pub use memory::MemoryStore;
pub use rocks::{RocksConfig, RocksStore};

/// What the visitor of a scan asks for next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next pair in order.
    Next,
    /// The first pair at or after this key, which must lie after the key just visited: otherwise the scan ends with
    /// an error of kind `Internal`, so that a wrong visitor is a failure and never a loop. A key at or beyond the
    /// end of the scan ends it.
    Seek(Vec<u8>),
    /// Nothing more.
    Stop,
}

/// The visitor of a scan: called with each key and its value.
pub type Visit<'a> = &'a mut (dyn FnMut(&[u8], &[u8]) -> Result<Step> + 'a);

/// A consistent view that can be read.
pub trait Read {
    /// The value of `key`, if it has one. Fails with `Corrupt` or `Io` when the engine cannot read it.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// Visits the pairs with `start <= key < end` in the order of their keys' bytes, each with its key and value.
    ///
    /// A scan sees one state, that of its beginning, whatever is written meanwhile; no lock is held while the visitor
    /// runs, so it may write to the same store. An error of the visitor ends the scan and is returned as it is.
    fn scan(&self, start: &[u8], end: &[u8], visit: Visit<'_>) -> Result<()>;
}

/// An ordered key-value engine.
pub trait MetaStore: Read + Send + Sync {
    /// A view of the present state that later writes do not change. Cheap to take; keep it for one request, not for
    /// long: it holds back the engine's cleaning.
    fn snapshot(&self) -> Box<dyn Read + Send + Sync + '_>;

    /// Applies a batch: all of it or nothing, its mutations in order. When it returns the batch is visible to every
    /// reader and survives a kill of the process, but not a power loss until [`MetaStore::sync`] has returned.
    /// Fails with `NoSpace` on a full disk and `Io` on a failing one; the batch is then not applied.
    fn write(&self, batch: Batch) -> Result<()>;

    /// Returns when everything written before the call is on disk. Blocks the thread for the time of an fsync;
    /// concurrent callers share one.
    fn sync(&self) -> Result<()>;

    /// Named counters for operators. The names are the engine's and may change between releases.
    fn stats(&self) -> Vec<(String, u64)>;
}

/// The key a scan goes to after visiting `current`: the check behind [`Step::Seek`].
fn seek_target(current: &[u8], target: Vec<u8>) -> Result<Vec<u8>> {
    if target.as_slice() > current {
        return Ok(target);
    }
    Err(Error::internal(format!("a scan at key {} was sent back to {}", hex(current), hex(&target))))
}

/// A key as text, for messages.
fn hex(key: &[u8]) -> String {
    use std::fmt::Write;
    key.iter().fold(String::with_capacity(key.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
