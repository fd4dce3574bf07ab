//! The packs on the local disk that the object store does not have yet, and the chunks in them.
//!
//! Shared by the writer, the sealer, the uploader and every reader. Its lock guards tables in memory only: no file is
//! touched while it is held. A pack passes open → full → sealed → gone, each step made by the room that owns it.

use super::codec::EncodedChunk;
use super::index::Location;
use super::pack::{self, Entry};
use super::pack_id::PackId;
use agfs_core::{ChunkHash, Error, Result};
use bytes::Bytes;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;

/// A pack file that can be read, whatever its name on disk is at the moment.
#[derive(Debug)]
pub(super) struct LocalPack {
    pub id: PackId,
    pub file: File,
    /// Whether the file's name is on disk.
    pub named: AtomicBool,
}

impl LocalPack {
    /// The pack in this file, whose name may not be on disk.
    pub fn new(id: PackId, file: File) -> Arc<Self> {
        Arc::new(LocalPack { id, file, named: AtomicBool::new(false) })
    }

    /// The chunk at `entry`, as stored and not checked against its hash. Fails with `Corrupt` when there is no such
    /// record there. Reads the disk.
    pub fn read(&self, entry: &Entry) -> Result<EncodedChunk> {
        let mut bytes = vec![0; pack::RECORD_HEADER_LEN + entry.stored_len as usize];
        let damaged = |what: &dyn std::fmt::Display| {
            Error::corrupt(format!("chunk {} in the local pack {}: {what}", entry.hash, self.id))
        };
        self.file.read_exact_at(&mut bytes, u64::from(entry.offset)).map_err(|e| damaged(&e))?;
        match pack::decode_record(&Bytes::from(bytes), entry.offset) {
            Some((found, chunk)) if found == *entry => Ok(chunk),
            _ => Err(damaged(&"its record is damaged")),
        }
    }
}

/// A pack to which nothing is added any more, without its footer.
#[derive(Debug)]
pub(super) struct FullPack {
    pub local: Arc<LocalPack>,
    /// Where the last record ends.
    pub len: u64,
    pub entries: Vec<Entry>,
}

/// A pack with its footer, on disk and in the index.
#[derive(Clone, Debug)]
pub(super) struct SealedPack {
    pub local: Arc<LocalPack>,
    pub len: u64,
    /// Found at start: the object store may have it already.
    pub recovered: bool,
}

#[derive(Default)]
struct Tables {
    packs: FxHashMap<PackId, Arc<LocalPack>>,
    /// Chunks whose pack is not in the index.
    chunks: FxHashMap<ChunkHash, Location>,
    full: VecDeque<Arc<FullPack>>,
    sealed: VecDeque<SealedPack>,
    /// Packs that are full or sealed, in a queue or being worked on.
    pending: usize,
    /// The first failed fsync. What is on disk is unknown from then on.
    failure: Option<Error>,
}

/// The tables, and who waits for them to change.
pub(super) struct Staging {
    dir: PathBuf,
    /// Keeps other processes out for as long as anything here is in use, by a task or a blocking thread.
    _lock: File,
    tables: Mutex<Tables>,
    /// Counts changes of the tables that somebody may wait for.
    changes: watch::Sender<u64>,
    /// Every task and blocking thread of the store: closing waits for them.
    pub tasks: TaskTracker,
    /// Wakes the sealer.
    pub full: Notify,
    /// Wakes the uploaders.
    pub sealed: Notify,
}

impl Staging {
    /// No packs in this directory, which `lock` keeps others out of.
    pub fn new(dir: PathBuf, lock: File) -> Self {
        let changes = watch::Sender::new(0);
        Staging {
            dir,
            _lock: lock,
            tables: Mutex::default(),
            changes,
            tasks: TaskTracker::new(),
            full: Notify::new(),
            sealed: Notify::new(),
        }
    }

    /// Runs a job that blocks, on a thread for such. It runs to its end also when the caller gives up.
    pub async fn blocking<T: Send + 'static>(&self, job: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        self.tasks.spawn_blocking(job).await.unwrap_or_else(|e| Err(super::error::task(&e)))
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of a pack that has no footer.
    pub fn open_path(&self, id: PackId) -> PathBuf {
        self.dir.join(format!("{id}.open"))
    }

    /// The path of a finished pack.
    pub fn sealed_path(&self, id: PackId) -> PathBuf {
        self.dir.join(format!("{id}.pack"))
    }

