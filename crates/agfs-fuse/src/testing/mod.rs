//! For tests: a server in memory whose every answer the test can hold back, a kernel that writes down what it is told,
//! and mounts made of them. No network, no mount.

mod alloc;
mod server;

pub use alloc::allocated_here;
pub use server::{FakeServer, FakeUpstream};

use crate::content::ScratchDir;
use crate::kernel::{Kernel, Known};
use crate::shadow::ShadowFs;
use crate::sink::Sink;
use crate::tree::VersionTree;
use crate::vfs::{Caller, Vfs};
use crate::world::World;
use agfs_core::FileId;
use agfs_core::shadow::{DEFAULT_RULES, Rules};
use agfs_core::space::Durability;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// How long a fake tree waits for a stream that does not come.
pub const PATIENCE: Duration = Duration::from_millis(300);

/// The caller of most tests.
pub const ROOT: Caller = Caller { uid: 0, gid: 0 };
/// A caller who may keep no set-id bits.
pub const USER: Caller = Caller { uid: 1_000, gid: 1_000 };

/// What a kernel was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Epoch,
    Attr(FileId),
    AttrSoon(FileId),
    Pages(FileId),
    Again,
}

/// A kernel that writes down what it is told.
#[derive(Default)]
pub struct FakeKernel(Mutex<Vec<Told>>);

impl FakeKernel {
    /// What it was told since the last look.
    pub fn take(&self) -> Vec<Told> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Kernel for FakeKernel {
    fn bump_epoch(&self) {
        self.0.lock().push(Told::Epoch);
    }
    fn invalidate_attr(&self, id: FileId) {
        self.0.lock().push(Told::Attr(id));
    }
    fn invalidate_attr_soon(&self, id: FileId) {
        self.0.lock().push(Told::AttrSoon(id));
    }
    fn invalidate_pages_soon(&self, id: FileId) {
        self.0.lock().push(Told::Pages(id));
    }
    fn repeat_soon(&self, _ids: Vec<FileId>) {
        self.0.lock().push(Told::Again);
    }
}

/// One mount of a fake server.
pub struct TestMount {
    pub vfs: Arc<Vfs>,
    pub up: Arc<FakeUpstream>,
    pub tree: Arc<VersionTree>,
    pub kernel: Arc<FakeKernel>,
    pub known: Arc<Known>,
    _dir: tempfile::TempDir,
}

/// Mounts a fake server.
pub fn mount(server: &Arc<FakeServer>) -> TestMount {
    mount_with(server, DEFAULT_RULES)
}

/// Mounts a fake server with these shadow rules.
pub fn mount_with(server: &Arc<FakeServer>, rules: &[&str]) -> TestMount {
    let dir = tempfile::tempdir().unwrap();
    let scratch = dir.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let kernel = Arc::new(FakeKernel::default());
    let sink = Arc::new(Sink {
        tree: Arc::new(VersionTree::new(PATIENCE)),
        inodes: Arc::default(),
        known: Arc::default(),
        kernel: kernel.clone(),
        stream: Arc::default(),
    });
    let (up, head, root) = server.attach(sink.clone());
    sink.tree.begin(head, root, true);
    let world = World {
        tree: sink.tree.clone(),
        up: up.clone(),
        known: sink.known.clone(),
        kernel: kernel.clone(),
        scratch: ScratchDir::new(scratch),
        stream: sink.stream.clone(),
        durability: Durability::Auto,
        read_only: false,
        pending: AtomicU64::new(0),
        applied: AtomicU64::new(0),
        durable: AtomicU64::new(0),
    };
    let shadow = ShadowFs::with_path_fds(dir.path().join("shadow"), 64).unwrap();
    let rules = Rules::parse(rules).unwrap();
    let vfs = Vfs::new(Arc::new(world), sink.inodes.clone(), Arc::new(shadow), rules, FileId::ROOT);
    vfs.set_epoch(true);
    TestMount { vfs, up, tree: sink.tree.clone(), kernel, known: sink.known.clone(), _dir: dir }
}

impl TestMount {
    /// Makes a file with this content and closes it. Returns its number.
    pub async fn put(&self, parent: u64, name: &str, content: &[u8]) -> u64 {
        let flags = libc::O_WRONLY | libc::O_CREAT;
        let (entry, opened) = self.vfs.create(parent, name.as_bytes(), 0o644, flags, ROOT).await.unwrap();
        self.vfs.write(opened.fh, 0, content, false).await.unwrap();
        self.close(opened.fh).await;
        entry.stat.ino
    }

    /// Opens an existing file.
    pub async fn open(&self, ino: u64, flags: i32) -> u64 {
        self.vfs.open(ino, flags, ROOT).await.unwrap().fh
    }

    /// Closes a file as a program does: flush, then release.
    pub async fn close(&self, fh: u64) {
        self.vfs.flush(fh).await.unwrap();
        self.vfs.release(fh).await.unwrap();
    }

    /// The content of a file, by an open of its own.
    pub async fn content(&self, ino: u64) -> Vec<u8> {
        let fh = self.open(ino, libc::O_RDONLY).await;
        let bytes = self.vfs.read(fh, 0, u32::MAX).await.unwrap();
        self.vfs.release(fh).await.unwrap();
        bytes.to_vec()
    }

    /// The number that a name leads to, looked up without keeping the lookup.
    pub async fn ino(&self, parent: u64, name: &str) -> agfs_core::Result<u64> {
        let entry = self.vfs.lookup(parent, name.as_bytes()).await?;
        self.vfs.forget(entry.stat.ino, 1);
        Ok(entry.stat.ino)
    }

    /// The names in a directory, without `.` and `..`.
    pub async fn names(&self, ino: u64) -> Vec<String> {
        let fh = self.vfs.opendir(ino).await.unwrap();
        let mut names = Vec::new();
        self.vfs
            .readdir(fh, 0, false, &mut |item| {
                names.push(String::from_utf8_lossy(item.name).into_owned());
                true
            })
            .await
            .unwrap();
        self.vfs.releasedir(fh).unwrap();
        names.into_iter().filter(|n| n != "." && n != "..").collect()
    }
}

/// Numbers that look random and are the same every time.
pub struct Rng(pub u64);

impl Rng {
    /// The next number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n.max(1)
    }

    /// `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}
