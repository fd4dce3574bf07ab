//! Objects that are damaged, cut or gone: an error that names chunk and pack, never other bytes.

use super::*;
use object_store::PutPayload;
use object_store::path::Path as Key;

/// A store without a cache whose chunks are all in the one pack that is returned.
async fn uploaded() -> (World, Arc<ChunkStore>, Key, Bytes) {
    let mut world = World::new();
    world.config.cache = 0;
    world.config.pack_size = 1 << 20;
    let store = world.open().await.unwrap();
    store.put(chunks(0..8)).await.unwrap();
    store.sync_object().await.unwrap();
    let key = world.keys().await.remove(0);
    let bytes = world.objects.get(&key).await.unwrap().bytes().await.unwrap();
    (world, store, key, bytes)
}

async fn replace(world: &World, key: &Key, bytes: Vec<u8>) {
    world.objects.put(key, PutPayload::from(bytes)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_is_corrupt_and_never_other_bytes() {
    let (world, store, key, bytes) = uploaded().await;
    let entries = pack::decode_footer(&bytes).unwrap();
    for at in (0..bytes.len()).step_by(23) {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 0x20;
        replace(&world, &key, damaged).await;
        for (n, entry) in entries.iter().enumerate() {
            let hit = (u64::from(entry.offset)..entry.end()).contains(&(at as u64));
            match store.get_raw(entry.hash).await {
                Ok(got) => assert_eq!(got, raw(n as u32)),
                Err(error) => {
                    assert!(hit, "byte {at} is no part of chunk {n}: {error}");
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                    assert!(error.message().contains(&entry.hash.to_string()), "{error}");
                    assert!(error.message().contains(key.filename().unwrap()), "{error}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_pack_is_corrupt_from_the_cut_on() {
    for directory in [false, true] {
        let (mut world, store, key, bytes) = uploaded().await;
        drop(store);
        let objects = world.dir.path().join("objects");
        if directory {
            std::fs::create_dir_all(&objects).unwrap();
            let local = object_store::local::LocalFileSystem::new_with_prefix(&objects).unwrap();
            world.objects = Arc::new(Faulty::new(Arc::new(local)));
        }
        let store = world.open().await.unwrap();
        let entries = pack::decode_footer(&bytes).unwrap();
        for cut in [0, 10, 30, 500, entries[5].offset as usize, entries[7].end() as usize - 1] {
            replace(&world, &key, bytes[..cut].to_vec()).await;
            for (n, entry) in entries.iter().enumerate() {
                match store.get_raw(entry.hash).await {
                    Ok(got) => assert!(entry.end() <= cut as u64 && got == raw(n as u32), "{n} of {cut}"),
                    Err(error) => {
                        assert!(entry.end() > cut as u64, "{n} of {cut}: {error}");
                        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                        assert!(error.message().contains(key.filename().unwrap()), "{error}");
                    }
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_pack_is_named_and_an_unreachable_store_is_not_damage() {
    let (world, store, key, _) = uploaded().await;
    let hash = ChunkHash::of(&raw(2));
    world.objects.set_down(true);
    assert_eq!(store.get(hash).await.map_err(|e| e.kind()), Err(ErrorKind::Unavailable));
    world.objects.set_down(false);
    assert!(store.get(hash).await.is_ok());
    world.objects.delete(&key).await.unwrap();
    let error = store.get(hash).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains(key.filename().unwrap()), "{error}");
    assert!(error.message().contains(&hash.to_string()), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_pack_that_is_damaged_is_corrupt_too() {
    let mut world = World::new();
    world.config.cache = 0;
    let store = world.open().await.unwrap();
    store.put(chunks(0..3)).await.unwrap();
    let path = world.staged("open").remove(0);
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 3] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = store.get(ChunkHash::of(&raw(2))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_all(&store, 0..2).await;
}
