//! The cache against the test server and a damaged or full disk.

use super::*;
use crate::chunking::encode;
use crate::testing::Server;
use agfs_core::ErrorKind;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

fn content(n: u32, len: usize) -> Bytes {
    let mut bytes = vec![0u8; len];
    blake3::Hasher::new().update(&n.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes.into()
}

async fn stored(server: &Server, n: u32, len: usize) -> (Connection, ChunkHash, Bytes) {
    let conn = server.connect(Duration::from_secs(5));
    let data = content(n, len);
    let chunk = encode(data.clone());
    let hash = chunk.hash;
    conn.put_chunks(vec![chunk]).await.unwrap();
    (conn, hash, data)
}

fn file(dir: &Path, hash: ChunkHash) -> PathBuf {
    let name = hash.to_string();
    dir.join(&name[..2]).join(name)
}

#[tokio::test]
async fn a_chunk_comes_from_the_server_then_memory_then_disk() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let (conn, hash, data) = stored(&server, 1, 100_000).await;
    let cache = ChunkCache::open(dir.path(), 1 << 30, 1 << 24).unwrap();
    assert_eq!(cache.get(&conn, hash).await.unwrap(), data);
    assert_eq!(cache.get(&conn, hash).await.unwrap(), data);
    cache.flush();
    assert_eq!(fs::read(file(dir.path(), hash)).unwrap(), data);
    drop(cache);
    let cache = ChunkCache::open(dir.path(), 1 << 30, 0).unwrap();
    cache.flush();
    assert_eq!((cache.stats().disk_chunks, cache.stats().disk_bytes), (1, 100_000));
    assert_eq!(cache.get(&conn, hash).await.unwrap(), data);
    assert_eq!((cache.stats().disk_hits, cache.stats().misses), (1, 0));
    assert_eq!(server.world.calls("get_chunks"), 1);
}

#[tokio::test]
async fn damage_on_disk_is_dropped_counted_and_fetched_again() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let (conn, hash, data) = stored(&server, 1, 100_000).await;
    let cache = ChunkCache::open(dir.path(), 1 << 30, 0).unwrap();
    let path = file(dir.path(), hash);
    let damages: [&dyn Fn(); 5] = [
        &|| {
            let mut bytes = fs::read(&path).unwrap();
            bytes[50_000] ^= 1;
            fs::write(&path, bytes).unwrap();
        },
        &|| fs::write(&path, &data[..99_999]).unwrap(),
        &|| fs::write(&path, [&data[..], b"x"].concat()).unwrap(),
        &|| fs::write(&path, b"").unwrap(),
        &|| fs::write(&path, vec![0u8; 5 << 20]).unwrap(),
    ];
    for (n, damage) in damages.iter().enumerate() {
        assert_eq!(cache.get(&conn, hash).await.unwrap(), data);
        cache.flush();
        damage();
        assert_eq!(cache.get(&conn, hash).await.unwrap(), data);
        cache.flush();
        assert_eq!(cache.stats().damaged, n as u64 + 1);
        assert_eq!(fs::read(&path).unwrap(), data, "written again");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(cache.get(&conn, hash).await.unwrap(), data);
    assert_eq!((cache.stats().damaged, cache.stats().disk_errors), (5, 0));
}

#[tokio::test]
async fn a_disk_that_fails_fails_no_read() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let (conn, hash, data) = stored(&server, 1, 1_000).await;
    let cache = ChunkCache::open(dir.path(), 1 << 30, 0).unwrap();
    cache.flush();
    // A file where a directory belongs: neither reading nor writing can work, whoever asks.
    let name = hash.to_string();
    fs::write(dir.path().join(&name[..2]), b"in the way").unwrap();
    for _ in 0..3 {
        assert_eq!(cache.get(&conn, hash).await.unwrap(), data);
        cache.flush();
    }
    assert!(cache.stats().disk_errors >= 6);
    assert_eq!(cache.stats().disk_chunks, 0);
    // A directory where the file belongs: reading says EISDIR.
    fs::remove_file(dir.path().join(&name[..2])).unwrap();
    fs::create_dir_all(file(dir.path(), hash)).unwrap();
    assert_eq!(cache.get(&conn, hash).await.unwrap(), data);
}

