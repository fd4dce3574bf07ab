//! Shared mappings of open files: made, used within the file's size, and taken away.

use super::{check, of};
use crate::op::Switch;
use crate::outcome::{Answer, Outcome, filled};
use rustix::fs::FileType;
use std::os::fd::{AsRawFd, OwnedFd};

const PAGE: u64 = 4_096;
/// The most that is mapped, in bytes.
const MOST: u64 = 4 << 20;

/// A shared mapping that goes with the value.
struct Mapping {
    start: *mut libc::c_void,
    len: usize,
}

impl Mapping {
    fn new(fd: &OwnedFd, at: u64, len: usize, protection: i32) -> Result<Mapping, i32> {
        // SAFETY: the kernel chooses the place; nothing that exists is replaced.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), len, protection, libc::MAP_SHARED, fd.as_raw_fd(), at as libc::off_t)
        };
        if start == libc::MAP_FAILED {
            check(-1)?;
        }
        Ok(Mapping { start, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping was made above, and nothing refers to it any more.
        unsafe { libc::munmap(self.start, self.len) };
    }
}

/// The first page to map and how much of the range lies within the file. Only files are mapped here.
fn place(fd: &OwnedFd, at: u64, len: u64) -> Result<(u64, usize), i32> {
    let stat = rustix::fs::fstat(fd).map_err(of)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(libc::ENODEV);
    }
    let end = at.saturating_add(len.min(MOST)).min(stat.st_size as u64);
    Ok((at - at % PAGE, end.saturating_sub(at) as usize))
}

/// Reads through a mapping.
pub(super) fn read(fd: &OwnedFd, at: u64, len: u64) -> Answer {
    let (first, len) = place(fd, at, len)?;
    let skip = (at - first) as usize;
    let mapping = Mapping::new(fd, first, (skip + len).max(1), libc::PROT_READ)?;
    let mut out = vec![0_u8; len];
    // SAFETY: the range lies within the mapping and, as nobody shortens it meanwhile, within the file.
    unsafe { std::ptr::copy_nonoverlapping(mapping.start.cast::<u8>().add(skip), out.as_mut_ptr(), len) };
    Ok(Outcome::Data(out))
}

/// Writes through a mapping.
pub(super) fn write(fd: &OwnedFd, at: u64, len: u64, fill: u8, sync: Switch) -> Answer {
    let (first, len) = place(fd, at, len)?;
    let skip = (at - first) as usize;
    let mapping = Mapping::new(fd, first, (skip + len).max(1), libc::PROT_READ | libc::PROT_WRITE)?;
    let data = filled(fill, at, len as u64);
    // SAFETY: the range lies within the mapping and, as nobody shortens it meanwhile, within the file.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), mapping.start.cast::<u8>().add(skip), len) };
    if sync == Switch::Yes {
        // SAFETY: the range is the mapping.
        check(unsafe { libc::msync(mapping.start, mapping.len, libc::MS_SYNC) })?;
    }
    Ok(Outcome::Number(len as u64))
}
