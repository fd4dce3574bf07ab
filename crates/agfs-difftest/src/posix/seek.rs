//! `lseek`. Which ranges are holes is the file system's choice, so those answers are held against the content here.

use super::of;
use crate::op::Whence;
use crate::outcome::{Answer, Kind, Outcome};
use rustix::fs::{SeekFrom, fstat, seek as lseek};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// How much of a long range is read to judge it, in bytes.
const LOOK: u64 = 1 << 20;

/// Seeks. Only files have data and holes, and where a directory ends is the file system's own business.
pub(super) fn seek(fd: &OwnedFd, whence: Whence, at: u64) -> Answer {
    if whence != Whence::Set && Kind::of(fstat(fd).map_err(of)?.st_mode) != Kind::File {
        return Err(libc::EINVAL);
    }
    match whence {
        Whence::Set => lseek(fd, SeekFrom::Start(at)).map(Outcome::Number).map_err(of),
        Whence::End => lseek(fd, SeekFrom::End(-(at as i64))).map(Outcome::Number).map_err(of),
        Whence::Data => judge(fd, at, lseek(fd, SeekFrom::Data(at)), data_is_there),
        Whence::Hole => judge(fd, at, lseek(fd, SeekFrom::Hole(at)), hole_is_there),
    }
}

type Judge = fn(&OwnedFd, u64, u64, Option<u64>) -> Result<(), String>;

/// An answer within the file is judged; every other errno is answered as it is.
fn judge(fd: &OwnedFd, at: u64, found: Result<u64, Errno>, good: Judge) -> Answer {
    let found = match found {
        Ok(to) => Some(to),
        Err(Errno::NXIO) => None,
        Err(e) => return Err(of(e)),
    };
    let size = fstat(fd).map_err(of)?.st_size as u64;
    if at >= size {
        return found.map_or(Err(libc::ENXIO), |to| Ok(Outcome::Number(to)));
    }
    let judgement = good(fd, at, size, found);
    lseek(fd, SeekFrom::Start(at)).map_err(of)?;
    Ok(Outcome::Judged(judgement))
}

/// Between `at` and the data that was found there are zeros only.
fn data_is_there(fd: &OwnedFd, at: u64, size: u64, found: Option<u64>) -> Result<(), String> {
    let to = found.unwrap_or(size);
    if to < at || to > size || found == Some(size) {
        return Err(format!("data from {at} on is said to be at {found:?} of {size}"));
    }
    match zeros(fd, at, (to - at).min(LOOK))? && zeros(fd, to.saturating_sub(LOOK).max(at), (to - at).min(LOOK))? {
        true => Ok(()),
        false => Err(format!("data from {at} on is said to be at {found:?}, but there is some before")),
    }
}

/// What is said to be a hole has a zero at its start.
fn hole_is_there(fd: &OwnedFd, at: u64, size: u64, found: Option<u64>) -> Result<(), String> {
    match found {
        Some(to) if to == size => Ok(()),
        Some(to) if to >= at && to < size && zeros(fd, to, 1)? => Ok(()),
        _ => Err(format!("a hole from {at} on is said to be at {found:?} of {size}")),
    }
}

/// Whether there are only zeros. What cannot be read is taken for zeros.
fn zeros(fd: &OwnedFd, at: u64, len: u64) -> Result<bool, String> {
    let mut room = vec![0; len as usize];
    match rustix::io::pread(fd, &mut room[..], at) {
        Ok(n) => Ok(room[..n].iter().all(|b| *b == 0)),
        Err(Errno::BADF) => Ok(true),
        Err(e) => Err(format!("cannot read at {at}: {e}")),
    }
}