    fn changed(&self) {
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// A new pack can be read from now on.
    pub fn opened(&self, local: &Arc<LocalPack>) {
        self.tables.lock().packs.insert(local.id, Arc::clone(local));
    }

    /// These records are in the file of `pack` and can be found from now on.
    pub fn appended(&self, pack: PackId, entries: &[Entry]) {
        let mut tables = self.tables.lock();
        for entry in entries {
            tables.chunks.insert(entry.hash, Location { pack, entry: *entry });
        }
    }

    /// Nothing is added to this pack any more; the sealer takes it from here.
    pub fn filled(&self, pack: FullPack) {
        let mut tables = self.tables.lock();
        tables.full.push_back(Arc::new(pack));
        tables.pending += 1;
        drop(tables);
        self.full.notify_one();
    }

    /// The oldest full pack; it stays in the queue until it is sealed.
    pub fn next_full(&self) -> Option<Arc<FullPack>> {
        self.tables.lock().full.front().cloned()
    }

    /// The oldest full pack is on disk and in the index now.
    pub fn was_sealed(&self, pack: SealedPack) {
        let id = pack.local.id;
        let mut tables = self.tables.lock();
        if let Some(at) = tables.full.iter().position(|p| p.local.id == id)
            && let Some(full) = tables.full.remove(at)
        {
            for entry in &full.entries {
                if tables.chunks.get(&entry.hash).is_some_and(|l| l.pack == id) {
                    tables.chunks.remove(&entry.hash);
                }
            }
        }
        tables.sealed.push_back(pack);
        drop(tables);
        self.sealed.notify_one();
        self.changed();
    }

    /// A finished pack was found at start.
    pub fn recovered(&self, pack: SealedPack) {
        let mut tables = self.tables.lock();
        tables.packs.insert(pack.local.id, Arc::clone(&pack.local));
        tables.sealed.push_back(pack);
        tables.pending += 1;
        drop(tables);
        self.sealed.notify_one();
    }

    /// Takes a sealed pack out of the queue to upload it; it stays readable.
    pub fn take_sealed(&self) -> Option<SealedPack> {
        let mut tables = self.tables.lock();
        let taken = tables.sealed.pop_front();
        if !tables.sealed.is_empty() {
            self.sealed.notify_one();
        }
        taken
    }

    /// The object store has this pack, and the index of it is on disk.
    pub fn uploaded(&self, id: PackId) {
        let mut tables = self.tables.lock();
        tables.packs.remove(&id);
        tables.pending = tables.pending.saturating_sub(1);
        drop(tables);
        self.changed();
    }

    /// A pack without chunks is gone.
    pub fn discarded(&self, id: PackId) {
        self.tables.lock().packs.remove(&id);
        self.changed();
    }

    /// Where a chunk is whose pack is not in the index.
    pub fn find(&self, hash: &ChunkHash) -> Option<Location> {
        self.tables.lock().chunks.get(hash).copied()
    }

    /// The file of a pack that is not uploaded.
    pub fn pack(&self, id: PackId) -> Option<Arc<LocalPack>> {
        self.tables.lock().packs.get(&id).cloned()
    }

    /// The packs that are full and may hold records which no fsync covers.
    pub fn unsynced(&self) -> Vec<Arc<LocalPack>> {
        self.tables.lock().full.iter().map(|p| Arc::clone(&p.local)).collect()
    }

    /// How many packs are full or sealed, and how many chunks are not in the index.
    pub fn counts(&self) -> (usize, usize) {
        let tables = self.tables.lock();
        (tables.pending, tables.chunks.len())
    }

    /// Every pack that the object store lacks, the open one included.
    pub fn ids(&self) -> Vec<PackId> {
        self.tables.lock().packs.keys().copied().collect()
    }

    /// An fsync failed: nothing can be promised until the files have been read again, which a start does.
    pub fn fail(&self, error: &Error) {
        self.tables.lock().failure.get_or_insert_with(|| error.clone());
        self.changed();
    }

    /// Fails when an fsync ever failed.
    pub fn health(&self) -> Result<()> {
        match &self.tables.lock().failure {
            None => Ok(()),
            Some(e) => Err(e.clone().context("an earlier sync failed, restart the server to check what is on disk")),
        }
    }

    /// Waits until the tables are such that `done` says so. Fails when an fsync failed meanwhile.
    pub async fn until(&self, done: impl Fn(&Self) -> bool) -> Result<()> {
        let mut changes = self.changes.subscribe();
        loop {
            self.health()?;
            if done(self) {
                return Ok(());
            }
            changes.changed().await.map_err(|_| super::error::closed())?;
        }
    }
}
