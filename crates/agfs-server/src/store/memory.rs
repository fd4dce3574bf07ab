//! The engine without a disk: for tests and throw-away servers. It forgets everything when it is dropped.

use super::{Batch, MetaStore, Mutation, Read, Step, Visit, seek_target};
use agfs_core::Result;
use bytes::Bytes;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;

type Map = BTreeMap<Vec<u8>, Bytes>;

/// A sorted map in memory. A snapshot shares the map; the first write while one is alive copies it.
#[derive(Debug, Default)]
pub struct MemoryStore {
    map: RwLock<Arc<Map>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    fn view(&self) -> View {
        View(Arc::clone(&self.map.read()))
    }
}

/// One state of the map, never changed while it is held.
struct View(Arc<Map>);

impl Read for View {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.0.get(key).cloned())
    }

    fn scan(&self, start: &[u8], end: &[u8], visit: Visit<'_>) -> Result<()> {
        let mut from = start.to_vec();
        // `BTreeMap::range` panics on a range that ends before it begins.
        'range: while from.as_slice() < end {
            for (key, value) in self.0.range::<[u8], _>((Included(from.as_slice()), Excluded(end))) {
                match visit(key, value)? {
                    Step::Next => {}
                    Step::Stop => return Ok(()),
                    Step::Seek(target) => {
                        from = seek_target(key, target)?;
                        continue 'range;
                    }
                }
            }
            return Ok(());
        }
        Ok(())
    }
}

impl Read for MemoryStore {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.map.read().get(key).cloned())
    }

    fn scan(&self, start: &[u8], end: &[u8], visit: Visit<'_>) -> Result<()> {
        self.view().scan(start, end, visit)
    }
}

impl MetaStore for MemoryStore {
    fn snapshot(&self) -> Box<dyn Read + Send + Sync + '_> {
        Box::new(self.view())
    }

    fn write(&self, batch: Batch) -> Result<()> {
        let mut guard = self.map.write();
        let map = Arc::make_mut(&mut guard);
        for mutation in batch {
            match mutation {
                Mutation::Put { key, value } => drop(map.insert(key, value)),
                Mutation::Delete { key } => drop(map.remove(&key)),
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> Vec<(String, u64)> {
        let map = self.map.read();
        let bytes: usize = map.iter().map(|(key, value)| key.len() + value.len()).sum();
        vec![("memory.keys".into(), map.len() as u64), ("memory.bytes".into(), bytes as u64)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn conforms() {
        conformance::all(MemoryStore::new);
    }

    proptest! {
        #[test]
        fn agrees_with_the_model((batches, scans) in conformance::model::history()) {
            conformance::model::check(&MemoryStore::new(), &batches, &scans)?;
        }
    }
}
