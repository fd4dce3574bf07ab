//! Random operations on the file system and on a plain directory of this machine must do the same: the same errno, the
//! same names, kinds, modes, sizes, link counts and bytes.

use crate::errno;
use crate::testing::{FakeServer, ROOT, Rng, TestMount, mount_with};
use crate::vfs::SetAttr;
use agfs_core::node::NodeKind;
use agfs_core::{Error, ErrorKind};
use rustix::fs::{AtFlags, FallocateFlags, Mode, RenameFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file open on both sides.
struct Pair {
    real: File,
    fh: u64,
    ino: u64,
    writes: bool,
}

struct Both {
    m: TestMount,
    dir: tempfile::TempDir,
    open: Vec<Pair>,
}

type Outcome = Result<(), i32>;

fn of(e: &Error) -> i32 {
    errno::of_kind(e.kind())
}

fn raw(e: std::io::Error) -> i32 {
    e.raw_os_error().unwrap()
}

impl Both {
    fn real(&self, path: &[&str]) -> PathBuf {
        path.iter().fold(self.dir.path().to_owned(), |p, n| p.join(n))
    }

    /// Walks as the kernel does: the directory and last name of a path.
    async fn parent<'a>(&self, path: &[&'a str]) -> Result<(u64, &'a str), i32> {
        let (last, dirs) = path.split_last().unwrap();
        let mut at = 1;
        for name in dirs {
            let entry = self.m.vfs.lookup(at, name.as_bytes()).await.map_err(|e| of(&e))?;
            self.m.vfs.forget(entry.stat.ino, 1);
            match entry.stat.kind {
                NodeKind::Dir => at = entry.stat.ino,
                // Every link of the test leads nowhere.
                NodeKind::Symlink => return Err(libc::ENOENT),
                _ => return Err(libc::ENOTDIR),
            }
        }
        Ok((at, last))
    }

    async fn find(&self, path: &[&str]) -> Result<(u64, NodeKind), i32> {
        let (at, name) = self.parent(path).await?;
        let entry = self.m.vfs.lookup(at, name.as_bytes()).await.map_err(|e| of(&e))?;
        self.m.vfs.forget(entry.stat.ino, 1);
        Ok((entry.stat.ino, entry.stat.kind))
    }

    async fn step(&mut self, rng: &mut Rng) -> (String, Outcome, Outcome) {
        let (p, q) = (path(rng), path(rng));
        let what = rng.below(100);
        match what {
            0..12 => self.mkdir(&p).await,
            12..16 => self.rmdir(&p).await,
            16..22 => self.unlink(&p).await,
            22..34 => self.rename(&p, &q, rng.below(10)).await,
            34..40 => self.link(&p, &q).await,
            40..43 => self.symlink(&p).await,
            43..62 => self.open_pair(&p, rng).await,
            62..78 => self.write(rng).await,
            78..82 => self.resize(rng).await,
            82..85 => self.punch(rng).await,
            85..88 => self.truncate(&p, rng.below(3_000)).await,
            88..91 => self.chmod(&p, rng.below(0o1000) as u32).await,
            _ => self.close(rng).await,
        }
    }

    async fn mkdir(&self, p: &[&str]) -> (String, Outcome, Outcome) {
        let real = std::fs::create_dir(self.real(p)).map_err(raw);
        let ours = match self.parent(p).await {
            Ok((at, name)) => self.m.vfs.mkdir(at, name.as_bytes(), 0o755, ROOT).await.map(drop).map_err(|e| of(&e)),
            Err(e) => Err(e),
        };
        (format!("mkdir {p:?}"), real, ours)
    }

    async fn rmdir(&self, p: &[&str]) -> (String, Outcome, Outcome) {
        let real = std::fs::remove_dir(self.real(p)).map_err(raw);
        let ours = match self.parent(p).await {
            Ok((at, name)) => self.m.vfs.rmdir(at, name.as_bytes()).await.map_err(|e| of(&e)),
            Err(e) => Err(e),
        };
        (format!("rmdir {p:?}"), real, ours)
    }

    async fn unlink(&self, p: &[&str]) -> (String, Outcome, Outcome) {
        let real = rustix::fs::unlink(self.real(p)).map_err(|e| e.raw_os_error());
        let ours = match self.parent(p).await {
            Ok((at, name)) => self.m.vfs.unlink(at, name.as_bytes()).await.map(drop).map_err(|e| of(&e)),
            Err(e) => Err(e),
        };
        (format!("unlink {p:?}"), real, ours)
    }

    async fn rename(&self, p: &[&str], q: &[&str], how: u64) -> (String, Outcome, Outcome) {
        let flags = match how {
            0 => RenameFlags::NOREPLACE,
            1 => RenameFlags::EXCHANGE,
            _ => RenameFlags::empty(),
        };
        let cwd = rustix::fs::CWD;
        let real = rustix::fs::renameat_with(cwd, self.real(p), cwd, self.real(q), flags).map_err(|e| e.raw_os_error());
        let ours = match (self.parent(p).await, self.parent(q).await) {
            // The kernel sees by itself that the target lies above the source.
            (Ok(_), Ok(_)) if p.len() > q.len() && p.starts_with(q) && self.find(p).await.is_ok() => Err(match how {
                0 => libc::EEXIST,
                1 => libc::EINVAL,
                _ => libc::ENOTEMPTY,
            }),
            (Ok((a, an)), Ok((b, bn))) => {
                let (from, to) = ((a, an.as_bytes()), (b, bn.as_bytes()));
                self.m.vfs.rename(from, to, flags.bits()).await.map(drop).map_err(|e| of(&e))
            }
            (Err(e), _) | (_, Err(e)) => Err(e),
        };
        (format!("rename {p:?} {q:?} {flags:?}"), real, ours)
    }

    async fn link(&self, p: &[&str], q: &[&str]) -> (String, Outcome, Outcome) {
        let cwd = rustix::fs::CWD;
        let real = rustix::fs::linkat(cwd, self.real(p), cwd, self.real(q), AtFlags::empty());
        let ours = match (self.find(p).await, self.parent(q).await) {
            // The kernel looks at the new name first.
            (Ok(_), Ok(_)) if self.find(q).await.is_ok() => Err(libc::EEXIST),
            (Ok((ino, _)), Ok((at, name))) => {
                let linked = self.m.vfs.link(ino, at, name.as_bytes()).await;
                linked.map(|e| self.m.vfs.forget(e.stat.ino, 1)).map_err(|e| of(&e))
            }
            (Err(e), _) | (_, Err(e)) => Err(e),
        };
        (format!("link {p:?} {q:?}"), real.map_err(|e| e.raw_os_error()), ours)
    }

    async fn symlink(&self, p: &[&str]) -> (String, Outcome, Outcome) {
        let real = std::os::unix::fs::symlink("no/where", self.real(p)).map_err(raw);
        let ours = match self.parent(p).await {
            Ok((at, name)) => {
                self.m.vfs.symlink(at, name.as_bytes(), b"no/where", ROOT).await.map(drop).map_err(|e| of(&e))
            }
            Err(e) => Err(e),
        };
        (format!("symlink {p:?}"), real, ours)
    }

    async fn open_pair(&mut self, p: &[&str], rng: &mut Rng) -> (String, Outcome, Outcome) {
        let mut flags = [libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR][rng.below(3) as usize];
        for (flag, chance) in [(libc::O_CREAT, 60), (libc::O_EXCL, 10), (libc::O_TRUNC, 30), (libc::O_APPEND, 15)] {
            if rng.below(100) < chance {
                flags |= flag;
            }
        }
        if flags & libc::O_ACCMODE == libc::O_RDONLY {
            flags &= !libc::O_TRUNC;
        }
        if flags & libc::O_CREAT == 0 {
            flags &= !libc::O_EXCL;
        }
        let oflags = rustix::fs::OFlags::from_bits_retain(flags as u32) | rustix::fs::OFlags::NOFOLLOW;
        let real = rustix::fs::open(self.real(p), oflags, Mode::from_raw_mode(0o644)).map_err(|e| e.raw_os_error());
        let ours = self.open_ours(p, flags).await;
        let outcome = (real.as_ref().map(drop).map_err(|e| *e), ours.as_ref().map(drop).map_err(|e| *e));
        if let (Ok(real), Ok((ino, fh))) = (real, ours) {
            let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
            self.open.push(Pair { real: File::from(real), fh, ino, writes });
        }
        (format!("open {p:?} {flags:#o}"), outcome.0, outcome.1)
    }

    async fn open_ours(&self, p: &[&str], flags: i32) -> Result<(u64, u64), i32> {
        let (at, name) = self.parent(p).await?;
        match self.m.vfs.lookup(at, name.as_bytes()).await {
            Ok(entry) => {
                self.m.vfs.forget(entry.stat.ino, 1);
                if flags & libc::O_EXCL != 0 {
                    return Err(libc::EEXIST);
                }
                match entry.stat.kind {
                    NodeKind::Symlink => return Err(libc::ELOOP),
                    NodeKind::Dir if flags & (libc::O_CREAT | libc::O_ACCMODE) != 0 => return Err(libc::EISDIR),
                    // The kernel opens directories by another request.
                    NodeKind::Dir => return Err(0),
                    _ => {}
                }
                let opened = self.m.vfs.open(entry.stat.ino, flags, ROOT).await.map_err(|e| of(&e))?;
                Ok((entry.stat.ino, opened.fh))
            }
            Err(e) if e.kind() == ErrorKind::NotFound && flags & libc::O_CREAT != 0 => {
                let made = self.m.vfs.create(at, name.as_bytes(), 0o644, flags, ROOT).await;
                made.map(|(entry, opened)| (entry.stat.ino, opened.fh)).map_err(|e| of(&e))
            }
            Err(e) => Err(of(&e)),
        }
    }

    async fn write(&mut self, rng: &mut Rng) -> (String, Outcome, Outcome) {
        let Some(pair) = pick(&self.open, rng, true) else { return nothing() };
        // Mostly small files; now and then one that is split and committed in pieces.
        let offset = if rng.below(20) == 0 { rng.below(2_000_000) } else { rng.below(5_000) };
        let len = if rng.below(30) == 0 { 700_000 } else { rng.below(3_000) as usize };
        let data = rng.bytes(len);
        let real = pair.real.write_all_at(&data, offset).map_err(raw);
        let ours = self.m.vfs.write(pair.fh, offset, &data, false).await.map(drop).map_err(|e| of(&e));
        (format!("write {} bytes at {offset} to {}", data.len(), pair.ino), real, ours)
    }

    async fn resize(&mut self, rng: &mut Rng) -> (String, Outcome, Outcome) {
        let Some(pair) = pick(&self.open, rng, true) else { return nothing() };
        let size = if rng.below(6) == 0 { rng.below(1_500_000) } else { rng.below(6_000) };
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        let real = pair.real.set_len(size).map_err(raw);
        let ours = self.m.vfs.setattr(pair.ino, Some(pair.fh), set, ROOT).await.map(drop).map_err(|e| of(&e));
        (format!("resize {} to {size}", pair.ino), real, ours)
    }

    async fn punch(&mut self, rng: &mut Rng) -> (String, Outcome, Outcome) {
        let Some(pair) = pick(&self.open, rng, true) else { return nothing() };
        let modes = [
            FallocateFlags::empty(),
            FallocateFlags::KEEP_SIZE,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            FallocateFlags::ZERO_RANGE,
            FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE,
        ];
        let (mode, offset, len) = (modes[rng.below(5) as usize], rng.below(300_000), 1 + rng.below(200_000));
        let real = rustix::fs::fallocate(&pair.real, mode, offset, len).map_err(|e| e.raw_os_error());
        let ours = self.m.vfs.fallocate(pair.fh, offset, len, mode.bits() as i32, false).await.map_err(|e| of(&e));
        (format!("fallocate {} {mode:?} {offset}+{len}", pair.ino), real, ours)
    }

    async fn truncate(&self, p: &[&str], size: u64) -> (String, Outcome, Outcome) {
        let cpath = std::ffi::CString::new(self.real(p).into_os_string().into_encoded_bytes()).unwrap();
        // SAFETY: the path is a string that ends with NUL.
        let done = unsafe { libc::truncate(cpath.as_ptr(), size as i64) };
        let real = if done == 0 { Ok(()) } else { Err(raw(std::io::Error::last_os_error())) };
        let ours = match self.find(p).await {
            // truncate(2) follows links, and every link of the test leads nowhere.
            Ok((_, NodeKind::Symlink)) => Err(libc::ENOENT),
            Ok((ino, _)) => {
                let set = SetAttr { size: Some(size), ..SetAttr::default() };
                self.m.vfs.setattr(ino, None, set, ROOT).await.map(drop).map_err(|e| of(&e))
            }
            Err(e) => Err(e),
        };
        (format!("truncate {p:?} to {size}"), real, ours)
    }

    async fn chmod(&self, p: &[&str], mode: u32) -> (String, Outcome, Outcome) {
        let real = std::fs::set_permissions(self.real(p), std::fs::Permissions::from_mode(mode)).map_err(raw);
        let ours = match self.find(p).await {
            Ok((_, NodeKind::Symlink)) => Err(libc::ENOENT),
            Ok((ino, _)) => {
                let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
                self.m.vfs.setattr(ino, None, set, ROOT).await.map(drop).map_err(|e| of(&e))
            }
            Err(e) => Err(e),
        };
        (format!("chmod {p:?} {mode:o}"), real, ours)
    }

    async fn close(&mut self, rng: &mut Rng) -> (String, Outcome, Outcome) {
        if self.open.is_empty() {
            return nothing();
        }
        let pair = self.open.swap_remove(rng.below(self.open.len() as u64) as usize);
        self.same_bytes(&pair).await;
        if pair.writes {
            self.m.vfs.flush(pair.fh).await.unwrap();
        }
        self.m.vfs.release(pair.fh).await.unwrap();
        (format!("close {}", pair.ino), Ok(()), Ok(()))
    }

    /// What is read by a handle, and what fstat says of it, is the same on both sides.
    async fn same_bytes(&self, pair: &Pair) {
        let (meta, stat) = (pair.real.metadata().unwrap(), self.m.vfs.getattr(pair.ino).await.unwrap().stat);
        assert_eq!((meta.size(), meta.nlink() as u32), (stat.size, stat.nlink), "fstat of {}", pair.ino);
        let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pair.real));
        let want = std::fs::read(again).unwrap();
        let got = self.m.vfs.read(pair.fh, 0, u32::MAX).await.unwrap();
        assert!(want == got, "the bytes of {} differ", pair.ino);
    }

    /// Everything that both trees show.
    async fn same_trees(&self, vfs: &TestMount) {
        let mut want = BTreeMap::new();
        walk_real(self.dir.path(), "", &mut want);
        let mut got = BTreeMap::new();
        walk_ours(vfs, 1, String::new(), &mut got).await;
        let names = |m: &BTreeMap<String, Shown>| m.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&want), names(&got));
        for (path, want) in &want {
            assert!(*want == got[path], "{path} differs: {want:?} and {:?}", got[path]);
        }
    }
}

