//! The server in memory: `agfs_core::apply` over two maps.

use crate::upstream::{Durable, Upstream};
use agfs_client::{EncodedChunk, Listing, TreeSink, chunking};
use agfs_core::apply::{self, Tree};
use agfs_core::change::{Change, ChangeSet};
use agfs_core::manifest::Manifest;
use agfs_core::node::{Content, Layout, Node};
use agfs_core::op::TimedOp;
use agfs_core::space::Point;
use agfs_core::{ChunkHash, Error, ErrorKind, FileId, Name, OpId, Result, Seq, TimelineId, Timestamp};
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use tokio::sync::{Semaphore, watch};

#[derive(Clone, Default)]
struct Files {
    nodes: BTreeMap<FileId, Node>,
    names: BTreeMap<(FileId, Name), FileId>,
}

impl Files {
    fn change(&mut self, change: &Change) {
        match change {
            Change::Put(node) => drop(self.nodes.insert(node.file_id, node.clone())),
            Change::Drop(id) => drop(self.nodes.remove(id)),
            Change::Bind { parent, name, file_id, .. } => {
                self.names.insert((*parent, name.clone()), *file_id);
            }
            Change::Unbind { parent, name, .. } => drop(self.names.remove(&(*parent, name.clone()))),
        }
    }
}

impl Tree for Files {
    fn node(&mut self, id: FileId) -> Result<Option<Node>> {
        Ok(self.nodes.get(&id).cloned())
    }
    fn child(&mut self, dir: &Node, name: &Name) -> Result<Option<FileId>> {
        Ok(self.names.get(&(dir.file_id, name.clone())).copied())
    }
    fn manifest(&mut self, content: &Content) -> Result<Manifest> {
        match content.layout.as_ref() {
            Layout::Inline(manifest) => Ok(manifest.clone()),
            Layout::Segments(_) => Err(Error::internal("the fake server has no segments")),
        }
    }
    fn content(&mut self, manifest: Manifest) -> Result<Content> {
        Ok(Content::inline(manifest))
    }
}

/// A mount's end of the stream at the server.
struct Stream {
    sink: Arc<dyn TreeSink>,
    queue: VecDeque<(ChangeSet, usize)>,
    held: bool,
    seen: watch::Sender<Seq>,
}

impl Stream {
    fn deliver(&mut self, me: usize, most: usize) {
        for _ in 0..most {
            let Some((set, by)) = self.queue.pop_front() else { break };
            self.sink.changes(&set, by == me);
            self.seen.send_replace(set.to);
        }
    }
}

struct State {
    files: Files,
    past: Vec<(Seq, Files)>,
    head: Point,
    next_id: u64,
    chunks: BTreeMap<ChunkHash, Bytes>,
    streams: Vec<Stream>,
    /// How many contents were committed, and every operation that was applied, for looking at.
    log: Vec<TimedOp>,
}

/// The server.
pub struct FakeServer {
    state: Mutex<State>,
    clock: AtomicI64,
}

impl FakeServer {
    /// A server with an empty space.
    pub fn new() -> Arc<FakeServer> {
        FakeServer::at(Timestamp(1_000))
    }

    /// The same with a clock that begins then and goes on at each look.
    pub fn at(begin: Timestamp) -> Arc<FakeServer> {
        let root = apply::new_root(Seq(1), Timestamp(1), 0o755, 0, 0);
        let mut files = Files::default();
        files.change(&Change::Put(root));
        let head = Point { timeline: TimelineId(1), seq: Seq(1) };
        let state = State {
            files,
            past: Vec::new(),
            head,
            next_id: 100,
            chunks: BTreeMap::new(),
            streams: Vec::new(),
            log: Vec::new(),
        };
        Arc::new(FakeServer { state: Mutex::new(state), clock: AtomicI64::new(begin.0) })
    }

    /// A new mount.
    pub fn attach(self: &Arc<Self>, sink: Arc<dyn TreeSink>) -> (Arc<FakeUpstream>, Point, Node) {
        let mut state = self.state.lock();
        let seen = watch::channel(state.head.seq).0;
        state.streams.push(Stream { sink, queue: VecDeque::new(), held: false, seen });
        let up = FakeUpstream {
            server: self.clone(),
            me: state.streams.len() - 1,
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            gated: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            down: AtomicBool::new(false),
            fail: Mutex::default(),
            applied: tokio::sync::Notify::new(),
            apply_gate: Semaphore::new(Semaphore::MAX_PERMITS),
            apply_gated: AtomicBool::new(false),
            pending: AtomicU64::new(0),
        };
        (Arc::new(up), state.head, state.files.nodes[&FileId::ROOT].clone())
    }

    /// Everything that was applied so far.
    pub fn log(&self) -> Vec<TimedOp> {
        self.state.lock().log.clone()
    }

