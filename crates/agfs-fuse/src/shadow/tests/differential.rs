//! Random operations on a shadow root and, by plain system calls, on a second directory: results, errors, attributes and
//! contents must agree. The plain side's path descriptors stand for the inodes that a kernel holds.

use super::*;
use agfs_core::node::NodeKind;
use proptest::prelude::*;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Uid};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};

type Path = Vec<u8>;

#[derive(Clone, Debug)]
enum Op {
    Create(Path, u32, bool),
    Mkdir(Path, u32),
    Fifo(Path, u32),
    Symlink(Path, Path),
    Unlink(Path),
    Rmdir(Path),
    Rename(Path, Path, u32),
    Link(Path, Path),
    Hold(Path),
    LetGo(usize),
    LinkHeld(usize, Path),
    Open(Path, i32),
    OpenHeld(usize, i32),
    Write(usize, u64, Vec<u8>),
    Read(usize, u64, u32),
    Close(usize),
    Truncate(usize, u64),
    TruncatePath(Path, u64),
    Copy(usize, u64, usize, u64, u64),
    Fallocate(usize, i32, u64, u64),
    Chmod(Path, u32),
    Chown(Path, Option<u32>, Option<u32>),
    Mtime(Path, i64),
    Setxattr(Path, u8, Vec<u8>, i32),
    Getxattr(Path, u8),
    Removexattr(Path, u8),
    Readlink(Path),
    List(Path),
    MakeIn(usize, u8),
}

/// Paths of one to three names out of three: collisions and wrong kinds are the rule.
fn path() -> impl Strategy<Value = Path> {
    let names = |n| prop::collection::vec(prop::sample::select(b"abc".to_vec()), n);
    prop_oneof![5 => names(1), 4 => names(2), 1 => names(3)]
}

fn op() -> impl Strategy<Value = Op> {
    // Without privilege a directory that its owner may not search hides what was evicted, so such modes are for root.
    let modes = if is_root() {
        vec![0o777, 0o755, 0o2777, 0o1777, 0o640, 0o4711, 0o6755, 0o400]
    } else {
        vec![0o777, 0o755, 0o1777]
    };
    let mode = move || prop::sample::select(modes.clone());
    let open =
        || prop::sample::select(vec![libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR, libc::O_RDWR | libc::O_TRUNC]);
    let data = || prop::collection::vec(any::<u8>(), 0..200);
    let at = || prop_oneof![0_u64..300, Just(5000), Just(1 << 33)];
    let falloc = prop::sample::select(vec![
        0,
        libc::FALLOC_FL_KEEP_SIZE,
        libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE,
        libc::FALLOC_FL_ZERO_RANGE,
        libc::FALLOC_FL_PUNCH_HOLE,
    ]);
    let rename = prop::sample::select(vec![0, 0, 0, libc::RENAME_NOREPLACE, libc::RENAME_EXCHANGE]);
    let flags = || prop::sample::select(vec![0, libc::XATTR_CREATE, libc::XATTR_REPLACE]);
    let id = || prop::option::of(prop::sample::select(vec![0_u32, 1000, 2000]));
    let n = any::<usize>;
    prop_oneof![
        4 => (path(), mode(), any::<bool>()).prop_map(|(p, m, x)| Op::Create(p, m, x)),
        4 => (path(), mode()).prop_map(|(p, m)| Op::Mkdir(p, m)),
        1 => (path(), mode()).prop_map(|(p, m)| Op::Fifo(p, m)),
        1 => (path(), path()).prop_map(|(p, t)| Op::Symlink(p, t)),
        2 => path().prop_map(Op::Unlink),
        2 => path().prop_map(Op::Rmdir),
        6 => (path(), path(), rename).prop_map(|(p, q, f)| Op::Rename(p, q, f)),
        3 => (path(), path()).prop_map(|(p, q)| Op::Link(p, q)),
        5 => path().prop_map(Op::Hold),
        1 => n().prop_map(Op::LetGo),
        1 => (n(), path()).prop_map(|(n, p)| Op::LinkHeld(n, p)),
        2 => (path(), open()).prop_map(|(p, f)| Op::Open(p, f)),
        2 => (n(), open()).prop_map(|(n, f)| Op::OpenHeld(n, f)),
        4 => (n(), at(), data()).prop_map(|(n, o, d)| Op::Write(n, o, d)),
        2 => (n(), at(), 1_u32..400).prop_map(|(n, o, s)| Op::Read(n, o, s)),
        1 => n().prop_map(Op::Close),
        1 => (n(), at()).prop_map(|(n, s)| Op::Truncate(n, s)),
        1 => (path(), at()).prop_map(|(p, s)| Op::TruncatePath(p, s)),
        1 => (n(), at(), n(), at(), 0_u64..300).prop_map(|(a, b, c, d, e)| Op::Copy(a, b, c, d, e)),
        1 => (n(), falloc, at(), 0_u64..10_000).prop_map(|(n, m, o, l)| Op::Fallocate(n, m, o, l)),
        2 => (path(), mode()).prop_map(|(p, m)| Op::Chmod(p, m)),
        2 => (path(), id(), id()).prop_map(|(p, u, g)| Op::Chown(p, u, g)),
        1 => (path(), any::<i32>()).prop_map(|(p, t)| Op::Mtime(p, t.into())),
        2 => (path(), 0_u8..3, data(), flags()).prop_map(|(p, n, v, f)| Op::Setxattr(p, n, v, f)),
        1 => (path(), 0_u8..3).prop_map(|(p, n)| Op::Getxattr(p, n)),
        1 => (path(), 0_u8..3).prop_map(|(p, n)| Op::Removexattr(p, n)),
        1 => path().prop_map(Op::Readlink),
        2 => path().prop_map(Op::List),
        1 => (n(), 0_u8..3).prop_map(|(n, c)| Op::MakeIn(n, b'a' + c)),
    ]
}

