//! The format of a pack: pure encoding and decoding. Nothing here opens a file or trusts a byte.
//!
//! ```text
//! pack    = header record* footer          all numbers little-endian
//! header  = "AGPACK" 00 01 | pack id 16                                                       24 bytes
//! record  = "CHNK" | flags 1 | 0 0 0 | raw_len 4 | stored_len 4 | hash 32 | check 4 | data     52 + stored_len
//! footer  = entry* | count 4 | entries_len 4 | check 16 | "AGPKEND1"
//! entry   = hash 32 | offset 4 | stored_len 4 | raw_len 4 | flags 1                           45 bytes
//! ```
//! `flags` bit 0: the data is a zstd frame. A record's `check` is over its header only: its data is checked by its hash.
//! The checks are the first bytes of a BLAKE3. A pack that is being written has no footer; the records say it all.

use super::codec::{EncodedChunk, MAX_ENCODED};
use super::pack_id::PackId;
use agfs_core::manifest::MAX_CHUNK;
use agfs_core::{ChunkHash, Error, Result};
use bytes::Bytes;

/// Bytes before the first record.
pub const HEADER_LEN: usize = 24;
/// Bytes of a record before its data.
pub const RECORD_HEADER_LEN: usize = 52;
/// Bytes at the end of a finished pack that say how long its footer is.
pub const TRAILER_LEN: usize = 32;
/// The largest pack: offsets have 32 bits, and there must be room for a last record and the footer.
pub const MAX_PACK: u64 = 1 << 30;

const ENTRY_LEN: usize = 45;
const PACK_MAGIC: &[u8; 8] = b"AGPACK\x00\x01";
const RECORD_MAGIC: &[u8; 4] = b"CHNK";
const END_MAGIC: &[u8; 8] = b"AGPKEND1";
const ZSTD: u8 = 1;

/// Where one chunk lies in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which chunk.
    pub hash: ChunkHash,
    /// Where its record begins, in bytes from the beginning of the pack.
    pub offset: u32,
    /// The length of the stored data, without the record's header.
    pub stored_len: u32,
    /// The length of the plain bytes.
    pub raw_len: u32,
    /// Whether the data is a zstd frame.
    pub zstd: bool,
}

impl Entry {
    /// Where the record ends.
    pub fn end(&self) -> u64 {
        u64::from(self.offset) + RECORD_HEADER_LEN as u64 + u64::from(self.stored_len)
    }
}

/// Reads fields off the front of a slice; every read can fail, none can panic.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn flags(&mut self) -> Option<bool> {
        match self.take::<1>()? {
            [0] => Some(false),
            [ZSTD] => Some(true),
            _ => None,
        }
    }
}

fn check<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    let mut out = [0; N];
    hasher.finalize_xof().fill(&mut out);
    out
}

/// The first bytes of a pack.
pub fn encode_header(id: PackId) -> [u8; HEADER_LEN] {
    let mut out = [0; HEADER_LEN];
    out[..8].copy_from_slice(PACK_MAGIC);
    out[8..].copy_from_slice(&id.0);
    out
}

/// Appends the record of a chunk. The caller has checked the chunk, so its lengths are within the limits.
pub fn encode_record(chunk: &EncodedChunk, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(RECORD_MAGIC);
    out.extend_from_slice(&[u8::from(chunk.zstd), 0, 0, 0]);
    out.extend_from_slice(&chunk.raw_len.to_le_bytes());
    out.extend_from_slice(&(chunk.data.len() as u32).to_le_bytes());
    out.extend_from_slice(&chunk.hash.0);
    let sum = check::<4>(&[&out[start..]]);
    out.extend_from_slice(&sum);
    out.extend_from_slice(&chunk.data);
}

/// The header of the record at the beginning of `bytes`, as an entry at `offset`; `None` when there is none.
pub fn decode_record_header(bytes: &[u8], offset: u32) -> Option<Entry> {
    let head = bytes.get(..RECORD_HEADER_LEN)?;
    let mut fields = Fields(head);
    if fields.take()? != *RECORD_MAGIC {
        return None;
    }
    let zstd = fields.flags()?;
    if fields.take()? != [0; 3] {
        return None;
    }
    let (raw_len, stored_len) = (fields.u32()?, fields.u32()?);
    let hash = ChunkHash(fields.take()?);
    let sum: [u8; 4] = fields.take()?;
    if check::<4>(&[head.get(..RECORD_HEADER_LEN - 4)?]) != sum || raw_len > MAX_CHUNK || stored_len > MAX_ENCODED {
        return None;
    }
    Some(Entry { hash, offset, stored_len, raw_len, zstd })
}