    /// How many contents the file has had.
    pub fn version_no(&self, ino: u64) -> u64 {
        self.state.lock().files.nodes[&FileId(ino)].version_no
    }

    /// The node as the server has it.
    pub fn node(&self, ino: u64) -> Option<Node> {
        self.state.lock().files.nodes.get(&FileId(ino)).cloned()
    }

    /// Remembers the state, for going back to.
    pub fn checkpoint(&self) -> Seq {
        let mut state = self.state.lock();
        let (seq, files) = (state.head.seq, state.files.clone());
        state.past.push((seq, files));
        seq
    }

    /// Goes back to a state that was remembered, and tells every mount.
    pub fn rollback(&self, to: Seq) {
        let mut state = self.state.lock();
        state.files = state.past.iter().find(|(seq, _)| *seq == to).unwrap().1.clone();
        state.head = Point { timeline: TimelineId(state.head.timeline.0 + 1), seq: state.head.seq.next() };
        let head = state.head;
        for stream in &mut state.streams {
            stream.sink.reset(head);
            stream.seen.send_replace(head.seq);
        }
    }

    /// Loses the content of a chunk.
    pub fn lose_chunks(&self) {
        self.state.lock().chunks.clear();
    }

    fn apply(&self, ops: &[TimedOp], by: usize) -> Result<Seq> {
        let mut state = self.state.lock();
        let mut files = state.files.clone();
        let (from, mut seq, mut changes) = (state.head.seq, state.head.seq, Vec::new());
        for op in ops {
            if let Some(step) = apply::apply(&mut files, op, seq.next())? {
                step.changes.iter().for_each(|change| files.change(change));
                changes.extend(step.changes);
                seq = seq.next();
            }
        }
        state.files = files;
        state.head.seq = seq;
        state.log.extend_from_slice(ops);
        if seq > from {
            let set = ChangeSet { from, to: seq, op_id: OpId { client: by as u64, counter: seq.0 }, changes };
            // The maker last, so that a reader elsewhere sees it before the maker goes on.
            let count = state.streams.len();
            for i in (0..count).filter(|i| *i != by).chain((by < count).then_some(by)) {
                let stream = &mut state.streams[i];
                stream.queue.push_back((set.clone(), by));
                if !stream.held {
                    stream.deliver(i, usize::MAX);
                }
            }
        }
        Ok(seq)
    }

    /// Applies operations by another entrance, together or not at all.
    pub fn change_all(&self, ops: &[TimedOp]) -> Result<Seq> {
        self.apply(ops, usize::MAX)
    }

    /// Applies one operation by another entrance.
    pub fn change(&self, op: agfs_core::op::Op) -> Result<Seq> {
        let time = Timestamp(self.clock.fetch_add(1, Ordering::Relaxed));
        self.apply(&[TimedOp { time, op }], usize::MAX)
    }

    /// Puts a file by another entrance.
    pub fn put(&self, parent: u64, name: &str, content: &[u8]) -> u64 {
        use agfs_core::op::{ContentEdit, NewNode, Op};
        let (extents, chunks) = chunking::split(content);
        let file_id = {
            let mut state = self.state.lock();
            keep(&mut state, chunks).unwrap();
            state.next_id += 1;
            FileId(state.next_id)
        };
        let (parent, name) = (FileId(parent), Name::new(name.as_bytes()).unwrap());
        self.change(Op::Create { parent, name, file_id, node: NewNode::File, mode: 0o644, uid: 0, gid: 0 }).unwrap();
        let edit = ContentEdit::Whole(extents);
        self.change(Op::SetContent { file_id, edit, mtime: Timestamp(5), mode: None }).unwrap();
        file_id.0
    }
}

fn keep(state: &mut State, chunks: Vec<EncodedChunk>) -> Result<()> {
    for chunk in chunks {
        state.chunks.insert(chunk.hash, chunking::decode(&chunk)?);
    }
    Ok(())
}

/// One mount's way to the server. Answers of reads can be held back; they are what the server had when it was asked.
pub struct FakeUpstream {
    server: Arc<FakeServer>,
    me: usize,
    gate: Semaphore,
    gated: AtomicBool,
    apply_gate: Semaphore,
    apply_gated: AtomicBool,
    calls: AtomicU64,
    down: AtomicBool,
    fail: Mutex<VecDeque<ErrorKind>>,
    applied: tokio::sync::Notify,
    pending: AtomicU64,
}

impl FakeUpstream {
    /// Holds every answer of a read back until it is let go.
    pub fn hold_answers(&self) {
        self.gate.forget_permits(usize::MAX);
        self.gated.store(true, Ordering::Release);
    }

    /// Lets `n` answers go.
    pub fn let_answers(&self, n: usize) {
        self.gate.add_permits(n);
    }

