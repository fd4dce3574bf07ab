//! What the test server holds: a tree, its changes, chunks, live streams; and the faults it is asked for.

use agfs_core::apply::{Tree, apply, new_root};
use agfs_core::change::{Change, ChangeSet};
use agfs_core::event::LogRecord;
use agfs_core::manifest::Manifest;
use agfs_core::node::{Content, Layout, Node};
use agfs_core::op::{Author, TimedOp};
use agfs_core::space::{Point, Space, SpaceType};
use agfs_core::{ChunkHash, Error, FamilyId, FileId, Name, OpId, Result, Seq, SpaceId, TimelineId, Timestamp};
use agfs_proto::{ToWire, v1};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::sync::mpsc::UnboundedSender;
use tonic::Status;

pub(super) type Down = std::result::Result<v1::AttachDown, Status>;

#[derive(Clone, Default)]
pub(crate) struct TestTree {
    pub nodes: HashMap<FileId, Node>,
    pub names: BTreeMap<(FileId, Name), FileId>,
}

impl TestTree {
    pub fn take(&mut self, change: &Change) {
        match change {
            Change::Put(node) => drop(self.nodes.insert(node.file_id, node.clone())),
            Change::Drop(id) => drop(self.nodes.remove(id)),
            Change::Bind { parent, name, file_id, .. } => drop(self.names.insert((*parent, name.clone()), *file_id)),
            Change::Unbind { parent, name, .. } => drop(self.names.remove(&(*parent, name.clone()))),
        }
    }
}

impl Tree for TestTree {
    fn node(&mut self, id: FileId) -> Result<Option<Node>> {
        Ok(self.nodes.get(&id).cloned())
    }
    fn child(&mut self, dir: &Node, name: &Name) -> Result<Option<FileId>> {
        Ok(self.names.get(&(dir.file_id, name.clone())).copied())
    }
    fn manifest(&mut self, content: &Content) -> Result<Manifest> {
        match &*content.layout {
            Layout::Inline(manifest) => Ok(manifest.clone()),
            Layout::Segments(_) => Err(Error::internal("the test server has no segments")),
        }
    }
    fn content(&mut self, manifest: Manifest) -> Result<Content> {
        Ok(Content::inline(manifest))
    }
}

#[derive(Default)]
pub(crate) struct Inner {
    pub tree: TestTree,
    pub seq: u64,
    pub sets: Vec<v1::ChangeSet>,
    pub log: Vec<v1::LogEntry>,
    pub results: HashMap<OpId, v1::ApplyReply>,
    pub next_id: u64,
    pub chunks: HashMap<ChunkHash, v1::Chunk>,
    pub(super) streams: Vec<UnboundedSender<Down>>,
    /// Changes that are kept from the streams.
    pub held: Option<Vec<v1::ChangeSet>>,
    pub hellos: Vec<v1::Hello>,
    pub acks: Vec<v1::Ack>,
    pub drained: Vec<v1::Drained>,
    pub pings: u32,
    /// Under which epoch a mount that comes back has the space to itself.
    pub epoch: u64,
    /// The mount that ids were last reserved for, as the call said.
    pub reserved_by: Option<String>,
    /// Epoch and predecessor of the last apply.
    pub last_held: (u64, u64),
    /// How often each call arrived.
    pub calls: HashMap<&'static str, u32>,
    pub inline_bytes: usize,
    pub stream_ends: u32,
}

pub(crate) struct World {
    inner: Mutex<Inner>,
    /// Whether a mount that comes back may go on where it was.
    pub resume: AtomicBool,
    /// Whether streams are silent.
    pub mute: AtomicBool,
    /// Whether the space is gone.
    pub deleted: AtomicBool,
    /// How many of the next applies are done but never answered.
    pub swallow: AtomicU32,
    /// How many of the next calls of any kind are answered `unavailable`.
    pub busy: AtomicU32,
    pub lease_ms: AtomicU32,
    /// Streams of chunks and events break after this many items, when it is not zero.
    pub break_after: AtomicU32,
}

