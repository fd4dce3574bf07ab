//! What the kernel is told and what it may keep.

use crate::testing::{FakeServer, ROOT, TestMount, Told, mount};
use crate::vfs::Opened;
use agfs_core::FileId;
use agfs_core::attr::AttrChange;
use agfs_core::op::Op;
use libc::{O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY};

const TOP: u64 = 1;

async fn look(m: &TestMount, name: &str) -> u64 {
    // The kernel keeps the lookup.
    m.vfs.lookup(TOP, name.as_bytes()).await.unwrap().stat.ino
}

async fn open(m: &TestMount, ino: u64, flags: i32) -> Opened {
    m.vfs.open(ino, flags, ROOT).await.unwrap()
}

#[tokio::test]
async fn a_change_by_others_bumps_the_epoch_and_invalidates_what_the_kernel_knows() {
    let server = FakeServer::new();
    let (f, g) = (server.put(TOP, "f", b"1"), server.put(TOP, "g", b"1"));
    let m = mount(&server);
    m.names(TOP).await;
    assert_eq!(look(&m, "f").await, f);
    m.kernel.take();
    let change = AttrChange { mode: Some(0o600), ..AttrChange::default() };
    server.change(Op::SetAttr { file_id: FileId(f), change }).unwrap();
    let attr_only = [Told::Epoch, Told::Attr(FileId(f))];
    assert!(m.kernel.take().starts_with(&attr_only), "attributes only: no page is touched");
    server.change(Op::SetAttr { file_id: FileId(g), change }).unwrap();
    assert!(!m.kernel.take().contains(&Told::Attr(FileId(g))), "the kernel does not know it");
    m.vfs.forget(f, 1);
    server.change(Op::SetAttr { file_id: FileId(f), change }).unwrap();
    assert!(!m.kernel.take().contains(&Told::Attr(FileId(f))), "the kernel has forgotten it");
}

#[tokio::test]
async fn new_content_by_others_drops_the_pages_later_and_the_marks_at_once() {
    let server = FakeServer::new();
    let f = server.put(TOP, "f", b"1");
    let (m, other) = (mount(&server), mount(&server));
    look(&m, "f").await;
    assert!(!open(&m, f, O_RDONLY).await.keep_cache, "the first open");
    assert!(open(&m, f, O_RDONLY).await.keep_cache, "the second finds the pages of the first");
    m.kernel.take();
    let fh = other.open(f, O_WRONLY | O_TRUNC).await;
    other.vfs.write(fh, 0, b"2", false).await.unwrap();
    other.close(fh).await;
    let told = m.kernel.take();
    assert!(told.starts_with(&[Told::Epoch, Told::Attr(FileId(f)), Told::Pages(FileId(f))]), "{told:?}");
    assert!(!open(&m, f, O_RDONLY).await.keep_cache, "those pages are of the old version");
    assert!(open(&m, f, O_RDONLY).await.keep_cache);
}

#[tokio::test]
async fn own_changes_tell_the_kernel_nothing_and_keep_its_pages() {
    let server = FakeServer::new();
    let m = mount(&server);
    m.kernel.take();
    let (entry, opened) = m.vfs.create(TOP, b"f", 0o644, O_WRONLY, ROOT).await.unwrap();
    assert!(opened.keep_cache, "a new file's pages are its writer's");
    m.vfs.write(opened.fh, 0, b"x", false).await.unwrap();
    m.close(opened.fh).await;
    assert!(open(&m, entry.stat.ino, O_RDONLY).await.keep_cache, "its pages became the version");
    let writer = open(&m, entry.stat.ino, O_RDWR).await;
    m.vfs.write(writer.fh, 0, b"y", false).await.unwrap();
    m.close(writer.fh).await;
    assert!(open(&m, entry.stat.ino, O_RDONLY).await.keep_cache);
    assert_eq!(m.kernel.take(), []);
}

#[tokio::test]
async fn pages_are_not_kept_over_a_commit_that_met_another() {
    let server = FakeServer::new();
    let f = server.put(TOP, "f", b"1");
    let (m, other) = (mount(&server), mount(&server));
    look(&m, "f").await;
    let writer = open(&m, f, O_RDWR).await;
    m.vfs.write(writer.fh, 0, b"m", false).await.unwrap();
    let fh = other.open(f, O_RDWR).await;
    other.vfs.write(fh, 0, b"o", false).await.unwrap();
    other.close(fh).await;
    m.close(writer.fh).await;
    assert!(!open(&m, f, O_RDONLY).await.keep_cache);
}

#[tokio::test]
async fn only_handles_that_write_are_flushed() {
    let server = FakeServer::new();
    let f = server.put(TOP, "f", b"1");
    let m = mount(&server);
    assert!(open(&m, f, O_RDONLY).await.no_flush);
    assert!(!open(&m, f, O_RDWR).await.no_flush);
}

#[tokio::test]
async fn a_reset_invalidates_everything_that_the_kernel_knows() {
    let server = FakeServer::new();
    let f = server.put(TOP, "f", b"1");
    let point = server.checkpoint();
    let m = mount(&server);
    look(&m, "f").await;
    open(&m, f, O_RDONLY).await;
    m.kernel.take();
    server.rollback(point);
    let told = m.kernel.take();
    assert_eq!(told[0], Told::Epoch);
    for id in [FileId(f), FileId::ROOT] {
        assert!(told.contains(&Told::Attr(id)) && told.contains(&Told::Pages(id)), "{told:?}");
    }
    assert!(!open(&m, f, O_RDONLY).await.keep_cache, "every mark is gone");
}

#[tokio::test]
async fn a_stream_that_is_lost_bumps_the_epoch() {
    let server = FakeServer::new();
    let m = mount(&server);
    m.kernel.take();
    m.up.set_down(true);
    assert_eq!(m.kernel.take(), [Told::Epoch]);
    m.up.set_down(false);
    assert_eq!(m.kernel.take(), []);
}

#[tokio::test]
async fn answers_on_their_way_are_followed_by_a_second_message() {
    let server = FakeServer::new();
    let f = server.put(TOP, "f", b"1");
    let m = mount(&server);
    look(&m, "f").await;
    m.kernel.take();
    let answering = m.known.answering();
    let change = AttrChange { mode: Some(0o600), ..AttrChange::default() };
    server.change(Op::SetAttr { file_id: FileId(f), change }).unwrap();
    assert_eq!(m.kernel.take().last(), Some(&Told::Again));
    drop(answering);
}

#[tokio::test]
async fn a_write_that_went_elsewhere_than_the_kernel_thinks_drops_its_pages() {
    let server = FakeServer::new();
    let f = server.put(TOP, "f", b"12345");
    let m = mount(&server);
    look(&m, "f").await;
    let opened = open(&m, f, O_WRONLY | libc::O_APPEND).await;
    m.kernel.take();
    m.vfs.write(opened.fh, 2, b"x", false).await.unwrap();
    assert_eq!(m.kernel.take(), [Told::Pages(FileId(f))]);
    assert_eq!(m.known.pages(FileId(f)), None);
    m.vfs.write(opened.fh, 6, b"y", false).await.unwrap();
    assert_eq!(m.kernel.take(), [], "this one was right");
    m.close(opened.fh).await;
    assert_eq!(m.content(f).await, b"12345xy");
}