#[test]
fn a_full_disk_is_counted_and_given_room() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path(), 1 << 30).unwrap();
    for n in 0..20u32 {
        let data = content(n, 1_000);
        disk.write(ChunkHash::of(&data), &data);
    }
    assert_eq!(disk.size(), (20_000, 20));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = std::io::Write::write(&mut &full, b"x").unwrap_err();
    disk.not_written(dir.path(), &error);
    assert_eq!(disk.counters.errors.load(Ordering::Relaxed), 1);
    let (bytes, _) = disk.size();
    assert!(bytes <= 18_000, "{bytes}");
    assert_eq!(walk(dir.path()).len() as u64 * 1_000, bytes);
}

#[tokio::test]
async fn callers_who_want_the_same_share_one_fetch_and_its_failure() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let (conn, hash, data) = stored(&server, 1, 2_000_000).await;
    let cache = ChunkCache::open(dir.path(), 1 << 30, 1 << 26).unwrap();
    let all = (0..50).map(|_| cache.get(&conn, hash));
    for got in futures::future::join_all(all).await {
        assert_eq!(got.unwrap(), data);
    }
    assert_eq!(server.world.calls("get_chunks"), 1);
    let absent = ChunkHash([7; 32]);
    let all = (0..5).map(|_| cache.get(&conn, absent));
    for got in futures::future::join_all(all).await {
        assert_eq!(got.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert!(cache.inner.fetching.lock().is_empty());
    // A caller who gives up leaves nothing behind.
    let (conn, hash, data) = stored(&server, 2, 1_000_000).await;
    let _ = tokio::time::timeout(Duration::from_micros(1), cache.get(&conn, hash)).await;
    assert_eq!(cache.get(&conn, hash).await.unwrap(), data);
}

#[tokio::test]
async fn the_disk_stays_within_its_limit_and_keeps_what_was_used_last() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let (conn, first, _) = stored(&server, 0, 10_000).await;
    let cache = ChunkCache::open(dir.path(), 200_000, 0).unwrap();
    for n in 0..60u32 {
        let data = content(n, 10_000);
        cache.insert(ChunkHash::of(&data), data);
        cache.flush();
        cache.get(&conn, first).await.unwrap();
        assert!(cache.stats().disk_bytes <= 200_000);
    }
    let stats = cache.stats();
    assert!(stats.evicted >= 40, "{stats:?}");
    assert_eq!(server.world.calls("get_chunks"), 0, "what is used all the time stays");
    let held: u64 = walk(dir.path()).iter().map(|p| fs::metadata(p).unwrap().len()).sum();
    assert_eq!(held, stats.disk_bytes);
    // A smaller cache over the same directory evicts at once, the oldest first.
    drop(cache);
    let cache = ChunkCache::open(dir.path(), 50_000, 0).unwrap();
    cache.flush();
    assert!(cache.stats().disk_bytes <= 50_000);
    assert_eq!(walk(dir.path()).len() as u64, cache.stats().disk_chunks);
}

#[test]
fn what_a_crash_left_unfinished_is_removed_and_strangers_stay() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("00")).unwrap();
    fs::write(dir.path().join("00/.new-999999999-1"), b"half").unwrap();
    fs::write(dir.path().join("00/notes"), b"mine").unwrap();
    let cache = ChunkCache::open(dir.path(), 1 << 20, 0).unwrap();
    cache.flush();
    assert_eq!(walk(dir.path()), [dir.path().join("00/notes")]);
    assert_eq!(cache.stats().disk_chunks, 0);
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        if entry.path().is_dir() { out.extend(walk(&entry.path())) } else { out.push(entry.path()) }
    }
    out
}
