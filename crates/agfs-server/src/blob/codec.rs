//! A chunk as it travels and as it is stored: compressed when that helps, always with the hash of its plain bytes.
//!
//! Pure functions of bytes. Decompression is bounded by the stated length, which is bounded by the largest chunk, so no
//! input makes it take more memory than that.

use agfs_core::manifest::MAX_CHUNK;
use agfs_core::{ChunkHash, Error, Result};
use bytes::Bytes;
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// The most bytes the encoded form of a chunk may have: the largest chunk, and what zstd adds when nothing shrinks.
pub const MAX_ENCODED: u32 = MAX_CHUNK + MAX_CHUNK / 128 + 512;

/// Level 1: chunks are compressed while somebody waits, and what a higher level gains on source text is a few percent.
const LEVEL: i32 = 1;
/// Below this many bytes the frame around the compressed data eats what it saves.
const MIN_COMPRESSED: usize = 64;

/// A chunk, possibly compressed. Whether the data is what the hash says is for [`decode`] to find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedChunk {
    /// The hash of the plain bytes.
    pub hash: ChunkHash,
    /// The bytes as stored.
    pub data: Bytes,
    /// Whether `data` is a zstd frame.
    pub zstd: bool,
    /// The length of the plain bytes.
    pub raw_len: u32,
}

thread_local! {
    // A context takes a hundred kilobytes and more to set up, most chunks are smaller.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The chunk of these bytes, compressed when that saves at least a sixteenth. Fails with `InvalidArgument` when there
/// are more bytes than a chunk may have.
pub fn encode(raw: Bytes) -> Result<EncodedChunk> {
    let raw_len = u32::try_from(raw.len()).ok().filter(|len| *len <= MAX_CHUNK);
    let raw_len = raw_len
        .ok_or_else(|| Error::invalid(format!("a chunk has at most {MAX_CHUNK} bytes, this one {}", raw.len())))?;
    let hash = ChunkHash::of(&raw);
    match compress(&raw) {
        Some(data) if data.len() <= raw.len() - raw.len() / 16 => {
            Ok(EncodedChunk { hash, data: data.into(), zstd: true, raw_len })
        }
        _ => Ok(EncodedChunk { hash, data: raw, zstd: false, raw_len }),
    }
}

fn compress(raw: &[u8]) -> Option<Vec<u8>> {
    if raw.len() < MIN_COMPRESSED {
        return None;
    }
    COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Compressor::new(LEVEL).ok();
        }
        slot.as_mut()?.compress(raw).ok()
    })
}

/// The plain bytes, checked: fails with `Corrupt` unless they have the length and the hash that the chunk states.
pub fn decode(chunk: &EncodedChunk) -> Result<Bytes> {
    let wrong = |what: String| Error::corrupt(format!("chunk {}: {what}", chunk.hash));
    if chunk.raw_len > MAX_CHUNK {
        return Err(wrong(format!("its stated length of {} bytes is over the limit of {MAX_CHUNK}", chunk.raw_len)));
    }
    let raw = if chunk.zstd {
        Bytes::from(decompress(&chunk.data, chunk.raw_len as usize).map_err(|e| {
            wrong(format!("its {} stored bytes do not decompress to {} ({e})", chunk.data.len(), chunk.raw_len))
        })?)
    } else {
        chunk.data.clone()
    };
    if raw.len() != chunk.raw_len as usize {
        return Err(wrong(format!("it has {} bytes instead of {}", raw.len(), chunk.raw_len)));
    }
    let hash = ChunkHash::of(&raw);
    if hash != chunk.hash {
        return Err(wrong(format!("its bytes have the hash {hash}")));
    }
    Ok(raw)
}

fn decompress(data: &[u8], capacity: usize) -> std::io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Some(Decompressor::new()?);
        }
        match slot {
            Some(decompressor) => decompressor.decompress(data, capacity),
            None => Err(std::io::Error::other("no decompressor")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agfs_core::ErrorKind;
    use proptest::prelude::*;

    fn kind(chunk: &EncodedChunk) -> Option<ErrorKind> {
        decode(chunk).err().map(|e| e.kind())
    }

    proptest! {
        #[test]
        fn decodes_what_it_encoded(raw in proptest::collection::vec(0u8..4, 0..3000)) {
            let chunk = encode(raw.clone().into()).unwrap();
            prop_assert!(chunk.data.len() <= raw.len());
            prop_assert_eq!(decode(&chunk).unwrap(), raw);
        }

        #[test]
        fn no_bytes_pass_for_another_chunk(data: Vec<u8>, zstd: bool, raw_len: u32) {
            let chunk = EncodedChunk { hash: ChunkHash([9; 32]), data: data.into(), zstd, raw_len };
            prop_assert_eq!(kind(&chunk), Some(ErrorKind::Corrupt));
        }
    }

    #[test]
    fn compresses_only_when_it_helps() {
        assert!(encode(vec![7; 100_000].into()).unwrap().zstd);
        let noise: Vec<u8> = (0..4000u32).flat_map(|n| *blake3::hash(&n.to_le_bytes()).as_bytes()).collect();
        assert!(!encode(noise.into()).unwrap().zstd);
        assert!(!encode(Bytes::from_static(b"short")).unwrap().zstd);
        assert_eq!(encode(Bytes::new()).unwrap().raw_len, 0);
        assert_eq!(
            encode(vec![0; MAX_CHUNK as usize + 1].into()).err().map(|e| e.kind()),
            Some(ErrorKind::InvalidArgument)
        );
    }

    #[test]
    fn a_bomb_is_stopped_at_its_stated_length() {
        let raw = vec![0; 1 << 30];
        let bomb = zstd::bulk::compress(&raw, 1).unwrap();
        let hash = ChunkHash::of(&raw);
        for raw_len in [0, 1000, MAX_CHUNK, MAX_CHUNK + 1, 1 << 30, u32::MAX] {
            let chunk = EncodedChunk { hash, data: bomb.clone().into(), zstd: true, raw_len };
            assert_eq!(kind(&chunk), Some(ErrorKind::Corrupt), "{raw_len}");
        }
    }
}
