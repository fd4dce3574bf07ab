//! What every engine must do, as one suite of functions that each engine's tests run on a fresh store.

use super::{Batch, MetaStore, Mutation, Read, Step};
use agfs_core::{ErrorKind, Result};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Runs the whole suite; `fresh` makes an empty store for each part.
pub fn all<S: MetaStore>(mut fresh: impl FnMut() -> S) {
    let parts: &[fn(&dyn MetaStore)] = &[
        get_put_delete,
        the_later_mutation_of_a_batch_counts,
        order_is_that_of_bytes,
        scan_bounds,
        seek_goes_forward_only,
        stop_and_errors_end_a_scan,
        a_snapshot_does_not_change,
        a_scan_sees_one_state_and_may_write,
        empty_and_large_values,
        a_batch_is_seen_whole_or_not_at_all,
        sync_and_stats_answer,
    ];
    for part in parts {
        part(&fresh());
    }
}

/// Every pair of a range.
pub fn pairs(view: &dyn Read, start: &[u8], end: &[u8]) -> Pairs {
    let mut found = Vec::new();
    view.scan(start, end, &mut |k, v| {
        found.push((k.to_vec(), v.to_vec()));
        Ok(Step::Next)
    })
    .unwrap();
    found
}

fn put(store: &dyn MetaStore, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(key, value.to_vec());
    store.write(batch).unwrap();
}

fn keys(view: &dyn Read, start: &[u8], end: &[u8]) -> Vec<Vec<u8>> {
    pairs(view, start, end).into_iter().map(|(k, _)| k).collect()
}

fn get_put_delete(store: &dyn MetaStore) {
    assert_eq!(store.get(b"k").unwrap(), None);
    put(store, b"k", b"one");
    put(store, b"k", b"two");
    assert_eq!(store.get(b"k").unwrap(), Some(Bytes::from_static(b"two")));
    assert_eq!(store.get(b"").unwrap(), None);
    let mut batch = Batch::new();
    batch.delete(*b"k");
    batch.delete(*b"never was");
    store.write(batch).unwrap();
    assert_eq!(store.get(b"k").unwrap(), None);
    store.write(Batch::new()).unwrap();
    assert_eq!(pairs(store, b"", b"\xff"), vec![]);
}

fn the_later_mutation_of_a_batch_counts(store: &dyn MetaStore) {
    let mut batch = Batch::new();
    batch.put(*b"a", b"1".to_vec());
    batch.delete(*b"a");
    batch.delete(*b"b");
    batch.put(*b"b", b"1".to_vec());
    batch.put(*b"b", b"2".to_vec());
    store.write(batch).unwrap();
    assert_eq!(pairs(store, b"", b"z"), vec![(b"b".to_vec(), b"2".to_vec())]);
}

fn order_is_that_of_bytes(store: &dyn MetaStore) {
    let mut want: Vec<Vec<u8>> = vec![
        vec![0],
        vec![0, 0],
        vec![0, 255],
        vec![1],
        b"A".to_vec(),
        b"a".to_vec(),
        b"a\0".to_vec(),
        b"aa".to_vec(),
        vec![127],
        vec![128],
        vec![254, 255, 255],
    ];
    for key in want.iter().rev() {
        put(store, key, b"");
    }
    want.sort();
    assert_eq!(keys(store, b"", b"\xff"), want);
}

fn scan_bounds(store: &dyn MetaStore) {
    for key in [b"a", b"b", b"c", b"d"] {
        put(store, key, key);
    }
    assert_eq!(keys(store, b"b", b"d"), [b"b", b"c"]);
    assert_eq!(keys(store, b"a\0", b"c\0"), [b"b", b"c"]);
    assert_eq!(keys(store, b"b", b"b"), Vec::<Vec<u8>>::new());
    assert_eq!(keys(store, b"d", b"a"), Vec::<Vec<u8>>::new());
    assert_eq!(keys(store, b"", b""), Vec::<Vec<u8>>::new());
    assert_eq!(keys(store, b"e", b"z"), Vec::<Vec<u8>>::new());
    assert_eq!(keys(&*store.snapshot(), b"d", b"a"), Vec::<Vec<u8>>::new());
}

