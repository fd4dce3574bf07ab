//! Calls against the test server: retries, chunks, events, files by path, copies.

use super::{Server, until};
use crate::chunking::{EncodedChunk, encode};
use crate::{Connection, Durable};
use agfs_core::op::{Author, NewNode, Op, TimedOp};
use agfs_core::{ChunkHash, ErrorKind, FileId, Name, Seq, Timestamp};
use bytes::Bytes;
use futures::StreamExt;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn noise(n: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; len];
    blake3::Hasher::new().update(&n.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

fn author() -> Author {
    Author::default()
}

async fn read(conn: &Connection, path: &str) -> crate::tree::Resolved {
    conn.resolve("work", "", path.as_bytes()).await.unwrap()
}

async fn cat(conn: &Connection, path: &str) -> agfs_core::Result<Vec<u8>> {
    let mut out = Vec::new();
    conn.read_file("work", "", path.as_bytes(), &mut out).await?;
    Ok(out)
}

#[tokio::test]
async fn a_server_that_is_not_there_is_reported_within_two_seconds_and_with_the_remedy() {
    // A port where nothing has listened since it was given out.
    let addr = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let began = Instant::now();
    let conn = super::connect(addr, Duration::from_secs(10));
    let error = conn.list_spaces().await.unwrap_err();
    assert!((Duration::from_millis(1_500)..Duration::from_millis(3_000)).contains(&began.elapsed()));
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let address = format!("no AGFS server answers at http://{addr} (tried for 2 s)");
    assert!(error.message().starts_with(&address) && error.message().contains("`agfs server run`"), "{error}");
}

#[tokio::test]
async fn a_channel_finds_a_server_that_came_back() {
    let mut server = Server::start();
    let conn = server.connect(Duration::from_secs(10));
    assert_eq!(conn.get_space("work").await.unwrap().head, Seq(1));
    for _ in 0..3 {
        server.restart();
        assert_eq!(conn.get_space("work").await.unwrap().space.name, "work");
    }
    // And one that is away for a while as the call is made.
    server.kill();
    let call = tokio::spawn(async move { conn.get_space("work").await });
    tokio::time::sleep(Duration::from_millis(700)).await;
    server.restart();
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_a_refusal_is_not() {
    let server = Server::start();
    let conn = server.connect(Duration::from_secs(10));
    server.world.busy.store(4, Ordering::SeqCst);
    conn.get_space("work").await.unwrap();
    assert_eq!(server.world.calls("get_space"), 5);
    let error = conn.resolve("work", "", b"/absent").await.unwrap_err();
    assert_eq!((error.kind(), server.world.calls("resolve")), (ErrorKind::NotFound, 1));
}

#[tokio::test]
async fn small_chunks_travel_inside_and_large_ones_ahead_once() {
    let server = Server::start();
    let conn = server.connect(Duration::from_secs(10));
    let made = |i: u64| {
        let name = Name::new(format!("f{i}").as_bytes()).unwrap();
        let node = NewNode::File;
        let op = Op::Create { parent: FileId::ROOT, name, file_id: FileId(i), node, mode: 0o644, uid: 0, gid: 0 };
        vec![TimedOp { time: Timestamp(1), op }]
    };
    let small: Vec<EncodedChunk> = (0..4).map(|i| encode(noise(i, 200_000).into())).collect();
    let first = conn.apply("work", &author(), made(100), small, Durable::No).await.unwrap();
    assert_eq!((first.from, first.to, first.repeated), (Seq(1), Seq(2), false));
    assert_eq!((server.world.calls("put_chunks"), server.world.lock().inline_bytes), (0, 800_000));
    let large: Vec<EncodedChunk> = (0..20).map(|i| encode(noise(i, 1_000_000).into())).collect();
    conn.apply("work", &author(), made(101), large.clone(), Durable::Disk).await.unwrap();
    assert_eq!((server.world.calls("put_chunks"), server.world.lock().inline_bytes), (1, 800_000));
    conn.apply("work", &author(), made(102), large.clone(), Durable::Object).await.unwrap();
    assert_eq!(server.world.calls("put_chunks"), 1, "what the server has is not sent again");
    let hashes: Vec<ChunkHash> = large.iter().map(|c| c.hash).chain([ChunkHash([9; 32])]).collect();
    let have = conn.have_chunks(&hashes).await.unwrap();
    assert!(have[..20].iter().all(|&h| h) && !have[20]);
}

#[tokio::test]
async fn chunks_keep_coming_over_a_stream_that_breaks_and_damage_is_refused() {
    let server = Server::start();
    let conn = server.connect(Duration::from_secs(10));
    let chunks: Vec<EncodedChunk> = (0..10).map(|i| encode(noise(i, 50_000).into())).collect();
    conn.put_chunks(chunks.clone()).await.unwrap();
    let mut hashes: Vec<ChunkHash> = chunks.iter().map(|c| c.hash).collect();
    hashes.push(hashes[0]);
    server.world.break_after.store(3, Ordering::SeqCst);
    let got: Vec<_> = conn.get_chunks(&hashes).map(|c| c.unwrap()).collect().await;
    assert_eq!(got.len(), 10);
    assert!(got.iter().all(|(hash, data)| ChunkHash::of(data) == *hash));
    assert_eq!(server.world.calls("get_chunks"), 4);
    server.world.break_after.store(0, Ordering::SeqCst);
    assert_eq!(conn.get_chunk(ChunkHash([1; 32])).await.unwrap_err().kind(), ErrorKind::NotFound);
    let bad = chunks[0].hash;
    server.world.lock().chunks.get_mut(&bad).unwrap().data = Bytes::from(noise(77, 50_000));
    assert_eq!(conn.get_chunk(bad).await.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn events_come_without_gap_or_repetition_over_breaks() {
    let server = Server::start();
    let conn = server.connect(Duration::from_secs(10));
    server.world.break_after.store(3, Ordering::SeqCst);
    let mut watch = conn.watch("work", None);
    let writer = conn.clone();
    tokio::spawn(async move {
        for i in 0..20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            writer.mkdir("work", format!("/d{i}").as_bytes(), false, None, &author()).await.unwrap();
        }
    });
    // What happens before the first poll is not promised; from there on nothing may be left out.
    let mut seqs = Vec::new();
    while seqs.last() != Some(&21) {
        seqs.push(watch.next().await.unwrap().unwrap().record.seq.0);
    }
    assert!(seqs.len() > 10);
    assert!(seqs.windows(2).all(|w| w[1] == w[0] + 1), "{seqs:?}");
    let from_the_start: Vec<u64> =
        conn.watch("work", Some(Seq(1))).take(20).map(|l| l.unwrap().record.seq.0).collect().await;
    assert_eq!(from_the_start, (2..=21).collect::<Vec<_>>());
}

#[tokio::test]
async fn files_by_path() {
    let server = Server::start();
    let conn = server.connect(Duration::from_secs(10));
    let a = author();
    conn.mkdir("work", b"/a/b/c", true, None, &a).await.unwrap();
    conn.mkdir("work", b"/a/b/c", true, None, &a).await.unwrap();
    assert_eq!(conn.mkdir("work", b"/a", false, None, &a).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(conn.mkdir("work", b"/x/y", false, None, &a).await.unwrap_err().kind(), ErrorKind::NotFound);
    let large = [noise(1, 3_000_000), vec![0; 1 << 20], noise(2, 9_000_000)].concat();
    let written = conn.write_file("work", b"/a/b/f", &large[..], Some(0o600), &a).await.unwrap();
    assert_eq!(written.size, large.len() as u64);
    assert!(cat(&conn, "/a/b/f").await.unwrap() == large);
    let again = conn.write_file("work", b"/a/b/f", &b"short"[..], None, &a).await.unwrap();
    assert_eq!((again.file_id, cat(&conn, "/a/b/f").await.unwrap()), (written.file_id, b"short".to_vec()));
    let node = read(&conn, "/a/b/f").await.nodes.pop().unwrap();
    assert_eq!((node.attr.mode, node.version_no), (0o600, 2));
    let missing = conn.write_file("work", b"/no/f", &b""[..], None, &a).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert_eq!(cat(&conn, "/a").await.unwrap_err().kind(), ErrorKind::IsADirectory);
    assert_eq!(cat(&conn, "/a/b/f/g").await.unwrap_err().kind(), ErrorKind::NotADirectory);
    conn.rename("work", b"/a/b/f", b"/a/b/c", &a).await.unwrap();
    conn.rename("work", b"/a/b/c/f", b"/g", &a).await.unwrap();
    assert_eq!(cat(&conn, "/g").await.unwrap(), b"short");
    assert_eq!(conn.remove("work", b"/a", false, &a).await.unwrap_err().kind(), ErrorKind::NotEmpty);
    assert_eq!(conn.remove("work", b"/a", true, &a).await.unwrap(), 3);
    assert_eq!(conn.remove("work", b"/", true, &a).await.unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(server.world.lock().tree.names.len(), 1);
}

#[tokio::test]
async fn trees_go_in_out_and_beside_with_modes_times_and_links() {
    let server = Server::start();
    let conn = server.connect(Duration::from_secs(10));
    let (a, dir) = (author(), tempfile::tempdir().unwrap());
    let src = dir.path().join("src");
    fs::create_dir_all(src.join("sub/empty")).unwrap();
    fs::write(src.join("run.sh"), b"#!/bin/sh\n").unwrap();
    fs::set_permissions(src.join("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::write(src.join("sub/large"), noise(1, 5_000_000)).unwrap();
    fs::hard_link(src.join("run.sh"), src.join("sub/same.sh")).unwrap();
    symlink("../run.sh", src.join("sub/link")).unwrap();
    fs::set_permissions(src.join("sub/empty"), fs::Permissions::from_mode(0o500)).unwrap();
    let sent = conn.upload(&src, "work", b"/", true, &a).await.unwrap();
    assert_eq!((sent.files, sent.dirs, sent.symlinks, sent.bytes), (3, 3, 1, 5_000_010));
    assert_eq!(cat(&conn, "/src/sub/link").await.unwrap(), b"#!/bin/sh\n");
    assert_eq!(read(&conn, "/src/run.sh").await.nodes[2].nlink(), 2);
    // Again, over itself: the same tree.
    conn.upload(&src, "work", b"/", true, &a).await.unwrap();
    let chunks = server.world.lock().chunks.len();
    let within = conn.copy_within("work", "", b"/src", b"/copy", true, &a).await.unwrap();
    assert_eq!((within.files, within.dirs, within.symlinks), (3, 3, 1));
    assert_eq!(server.world.lock().chunks.len(), chunks, "no bytes move");
    let refused = conn.copy_within("work", "", b"/src", b"/other", false, &a).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::IsADirectory);
    let out = dir.path().join("out");
    let got = conn.download("work", "", b"/copy", &out, true).await.unwrap();
    assert_eq!((got.files, got.dirs, got.symlinks), (3, 3, 1));
    for name in ["run.sh", "sub/large", "sub/same.sh", "sub/empty", "sub", ""] {
        let (x, y) = (fs::metadata(src.join(name)).unwrap(), fs::metadata(out.join(name)).unwrap());
        assert_eq!((x.mode(), x.mtime(), x.mtime_nsec()), (y.mode(), y.mtime(), y.mtime_nsec()), "{name}");
        assert!(x.is_dir() || fs::read(src.join(name)).unwrap() == fs::read(out.join(name)).unwrap());
    }
    assert_eq!(fs::read_link(out.join("sub/link")).unwrap().to_str(), Some("../run.sh"));
    assert_eq!(fs::metadata(out.join("run.sh")).unwrap().nlink(), 2);
    // What has no name of its own goes in entry by entry.
    conn.upload(&src.join("sub/empty/.."), "work", b"/", true, &a).await.unwrap();
    assert_eq!(read(&conn, "/large").await.nodes.len(), 2);
    assert!(conn.copy_within("work", "", b"/", b"/all", true, &a).await.unwrap().files > 6);
    assert_eq!(cat(&conn, "/all/src/run.sh").await.unwrap(), b"#!/bin/sh\n");
    // Again, over what is there; nothing unfinished stays.
    fs::set_permissions(out.join("sub/empty"), fs::Permissions::from_mode(0o700)).unwrap();
    conn.download("work", "", b"/copy/run.sh", &out, false).await.unwrap();
    assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
}

#[tokio::test]
async fn a_call_in_the_air_when_the_server_dies_is_done_once() {
    let mut server = Server::start();
    let conn = server.connect(Duration::from_secs(20));
    server.world.swallow.store(1, Ordering::SeqCst);
    let call = {
        let conn = conn.clone();
        tokio::spawn(async move { conn.mkdir("work", b"/once", false, None, &author()).await })
    };
    until("the server has applied it", || server.world.seq() == 2).await;
    server.kill();
    server.restart();
    call.await.unwrap().unwrap();
    assert_eq!((server.world.seq(), server.world.lock().sets.len()), (2, 1));
}
