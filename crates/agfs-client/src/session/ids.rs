//! File ids in stock: reserved from the server in runs, so that making a file asks nobody.

use crate::connection::Connection;
use agfs_core::{FileId, Result};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many ids are reserved at once.
const RUN: u32 = 4_096;
/// Below this many, the next run is fetched in the background.
const LOW: u64 = 1_024;

/// Ids of one session.
pub(super) struct IdPool {
    conn: Connection,
    space: String,
    stock: Mutex<VecDeque<Range<u64>>>,
    /// Held while the stock is filled by a caller that found it empty.
    empty: tokio::sync::Mutex<()>,
    filling: AtomicBool,
}

impl IdPool {
    pub fn new(conn: Connection, space: String) -> Arc<Self> {
        Arc::new(IdPool {
            conn,
            space,
            stock: Mutex::new(VecDeque::new()),
            empty: tokio::sync::Mutex::new(()),
            filling: AtomicBool::new(false),
        })
    }

    /// The next id, and how many are left after it.
    fn take(&self) -> Option<(u64, u64)> {
        let mut stock = self.stock.lock();
        loop {
            match stock.front_mut()?.next() {
                Some(id) => return Some((id, stock.iter().map(|r| r.end.saturating_sub(r.start)).sum())),
                None => stock.pop_front(),
            };
        }
    }

    async fn fill(&self) -> Result<()> {
        let run = self.conn.reserve_ids(&self.space, RUN).await?;
        self.stock.lock().push_back(run);
        Ok(())
    }

    /// A fresh id. Fails as the connection does when the stock is empty and none can be had.
    pub async fn next(self: &Arc<Self>) -> Result<FileId> {
        if let Some(id) = self.in_stock() {
            return Ok(id);
        }
        let _one = self.empty.lock().await;
        loop {
            if let Some(id) = self.in_stock() {
                return Ok(id);
            }
            self.fill().await?;
        }
    }

    fn in_stock(self: &Arc<Self>) -> Option<FileId> {
        let (id, left) = self.take()?;
        if left < LOW && !self.filling.swap(true, Ordering::AcqRel) {
            let pool = self.clone();
            tokio::spawn(async move {
                if let Err(error) = pool.fill().await {
                    tracing::warn!(%error, "file ids could not be reserved ahead");
                }
                pool.filling.store(false, Ordering::Release);
            });
        }
        Some(FileId(id))
    }
}
