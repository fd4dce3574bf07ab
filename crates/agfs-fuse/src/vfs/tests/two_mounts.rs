//! Two mounts of one space: what is closed here is seen by the next open there.

use crate::testing::{FakeServer, Rng, mount};
use agfs_core::ErrorKind;
use libc::{O_APPEND, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY};

const TOP: u64 = 1;

#[tokio::test]
async fn a_close_is_seen_by_the_next_open_in_both_directions() {
    let server = FakeServer::new();
    let (a, b) = (mount(&server), mount(&server));
    let ino = a.put(TOP, "f", b"one").await;
    for (i, (writer, reader)) in [(&a, &b), (&b, &a), (&a, &b)].into_iter().enumerate() {
        let text = format!("version {i}");
        let fh = writer.open(ino, O_WRONLY | O_TRUNC).await;
        writer.vfs.write(fh, 0, text.as_bytes(), false).await.unwrap();
        assert_ne!(reader.content(ino).await, text.as_bytes(), "what is not closed is not seen elsewhere");
        writer.close(fh).await;
        assert_eq!(reader.content(ino).await, text.as_bytes());
        assert_eq!(reader.vfs.getattr(ino).await.unwrap().stat.size, text.len() as u64);
    }
}

#[tokio::test]
async fn names_made_and_taken_away_there_are_so_here() {
    let server = FakeServer::new();
    let (a, b) = (mount(&server), mount(&server));
    assert_eq!(b.ino(TOP, "d").await.unwrap_err().kind(), ErrorKind::NotFound);
    let d = a.vfs.mkdir(TOP, b"d", 0o755, crate::testing::ROOT).await.unwrap().stat.ino;
    assert_eq!(b.ino(TOP, "d").await.unwrap(), d);
    b.put(d, "f", b"x").await;
    assert_eq!(a.names(d).await, ["f"]);
    assert_eq!(a.vfs.rmdir(TOP, b"d").await.unwrap_err().kind(), ErrorKind::NotEmpty);
    a.vfs.unlink(d, b"f").await.unwrap();
    b.vfs.rmdir(TOP, b"d").await.unwrap();
    assert_eq!(a.ino(TOP, "d").await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_file_removed_there_stays_usable_where_it_is_open() {
    let server = FakeServer::new();
    let (a, b) = (mount(&server), mount(&server));
    let ino = a.put(TOP, "f", b"content").await;
    let fh = b.open(ino, O_RDWR).await;
    b.vfs.write(fh, 7, b" more", false).await.unwrap();
    a.vfs.unlink(TOP, b"f").await.unwrap();
    assert_eq!(&b.vfs.read(fh, 0, 100).await.unwrap()[..], b"content more");
    let stat = b.vfs.getattr(ino).await.unwrap().stat;
    assert_eq!((stat.nlink, stat.size), (0, 12));
    let log = server.log().len();
    b.close(fh).await;
    assert_eq!(server.log().len(), log, "nothing is committed for a file that is gone");
    assert_eq!((b.up.pending(), b.vfs.inodes().dirty(false).len()), (0, 0));
    assert_eq!(b.vfs.getattr(ino).await.unwrap_err().kind(), ErrorKind::Stale);
}

#[tokio::test]
async fn an_editor_that_renames_over_gives_readers_the_old_file_or_the_new_one() {
    let server = FakeServer::new();
    let (a, b) = (mount(&server), mount(&server));
    let old = a.put(TOP, "f", b"old").await;
    let reading = b.open(old, O_RDONLY).await;
    let new = a.put(TOP, "f.tmp", b"new").await;
    a.vfs.rename((TOP, b"f.tmp"), (TOP, b"f"), 0).await.unwrap();
    assert_eq!(b.ino(TOP, "f").await.unwrap(), new);
    assert_eq!(b.content(new).await, b"new");
    assert_eq!(&b.vfs.read(reading, 0, 10).await.unwrap()[..], b"old");
    // By number, as through /proc, it is there as long as somebody holds it.
    assert_eq!(b.content(old).await, b"old");
    b.vfs.release(reading).await.unwrap();
    assert_eq!(b.vfs.open(old, O_RDONLY, crate::testing::ROOT).await.unwrap_err().kind(), ErrorKind::Stale);
}

#[tokio::test]
async fn turns_of_appending_lose_nothing() {
    let server = FakeServer::new();
    let (a, b) = (mount(&server), mount(&server));
    let ino = a.put(TOP, "log", b"").await;
    let mut want = Vec::new();
    for i in 0..40 {
        let m = if i % 2 == 0 { &a } else { &b };
        let line = format!("line {i}\n");
        let fh = m.open(ino, O_WRONLY | O_APPEND).await;
        // The kernel's idea of the end may be older than the open.
        m.vfs.write(fh, 0, line.as_bytes(), false).await.unwrap();
        m.close(fh).await;
        want.extend_from_slice(line.as_bytes());
    }
    assert_eq!(a.content(ino).await, want);
    assert_eq!(b.content(ino).await, want);
}

#[tokio::test]
async fn the_later_close_of_two_writers_wins_as_a_whole() {
    let server = FakeServer::new();
    let (a, b) = (mount(&server), mount(&server));
    let mut rng = Rng(7);
    let mut base = rng.bytes(3_000_000);
    let ino = a.put(TOP, "db", &base).await;
    let (fa, fb) = (a.open(ino, O_RDWR).await, b.open(ino, O_RDWR).await);
    a.vfs.write(fa, 100, b"from a", false).await.unwrap();
    b.vfs.write(fb, 2_000_000, b"from b", false).await.unwrap();
    a.close(fa).await;
    b.close(fb).await;
    base[2_000_000..2_000_006].copy_from_slice(b"from b");
    assert!(a.content(ino).await == base, "the result is what the last one to close had");
    assert!(b.content(ino).await == base);
    assert_eq!(server.version_no(ino), 3);
}

#[tokio::test]
async fn a_rollback_is_seen_at_once_and_open_files_go_on() {
    let server = FakeServer::new();
    let (a, b) = (mount(&server), mount(&server));
    let ino = a.put(TOP, "f", b"before").await;
    let point = server.checkpoint();
    let fh = a.open(ino, O_RDWR | O_TRUNC).await;
    a.vfs.write(fh, 0, b"after", false).await.unwrap();
    a.close(fh).await;
    let new = a.put(TOP, "new", b"x").await;
    let (open, lost) = (b.open(ino, O_RDWR).await, b.open(new, O_RDONLY).await);
    server.rollback(point);
    for m in [&a, &b] {
        assert_eq!(m.names(TOP).await, ["f"]);
        assert_eq!(m.content(ino).await, b"before");
        assert_eq!(m.ino(TOP, "new").await.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(&b.vfs.read(open, 0, 100).await.unwrap()[..], b"before");
    assert_eq!(&b.vfs.read(lost, 0, 100).await.unwrap()[..], b"x", "what is open stays readable");
    b.vfs.write(open, 0, b"AFTER!", false).await.unwrap();
    b.close(open).await;
    b.vfs.release(lost).await.unwrap();
    assert_eq!(a.content(ino).await, b"AFTER!");
}

#[tokio::test]
async fn a_rollback_in_the_middle_of_writing_keeps_what_was_written() {
    let server = FakeServer::new();
    let a = mount(&server);
    let mut base = Rng(5).bytes(1_000_000);
    let ino = a.put(TOP, "f", &base).await;
    let point = server.checkpoint();
    for text in [b"one", b"two"] {
        let fh = a.open(ino, O_RDWR).await;
        a.vfs.write(fh, 10, text, false).await.unwrap();
        a.close(fh).await;
    }
    let fh = a.open(ino, O_RDWR).await;
    a.vfs.write(fh, 500_000, b"three", false).await.unwrap();
    server.rollback(point);
    a.close(fh).await;
    base[10..13].copy_from_slice(b"two");
    base[500_000..500_005].copy_from_slice(b"three");
    assert!(a.content(ino).await == base, "the file is what its writer saw when it closed it");
}

#[tokio::test]
async fn times_set_on_what_another_mount_has_written_keep_its_bytes() {
    let server = FakeServer::new();
    let (a, b) = (mount(&server), mount(&server));
    let ino = a.put(TOP, "f", b"").await;
    let fh = a.open(ino, libc::O_RDWR).await;
    a.vfs.write(fh, 0, b"first", false).await.unwrap();
    a.vfs.flush(fh).await.unwrap();
    // A change of times that is not committed, on the content that a still has here.
    a.vfs.fallocate(fh, 0, 3, libc::FALLOC_FL_KEEP_SIZE, false).await.unwrap();
    let other = b.open(ino, O_WRONLY).await;
    b.vfs.write(other, 0, b"other", false).await.unwrap();
    b.close(other).await;
    a.vfs.flush(fh).await.unwrap();
    assert_eq!(&a.vfs.read(fh, 0, 9).await.unwrap()[..], b"other");
    a.vfs.write(fh, 0, b"m", false).await.unwrap();
    a.close(fh).await;
    for m in [&a, &b, &mount(&server)] {
        assert_eq!(m.content(ino).await, b"mther");
    }
    assert_eq!(a.up.pending(), 0);
}
