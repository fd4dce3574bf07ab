//! Calls on contents, with the checks that come before the file system is asked.

use super::{Change, Inodes, Kernel, Reply};
use crate::judge::Content;
use crate::op::{Falloc, On, Op, Slot, Whence};
use crate::outcome::{Answer, Kind, Outcome, filled};

/// The most that one operation reads or copies, in bytes.
const MOST: u64 = 8 << 20;
/// The end of the largest file.
const END: u64 = i64::MAX as u64;

impl<F: Inodes> Kernel<F> {
    pub(super) fn transfer(&mut self, op: &Op) -> Answer {
        match *op {
            Op::Read { slot, len } => {
                let at = self.file(slot)?.position;
                let data = self.read(slot, at, len.0)?;
                self.set_position(slot, at + data.len() as u64);
                Ok(Outcome::Data(data))
            }
            Op::Pread { slot, at, len } => self.read(slot, at.0, len.0).map(Outcome::Data),
            Op::Write { slot, len, fill } => {
                let at = self.file(slot)?.position;
                let n = self.write(slot, at, &filled(fill, 0, len.0))?;
                let file = self.file(slot)?;
                if n > 0 {
                    let appends = file.flags & libc::O_APPEND != 0;
                    let end = if appends { self.fs.getattr(file.ino)?.size } else { at + n };
                    self.set_position(slot, end);
                }
                Ok(Outcome::Number(n))
            }
            Op::Pwrite { slot, at, len, fill } => {
                self.write(slot, at.0, &filled(fill, at.0, len.0)).map(Outcome::Number)
            }
            _ => unreachable!("{op} transfers nothing"),
        }
    }

    fn set_position(&mut self, slot: Slot, position: u64) {
        if let Some(file) = &mut self.slots[usize::from(slot.0)] {
            file.position = position;
        }
    }

    fn read(&mut self, slot: Slot, at: u64, len: u64) -> Reply<Vec<u8>> {
        let (file, len) = (self.file(slot)?, len.min(MOST));
        if at > END {
            return Err(libc::EINVAL);
        }
        if !file.reads() {
            return Err(libc::EBADF);
        }
        if at > END - len {
            return Err(libc::EINVAL);
        }
        if file.is_dir {
            return Err(libc::EISDIR);
        }
        self.fs.read(file.handle, at, len)
    }

    fn write(&mut self, slot: Slot, at: u64, data: &[u8]) -> Reply<u64> {
        let file = self.file(slot)?;
        if at > END {
            return Err(libc::EINVAL);
        }
        if !file.writes() {
            return Err(libc::EBADF);
        }
        if data.is_empty() {
            return Ok(0);
        }
        self.fs.write(file.handle, at, data)?;
        Ok(data.len() as u64)
    }

    pub(super) fn seek(&mut self, slot: Slot, whence: Whence, at: u64) -> Answer {
        let file = self.file(slot)?;
        if whence != Whence::Set && file.is_dir {
            return Err(libc::EINVAL);
        }
        let size = self.fs.getattr(file.ino)?.size;
        let answer = match whence {
            Whence::Set if at > END => return Err(libc::EINVAL),
            Whence::Set => Outcome::Number(at),
            Whence::End => {
                let to = size.checked_sub(at).ok_or(libc::EINVAL)?;
                self.set_position(slot, to);
                return Ok(Outcome::Number(to));
            }
            Whence::Data | Whence::Hole => {
                let hole = whence == Whence::Hole;
                let found = self.fs.seek(file.handle, at, hole)?;
                let fs = std::cell::RefCell::new(&mut self.fs);
                let read = |at, len| {
                    if file.reads() { fs.borrow_mut().read(file.handle, at, len) } else { Err(libc::EBADF) }
                };
                let content = Content { size, read: &read };
                if hole { content.hole(at, found)? } else { content.data(at, found)? }
            }
        };
        self.set_position(slot, at);
        Ok(answer)
    }

    pub(super) fn truncate(&mut self, on: &On, size: u64) -> Answer {
        let change = Change { size: Some(size), ..Change::default() };
        if let On::Slot(slot) = on {
            let file = self.file(*slot)?;
            if size > END || file.is_dir || !file.writes() {
                return Err(libc::EINVAL);
            }
            self.fs.setattr(file.ino, Some(file.handle), change)?;
            return Ok(Outcome::Done);
        }
        if size > END {
            return Err(libc::EINVAL);
        }
        let ino = self.inode(on)?;
        match self.fs.getattr(ino)?.kind {
            Kind::Dir => return Err(libc::EISDIR),
            Kind::File => {}
            _ => return Err(libc::EINVAL),
        }
        self.fs.setattr(ino, None, change)?;
        Ok(Outcome::Done)
    }

    pub(super) fn fallocate(&mut self, slot: Slot, how: Falloc, at: u64, len: u64) -> Answer {
        use libc::{FALLOC_FL_KEEP_SIZE as KEEP, FALLOC_FL_PUNCH_HOLE as PUNCH, FALLOC_FL_ZERO_RANGE as ZERO};
        let file = self.file(slot)?;
        if at > END || len == 0 || len > END {
            return Err(libc::EINVAL);
        }
        if how.has(PUNCH) && (how.has(ZERO) || !how.has(KEEP)) {
            return Err(libc::EOPNOTSUPP);
        }
        if !file.writes() {
            return Err(libc::EBADF);
        }
        if at.checked_add(len).is_none_or(|end| end > END) {
            return Err(libc::EFBIG);
        }
        self.fs.fallocate(file.handle, how, at, len)?;
        Ok(Outcome::Done)
    }

    pub(super) fn copy(&mut self, from: (Slot, u64), to: (Slot, u64), len: u64) -> Answer {
        let (source, target) = (self.file(from.0)?, self.file(to.0)?);
        if source.is_dir || target.is_dir {
            return Err(libc::EISDIR);
        }
        if !source.reads() || !target.writes() || target.flags & libc::O_APPEND != 0 {
            return Err(libc::EBADF);
        }
        let (mut copied, len) = (0, len.min(MOST));
        // As a program does that was told of fewer bytes than it asked for: a file copied into itself has grown meanwhile.
        while copied < len {
            let (from, to) = (from.1 + copied, to.1 + copied);
            let left = self.fs.getattr(source.ino)?.size.saturating_sub(from);
            let n = left.min(len - copied);
            let overlaps = source.ino == target.ino && to + n > from && to < from + n;
            let done = match () {
                () if overlaps => Err(libc::EINVAL),
                () if n == 0 => Ok(0),
                () => self.fs.copy((source.handle, from), (target.handle, to), n),
            };
            match done {
                Ok(0) => break,
                Ok(n) => copied += n,
                Err(e) if copied == 0 => return Err(e),
                Err(_) => break,
            }
        }
        Ok(Outcome::Number(copied))
    }

    pub(super) fn sync(&mut self, slot: Slot) -> Answer {
        let file = self.file(slot)?;
        if !file.is_dir {
            self.fs.fsync(file.handle)?;
        }
        Ok(Outcome::Done)
    }
}
