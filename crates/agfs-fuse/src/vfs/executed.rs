//! Which files of the mount run as programs, known from the handles that the kernel holds for them. Nothing is read here.
//!
//! Linux refuses to write to a program that runs (ETXTBSY), but for an open with `O_RDONLY | O_TRUNC` it asks the file system
//! to cut the file first and refuses afterwards, when the program has lost its pages already.

use agfs_core::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// The flag of an open by execve(2): `__FMODE_EXEC` of the kernel's include/linux/fs.h, which no program can set.
const FMODE_EXEC: i32 = 0x20;

/// Handles that were opened to run a file, and the inode number of each.
#[derive(Default)]
pub(super) struct Executed(Mutex<FxHashMap<u64, u64>>);

impl Executed {
    /// Fails with `TextBusy` where this open would cut a program that runs.
    pub fn check(&self, ino: u64, flags: i32) -> Result<()> {
        let cuts = flags & libc::O_TRUNC != 0 && flags & libc::O_ACCMODE == libc::O_RDONLY;
        if cuts && self.0.lock().values().any(|running| *running == ino) {
            return Err(Error::new(
                ErrorKind::TextBusy,
                format!("inode {ino} is a program that runs: it cannot be truncated"),
            ));
        }
        Ok(())
    }

    /// Notes an open that succeeded.
    pub fn opened(&self, fh: u64, ino: u64, flags: i32) {
        if flags & FMODE_EXEC != 0 {
            self.0.lock().insert(fh, ino);
        }
    }

    /// Notes that a handle is gone.
    pub fn released(&self, fh: u64) {
        self.0.lock().remove(&fh);
    }
}
