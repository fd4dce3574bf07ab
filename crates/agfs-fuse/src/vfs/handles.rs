//! Open handles by number. Numbers have bit 63 clear; the shadow room's handles are told apart by that bit.

use agfs_core::{Error, Result};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Handles of one kind.
pub(super) struct Handles<T> {
    next: AtomicU64,
    open: RwLock<FxHashMap<u64, Arc<T>>>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Handles { next: AtomicU64::new(1), open: RwLock::default() }
    }
}

impl<T> Handles<T> {
    /// Keeps a handle and returns its number.
    pub fn insert(&self, handle: T) -> u64 {
        let fh = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.write().insert(fh, Arc::new(handle));
        fh
    }

    /// The handle. Fails with `Internal` for a number that is not open, which the kernel never asks for.
    pub fn get(&self, fh: u64) -> Result<Arc<T>> {
        self.open.read().get(&fh).cloned().ok_or_else(|| unknown(fh))
    }

    /// Takes a handle out. Fails as [`Handles::get`].
    pub fn remove(&self, fh: u64) -> Result<Arc<T>> {
        self.open.write().remove(&fh).ok_or_else(|| unknown(fh))
    }
}

fn unknown(fh: u64) -> Error {
    Error::internal(format!("no handle {fh} is open"))
}
