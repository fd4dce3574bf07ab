//! When contents are committed, as what, and what never happens on the way.

use crate::testing::{FakeServer, ROOT, Rng, TestMount, USER, mount};
use crate::vfs::SetAttr;
use agfs_core::op::{ContentEdit, Op};
use agfs_core::{ErrorKind, Timestamp};
use libc::{O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY};
use std::sync::Arc;

const TOP: u64 = 1;

/// The edits of a file that the server was sent, in order.
fn edits(server: &FakeServer) -> Vec<ContentEdit> {
    let edit = |op| match op {
        Op::SetContent { edit, .. } => Some(edit),
        _ => None,
    };
    server.log().into_iter().filter_map(|t| edit(t.op)).collect()
}

#[tokio::test]
async fn one_version_for_each_close_that_changed_something() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(TOP, "f", b"one").await;
    assert_eq!(server.version_no(ino), 1);
    // Truncated, written and closed: no empty version in between.
    let fh = m.open(ino, O_WRONLY | O_TRUNC).await;
    assert_eq!(m.vfs.getattr(ino).await.unwrap().stat.size, 0);
    m.vfs.write(fh, 0, b"t", false).await.unwrap();
    m.vfs.write(fh, 1, b"wo", false).await.unwrap();
    // Descriptors made by dup are closed one by one.
    for _ in 0..3 {
        m.vfs.flush(fh).await.unwrap();
    }
    m.vfs.release(fh).await.unwrap();
    assert_eq!((server.version_no(ino), m.content(ino).await), (2, b"two".to_vec()));
    let fh = m.open(ino, O_RDWR).await;
    m.close(fh).await;
    assert_eq!(server.version_no(ino), 2, "nothing written, nothing committed");
    let fh = m.open(ino, O_WRONLY | O_TRUNC).await;
    m.close(fh).await;
    assert_eq!((server.version_no(ino), m.content(ino).await), (3, vec![]));
    m.put(TOP, "empty", b"").await;
    assert_eq!(edits(&server).len(), 3, "a new file that stays empty has no version");
}

#[tokio::test]
async fn a_truncation_without_a_handle_is_committed_before_it_returns() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(TOP, "f", b"hello world").await;
    let set = SetAttr { size: Some(5), ..SetAttr::default() };
    let stat = m.vfs.setattr(ino, None, set, ROOT).await.unwrap().stat;
    assert_eq!((stat.size, server.node(ino).unwrap().size()), (5, 5));
    assert!(m.vfs.inodes().get(agfs_core::FileId(ino)).is_none(), "nothing is kept of it");
    let set = SetAttr { size: Some(8), ..SetAttr::default() };
    m.vfs.setattr(ino, None, set, ROOT).await.unwrap();
    assert_eq!(mount(&server).content(ino).await, b"hello\0\0\0");
}

#[tokio::test]
async fn a_large_file_changed_in_place_sends_what_changed() {
    let server = FakeServer::new();
    let m = mount(&server);
    let mut rng = Rng(3);
    let mut want = rng.bytes(8 << 20);
    let ino = m.put(TOP, "db", &want).await;
    let fh = m.open(ino, O_RDWR).await;
    for at in [5usize, 70_000, 4_000_000, (8 << 20) - 3] {
        let row = rng.bytes(200);
        let end = at + row.len();
        want.resize(want.len().max(end), 0);
        want[at..end].copy_from_slice(&row);
        m.vfs.write(fh, at as u64, &row, false).await.unwrap();
    }
    assert!(m.vfs.read(fh, 0, u32::MAX).await.unwrap()[..] == want[..], "before the commit");
    m.vfs.flush(fh).await.unwrap();
    assert!(m.vfs.read(fh, 0, u32::MAX).await.unwrap()[..] == want[..], "after the commit, by the same handle");
    let Some(ContentEdit::Splices { base, splices, size }) = edits(&server).pop() else { panic!("sent whole") };
    assert_eq!(size, want.len() as u64);
    let sent: u64 = splices.iter().map(|s| s.len).sum();
    assert!(sent <= 5 * (64 << 10), "{sent} bytes sent for 800");
    assert!(splices.iter().all(|s| s.offset % (64 << 10) == 0));
    // A second change goes on top of the first.
    m.vfs.write(fh, 6, b"X", false).await.unwrap();
    want[6] = b'X';
    m.close(fh).await;
    let Some(ContentEdit::Splices { base: second, .. }) = edits(&server).pop() else { panic!("sent whole") };
    assert_ne!(second, base, "made for what the first change left");
    assert!(mount(&server).content(ino).await == want);
}

#[tokio::test]
async fn a_file_shortened_and_extended_has_zeros_and_not_its_old_bytes() {
    let server = FakeServer::new();
    let m = mount(&server);
    let mut want = Rng(9).bytes(2 << 20);
    let ino = m.put(TOP, "f", &want).await;
    let fh = m.open(ino, O_RDWR).await;
    for size in [1_500_001u64, 1_900_000] {
        m.vfs.setattr(ino, Some(fh), SetAttr { size: Some(size), ..SetAttr::default() }, ROOT).await.unwrap();
    }
    want.truncate(1_500_001);
    want.resize(1_900_000, 0);
    assert!(m.vfs.read(fh, 0, u32::MAX).await.unwrap()[..] == want[..]);
    m.close(fh).await;
    assert!(mount(&server).content(ino).await == want);
}

