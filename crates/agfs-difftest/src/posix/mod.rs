//! A real directory as a target, by system calls. Knows nothing of what is mounted there.
//!
//! The thread that makes it takes leave of the process's working directory and umask, and where it may (as root) the
//! directory becomes its root, so that no script gets out by `..` or an absolute link.

mod data;
mod inode;
mod mapping;
mod names;
mod open;
mod seek;
mod tree;

use crate::op::{Op, Path, Slot, Who};
use crate::outcome::{Answer, Outcome};
use crate::target::Target;
use rustix::fs::{Mode, OFlags};
use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// The user and group of [`Who::User`].
const USER: u32 = 1_000;

/// A directory that operations are done in.
pub struct Posix {
    root: OwnedFd,
    /// `/proc/self/fd`.
    fds: OwnedFd,
    slots: Vec<Option<OwnedFd>>,
    who: Who,
    limits: Limits,
}

/// What this side is to refuse because the other side cannot do it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// `O_TMPFILE` is EOPNOTSUPP.
    pub no_tmpfile: bool,
}

/// Whether this process may change its root, be another user, and set trusted attributes.
pub fn is_privileged() -> bool {
    rustix::process::geteuid().is_root()
}

/// The errno of a failed call of rustix.
fn of(e: rustix::io::Errno) -> i32 {
    e.raw_os_error()
}

/// The result of a call of libc that answers -1 on failure.
fn check(result: impl Into<i64>) -> Result<i64, i32> {
    match result.into() {
        -1 => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        n => Ok(n),
    }
}

impl Posix {
    /// Works in `dir` from now on, as does everything else in this thread.
    ///
    /// # Panics
    /// If `dir` cannot be opened and entered.
    pub fn new(dir: &std::path::Path, limits: Limits) -> Posix {
        let open = |path: &std::path::Path| {
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
            rustix::fs::open(path, flags, Mode::empty()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        let (root, fds) = (open(dir), open("/proc/self/fd".as_ref()));
        // SAFETY: this thread's own working directory, root and umask are changed; no memory is concerned.
        unsafe {
            assert_eq!(libc::unshare(libc::CLONE_FS), 0, "a thread may have a working directory of its own");
        }
        rustix::process::fchdir(&root).unwrap();
        if is_privileged() {
            rustix::process::chroot(".").unwrap();
        }
        rustix::process::umask(Mode::from_raw_mode(0o022));
        let slots = (0..Slot::COUNT).map(|_| None).collect();
        Posix { root, fds, slots, who: Who::Root, limits }
    }

    /// The open file of a slot.
    fn file(&self, slot: Slot) -> Result<&OwnedFd, i32> {
        self.slots[usize::from(slot.0)].as_ref().ok_or(libc::EBADF)
    }

    /// Where a path starts.
    fn base(&self, path: &Path) -> Result<BorrowedFd<'_>, i32> {
        match path.base {
            // An absolute path starts from the root, whatever the descriptor is.
            Some(slot) if !path.absolute => self.file(slot).map(std::os::fd::AsFd::as_fd),
            _ => Ok(rustix::fs::CWD),
        }
    }

    /// A path for a call that takes a directory too.
    fn at(&self, path: &Path) -> Result<(BorrowedFd<'_>, CString), i32> {
        Ok((self.base(path)?, c_string(path)))
    }

    /// Does something with a path for a call that takes no directory: from within the directory.
    fn within<T>(&self, path: &Path, act: impl FnOnce(&CString) -> Result<T, i32>) -> Result<T, i32> {
        let base = self.base(path)?;
        // An empty path is refused before anybody looks where it starts.
        if base.as_raw_fd() == libc::AT_FDCWD || path.bytes().is_empty() {
            return act(&c_string(path));
        }
        rustix::process::fchdir(base).map_err(of)?;
        let done = act(&c_string(path));
        // The user may not be allowed in.
        self.as_root(|| rustix::process::fchdir(&self.root)).unwrap();
        done
    }

    /// The name of an open file in `/proc/self/fd`.
    fn proc_name(&self, slot: Slot) -> Result<String, i32> {
        self.file(slot).map(|fd| fd.as_raw_fd().to_string())
    }

    fn become_user(&mut self, who: Who) -> Answer {
        become_user(who);
        self.who = who;
        Ok(Outcome::Done)
    }

    /// Does something as the user who began.
    fn as_root<T>(&self, act: impl FnOnce() -> T) -> T {
        become_user(Who::Root);
        let done = act();
        become_user(self.who);
        done
    }

    fn dispatch(&mut self, op: &Op) -> Answer {
        match op {
            Op::Open { slot, at, flags, mode } => self.open(*slot, at, *flags, *mode),
            Op::Reopen { slot, from, flags } => self.reopen(*slot, *from, *flags),
            Op::Close { slot } => self.close(*slot),
            Op::Read { .. } | Op::Write { .. } | Op::Pread { .. } | Op::Pwrite { .. } => self.transfer(op),
            Op::MapRead { slot, at, len } => mapping::read(self.file(*slot)?, at.0, len.0),
            Op::MapWrite { slot, at, len, fill, sync } => mapping::write(self.file(*slot)?, at.0, len.0, *fill, *sync),
            Op::Seek { slot, whence, at } => seek::seek(self.file(*slot)?, *whence, at.0),
            Op::Truncate { on, size } => self.truncate(on, size.0),
            Op::Fallocate { slot, how, at, len } => self.fallocate(*slot, *how, at.0, len.0),
            Op::Copy { from, from_at, to, to_at, len } => self.copy((*from, from_at.0), (*to, to_at.0), len.0),
            Op::Sync { slot, data_only } => self.sync(*slot, *data_only),
            Op::Rename { .. } | Op::Link { .. } | Op::LinkFd { .. } | Op::Unlink { .. } | Op::Rmdir { .. } => {
                self.rearrange(op)
            }
            Op::Mkdir { .. } | Op::Symlink { .. } | Op::Mknod { .. } => self.make(op),
            Op::Readlink { at } => self.readlink(at),
            Op::Access { at, mode } => self.access(at, *mode),
            Op::Chmod { on, mode } => self.chmod(on, *mode),
            Op::Chown { on, uid, gid } => self.chown(on, *uid, *gid),
            Op::Utimens { on, atime, mtime } => self.utimens(on, *atime, *mtime),
            Op::Setxattr { on, name, value, how } => self.setxattr(on, *name, *value, *how),
            Op::Getxattr { on, name } => self.getxattr(on, *name),
            Op::Listxattr { on } => self.listxattr(on),
            Op::Removexattr { on, name } => self.removexattr(on, *name),
            Op::Stat { on } => self.stat(on),
            Op::List { on } => self.list(on),
            Op::As { who } => self.become_user(*who),
            Op::Tree {} => self.as_root(|| tree::tree(&self.root)),
        }
    }
}

impl Target for Posix {
    fn apply(&mut self, op: &Op) -> Outcome {
        self.dispatch(op).into()
    }
}

impl Drop for Posix {
    fn drop(&mut self) {
        become_user(Who::Root);
    }
}

fn c_string(path: &Path) -> CString {
    CString::new(path.bytes()).expect("no name has a NUL")
}

/// Makes the file system see this thread as that user. Only root can.
fn become_user(who: Who) {
    if !is_privileged() {
        return;
    }
    let id = if who == Who::User { USER } else { 0 };
    // SAFETY: two numbers of this thread's credentials are changed.
    unsafe {
        libc::setfsgid(id);
        libc::setfsuid(id);
    }
}
