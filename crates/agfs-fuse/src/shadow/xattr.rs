//! Extended attributes, as far as the local file system keeps them.

use super::ShadowFs;
use super::types::{Errno, Place, Result};
use rustix::buffer::spare_capacity;
use rustix::fs::XattrFlags;
use std::os::fd::{AsRawFd, OwnedFd};

/// Access control lists would be kept here but enforced by nobody, since the kernel above checks mode bits only.
const ACL_PREFIX: &[u8] = b"system.posix_acl_";

/// A path descriptor has no attributes to the kernel but its link in /proc leads to the inode, a symbolic link included.
fn proc_path(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

fn check(name: &[u8]) -> Result<()> {
    if name.starts_with(ACL_PREFIX) { Err(Errno::OPNOTSUPP) } else { Ok(()) }
}

/// Calls `read` with room for what `size` says is there, again if it grew in between.
fn whole(size: impl Fn() -> Result<usize>, read: impl Fn(&mut Vec<u8>) -> Result<usize>) -> Result<Vec<u8>> {
    loop {
        let size = size()?;
        let mut value = Vec::with_capacity(size);
        // With no room the kernel would tell the size and write nothing.
        if size == 0 {
            return Ok(value);
        }
        match read(&mut value) {
            Ok(_) => return Ok(value),
            Err(Errno::RANGE) => {}
            Err(errno) => return Err(errno),
        }
    }
}

impl ShadowFs {
    /// The value of an attribute. ENODATA when there is none of this name.
    pub fn getxattr(&self, place: Place, name: &[u8]) -> Result<Vec<u8>> {
        check(name)?;
        let fd = self.inodes.fd(place.ino())?;
        let path = proc_path(&fd);
        whole(
            || rustix::fs::getxattr_query(&*path, name),
            |value| rustix::fs::getxattr(&*path, name, spare_capacity(value)),
        )
    }

    /// The names of all attributes, each followed by a NUL.
    pub fn listxattr(&self, place: Place) -> Result<Vec<u8>> {
        let fd = self.inodes.fd(place.ino())?;
        let path = proc_path(&fd);
        let mut names =
            whole(|| rustix::fs::listxattr_query(&*path), |list| rustix::fs::listxattr(&*path, spare_capacity(list)))?;
        if names.windows(ACL_PREFIX.len()).any(|w| w == ACL_PREFIX) {
            names = names.split_inclusive(|&b| b == 0).filter(|n| check(n).is_ok()).flatten().copied().collect();
        }
        Ok(names)
    }

    /// Sets an attribute, with the flags of setxattr(2): XATTR_CREATE, XATTR_REPLACE.
    pub fn setxattr(&self, place: Place, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        check(name)?;
        let fd = self.inodes.fd(place.ino())?;
        rustix::fs::setxattr(proc_path(&fd), name, value, XattrFlags::from_bits_retain(flags))
    }

    /// Removes an attribute. ENODATA when there is none of this name.
    pub fn removexattr(&self, place: Place, name: &[u8]) -> Result<()> {
        check(name)?;
        let fd = self.inodes.fd(place.ino())?;
        rustix::fs::removexattr(proc_path(&fd), name)
    }
}
