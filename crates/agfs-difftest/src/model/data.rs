//! Contents of the model: vectors of bytes.

use super::Model;
use crate::kernel::{Handle, Ino, Reply};
use crate::op::Falloc;

/// The largest file that the model holds, in bytes.
const LARGEST: u64 = 64 << 20;

impl Model {
    /// Makes a file this long, and notes the change also where it was.
    pub(super) fn resize(&mut self, ino: Ino, size: u64) -> Reply<()> {
        self.grow(ino, size)?;
        let node = self.node(ino)?;
        node.data.truncate(size as usize);
        node.stat.size = size;
        self.touch(ino, true);
        Ok(())
    }

    /// Makes a file at least this long.
    fn grow(&mut self, ino: Ino, size: u64) -> Reply<()> {
        if size > LARGEST {
            return Err(libc::EFBIG);
        }
        let node = self.node(ino)?;
        if node.data.len() < size as usize {
            node.data.resize(size as usize, 0);
            node.stat.size = size;
        }
        Ok(())
    }

    pub(super) fn read_at(&mut self, handle: Handle, at: u64, len: u64) -> Reply<Vec<u8>> {
        let ino = self.file(handle)?.0;
        let data = &self.node(ino)?.data;
        let start = data.len().min(at as usize);
        let end = data.len().min(start.saturating_add(len as usize));
        Ok(data[start..end].to_vec())
    }

    pub(super) fn write_at(&mut self, handle: Handle, at: u64, data: &[u8]) -> Reply<()> {
        let (ino, flags) = self.file(handle)?;
        let at = if flags & libc::O_APPEND != 0 { self.node(ino)?.stat.size } else { at };
        let end = at.checked_add(data.len() as u64).ok_or(libc::EFBIG)?;
        self.grow(ino, end)?;
        self.node(ino)?.data[at as usize..end as usize].copy_from_slice(data);
        self.touch(ino, true);
        Ok(())
    }

    pub(super) fn allocate(&mut self, handle: Handle, how: Falloc, at: u64, len: u64) -> Reply<()> {
        let ino = self.file(handle)?.0;
        if !how.has(libc::FALLOC_FL_KEEP_SIZE) {
            self.grow(ino, at + len)?;
        }
        if how.has(libc::FALLOC_FL_PUNCH_HOLE) || how.has(libc::FALLOC_FL_ZERO_RANGE) {
            let data = &mut self.node(ino)?.data;
            let (start, end) = (data.len().min(at as usize), data.len().min((at + len) as usize));
            data[start..end].fill(0);
        }
        self.touch(ino, true);
        Ok(())
    }
}
