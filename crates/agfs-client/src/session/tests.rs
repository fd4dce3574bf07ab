//! A session against the test server: order, resuming, gaps, resets, silence, refusals, applies beside the stream.

use super::*;
use crate::testing::{Server, TestTree, until};
use agfs_core::change::ChangeSet;
use agfs_core::op::{NewNode, Op};
use agfs_core::space::{Consistency, Point};
use agfs_core::{ErrorKind, Name, Timestamp};
use agfs_proto::v1;
use agfs_proto::v1::attach_down::Message as Down;
use std::sync::atomic::AtomicBool;

#[derive(Clone, Debug, PartialEq)]
enum Told {
    Changes(u64, u64, bool),
    Reset(u64),
    Up(bool),
    Granted(u64),
    Recalled(Recall),
}

#[derive(Default)]
struct Sink {
    told: Mutex<Vec<Told>>,
    tree: Mutex<TestTree>,
    slow: AtomicBool,
}

impl TreeSink for Sink {
    fn changes(&self, set: &ChangeSet, own: bool) {
        if self.slow.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(100));
        }
        set.changes.iter().for_each(|change| self.tree.lock().take(change));
        self.told.lock().push(Told::Changes(set.from.0, set.to.0, own));
    }
    fn reset(&self, head: Point) {
        *self.tree.lock() = TestTree::default();
        self.told.lock().push(Told::Reset(head.seq.0));
    }
    fn connected(&self, up: bool) {
        self.told.lock().push(Told::Up(up));
    }
    fn granted(&self, epoch: u64) {
        self.told.lock().push(Told::Granted(epoch));
    }
    fn recalled(&self, recall: Recall) {
        self.told.lock().push(Told::Recalled(recall));
    }
}

impl Sink {
    fn told(&self) -> Vec<Told> {
        self.told.lock().clone()
    }
    fn resets(&self) -> usize {
        self.told().iter().filter(|t| matches!(t, Told::Reset(_))).count()
    }
    /// Every change exactly once, in order, as far as no reset lies between.
    fn assert_in_order(&self) {
        let mut seen = None;
        for told in self.told() {
            match told {
                Told::Changes(from, to, _) => {
                    assert!(seen.is_none_or(|seen| seen == from) && to > from, "{:?}", self.told());
                    seen = Some(to);
                }
                Told::Reset(head) => seen = Some(head),
                Told::Up(_) | Told::Granted(_) | Told::Recalled(_) => {}
            }
        }
    }
}

fn options() -> AttachOptions {
    AttachOptions {
        space: "work".into(),
        at: String::new(),
        sub_path: Vec::new(),
        mount_path: "/mnt/work".into(),
        tenant: String::new(),
        user: "u".into(),
        conversation: String::new(),
        author: Author { agent: "a".into(), ..Author::default() },
        host: "h".into(),
        consistency: Consistency::Cto,
        read_only: false,
        lease: false,
    }
}

async fn mount(server: &Server, patience: u64) -> (Arc<MountSession>, Welcome, Arc<Sink>) {
    let sink = Arc::new(Sink::default());
    let conn = server.connect(Duration::from_secs(patience));
    let (session, welcome) = MountSession::attach(conn, options(), sink.clone()).await.unwrap();
    (session, welcome, sink)
}

fn mkdir(id: FileId, name: &str) -> TimedOp {
    let name = Name::new(name.as_bytes()).unwrap();
    let node = NewNode::Dir { shadow: false };
    let op = Op::Create { parent: FileId::ROOT, name, file_id: id, node, mode: 0o755, uid: 0, gid: 0 };
    TimedOp { time: Timestamp(1), op }
}

async fn make(session: &MountSession, name: &str) -> Result<Seq> {
    let id = session.next_file_id().await?;
    session.apply(vec![mkdir(id, name)], Vec::new(), Durable::No).await
}

/// A change by somebody else.
fn foreign(server: &Server, name: &str) -> u64 {
    let id = {
        let mut inner = server.world.lock();
        inner.next_id += 1;
        inner.next_id
    };
    let op_id = OpId { client: 99, counter: id };
    server.world.apply(op_id, Author::default(), &[mkdir(FileId(id), name)]).unwrap().to
}

