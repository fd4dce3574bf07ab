//! Finishes full packs, and makes what is in unfinished ones durable on request.
//!
//! Two tasks: one that seals (footer, fsync, name, index), one that answers `sync` with a group fsync. Neither appends
//! nor uploads.

use super::error;
use super::index::Index;
use super::pack;
use super::staging::{FullPack, SealedPack, Staging};
use super::writer::Writer;
use agfs_core::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Puts the names in a directory on disk.
pub(super) fn sync_dir(dir: &std::path::Path) -> Result<()> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(|e| error::file("sync", dir, &e))
}

/// Finishes a pack: footer, disk, final name, index. May be repeated after a failure.
fn seal(staging: &Staging, index: &Index, full: &FullPack) -> Result<()> {
    let id = full.local.id;
    let (open, sealed) = (staging.open_path(id), staging.sealed_path(id));
    if open.exists() {
        let footer = pack::encode_footer(&full.entries);
        let file = &full.local.file;
        let write = || {
            // The header again: a start may have found the pack by its records alone.
            file.write_all_at(&pack::encode_header(id), 0)?;
            // What a failed append left behind the last record must not lie between it and the footer's end.
            file.set_len(full.len)?;
            file.write_all_at(&footer, full.len)
        };
        write().map_err(|e| error::file("finish", &open, &e))?;
        file.sync_all().map_err(|e| error::file("sync", &open, &e)).inspect_err(|e| staging.fail(e))?;
        std::fs::rename(&open, &sealed).map_err(|e| error::file("rename", &open, &e))?;
        sync_dir(staging.dir()).inspect_err(|e| staging.fail(e))?;
    }
    index.add(id, &full.entries)
}

/// Seals packs as they fill, and idle ones, until it is dropped. A pack that cannot be sealed (a full disk) stays
/// readable and is tried again.
pub(super) async fn run(staging: Arc<Staging>, index: Arc<Index>, writer: Arc<Writer>, seal_after: Duration) {
    let tick = (seal_after / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
    let mut pause = Duration::from_millis(100);
    loop {
        let _ = tokio::time::timeout(tick, staging.full.notified()).await;
        writer.seal_idle(seal_after);
        while let Some(full) = staging.next_full() {
            let job = {
                let (staging, index, full) = (Arc::clone(&staging), Arc::clone(&index), Arc::clone(&full));
                move || seal(&staging, &index, &full)
            };
            match staging.blocking(job).await {
                Ok(()) => {
                    let len = full.len + (pack::encoded_footer_len(full.entries.len())) as u64;
                    staging.was_sealed(SealedPack { local: Arc::clone(&full.local), len, recovered: false });
                    pause = Duration::from_millis(100);
                }
                Err(_) if staging.health().is_err() => {
                    tracing::error!(pack = %full.local.id, "packs are no longer finished after a failed sync");
                    return;
                }
                Err(error) => {
                    tracing::warn!(pack = %full.local.id, %error, "a pack could not be finished and is tried again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(5));
                }
            }
        }
    }
}

/// One caller of `sync` that waits for an answer.
pub(super) type SyncRequest = oneshot::Sender<Result<()>>;

/// Answers requests until the last sender is gone. All that wait when an fsync begins share it.
pub(super) async fn run_sync(staging: Arc<Staging>, writer: Arc<Writer>, mut requests: mpsc::Receiver<SyncRequest>) {
    let mut waiting = Vec::new();
    while requests.recv_many(&mut waiting, 1024).await > 0 {
        let job = {
            let (staging, writer) = (Arc::clone(&staging), Arc::clone(&writer));
            move || sync_all(&staging, &writer)
        };
        let result = staging.blocking(job).await;
        for caller in waiting.drain(..) {
            let _ = caller.send(result.clone());
        }
    }
}

fn sync_all(staging: &Staging, writer: &Writer) -> Result<()> {
    staging.health()?;
    let sync = || {
        let packs = writer.unsynced();
        for pack in &packs {
            pack.file.sync_data().map_err(|e| Error::io(format!("cannot sync pack {}: {e}", pack.id)))?;
        }
        if packs.iter().any(|pack| !pack.named.load(Relaxed)) {
            sync_dir(staging.dir())?;
            packs.iter().for_each(|pack| pack.named.store(true, Relaxed));
        }
        Ok(())
    };
    sync().inspect_err(|e| staging.fail(e))
}