impl World {
    pub fn new() -> World {
        let root = new_root(Seq(1), Timestamp(1), 0o755, 0, 0);
        let mut inner = Inner { seq: 1, next_id: 1_000, ..Inner::default() };
        inner.tree.nodes.insert(FileId::ROOT, root);
        World {
            inner: Mutex::new(inner),
            resume: AtomicBool::new(true),
            mute: AtomicBool::new(false),
            deleted: AtomicBool::new(false),
            swallow: AtomicU32::new(0),
            busy: AtomicU32::new(0),
            lease_ms: AtomicU32::new(1_000),
            break_after: AtomicU32::new(0),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    pub fn seq(&self) -> u64 {
        self.lock().seq
    }

    /// Counts a call and refuses it when the server is asked to be busy.
    pub fn enter(&self, call: &'static str) -> Result<()> {
        *self.lock().calls.entry(call).or_default() += 1;
        match self.busy.try_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) {
            Ok(_) => Err(Error::unavailable("the server is busy")),
            Err(_) => Ok(()),
        }
    }

    pub fn calls(&self, call: &'static str) -> u32 {
        self.lock().calls.get(call).copied().unwrap_or_default()
    }

    pub fn space(&self) -> Space {
        Space {
            id: SpaceId(7),
            name: "work".into(),
            space_type: SpaceType::Project,
            tenant_code: String::new(),
            owner: String::new(),
            family: FamilyId(1),
            head: TimelineId(1),
            created: Timestamp(1),
            deleted: false,
            shadow_rules: None,
        }
    }

    pub fn head(&self) -> Point {
        Point { timeline: TimelineId(1), seq: Seq(self.seq()) }
    }

    pub fn forget_streams(&self) {
        self.lock().streams.clear();
    }

    /// Sends a message down every stream.
    pub fn push(&self, message: v1::attach_down::Message) {
        let message = v1::AttachDown { message: Some(message) };
        self.lock().streams.retain(|s| s.send(Ok(message.clone())).is_ok());
    }

    /// Keeps changes from the streams until [`World::release`].
    pub fn hold(&self) {
        self.lock().held = Some(Vec::new());
    }

    pub fn release(&self) {
        let held = self.lock().held.take().unwrap_or_default();
        held.into_iter().for_each(|set| self.push(v1::attach_down::Message::Changes(set)));
    }

    /// Applies a batch once and tells the streams.
    pub fn apply(&self, op_id: OpId, author: Author, ops: &[TimedOp]) -> Result<v1::ApplyReply> {
        let mut inner = self.inner.lock();
        if let Some(done) = inner.results.get(&op_id) {
            return Ok(v1::ApplyReply { repeated: true, ..*done });
        }
        let mut tree = inner.tree.clone();
        let (from, mut seq, mut all, mut log) = (inner.seq, inner.seq, Vec::new(), Vec::new());
        for op in ops {
            if let Some(step) = apply(&mut tree, op, Seq(seq + 1))? {
                seq += 1;
                step.changes.iter().for_each(|change| tree.take(change));
                let record =
                    LogRecord { seq: Seq(seq), time: op.time, op_id, author: author.clone(), event: step.event };
                let path = record.event.link.as_ref().map_or(b"/".to_vec(), |l| l.name.as_bytes().to_vec());
                log.push(v1::LogEntry { record: Some(record.to_wire()), path, from_path: Vec::new() });
                all.extend(step.changes);
            }
        }
        let reply = v1::ApplyReply { from, to: seq, repeated: false };
        inner.tree = tree;
        inner.seq = seq;
        inner.log.extend(log);
        inner.results.insert(op_id, reply);
        if seq > from {
            let set = ChangeSet { from: Seq(from), to: Seq(seq), op_id, changes: all }.to_wire();
            inner.sets.push(set.clone());
            match &mut inner.held {
                Some(held) => held.push(set),
                None => {
                    let message = v1::AttachDown { message: Some(v1::attach_down::Message::Changes(set)) };
                    inner.streams.retain(|s| s.send(Ok(message.clone())).is_ok());
                }
            }
        }
        Ok(reply)
    }
}
