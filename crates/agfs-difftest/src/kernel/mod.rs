//! What a kernel does between a program's call and a file system's request: it walks paths, checks flags, keeps open files
//! with their positions. With it, whatever answers requests about inodes becomes a target: a model, or a file system with
//! no mount.
//!
//! As Linux does for root, with no permission ever refused. Not here: mappings, other users, `O_TMPFILE`, `O_PATH`, fifos
//! that are opened; a profile leaves them out.

mod data;
mod inode;
mod names;
mod open;
mod tree;
mod walk;

use crate::op::{Falloc, Mode, On, Op, Path, Slot, Stamp, XHow};
use crate::outcome::{Answer, Kind, Outcome, Stat};
use crate::target::Target;
use std::collections::{HashMap, HashSet};

/// The number of an inode.
pub type Ino = u64;
/// The number of an open file or directory.
pub type Handle = u64;
/// What a request answers, with the errno of a failure.
pub type Reply<T> = Result<T, i32>;

/// What `setattr` changes; what is `None` stays. With nothing set, it is a change of owner to nobody else.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the fields of stat(2)")]
pub struct Change {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: Option<Stamp>,
    pub mtime: Option<Stamp>,
}

/// Requests about inodes, as a kernel makes them: names are single, kinds and flags were checked as far as a kernel can.
#[allow(missing_docs, reason = "the verbs of the kernel's protocol")]
pub trait Inodes {
    fn root(&self) -> Ino;
    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Reply<Stat>;
    fn getattr(&mut self, ino: Ino) -> Reply<Stat>;
    fn setattr(&mut self, ino: Ino, handle: Option<Handle>, change: Change) -> Reply<()>;
    fn readlink(&mut self, ino: Ino) -> Reply<Vec<u8>>;
    /// `mode` with its type bits; regular files, fifos and sockets.
    fn mknod(&mut self, dir: Ino, name: &[u8], mode: u32) -> Reply<()>;
    fn mkdir(&mut self, dir: Ino, name: &[u8], mode: u32) -> Reply<()>;
    fn symlink(&mut self, dir: Ino, name: &[u8], target: &[u8]) -> Reply<()>;
    fn unlink(&mut self, dir: Ino, name: &[u8]) -> Reply<()>;
    fn rmdir(&mut self, dir: Ino, name: &[u8]) -> Reply<()>;
    fn rename(&mut self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: u32) -> Reply<()>;
    fn link(&mut self, ino: Ino, dir: Ino, name: &[u8]) -> Reply<()>;
    fn create(&mut self, dir: Ino, name: &[u8], mode: u32, flags: i32) -> Reply<(Ino, Handle)>;
    /// Of a file. Truncates with `O_TRUNC`.
    fn open(&mut self, ino: Ino, flags: i32) -> Reply<Handle>;
    fn read(&mut self, handle: Handle, at: u64, len: u64) -> Reply<Vec<u8>>;
    /// Writes all of it: with `O_APPEND` at the end.
    fn write(&mut self, handle: Handle, at: u64, data: &[u8]) -> Reply<()>;
    fn fallocate(&mut self, handle: Handle, how: Falloc, at: u64, len: u64) -> Reply<()>;
    /// `None` for ENXIO.
    fn seek(&mut self, handle: Handle, at: u64, hole: bool) -> Reply<Option<u64>>;
    fn copy(&mut self, from: (Handle, u64), to: (Handle, u64), len: u64) -> Reply<u64>;
    fn fsync(&mut self, handle: Handle) -> Reply<()>;
    /// A descriptor is closed, the last one: a flush and a release.
    fn close(&mut self, handle: Handle) -> Reply<()>;
    fn opendir(&mut self, ino: Ino) -> Reply<Handle>;
    /// Everything from the start, `.` and `..` too or not.
    fn readdir(&mut self, handle: Handle) -> Reply<Vec<(Vec<u8>, Kind)>>;
    fn closedir(&mut self, handle: Handle) -> Reply<()>;
    fn setxattr(&mut self, ino: Ino, name: &str, value: &[u8], how: XHow) -> Reply<()>;
    fn getxattr(&mut self, ino: Ino, name: &str) -> Reply<Vec<u8>>;
    fn listxattr(&mut self, ino: Ino) -> Reply<Vec<Vec<u8>>>;
    fn removexattr(&mut self, ino: Ino, name: &str) -> Reply<()>;
}

/// An open file or directory.
#[derive(Clone, Copy, Debug)]
struct File {
    ino: Ino,
    handle: Handle,
    is_dir: bool,
    flags: i32,
    position: u64,
}

impl File {
    const fn reads(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_WRONLY
    }

    const fn writes(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_RDONLY
    }
}

/// A target made of requests.
pub struct Kernel<F> {
    fs: F,
    slots: Vec<Option<File>>,
    /// The directory that each directory lies in.
    parents: HashMap<Ino, Ino>,
    /// Directories that were removed.
    dead: HashSet<Ino>,
}