#[tokio::test]
async fn own_and_foreign_changes_arrive_in_order_and_are_acknowledged() {
    let server = Server::start();
    let (session, welcome, sink) = mount(&server, 10).await;
    assert_eq!((welcome.mount.id.0, welcome.head.seq, session.seen()), (42, Seq(1), Seq(1)));
    session.wait_connected().await.unwrap();
    session.set_pending(77);
    assert_eq!(make(&session, "mine").await.unwrap(), Seq(2));
    let seq = foreign(&server, "theirs");
    session.wait_seen(Seq(seq)).await.unwrap();
    assert_eq!(sink.told(), [Told::Up(true), Told::Changes(1, 2, true), Told::Changes(2, 3, false)]);
    until("the last change is acknowledged with what is pending", || {
        server.world.lock().acks.last().is_some_and(|a| a.seen == 3 && a.pending == 77)
    })
    .await;
    assert!(sink.tree.lock().names.len() == 2);
    // The author of the operation carries the mount.
    let author = server.world.lock().log[0].record.clone().unwrap().author.unwrap();
    assert_eq!((author.mount, author.agent.as_str()), (42, "a"));
}

#[tokio::test]
async fn an_apply_returns_only_when_the_stream_has_delivered_and_a_refusal_too() {
    let server = Server::start();
    let (session, _, sink) = mount(&server, 10).await;
    server.world.hold();
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { make(&session, "a").await }
    });
    until("the server has applied it", || server.world.seq() == 2).await;
    foreign(&server, "b");
    // A refusal whose reason is not delivered yet.
    let refused = tokio::spawn({
        let session = session.clone();
        async move { make(&session, "b").await }
    });
    until("the server has refused it", || server.world.calls("apply") == 2).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished() && !refused.is_finished());
    server.world.release();
    assert_eq!(waiting.await.unwrap().unwrap(), Seq(2));
    assert_eq!(refused.await.unwrap().unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert!(session.seen() == Seq(3) && sink.told().contains(&Told::Changes(1, 2, true)));
}

#[tokio::test]
async fn a_reply_that_is_lost_with_the_server_is_asked_for_again_and_answered_once() {
    let mut server = Server::start();
    let (session, _, sink) = mount(&server, 20).await;
    server.world.swallow.store(1, Ordering::SeqCst);
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { make(&session, "once").await }
    });
    until("the server has applied it", || server.world.seq() == 2).await;
    server.kill();
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.restart();
    assert_eq!(waiting.await.unwrap().unwrap(), Seq(2));
    assert_eq!((server.world.seq(), server.world.lock().sets.len()), (2, 1));
    assert!(server.world.calls("apply") >= 2);
    assert_eq!(sink.resets(), 0);
    sink.assert_in_order();
}

#[tokio::test]
async fn a_lost_stream_goes_on_where_it_was_and_is_up_only_when_it_has_caught_up() {
    let mut server = Server::start();
    let (session, _, sink) = mount(&server, 20).await;
    make(&session, "a").await.unwrap();
    server.kill();
    until("the loss is noticed", || sink.told().last() == Some(&Told::Up(false))).await;
    foreign(&server, "b");
    foreign(&server, "c");
    server.restart();
    session.wait_connected().await.unwrap();
    let told = sink.told();
    let missed = [Told::Changes(2, 3, false), Told::Changes(3, 4, false), Told::Up(true)];
    assert_eq!(&told[told.len() - 3..], missed);
    let hello = server.world.lock().hellos.last().cloned().unwrap();
    assert_eq!((hello.mount.unwrap().id, hello.seen.unwrap().seq), (42, 2));
    sink.assert_in_order();
}

#[tokio::test]
async fn a_stream_that_cannot_go_on_resets_the_tree_before_it_is_up() {
    let mut server = Server::start();
    let (session, _, sink) = mount(&server, 20).await;
    make(&session, "a").await.unwrap();
    server.world.resume.store(false, Ordering::SeqCst);
    server.kill();
    until("the loss is noticed", || sink.told().last() == Some(&Told::Up(false))).await;
    foreign(&server, "b");
    server.restart();
    session.wait_connected().await.unwrap();
    let told = sink.told();
    assert_eq!(&told[told.len() - 3..], [Told::Up(false), Told::Reset(3), Told::Up(true)]);
    assert_eq!(make(&session, "c").await.unwrap(), Seq(4));
}

#[tokio::test]
async fn a_gap_is_a_lost_stream_and_a_repetition_is_nothing() {
    let server = Server::start();
    let (session, _, sink) = mount(&server, 10).await;
    make(&session, "a").await.unwrap();
    let again = server.world.lock().sets[0].clone();
    server.world.push(Down::Changes(again));
    // A change that is left out, and one after it.
    server.world.hold();
    foreign(&server, "b");
    server.world.lock().held = None;
    foreign(&server, "c");
    session.wait_seen(Seq(4)).await.unwrap();
    until("the stream is up again", || sink.told().last() == Some(&Told::Up(true))).await;
    assert_eq!(server.world.lock().hellos.len(), 2);
    assert_eq!(sink.tree.lock().names.len(), 3);
    assert_eq!(sink.resets(), 0);
    sink.assert_in_order();
}