fn seek_goes_forward_only(store: &dyn MetaStore) {
    for n in 0..100u8 {
        put(store, &[n], b"");
    }
    let mut seen = Vec::new();
    store
        .scan(&[0], &[90], &mut |k, _| {
            seen.push(k[0]);
            // Into a gap's far side, onto a key, and at last beyond the end.
            Ok(if k[0] < 80 { Step::Seek(vec![k[0] + 9, 1]) } else { Step::Seek(vec![95]) })
        })
        .unwrap();
    assert_eq!(seen, [0, 10, 20, 30, 40, 50, 60, 70, 80]);
    for target in [vec![5], vec![4], vec![]] {
        let mut visits = 0;
        let result = store.scan(&[5], &[90], &mut |_, _| {
            visits += 1;
            Ok(Step::Seek(target.clone()))
        });
        assert_eq!(result.map_err(|e| e.kind()), Err(ErrorKind::Internal));
        assert_eq!(visits, 1);
    }
}

fn stop_and_errors_end_a_scan(store: &dyn MetaStore) {
    for n in 0..10u8 {
        put(store, &[n], b"");
    }
    let mut visits = 0;
    store
        .scan(&[0], &[10], &mut |_, _| {
            visits += 1;
            Ok(if visits == 3 { Step::Stop } else { Step::Next })
        })
        .unwrap();
    assert_eq!(visits, 3);
    let result = store.scan(&[0], &[10], &mut |_, _| Err(agfs_core::Error::stale("mine")));
    assert_eq!(result, Err(agfs_core::Error::stale("mine")));
}

fn a_snapshot_does_not_change(store: &dyn MetaStore) {
    put(store, b"a", b"old");
    put(store, b"b", b"old");
    let snapshot = store.snapshot();
    put(store, b"a", b"new");
    put(store, b"c", b"new");
    let mut batch = Batch::new();
    batch.delete(*b"b");
    store.write(batch).unwrap();
    assert_eq!(snapshot.get(b"a").unwrap(), Some(Bytes::from_static(b"old")));
    assert_eq!(snapshot.get(b"c").unwrap(), None);
    assert_eq!(keys(&*snapshot, b"", b"z"), [b"a", b"b"]);
    assert_eq!(keys(store, b"", b"z"), [b"a", b"c"]);
    assert_eq!(keys(&*store.snapshot(), b"", b"z"), [b"a", b"c"]);
}

fn a_scan_sees_one_state_and_may_write(store: &dyn MetaStore) {
    for n in 0..10u8 {
        put(store, &[n], b"old");
    }
    let mut seen = Vec::new();
    store
        .scan(&[0], &[255], &mut |k, v| {
            seen.push((k[0], v.to_vec()));
            let mut batch = Batch::new();
            batch.put([k[0] + 1], b"new".to_vec());
            batch.put([k[0] + 100], b"new".to_vec());
            batch.delete([9]);
            store.write(batch).map(|()| Step::Next)
        })
        .unwrap();
    assert_eq!(seen, (0..10).map(|n| (n, b"old".to_vec())).collect::<Vec<_>>());
}

fn empty_and_large_values(store: &dyn MetaStore) {
    let large: Vec<u8> = (0..9 << 20).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let long_key = vec![7; 5000];
    put(store, b"empty", b"");
    put(store, b"large", &large);
    put(store, &long_key, b"x");
    assert_eq!(store.get(b"empty").unwrap(), Some(Bytes::new()));
    assert_eq!(store.get(b"large").unwrap().unwrap(), large);
    assert_eq!(store.get(&long_key).unwrap().unwrap(), "x");
    assert_eq!(pairs(store, b"e", b"m"), vec![(b"empty".to_vec(), vec![]), (b"large".to_vec(), large)]);
}

