//! Open files and their content.

use super::ShadowFs;
use super::types::{Errno, Result};
use rustix::buffer::spare_capacity;
use rustix::fs::{FallocateFlags, Mode, OFlags, SeekFrom};
use rustix::path::DecInt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

/// An open file.
pub(super) struct OpenFile {
    pub(super) fd: OwnedFd,
    ino: u64,
    /// For reads through a handle that was opened for writing only: a write-back cache reads what it writes into.
    reader: OnceLock<OwnedFd>,
}

impl OpenFile {
    pub(super) fn new(fd: OwnedFd, ino: u64) -> Self {
        OpenFile { fd, ino, reader: OnceLock::new() }
    }
}

/// The local open file behind a handle, to be registered as the backing file of a FUSE passthrough open. It stays open while
/// this value lives, whatever becomes of the handle.
pub struct Backing(Arc<OpenFile>);

impl AsFd for Backing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }
}

impl Backing {
    /// The inode that is open.
    pub fn ino(&self) -> u64 {
        self.0.ino
    }
}

/// What is kept of a caller's open flags.
///
/// Left out: those about the name, which is resolved already; O_APPEND, since every write comes with the offset that the
/// kernel computed, and pwrite(2) would ignore it; O_DIRECT, since the data comes in buffers of any alignment (the kernel
/// above honours it for its own cache).
pub(super) fn open_flags(flags: i32) -> OFlags {
    const DROPPED: i32 = libc::O_CREAT
        | libc::O_EXCL
        | libc::O_NOFOLLOW
        | libc::O_NOCTTY
        | libc::O_APPEND
        | libc::O_DIRECT
        | libc::O_DIRECTORY
        | libc::O_PATH
        | libc::O_TMPFILE;
    OFlags::from_bits_retain((flags & !DROPPED) as u32) | OFlags::CLOEXEC
}

/// Opens what is behind a path descriptor.
pub(super) fn reopen(proc_fds: &OwnedFd, fd: &OwnedFd, flags: OFlags) -> Result<OwnedFd> {
    rustix::fs::openat(proc_fds, DecInt::from_fd(fd), flags | OFlags::CLOEXEC, Mode::empty())
}

impl ShadowFs {
    /// Opens a regular file with the flags of open(2); O_TRUNC empties it. Returns the handle.
    pub fn open(&self, ino: u64, flags: i32) -> Result<u64> {
        let path = self.inodes.fd(ino)?;
        // Should it be a fifo after all, this thread must not wait for its other end.
        let fd = reopen(self.inodes.proc_fds(), &path, open_flags(flags) | OFlags::NONBLOCK)?;
        Ok(self.files.insert(OpenFile::new(fd, ino)))
    }

    /// The open file behind a handle; `None` for an unknown one.
    pub fn backing_fd(&self, fh: u64) -> Option<Backing> {
        self.files.get(fh).ok().map(Backing)
    }

