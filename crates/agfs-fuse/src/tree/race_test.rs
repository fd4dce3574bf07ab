//! Races between answers of the server and the stream, one step at a time: the test decides when each comes.

use crate::testing::{FakeServer, TestMount, mount};
use agfs_core::name::Name;
use agfs_core::op::{NewNode, Op, RenameMode};
use agfs_core::{ErrorKind, FileId};
use std::sync::Arc;

const ROOT: u64 = 1;

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

fn unlink(server: &FakeServer, parent: u64, text: &str) {
    server.change(Op::Unlink { parent: FileId(parent), name: name(text) }).unwrap();
}

fn mkdir(server: &FakeServer, id: u64, text: &str) {
    let node = NewNode::Dir { shadow: false };
    let op =
        Op::Create { parent: FileId(ROOT), name: name(text), file_id: FileId(id), node, mode: 0o755, uid: 0, gid: 0 };
    server.change(op).unwrap();
}

fn rename(server: &FakeServer, from: (u64, &str), to: (u64, &str)) {
    let op = Op::Rename {
        parent: FileId(from.0),
        name: name(from.1),
        new_parent: FileId(to.0),
        new_name: name(to.1),
        mode: RenameMode::Replace,
    };
    server.change(op).unwrap();
}

/// Begins to list the root while its answer is held back, does `meanwhile`, and lets the answer go.
async fn listed_while(m: &Arc<TestMount>, meanwhile: impl FnOnce()) -> Vec<String> {
    m.up.hold_answers();
    let listing = tokio::spawn({
        let m = m.clone();
        async move { m.names(ROOT).await }
    });
    while m.up.calls() == 0 {
        tokio::task::yield_now().await;
    }
    meanwhile();
    m.up.let_answers(100);
    listing.await.unwrap()
}

#[tokio::test]
async fn changes_that_come_while_a_listing_is_under_way_are_in_it() {
    let server = FakeServer::new();
    for text in ["a", "b", "c"] {
        server.put(ROOT, text, b"1");
    }
    mkdir(&server, 50, "d");
    let m = Arc::new(mount(&server));
    let names = listed_while(&m, || {
        unlink(&server, ROOT, "a");
        server.put(ROOT, "e", b"new");
        rename(&server, (ROOT, "b"), (50, "moved"));
        server
            .change(Op::SetAttr {
                file_id: FileId(50),
                change: agfs_core::attr::AttrChange { mode: Some(0o700), ..Default::default() },
            })
            .unwrap();
    })
    .await;
    assert_eq!(names, ["c", "d", "e"]);
    for id in m.tree.entries(FileId(ROOT)).unwrap() {
        let (have, want) = (m.tree.node(id.1).unwrap(), server.node(id.1.0).unwrap());
        assert_eq!(*have, crate::tree::TreeNode::new(want, None), "a node is as of the last change seen");
    }
    assert_eq!(m.names(50).await, ["moved"]);
}

#[tokio::test]
async fn an_answer_that_is_ahead_of_the_stream_waits_for_it() {
    let server = FakeServer::new();
    server.put(ROOT, "old", b"1");
    let m = Arc::new(mount(&server));
    m.up.hold_stream();
    server.put(ROOT, "new", b"2");
    let listing = tokio::spawn({
        let m = m.clone();
        async move { m.names(ROOT).await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    assert!(!listing.is_finished(), "the tree would show what the stream has not told");
    m.up.let_stream(usize::MAX);
    assert_eq!(listing.await.unwrap(), ["new", "old"]);
}

#[tokio::test]
async fn a_stream_that_never_comes_is_an_error_in_the_end() {
    let server = FakeServer::new();
    server.put(ROOT, "old", b"1");
    let m = mount(&server);
    m.up.hold_stream();
    server.put(ROOT, "new", b"2");
    assert_eq!(m.vfs.opendir(ROOT).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn what_was_asked_before_a_reset_is_asked_again_after_it() {
    let server = FakeServer::new();
    server.put(ROOT, "kept", b"1");
    let point = server.checkpoint();
    server.put(ROOT, "lost", b"2");
    let m = Arc::new(mount(&server));
    let names = listed_while(&m, || server.rollback(point)).await;
    assert_eq!(names, ["kept"]);
    assert_eq!(m.ino(ROOT, "lost").await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn one_request_serves_all_who_want_the_same_directory() {
    let server = FakeServer::new();
    server.put(ROOT, "a", b"1");
    let m = Arc::new(mount(&server));
    m.up.hold_answers();
    let all: Vec<_> = (0..20)
        .map(|_| {
            let m = m.clone();
            tokio::spawn(async move { m.ino(ROOT, "a").await })
        })
        .collect();
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    m.up.let_answers(100);
    for one in all {
        one.await.unwrap().unwrap();
    }
    assert_eq!(m.up.calls(), 1);
}

#[tokio::test]
async fn a_node_changed_or_dropped_while_it_is_fetched_is_as_changed() {
    let server = FakeServer::new();
    let (a, b) = (server.put(ROOT, "a", b"1"), server.put(ROOT, "b", b"1"));
    let m = Arc::new(mount(&server));
    m.up.hold_answers();
    let fetch = |ino| {
        let m = m.clone();
        tokio::spawn(async move { m.vfs.getattr(ino).await })
    };
    let (one, two) = (fetch(a), fetch(b));
    while m.up.calls() < 2 {
        tokio::task::yield_now().await;
    }
    let change = agfs_core::attr::AttrChange { mode: Some(0o600), ..Default::default() };
    server.change(Op::SetAttr { file_id: FileId(a), change }).unwrap();
    unlink(&server, ROOT, "b");
    m.up.let_answers(100);
    assert_eq!(one.await.unwrap().unwrap().stat.mode, 0o600);
    assert_eq!(two.await.unwrap().unwrap_err().kind(), ErrorKind::Stale);
}

#[tokio::test]
async fn a_loaded_directory_answers_everything_without_the_server() {
    let server = FakeServer::new();
    server.put(ROOT, "a", b"1");
    mkdir(&server, 50, "empty");
    let m = mount(&server);
    m.names(ROOT).await;
    let calls = m.up.calls();
    assert!(m.ino(ROOT, "a").await.is_ok());
    assert_eq!(m.ino(ROOT, "absent").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(m.ino(50, "absent").await.unwrap_err().kind(), ErrorKind::NotFound, "an empty directory is loaded");
    server.put(ROOT, "b", b"2");
    assert!(m.ino(ROOT, "b").await.is_ok());
    mkdir(&server, 51, "new");
    assert_eq!(m.names(51).await, [""; 0]);
    assert_eq!(m.up.calls(), calls);
}
