//! The bytes that programs wrote and that are not committed: in memory while they are few, then in a sparse file of the
//! cache directory that has no name (it goes with the process). Which of the bytes count is not known here.

use crate::errno::local;
use agfs_core::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Up to this offset, in bytes, a scratch stays in memory.
const IN_MEMORY: u64 = 256 << 10;

/// Makes scratch files.
#[derive(Clone, Debug)]
pub struct ScratchDir(Arc<PathBuf>);

impl ScratchDir {
    /// Scratch files in this directory, which must exist.
    pub fn new(dir: PathBuf) -> Self {
        ScratchDir(Arc::new(dir))
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn file(&self) -> Result<File> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let fd = rustix::fs::open(self.0.as_path(), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|e| local(format!("making a scratch file in {}", self.0.display()), &e.into()))?;
        Ok(File::from(fd))
    }
}

enum Store {
    Memory(Vec<u8>),
    Disk(File),
}

/// A growing, sparse array of bytes. What was never written reads as zeros.
pub struct Scratch {
    dir: ScratchDir,
    store: Store,
}

impl Scratch {
    /// An empty one.
    pub const fn new(dir: ScratchDir) -> Self {
        Scratch { dir, store: Store::Memory(Vec::new()) }
    }

    /// Whether it is in memory, where reading it never waits.
    pub const fn in_memory(&self) -> bool {
        matches!(self.store, Store::Memory(_))
    }

    fn failed(&self, what: &str, error: &std::io::Error) -> Error {
        local(format!("{what} a scratch file in {}", self.dir.path().display()), error)
    }

    /// Fills `buf` from `offset` on.
    ///
    /// # Errors
    /// `Io`: the local disk failed.
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match &self.store {
            Store::Memory(bytes) => {
                let have = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                let n = have.len().min(buf.len());
                let (front, back) = buf.split_at_mut(n);
                front.copy_from_slice(have.get(..n).unwrap_or_default());
                back.fill(0);
                Ok(())
            }
            Store::Disk(file) => {
                let mut done = 0;
                while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
                    match file.read_at(rest, offset + done as u64) {
                        Ok(0) => {
                            rest.fill(0);
                            break;
                        }
                        Ok(n) => done += n,
                        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(self.failed("reading", &e)),
                    }
                }
                Ok(())
            }
        }
    }

    /// Puts `data` at `offset`.
    ///
    /// # Errors
    /// `NoSpace` when the local disk is full, `Io` when it failed; some of the bytes may have been put.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        if offset.saturating_add(data.len() as u64) > IN_MEMORY {
            self.spill()?;
        }
        match &mut self.store {
            Store::Memory(bytes) => {
                // Both fit, because the sum is at most `IN_MEMORY`.
                let (from, to) = (offset as usize, offset as usize + data.len());
                if bytes.len() < to {
                    bytes.resize(to, 0);
                }
                if let Some(place) = bytes.get_mut(from..to) {
                    place.copy_from_slice(data);
                }
                Ok(())
            }
            Store::Disk(file) => match file.write_all_at(data, offset) {
                Ok(()) => Ok(()),
                Err(e) => Err(self.failed("writing", &e)),
            },
        }
    }

    /// Makes `len` bytes at `offset` zeros.
    ///
    /// # Errors
    /// As [`Scratch::write`].
    pub fn zero(&mut self, offset: u64, len: u64) -> Result<()> {
        match &mut self.store {
            Store::Memory(bytes) => {
                let clamp = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                let (from, to) = (clamp(offset), clamp(offset.saturating_add(len)));
                bytes.get_mut(from..to).unwrap_or_default().fill(0);
                Ok(())
            }
            Store::Disk(file) => {
                use rustix::fs::FallocateFlags;
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                match rustix::fs::fallocate(&*file, flags, offset, len) {
                    Ok(()) => Ok(()),
                    Err(rustix::io::Errno::OPNOTSUPP) => self.zero_by_writing(offset, len),
                    Err(e) => Err(self.failed("punching a hole into", &e.into())),
                }
            }
        }
    }

    /// Only what the file has is overwritten: beyond its end it reads as zeros anyway.
    fn zero_by_writing(&mut self, offset: u64, len: u64) -> Result<()> {
        let Store::Disk(file) = &self.store else { return Ok(()) };
        let size = file.metadata().map_err(|e| self.failed("looking at", &e))?.len();
        let zeros = vec![0u8; 64 << 10];
        let (mut at, end) = (offset, offset.saturating_add(len).min(size));
        while at < end {
            let n = (end - at).min(zeros.len() as u64);
            file.write_all_at(zeros.get(..n as usize).unwrap_or_default(), at)
                .map_err(|e| self.failed("writing", &e))?;
            at += n;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let Store::Memory(bytes) = &self.store else { return Ok(()) };
        let file = self.dir.file()?;
        file.write_all_at(bytes, 0).map_err(|e| self.failed("writing", &e))?;
        self.store = Store::Disk(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_disk_read_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let dir = ScratchDir::new(dir.path().to_owned());
        let (mut a, mut b) = (Scratch::new(dir.clone()), Scratch::new(dir));
        b.spill().unwrap();
        for s in [&mut a, &mut b] {
            s.write(10, b"hello").unwrap();
            s.zero(12, 2).unwrap();
        }
        assert!(a.in_memory() && !b.in_memory());
        for s in [&a, &b] {
            let mut buf = [9u8; 20];
            s.read(8, &mut buf).unwrap();
            assert_eq!(&buf, b"\0\0he\0\0o\0\0\0\0\0\0\0\0\0\0\0\0\0");
        }
        a.write(IN_MEMORY, b"x").unwrap();
        let mut buf = [9u8; 5];
        a.read(10, &mut buf).unwrap();
        assert_eq!((&buf, a.in_memory()), (b"he\0\0o", false));
    }
}
