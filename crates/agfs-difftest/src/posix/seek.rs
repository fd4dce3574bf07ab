//! `lseek`.

use super::of;
use crate::judge::Content;
use crate::op::Whence;
use crate::outcome::{Answer, Kind, Outcome};
use rustix::fs::{SeekFrom, fstat, seek as lseek};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Seeks. Only files have data and holes, and where a directory ends is the file system's own business.
pub(super) fn seek(fd: &OwnedFd, whence: Whence, at: u64) -> Answer {
    let stat = fstat(fd).map_err(of)?;
    if whence != Whence::Set && Kind::of(stat.st_mode) != Kind::File {
        return Err(libc::EINVAL);
    }
    let found = |to: Result<u64, Errno>| match to {
        Ok(to) => Ok(Some(to)),
        Err(Errno::NXIO) => Ok(None),
        Err(e) => Err(of(e)),
    };
    let read = |at: u64, len: u64| {
        let mut room = vec![0; len as usize];
        let n = rustix::io::pread(fd, &mut room[..], at).map_err(of)?;
        room.truncate(n);
        Ok(room)
    };
    let content = Content { size: stat.st_size as u64, read: &read };
    let answer = match whence {
        Whence::Set => return lseek(fd, SeekFrom::Start(at)).map(Outcome::Number).map_err(of),
        Whence::End => return lseek(fd, SeekFrom::End(-(at as i64))).map(Outcome::Number).map_err(of),
        Whence::Data => content.data(at, found(lseek(fd, SeekFrom::Data(at)))?)?,
        Whence::Hole => content.hole(at, found(lseek(fd, SeekFrom::Hole(at)))?)?,
    };
    // Where it went is its own choice; what follows must not depend on it.
    lseek(fd, SeekFrom::Start(at)).map_err(of)?;
    Ok(answer)
}
