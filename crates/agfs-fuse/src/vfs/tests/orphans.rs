//! Nodes that lost their last name while somebody holds them: what is shown of them, and that they do not stay for ever.

use super::super::SetAttr;
use crate::testing::{FakeServer, ROOT, TestMount, mount};
use agfs_core::ErrorKind;

async fn stat(m: &TestMount, ino: u64) -> (u32, u64) {
    let stat = m.vfs.getattr(ino).await.unwrap().stat;
    (stat.nlink, stat.size)
}

#[tokio::test]
async fn a_removed_directory_is_empty_for_those_who_hold_it() {
    let server = FakeServer::new();
    let (m, other) = (mount(&server), mount(&server));
    let dir = m.vfs.mkdir(1, b"d", 0o755, ROOT).await.unwrap().stat.ino;
    let seen = other.vfs.lookup(1, b"d").await.unwrap().stat.ino;
    assert_eq!(seen, dir);
    m.vfs.rmdir(1, b"d").await.unwrap();
    for m in [&m, &other] {
        assert_eq!(stat(m, dir).await.0, 0);
        assert!(m.names(dir).await.is_empty());
        assert_eq!(m.vfs.lookup(dir, b"x").await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(m.vfs.mkdir(dir, b"x", 0o755, ROOT).await.unwrap_err().kind(), ErrorKind::NotFound);
        let set = SetAttr { mode: Some(0o700), ..SetAttr::default() };
        assert_eq!(m.vfs.setattr(dir, None, set, ROOT).await.unwrap().stat.mode, 0o700);
        m.vfs.forget(dir, 1);
        assert_eq!(m.vfs.getattr(dir).await.unwrap_err().kind(), ErrorKind::Stale, "nobody holds it");
        assert_eq!(m.vfs.inodes().count(), 0);
    }
}

#[tokio::test]
async fn a_file_that_only_the_kernel_holds_can_be_opened_again() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(1, "f", b"hello").await;
    let before = m.vfs.getattr(ino).await.unwrap().stat;
    m.vfs.unlink(1, b"f").await.unwrap();
    assert_eq!(stat(&m, ino).await, (0, 5));
    let after = m.vfs.getattr(ino).await.unwrap().stat;
    assert!(after.ctime > before.ctime && after.mtime == before.mtime, "losing a link is a change of attributes");
    assert_eq!(m.content(ino).await, b"hello");
    let fh = m.open(ino, libc::O_WRONLY | libc::O_APPEND).await;
    m.vfs.write(fh, 5, b" there", false).await.unwrap();
    m.close(fh).await;
    assert_eq!(m.content(ino).await, b"hello there", "what is written stays as long as it is held");
    m.vfs.setxattr(ino, b"user.a", b"1", libc::XATTR_CREATE).await.unwrap();
    let again = m.vfs.setxattr(ino, b"user.a", b"2", libc::XATTR_CREATE).await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(m.vfs.getxattr(ino, b"user.a").await.unwrap(), b"1");
    assert_eq!(m.vfs.listxattr(ino, ROOT).await.unwrap(), b"user.a\0");
    m.vfs.removexattr(ino, b"user.a").await.unwrap();
    assert_eq!(m.vfs.getxattr(ino, b"user.a").await.unwrap_err().kind(), ErrorKind::NoAttribute);
    m.vfs.forget(ino, 1);
    assert_eq!(m.vfs.inodes().count(), 0);
    assert_eq!(m.up.pending(), 0);
}

#[tokio::test]
async fn a_symbolic_link_and_a_special_file_are_held_like_a_file() {
    let server = FakeServer::new();
    let m = mount(&server);
    let link = m.vfs.symlink(1, b"l", b"to/there", ROOT).await.unwrap().stat.ino;
    let fifo = m.vfs.mknod(1, b"p", libc::S_IFIFO | 0o600, 0, ROOT).await.unwrap().stat.ino;
    m.vfs.unlink(1, b"l").await.unwrap();
    m.vfs.rename((1, b"p"), (1, b"q"), 0).await.unwrap();
    m.vfs.unlink(1, b"q").await.unwrap();
    assert_eq!(&*m.vfs.readlink(link).await.unwrap(), b"to/there");
    assert_eq!((stat(&m, link).await.0, stat(&m, fifo).await.0), (0, 0));
}

#[tokio::test]
async fn attributes_set_before_the_name_went_stay_with_what_was_written() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(1, "f", b"hello").await;
    let fh = m.open(ino, libc::O_RDWR).await;
    m.vfs.write(fh, 0, b"J", false).await.unwrap();
    let set = SetAttr { mode: Some(0o4755), uid: Some(7), ..SetAttr::default() };
    m.vfs.setattr(ino, None, set, ROOT).await.unwrap();
    m.vfs.setxattr(ino, b"user.a", b"1", 0).await.unwrap();
    m.vfs.unlink(1, b"f").await.unwrap();
    let stat = m.vfs.getattr(ino).await.unwrap().stat;
    assert_eq!((stat.mode, stat.uid, stat.nlink), (0o4755, 7, 0));
    assert_eq!(m.vfs.getxattr(ino, b"user.a").await.unwrap(), b"1");
    assert_eq!(&m.vfs.read(fh, 0, 9).await.unwrap()[..], b"Jello");
}

#[tokio::test]
async fn times_set_after_the_last_commit_stay_when_the_name_goes() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(1, "f", b"").await;
    let fh = m.open(ino, libc::O_RDWR).await;
    m.vfs.write(fh, 0, b"x", false).await.unwrap();
    m.vfs.fsync(fh, false).await.unwrap();
    let old = agfs_core::Timestamp(-5);
    m.vfs.setattr(ino, Some(fh), SetAttr { mtime: Some(Some(old)), ..SetAttr::default() }, ROOT).await.unwrap();
    m.vfs.unlink(1, b"f").await.unwrap();
    let set = SetAttr { atime: Some(None), ..SetAttr::default() };
    assert_eq!(m.vfs.setattr(ino, Some(fh), set, ROOT).await.unwrap().stat.mtime, old);
}

#[tokio::test]
async fn what_is_being_committed_when_the_name_goes_stays_for_those_who_hold_it() {
    let server = FakeServer::new();
    let (m, other) = (std::sync::Arc::new(mount(&server)), mount(&server));
    let ino = m.put(1, "f", b"old").await;
    let fh = m.open(ino, libc::O_RDWR).await;
    m.vfs.write(fh, 0, b"written", false).await.unwrap();
    m.up.hold_changes();
    let commit = tokio::spawn({
        let m = m.clone();
        async move { m.vfs.flush(fh).await }
    });
    m.up.change_waits().await;
    other.vfs.unlink(1, b"f").await.unwrap();
    assert_eq!(stat(&m, ino).await, (0, 7), "the commit has not ended");
    m.up.let_changes(100);
    commit.await.unwrap().unwrap();
    assert_eq!(stat(&m, ino).await, (0, 7));
    assert_eq!(&m.vfs.read(fh, 0, 100).await.unwrap()[..], b"written");
    m.vfs.write(fh, 7, b" more", false).await.unwrap();
    m.close(fh).await;
    assert_eq!(m.content(ino).await, b"written more");
    m.vfs.forget(ino, 1);
    assert_eq!((m.vfs.inodes().count(), m.up.pending()), (0, 0));
}
