//! Copying trees: within a space (no bytes move), from the local disk into a space, and out of it.

use crate::connection::Connection;
use agfs_core::op::Author;
use agfs_core::{Error, Result};
use std::path::Path;

/// What a copy did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStats {
    /// Regular files copied, hard links included.
    pub files: u64,
    /// Directories made.
    pub dirs: u64,
    /// Symbolic links copied.
    pub symlinks: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Sockets and devices, which are left out.
    pub skipped: u64,
}

impl Connection {
    /// Copies what is at `from` (at the reference `at`, empty: now) to `to` in the same space; into it when that is a directory.
    /// A directory only with `recursive`. Contents are shared, no bytes move.
    pub async fn copy_within(
        &self,
        space: &str,
        at: &str,
        from: &[u8],
        to: &[u8],
        recursive: bool,
        author: &Author,
    ) -> Result<CopyStats> {
        let _ = (space, at, from, to, recursive, author);
        Err(Error::unsupported(""))
    }
    /// Copies a local file or, with `recursive`, directory to `to` in a space; into it when that is a directory.
    pub async fn upload(
        &self,
        local: &Path,
        space: &str,
        to: &[u8],
        recursive: bool,
        author: &Author,
    ) -> Result<CopyStats> {
        let _ = (local, space, to, recursive, author);
        Err(Error::unsupported(""))
    }
    /// Copies what is at `from` in a space (at the reference `at`, empty: now) to the local path `local`; into it when that
    /// is a directory. A directory only with `recursive`.
    pub async fn download(
        &self,
        space: &str,
        at: &str,
        from: &[u8],
        local: &Path,
        recursive: bool,
    ) -> Result<CopyStats> {
        let _ = (local, space, at, from, recursive);
        Err(Error::unsupported(""))
    }
}
