//! The directories of one mount below the cache directory, and the lock that keeps a second process out of them.

use crate::errno::local;
use agfs_core::{ChunkHash, Error, Result, SpaceId};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `mounts/SPACE-HASH/{lock,scratch/,shadow/}`; the lock is held as long as this lives.
pub(super) struct MountDirs {
    base: PathBuf,
    _lock: File,
}

impl MountDirs {
    /// Makes the directories of a space at a mountpoint, and locks them.
    ///
    /// # Errors
    /// `Refused` when another process has the lock, and those of the local disk.
    pub fn open(cache_dir: &Path, space: SpaceId, mountpoint: &Path) -> Result<Self> {
        let hash = ChunkHash::of(mountpoint.as_os_str().as_bytes()).to_string();
        let short = hash.get(..16).unwrap_or_default();
        let base = cache_dir.join("mounts").join(format!("{space}-{short}"));
        for dir in [base.join("scratch"), base.join("shadow"), cache_dir.join("chunks")] {
            std::fs::create_dir_all(&dir).map_err(|e| local(format!("making {}", dir.display()), &e))?;
        }
        let path = base.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|e| local(format!("opening {}", path.display()), &e))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(MountDirs { base, _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::refused(format!(
                "another process mounts {space} at {}: end it first, or use another --cache-dir (the lock is {})",
                mountpoint.display(),
                path.display()
            ))),
            Err(e) => Err(local(format!("locking {}", path.display()), &e.into())),
        }
    }

    /// Where scratch files go.
    pub fn scratch(&self) -> PathBuf {
        self.base.join("scratch")
    }

    /// Where shadow directories are.
    pub fn shadow(&self) -> PathBuf {
        self.base.join("shadow")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agfs_core::ErrorKind;

    #[test]
    fn a_second_process_is_kept_out() {
        let cache = tempfile::tempdir().unwrap();
        let at = Path::new("/a/b");
        let first = MountDirs::open(cache.path(), SpaceId(3), at).unwrap();
        assert!(first.scratch().is_dir() && first.shadow().is_dir());
        assert_eq!(MountDirs::open(cache.path(), SpaceId(3), at).err().map(|e| e.kind()), Some(ErrorKind::Refused));
        assert!(MountDirs::open(cache.path(), SpaceId(4), at).is_ok());
        drop(first);
        assert!(MountDirs::open(cache.path(), SpaceId(3), at).is_ok());
    }
}
