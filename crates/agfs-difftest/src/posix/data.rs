//! Contents: reading, writing, size, ranges, and making durable.

use super::{Posix, check, of};
use crate::op::{Falloc, On, Op, Slot, Switch};
use crate::outcome::{Answer, Outcome, filled};
use rustix::fs::FallocateFlags;
use std::os::fd::AsRawFd;

/// The most that one operation reads, in bytes.
const MOST: u64 = 8 << 20;

impl Posix {
    pub(super) fn transfer(&self, op: &Op) -> Answer {
        let room = |len: u64| vec![0; len.min(MOST) as usize];
        let data = |mut room: Vec<u8>, n: usize| {
            room.truncate(n);
            Outcome::Data(room)
        };
        let number = |n: usize| Outcome::Number(n as u64);
        match *op {
            Op::Read { slot, len } => {
                let mut room = room(len.0);
                rustix::io::read(self.file(slot)?, &mut room[..]).map(|n| data(room, n)).map_err(of)
            }
            Op::Pread { slot, at, len } => {
                let mut room = room(len.0);
                rustix::io::pread(self.file(slot)?, &mut room[..], at.0).map(|n| data(room, n)).map_err(of)
            }
            Op::Write { slot, len, fill } => {
                rustix::io::write(self.file(slot)?, &filled(fill, 0, len.0)).map(number).map_err(of)
            }
            Op::Pwrite { slot, at, len, fill } => {
                rustix::io::pwrite(self.file(slot)?, &filled(fill, at.0, len.0), at.0).map(number).map_err(of)
            }
            _ => unreachable!("{op} transfers nothing"),
        }
    }

    pub(super) fn truncate(&self, on: &On, size: u64) -> Answer {
        let size = size as libc::off_t;
        match on {
            // SAFETY: the descriptor is open.
            On::Slot(slot) => check(unsafe { libc::ftruncate(self.file(*slot)?.as_raw_fd(), size) })?,
            On::Path(path) | On::Link(path) => self.within(path, |path| {
                // SAFETY: the path is a string that ends with NUL.
                check(unsafe { libc::truncate(path.as_ptr(), size) })
            })?,
        };
        Ok(Outcome::Done)
    }

    pub(super) fn fallocate(&self, slot: Slot, how: Falloc, at: u64, len: u64) -> Answer {
        let flags = FallocateFlags::from_bits_retain(how.0 as u32);
        rustix::fs::fallocate(self.file(slot)?, flags, at, len).map_err(of)?;
        Ok(Outcome::Done)
    }

    pub(super) fn copy(&self, from: (Slot, u64), to: (Slot, u64), len: u64) -> Answer {
        let (mut from_at, mut to_at) = (from.1, to.1);
        let (from, to) = (self.file(from.0)?, self.file(to.0)?);
        let len = len.min(MOST) as usize;
        let mut copied = 0;
        // A call may copy less than it was asked to; how much is its own business.
        while copied < len {
            match rustix::fs::copy_file_range(from, Some(&mut from_at), to, Some(&mut to_at), len - copied) {
                Ok(0) => break,
                Ok(n) => copied += n,
                Err(e) if copied == 0 => return Err(of(e)),
                Err(_) => break,
            }
        }
        if len == 0 {
            rustix::fs::copy_file_range(from, Some(&mut from_at), to, Some(&mut to_at), 0).map_err(of)?;
        }
        Ok(Outcome::Number(copied as u64))
    }

    pub(super) fn sync(&self, slot: Slot, data_only: Switch) -> Answer {
        let fd = self.file(slot)?;
        match data_only {
            Switch::Yes => rustix::fs::fdatasync(fd),
            Switch::No => rustix::fs::fsync(fd),
        }
        .map_err(of)?;
        Ok(Outcome::Done)
    }
}
