//! What an operator may choose about contents.

use super::pack::MAX_PACK;
use agfs_core::{Error, Result};
use std::path::PathBuf;
use std::time::Duration;

/// Where packs go and how they are made.
#[derive(Clone, Debug)]
pub struct BlobConfig {
    /// The object store: `file:///dir`, `s3://bucket/prefix` (with the usual `AWS_*` variables) or `memory:///`.
    pub url: String,
    /// A local directory for packs that are not in the object store, used by this server alone.
    pub staging_dir: PathBuf,
    /// A pack is finished when it has this many bytes (64 KiB to 1 GiB; less and more are rounded to these).
    pub pack_size: u64,
    /// A pack to which nothing was added for this long is finished too, and one that is ten times as old in any case.
    pub seal_after: Duration,
    /// Storing waits while this many packs wait for the object store.
    pub max_pending: usize,
    /// How many packs are uploaded at once.
    pub uploads: usize,
    /// How many calls may check and append chunks at once; others wait.
    pub puts: usize,
    /// Memory for chunks that were read or written of late, in bytes.
    pub cache: u64,
    /// A small chunk is read from a remote store with this many bytes behind it, since what was written together is
    /// read together.
    pub read_ahead: u64,
    /// The first and the longest pause between attempts at an upload.
    pub retry: (Duration, Duration),
    /// How long closing waits for the object store.
    pub close_timeout: Duration,
}

impl BlobConfig {
    /// The defaults, with contents at `url` and staging in `staging_dir`.
    pub fn new(url: impl Into<String>, staging_dir: impl Into<PathBuf>) -> Self {
        BlobConfig {
            url: url.into(),
            staging_dir: staging_dir.into(),
            pack_size: 8 << 20,
            seal_after: Duration::from_secs(5),
            max_pending: 64,
            uploads: 4,
            puts: 8,
            cache: 64 << 20,
            read_ahead: 256 << 10,
            retry: (Duration::from_millis(200), Duration::from_secs(30)),
            close_timeout: Duration::from_secs(30),
        }
    }

    /// The same within the limits. Fails with `InvalidArgument` on a count that cannot be.
    pub(super) fn checked(mut self) -> Result<Self> {
        for (name, value) in [("max_pending", self.max_pending), ("uploads", self.uploads), ("puts", self.puts)] {
            if !(1..=1 << 16).contains(&value) {
                return Err(Error::invalid(format!("{name} of the blob store is {value}, but must be 1 to 65536")));
            }
        }
        self.pack_size = self.pack_size.clamp(64 << 10, MAX_PACK);
        Ok(self)
    }
}
