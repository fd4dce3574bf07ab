//! A start after a kill, after a power loss, and beside another process.

use super::*;
use std::fs;

/// Drops the store as a kill would: nothing is finished, nothing uploaded.
async fn kill(store: Arc<ChunkStore>) {
    assert_eq!(Arc::strong_count(&store), 1);
    drop(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_put_before_a_kill_is_there_after_it() {
    let world = World::new();
    world.objects.set_down(true);
    let mut store = world.open().await.unwrap();
    for round in 0..5u32 {
        store.put(chunks(round * 40..round * 40 + 40)).await.unwrap();
        kill(store).await;
        store = world.open().await.unwrap();
        assert_all(&store, 0..round * 40 + 40).await;
        assert_eq!(store.put(chunks(0..round * 40 + 40)).await, Ok(0));
    }
    world.objects.set_down(false);
    store.close().await.unwrap();
    assert_eq!((world.staged("open").len(), world.staged("pack").len()), (0, 0));
    drop(store);
    assert_all(&world.open().await.unwrap(), 0..200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_was_lost_is_made_again_from_what_is_staged() {
    let mut world = World::new();
    world.objects.set_down(true);
    let store = world.open().await.unwrap();
    store.put(chunks(0..80)).await.unwrap();
    eventually("full packs are finished", || !world.staged("pack").is_empty()).await;
    kill(store).await;
    world.meta = Arc::new(MemoryStore::new());
    let store = world.open().await.unwrap();
    assert_all(&store, 0..80).await;
    assert_eq!(store.put(chunks(0..80)).await, Ok(0));
    world.objects.set_down(false);
    store.close().await.unwrap();
    assert_all(&store, 0..80).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_tail_is_cut_and_what_is_before_it_stays() {
    let world = World::new();
    let store = world.open().await.unwrap();
    store.put(chunks(0..8)).await.unwrap();
    kill(store).await;
    let open = world.staged("open").remove(0);
    let bytes = fs::read(&open).unwrap();
    let entries: Vec<_> = pack::records(&bytes.clone().into()).map(|r| r.0).collect();
    assert_eq!(entries.len(), 8);
    let last = entries[7];
    let torn: Vec<(Vec<u8>, usize)> = vec![
        (bytes[..bytes.len() - 1].to_vec(), 7),
        (bytes[..last.offset as usize + 20].to_vec(), 7),
        (bytes[..last.offset as usize].to_vec(), 7),
        (bytes[..30].to_vec(), 0),
        (Vec::new(), 0),
        // Room that was given, with zeros in place of data that never came: at the end, and for the whole last record.
        ([&bytes[..], &[0; 5000]].concat(), 8),
        ([&bytes[..last.offset as usize + 60], &vec![0; bytes.len() - last.offset as usize - 60]].concat(), 7),
        // The beginning never came, the rest did.
        ([&[0; 24], &bytes[24..]].concat(), 8),
    ];
    for (i, (content, whole)) in torn.into_iter().enumerate() {
        let mut world = World::new();
        world.config.cache = 0;
        fs::create_dir_all(&world.config.staging_dir).unwrap();
        fs::write(world.config.staging_dir.join(open.file_name().unwrap()), &content).unwrap();
        let store = world.open().await.unwrap();
        let hashes: Vec<_> = (0..8).map(|n| ChunkHash::of(&raw(n))).collect();
        let have = store.have(&hashes).unwrap();
        assert_eq!(have, (0..8).map(|n| n < whole).collect::<Vec<_>>(), "case {i}");
        assert_all(&store, 0..whole as u32).await;
        store.put(chunks(0..8)).await.unwrap();
        store.close().await.unwrap();
        assert_all(&store, 0..8).await;
        for key in world.keys().await {
            let bytes = world.objects.get(&key).await.unwrap().bytes().await.unwrap();
            let entries = pack::decode_footer(&bytes).unwrap();
            assert_eq!(entries, pack::records(&bytes).map(|r| r.0).collect::<Vec<_>>(), "case {i}");
            assert!(bytes.starts_with(b"AGPACK"), "case {i}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_in_the_middle_of_an_unfinished_pack_costs_only_what_it_hit() {
    let mut world = World::new();
    world.config.cache = 0;
    let store = world.open().await.unwrap();
    store.put(chunks(0..8)).await.unwrap();
    kill(store).await;
    let open = world.staged("open").remove(0);
    let mut bytes = fs::read(&open).unwrap();
    let entries: Vec<_> = pack::records(&bytes.clone().into()).map(|r| r.0).collect();
    bytes[entries[2].offset as usize + 10] ^= 1;
    bytes[entries[5].end() as usize - 1] ^= 1;
    fs::write(&open, bytes).unwrap();
    let store = world.open().await.unwrap();
    let hashes: Vec<_> = (0..8).map(|n| ChunkHash::of(&raw(n))).collect();
    assert_eq!(store.have(&hashes).unwrap(), (0..8).map(|n| n != 2 && n != 5).collect::<Vec<_>>());
    assert_eq!(store.put(chunks(0..8)).await, Ok(2));
    store.close().await.unwrap();
    assert_all(&store, 0..8).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pack_that_had_arrived_is_not_sent_again() {
    let world = World::new();
    world.objects.set_down(true);
    let store = world.open().await.unwrap();
    store.put(chunks(0..3)).await.unwrap();
    store.writer.seal();
    eventually("the pack is finished", || !world.staged("pack").is_empty()).await;
    kill(store).await;
    // The upload was done, the kill came before the local file was removed.
    let local = world.staged("pack").remove(0);
    let id = pack_id::PackId::parse(local.file_stem().unwrap().to_str().unwrap()).unwrap();
    world.objects.set_down(false);
    world.objects.put(&id.object_key().into(), fs::read(&local).unwrap().into()).await.unwrap();
    let puts = world.objects.puts();
    let store = world.open().await.unwrap();
    eventually("the local file is removed", || world.staged("pack").is_empty()).await;
    assert_eq!(world.objects.puts(), puts);
    assert_all(&store, 0..3).await;
    // One that had arrived in part is.
    kill(store).await;
    let bytes = world.objects.get(&id.object_key().into()).await.unwrap().bytes().await.unwrap();
    fs::write(&local, &bytes).unwrap();
    world.objects.put(&id.object_key().into(), bytes.slice(..50).into()).await.unwrap();
    let store = world.open().await.unwrap();
    eventually("the local file is removed", || world.staged("pack").is_empty()).await;
    assert_all(&store, 0..3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_pack_with_a_damaged_footer_is_finished_again() {
    let world = World::new();
    world.objects.set_down(true);
    let store = world.open().await.unwrap();
    store.put(chunks(0..3)).await.unwrap();
    store.writer.seal();
    eventually("the pack is finished", || !world.staged("pack").is_empty()).await;
    kill(store).await;
    let local = world.staged("pack").remove(0);
    let bytes = fs::read(&local).unwrap();
    fs::write(&local, &bytes[..bytes.len() - 5]).unwrap();
    fs::write(world.config.staging_dir.join("stranger.txt"), b"left alone").unwrap();
    world.objects.set_down(false);
    let store = world.open().await.unwrap();
    store.close().await.unwrap();
    assert_all(&store, 0..3).await;
    let key = world.keys().await.remove(0);
    assert_eq!(world.objects.get(&key).await.unwrap().bytes().await.unwrap(), bytes);
    assert!(world.config.staging_dir.join("stranger.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_staging_directory_serves_one_store() {
    let world = World::new();
    let store = world.open().await.unwrap();
    let error = world.open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.message().contains(world.config.staging_dir.to_str().unwrap()), "{error}");
    kill(store).await;
    world.open().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pack_of_several_parts_goes_up_whole() {
    let mut world = World::new();
    world.config.cache = 0;
    world.config.pack_size = 40 << 20;
    let store = world.open().await.unwrap();
    let noise = |n: u8| {
        let mut bytes = vec![0; MAX_CHUNK as usize];
        blake3::Hasher::new().update(&[n]).finalize_xof().fill(&mut bytes);
        Bytes::from(bytes)
    };
    let large: Vec<_> = (0..9).map(|n| encode(noise(n)).unwrap()).collect();
    store.put(large.clone()).await.unwrap();
    store.sync_object().await.unwrap();
    assert_eq!(world.keys().await.len(), 1);
    for chunk in large {
        assert_eq!(store.get(chunk.hash).await.unwrap(), chunk);
    }
}

/// The other side of the next test: puts and says so, until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_puts_until_it_is_killed() {
    let Some(dir) = std::env::var_os("AGFS_TEST_CHILD_DIR").map(PathBuf::from) else { return };
    let meta = crate::store::RocksStore::open(&dir.join("meta"), &crate::store::RocksConfig::default()).unwrap();
    let mut config = BlobConfig::new(format!("file://{}", dir.join("objects").display()), dir.join("staging"));
    config.pack_size = 64 << 10;
    let store = ChunkStore::open(config, Arc::new(meta), Arc::new(Ticking(AtomicI64::new(0)))).await.unwrap();
    for n in 0.. {
        store.put(chunks(n..n + 1)).await.unwrap();
        println!("\nput {n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_was_told_is_stored_is_there() {
    use std::io::{BufRead, BufReader};
    for until in [1, 30, 700] {
        let dir = TempDir::new().unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "blob::tests::restart::child_that_puts_until_it_is_killed", "--nocapture"])
            .env("AGFS_TEST_CHILD_DIR", dir.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = None;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        while told < Some(until) {
            let line = lines.next().expect("the child ended by itself");
            told = line.strip_prefix("put ").map(|n| n.parse::<u32>().unwrap()).or(told);
        }
        child.kill().unwrap();
        told = lines.filter_map(|l| l.strip_prefix("put ")?.parse().ok()).last().max(told);
        child.wait().unwrap();
        let meta = crate::store::RocksStore::open(&dir.path().join("meta"), &crate::store::RocksConfig::default());
        let url = format!("file://{}", dir.path().join("objects").display());
        let config = BlobConfig::new(url, dir.path().join("staging"));
        let clock = Arc::new(Ticking(AtomicI64::new(1)));
        let store = ChunkStore::open(config, Arc::new(meta.unwrap()), clock).await.unwrap();
        assert_all(&store, 0..told.unwrap() + 1).await;
        store.close().await.unwrap();
        assert_all(&store, 0..told.unwrap() + 1).await;
    }
}