/// What both sides are compared by.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    Attr(Shape),
    Bytes(Vec<u8>),
    Count(u64),
    Names(BTreeMap<Vec<u8>, NodeKind>),
}

/// Attributes that do not depend on the disk's state or the clock.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    kind: NodeKind,
    mode: u32,
    uid: u32,
    gid: u32,
    nlink: u32,
    size: u64,
}

impl From<Attr> for Shape {
    fn from(a: Attr) -> Shape {
        // The size of a directory is the local file system's business.
        let size = if a.kind.is_dir() { 0 } else { a.size };
        Shape { kind: a.kind, mode: a.mode, uid: a.uid, gid: a.gid, nlink: a.nlink, size }
    }
}

fn shape(attr: Attr) -> Seen {
    Seen::Attr(attr.into())
}

/// The caller of every operation.
fn caller() -> Owner {
    if is_root() { Owner { uid: 1000, gid: 1000 } } else { me() }
}

fn xattr_name(n: u8) -> Vec<u8> {
    format!("user.{n}").into_bytes()
}

/// Takes the last name off.
fn split(path: &[u8]) -> (&[u8], [u8; 1]) {
    let (last, parents) = path.split_last().unwrap();
    (parents, [*last])
}

struct Shadow {
    fs: ShadowFs,
    held: Vec<u64>,
    files: Vec<u64>,
}

impl Shadow {
    /// Walks down and drops the lookups of the way, as a kernel short of memory does.
    fn walk(&self, path: &[u8]) -> Result<Place> {
        let mut place = ROOT;
        for name in path {
            let entry = self.fs.lookup(place, &[*name]);
            self.drop_place(place);
            place = Place::Inner(entry?.ino);
        }
        Ok(place)
    }

    fn drop_place(&self, place: Place) {
        if let Place::Inner(ino) = place {
            self.fs.forget(ino, 1);
        }
    }

    fn at<T>(&self, path: &[u8], f: impl FnOnce(Place) -> Result<T>) -> Result<T> {
        let place = self.walk(path)?;
        let result = f(place);
        self.drop_place(place);
        result
    }

    /// Does `f` in the parent of `path`, and drops the lookup of what it made.
    fn make(&self, path: &[u8], f: impl FnOnce(Place, &[u8]) -> Result<Entry>) -> Result<Seen> {
        let (parents, name) = split(path);
        self.at(parents, |parent| {
            let entry = f(parent, &name)?;
            self.fs.forget(entry.ino, 1);
            Ok(shape(entry.attr))
        })
    }

