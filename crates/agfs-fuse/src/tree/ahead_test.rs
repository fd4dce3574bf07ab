//! Plans are what the server does: random operations planned on a tree that is ahead of its server, beside another server
//! that does them at once.

use super::ahead::Plan;
use crate::testing::{FakeServer, TestMount, mount};
use agfs_client::TreeSink;
use agfs_core::attr::AttrChange;
use agfs_core::change::ChangeSet;
use agfs_core::manifest::Extent;
use agfs_core::name::Name;
use agfs_core::op::{ContentEdit, NewNode, Op, RenameMode, TimedOp};
use agfs_core::space::Point;
use agfs_core::{ChunkHash, Error, FileId, OpId, Result, Timestamp};
use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::sync::Arc;

/// Remembers what the server says it did.
#[derive(Default)]
struct Recorder(Mutex<Option<ChangeSet>>);

impl TreeSink for Recorder {
    fn changes(&self, set: &ChangeSet, _own: bool) {
        *self.0.lock() = Some(set.clone());
    }
    fn reset(&self, _head: Point) {}
    fn connected(&self, _up: bool) {}
}

/// The first ids: the root, then what [`populate`] makes; those that operations create come after.
const KNOWN: u64 = 8;
const FIRST_NEW: u64 = 1_000;

fn populate(server: &FakeServer) {
    let make = |parent, name: &str, id, node| {
        let (parent, name) = (FileId(parent), Name::new(name.as_bytes()).unwrap());
        server.change(Op::Create { parent, name, file_id: FileId(id), node, mode: 0o755, uid: 0, gid: 0 }).unwrap();
    };
    let dir = || NewNode::Dir { shadow: false };
    make(1, "a", 2, dir());
    make(1, "b", 3, dir());
    make(2, "a", 4, dir());
    make(1, "c", 5, NewNode::File);
    make(2, "b", 6, NewNode::File);
    make(4, "c", 7, NewNode::File);
}

fn id() -> impl Strategy<Value = FileId> {
    prop_oneof![4 => 1..KNOWN, 1 => FIRST_NEW..FIRST_NEW + 6].prop_map(FileId)
}

fn name() -> impl Strategy<Value = Name> {
    prop::sample::select(vec!["a", "b", "c", "d"]).prop_map(|n| Name::new(n.as_bytes()).unwrap())
}

fn node() -> impl Strategy<Value = NewNode> {
    prop_oneof![
        3 => Just(NewNode::File),
        2 => Just(NewNode::Dir { shadow: false }),
        1 => Just(NewNode::Symlink(b"a".to_vec())),
    ]
}

fn edit() -> impl Strategy<Value = ContentEdit> {
    // Up to more extents than are kept with a node.
    vec(1u64..5, 0..12).prop_map(|lens| {
        let extent = |len: u64| Extent::whole(ChunkHash::of(&[len as u8]), len);
        ContentEdit::Whole(lens.into_iter().map(extent).collect())
    })
}

