//! The embedded engine: RocksDB, one column family, one write-ahead log.
//!
//! Only this room and its parts (`options`, `error`, `synced`) may name a type of the `rocksdb` crate.

mod error;
mod options;
mod synced;
#[cfg(test)]
mod tests;

use super::group_sync::GroupSync;
use super::{Batch, MetaStore, Mutation, Read, Step, Visit, seek_target};
use agfs_core::Result;
use bytes::Bytes;
use rocksdb::{DB, DBRawIterator, DBRecoveryMode, ReadOptions, SnapshotWithThreadMode, WriteBatch, WriteOptions};
use std::path::Path;
use synced::SyncedMark;

pub use options::RocksConfig;

/// A RocksDB database in a directory of its own, which it locks against other processes.
pub struct RocksStore {
    db: DB,
    group: GroupSync,
    mark: SyncedMark,
    write_options: WriteOptions,
}

impl RocksStore {
    /// Opens the database in `dir`, creating both when they are not there. Replays the write-ahead log: a torn tail, as
    /// a power loss leaves it, is dropped.
    ///
    /// Fails with `Refused` when another process (or another store of this one) has the directory, `PermissionDenied`
    /// when it cannot be written, `Corrupt` when a file, or the log before its synced end, does not match its
    /// checksums, and `NoSpace` on a full disk; the message names the directory.
    pub fn open(dir: &Path, config: &RocksConfig) -> Result<Self> {
        std::fs::create_dir_all(dir).map_err(|e| error::from_create_dir(dir, &e))?;
        let mark = SyncedMark::open(dir)?;
        let mut write_options = WriteOptions::default();
        // The log is written to the operating system with each batch, and to the disk by `sync`.
        write_options.set_sync(false);
        let db = open_database(dir, config, mark.load()?)?;
        if config.salvage {
            // Opening wrote what was replayed into synced tables; from here on that is what was promised.
            mark.store(db.latest_sequence_number())?;
        }
        Ok(RocksStore { db, group: GroupSync::new(), mark, write_options })
    }

    fn sync_log(&self) -> Result<()> {
        // Every write up to this number is in the log, since the number is published after the log is written.
        let number = self.db.latest_sequence_number();
        self.db.flush_wal(true).map_err(|e| error::from_write(self.db.path(), &e))?;
        self.mark.store(number)
    }
}

impl Drop for RocksStore {
    fn drop(&mut self) {
        if let Err(error) = self.sync_log() {
            tracing::warn!(%error, "the metadata could not be synced when it was closed");
        }
    }
}

/// Opens without losing anything that was synced.
///
/// First in the mode that accepts no damage at all, which is how a log looks after a close or a kill. When it is
/// refused, a trial replay that writes nothing finds where the readable prefix ends; only when that is not before the
/// mark is the rest cut off as a torn tail.
fn open_database(dir: &Path, config: &RocksConfig, synced: u64) -> Result<DB> {
    let refusal = match DB::open(&options::database(config, DBRecoveryMode::AbsoluteConsistency), dir) {
        Ok(db) if db.latest_sequence_number() < synced => {
            // A log that was cut between two records, or is gone, has no checksum that fails.
            let error = error::lost_synced(dir, db.latest_sequence_number(), synced);
            return if config.salvage { Ok(db) } else { Err(error) };
        }
        Ok(db) => return Ok(db),
        Err(refusal) if error::is_corruption(&refusal) => refusal,
        Err(refusal) => return Err(error::from_open(dir, &refusal)),
    };
    let prefix = options::database(config, DBRecoveryMode::PointInTime);
    let replayed = match DB::open_for_read_only(&prefix, dir, false) {
        Ok(trial) => trial.latest_sequence_number(),
        // Not the log but something else is damaged; the first refusal says what.
        Err(_) => return Err(error::from_open(dir, &refusal)),
    };
    if replayed < synced && !config.salvage {
        return Err(error::lost_synced(dir, replayed, synced));
    }
    tracing::warn!(dir = %dir.display(), replayed, synced, %refusal, "the end of the metadata log was torn and is dropped");
    DB::open(&prefix, dir).map_err(|e| error::from_open(dir, &e))
}

fn scan_iterator(mut iterator: DBRawIterator<'_>, start: &[u8], visit: Visit<'_>) -> Result<()> {
    iterator.seek(start);
    while let Some((key, value)) = iterator.item() {
        match visit(key, value)? {
            Step::Next => iterator.next(),
            Step::Stop => return Ok(()),
            Step::Seek(target) => {
                let target = seek_target(key, target)?;
                iterator.seek(target);
            }
        }
    }
    // An iterator that cannot read on is invalid just like one at its end; only the status tells them apart.
    iterator.status().map_err(|e| error::from_read(&e))
}

fn range_options(end: &[u8]) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_iterate_upper_bound(end);
    options
}

impl Read for RocksStore {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let value = self.db.get_pinned(key).map_err(|e| error::from_read(&e))?;
        Ok(value.map(|v| Bytes::copy_from_slice(&v)))
    }

    fn scan(&self, start: &[u8], end: &[u8], visit: Visit<'_>) -> Result<()> {
        if start >= end {
            return Ok(());
        }
        scan_iterator(self.db.raw_iterator_opt(range_options(end)), start, visit)
    }
}

struct View<'a>(SnapshotWithThreadMode<'a, DB>);

impl Read for View<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let value = self.0.get_pinned(key).map_err(|e| error::from_read(&e))?;
        Ok(value.map(|v| Bytes::copy_from_slice(&v)))
    }

    fn scan(&self, start: &[u8], end: &[u8], visit: Visit<'_>) -> Result<()> {
        if start >= end {
            return Ok(());
        }
        scan_iterator(self.0.raw_iterator_opt(range_options(end)), start, visit)
    }
}

impl MetaStore for RocksStore {
    fn snapshot(&self) -> Box<dyn Read + Send + Sync + '_> {
        Box::new(View(self.db.snapshot()))
    }

    fn write(&self, batch: Batch) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut rocks = WriteBatch::default();
        for mutation in &batch {
            match mutation {
                Mutation::Put { key, value } => rocks.put(key, value),
                Mutation::Delete { key } => rocks.delete(key),
            }
        }
        self.db.write_opt(rocks, &self.write_options).map_err(|e| error::from_write(self.db.path(), &e))
    }

    fn sync(&self) -> Result<()> {
        self.group.sync(|| self.sync_log())
    }

    fn stats(&self) -> Vec<(String, u64)> {
        options::PROPERTIES
            .iter()
            .filter_map(|name| Some((name.replace('-', "_"), self.db.property_int_value(*name).ok()??)))
            .collect()
    }
}