#[tokio::test]
async fn a_rollback_resets_a_live_mount_and_is_acknowledged() {
    let server = Server::start();
    let (session, _, sink) = mount(&server, 10).await;
    make(&session, "a").await.unwrap();
    let head = {
        let mut inner = server.world.lock();
        inner.seq = 9;
        v1::Point { timeline: 5, seq: 9 }
    };
    server.world.push(Down::Reset(v1::Reset { head: Some(head), op_id: None }));
    session.wait_seen(Seq(9)).await.unwrap();
    assert_eq!(sink.told().last(), Some(&Told::Reset(9)));
    until("it is acknowledged", || server.world.lock().acks.last().is_some_and(|a| a.seen == 9)).await;
    assert_eq!(make(&session, "b").await.unwrap(), Seq(10));
}

#[tokio::test]
async fn silence_is_a_lost_stream_and_this_side_is_never_silent() {
    let server = Server::start();
    server.world.lease_ms.store(400, Ordering::SeqCst);
    let (session, _, sink) = mount(&server, 20).await;
    session.wait_connected().await.unwrap();
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert!(server.world.lock().pings >= 3, "signs of life");
    assert_eq!(server.world.lock().hellos.len(), 1, "a stream with pings stays");
    server.world.mute.store(true, Ordering::SeqCst);
    until("the silence is noticed", || server.world.lock().hellos.len() >= 2).await;
    server.world.mute.store(false, Ordering::SeqCst);
    until("the stream is up again", || sink.told().last() == Some(&Told::Up(true))).await;
    assert!(sink.told().contains(&Told::Up(false)));
    make(&session, "a").await.unwrap();
}

