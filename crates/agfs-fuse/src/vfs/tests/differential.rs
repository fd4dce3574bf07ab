//! Random operations by requests to the file system, with no mount, do what a reference model in memory does: every answer,
//! errno, attribute and byte. What a kernel does before it sends a request is done by the test's own (`agfs_difftest`).

use crate::errno;
use crate::testing::{FakeServer, ROOT, TestMount, mount_with};
use crate::vfs::{Entry, SetAttr, Stat};
use agfs_core::node::NodeKind;
use agfs_core::time::Timestamp;
use agfs_core::{Error, Result};
use agfs_difftest::accepted::Accepted;
use agfs_difftest::compare::{kept, now};
use agfs_difftest::found::FOUND;
use agfs_difftest::kernel::{Change, Handle, Ino, Inodes, Kernel, Reply};
use agfs_difftest::op::{Falloc, Op, Stamp, XHow};
use agfs_difftest::outcome::{self, Kind};
use agfs_difftest::run::Watch;
use agfs_difftest::{Model, Profile, Script, Side, Target, Trial};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Handle as Runtime;

/// Files and directories have handles of their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Held {
    File,
    Dir,
}

/// A mount's file system, asked from a thread of the test.
struct Requests {
    m: TestMount,
    runtime: Runtime,
    /// How many lookups of each inode were not given back.
    known: HashMap<Ino, u64>,
    /// The inodes of open files and directories, which no kernel forgets.
    open: HashMap<(Held, Handle), Ino>,
}

fn of(e: Error) -> i32 {
    errno::of_kind(e.kind())
}

const fn kind(kind: NodeKind) -> Kind {
    match kind {
        NodeKind::File => Kind::File,
        NodeKind::Dir => Kind::Dir,
        NodeKind::Symlink => Kind::Link,
        NodeKind::Fifo => Kind::Fifo,
        NodeKind::Socket => Kind::Socket,
        NodeKind::CharDevice | NodeKind::BlockDevice => Kind::Other,
    }
}

fn shown(s: Stat) -> outcome::Stat {
    outcome::Stat {
        ino: s.ino,
        kind: kind(s.kind),
        mode: s.mode,
        nlink: s.nlink.into(),
        uid: s.uid,
        gid: s.gid,
        rdev: s.rdev.into(),
        size: s.size,
        blocks: s.blocks,
        atime: s.atime.0.into(),
        mtime: s.mtime.0.into(),
        ctime: s.ctime.0.into(),
    }
}

/// A time to set: `None` for the present.
fn time(stamp: Stamp) -> Option<Timestamp> {
    match stamp {
        Stamp::At(seconds, nanos) => Some(Timestamp(seconds * 1_000_000_000 + i64::from(nanos))),
        Stamp::Now | Stamp::Omit => None,
    }
}

impl Requests {
    fn wait<T>(&self, answer: impl Future<Output = Result<T>>) -> Reply<T> {
        self.runtime.block_on(answer).map_err(of)
    }

    /// Counts a lookup.
    fn entered(&mut self, entry: &Entry) {
        *self.known.entry(entry.stat.ino).or_default() += 1;
    }

    fn opened(&mut self, held: Held, ino: Ino, handle: Handle) -> Handle {
        self.open.insert((held, handle), ino);
        handle
    }

    /// A handle is closed: what nobody has open is forgotten, as by a kernel that is short of memory.
    fn closed(&mut self, held: Held, handle: Handle) {
        self.open.remove(&(held, handle));
        let open: HashSet<Ino> = self.open.values().copied().collect();
        for (ino, lookups) in self.known.extract_if(|ino, _| !open.contains(ino)) {
            self.m.vfs.forget(ino, lookups);
        }
    }
}

impl Inodes for Requests {
    fn root(&self) -> Ino {
        1
    }

    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Reply<outcome::Stat> {
        let entry = self.wait(self.m.vfs.lookup(dir, name))?;
        self.entered(&entry);
        Ok(shown(entry.stat))
    }

    fn getattr(&mut self, ino: Ino) -> Reply<outcome::Stat> {
        self.wait(self.m.vfs.getattr(ino)).map(|a| shown(a.stat))
    }

    fn setattr(&mut self, ino: Ino, handle: Option<Handle>, change: Change) -> Reply<()> {
        let Change { mode, uid, gid, size, atime, mtime } = change;
        let set = SetAttr { mode, uid, gid, size, atime: atime.map(time), mtime: mtime.map(time) };
        self.wait(self.m.vfs.setattr(ino, handle, set, ROOT)).map(drop)
    }