    /// Up to `size` bytes from `offset`; fewer only at the end of the file.
    pub fn read(&self, fh: u64, offset: u64, size: u32) -> Result<Vec<u8>> {
        let file = self.files.get(fh)?;
        let size = size as usize;
        let mut data = Vec::with_capacity(size);
        while data.len() < size {
            match self.read_some(&file, offset.saturating_add(data.len() as u64), &mut data) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                // What was read is delivered; the next read meets the error again.
                Err(_) if !data.is_empty() => break,
                Err(errno) => return Err(errno),
            }
        }
        data.truncate(size);
        Ok(data)
    }

    fn read_some(&self, file: &OpenFile, offset: u64, data: &mut Vec<u8>) -> Result<usize> {
        if let Some(reader) = file.reader.get() {
            return rustix::io::pread(reader, spare_capacity(data), offset);
        }
        match rustix::io::pread(&file.fd, spare_capacity(data), offset) {
            Err(Errno::BADF) => {
                let opened = reopen(self.inodes.proc_fds(), &file.fd, OFlags::RDONLY).map_err(|_| Errno::BADF)?;
                rustix::io::pread(file.reader.get_or_init(|| opened), spare_capacity(data), offset)
            }
            other => other,
        }
    }

    /// Writes at `offset` and returns how many bytes were taken; fewer than given only when an error came after some.
    pub fn write(&self, fh: u64, offset: u64, data: &[u8]) -> Result<usize> {
        let file = self.files.get(fh)?;
        let mut written = 0;
        // Once for no data, too: the handle may not be open for writing.
        while let Some(rest) = data.get(written..) {
            match rustix::io::pwrite(&file.fd, rest, offset.saturating_add(written as u64)) {
                Ok(0) => break,
                Ok(n) if written + n >= data.len() => return Ok(data.len()),
                Ok(n) => written += n,
                Err(Errno::INTR) => {}
                Err(_) if written > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        Ok(written)
    }

    /// Reports errors that the local file system has been keeping for the close of a duplicate (some network ones do).
    pub fn flush(&self, fh: u64) -> Result<()> {
        let file = self.files.get(fh)?;
        let duplicate = rustix::io::fcntl_dupfd_cloexec(&file.fd, 0)?;
        close(duplicate)
    }

    /// Closes a handle.
    pub fn release(&self, fh: u64) -> Result<()> {
        self.files.remove(fh).map(drop)
    }

    /// Brings a file to the disk; only what is needed to read the content back if `datasync`.
    pub fn fsync(&self, fh: u64, datasync: bool) -> Result<()> {
        sync(&self.files.get(fh)?.fd, datasync)
    }

    /// Allocates, punches, zeroes, collapses or inserts a range, with the mode bits of fallocate(2).
    pub fn fallocate(&self, fh: u64, mode: i32, offset: u64, len: u64) -> Result<()> {
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        let file = self.files.get(fh)?;
        // The kernel above has turned signals into cancellation of its own; a half-done call goes on.
        rustix::io::retry_on_intr(|| rustix::fs::fallocate(&file.fd, mode, offset, len))
    }

    /// The offset that lseek(2) finds with SEEK_DATA or SEEK_HOLE. ENXIO beyond the end; EINVAL for another `whence`.
    pub fn lseek(&self, fh: u64, offset: i64, whence: i32) -> Result<u64> {
        let file = self.files.get(fh)?;
        let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
        let to = match whence {
            libc::SEEK_DATA => SeekFrom::Data(offset),
            libc::SEEK_HOLE => SeekFrom::Hole(offset),
            _ => return Err(Errno::INVAL),
        };
        rustix::fs::seek(&file.fd, to)
    }

    /// Copies up to `len` bytes between two open files (or within one) below the file system's own interface, sharing
    /// blocks where the local disk can. Returns how many were copied: zero at the end of the source.
    pub fn copy_file_range(&self, fh_in: u64, off_in: u64, fh_out: u64, off_out: u64, len: u64) -> Result<usize> {
        let source = self.files.get(fh_in)?;
        let target = self.files.get(fh_out)?;
        let (mut off_in, mut off_out) = (off_in, off_out);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        rustix::fs::copy_file_range(&source.fd, Some(&mut off_in), &target.fd, Some(&mut off_out), len)
    }
}

pub(super) fn sync(fd: &OwnedFd, datasync: bool) -> Result<()> {
    if datasync { rustix::fs::fdatasync(fd) } else { rustix::fs::fsync(fd) }
}

/// Closes a descriptor and says what close(2) said.
fn close(fd: OwnedFd) -> Result<()> {
    use std::os::fd::IntoRawFd;
    // SAFETY: the number comes from an owned descriptor given up here, so nothing else closes or uses it.
    match unsafe { libc::close(fd.into_raw_fd()) } {
        0 => Ok(()),
        _ => match Errno::from_io_error(&std::io::Error::last_os_error()) {
            // Closed all the same.
            None | Some(Errno::INTR) => Ok(()),
            Some(errno) => Err(errno),
        },
    }
}
