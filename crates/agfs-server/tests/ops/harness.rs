//! A space to work on, and short words for operations. No assertions about the server live here.

use agfs_core::id::{FileId, OpId};
use agfs_core::manifest::Extent;
use agfs_core::node::{Body, Node};
use agfs_core::op::{Author, Batch, ContentEdit, NewNode, Op, RenameMode, TimedOp};
use agfs_core::space::SpaceType;
use agfs_core::time::{Clock, Timestamp};
use agfs_core::{Name, Result, Seq};
use agfs_server::blob::{BlobConfig, ChunkStore, encode};
use agfs_server::engine::{Engine, SpaceCell};
use agfs_server::ops::NewSpace;
use agfs_server::store::{MemoryStore, MetaStore, RocksConfig, RocksStore};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A clock that goes a millisecond on at each look.
pub struct Ticks(AtomicI64);

impl Clock for Ticks {
    fn now(&self) -> Timestamp {
        Timestamp(1_700_000_000_000_000_000 + 1_000_000 * self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// What a tree looks like from outside: by path, what is there.
pub type Picture = BTreeMap<String, String>;

pub struct Farm {
    pub engine: Arc<Engine>,
    pub dir: tempfile::TempDir,
    ops: AtomicU64,
    runtime: tokio::runtime::Runtime,
}

impl Farm {
    pub fn memory() -> Farm {
        Farm::over(Arc::new(MemoryStore::new()), tempfile::tempdir().unwrap())
    }

    pub fn rocks() -> Farm {
        let dir = tempfile::tempdir().unwrap();
        let meta = RocksStore::open(&dir.path().join("meta"), &RocksConfig::default()).unwrap();
        Farm::over(Arc::new(meta), dir)
    }

    /// Closes everything and opens it again from what was stored.
    pub fn reopened(self) -> Farm {
        let Farm { engine, dir, runtime, .. } = self;
        runtime.block_on(engine.chunks.close()).unwrap();
        drop(engine);
        drop(runtime);
        let meta = RocksStore::open(&dir.path().join("meta"), &RocksConfig::default()).unwrap();
        Farm::over(Arc::new(meta), dir)
    }

    fn over(meta: Arc<dyn MetaStore>, dir: tempfile::TempDir) -> Farm {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(Ticks(AtomicI64::new(0)));
        let objects = dir.path().join("objects");
        std::fs::create_dir_all(&objects).unwrap();
        let config = BlobConfig::new(format!("file://{}", objects.display()), dir.path().join("staging"));
        let chunks = runtime.block_on(ChunkStore::open(config, meta.clone(), clock.clone())).unwrap();
        let engine = Arc::new(Engine::open(meta, chunks, clock).unwrap());
        static CLIENTS: AtomicU64 = AtomicU64::new(1);
        let first = CLIENTS.fetch_add(1, Ordering::Relaxed) << 40;
        Farm { engine, dir, ops: AtomicU64::new(first), runtime }
    }

    pub fn op(&self) -> OpId {
        OpId { client: 7, counter: self.ops.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    pub fn space(&self, name: &str) -> Work<'_> {
        let new = NewSpace {
            op_id: self.op(),
            name: name.into(),
            space_type: SpaceType::Project,
            tenant_code: String::new(),
            owner: String::new(),
            shadow_rules: None,
            mode: 0o755,
            uid: 0,
            gid: 0,
        };
        self.engine.create_space(new).unwrap();
        self.work(name)
    }

    pub fn work(&self, name: &str) -> Work<'_> {
        Work { farm: self, cell: self.engine.space(name).unwrap(), author: Author::default() }
    }
}

/// A space under work.
pub struct Work<'a> {
    pub farm: &'a Farm,
    pub cell: Arc<SpaceCell>,
    pub author: Author,
}

impl Work<'_> {
    pub fn engine(&self) -> &Arc<Engine> {
        &self.farm.engine
    }

    pub fn head(&self) -> Seq {
        self.cell.info().head
    }

    pub fn apply(&self, ops: Vec<Op>) -> Result<Seq> {
        self.apply_at(self.engine().clock.now(), ops)
    }

    pub fn apply_at(&self, time: Timestamp, ops: Vec<Op>) -> Result<Seq> {
        let ops = ops.into_iter().map(|op| TimedOp { time, op }).collect();
        let batch = Batch { op_id: self.farm.op(), author: self.author.clone(), ops };
        Ok(self.engine().apply(&self.cell, &batch)?.to)
    }

    pub fn id(&self) -> FileId {
        FileId(self.engine().reserve_ids(&self.cell, 1).unwrap().start)
    }

    pub fn chunk(&self, data: &[u8]) -> Vec<Extent> {
        if data.is_empty() {
            return Vec::new();
        }
        let chunk = encode(Bytes::copy_from_slice(data)).unwrap();
        let extent = Extent::whole(chunk.hash, data.len() as u64);
        self.farm.runtime.block_on(self.engine().chunks.put(vec![chunk])).unwrap();
        vec![extent]
    }

    /// The node at a path now.
    pub fn node(&self, path: &str) -> Result<Node> {
        self.node_at("", path)
    }

    pub fn node_at(&self, at: &str, path: &str) -> Result<Node> {
        let resolved = self.engine().resolve(&self.cell, at, path.as_bytes(), false)?;
        Ok(resolved.nodes.last().unwrap().clone())
    }

    /// The directory of a path, and the last name.
    pub fn place(&self, path: &str) -> (FileId, Name) {
        let (dir, name) = path.rsplit_once('/').unwrap();
        (self.node(dir).unwrap().file_id, Name::new(name.as_bytes()).unwrap())
    }

    pub fn mkdir(&self, path: &str) {
        self.create(path, NewNode::Dir { shadow: false });
    }

    pub fn create(&self, path: &str, node: NewNode) -> FileId {
        let (parent, name) = self.place(path);
        let file_id = self.id();
        self.apply(vec![Op::Create { parent, name, file_id, node, mode: 0o644, uid: 0, gid: 0 }]).unwrap();
        file_id
    }

    pub fn set(&self, id: FileId, text: &str) -> Seq {
        let edit = ContentEdit::Whole(self.chunk(text.as_bytes()));
        self.apply(vec![Op::SetContent { file_id: id, edit, mtime: self.engine().clock.now(), mode: None }]).unwrap()
    }

    /// Writes a file as `echo > path` does: creates it if need be, one new content.
    pub fn write(&self, path: &str, text: &str) -> Seq {
        let id = match self.node(path) {
            Ok(node) => node.file_id,
            Err(_) => self.create(path, NewNode::File),
        };
        self.set(id, text)
    }

    pub fn unlink(&self, path: &str) -> Seq {
        let (parent, name) = self.place(path);
        self.apply(vec![Op::Unlink { parent, name }]).unwrap()
    }

    pub fn rename(&self, from: &str, to: &str) -> Seq {
        self.rename_as(from, to, RenameMode::Replace).unwrap()
    }

    pub fn rename_as(&self, from: &str, to: &str, mode: RenameMode) -> Result<Seq> {
        let ((parent, name), (new_parent, new_name)) = (self.place(from), self.place(to));
        self.apply(vec![Op::Rename { parent, name, new_parent, new_name, mode }])
    }

    pub fn checkpoint(&self, name: &str) -> Seq {
        let new = agfs_server::ops::NewCheckpoint {
            op_id: self.farm.op(),
            name: name.into(),
            note: String::new(),
            cause: agfs_core::space::Cause::Manual,
            author: self.author.clone(),
        };
        self.engine().create_checkpoint(&self.cell, new).unwrap().at.seq
    }

    pub fn rollback(&self, at: &str) -> agfs_server::ops::HistoryResult {
        self.engine().rollback(&self.cell, self.farm.op(), at, self.author.clone(), false).unwrap()
    }

    pub fn undo(&self) -> Result<agfs_server::ops::HistoryResult> {
        self.engine().undo(&self.cell, self.farm.op(), None, self.author.clone(), false)
    }

    pub fn redo(&self) -> Result<agfs_server::ops::HistoryResult> {
        self.engine().redo(&self.cell, self.farm.op(), None, self.author.clone(), false)
    }

    pub fn restore(&self, at: &str, paths: &[&str]) -> Result<agfs_server::ops::HistoryResult> {
        let paths: Vec<Vec<u8>> = paths.iter().map(|p| p.as_bytes().to_vec()).collect();
        self.engine().restore(&self.cell, self.farm.op(), at, &paths, self.author.clone(), false)
    }

    pub fn text(&self, node: &Node) -> String {
        let manifest = self.engine().manifest(node.content().unwrap()).unwrap();
        let mut out = Vec::new();
        for extent in manifest.extents() {
            match extent.chunk {
                None => out.resize(out.len() + extent.len as usize, 0),
                Some(slice) => {
                    let raw = self.farm.runtime.block_on(self.engine().chunks.get_raw(slice.hash)).unwrap();
                    out.extend_from_slice(&raw[slice.offset as usize..][..extent.len as usize]);
                }
            }
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The whole tree at a reference, and that its counters are right.
    pub fn picture(&self, at: &str) -> Picture {
        let mut out = Picture::new();
        self.draw(at, FileId::ROOT, "", &mut out);
        out
    }

    fn draw(&self, at: &str, dir: FileId, path: &str, out: &mut Picture) {
        let mut listing = self.engine().list_dir(&self.cell, at, dir).unwrap();
        let entries = self.engine().list_part(&mut listing, usize::MAX).unwrap();
        let info = *listing.dir.dir().unwrap();
        assert_eq!(info.entries, entries.len() as u64, "entries of {path}");
        assert_eq!(u64::from(info.subdirs), entries.iter().filter(|(_, n)| n.kind().is_dir()).count() as u64);
        for (name, node) in entries {
            let path = format!("{path}/{}", name.display());
            assert!(node.links().any(|l| l.parent == dir && l.name == name), "{path} does not know that it is there");
            let shown = match &node.body {
                Body::File(_) => format!("file {:o} x{} {:?}", node.attr.mode, node.nlink(), self.text(&node)),
                Body::Dir(_) => format!("dir {:o}", node.attr.mode),
                Body::Symlink(target) => format!("link {}", String::from_utf8_lossy(target)),
                Body::Special { kind, .. } => format!("{kind:?}"),
            };
            out.insert(path.clone(), shown);
            if node.kind().is_dir() {
                self.draw(at, node.file_id, &path, out);
            }
        }
    }
}
