//! The open pack: appends records to its file and decides when it is full. Blocks on the disk; call it from a blocking
//! thread. Does not finish, upload or sync packs.

use super::codec::EncodedChunk;
use super::error;
use super::index::Index;
use super::pack::{self, Entry};
use super::pack_id::{PackId, PackIds};
use super::staging::{FullPack, LocalPack, Staging};
use agfs_core::{ChunkHash, Result};
use parking_lot::Mutex;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Records are written together up to this many bytes.
const WRITE_SIZE: usize = 1 << 20;

struct OpenPack {
    local: Arc<LocalPack>,
    /// Where the last whole record ends; what a failed write left behind it is no part of the pack.
    len: u64,
    entries: Vec<Entry>,
    made: Instant,
    appended: Instant,
}

/// Appends to one pack at a time.
pub(super) struct Writer {
    staging: Arc<Staging>,
    index: Arc<Index>,
    ids: PackIds,
    pack_size: u64,
    open: Mutex<Option<OpenPack>>,
}

impl Writer {
    pub fn new(staging: Arc<Staging>, index: Arc<Index>, ids: PackIds, pack_size: u64) -> Self {
        Writer { staging, index, ids, pack_size, open: Mutex::new(None) }
    }

    /// Whether the chunk is stored, here or in a finished pack. May read the index's disk.
    pub fn has(&self, hash: &ChunkHash) -> Result<bool> {
        // First the local packs: a chunk moves from there to the index, so this order cannot miss it.
        Ok(self.staging.find(hash).is_some() || self.index.has(hash)?)
    }

    /// Appends the chunks that are not stored yet and returns how many those were. The caller has checked them. When it
    /// returns they can be read and survive a kill. When it fails, those that were written before the failure stay.
    pub fn append(&self, chunks: &[EncodedChunk]) -> Result<usize> {
        let mut slot = self.open.lock();
        let (mut stored, mut run) = (0, Run::default());
        for chunk in chunks {
            // Within the lock, so that of two callers with the same chunk one stores it.
            if run.entries.iter().any(|e| e.hash == chunk.hash) || self.has(&chunk.hash)? {
                continue;
            }
            let open = match &mut *slot {
                Some(open) => open,
                empty => empty.insert(self.create()?),
            };
            run.add(open.len, chunk);
            stored += 1;
            let full = open.len + run.bytes.len() as u64 >= self.pack_size;
            if full || run.bytes.len() >= WRITE_SIZE {
                self.write(open, &mut run)?;
            }
            if full {
                self.rotate(&mut slot);
            }
        }
        if let Some(open) = &mut *slot {
            self.write(open, &mut run)?;
        }
        Ok(stored)
    }

    fn create(&self) -> Result<OpenPack> {
        let id = self.ids.next()?;
        let path = self.staging.open_path(id);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|e| error::file("make", &path, &e))?;
        if let Err(e) = file.write_all_at(&pack::encode_header(id), 0) {
            let _ = std::fs::remove_file(&path);
            return Err(error::file("write", &path, &e));
        }
        let local = LocalPack::new(id, file);
        self.staging.opened(&local);
        let now = Instant::now();
        Ok(OpenPack { local, len: pack::HEADER_LEN as u64, entries: Vec::new(), made: now, appended: now })
    }

    fn write(&self, open: &mut OpenPack, run: &mut Run) -> Result<()> {
        if run.entries.is_empty() {
            return Ok(());
        }
        if let Err(e) = open.local.file.write_all_at(&run.bytes, open.len) {
            // Cut the torn record back. Should that fail too, the next write goes over it, and a start drops it.
            let _ = open.local.file.set_len(open.len);
            return Err(error::file("append to", &self.staging.open_path(open.local.id), &e));
        }
        open.len += run.bytes.len() as u64;
        open.appended = Instant::now();
        self.staging.appended(open.local.id, &run.entries);
        open.entries.append(&mut run.entries);
        run.bytes.clear();
        Ok(())
    }

    fn rotate(&self, slot: &mut Option<OpenPack>) {
        match slot.take() {
            Some(OpenPack { local, len, entries, .. }) if !entries.is_empty() => {
                self.staging.filled(FullPack { local, len, entries });
            }
            // Its first append failed. Should the removal fail too, the next start removes it.
            Some(OpenPack { local, .. }) => {
                self.staging.discarded(local.id);
                let _ = std::fs::remove_file(self.staging.open_path(local.id));
            }
            None => {}
        }
    }

    /// Ends the open pack, if there is one: the sealer takes it. Returns every pack that the object store lacks; what
    /// was appended before the call is in these or in the object store.
    pub fn seal(&self) -> Vec<PackId> {
        let mut slot = self.open.lock();
        self.rotate(&mut slot);
        self.staging.ids()
    }

    /// Ends the open pack when nothing was added for `idle` or when it is ten times as old. Does not wait: a writer
    /// that is busy is not idle.
    pub fn seal_idle(&self, idle: Duration) {
        if let Some(mut slot) = self.open.try_lock()
            && slot
                .as_ref()
                .is_some_and(|o| o.appended.elapsed() >= idle || o.made.elapsed() >= idle.saturating_mul(10))
        {
            self.rotate(&mut slot);
        }
    }

    /// Every pack that may hold records which no fsync covers. Taken under the writer's lock, so that a pack which
    /// passes from here to the sealer is seen on one side.
    pub fn unsynced(&self) -> Vec<Arc<LocalPack>> {
        let slot = self.open.lock();
        let mut packs = self.staging.unsynced();
        packs.extend(slot.as_ref().map(|o| Arc::clone(&o.local)));
        packs
    }
}

/// Records on their way into the file.
#[derive(Default)]
struct Run {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Run {
    fn add(&mut self, base: u64, chunk: &EncodedChunk) {
        // Below 4 GiB: a pack ends at `MAX_PACK`, and what comes beyond is one run of records.
        let offset = (base + self.bytes.len() as u64) as u32;
        let entry = Entry {
            hash: chunk.hash,
            offset,
            stored_len: chunk.data.len() as u32,
            raw_len: chunk.raw_len,
            zstd: chunk.zstd,
        };
        pack::encode_record(chunk, &mut self.bytes);
        self.entries.push(entry);
    }
}