/// What is compared of a node.
#[derive(PartialEq, Eq)]
struct Shown(NodeKind, u32, u32, Vec<u8>);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} mode {:o} nlink {} with {} bytes", self.0, self.1, self.2, self.3.len())
    }
}

fn walk_real(dir: &Path, at: &str, out: &mut BTreeMap<String, Shown>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{at}/{}", entry.file_name().to_string_lossy());
        let meta = entry.metadata().unwrap();
        let (kind, bytes) = if meta.is_dir() {
            walk_real(&entry.path(), &path, out);
            (NodeKind::Dir, Vec::new())
        } else if meta.is_symlink() {
            (NodeKind::Symlink, std::fs::read_link(entry.path()).unwrap().into_os_string().into_encoded_bytes())
        } else {
            (NodeKind::File, std::fs::read(entry.path()).unwrap())
        };
        out.insert(path, Shown(kind, meta.mode() & 0o7777, meta.nlink() as u32, bytes));
    }
}

async fn walk_ours(m: &TestMount, dir: u64, at: String, out: &mut BTreeMap<String, Shown>) {
    let mut todo = vec![(dir, at)];
    while let Some((dir, at)) = todo.pop() {
        for name in m.names(dir).await {
            let entry = m.vfs.lookup(dir, name.as_bytes()).await.unwrap();
            m.vfs.forget(entry.stat.ino, 1);
            let (path, s) = (format!("{at}/{name}"), entry.stat);
            let bytes = match s.kind {
                NodeKind::Dir => {
                    todo.push((s.ino, path.clone()));
                    Vec::new()
                }
                NodeKind::Symlink => m.vfs.readlink(s.ino).await.unwrap().to_vec(),
                _ => m.content(s.ino).await,
            };
            if s.kind == NodeKind::File {
                assert_eq!(s.size, bytes.len() as u64);
            }
            out.insert(path, Shown(s.kind, s.mode, s.nlink, bytes));
        }
    }
}

