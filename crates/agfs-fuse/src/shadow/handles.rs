//! Numbered open handles. Knows nothing of what a handle is.

use super::types::{Errno, Result};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Handles by number. A number is never used twice.
pub(super) struct Handles<T> {
    open: RwLock<FxHashMap<u64, Arc<T>>>,
    next: AtomicU64,
}

impl<T> Handles<T> {
    /// No handles. Numbers start at 1: zero is what the kernel sends when it has no handle.
    pub(super) fn new() -> Self {
        Handles { open: RwLock::default(), next: AtomicU64::new(1) }
    }

    /// Keeps `value` and gives its number.
    pub(super) fn insert(&self, value: T) -> u64 {
        let fh = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.write().insert(fh, Arc::new(value));
        fh
    }

    /// The handle with this number. EBADF when there is none.
    pub(super) fn get(&self, fh: u64) -> Result<Arc<T>> {
        self.open.read().get(&fh).cloned().ok_or(Errno::BADF)
    }

    /// Takes the handle out; calls that still use it finish. EBADF when there is none.
    pub(super) fn remove(&self, fh: u64) -> Result<Arc<T>> {
        self.open.write().remove(&fh).ok_or(Errno::BADF)
    }
}
