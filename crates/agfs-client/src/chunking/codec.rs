//! One chunk, packed and unpacked. Unpacking verifies: length first, then BLAKE3.

use agfs_core::manifest::MAX_CHUNK;
use agfs_core::{ChunkHash, Error, Result};
use agfs_proto::v1;
use bytes::Bytes;
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// The level of compression: the fastest.
const LEVEL: i32 = 1;
/// Below this size, in bytes, packing is not tried.
const TOO_SMALL: usize = 128;

/// A chunk as it travels.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedChunk {
    /// The hash of the raw bytes.
    pub hash: ChunkHash,
    /// The bytes, packed when `zstd` says so.
    pub data: Bytes,
    /// Whether `data` is packed.
    pub zstd: bool,
    /// How many raw bytes there are.
    pub raw_len: u32,
}

impl std::fmt::Debug for EncodedChunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EncodedChunk({}, {} of {} bytes)", self.hash, self.data.len(), self.raw_len)
    }
}

impl EncodedChunk {
    /// The message that carries it.
    pub fn into_wire(self) -> v1::Chunk {
        v1::Chunk { hash: self.hash.0.to_vec(), data: self.data, zstd: self.zstd, raw_len: self.raw_len }
    }

    /// A chunk out of a message; its bytes are not looked at. Fails with `InvalidArgument` when the hash is malformed.
    pub fn from_wire(chunk: v1::Chunk) -> Result<EncodedChunk> {
        let hash = ChunkHash::from_slice(&chunk.hash)?;
        Ok(EncodedChunk { hash, data: chunk.data, zstd: chunk.zstd, raw_len: chunk.raw_len })
    }
}

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

fn compress(raw: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Compressor::new(LEVEL).ok();
        }
        slot.as_mut()?.compress(raw).ok()
    })
}

fn decompress(data: &[u8], raw_len: usize) -> std::io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|slot| match slot {
        Some(decompressor) => decompressor.decompress(data, raw_len),
        None => slot.insert(Decompressor::new()?).decompress(data, raw_len),
    })
}

/// Hashes and packs one chunk, of at most 4 MiB; it stays as it is unless packing saves a tenth.
pub fn encode(raw: Bytes) -> EncodedChunk {
    let hash = ChunkHash::of(&raw);
    let raw_len = u32::try_from(raw.len()).unwrap_or(u32::MAX);
    let packed = if raw.len() < TOO_SMALL { None } else { compress(&raw) };
    match packed.filter(|packed| packed.len() <= raw.len() - raw.len().div_ceil(10)) {
        Some(packed) => EncodedChunk { hash, data: packed.into(), zstd: true, raw_len },
        None => EncodedChunk { hash, data: raw, zstd: false, raw_len },
    }
}

/// The raw bytes of a chunk. Fails with `Corrupt` unless they have the stated length and hash.
pub fn decode(chunk: &EncodedChunk) -> Result<Bytes> {
    let hash = chunk.hash;
    if chunk.raw_len > MAX_CHUNK {
        return Err(Error::corrupt(format!(
            "chunk {hash} claims {} bytes; at most {MAX_CHUNK} are possible",
            chunk.raw_len
        )));
    }
    let raw = if chunk.zstd {
        decompress(&chunk.data, chunk.raw_len as usize)
            .map_err(|e| Error::corrupt(format!("chunk {hash} cannot be unpacked: {e}")))?
            .into()
    } else {
        chunk.data.clone()
    };
    if raw.len() != chunk.raw_len as usize || ChunkHash::of(&raw) != hash {
        return Err(Error::corrupt(format!("the {} bytes that came for chunk {hash} are not its bytes", raw.len())));
    }
    Ok(raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agfs_core::ErrorKind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_unpacks_to_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..5_000), zeros in 0usize..5_000) {
            let mut raw = bytes;
            raw.resize(raw.len() + zeros, 0);
            let chunk = encode(Bytes::from(raw.clone()));
            prop_assert_eq!(chunk.hash, ChunkHash::of(&raw));
            prop_assert!(!chunk.zstd || chunk.data.len() * 10 <= raw.len() * 9);
            prop_assert_eq!(EncodedChunk::from_wire(chunk.clone().into_wire()).unwrap(), chunk.clone());
            prop_assert_eq!(&decode(&chunk).unwrap()[..], &raw[..]);
        }

        #[test]
        fn no_damage_goes_unnoticed_or_panics(at in 0usize..4_000, bit in 0u8..8, zeros: bool) {
            let raw: Vec<u8> = (0..4_000u32).map(|i| if zeros { 0 } else { (i * 7 % 251) as u8 }).collect();
            let chunk = encode(Bytes::from(raw.clone()));
            let mut data = chunk.data.to_vec();
            let at = at % data.len();
            data[at] ^= 1 << bit;
            // A flipped bit in a frame may be one that changes no byte of the result.
            if let Ok(decoded) = decode(&EncodedChunk { data: data.into(), ..chunk }) {
                prop_assert_eq!(&decoded[..], &raw[..]);
            }
        }
    }

    #[test]
    fn false_lengths_are_damage() {
        let chunk = encode(Bytes::from(vec![7u8; 1_000]));
        for raw_len in [0, 999, 1_001, u32::MAX] {
            let bad = EncodedChunk { raw_len, ..chunk.clone() };
            assert_eq!(decode(&bad).unwrap_err().kind(), ErrorKind::Corrupt, "{raw_len}");
        }
    }
}
