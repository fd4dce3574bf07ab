//! Opening, opening again, and closing.

use super::{Posix, of};
use crate::op::{Flags, Mode, Path, Slot};
use crate::outcome::{Answer, Outcome};
use rustix::fs::OFlags;
use std::os::fd::{IntoRawFd, OwnedFd};

/// With what every open is made: no fifo may hold the test up.
fn flags(flags: Flags) -> OFlags {
    OFlags::from_bits_retain(flags.0 as u32) | OFlags::NONBLOCK | OFlags::CLOEXEC
}

impl Posix {
    fn put(&mut self, slot: Slot, opened: Result<OwnedFd, i32>) -> Answer {
        self.slots[usize::from(slot.0)] = Some(opened?);
        Ok(Outcome::Done)
    }

    pub(super) fn open(&mut self, slot: Slot, path: &Path, how: Flags, mode: Mode) -> Answer {
        let (dir, name) = self.at(path)?;
        let mut opened =
            rustix::fs::openat(dir, &name, flags(how), rustix::fs::Mode::from_raw_mode(mode.0)).map_err(of);
        if self.limits.no_tmpfile && how.has(libc::O_TMPFILE) && !how.has(libc::O_PATH) {
            // What is wrong with the call is told first, there as here.
            opened = opened.and(Err(libc::EOPNOTSUPP));
        }
        // What was there is closed only now: the path may start from it.
        self.put(slot, opened)
    }

    pub(super) fn reopen(&mut self, slot: Slot, from: Slot, how: Flags) -> Answer {
        let name = self.proc_name(from)?;
        let opened = rustix::fs::openat(&self.fds, name, flags(how), rustix::fs::Mode::empty()).map_err(of);
        self.put(slot, opened)
    }

    pub(super) fn close(&mut self, slot: Slot) -> Answer {
        let fd = self.slots[usize::from(slot.0)].take().ok_or(libc::EBADF)?;
        // SAFETY: the descriptor is owned and given up here. Closed by hand for the errno.
        super::check(unsafe { libc::close(fd.into_raw_fd()) })?;
        Ok(Outcome::Done)
    }
}
