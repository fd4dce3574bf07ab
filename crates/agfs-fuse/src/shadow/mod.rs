//! The local file tree below shadow directories: a passthrough file system over directories on this mount's own disk,
//! addressed by inode number. It knows nothing of the space's tree beyond a shadow node's file id, of FUSE, or of caching
//! policy; who may do what was checked by the kernel before a call gets here.
//!
//! Three rules hold everywhere in this room:
//! - every call on the local disk is relative to a descriptor and to one checked name, or to the descriptor alone, and never
//!   follows a symbolic link: nothing outside the base directory can be reached;
//! - an inode number stands for one local inode until it is forgotten, however often that inode is renamed, and never for
//!   another that got the same local number after a deletion (see `inode`);
//! - the local kernel's errno reaches the caller unchanged.
//!
//! The methods are synchronous and may block on the local disk. They may be called from any number of threads.

mod create;
mod data;
mod dir;
mod fds;
mod handles;
mod inode;
mod meta;
mod names;
mod resolve;
mod roots;
mod types;
mod usage;
mod xattr;

#[cfg(test)]
mod tests;

pub use data::Backing;
pub use types::{Attr, DirEntry, Entry, Errno, Owner, Place, Result, SetAttr, SetTime, Statfs};
pub use usage::Usage;

use data::OpenFile;
use dir::OpenDir;
use handles::Handles;
use resolve::Inodes;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

/// Bit 63 marks an inode number that belongs to this room; the rest is an index given out by it.
pub const SHADOW_BIT: u64 = 1 << 63;

/// Whether an inode number belongs to this room.
pub const fn is_shadow(ino: u64) -> bool {
    ino & SHADOW_BIT != 0
}

/// How many path descriptors are kept open at most, where the limit on open files allows it.
const MAX_PATH_FDS: usize = 10_000;

/// The shadow directories of one mount.
///
/// Use it from the process that opened it: it keeps a directory of that process's descriptors, so open it after
/// daemonizing, not before.
pub struct ShadowFs {
    inodes: Inodes,
    files: Handles<OpenFile>,
    dirs: Handles<OpenDir>,
    /// Whether new files can be given to the caller that made them.
    privileged: bool,
    /// Counts discarded roots, for their names until they are deleted.
    discarded: AtomicU64,
}

impl ShadowFs {
    /// Opens the shadow directories kept in `base`, which holds one directory per shadow node, named by the file id in 16
    /// hexadecimal digits. Makes `base` (mode 0700) if it is missing. Raises the process's limit on open files to its hard
    /// limit. Deletes, in the background, what an earlier process had discarded and not finished deleting.
    ///
    /// Fails with the errno of opening `base` or `/proc/self/fd`.
    pub fn new(base: PathBuf) -> Result<ShadowFs> {
        let limit = fds::raise_open_file_limit();
        Self::with_path_fds(base, MAX_PATH_FDS.min(limit / 4).max(16))
    }

    /// As [`ShadowFs::new`], keeping at most `path_fds` path descriptors open between calls and leaving the process's
    /// limit alone.
    pub fn with_path_fds(base: PathBuf, path_fds: usize) -> Result<ShadowFs> {
        let shadow = ShadowFs {
            inodes: Inodes::open(&base, path_fds)?,
            files: Handles::new(),
            dirs: Handles::new(),
            privileged: rustix::process::geteuid().is_root(),
            discarded: AtomicU64::new(0),
        };
        shadow.resume_discarding()?;
        Ok(shadow)
    }

    /// How many descriptors are held for inodes (not counting open files and directories): those cached, and those of
    /// inodes that were deleted and are still remembered.
    pub fn path_fds(&self) -> usize {
        self.inodes.held_fds()
    }

    /// How many inodes are remembered.
    pub fn inode_count(&self) -> usize {
        self.inodes.len()
    }
}