#[tokio::test]
async fn holes_stay_holes() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(TOP, "sparse", b"").await;
    let fh = m.open(ino, O_RDWR).await;
    m.vfs.write(fh, 1 << 40, b"end", false).await.unwrap();
    assert_eq!(m.vfs.lseek(fh, 0, libc::SEEK_DATA).await.unwrap(), Some(1 << 40));
    assert_eq!(m.vfs.lseek(fh, 0, libc::SEEK_HOLE).await.unwrap(), Some(0));
    m.vfs.flush(fh).await.unwrap();
    let content = server.node(ino).unwrap().content().unwrap().clone();
    assert_eq!((content.size, content.allocated), ((1 << 40) + 3, 3));
    assert_eq!(m.vfs.lseek(fh, 5, libc::SEEK_DATA).await.unwrap(), Some(1 << 40));
    assert_eq!(m.vfs.lseek(fh, 1 << 40, libc::SEEK_HOLE).await.unwrap(), Some((1 << 40) + 3));
    assert_eq!(m.vfs.lseek(fh, (1 << 40) + 3, libc::SEEK_DATA).await.unwrap(), None);
    assert_eq!(&m.vfs.read(fh, (1 << 40) - 2, 10).await.unwrap()[..], b"\0\0end");
    m.vfs.release(fh).await.unwrap();
}

#[tokio::test]
async fn what_is_written_during_a_commit_is_in_the_next_version() {
    let server = FakeServer::new();
    let m = Arc::new(mount(&server));
    let ino = m.put(TOP, "f", b"0000000000").await;
    let fh = m.open(ino, O_RDWR).await;
    m.vfs.write(fh, 0, b"AAAA", false).await.unwrap();
    m.up.hold_changes();
    let flushing = tokio::spawn({
        let m = m.clone();
        async move { m.vfs.flush(fh).await }
    });
    m.up.change_waits().await;
    m.vfs.write(fh, 2, b"BBBB", false).await.unwrap();
    assert_eq!(&m.vfs.read(fh, 0, 20).await.unwrap()[..], b"AABBBB0000");
    m.up.let_changes(1);
    flushing.await.unwrap().unwrap();
    let other = mount(&server);
    assert_eq!(other.content(ino).await, b"AAAA000000", "the version is what was there when the commit began");
    m.up.let_changes(100);
    m.close(fh).await;
    assert_eq!((other.content(ino).await, server.version_no(ino)), (b"AABBBB0000".to_vec(), 3));
}

#[tokio::test]
async fn times_set_on_a_file_being_written_survive_its_commit() {
    let server = FakeServer::new();
    let m = mount(&server);
    let (e, o) = m.vfs.create(TOP, b"f", 0o644, O_WRONLY, ROOT).await.unwrap();
    m.vfs.write(o.fh, 0, b"data", false).await.unwrap();
    let (atime, mtime) = (Timestamp(111), Timestamp(222));
    let set = SetAttr { atime: Some(Some(atime)), mtime: Some(Some(mtime)), ..SetAttr::default() };
    let stat = m.vfs.setattr(e.stat.ino, Some(o.fh), set, ROOT).await.unwrap().stat;
    assert_eq!((stat.atime, stat.mtime), (atime, mtime));
    m.close(o.fh).await;
    let attr = server.node(e.stat.ino).unwrap().attr;
    assert_eq!((attr.atime, attr.mtime), (atime, mtime));
    assert_eq!(edits(&server).len(), 1);
    // And set after the close, as rsync does.
    let set = SetAttr { mtime: Some(Some(Timestamp(333))), ..SetAttr::default() };
    m.vfs.setattr(e.stat.ino, None, set, ROOT).await.unwrap();
    assert_eq!(server.node(e.stat.ino).unwrap().attr.mtime, Timestamp(333));
}

#[tokio::test]
async fn a_commit_does_not_change_what_stat_has_shown() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(TOP, "f", b"x").await;
    let fh = m.open(ino, O_RDWR).await;
    m.vfs.write(fh, 0, b"hello", false).await.unwrap();
    let before = m.vfs.getattr(ino).await.unwrap().stat;
    m.close(fh).await;
    assert_eq!(m.vfs.getattr(ino).await.unwrap().stat, before);
    assert_eq!(mount(&server).vfs.getattr(ino).await.unwrap().stat, before);
}

#[tokio::test]
async fn pages_that_come_after_the_flush_are_committed_at_the_release() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(TOP, "f", b"mapped").await;
    let fh = m.open(ino, O_RDWR).await;
    m.vfs.flush(fh).await.unwrap();
    m.vfs.write(fh, 0, b"M", false).await.unwrap();
    m.vfs.release(fh).await.unwrap();
    assert_eq!(mount(&server).content(ino).await, b"Mapped");
}