    fn set(&self, path: &[u8], set: SetAttr) -> Result<Seen> {
        self.at(path, |place| self.fs.setattr(place, None, &set)).map(shape)
    }

    fn run(&mut self, op: &Op) -> Result<Seen> {
        let done = |()| Seen::Nothing;
        let held = |n: &usize| self.held[n % self.held.len()];
        let file = |n: &usize| self.files[n % self.files.len()];
        let fs = &self.fs;
        match op {
            Op::Create(p, mode, excl) => {
                let flags = libc::O_RDWR | if *excl { libc::O_EXCL } else { 0 };
                let (parents, name) = split(p);
                let place = self.walk(parents)?;
                let made = fs.create(place, &name, *mode, flags, caller());
                self.drop_place(place);
                let (entry, fh) = made?;
                fs.forget(entry.ino, 1);
                self.files.push(fh);
                Ok(shape(entry.attr))
            }
            Op::Mkdir(p, mode) => self.make(p, |d, n| fs.mkdir(d, n, mode & 0o1777, caller())),
            Op::Fifo(p, mode) => self.make(p, |d, n| fs.mknod(d, n, libc::S_IFIFO | mode, 0, caller())),
            Op::Symlink(p, target) => self.make(p, |d, n| fs.symlink(d, n, target, caller())),
            Op::Unlink(p) => self.at(split(p).0, |d| fs.unlink(d, &split(p).1)).map(done),
            Op::Rmdir(p) => self.at(split(p).0, |d| fs.rmdir(d, &split(p).1)).map(done),
            Op::Rename(p, q, flags) => self
                .at(split(p).0, |d| self.at(split(q).0, |e| fs.rename(d, &split(p).1, e, &split(q).1, *flags)))
                .map(done),
            Op::Link(p, q) => self.at(p, |f| self.make(q, |d, n| fs.link(f.ino(), d, n))),
            Op::LinkHeld(n, q) => self.make(q, |d, name| fs.link(held(n), d, name)),
            Op::Hold(p) => {
                let place = self.walk(p)?;
                self.held.push(place.ino());
                fs.getattr(place).map(shape)
            }
            Op::LetGo(n) => {
                let n = n % self.held.len();
                fs.forget(self.held.swap_remove(n), 1);
                Ok(Seen::Nothing)
            }
            Op::MakeIn(n, name) => {
                let entry = fs.mkdir(Place::Inner(held(n)), &[*name], 0o700, caller())?;
                fs.forget(entry.ino, 1);
                Ok(shape(entry.attr))
            }
            Op::List(p) => self.at(p, |place| list(fs, place)),
            Op::Readlink(p) => self.at(p, |place| fs.readlink(place.ino())).map(Seen::Bytes),
            Op::TruncatePath(p, size) => self.set(p, SetAttr { size: Some(*size), ..SetAttr::default() }),
            Op::Chmod(p, mode) => self.set(p, SetAttr { mode: Some(*mode), ..SetAttr::default() }),
            Op::Chown(p, uid, gid) => self.set(p, SetAttr { uid: *uid, gid: *gid, ..SetAttr::default() }),
            Op::Mtime(p, t) => {
                let at = agfs_core::time::Timestamp(t * 1_000_000);
                let set = SetAttr { mtime: Some(SetTime::At(at)), ..SetAttr::default() };
                let attr = self.at(p, |place| fs.setattr(place, None, &set))?;
                assert_eq!(attr.mtime, at);
                Ok(shape(attr))
            }
            Op::Setxattr(p, n, v, flags) => self.at(p, |f| fs.setxattr(f, &xattr_name(*n), v, *flags as u32)).map(done),
            Op::Getxattr(p, n) => self.at(p, |f| fs.getxattr(f, &xattr_name(*n))).map(Seen::Bytes),
            Op::Removexattr(p, n) => self.at(p, |f| fs.removexattr(f, &xattr_name(*n))).map(done),
            Op::Open(p, flags) => {
                let fh = self.at(p, |place| fs.open(place.ino(), *flags))?;
                self.files.push(fh);
                Ok(Seen::Nothing)
            }
            Op::OpenHeld(n, flags) => {
                let fh = fs.open(held(n), *flags)?;
                self.files.push(fh);
                Ok(Seen::Nothing)
            }
            Op::Write(n, at, data) => fs.write(file(n), *at, data).map(|n| Seen::Count(n as u64)),
            Op::Read(n, at, size) => fs.read(file(n), *at, *size).map(Seen::Bytes),
            Op::Truncate(n, size) => {
                // Any inode will do: the size is changed through the handle.
                let set = SetAttr { size: Some(*size), ..SetAttr::default() };
                let ino = fs.backing_fd(file(n)).unwrap().ino();
                match fs.setattr(Place::Inner(ino), Some(file(n)), &set) {
                    // Forgotten by this harness, which a kernel with an open file never does.
                    Err(Errno::STALE) => fs.setattr(ROOT, Some(file(n)), &set).map(|_| Seen::Nothing),
                    other => other.map(|_| Seen::Nothing),
                }
            }
            Op::Copy(a, off_a, b, off_b, len) => {
                fs.copy_file_range(file(a), *off_a, file(b), *off_b, *len).map(|n| Seen::Count(n as u64))
            }
            Op::Fallocate(n, mode, at, len) => fs.fallocate(file(n), *mode, *at, *len).map(done),
            Op::Close(n) => {
                let n = n % self.files.len();
                fs.release(self.files.swap_remove(n)).map(done)
            }
        }
    }
}