    fn readlink(&mut self, ino: Ino) -> Reply<Vec<u8>> {
        self.wait(self.m.vfs.readlink(ino)).map(|target| target.to_vec())
    }

    fn mknod(&mut self, dir: Ino, name: &[u8], mode: u32) -> Reply<()> {
        self.wait(self.m.vfs.mknod(dir, name, mode, 0, ROOT)).map(|entry| self.entered(&entry))
    }

    fn mkdir(&mut self, dir: Ino, name: &[u8], mode: u32) -> Reply<()> {
        self.wait(self.m.vfs.mkdir(dir, name, mode, ROOT)).map(|entry| self.entered(&entry))
    }

    fn symlink(&mut self, dir: Ino, name: &[u8], target: &[u8]) -> Reply<()> {
        self.wait(self.m.vfs.symlink(dir, name, target, ROOT)).map(|entry| self.entered(&entry))
    }

    fn unlink(&mut self, dir: Ino, name: &[u8]) -> Reply<()> {
        self.wait(self.m.vfs.unlink(dir, name)).map(drop)
    }

    fn rmdir(&mut self, dir: Ino, name: &[u8]) -> Reply<()> {
        self.wait(self.m.vfs.rmdir(dir, name))
    }

    fn rename(&mut self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: u32) -> Reply<()> {
        self.wait(self.m.vfs.rename(from, to, flags)).map(drop)
    }

    fn link(&mut self, ino: Ino, dir: Ino, name: &[u8]) -> Reply<()> {
        self.wait(self.m.vfs.link(ino, dir, name)).map(|entry| self.entered(&entry))
    }

    fn create(&mut self, dir: Ino, name: &[u8], mode: u32, flags: i32) -> Reply<(Ino, Handle)> {
        let (entry, opened) = self.wait(self.m.vfs.create(dir, name, mode, flags, ROOT))?;
        self.entered(&entry);
        Ok((entry.stat.ino, self.opened(Held::File, entry.stat.ino, opened.fh)))
    }

    fn open(&mut self, ino: Ino, flags: i32) -> Reply<Handle> {
        self.wait(self.m.vfs.open(ino, flags, ROOT)).map(|opened| self.opened(Held::File, ino, opened.fh))
    }

    fn read(&mut self, handle: Handle, at: u64, len: u64) -> Reply<Vec<u8>> {
        self.wait(self.m.vfs.read(handle, at, len.try_into().unwrap())).map(|data| data.to_vec())
    }

    fn write(&mut self, handle: Handle, at: u64, data: &[u8]) -> Reply<()> {
        let written = self.wait(self.m.vfs.write(handle, at, data, false))?;
        assert_eq!(written as usize, data.len());
        Ok(())
    }

    fn fallocate(&mut self, handle: Handle, how: Falloc, at: u64, len: u64) -> Reply<()> {
        self.wait(self.m.vfs.fallocate(handle, at, len, how.0, false))
    }

    fn seek(&mut self, handle: Handle, at: u64, hole: bool) -> Reply<Option<u64>> {
        let whence = if hole { libc::SEEK_HOLE } else { libc::SEEK_DATA };
        let Ok(at) = i64::try_from(at) else { return Ok(None) };
        self.wait(self.m.vfs.lseek(handle, at, whence))
    }

    fn copy(&mut self, from: (Handle, u64), to: (Handle, u64), len: u64) -> Reply<u64> {
        self.wait(self.m.vfs.copy_file_range(from, to, len, false)).map(u64::from)
    }

    fn fsync(&mut self, handle: Handle) -> Reply<()> {
        self.wait(self.m.vfs.fsync(handle, false))
    }

    fn close(&mut self, handle: Handle) -> Reply<()> {
        let flushed = self.wait(self.m.vfs.flush(handle));
        let released = self.wait(self.m.vfs.release(handle));
        self.closed(Held::File, handle);
        released.and(flushed)
    }

    fn opendir(&mut self, ino: Ino) -> Reply<Handle> {
        self.wait(self.m.vfs.opendir(ino)).map(|handle| self.opened(Held::Dir, ino, handle))
    }

