//! Numbers that are given out once: ids of spaces, timelines, checkpoints and mounts, and file ids of each family.
//!
//! A counter's stored value is the first number that was never given out; numbers are taken from the store in blocks,
//! so that a restart skips what was left of a block and never gives a number twice.

use super::{keys, record};
use crate::store::{Batch, MetaStore};
use agfs_core::error::{Error, ErrorKind, Result};
use agfs_core::id::FamilyId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Gives out numbers.
pub struct Allocator {
    meta: Arc<dyn MetaStore>,
    /// What is left of each counter's block.
    blocks: Mutex<FxHashMap<String, Range<u64>>>,
}

/// How many numbers are taken from the store at once.
const BLOCK: u64 = 1_024;

impl Allocator {
    /// An allocator over the counters in `meta`.
    pub fn new(meta: Arc<dyn MetaStore>) -> Self {
        Allocator { meta, blocks: Mutex::default() }
    }

    /// The next number of the counter, from 1 on.
    pub fn next(&self, counter: &str) -> Result<u64> {
        Ok(self.range(counter, 1, 1)?.start)
    }

    /// `count` numbers in a row for new nodes of a family.
    pub fn file_ids(&self, family: FamilyId, count: u64) -> Result<Range<u64>> {
        // The root has id 1 in every family.
        self.range(&format!("file/{}", family.0), count, 2)
    }

    /// Whether this number of a family's file ids was given out.
    pub fn is_reserved(&self, family: FamilyId, id: u64) -> Result<bool> {
        let name = format!("file/{}", family.0);
        let blocks = self.blocks.lock();
        let limit = match blocks.get(&name) {
            Some(block) => block.start,
            None => self.stored(&name, 2)?,
        };
        Ok(id > 1 && id < limit)
    }

    fn stored(&self, counter: &str, first: u64) -> Result<u64> {
        self.meta.get(&keys::counter(counter))?.map_or(Ok(first), |bytes| record::decode_number(&bytes, "counter"))
    }

    fn range(&self, counter: &str, count: u64, first: u64) -> Result<Range<u64>> {
        // The lock is held across the write: two callers must not take the same block. It is synced: clients keep numbers
        // in stock, and a power loss must not lead to their being given out again.
        let mut blocks = self.blocks.lock();
        let block = match blocks.get(counter) {
            Some(block) if block.end - block.start >= count => block.clone(),
            _ => {
                let start = self.stored(counter, first)?;
                let end = start.checked_add(count.max(BLOCK)).filter(|&end| end < u64::MAX / 2);
                let end =
                    end.ok_or_else(|| Error::new(ErrorKind::NoSpace, format!("the counter {counter} is used up")))?;
                let mut batch = Batch::new();
                batch.put(keys::counter(counter), record::encode_number(end));
                self.meta.write(batch)?;
                self.meta.sync()?;
                start..end
            }
        };
        let given = block.start..block.start + count;
        blocks.insert(counter.to_owned(), given.end..block.end);
        Ok(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    #[test]
    fn no_number_is_given_twice_not_even_after_a_restart() {
        let meta: Arc<dyn MetaStore> = Arc::new(MemoryStore::new());
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..3 {
            let alloc = Allocator::new(meta.clone());
            for count in [1, 5, 2_000, 1] {
                for id in alloc.file_ids(FamilyId(7), count).unwrap() {
                    assert!(id > 1 && seen.insert(id));
                    assert!(alloc.is_reserved(FamilyId(7), id).unwrap());
                }
            }
            assert!(!alloc.is_reserved(FamilyId(7), 1_000_000).unwrap());
        }
    }
}
