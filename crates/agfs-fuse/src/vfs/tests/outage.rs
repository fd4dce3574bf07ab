//! A server that fails or is not there, and a scratch disk that fails: what programs see, and that nothing is lost.

use crate::testing::{FakeServer, ROOT, mount};
use agfs_core::ErrorKind;
use libc::{O_RDONLY, O_RDWR, O_WRONLY};

const TOP: u64 = 1;

#[tokio::test]
async fn what_could_not_be_committed_is_reported_and_committed_later() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(TOP, "f", b"old").await;
    let fh = m.open(ino, O_RDWR).await;
    m.vfs.write(fh, 0, b"new", false).await.unwrap();
    for kind in [ErrorKind::Unavailable, ErrorKind::QuotaExceeded] {
        m.up.fail_next(kind);
        assert_eq!(m.vfs.flush(fh).await.unwrap_err().kind(), kind);
        assert_eq!(&m.vfs.read(fh, 0, 10).await.unwrap()[..], b"new");
    }
    m.up.fail_next(ErrorKind::TimedOut);
    assert_eq!(m.vfs.fsync(fh, false).await.unwrap_err().kind(), ErrorKind::TimedOut);
    m.up.fail_next(ErrorKind::OutcomeUnknown);
    assert!(m.vfs.release(fh).await.is_err());
    assert_eq!((m.vfs.inodes().dirty(true).len(), m.up.pending()), (1, 3));
    assert_eq!(m.content(ino).await, b"new", "the data is still here");
    m.vfs.retry_closed().await;
    assert_eq!((m.vfs.inodes().dirty(true).len(), m.up.pending()), (0, 0));
    assert_eq!(mount(&server).content(ino).await, b"new");
    assert_eq!(server.version_no(ino), 2);
}

#[tokio::test]
async fn while_the_stream_is_down_lookups_and_opens_wait_for_it() {
    let server = FakeServer::new();
    let m = std::sync::Arc::new(mount(&server));
    let ino = m.put(TOP, "f", b"x").await;
    m.up.set_down(true);
    assert_eq!(m.ino(TOP, "f").await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(m.vfs.open(ino, O_RDONLY, ROOT).await.unwrap_err().kind(), ErrorKind::Unavailable);
    let waiting = tokio::spawn({
        let m = m.clone();
        async move { m.ino(TOP, "f").await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    assert!(!waiting.is_finished());
    m.up.set_down(false);
    assert_eq!(waiting.await.unwrap().unwrap(), ino);
}

#[tokio::test]
async fn writing_goes_on_without_the_server_and_closing_does_not() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(TOP, "f", b"x").await;
    let fh = m.open(ino, O_RDWR).await;
    m.up.set_down(true);
    m.vfs.write(fh, 0, b"offline", false).await.unwrap();
    assert_eq!(m.vfs.flush(fh).await.unwrap_err().kind(), ErrorKind::Unavailable);
    m.up.set_down(false);
    m.close(fh).await;
    assert_eq!(mount(&server).content(ino).await, b"offline");
}

#[tokio::test]
async fn changes_of_names_that_fail_leave_nothing_behind() {
    let server = FakeServer::new();
    let m = mount(&server);
    m.up.fail_next(ErrorKind::Unavailable);
    assert!(m.vfs.mkdir(TOP, b"d", 0o755, ROOT).await.is_err());
    m.up.fail_next(ErrorKind::Unavailable);
    assert!(m.vfs.create(TOP, b"f", 0o644, O_WRONLY, ROOT).await.is_err());
    assert_eq!(m.names(TOP).await, [""; 0]);
    assert!(m.vfs.mkdir(TOP, b"d", 0o755, ROOT).await.is_ok());
}

#[tokio::test]
async fn a_scratch_directory_that_is_gone_is_reported_at_the_write() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(TOP, "f", b"x").await;
    std::fs::remove_dir_all(m.vfs.world().scratch.path()).unwrap();
    let fh = m.open(ino, O_RDWR).await;
    assert!(m.vfs.write(fh, 0, &[1; 1_000], false).await.is_ok(), "a little is kept in memory");
    assert!(m.vfs.write(fh, 1 << 20, b"x", false).await.is_err());
    m.close(fh).await;
    assert_eq!(mount(&server).content(ino).await, [1; 1_000]);
}
