//! The part of the cache that is in memory, bounded by bytes.

use agfs_core::ChunkHash;
use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use rustc_hash::FxBuildHasher;

/// What an entry costs beyond its bytes.
const OVERHEAD: u64 = 128;
/// Few, since an entry must fit into one share and may have 4 MiB.
const SHARES: usize = 2;
/// Up to this size, in bytes, contents are copied, so that a small one does not keep the network buffer it came in.
const COPY: usize = 64 << 10;

#[derive(Clone)]
struct ByBytes;

impl Weighter<ChunkHash, Bytes> for ByBytes {
    fn weight(&self, _: &ChunkHash, data: &Bytes) -> u64 {
        data.len() as u64 + OVERHEAD
    }
}

/// Chunks in memory.
pub(super) struct Memory {
    cache: Option<Cache<ChunkHash, Bytes, ByBytes, FxBuildHasher>>,
}

impl Memory {
    /// At most `max` bytes, with what the entries cost; 0 for none.
    pub fn new(max: u64) -> Self {
        let items = usize::try_from(max / (64 << 10)).unwrap_or(usize::MAX).clamp(64, 1 << 20);
        let options = OptionsBuilder::new()
            .shards(SHARES)
            .estimated_items_capacity(items)
            .weight_capacity(max)
            .build()
            .ok()
            .filter(|_| max > 0);
        let cache = options.map(|o| Cache::with_options(o, ByBytes, FxBuildHasher, DefaultLifecycle::default()));
        Memory { cache }
    }

    pub fn get(&self, hash: &ChunkHash) -> Option<Bytes> {
        self.cache.as_ref()?.get(hash)
    }

    pub fn insert(&self, hash: ChunkHash, data: &Bytes) {
        if let Some(cache) = &self.cache {
            let own = if data.len() <= COPY { Bytes::copy_from_slice(data) } else { data.clone() };
            cache.insert(hash, own);
        }
    }

    /// How many bytes are held, with what the entries cost.
    pub fn bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, Cache::weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_by_bytes() {
        let memory = Memory::new(8 << 20);
        for i in 0..100u32 {
            let data = Bytes::from(vec![i as u8; 1 << 20]);
            memory.insert(ChunkHash::of(&i.to_le_bytes()), &data);
            assert!(memory.bytes() <= 8 << 20);
        }
        assert!(memory.bytes() > 4 << 20);
        let none = Memory::new(0);
        none.insert(ChunkHash([1; 32]), &Bytes::from_static(b"x"));
        assert_eq!((none.get(&ChunkHash([1; 32])), none.bytes()), (None, 0));
    }
}
