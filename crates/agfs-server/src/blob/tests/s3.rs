//! A real S3 endpoint, when `AGFS_TEST_S3_URL` names a bucket (`s3://bucket/prefix`) and `AWS_*` how to reach it.

use super::*;
use object_store::PutPayload;

#[tokio::test(flavor = "multi_thread")]
async fn packs_live_in_a_bucket() {
    let Ok(url) = std::env::var("AGFS_TEST_S3_URL") else {
        eprintln!("skipped: AGFS_TEST_S3_URL is not set");
        return;
    };
    let mut world = World::new();
    world.config.url = url.clone();
    world.config.cache = 0;
    let open = || {
        let clock = Arc::new(Ticking(AtomicI64::new(1_900_000_000_000_000_000)));
        ChunkStore::open(world.config.clone(), world.meta.clone(), clock)
    };
    let store = open().await.unwrap();
    store.put(chunks(0..60)).await.unwrap();
    store.sync_object().await.unwrap();
    assert_eq!((world.staged("open").len(), world.staged("pack").len()), (0, 0));
    assert_all(&store, 0..60).await;
    store.close().await.unwrap();
    drop(store);
    let store = open().await.unwrap();
    assert_all(&store, 0..60).await;

    // Damage, a cut and a loss, as a real store reports them.
    let bucket = Target::open(&url).unwrap().store;
    let hash = ChunkHash::of(&raw(3));
    let location = store.reader.locate(hash).unwrap();
    let key = store.object_key(hash).unwrap().into();
    let whole = bucket.get(&key).await.unwrap().bytes().await.unwrap();
    let mut flipped = whole.to_vec();
    flipped[location.entry.end() as usize - 1] ^= 1;
    for bad in [flipped, whole[..location.entry.end() as usize - 1].to_vec(), whole[..10].to_vec()] {
        bucket.put(&key, PutPayload::from(bad)).await.unwrap();
        assert_eq!(store.get(hash).await.map_err(|e| e.kind()), Err(ErrorKind::Corrupt));
    }
    bucket.delete(&key).await.unwrap();
    assert_eq!(store.get(hash).await.map_err(|e| e.kind()), Err(ErrorKind::Corrupt));
    bucket.put(&key, PutPayload::from(whole)).await.unwrap();
    assert_all(&store, 0..60).await;

    // More than one part.
    let mut large = world.config.clone();
    large.pack_size = 40 << 20;
    store.close().await.unwrap();
    drop(store);
    let clock = Arc::new(Ticking(AtomicI64::new(1_900_000_000_000_000_000)));
    let store = ChunkStore::open(large, world.meta.clone(), clock).await.unwrap();
    let noise: Vec<_> = (0..9u8)
        .map(|n| {
            let mut bytes = vec![0; MAX_CHUNK as usize];
            blake3::Hasher::new().update(&[n, 77]).finalize_xof().fill(&mut bytes);
            encode(bytes.into()).unwrap()
        })
        .collect();
    store.put(noise.clone()).await.unwrap();
    store.close().await.unwrap();
    for chunk in noise {
        assert_eq!(store.get(chunk.hash).await.unwrap(), chunk);
    }
}
