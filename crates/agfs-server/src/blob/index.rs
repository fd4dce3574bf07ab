//! Where each chunk is: the index in the metadata engine.
//!
//! ```text
//! key    = 'c' | hash 32
//! value  = 01 | flags 1 | pack id 16 | offset 4 | stored_len 4 | raw_len 4      numbers little-endian
//! ```
//! A chunk gets its key when its pack is finished and on disk, never before: so no power loss leaves a key whose bytes
//! are gone. Until then it is found through the local packs (see `staging`).

use super::pack::Entry;
use super::pack_id::PackId;
use crate::store::{Batch, MetaStore};
use agfs_core::{ChunkHash, Error, Result};
use std::sync::Arc;

/// The first byte of every key of this room.
pub const TAG: u8 = b'c';
const VERSION: u8 = 1;
const ZSTD: u8 = 1;

/// A chunk's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Which pack.
    pub pack: PackId,
    /// Where in it.
    pub entry: Entry,
}

/// The key of a chunk.
pub fn key(hash: &ChunkHash) -> [u8; 33] {
    let mut key = [TAG; 33];
    key[1..].copy_from_slice(&hash.0);
    key
}

fn encode(pack: PackId, entry: &Entry) -> Vec<u8> {
    let mut out = Vec::with_capacity(30);
    out.extend_from_slice(&[VERSION, if entry.zstd { ZSTD } else { 0 }]);
    out.extend_from_slice(&pack.0);
    for number in [entry.offset, entry.stored_len, entry.raw_len] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out
}

fn decode(hash: ChunkHash, value: &[u8]) -> Result<Location> {
    let parse = || {
        let (&[version, flags], rest) = value.split_first_chunk::<2>()?;
        let (pack, rest) = rest.split_first_chunk::<16>()?;
        let (offset, rest) = rest.split_first_chunk::<4>()?;
        let (stored_len, rest) = rest.split_first_chunk::<4>()?;
        let raw_len = <&[u8; 4]>::try_from(rest).ok()?;
        if version != VERSION || flags > ZSTD {
            return None;
        }
        let [offset, stored_len, raw_len] = [offset, stored_len, raw_len].map(|n| u32::from_le_bytes(*n));
        Some(Location { pack: PackId(*pack), entry: Entry { hash, offset, stored_len, raw_len, zstd: flags == ZSTD } })
    };
    parse().ok_or_else(|| {
        Error::corrupt(format!("the index entry of chunk {hash} cannot be read (its version is {:?})", value.first()))
    })
}

/// The index. Each call may read the engine's disk.
pub struct Index(pub(super) Arc<dyn MetaStore>);

impl Index {
    /// Where the chunk is, if it is in a finished pack.
    pub fn get(&self, hash: ChunkHash) -> Result<Option<Location>> {
        self.0.get(&key(&hash))?.map(|value| decode(hash, &value)).transpose()
    }

    /// Whether the chunk is in a finished pack.
    pub fn has(&self, hash: &ChunkHash) -> Result<bool> {
        Ok(self.0.get(&key(hash))?.is_some())
    }

    /// Enters the chunks of a finished pack; those that have an entry already keep it. The pack is on disk.
    pub fn add(&self, pack: PackId, entries: &[Entry]) -> Result<()> {
        let mut batch = Batch::new();
        for entry in entries {
            if !self.has(&entry.hash)? {
                batch.put(key(&entry.hash), encode(pack, entry));
            }
        }
        self.0.write(batch)
    }

    /// Puts every entry made so far on disk.
    pub fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;
    use agfs_core::ErrorKind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_place_reads_back(pack: [u8; 16], hash: [u8; 32], offset: u32, stored_len: u32, raw_len: u32, zstd: bool) {
            let (pack, hash) = (PackId(pack), ChunkHash(hash));
            let entry = Entry { hash, offset, stored_len, raw_len, zstd };
            let bytes = encode(pack, &entry);
            prop_assert_eq!(decode(hash, &bytes), Ok(Location { pack, entry }));
            prop_assert!(decode(hash, &bytes[..29]).is_err());
        }

        #[test]
        fn no_value_makes_it_panic(bytes: Vec<u8>) {
            let _ = decode(ChunkHash([0; 32]), &bytes);
        }
    }

    #[test]
    fn the_first_place_of_a_chunk_stays() {
        let index = Index(Arc::new(MemoryStore::new()));
        let hash = ChunkHash([3; 32]);
        let entry = Entry { hash, offset: 24, stored_len: 5, raw_len: 5, zstd: false };
        index.add(PackId([1; 16]), &[entry]).unwrap();
        index.add(PackId([2; 16]), &[Entry { offset: 99, ..entry }]).unwrap();
        assert_eq!(index.get(hash), Ok(Some(Location { pack: PackId([1; 16]), entry })));
        let mut batch = Batch::new();
        batch.put(key(&hash), vec![9; 30]);
        index.0.write(batch).unwrap();
        assert_eq!(index.get(hash).map_err(|e| e.kind()), Err(ErrorKind::Corrupt));
    }
}