/// A writer moves one value from key to key in a batch of three; every reader must find it exactly once.
fn a_batch_is_seen_whole_or_not_at_all(store: &dyn MetaStore) {
    put(store, &[0], b"token");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    let snapshot = store.snapshot();
                    let (first, second) = (keys(&*snapshot, &[0], &[200]), keys(&*snapshot, &[0], &[200]));
                    assert_eq!((first.len(), &first), (1, &second));
                    assert_eq!(keys(store, &[0], &[200]).len(), 1);
                }
            });
        }
        for n in 0..2000u32 {
            let (from, to) = ((n % 200) as u8, ((n + 1) % 200) as u8);
            let mut batch = Batch::new();
            batch.delete([from]);
            batch.put([to], b"token".to_vec());
            batch.put([250], n.to_le_bytes().to_vec());
            store.write(batch).unwrap();
        }
        done.store(true, SeqCst);
    });
}

fn sync_and_stats_answer(store: &dyn MetaStore) {
    put(store, b"k", b"v");
    thread::scope(|scope| {
        let syncs: Vec<_> = (0..8).map(|_| scope.spawn(|| store.sync())).collect();
        assert!(syncs.into_iter().all(|s| s.join().unwrap() == Ok(())));
    });
    assert!(!store.stats().is_empty());
}

/// What a batch does to a plain map.
pub fn apply(model: &mut BTreeMap<Vec<u8>, Vec<u8>>, batch: &Batch) {
    for mutation in batch {
        match mutation {
            Mutation::Put { key, value } => drop(model.insert(key.clone(), value.to_vec())),
            Mutation::Delete { key } => drop(model.remove(key)),
        }
    }
}

/// Batches drawn at random against the map, with scans of random ranges that now and then seek.
pub mod model {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        vec(prop_oneof![Just(0u8), Just(1), Just(254), Just(255)], 0..4)
    }

    fn batch() -> impl Strategy<Value = Batch> {
        vec((key(), proptest::option::weighted(0.7, vec(any::<u8>(), 0..6))), 0..8).prop_map(|mutations| {
            let mut batch = Batch::new();
            for (key, value) in mutations {
                match value {
                    Some(value) => batch.put(key, value),
                    None => batch.delete(key),
                }
            }
            batch
        })
    }

    /// A range to be scanned, and what a seek adds to the key just visited.
    pub type Scan = (Vec<u8>, Vec<u8>, Vec<u8>);

    /// One random history: batches, and the ranges to be scanned with what a seek adds to the key just visited.
    pub fn history() -> impl Strategy<Value = (Vec<Batch>, Vec<Scan>)> {
        (vec(batch(), 0..12), vec((key(), key(), vec(any::<u8>(), 0..2)), 1..8))
    }

    /// Checks that the store agrees with the map after each batch.
    pub fn check(store: &dyn MetaStore, batches: &[Batch], scans: &[Scan]) -> Result<(), TestCaseError> {
        let mut model = BTreeMap::new();
        for batch in batches {
            store.write(batch.clone()).unwrap();
            apply(&mut model, batch);
            for (start, end, extra) in scans {
                prop_assert_eq!(store.get(start).unwrap().map(|v| v.to_vec()), model.get(start).cloned());
                let (mut got, mut want, mut from) = (Vec::new(), Vec::new(), start.clone());
                while let Some((k, v)) = model.range(from.clone()..).next().filter(|(k, _)| *k < end) {
                    want.push((k.clone(), v.clone()));
                    from = [k.as_slice(), if extra.is_empty() { &[0] } else { extra }].concat();
                }
                store
                    .scan(start, end, &mut |k, v| -> Result<Step> {
                        got.push((k.to_vec(), v.to_vec()));
                        Ok(if extra.is_empty() { Step::Next } else { Step::Seek([k, extra].concat()) })
                    })
                    .unwrap();
                prop_assert_eq!(got, want);
            }
        }
        Ok(())
    }
}
