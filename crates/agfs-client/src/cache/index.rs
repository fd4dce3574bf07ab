//! Which chunks are on disk, how large, and how lately each was used. Pure bookkeeping.

use agfs_core::ChunkHash;
use rustc_hash::FxHashMap;

#[derive(Clone, Copy)]
struct Entry {
    size: u32,
    /// The tick of the last use: bigger is later; what was there before this process comes first, by age.
    used: u64,
}

/// The index of a directory of chunks.
#[derive(Default)]
pub(super) struct Index {
    entries: FxHashMap<ChunkHash, Entry>,
    bytes: u64,
    tick: u64,
}

/// Ticks below this are left to what was found when the cache was opened.
const FOUND: u64 = 1 << 40;

impl Index {
    /// Bytes and chunks.
    pub fn size(&self) -> (u64, u64) {
        (self.bytes, self.entries.len() as u64)
    }

    pub fn contains(&self, hash: &ChunkHash) -> bool {
        self.entries.contains_key(hash)
    }

    /// Notes a use now. Returns whether it is the first one of this process.
    pub fn used(&mut self, hash: ChunkHash, size: u32) -> bool {
        self.tick += 1;
        let now = Entry { size, used: FOUND + self.tick };
        let before = self.entries.insert(hash, now);
        self.bytes = (self.bytes + u64::from(size)).saturating_sub(before.map_or(0, |e| u64::from(e.size)));
        before.is_none_or(|e| e.used < FOUND)
    }

    /// Notes a chunk that was there before, last used `age_rank` (a rank, bigger is later); one that is known stays.
    pub fn found(&mut self, hash: ChunkHash, size: u32, age_rank: u64) {
        if let std::collections::hash_map::Entry::Vacant(vacant) = self.entries.entry(hash) {
            vacant.insert(Entry { size, used: age_rank.min(FOUND - 1) });
            self.bytes += u64::from(size);
        }
    }

    pub fn remove(&mut self, hash: &ChunkHash) {
        if let Some(entry) = self.entries.remove(hash) {
            self.bytes = self.bytes.saturating_sub(u64::from(entry.size));
        }
    }

    /// Takes out those used longest ago until at most `target` bytes are left, and returns them.
    pub fn evict(&mut self, target: u64) -> Vec<ChunkHash> {
        if self.bytes <= target {
            return Vec::new();
        }
        let mut order: Vec<(u64, ChunkHash)> = self.entries.iter().map(|(hash, e)| (e.used, *hash)).collect();
        order.sort_unstable();
        let mut out = Vec::new();
        for (_, hash) in order {
            if self.bytes <= target {
                break;
            }
            self.remove(&hash);
            out.push(hash);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h(n: u8) -> ChunkHash {
        ChunkHash([n; 32])
    }

    #[test]
    fn the_longest_unused_go_first_and_sizes_add_up() {
        let mut index = Index::default();
        index.found(h(1), 10, 5);
        index.found(h(2), 10, 4);
        assert!(index.used(h(3), 10));
        assert!(index.used(h(2), 10), "the first use in this process");
        assert!(!index.used(h(2), 10));
        index.found(h(2), 99, 0);
        assert_eq!(index.size(), (30, 3));
        assert_eq!(index.evict(30), []);
        assert_eq!(index.evict(15), [h(1), h(3)]);
        assert_eq!(index.size(), (10, 1));
        assert!(index.contains(&h(2)));
        index.remove(&h(2));
        index.remove(&h(2));
        assert_eq!(index.size(), (0, 0));
    }
}