fn list(fs: &ShadowFs, place: Place) -> Result<Seen> {
    let fh = fs.opendir(place)?;
    let mut names = BTreeMap::new();
    fs.readdirplus(fh, 0, &mut |entry| {
        if let Some(found) = entry.entry {
            assert_eq!((found.ino, found.attr.kind), (entry.ino, entry.kind));
            fs.forget(found.ino, 1);
        }
        assert!(names.insert(entry.name.to_vec(), entry.kind).is_none());
        true
    })?;
    fs.releasedir(fh)?;
    Ok(Seen::Names(names))
}

/// Makes what follows on this thread act as the caller towards the disk.
struct AsCaller;

impl AsCaller {
    fn new() -> AsCaller {
        Self::become_user(caller());
        AsCaller
    }

    fn become_user(owner: Owner) {
        if is_root() {
            // SAFETY: these change two numbers of this thread's credentials.
            unsafe {
                libc::setfsgid(owner.gid);
                libc::setfsuid(owner.uid);
            }
        }
    }
}

impl Drop for AsCaller {
    fn drop(&mut self) {
        Self::become_user(me());
    }
}

struct Plain {
    root: OwnedFd,
    held: Vec<OwnedFd>,
    files: Vec<OwnedFd>,
}

impl Plain {
    fn walk(&self, path: &[u8]) -> Result<OwnedFd> {
        let mut fd = rustix::io::dup(&self.root)?;
        for name in path {
            fd = rustix::fs::openat(&fd, &[*name][..], OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(fd)
    }

    fn parent<'a>(&self, path: &'a [u8]) -> Result<(OwnedFd, &'a [u8])> {
        let (last, parents) = path.split_at(path.len() - 1);
        Ok((self.walk(last)?, parents))
    }

    fn proc(fd: &OwnedFd) -> String {
        format!("/proc/self/fd/{}", fd.as_raw_fd())
    }

    fn seen(fd: &OwnedFd) -> Result<Seen> {
        Ok(shape(super::meta::stat_fd(fd)?.attr))
    }

    /// Makes something with the caller's own credentials, and undoes what this process's umask did.
    fn make(&self, path: &[u8], mode: Option<u32>, make: impl FnOnce(&OwnedFd, &[u8]) -> Result<()>) -> Result<Seen> {
        let (dir, name) = self.parent(path)?;
        {
            let _as_caller = AsCaller::new();
            make(&dir, name)?;
        }
        let fd = rustix::fs::openat(&dir, name, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
        if let Some(mode) = mode {
            let attr = super::meta::stat_fd(&fd)?.attr;
            let inherited = if attr.kind.is_dir() { attr.mode & 0o2000 } else { 0 };
            rustix::fs::chmod(Self::proc(&fd), Mode::from_raw_mode(mode | inherited))?;
        }
        Self::seen(&fd)
    }

    fn run(&mut self, op: &Op) -> Result<Seen> {
        let done = |()| Seen::Nothing;
        let held = |n: &usize| &self.held[n % self.held.len()];
        let link = |fd: &OwnedFd, dir: &OwnedFd, name: &[u8]| {
            rustix::fs::linkat(rustix::fs::CWD, Self::proc(fd), dir, name, AtFlags::SYMLINK_FOLLOW)?;
            Self::seen(fd)
        };
        match op {
            Op::Create(p, mode, excl) => {
                let (dir, name) = self.parent(p)?;
                let fresh = super::meta::stat_at(&dir, name).is_err();
                let excl = if *excl { OFlags::EXCL } else { OFlags::empty() };
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | excl;
                let fd = {
                    let _as_caller = fresh.then(AsCaller::new);
                    rustix::fs::openat(&dir, name, flags, Mode::from_raw_mode(*mode))?
                };
                if fresh {
                    rustix::fs::fchmod(&fd, Mode::from_raw_mode(*mode))?;
                }
                let seen = Self::seen(&fd);
                self.files.push(fd);
                seen
            }
            Op::Mkdir(p, mode) => self
                .make(p, Some(mode & 0o1777), |dir, name| rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(*mode))),
            Op::Fifo(p, mode) => self.make(p, Some(*mode), |dir, name| {
                rustix::fs::mknodat(dir, name, rustix::fs::FileType::Fifo, Mode::from_raw_mode(*mode), 0)
            }),
            Op::Symlink(p, target) => self.make(p, None, |dir, name| rustix::fs::symlinkat(&target[..], dir, name)),
            Op::Unlink(p) => self.parent(p).and_then(|(d, n)| rustix::fs::unlinkat(d, n, AtFlags::empty())).map(done),
            Op::Rmdir(p) => self.parent(p).and_then(|(d, n)| rustix::fs::unlinkat(d, n, AtFlags::REMOVEDIR)).map(done),
            Op::Rename(p, q, flags) => {
                let (d, n) = self.parent(p)?;
                let (e, m) = self.parent(q)?;
                rustix::fs::renameat_with(d, n, e, m, RenameFlags::from_bits_retain(*flags)).map(done)
            }
            Op::Link(p, q) => {
                let fd = self.walk(p)?;
                let (dir, name) = self.parent(q)?;
                link(&fd, &dir, name)
            }
            Op::LinkHeld(n, q) => {
                let (dir, name) = self.parent(q)?;
                link(held(n), &dir, name)
            }
            Op::Hold(p) => {
                let fd = self.walk(p)?;
                let seen = Self::seen(&fd);
                self.held.push(fd);
                seen
            }
            Op::LetGo(n) => {
                let n = n % self.held.len();
                self.held.swap_remove(n);
                Ok(Seen::Nothing)
            }
            Op::MakeIn(n, name) => {
                let fd = rustix::io::dup(held(n))?;
                let side = Plain { root: fd, held: vec![], files: vec![] };
                side.make(&[*name], Some(0o700), |dir, name| rustix::fs::mkdirat(dir, name, Mode::RWXU))
            }
            Op::List(p) => {
                let fd = rustix::fs::openat(self.walk(p)?, ".", OFlags::DIRECTORY, Mode::empty())?;
                let mut names = BTreeMap::new();
                for entry in rustix::fs::Dir::read_from(&fd)? {
                    let entry = entry?;
                    let kind = super::meta::kind_of(entry.file_type()).unwrap();
                    names.insert(entry.file_name().to_bytes().to_vec(), kind);
                }
                Ok(Seen::Names(names))
            }
            Op::Readlink(p) => {
                let (dir, name) = self.parent(p)?;
                Ok(Seen::Bytes(rustix::fs::readlinkat(dir, name, vec![])?.into_bytes()))
            }
            _ => self.run_on_inode(op),
        }
    }

    /// Whether an operation would open a fifo: a kernel never asks for that, and reading one would wait.
    fn opens_fifo(&self, op: &Op) -> bool {
        let fifo = |fd: &OwnedFd| super::meta::stat_fd(fd).is_ok_and(|found| found.attr.kind == NodeKind::Fifo);
        match op {
            Op::Open(p, _) | Op::Create(p, ..) => self.walk(p).is_ok_and(|fd| fifo(&fd)),
            Op::OpenHeld(n, _) => fifo(&self.held[n % self.held.len()]),
            _ => false,
        }
    }

    fn run_on_inode(&mut self, op: &Op) -> Result<Seen> {
        let done = |()| Seen::Nothing;
        let file = |n: &usize| &self.files[n % self.files.len()];
        match op {
            Op::TruncatePath(p, size) => {
                let fd = self.walk(p)?;
                let open = rustix::fs::open(Self::proc(&fd), OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty())?;
                rustix::fs::ftruncate(open, *size)?;
                Self::seen(&fd)
            }
            Op::Chmod(p, mode) => {
                let fd = self.walk(p)?;
                rustix::fs::chmod(Self::proc(&fd), Mode::from_raw_mode(*mode))?;
                Self::seen(&fd)
            }
            Op::Chown(p, uid, gid) => {
                let fd = self.walk(p)?;
                let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
                rustix::fs::chownat(&fd, "", uid, gid, AtFlags::EMPTY_PATH)?;
                Self::seen(&fd)
            }
            Op::Mtime(p, _) => Self::seen(&self.walk(p)?),
            Op::Setxattr(p, n, v, flags) => {
                let flags = rustix::fs::XattrFlags::from_bits_retain(*flags as u32);
                rustix::fs::setxattr(Self::proc(&self.walk(p)?), xattr_name(*n), v, flags).map(done)
            }
            Op::Getxattr(p, n) => {
                let mut value = vec![0; 4096];
                let len = rustix::fs::getxattr(Self::proc(&self.walk(p)?), xattr_name(*n), &mut value[..])?;
                value.truncate(len);
                Ok(Seen::Bytes(value))
            }
            Op::Removexattr(p, n) => rustix::fs::removexattr(Self::proc(&self.walk(p)?), xattr_name(*n)).map(done),
            Op::Open(p, flags) => {
                let fd = self.walk(p)?;
                self.open(&fd, *flags)
            }
            Op::OpenHeld(n, flags) => {
                let fd = rustix::io::dup(&self.held[n % self.held.len()])?;
                self.open(&fd, *flags)
            }
            Op::Write(n, at, data) => rustix::io::pwrite(file(n), data, *at).map(|n| Seen::Count(n as u64)),
            Op::Read(n, at, size) => {
                let mut data = vec![0; *size as usize];
                let readable = rustix::fs::open(Self::proc(file(n)), OFlags::RDONLY, Mode::empty())?;
                let len = rustix::io::pread(readable, &mut data[..], *at)?;
                data.truncate(len);
                Ok(Seen::Bytes(data))
            }
            Op::Truncate(n, size) => rustix::fs::ftruncate(file(n), *size).map(done),
            Op::Copy(a, off_a, b, off_b, len) => {
                let (mut off_a, mut off_b) = (*off_a, *off_b);
                rustix::fs::copy_file_range(file(a), Some(&mut off_a), file(b), Some(&mut off_b), *len as usize)
                    .map(|n| Seen::Count(n as u64))
            }
            Op::Fallocate(n, mode, at, len) => {
                let mode = rustix::fs::FallocateFlags::from_bits_retain(*mode as u32);
                rustix::fs::fallocate(file(n), mode, *at, *len).map(done)
            }
            Op::Close(n) => {
                let n = n % self.files.len();
                self.files.swap_remove(n);
                Ok(Seen::Nothing)
            }
            other => panic!("{other:?} is not about an inode"),
        }
    }

    fn open(&mut self, fd: &OwnedFd, flags: i32) -> Result<Seen> {
        let flags = OFlags::from_bits_retain(flags as u32) | OFlags::NONBLOCK;
        self.files.push(rustix::fs::open(Self::proc(fd), flags, Mode::empty())?);
        Ok(Seen::Nothing)
    }
}

/// Whether there is something for an operation on a held inode or an open file to work on.
fn applies(op: &Op, shadow: &Shadow) -> bool {
    match op {
        Op::LetGo(_) | Op::LinkHeld(..) | Op::OpenHeld(..) | Op::MakeIn(..) => !shadow.held.is_empty(),
        Op::Write(..) | Op::Read(..) | Op::Close(_) | Op::Truncate(..) | Op::Copy(..) | Op::Fallocate(..) => {
            !shadow.files.is_empty()
        }
        _ => true,
    }
}

/// Everything below a directory: attributes, contents, link targets.
fn tree(shadow: &mut Shadow, plain: &mut Plain, path: &mut Path) {
    let op = Op::List(path.clone());
    let (a, b) = (shadow.run(&op), plain.run(&op));
    assert_eq!(a, b, "{path:?}");
    let Ok(Seen::Names(names)) = a else { return };
    for (name, kind) in names {
        if name.starts_with(b".") {
            continue;
        }
        path.push(name[0]);
        let fd = plain.walk(path).unwrap();
        assert_eq!(shadow.at(path, |place| shadow.fs.getattr(place)).map(shape), Plain::seen(&fd), "{path:?}");
        match kind {
            NodeKind::Dir => tree(shadow, plain, path),
            NodeKind::Symlink => {
                let op = Op::Readlink(path.clone());
                assert_eq!(shadow.run(&op), plain.run(&op));
            }
            NodeKind::File => {
                let fh = shadow.at(path, |place| shadow.fs.open(place.ino(), libc::O_RDONLY)).unwrap();
                let open = rustix::fs::open(Plain::proc(&fd), OFlags::RDONLY, Mode::empty()).unwrap();
                for at in [0, 1 << 33] {
                    let mut data = vec![0; 16 << 10];
                    let len = rustix::io::pread(&open, &mut data[..], at).unwrap();
                    assert_eq!(shadow.fs.read(fh, at, 16 << 10).unwrap(), &data[..len], "{path:?}");
                }
                shadow.fs.release(fh).unwrap();
            }
            _ => {}
        }
        path.pop();
    }
}

fn compare(ops: &[Op], path_fds: usize) {
    let b = Bench::new(path_fds);
    let plain_dir = b.dir.path().join("plain");
    std::fs::create_dir(&plain_dir).unwrap();
    // The caller may do anything in both: who may was decided by the kernel above.
    for dir in [&plain_dir, &b.local()] {
        rustix::fs::chmod(dir, Mode::from_raw_mode(0o777)).unwrap();
    }
    let root = rustix::fs::open(&plain_dir, OFlags::PATH, Mode::empty()).unwrap();
    let Bench { fs, dir: _dir } = b;
    let mut shadow = Shadow { fs, held: vec![], files: vec![] };
    let mut plain = Plain { root, held: vec![], files: vec![] };
    for op in ops {
        if !applies(op, &shadow) || plain.opens_fifo(op) {
            continue;
        }
        let expected = plain.run(op);
        if expected == Err(Errno::ACCESS) {
            // The caller's own credentials, used on the plain side to make things, did not suffice: nothing happened.
            continue;
        }
        assert_eq!(shadow.run(op), expected, "{op:?}");
        for (ino, fd) in shadow.held.iter().zip(&plain.held) {
            let attr = shadow.fs.getattr(Place::Inner(*ino));
            assert_eq!(attr.map(shape), Plain::seen(fd), "a held inode after {op:?}");
        }
        assert!(shadow.fs.path_fds() <= path_fds + shadow.held.len());
    }
    tree(&mut shadow, &mut plain, &mut vec![]);
    for ino in shadow.held.drain(..) {
        shadow.fs.forget(ino, 1);
    }
    assert_eq!(shadow.fs.inode_count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_do_what_they_do_on_a_plain_directory(
        ops in prop::collection::vec(op(), 1..200),
        path_fds in prop::sample::select(vec![1_usize, 3, 1000]),
    ) {
        compare(&ops, path_fds);
    }
}
