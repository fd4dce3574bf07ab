//! The part of the cache that is on disk: one file a chunk, raw bytes, named by hash, in 256 directories. Files appear by
//! renaming only, and every read is verified, so it does not matter what a crash leaves behind. All calls here block.

use super::index::Index;
use agfs_core::manifest::MAX_CHUNK;
use agfs_core::{ChunkHash, Error, Result};
use bytes::Bytes;
use parking_lot::Mutex;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

/// What unfinished files are called.
const UNFINISHED: &str = ".new-";

/// What has happened on the disk since the cache was opened.
#[derive(Default)]
pub(super) struct Counters {
    pub damaged: AtomicU64,
    pub errors: AtomicU64,
    pub evicted: AtomicU64,
}

/// What a read found.
pub(super) enum Found {
    /// The verified bytes.
    Here(Bytes),
    /// Nothing that can be used.
    Nothing,
}

/// A directory of chunks.
pub(super) struct Disk {
    dir: PathBuf,
    max: u64,
    index: Mutex<Index>,
    pub counters: Counters,
    /// Whether the present trouble with the disk has been logged.
    troubled: AtomicBool,
    unfinished: AtomicU64,
}

impl Disk {
    /// Makes the directory if need be, for its owner alone: contents of files of all users lie in it.
    pub fn open(dir: &Path, max: u64) -> Result<Disk> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|e| Error::io(format!("the cache directory {} cannot be made: {e}", dir.display())))?;
        Ok(Disk {
            dir: dir.to_owned(),
            max,
            index: Mutex::new(Index::default()),
            counters: Counters::default(),
            troubled: AtomicBool::new(false),
            unfinished: AtomicU64::new(0),
        })
    }

    pub fn size(&self) -> (u64, u64) {
        self.index.lock().size()
    }

    pub fn contains(&self, hash: &ChunkHash) -> bool {
        self.index.lock().contains(hash)
    }

    fn path(&self, hash: &ChunkHash) -> PathBuf {
        let name = hash.to_string();
        let [first, ..] = hash.0;
        self.dir.join(format!("{first:02x}")).join(name)
    }

    /// Reads and verifies a chunk. Damage is dropped and counted; a failing disk is counted and reported once.
    pub fn read(&self, hash: ChunkHash) -> Found {
        let path = self.path(&hash);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                self.index.lock().remove(&hash);
                return Found::Nothing;
            }
            Err(e) => return self.trouble("opening", &path, &e),
        };
        let mut data = Vec::new();
        // One byte more than a chunk can have shows a file that is too long without reading all of it.
        if let Err(e) = (&file).take(u64::from(MAX_CHUNK) + 1).read_to_end(&mut data) {
            return self.trouble("reading", &path, &e);
        }
        if ChunkHash::of(&data) != hash {
            tracing::warn!(path = %path.display(), bytes = data.len(), "a cached chunk is damaged and is fetched again");
            self.counters.damaged.fetch_add(1, Ordering::Relaxed);
            self.forget(&hash);
            return Found::Nothing;
        }
        self.troubled.store(false, Ordering::Relaxed);
        // A chunk fits 32 bits, since `take` cut it.
        let first = self.index.lock().used(hash, data.len() as u32);
        if first {
            // The file's time carries the order of use over to the next process; without it the order is only worse.
            let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
            let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
            let _ = rustix::fs::futimens(&file, &Timestamps { last_access: omit, last_modification: now });
        }
        Found::Here(data.into())
    }

    fn trouble(&self, doing: &str, path: &Path, error: &io::Error) -> Found {
        self.counters.errors.fetch_add(1, Ordering::Relaxed);
        if !self.troubled.swap(true, Ordering::Relaxed) {
            tracing::warn!(path = %path.display(), %error, "{doing} a cached chunk failed; contents come from the server");
        }
        Found::Nothing
    }

    /// Removes a chunk's file.
    fn forget(&self, hash: &ChunkHash) {
        self.index.lock().remove(hash);
        let path = self.path(hash);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                self.trouble("removing", &path, &e);
            }
            _ => {}
        }
    }

    /// Writes a chunk unless it is there, then evicts if there is too much. Never fails: a full or failing disk is counted and
    /// reported once.
    pub fn write(&self, hash: ChunkHash, data: &[u8]) {
        let Ok(size) = u32::try_from(data.len()) else { return };
        if size > MAX_CHUNK || u64::from(size) > self.max || self.contains(&hash) {
            return;
        }
        let path = self.path(&hash);
        match self.write_file(&path, data) {
            Ok(()) => {
                self.troubled.store(false, Ordering::Relaxed);
                self.index.lock().used(hash, size);
                self.evict(self.max);
            }
            Err(e) => self.not_written(&path, &e),
        }
    }

    pub(super) fn not_written(&self, path: &Path, error: &io::Error) {
        self.trouble("writing", path, error);
        if error.kind() == ErrorKind::StorageFull {
            // Others need the disk more than the cache does.
            let (held, _) = self.size();
            self.evict(held - held / 10);
        }
    }

    fn write_file(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let dir = path.parent().unwrap_or(&self.dir);
        let number = self.unfinished.fetch_add(1, Ordering::Relaxed);
        let new = dir.join(format!("{UNFINISHED}{}-{number}", std::process::id()));
        let mut file = match File::create(&new) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(dir)?;
                File::create(&new)
            }
            created => created,
        }?;
        let written = file.write_all(data).and_then(|()| fs::rename(&new, path));
        if written.is_err() {
            // A part of a chunk is of no use; should removing fail too, the next opening removes it.
            let _ = fs::remove_file(&new);
        }
        written
    }

    /// Brings the cache below `limit`, with some room so that not every write evicts.
    fn evict(&self, limit: u64) {
        let gone = {
            let mut index = self.index.lock();
            let (bytes, _) = index.size();
            if bytes <= limit { Vec::new() } else { index.evict(limit - limit / 20) }
        };
        self.counters.evicted.fetch_add(gone.len() as u64, Ordering::Relaxed);
        for hash in &gone {
            self.forget(hash);
        }
    }

    /// Takes note of what is there from before, and removes what a crash left unfinished. `go_on` is asked now and then.
    pub fn scan(&self, go_on: impl Fn() -> bool) {
        let mut found: Vec<(SystemTime, ChunkHash, u32)> = Vec::new();
        for first in 0..=255u8 {
            if !go_on() {
                return;
            }
            let Ok(files) = fs::read_dir(self.dir.join(format!("{first:02x}"))) else { continue };
            for file in files.flatten() {
                let name = file.file_name();
                let name = name.to_string_lossy();
                if name.starts_with(UNFINISHED) {
                    self.remove_unfinished(&file.path(), &name);
                } else if let (Some(hash), Ok(meta)) = (parse(&name), file.metadata()) {
                    let size = u32::try_from(meta.len()).unwrap_or(u32::MAX);
                    found.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), hash, size));
                }
            }
        }
        found.sort_unstable();
        {
            let mut index = self.index.lock();
            for (rank, (_, hash, size)) in found.into_iter().enumerate() {
                index.found(hash, size, rank as u64);
            }
        }
        self.evict(self.max);
    }

    /// Another process may share the directory and be writing: only files of processes that are gone are removed.
    fn remove_unfinished(&self, path: &Path, name: &str) {
        let writer = name.trim_start_matches(UNFINISHED).split('-').next().and_then(|pid| pid.parse::<i32>().ok());
        let alive = writer
            .and_then(rustix::process::Pid::from_raw)
            .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
        if !alive || writer == i32::try_from(std::process::id()).ok() {
            let _ = fs::remove_file(path);
        }
    }
}

fn parse(name: &str) -> Option<ChunkHash> {
    let mut hash = [0u8; 32];
    if name.len() != 64 || !name.is_ascii() {
        return None;
    }
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(name.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(ChunkHash(hash))
}
