//! RocksDB as an engine: the suite of all engines, and what only an engine on a disk can get wrong.

use super::super::conformance::{self, pairs};
use super::*;
use agfs_core::ErrorKind;
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

fn small() -> RocksConfig {
    RocksConfig { block_cache: 1 << 20, write_buffer: 1 << 20, salvage: false }
}

fn open(dir: &Path) -> Result<RocksStore> {
    RocksStore::open(dir, &small())
}

/// A store whose directory goes away with it.
struct Temporary {
    store: RocksStore,
    dir: TempDir,
}

impl Temporary {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        Temporary { store: open(dir.path()).unwrap(), dir }
    }

    /// A copy of the files as they are at this moment: what a kill of the process would leave. Compaction in the
    /// background may take files away while they are copied; then the copy is of no moment and is made again.
    fn as_killed(&self) -> TempDir {
        let names = || {
            let entries = fs::read_dir(self.dir.path()).unwrap();
            entries.map(|e| e.unwrap().file_name()).collect::<std::collections::BTreeSet<_>>()
        };
        loop {
            let (copy, before) = (TempDir::new().unwrap(), names());
            let copied = before.iter().all(|n| fs::copy(self.dir.path().join(n), copy.path().join(n)).is_ok());
            if copied && names() == before {
                return copy;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Writes batches number `from` to `to` (exclusive), each of a key that counts and one that says the last number.
    fn fill(&self, from: u32, to: u32) {
        for n in from..to {
            let mut batch = Batch::new();
            batch.put([b"n".as_slice(), &n.to_be_bytes()].concat(), vec![n as u8; 100]);
            batch.put(*b"last", n.to_be_bytes().to_vec());
            self.store.write(batch).unwrap();
        }
    }
}

impl Read for Temporary {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.store.get(key)
    }
    fn scan(&self, start: &[u8], end: &[u8], visit: Visit<'_>) -> Result<()> {
        self.store.scan(start, end, visit)
    }
}

impl MetaStore for Temporary {
    fn snapshot(&self) -> Box<dyn Read + Send + Sync + '_> {
        self.store.snapshot()
    }
    fn write(&self, batch: Batch) -> Result<()> {
        self.store.write(batch)
    }
    fn sync(&self) -> Result<()> {
        self.store.sync()
    }
    fn stats(&self) -> Vec<(String, u64)> {
        self.store.stats()
    }
}

/// How many of the filled batches are there; fails when they are not a whole prefix.
fn filled(store: &RocksStore) -> u32 {
    let found = pairs(store, b"n", b"o");
    for (i, (key, value)) in found.iter().enumerate() {
        let n = i as u32;
        assert_eq!((key, value), (&[b"n".as_slice(), &n.to_be_bytes()].concat(), &vec![n as u8; 100]));
    }
    let count = found.len() as u32;
    assert_eq!(store.get(b"last").unwrap().map(|v| v.to_vec()), count.checked_sub(1).map(|n| n.to_be_bytes().to_vec()));
    count
}

fn file(dir: &Path, extension: &str) -> PathBuf {
    let mut found: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == extension) && fs::metadata(p).unwrap().len() > 0)
        .collect();
    found.sort();
    found.pop().unwrap()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x40;
    fs::write(path, bytes).unwrap();
}

#[test]
fn conforms() {
    conformance::all(Temporary::new);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn agrees_with_the_model((batches, scans) in conformance::model::history()) {
        conformance::model::check(&Temporary::new(), &batches, &scans)?;
    }
}

#[test]
fn what_was_written_is_there_after_a_reopen() {
    let Temporary { store, dir } = Temporary::new();
    let filler = Temporary { store, dir };
    filler.fill(0, 20_000);
    let Temporary { store, dir } = filler;
    assert!(store.stats().iter().any(|(name, value)| name == "rocksdb.total_sst_files_size" && *value > 0));
    drop(store);
    assert_eq!(filled(&open(dir.path()).unwrap()), 20_000);
}

#[test]
fn what_was_written_survives_a_kill_without_a_sync() {
    let store = Temporary::new();
    store.fill(0, 15_000);
    let killed = store.as_killed();
    store.fill(15_000, 15_100);
    assert_eq!(filled(&open(killed.path()).unwrap()), 15_000);
}

