//! Holes: what SEEK_HOLE, SEEK_DATA and the allocated blocks say, before and after a commit and on another mount.

// Lists of ranges are meant.
#![allow(clippy::single_range_in_vec_init)]

use super::super::SetAttr;
use crate::testing::{FakeServer, ROOT, TestMount, mount};
use libc::{FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE, FALLOC_FL_ZERO_RANGE, O_RDONLY, O_RDWR, SEEK_DATA, SEEK_HOLE};
use std::ops::Range;

const PUNCH: i32 = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

/// The ranges of data that a reader finds, and the blocks of 512 bytes that stat shows.
async fn data(m: &TestMount, ino: u64) -> (Vec<Range<u64>>, u64) {
    let fh = m.open(ino, O_RDONLY).await;
    let (mut ranges, mut at) = (Vec::new(), 0);
    while let Some(start) = m.vfs.lseek(fh, at, SEEK_DATA).await.unwrap() {
        let end = m.vfs.lseek(fh, start as i64, SEEK_HOLE).await.unwrap().unwrap();
        ranges.push(start..end);
        at = end as i64;
    }
    m.vfs.release(fh).await.unwrap();
    (ranges, m.vfs.getattr(ino).await.unwrap().stat.blocks)
}

async fn resize(m: &TestMount, ino: u64, fh: u64, size: u64) {
    let set = SetAttr { size: Some(size), ..SetAttr::default() };
    m.vfs.setattr(ino, Some(fh), set, ROOT).await.unwrap();
}

/// What is expected now, after the commit, and on a mount that has seen nothing.
async fn expect(server: &std::sync::Arc<FakeServer>, m: &TestMount, (ino, fh): (u64, u64), want: &[Range<u64>]) {
    let size = m.vfs.getattr(ino).await.unwrap().stat.size;
    let blocks: u64 = want.iter().map(|r| (r.end - r.start).div_ceil(4_096) * 8).sum();
    let want = (want.to_vec(), blocks);
    assert_eq!(data(m, ino).await, want, "before the commit");
    m.vfs.flush(fh).await.unwrap();
    assert_eq!(data(m, ino).await, want, "after the commit");
    let other = mount(server);
    assert_eq!(data(&other, ino).await, want, "elsewhere");
    assert_eq!(other.content(ino).await.len() as u64, size);
    assert!(other.content(ino).await == m.content(ino).await);
}

#[tokio::test]
async fn holes_are_exact_before_and_after_a_commit() {
    let server = FakeServer::new();
    let m = mount(&server);
    for size in [400_000, 3 << 20] {
        let name = format!("f{size}");
        let ino = m.put(1, &name, b"").await;
        let fh = m.open(ino, O_RDWR).await;
        resize(&m, ino, fh, size).await;
        expect(&server, &m, (ino, fh), &[]).await;
        m.vfs.write(fh, 200_000, b"x", false).await.unwrap();
        expect(&server, &m, (ino, fh), &[196_608..200_704]).await;
        m.vfs.write(fh, 4_000, &[7; 200], false).await.unwrap();
        expect(&server, &m, (ino, fh), &[0..8_192, 196_608..200_704]).await;
        m.vfs.fallocate(fh, 196_608, 4_096, PUNCH, false).await.unwrap();
        expect(&server, &m, (ino, fh), &[0..8_192]).await;
        m.vfs.fallocate(fh, 0, size, PUNCH, false).await.unwrap();
        expect(&server, &m, (ino, fh), &[]).await;
        // A second time, and beyond the end: nothing to do is no error.
        m.vfs.fallocate(fh, 0, size + 5, PUNCH, false).await.unwrap();
        m.vfs.fallocate(fh, size, 4_096, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, false).await.unwrap();
        expect(&server, &m, (ino, fh), &[]).await;
        m.close(fh).await;
    }
}

#[tokio::test]
async fn a_hole_in_the_middle_of_what_was_committed_reads_as_zeros() {
    let server = FakeServer::new();
    let m = mount(&server);
    for size in [300_000u64, 2 << 20] {
        let content: Vec<u8> = (0..size).map(|i| (i % 251) as u8 + 1).collect();
        let ino = m.put(1, &format!("f{size}"), &content).await;
        let fh = m.open(ino, O_RDWR).await;
        m.vfs.fallocate(fh, 8_192, 12_288, PUNCH, false).await.unwrap();
        m.vfs.fallocate(fh, 100_000, 10, FALLOC_FL_ZERO_RANGE, false).await.unwrap();
        expect(&server, &m, (ino, fh), &[0..8_192, 20_480..size]).await;
        let mut want = content;
        want[8_192..20_480].fill(0);
        want[100_000..100_010].fill(0);
        assert!(m.content(ino).await == want);
        // Cut within the hole and extended again: the rest is a hole.
        resize(&m, ino, fh, 10_000).await;
        resize(&m, ino, fh, size).await;
        expect(&server, &m, (ino, fh), &[0..8_192]).await;
        m.close(fh).await;
    }
}
