//! Numbers for df(1): the room that there is for what programs write.

use super::route::{Room, local};
use super::{Statfs, Vfs};
use agfs_core::{Result, Timestamp};
use parking_lot::Mutex;
use std::time::Duration;

/// The unit of all counts, in bytes.
const BLOCK: u32 = 4_096;
/// For how long an answer of the server is good enough, in nanoseconds.
const FRESH: i64 = 2_000_000_000;
/// How long the server may take; then what it said last counts.
const PATIENCE: Duration = Duration::from_secs(2);
/// Shown where there is no limit that can be asked for: one PiB, all free, keeps every program content.
const NO_LIMIT: (u64, u64) = (1 << 50, 1 << 50);
/// Inodes are numbers: there are as many as wanted.
const FILES: u64 = 1 << 30;

/// What the server said last of its room, and when: all bytes, and those free.
#[derive(Default)]
pub(super) struct Capacity(Mutex<Option<(Timestamp, (u64, u64))>>);

impl Vfs {
    /// The room there is. The tree's is that of the server's disk, a few seconds old at most, or what was said last while
    /// the server does not answer. A shadow's inside shows the local disk.
    ///
    /// # Errors
    /// Those of the local disk.
    pub async fn statfs(&self, ino: u64) -> Result<Statfs> {
        if let Room::Shadow(_) = Self::room_of(ino) {
            let s = self.shadow.statfs().map_err(local)?;
            return Ok(Statfs {
                block: u32::try_from(s.frsize).unwrap_or(BLOCK),
                blocks: s.blocks,
                free: s.bfree,
                available: s.bavail,
                files: s.files,
                files_free: s.ffree,
            });
        }
        let (total, free) = self.room().await;
        let (nodes, _) = self.world.tree.counts();
        let free = free / u64::from(BLOCK);
        Ok(Statfs {
            block: BLOCK,
            blocks: total / u64::from(BLOCK),
            free,
            available: free,
            files: FILES,
            files_free: FILES.saturating_sub(nodes),
        })
    }

    async fn room(&self) -> (u64, u64) {
        let (now, last) = (self.world.up.now(), *self.capacity.0.lock());
        if let Some((when, room)) = last
            && now.0.saturating_sub(when.0) < FRESH
        {
            return room;
        }
        let asked = async {
            if !self.world.stream.is_up() {
                return None;
            }
            tokio::time::timeout(PATIENCE, self.world.up.capacity()).await.ok()?.ok()
        };
        match asked.await {
            Some(answer) => {
                let room = answer.unwrap_or(NO_LIMIT);
                *self.capacity.0.lock() = Some((now, room));
                room
            }
            None => last.map_or(NO_LIMIT, |(_, room)| room),
        }
    }
}