/// The other side of the next test: writes and says so, until it is killed.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os("AGFS_TEST_CHILD_DIR") else { return };
    let store = open(Path::new(&dir)).unwrap();
    for n in 0.. {
        let mut batch = Batch::new();
        batch.put([b"n".as_slice(), &u32::to_be_bytes(n)].concat(), vec![n as u8; 100]);
        batch.put(*b"last", n.to_be_bytes().to_vec());
        store.write(batch).unwrap();
        if n % 97 == 0 {
            store.sync().unwrap();
        }
        println!("\nwrote {n}");
    }
}

#[test]
fn what_a_killed_process_was_told_is_written_is_there() {
    use std::io::{BufRead, BufReader};
    for until in [1, 500, 12_000] {
        let dir = TempDir::new().unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::rocks::tests::child_that_writes_until_it_is_killed", "--nocapture"])
            .env("AGFS_TEST_CHILD_DIR", dir.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = None;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        while told < Some(until) {
            let line = lines.next().expect("the child ended by itself");
            told = line.strip_prefix("wrote ").map(|n| n.parse::<u32>().unwrap()).or(told);
        }
        child.kill().unwrap();
        told = lines.filter_map(|l| l.strip_prefix("wrote ")?.parse().ok()).last().max(told);
        child.wait().unwrap();
        let count = filled(&open(dir.path()).unwrap());
        assert!(count > told.unwrap(), "{count} batches are there, the last one promised was number {told:?}");
    }
}

#[test]
fn a_torn_tail_of_the_log_is_dropped() {
    let store = Temporary::new();
    store.fill(0, 50);
    store.sync().unwrap();
    let synced = fs::metadata(file(store.dir.path(), "log")).unwrap().len();
    store.fill(50, 60);
    let whole = fs::metadata(file(store.dir.path(), "log")).unwrap().len();
    for keep in (synced..=whole).step_by(37).chain([whole]) {
        let killed = store.as_killed();
        let log = fs::OpenOptions::new().write(true).open(file(killed.path(), "log")).unwrap();
        log.set_len(keep).unwrap();
        let count = filled(&open(killed.path()).unwrap());
        assert!((50..=60).contains(&count) && (count == 60) == (keep == whole), "{count} batches of {keep} bytes");
        // The same cut, with zeros where the file system had given room and the data never came.
        let killed = store.as_killed();
        let log = fs::OpenOptions::new().write(true).open(file(killed.path(), "log")).unwrap();
        log.set_len(keep).unwrap();
        log.set_len(whole + 5000).unwrap();
        let opened = open(killed.path()).unwrap();
        assert!((50..=60).contains(&filled(&opened)));
        // And what is written after such a recovery is there after the next one.
        put_one(&opened, b"x");
        drop(opened);
        assert!(open(killed.path()).unwrap().get(b"x").unwrap().is_some());
        // A page of the tail that did not come, before others that did.
        if keep < whole {
            let killed = store.as_killed();
            flip(&file(killed.path(), "log"), keep as usize);
            assert!((50..60).contains(&filled(&open(killed.path()).unwrap())));
        }
    }
}

fn put_one(store: &RocksStore, key: &[u8]) {
    let mut batch = Batch::new();
    batch.put(key, Bytes::new());
    store.write(batch).unwrap();
}

#[test]
fn damage_before_the_synced_end_of_the_log_is_refused() {
    let store = Temporary::new();
    store.fill(0, 200);
    store.sync().unwrap();
    let length = fs::metadata(file(store.dir.path(), "log")).unwrap().len() as usize;
    store.fill(200, 210);
    for at in [100, length / 3, length / 2, length - 1] {
        let killed = store.as_killed();
        flip(&file(killed.path(), "log"), at);
        for _ in 0..2 {
            let error = open(killed.path()).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.message().contains(killed.path().to_str().unwrap()), "{error}");
        }
        // Refusing changed nothing: the damage undone, everything is there.
        flip(&file(killed.path(), "log"), at);
        assert_eq!(filled(&open(killed.path()).unwrap()), 210);
    }
    for keep in [0, length / 2, length - 1] {
        let killed = store.as_killed();
        fs::OpenOptions::new().write(true).open(file(killed.path(), "log")).unwrap().set_len(keep as u64).unwrap();
        assert_eq!(open(killed.path()).err().map(|e| e.kind()), Some(ErrorKind::Corrupt), "{keep} bytes kept");
    }
}