#[tokio::test]
async fn a_refused_mount_fails_every_call_with_the_refusal() {
    let mut server = Server::start();
    let (session, _, sink) = mount(&server, 20).await;
    session.wait_connected().await.unwrap();
    server.world.deleted.store(true, Ordering::SeqCst);
    server.restart();
    let error = session.shared.ended().await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("deleted"));
    assert_eq!(session.wait_seen(Seq(99)).await, Err(error.clone()));
    assert_eq!(session.wait_connected().await, Err(error.clone()));
    assert_eq!(make(&session, "a").await, Err(error.clone()));
    assert_eq!(session.sync(false).await, Err(error));
    assert_eq!(sink.told().last(), Some(&Told::Up(false)));

    let conn = server.connect(Duration::from_secs(5));
    let first = MountSession::attach(conn, options(), sink).await.unwrap_err();
    assert_eq!(first.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn waiting_has_an_end_when_the_server_is_gone() {
    let mut server = Server::start();
    let (session, _, sink) = mount(&server, 1).await;
    session.wait_connected().await.unwrap();
    server.kill();
    until("the loss is noticed", || sink.told().last() == Some(&Told::Up(false))).await;
    assert_eq!(session.wait_connected().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(session.wait_seen(Seq(9)).await.unwrap_err().kind(), ErrorKind::TimedOut);
    let error = session.apply(Vec::new(), Vec::new(), Durable::No).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("agfs server run"), "{error}");
}

#[tokio::test]
async fn detaching_ends_the_stream_and_later_calls() {
    let server = Server::start();
    let (session, ..) = mount(&server, 5).await;
    make(&session, "a").await.unwrap();
    session.detach().await;
    until("the server has seen the end", || server.world.lock().stream_ends == 1).await;
    assert_eq!(make(&session, "b").await.unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(server.world.lock().hellos.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_applies_beside_a_stream_that_is_cut_again_and_again() {
    let mut server = Server::start();
    let (session, _, sink) = mount(&server, 30).await;
    sink.slow.store(false, Ordering::SeqCst);
    let makers: Vec<_> = (0..8)
        .map(|m| {
            let session = session.clone();
            tokio::spawn(async move {
                for i in 0..40 {
                    let seq = make(&session, &format!("d{m}-{i}")).await.unwrap();
                    assert!(session.seen() >= seq);
                }
            })
        })
        .collect();
    for round in 0..6 {
        tokio::time::sleep(Duration::from_millis(40)).await;
        server.world.resume.store(round % 3 != 2, Ordering::SeqCst);
        server.restart();
    }
    for maker in makers {
        maker.await.unwrap();
    }
    assert_eq!(server.world.lock().tree.names.len(), 320);
    assert_eq!(server.world.seq(), 321, "nothing was applied twice");
    sink.assert_in_order();
}

#[tokio::test]
async fn file_ids_are_unique_and_asked_for_seldom() {
    let server = Server::start();
    let (session, ..) = mount(&server, 5).await;
    let mut ids = std::collections::HashSet::new();
    for _ in 0..9_000 {
        assert!(ids.insert(session.next_file_id().await.unwrap()));
    }
    assert!(server.world.calls("reserve_ids") <= 4);
}

#[tokio::test]
async fn a_view_of_the_past_is_told_nothing_and_holds_nobody_up() {
    let server = Server::start();
    let (sink, conn) = (Arc::new(Sink::default()), server.connect(Duration::from_secs(5)));
    let past = AttachOptions { at: "seq:1".into(), read_only: true, ..options() };
    let (session, _) = MountSession::attach(conn, past, sink.clone()).await.unwrap();
    session.wait_connected().await.unwrap();
    foreign(&server, "a");
    foreign(&server, "b");
    until("the changes are acknowledged", || server.world.lock().acks.last().is_some_and(|a| a.seen == 3)).await;
    assert_eq!((session.seen(), sink.told()), (Seq(1), vec![Told::Up(true)]));
    assert_eq!(server.world.lock().hellos.len(), 1);
}

async fn holder(server: &Server) -> (Arc<MountSession>, Arc<Sink>) {
    let sink = Arc::new(Sink::default());
    let options = AttachOptions { lease: true, ..options() };
    let (session, _) =
        MountSession::attach(server.connect(Duration::from_secs(5)), options, sink.clone()).await.unwrap();
    session.wait_connected().await.unwrap();
    (session, sink)
}

#[tokio::test]
async fn a_space_is_given_and_called_back_and_every_recall_is_answered() {
    let server = Server::start();
    let (session, sink) = holder(&server).await;
    assert!(server.world.lock().hellos[0].lease);
    server.world.push(Down::Grant(v1::Grant { epoch: 5 }));
    until("the grant is told", || sink.told().contains(&Told::Granted(5))).await;
    let id = session.next_file_id().await.unwrap();
    assert_eq!(server.world.lock().reserved_by.as_deref(), Some("42"), "a call says which mount it is of");
    let held = Held { epoch: 5, follows: Seq(1) };
    let op_id = OpId { client: 3, counter: 4 };
    let made = session.apply_held(op_id, &[mkdir(id, "mine")], Vec::new(), Durable::No, held).await;
    assert_eq!(made, Ok(Seq(2)));
    assert_eq!(server.world.lock().last_held, (5, 1));
    assert!(server.world.lock().results.contains_key(&op_id), "under the id that was given");
    assert_eq!(make(&session, "another").await, Ok(Seq(3)));
    assert_eq!(server.world.lock().last_held, (0, 0), "an ordinary change says nothing of it");
    let recall = |release, token| Recall { epoch: 5, release, token };
    for (release, token) in [(false, 1), (false, 2), (true, 0)] {
        server.world.push(Down::Recall(v1::Recall { epoch: 5, release, token }));
    }
    until("three recalls are told", || sink.told().contains(&Told::Recalled(recall(true, 0)))).await;
    assert!(sink.told().contains(&Told::Recalled(recall(false, 2))));
    // Out of order, as they may end: the last that is sent says it all.
    session.drained(recall(true, 0), true);
    session.drained(recall(false, 2), false);
    session.drained(recall(false, 1), false);
    let last = v1::Drained { epoch: 5, token: 2, released: true };
    until("all are answered", || server.world.lock().drained.last() == Some(&last)).await;
    // The next grant begins afresh.
    session.drained(Recall { epoch: 6, release: false, token: 1 }, false);
    let last = v1::Drained { epoch: 6, token: 1, released: false };
    until("a later grant is answered for itself", || server.world.lock().drained.last() == Some(&last)).await;
}

#[tokio::test]
async fn a_mount_that_is_back_is_told_that_it_still_has_the_space_before_it_is_up() {
    let server = Server::start();
    let (_session, sink) = holder(&server).await;
    server.world.lock().epoch = 9;
    server.world.forget_streams();
    until("the stream is back", || sink.told().last() == Some(&Told::Up(true)) && sink.told().len() > 2).await;
    assert_eq!(sink.told()[1..], [Told::Up(false), Told::Granted(9), Told::Up(true)]);
}

#[tokio::test]
async fn a_lease_that_was_not_asked_for_ends_the_stream() {
    let server = Server::start();
    let (session, _, sink) = mount(&server, 5).await;
    session.wait_connected().await.unwrap();
    server.world.push(Down::Grant(v1::Grant { epoch: 5 }));
    until("the stream was lost", || sink.told().contains(&Told::Up(false))).await;
}