fn path(rng: &mut Rng) -> Vec<&'static str> {
    (0..1 + rng.below(3)).map(|_| ["a", "b", "c", "d"][rng.below(4) as usize]).collect()
}

fn pick<'a>(open: &'a [Pair], rng: &mut Rng, writes: bool) -> Option<&'a Pair> {
    let fit: Vec<&Pair> = open.iter().filter(|p| p.writes == writes).collect();
    fit.get(rng.below(fit.len() as u64) as usize).copied()
}

fn nothing() -> (String, Outcome, Outcome) {
    (String::new(), Ok(()), Ok(()))
}

async fn run(seed: u64, steps: usize) {
    let server = FakeServer::new();
    let m = mount_with(&server, &["none"]);
    let mut both = Both { m, dir: tempfile::tempdir().unwrap(), open: Vec::new() };
    let mut rng = Rng(seed);
    let mut succeeded = 0;
    for n in 0..steps {
        let (what, real, ours) = both.step(&mut rng).await;
        // A directory opened as a file is the kernel's own business.
        assert!(real == ours || ours == Err(0), "seed {seed}, step {n}: {what}: {real:?} there, {ours:?} here");
        succeeded += usize::from(real.is_ok());
        if n % 500 == 499 {
            both.same_trees(&both.m).await;
        }
        if both.open.len() > 12 {
            drop(both.close(&mut rng).await);
        }
    }
    while !both.open.is_empty() {
        drop(both.close(&mut rng).await);
    }
    both.same_trees(&both.m).await;
    // What another mount sees is the same, and nothing is left uncommitted.
    both.same_trees(&mount_with(&server, &["none"])).await;
    assert_eq!(both.m.up.pending(), 0);
    assert!(both.m.vfs.inodes().dirty(false).is_empty());
    assert!(succeeded > steps / 5, "only {succeeded} of {steps} did anything");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_operations_do_what_they_do_on_a_plain_directory() {
    for seed in [0x9e37_79b9, 0xdead_beef, 42] {
        run(seed, 4_000).await;
    }
}