    fn readdir(&mut self, handle: Handle) -> Reply<Vec<(Vec<u8>, Kind)>> {
        let mut names = Vec::new();
        let mut take = |item: crate::vfs::DirItem<'_>| {
            names.push((item.name.to_vec(), kind(item.kind)));
            true
        };
        self.wait(self.m.vfs.readdir(handle, 0, false, &mut take))?;
        Ok(names)
    }

    fn closedir(&mut self, handle: Handle) -> Reply<()> {
        self.m.vfs.releasedir(handle).map_err(of)?;
        self.closed(Held::Dir, handle);
        Ok(())
    }

    fn setxattr(&mut self, ino: Ino, name: &str, value: &[u8], how: XHow) -> Reply<()> {
        let flags = match how {
            XHow::Set => 0,
            XHow::Create => libc::XATTR_CREATE,
            XHow::Replace => libc::XATTR_REPLACE,
        };
        self.wait(self.m.vfs.setxattr(ino, name.as_bytes(), value, flags))
    }

    fn getxattr(&mut self, ino: Ino, name: &str) -> Reply<Vec<u8>> {
        self.wait(self.m.vfs.getxattr(ino, name.as_bytes()))
    }

    fn listxattr(&mut self, ino: Ino) -> Reply<Vec<Vec<u8>>> {
        let list = self.wait(self.m.vfs.listxattr(ino, ROOT))?;
        Ok(list.split(|b| *b == 0).filter(|n| !n.is_empty()).map(<[u8]>::to_vec).collect())
    }

    fn removexattr(&mut self, ino: Ino, name: &str) -> Reply<()> {
        self.wait(self.m.vfs.removexattr(ino, name.as_bytes()))
    }
}

/// After how many seeds that fail the others are not tried.
const ENOUGH: usize = 2;

/// Where the file system may differ from the model, and why.
const ACCEPTED: &[Accepted] = &[Accepted {
    reason: "the model calls everything data and counts no space",
    fits: |case| case.difference.kind == "blocks",
}];

/// A server, and the parts of its last mount to look into when a script is done.
struct Arena {
    runtime: tokio::runtime::Runtime,
    last: Option<(Arc<FakeServer>, Arc<crate::vfs::Vfs>, Arc<crate::testing::FakeUpstream>)>,
}

impl Arena {
    fn new() -> Arena {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Arena { runtime, last: None }
    }

    fn requests(&self, server: &Arc<FakeServer>) -> Requests {
        let _context = self.runtime.enter();
        Requests {
            m: mount_with(server, &["none"]),
            runtime: self.runtime.handle().clone(),
            known: HashMap::new(),
            open: HashMap::new(),
        }
    }

    fn sides(&mut self) -> (Side, Side) {
        let server = FakeServer::at(Timestamp(now().try_into().unwrap()));
        let requests = self.requests(&server);
        self.last = Some((server, requests.m.vfs.clone(), requests.m.up.clone()));
        (Side::new(|| Kernel::new(Model::new())), Side::new(move || Kernel::new(requests)))
    }

    fn trial<T>(&mut self, act: impl FnOnce(&mut Trial<'_>) -> T) -> T {
        act(&mut Trial::new(ACCEPTED, || self.sides()))
    }

    /// What another mount sees is the same, and nothing is left uncommitted.
    fn is_committed(&self, tree: &agfs_difftest::Outcome) {
        let (server, vfs, up) = self.last.as_ref().unwrap();
        let again = Kernel::new(self.requests(server)).apply(&Op::Tree {});
        kept(tree, &again).unwrap_or_else(|d| panic!("another mount: {}", d.text));
        assert_eq!(up.pending(), 0);
        assert!(vfs.inodes().dirty(false).is_empty());
    }
}

#[test]
fn random_requests_do_what_they_do_to_a_model() {
    let mut arena = Arena::new();
    let (seeds, steps) = (0..24, 3_000);
    let (begin, mut successes) = (Instant::now(), 0);
    let mut failures = Vec::new();
    for seed in seeds.clone() {
        match arena.trial(|t| t.seed(seed, steps, Profile::requests())) {
            Ok(passed) => {
                arena.is_committed(&passed.trees.1);
                successes += passed.report.successes();
            }
            Err(failure) => failures.push(format!("seed {seed}: {failure}")),
        }

        if failures.len() == ENOUGH {
            break;
        }
    }
    let all = steps * seeds.count();
    println!("{all} operations in {:?}, {successes} succeeded", begin.elapsed());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(successes > all / 4, "only {successes} of {all} did anything");
}

#[test]
fn what_once_differed_from_the_model_is_the_same() {
    let mut arena = Arena::new();
    let found = FOUND.iter().map(|(name, script)| (name, Script::of(script)));
    for (name, script) in found.filter(|(_, script)| script.is_of_requests()) {
        let passed = arena.trial(|t| t.script(&script, Watch::CLOSE));
        let passed = passed.unwrap_or_else(|failure| panic!("{name}: {failure}"));
        arena.is_committed(&passed.trees.1);
    }
}