/// The record at the beginning of `bytes`, with its chunk as stored; `None` when it is not whole. The chunk is not
/// checked against its hash.
pub fn decode_record(bytes: &Bytes, offset: u32) -> Option<(Entry, EncodedChunk)> {
    let entry = decode_record_header(bytes, offset)?;
    let end = RECORD_HEADER_LEN.checked_add(entry.stored_len as usize)?;
    if end > bytes.len() {
        return None;
    }
    let data = bytes.slice(RECORD_HEADER_LEN..end);
    Some((entry, EncodedChunk { hash: entry.hash, data, zstd: entry.zstd, raw_len: entry.raw_len }))
}

/// Every whole record of the pack `bytes` in order, found without its footer. Where a header is damaged, goes on at the
/// next one that is not: what lies between is lost, what lies behind need not be.
pub fn records(bytes: &Bytes) -> impl Iterator<Item = (Entry, EncodedChunk)> + '_ {
    let mut at = HEADER_LEN;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let offset = u32::try_from(at).ok()?;
            if let Some(found) = decode_record(&bytes.slice(at..), offset) {
                at = usize::try_from(found.0.end()).ok()?;
                return Some(found);
            }
            let rest = bytes.get(at + 1..)?;
            at += 1 + rest.windows(RECORD_MAGIC.len()).position(|w| w == RECORD_MAGIC)?;
        }
        None
    })
}

/// The footer that finishes a pack of these entries.
pub fn encode_footer(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(encoded_footer_len(entries.len()));
    for e in entries {
        out.extend_from_slice(&e.hash.0);
        for number in [e.offset, e.stored_len, e.raw_len] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.push(u8::from(e.zstd));
    }
    let entries_len = out.len() as u32;
    out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    out.extend_from_slice(&entries_len.to_le_bytes());
    let sum = check::<16>(&[&out]);
    out.extend_from_slice(&sum);
    out.extend_from_slice(END_MAGIC);
    out
}

/// How long the footer of a pack of `count` chunks is, in bytes.
pub const fn encoded_footer_len(count: usize) -> usize {
    count * ENTRY_LEN + TRAILER_LEN
}

/// How long the footer is, from the last [`TRAILER_LEN`] bytes of a pack. Fails with `Corrupt` when they are no trailer.
pub fn footer_len(trailer: &[u8]) -> Result<u64> {
    let parse = || {
        let mut fields = Fields(trailer.get(trailer.len().checked_sub(TRAILER_LEN)?..)?);
        let (count, entries_len) = (fields.u32()?, fields.u32()?);
        fields.take::<16>()?;
        let fits = u64::from(count) * ENTRY_LEN as u64 == u64::from(entries_len) && fields.take()? == *END_MAGIC;
        fits.then_some(u64::from(entries_len) + TRAILER_LEN as u64)
    };
    parse().ok_or_else(|| Error::corrupt("the pack does not end with a footer"))
}