fn op() -> impl Strategy<Value = Op> {
    let modes = vec![RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
    prop_oneof![
        3 => (id(), name(), node()).prop_map(|(parent, name, node)| Op::Create {
            parent, name, file_id: FileId(0), node, mode: 0o644, uid: 1, gid: 2
        }),
        1 => (id(), id(), name()).prop_map(|(file_id, parent, name)| Op::Link { file_id, parent, name }),
        2 => (id(), name()).prop_map(|(parent, name)| Op::Unlink { parent, name }),
        1 => (id(), name()).prop_map(|(parent, name)| Op::Rmdir { parent, name }),
        3 => (id(), name(), id(), name(), prop::sample::select(modes)).prop_map(
            |(parent, name, new_parent, new_name, mode)| Op::Rename { parent, name, new_parent, new_name, mode }
        ),
        1 => (id(), 0u32..0o7777).prop_map(|(file_id, mode)| Op::SetAttr {
            file_id, change: AttrChange { mode: Some(mode), ..AttrChange::default() }
        }),
        1 => (id(), edit()).prop_map(|(file_id, edit)| Op::SetContent {
            file_id, edit, mtime: Timestamp(9), mode: None
        }),
    ]
}

/// Operations that are made together, and after how many of those before them the server is let go on.
type Step = (Vec<Op>, Option<usize>);

fn script() -> impl Strategy<Value = Vec<Step>> {
    vec((vec(op(), 1..4), prop::option::weighted(0.3, 1usize..4)), 1..30)
}

/// A plan, with everything loaded that it needs.
async fn plan(m: &TestMount, ops: &[TimedOp]) -> Result<Plan> {
    let mut absent = FxHashSet::default();
    loop {
        match m.tree.plan(ops, OpId { client: 7, counter: 7 }, &absent)? {
            Plan::NeedsNode(id) => {
                if m.tree.fetch(m.up.as_ref(), id).await.is_err() {
                    absent.insert(id);
                }
            }
            Plan::NeedsEntries(dir) => m.tree.load_dir(m.up.as_ref(), dir).await?,
            plan => return Ok(plan),
        }
    }
}

async fn picture(m: &TestMount) -> Vec<String> {
    let (mut all, mut todo) = (Vec::new(), vec![FileId::ROOT]);
    while let Some(dir) = todo.pop() {
        m.tree.load_dir(m.up.as_ref(), dir).await.unwrap();
        for (name, id) in m.tree.entries(dir).unwrap() {
            let node = m.tree.fetch(m.up.as_ref(), id).await.unwrap();
            if node.kind().is_dir() {
                todo.push(id);
            }
            all.push(format!("{dir} {name:?} {node:?}"));
        }
    }
    all
}

async fn run(script: Vec<Step>) {
    let (oracle, server) = (FakeServer::new(), FakeServer::new());
    populate(&oracle);
    populate(&server);
    let recorder = Arc::new(Recorder::default());
    oracle.attach(recorder.clone());
    let m = mount(&server);
    let (mut behind, mut next) = (VecDeque::new(), FIRST_NEW);
    for (n, (ops, flush)) in script.into_iter().enumerate() {
        let time = Timestamp(10_000 + n as i64);
        let timed = |mut op: Op| {
            if let Op::Create { file_id, .. } = &mut op {
                *file_id = FileId(next);
                next += 1;
            }
            TimedOp { time, op }
        };
        let ops: Vec<TimedOp> = ops.into_iter().map(timed).collect();
        let planned = plan(&m, &ops).await;
        if matches!(planned, Ok(Plan::NeedsServer)) {
            continue;
        }
        recorder.0.lock().take();
        let done = oracle.change_all(&ops);
        let set = match (planned, done) {
            (Ok(Plan::Changes(set)), Ok(_)) => set,
            (Err(a), Err(b)) => {
                assert_eq!(a.kind(), b.kind(), "{ops:?}");
                continue;
            }
            (a, b) => panic!("{ops:?}: planned {a:?}, done {b:?}"),
        };
        match recorder.0.lock().take() {
            Some(done) => assert_eq!((set.from, set.to, &set.changes), (done.from, done.to, &done.changes), "{ops:?}"),
            None => assert_eq!((set.from, set.changes.len()), (set.to, 0), "{ops:?}"),
        }
        if set.to > set.from {
            m.tree.take(&set);
        }
        behind.push_back(ops);
        for _ in 0..flush.unwrap_or(0) {
            let Some(ops) = behind.pop_front() else { break };
            server.change_all(&ops).unwrap();
        }
    }
    for ops in behind {
        server.change_all(&ops).unwrap();
    }
    assert_eq!(picture(&m).await, picture(&mount(&oracle)).await);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_is_planned_is_what_the_server_does(script in script()) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(run(script));
    }
}

#[tokio::test]
async fn what_was_made_here_is_in_what_is_loaded_until_the_stream_brings_it() {
    let server = FakeServer::new();
    populate(&server);
    let m = mount(&server);
    let (parent, name) = (FileId(2), Name::new(b"new").unwrap());
    let make = Op::Create { parent, name, file_id: FileId(500), node: NewNode::File, mode: 0o600, uid: 0, gid: 0 };
    let ops = [TimedOp { time: Timestamp(50), op: make }];
    let Ok(Plan::Changes(set)) = plan(&m, &ops).await else { panic!("a name in a directory can be planned") };
    m.tree.take(&set);
    assert_eq!(m.names(2).await, ["a", "b", "new"]);
    assert_eq!(m.names(4).await, ["c"], "loaded from a server that is behind");
    server.change_all(&ops).unwrap();
    assert_eq!(m.names(2).await, ["a", "b", "new"]);
    assert_eq!(m.tree.seen(), set.to);
    let gone: Error = m.tree.fetch(m.up.as_ref(), FileId(501)).await.unwrap_err();
    assert_eq!(gone.kind(), agfs_core::ErrorKind::Stale);
}