    /// Holds every change back, before it reaches the server.
    pub fn hold_changes(&self) {
        self.apply_gate.forget_permits(usize::MAX);
        self.apply_gated.store(true, Ordering::Release);
    }

    /// Lets `n` changes go.
    pub fn let_changes(&self, n: usize) {
        self.apply_gate.add_permits(n);
    }

    /// Returns when a change has come to the gate.
    pub async fn change_waits(&self) {
        self.applied.notified().await;
    }

    /// Holds the stream back.
    pub fn hold_stream(&self) {
        self.server.state.lock().streams[self.me].held = true;
    }

    /// Delivers up to `n` change sets that were held back.
    pub fn let_stream(&self, n: usize) {
        self.server.state.lock().streams[self.me].deliver(self.me, n);
    }

    /// Cuts the way to the server, or restores it.
    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Release);
        let sink = self.server.state.lock().streams[self.me].sink.clone();
        sink.connected(!down);
    }

    /// The next change fails like this.
    pub fn fail_next(&self, kind: ErrorKind) {
        self.fail.lock().push_back(kind);
    }

    /// How many calls were made.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// What the server was told of bytes that are not committed.
    pub fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    fn reachable(&self) -> Result<()> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.down.load(Ordering::Acquire) { Err(Error::unavailable("the server is down")) } else { Ok(()) }
    }

    async fn pass(&self) {
        if self.gated.load(Ordering::Acquire) {
            self.gate.acquire().await.unwrap().forget();
        }
    }
}

#[async_trait]
impl Upstream for FakeUpstream {
    async fn capacity(&self) -> Result<Option<(u64, u64)>> {
        self.reachable()?;
        Ok(Some((1 << 40, 1 << 39)))
    }

    async fn apply(&self, ops: Vec<TimedOp>, chunks: Vec<EncodedChunk>, _durable: Durable) -> Result<Seq> {
        self.reachable()?;
        if self.apply_gated.load(Ordering::Acquire) {
            self.applied.notify_one();
            self.apply_gate.acquire().await.unwrap().forget();
        }
        if let Some(kind) = self.fail.lock().pop_front() {
            return Err(Error::new(kind, "as the test wishes"));
        }
        let mut seen = {
            let mut state = self.server.state.lock();
            keep(&mut state, chunks)?;
            state.streams[self.me].seen.subscribe()
        };
        let seq = self.server.apply(&ops, self.me)?;
        seen.wait_for(|seen| *seen >= seq).await.unwrap();
        Ok(seq)
    }

    async fn list_dir(&self, dir: FileId) -> Result<Listing> {
        self.reachable()?;
        let answer = {
            let state = self.server.state.lock();
            let node = state.files.nodes.get(&dir).cloned();
            let entries = state.files.names.iter().filter(|((parent, _), _)| *parent == dir);
            let entries = entries.map(|((_, name), id)| (name.clone(), state.files.nodes[id].clone())).collect();
            node.map(|dir| Listing { dir, at: state.head, entries })
        };
        self.pass().await;
        answer.ok_or_else(|| Error::not_found(format!("no {dir}")))
    }

    async fn get_nodes(&self, ids: &[FileId]) -> Result<(Vec<Node>, Seq)> {
        self.reachable()?;
        let answer = {
            let state = self.server.state.lock();
            (ids.iter().filter_map(|id| state.files.nodes.get(id).cloned()).collect(), state.head.seq)
        };
        self.pass().await;
        Ok(answer)
    }

    async fn manifest_of(&self, content: &Content) -> Result<Manifest> {
        self.reachable()?;
        Files::default().manifest(content)
    }

    async fn get_chunk(&self, hash: ChunkHash) -> Result<Bytes> {
        self.reachable()?;
        self.server.state.lock().chunks.get(&hash).cloned().ok_or_else(|| Error::not_found(format!("no chunk {hash}")))
    }

    async fn put_chunks(&self, chunks: Vec<EncodedChunk>) -> Result<()> {
        self.reachable()?;
        keep(&mut self.server.state.lock(), chunks)
    }

    fn keep_chunk(&self, hash: ChunkHash, raw: Bytes) {
        assert_eq!(ChunkHash::of(&raw), hash);
    }

    async fn next_file_id(&self) -> Result<FileId> {
        let mut state = self.server.state.lock();
        state.next_id += 1;
        Ok(FileId(state.next_id))
    }

    async fn sync(&self, _object: bool) -> Result<Seq> {
        self.reachable()?;
        Ok(self.server.state.lock().head.seq)
    }

    async fn wait_connected(&self) -> Result<()> {
        for _ in 0..20 {
            if !self.down.load(Ordering::Acquire) {
                return Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        Err(Error::unavailable("the stream is down"))
    }

    fn set_pending(&self, bytes: u64) {
        self.pending.store(bytes, Ordering::Relaxed);
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.server.clock.fetch_add(1, Ordering::Relaxed))
    }
}