/// The entries of a pack from its last bytes, at least the whole footer. Fails with `Corrupt` when it does not match its
/// checksum.
pub fn decode_footer(tail: &[u8]) -> Result<Vec<Entry>> {
    let length = usize::try_from(footer_len(tail)?).unwrap_or(usize::MAX);
    let damaged = || Error::corrupt("the footer of the pack is damaged");
    let footer = tail.len().checked_sub(length).and_then(|start| tail.get(start..)).ok_or_else(damaged)?;
    let (summed, rest) = footer.split_at_checked(length - 24).ok_or_else(damaged)?;
    if rest.get(..16) != Some(&check::<16>(&[summed])) {
        return Err(damaged());
    }
    let entries = summed.get(..length - TRAILER_LEN).ok_or_else(damaged)?;
    let decode = |bytes: &[u8]| {
        let mut fields = Fields(bytes);
        let hash = ChunkHash(fields.take()?);
        let (offset, stored_len, raw_len) = (fields.u32()?, fields.u32()?, fields.u32()?);
        Some(Entry { hash, offset, stored_len, raw_len, zstd: fields.flags()? })
    };
    entries.chunks_exact(ENTRY_LEN).map(|bytes| decode(bytes).ok_or_else(damaged)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::codec::{decode, encode};
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn build(contents: &[Vec<u8>]) -> (Bytes, Vec<Entry>) {
        let (mut bytes, mut entries) = (encode_header(PackId([5; 16])).to_vec(), Vec::new());
        for content in contents {
            let chunk = encode(content.clone().into()).unwrap();
            let offset = bytes.len() as u32;
            encode_record(&chunk, &mut bytes);
            let stored_len = chunk.data.len() as u32;
            entries.push(Entry { hash: chunk.hash, offset, stored_len, raw_len: chunk.raw_len, zstd: chunk.zstd });
        }
        bytes.extend_from_slice(&encode_footer(&entries));
        (bytes.into(), entries)
    }

    fn contents() -> impl Strategy<Value = Vec<Vec<u8>>> {
        vec(vec(0u8..3, 0..300), 0..6)
    }

    proptest! {
        #[test]
        fn footer_and_records_tell_the_same(contents in contents()) {
            let (bytes, entries) = build(&contents);
            prop_assert_eq!(&decode_footer(&bytes).unwrap(), &entries);
            let footer = footer_len(&bytes).unwrap() as usize;
            prop_assert_eq!(&decode_footer(&bytes[bytes.len() - footer..]).unwrap(), &entries);
            let found: Vec<_> = records(&bytes).collect();
            prop_assert_eq!(&found.iter().map(|f| f.0).collect::<Vec<_>>(), &entries);
            let raw: Vec<_> = found.iter().map(|f| decode(&f.1).unwrap()).collect();
            prop_assert_eq!(raw, contents);
        }

        #[test]
        fn a_cut_pack_keeps_its_whole_records(contents in contents(), cut in any::<prop::sample::Index>()) {
            let (bytes, entries) = build(&contents);
            let length = cut.index(bytes.len());
            let found: Vec<_> = records(&bytes.slice(..length)).map(|f| f.0).collect();
            let whole: Vec<_> = entries.iter().copied().filter(|e| e.end() <= length as u64).collect();
            prop_assert_eq!(found, whole);
        }

        #[test]
        fn a_flipped_bit_never_gives_other_bytes(contents in contents(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let (bytes, entries) = build(&contents);
            let mut damaged = bytes.to_vec();
            let at = at.index(damaged.len());
            damaged[at] ^= 1 << bit;
            let damaged = Bytes::from(damaged);
            for (entry, chunk) in records(&damaged) {
                let hit = (u64::from(entry.offset)..entry.end()).contains(&(at as u64));
                prop_assert!(entries.contains(&entry));
                prop_assert!(hit || decode(&chunk).is_ok());
                // What decodes has the right hash: zstd has a few bits that mean nothing.
                if let Ok(raw) = decode(&chunk) { prop_assert!(contents.iter().any(|c| *c == raw)); }
            }
            // At most the record that was hit is missing.
            prop_assert!(records(&damaged).filter(|(_, c)| decode(c).is_ok()).count() + 1 >= entries.len());
            if let Ok(found) = decode_footer(&damaged) { prop_assert_eq!(found, entries); }
        }

        #[test]
        fn no_bytes_make_the_decoders_panic(bytes in vec(any::<u8>(), 0..400), magic in 0usize..3, at in any::<prop::sample::Index>()) {
            let mut bytes = bytes;
            let magic: &[u8] = [RECORD_MAGIC.as_slice(), END_MAGIC, b""][magic];
            let at = at.index(bytes.len() + 1);
            bytes.splice(at..at, magic.iter().copied());
            let bytes = Bytes::from(bytes);
            let _ = (decode_footer(&bytes), footer_len(&bytes), decode_record_header(&bytes, 0), records(&bytes).count());
        }

        #[test]
        fn headers_with_a_right_checksum_but_wild_lengths_do_not_panic(raw_len: u32, stored_len: u32, count: u32, entries_len: u32) {
            let mut bytes = encode_header(PackId([0; 16])).to_vec();
            let start = bytes.len();
            bytes.extend_from_slice(b"CHNK\x01\0\0\0");
            bytes.extend_from_slice(&raw_len.to_le_bytes());
            bytes.extend_from_slice(&stored_len.to_le_bytes());
            bytes.extend_from_slice(&[7; 32]);
            let sum = check::<4>(&[&bytes[start..]]);
            bytes.extend_from_slice(&sum);
            let end = bytes.len();
            bytes.extend_from_slice(&count.to_le_bytes());
            bytes.extend_from_slice(&entries_len.to_le_bytes());
            let sum = check::<16>(&[&bytes[end..]]);
            bytes.extend_from_slice(&sum);
            bytes.extend_from_slice(END_MAGIC);
            let bytes = Bytes::from(bytes);
            prop_assert!(decode_footer(&bytes).is_err() || count == 0);
            prop_assert!(records(&bytes).all(|(entry, _)| entry.end() <= bytes.len() as u64));
        }
    }
}
