//! A bounded cache of path descriptors by inode, evicted by second chance. It opens nothing itself.

use rustc_hash::FxHashMap;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Raises the limit on open files to the hard limit and returns what is then allowed. A refusal leaves the limit as it was.
pub(super) fn raise_open_file_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(errno) = setrlimit(Resource::Nofile, wanted) {
            tracing::debug!(%errno, "the limit on open files stays as it is");
        }
    }
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

struct Cached {
    fd: Arc<OwnedFd>,
    /// Used since the clock hand last passed.
    used: bool,
    /// Which entry of the queue speaks for this one; older ones are void.
    tick: u64,
}

/// At most `capacity` descriptors.
pub(super) struct FdCache {
    by_inode: FxHashMap<u64, Cached>,
    queue: VecDeque<(u64, u64)>,
    tick: u64,
    capacity: usize,
}

impl FdCache {
    pub(super) fn new(capacity: usize) -> Self {
        FdCache { by_inode: FxHashMap::default(), queue: VecDeque::new(), tick: 0, capacity: capacity.max(1) }
    }

    pub(super) fn len(&self) -> usize {
        self.by_inode.len()
    }

    pub(super) fn get(&mut self, raw: u64) -> Option<Arc<OwnedFd>> {
        let cached = self.by_inode.get_mut(&raw)?;
        cached.used = true;
        Some(cached.fd.clone())
    }

    /// Keeps `fd` for `raw`. Returns the descriptors that had to go: closing one can take long (the last hold on a deleted
    /// file frees its blocks), so the caller drops them with no lock held.
    #[must_use]
    pub(super) fn insert(&mut self, raw: u64, fd: Arc<OwnedFd>) -> Vec<Arc<OwnedFd>> {
        let mut evicted = Vec::new();
        self.tick += 1;
        let cached = Cached { fd, used: false, tick: self.tick };
        evicted.extend(self.by_inode.insert(raw, cached).map(|old| old.fd));
        self.queue.push_back((raw, self.tick));
        while self.by_inode.len() > self.capacity {
            let Some((candidate, tick)) = self.queue.pop_front() else { break };
            let Some(cached) = self.by_inode.get_mut(&candidate).filter(|c| c.tick == tick) else { continue };
            if std::mem::take(&mut cached.used) {
                self.queue.push_back((candidate, tick));
            } else {
                evicted.extend(self.by_inode.remove(&candidate).map(|old| old.fd));
            }
        }
        if self.queue.len() > self.capacity.saturating_mul(2).saturating_add(64) {
            let by_inode = &self.by_inode;
            self.queue.retain(|(raw, tick)| by_inode.get(raw).is_some_and(|c| c.tick == *tick));
        }
        evicted
    }

    /// Takes the descriptor of `raw` out, to be dropped with no lock held.
    pub(super) fn remove(&mut self, raw: u64) -> Option<Arc<OwnedFd>> {
        self.by_inode.remove(&raw).map(|cached| cached.fd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fd() -> Arc<OwnedFd> {
        Arc::new(std::fs::File::open("/dev/null").unwrap().into())
    }

    #[test]
    fn what_was_used_outlives_what_was_not() {
        let mut cache = FdCache::new(3);
        for raw in 0..3 {
            assert!(cache.insert(raw, fd()).is_empty());
        }
        assert!(cache.get(0).is_some());
        assert_eq!(cache.insert(3, fd()).len(), 1);
        assert!(cache.get(0).is_some() && cache.get(1).is_none() && cache.get(2).is_some());
    }

    #[test]
    fn coming_and_going_grows_nothing() {
        let mut cache = FdCache::new(4);
        for raw in 0..10_000 {
            assert!(cache.insert(raw % 3, fd()).len() <= 1);
            cache.remove(raw % 3);
        }
        assert_eq!(cache.len(), 0);
        assert!(cache.queue.len() <= 4 * 2 + 64 + 1, "{}", cache.queue.len());
    }
}