/// The bits that a new file's mode loses.
const UMASK: u32 = 0o022;

impl<F: Inodes> Kernel<F> {
    /// A kernel in front of an empty file system.
    pub fn new(fs: F) -> Kernel<F> {
        let slots = (0..Slot::COUNT).map(|_| None).collect();
        Kernel { fs, slots, parents: HashMap::new(), dead: HashSet::new() }
    }

    /// The file system behind it.
    pub const fn inner(&self) -> &F {
        &self.fs
    }

    fn file(&self, slot: Slot) -> Reply<File> {
        self.slots[usize::from(slot.0)].ok_or(libc::EBADF)
    }

    /// The inode that an operation is about.
    fn inode(&mut self, on: &On) -> Reply<Ino> {
        match on {
            On::Slot(slot) => self.file(*slot).map(|f| f.ino),
            On::Path(path) => self.find(path, true),
            On::Link(path) => self.find(path, false),
        }
    }

    /// The directory of a name that is to be made, which is not there.
    fn place(&mut self, path: &Path, want_dir: bool) -> Reply<(Ino, Vec<u8>)> {
        let found = self.walk(path)?;
        let Some(name) = found.name else { return Err(libc::EEXIST) };
        match self.look(found.dir, &name) {
            Ok(_) => Err(libc::EEXIST),
            Err(libc::ENOENT) if found.slash && !want_dir => Err(libc::ENOENT),
            Err(libc::ENOENT) if self.dead.contains(&found.dir) => Err(libc::ENOENT),
            Err(libc::ENOENT) => Ok((found.dir, name)),
            Err(e) => Err(e),
        }
    }

    fn dispatch(&mut self, op: &Op) -> Answer {
        // A base that is not open is EBADF whatever else is wrong.
        for path in op.paths().into_iter().filter(|p| !p.absolute) {
            let Some(base) = path.base else { continue };
            let file = self.file(base)?;
            if op.is_made_within() && !file.is_dir && !path.bytes().is_empty() {
                return Err(libc::ENOTDIR);
            }
        }
        match op {
            Op::Open { slot, at, flags, mode } => self.open(*slot, at, flags.0, *mode),
            Op::Reopen { slot, from, flags } => self.reopen(*slot, *from, flags.0),
            Op::Close { slot } => self.close(*slot),
            Op::Read { .. } | Op::Write { .. } | Op::Pread { .. } | Op::Pwrite { .. } => self.transfer(op),
            Op::Seek { slot, whence, at } => self.seek(*slot, *whence, at.0),
            Op::Truncate { on, size } => self.truncate(on, size.0),
            Op::Fallocate { slot, how, at, len } => self.fallocate(*slot, *how, at.0, len.0),
            Op::Copy { from, from_at, to, to_at, len } => self.copy((*from, from_at.0), (*to, to_at.0), len.0),
            Op::Sync { slot, .. } => self.sync(*slot),
            Op::Rename { from, to, how } => self.rename(from, to, *how),
            Op::Link { from, to, follow } => self.link(from, to, *follow),
            Op::LinkFd { slot, to } => self.link_file(*slot, to),
            Op::Unlink { at } => self.unlink(at),
            Op::Rmdir { at } => self.rmdir(at),
            Op::Mkdir { at, mode } => self.mkdir(at, *mode),
            Op::Symlink { target, at } => self.symlink(target, at),
            Op::Mknod { at, what, mode } => self.mknod(at, *what, *mode),
            Op::Readlink { at } => self.readlink(at),
            Op::Access { at, mode } => self.access(at, *mode),
            Op::Chmod { on, mode } => self.chmod(on, *mode),
            Op::Chown { on, uid, gid } => self.chown(on, *uid, *gid),
            Op::Utimens { on, atime, mtime } => self.utimens(on, *atime, *mtime),
            Op::Setxattr { on, name, value, how } => self.setxattr(on, *name, *value, *how),
            Op::Getxattr { on, name } => self.getxattr(on, *name),
            Op::Listxattr { on } => self.listxattr(on),
            Op::Removexattr { on, name } => self.removexattr(on, *name),
            Op::Stat { on } => self.inode(on).and_then(|ino| self.fs.getattr(ino)).map(Outcome::Stat),
            Op::List { on } => self.list(on),
            Op::As { .. } => Ok(Outcome::Done),
            Op::Tree {} => self.tree(),
            Op::MapRead { .. } | Op::MapWrite { .. } => Err(libc::ENODEV),
        }
    }
}

impl<F: Inodes> Target for Kernel<F> {
    fn apply(&mut self, op: &Op) -> Outcome {
        self.dispatch(op).into()
    }
}

/// The permission bits of something new.
const fn new_mode(mode: Mode) -> u32 {
    mode.0 & 0o7777 & !UMASK
}