#[test]
fn salvage_goes_back_to_before_the_damage() {
    let store = Temporary::new();
    store.fill(0, 200);
    store.sync().unwrap();
    let length = fs::metadata(file(store.dir.path(), "log")).unwrap().len() as usize;
    let killed = store.as_killed();
    flip(&file(killed.path(), "log"), length / 2);
    let salvaged = RocksStore::open(killed.path(), &RocksConfig { salvage: true, ..small() }).unwrap();
    assert!((80..120).contains(&filled(&salvaged)));
    drop(salvaged);
    assert!((80..120).contains(&filled(&open(killed.path()).unwrap())));
}

#[test]
fn damage_of_a_table_is_refused_or_reported() {
    let store = Temporary::new();
    store.fill(0, 20_000);
    store.sync().unwrap();
    let killed = store.as_killed();
    flip(&file(killed.path(), "sst"), 5000);
    let outcome = open(killed.path()).and_then(|s| s.scan(b"", b"z", &mut |_, _| Ok(Step::Next)));
    assert_eq!(outcome.map_err(|e| e.kind()), Err(ErrorKind::Corrupt));

    let killed = store.as_killed();
    fs::write(killed.path().join("CURRENT"), b"nonsense").unwrap();
    assert_eq!(open(killed.path()).err().map(|e| e.kind()), Some(ErrorKind::Corrupt));

    let killed = store.as_killed();
    fs::remove_file(file(killed.path(), "sst")).unwrap();
    let error = open(killed.path()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[test]
fn a_directory_in_use_is_refused() {
    let store = Temporary::new();
    let error = open(store.dir.path()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.message().contains(store.dir.path().to_str().unwrap()), "{error}");
}

#[test]
fn a_directory_that_cannot_be_made_or_written_is_named() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("file"), b"").unwrap();
    let error = open(&dir.path().join("file")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotADirectory, "{error}");
    // Root may write everywhere but into procfs and the like; for everyone else the root directory serves.
    let error = open(Path::new("/sys/agfs-test")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(error.message().contains("/sys/agfs-test"), "{error}");
}

/// Needs a disk of a few MiB that may be filled: `meta` in `AGFS_TEST_SMALL_DISK`, as deploy/small-disk.sh makes it.
#[test]
fn a_full_disk_is_no_space_and_passes() {
    let Some(disk) = std::env::var_os("AGFS_TEST_SMALL_DISK").map(|dir| PathBuf::from(dir).join("meta")) else {
        assert!(std::env::var_os("CI").is_none(), "AGFS_TEST_SMALL_DISK is not set: run this by deploy/small-disk.sh");
        eprintln!("left out: AGFS_TEST_SMALL_DISK is not set");
        return;
    };
    let dir = TempDir::new_in(&disk).unwrap();
    let ballast = disk.join("ballast");
    let store = Temporary { store: open(dir.path()).unwrap(), dir };
    store.fill(0, 10);
    let mut written = 10u32;
    let error = loop {
        let mut batch = Batch::new();
        batch.put([b"n".as_slice(), &written.to_be_bytes()].concat(), vec![written as u8; 100]);
        batch.put(*b"last", written.to_be_bytes().to_vec());
        // Leave the disk only what the log still has of its last block.
        if written == 11 {
            let _ = fs::write(&ballast, vec![1; 1 << 30]);
        }
        match store.write(batch) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1_000_000);
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert_eq!(filled(&store.store), written);
    fs::remove_file(&ballast).unwrap();
    let resumed = (0..200).find(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let mut batch = Batch::new();
        batch.put(*b"later", b"".to_vec());
        store.write(batch).is_ok()
    });
    assert!(resumed.is_some(), "writing did not resume within 20 s of the disk having room again");
    let Temporary { store, dir } = store;
    drop(store);
    assert_eq!(filled(&open(dir.path()).unwrap()), written);
}