async fn with_set_ids(m: &TestMount) -> u64 {
    let ino = m.put(TOP, "prog", b"#!").await;
    let set = SetAttr { mode: Some(0o6755), ..SetAttr::default() };
    assert_eq!(m.vfs.setattr(ino, None, set, ROOT).await.unwrap().stat.mode, 0o6755);
    ino
}

#[tokio::test]
async fn a_writer_without_the_right_takes_the_set_id_bits() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = with_set_ids(&m).await;
    let fh = m.open(ino, O_WRONLY).await;
    m.vfs.write(fh, 0, b"x", false).await.unwrap();
    assert_eq!(m.vfs.getattr(ino).await.unwrap().stat.mode, 0o6755);
    m.vfs.write(fh, 0, b"y", true).await.unwrap();
    assert_eq!(m.vfs.getattr(ino).await.unwrap().stat.mode, 0o755);
    m.close(fh).await;
    assert_eq!(server.node(ino).unwrap().attr.mode, 0o755);
    // A change of owner takes them from everybody.
    m.vfs.setattr(ino, None, SetAttr { mode: Some(0o6755), ..SetAttr::default() }, ROOT).await.unwrap();
    let set = SetAttr { uid: Some(5), ..SetAttr::default() };
    assert_eq!(m.vfs.setattr(ino, None, set, ROOT).await.unwrap().stat.mode, 0o755);
}

#[tokio::test]
async fn a_chunk_that_is_lost_is_damage_with_the_file_and_version_named() {
    let server = FakeServer::new();
    let ino = server.put(TOP, "precious", b"content");
    let m = mount(&server);
    m.names(TOP).await;
    server.lose_chunks();
    let fh = m.open(ino, O_RDONLY).await;
    let e = m.vfs.read(fh, 0, 10).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt);
    assert!(e.message().contains("/precious") && e.message().contains("version 1"), "{e}");
}

#[tokio::test]
async fn a_commit_does_not_take_ctime_back() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(1, "f", b"").await;
    let fh = m.open(ino, libc::O_RDWR).await;
    m.vfs.write(fh, 0, b"x", false).await.unwrap();
    m.vfs.setxattr(ino, b"user.a", b"1", 0).await.unwrap();
    let shown = m.vfs.getattr(ino).await.unwrap().stat;
    m.vfs.fsync(fh, false).await.unwrap();
    assert_eq!(m.vfs.getattr(ino).await.unwrap().stat.ctime, shown.ctime);
    m.close(fh).await;
    assert_eq!(mount(&server).vfs.getattr(ino).await.unwrap().stat.ctime, shown.ctime);
}

#[tokio::test]
async fn set_id_bits_set_on_a_file_being_written_go_with_the_next_write_of_a_user() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(1, "f", b"").await;
    let fh = m.open(ino, libc::O_RDWR).await;
    m.vfs.write(fh, 0, b"x", false).await.unwrap();
    let set = SetAttr { mode: Some(0o2755), ..SetAttr::default() };
    m.vfs.setattr(ino, None, set, ROOT).await.unwrap();
    let cut = SetAttr { size: Some(0), ..SetAttr::default() };
    assert_eq!(m.vfs.setattr(ino, Some(fh), cut, USER).await.unwrap().stat.mode, 0o755);
    m.close(fh).await;
    assert_eq!(mount(&server).vfs.getattr(ino).await.unwrap().stat.mode, 0o755);
}

#[tokio::test]
async fn a_change_of_attributes_does_not_overtake_a_commit_under_way() {
    let server = FakeServer::new();
    let m = Arc::new(mount(&server));
    let ino = m.put(1, "f", b"").await;
    m.vfs.setattr(ino, None, SetAttr { mode: Some(0o4755), ..SetAttr::default() }, ROOT).await.unwrap();
    let fh = m.open(ino, O_WRONLY).await;
    // By somebody who may not keep the set-id bit: the commit carries a mode.
    m.vfs.write(fh, 0, b"x", true).await.unwrap();
    m.up.hold_changes();
    let task = |m: &Arc<TestMount>| m.clone();
    let (first, second) = (task(&m), task(&m));
    let commit = tokio::spawn(async move { first.vfs.flush(fh).await });
    m.up.change_waits().await;
    let then = Timestamp(7_000_000_000);
    let set = SetAttr { mode: Some(0o600), mtime: Some(Some(then)), ..SetAttr::default() };
    let change = tokio::spawn(async move { second.vfs.setattr(ino, None, set, ROOT).await });
    let overtakes = tokio::time::timeout(std::time::Duration::from_millis(50), m.up.change_waits()).await;
    assert!(overtakes.is_err(), "it reaches the server before the commit has ended");
    m.up.let_changes(100);
    commit.await.unwrap().unwrap();
    let stat = change.await.unwrap().unwrap().stat;
    assert_eq!((stat.mode, stat.mtime), (0o600, then));
    m.close(fh).await;
    let stat = mount(&server).vfs.getattr(ino).await.unwrap().stat;
    assert_eq!((stat.mode, stat.mtime, stat.size), (0o600, then, 1));
}
