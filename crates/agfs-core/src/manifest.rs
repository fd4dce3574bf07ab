//! What a file consists of: an ordered list of extents, each a piece of a chunk or a hole.
//!
//! Pure list arithmetic. Where chunks are, how they are compressed and who has them is not known here.

use crate::error::{Error, ErrorKind, Result};
use crate::id::ChunkHash;

/// The largest file, in bytes: what a signed 64-bit offset can reach, as on ext4's interface.
pub const MAX_FILE_SIZE: u64 = i64::MAX as u64;
/// The largest chunk, in bytes, before compression.
pub const MAX_CHUNK: u32 = 4 << 20;
/// A file up to this size, in bytes, is stored as one chunk.
pub const SINGLE_CHUNK: u64 = 512 << 10;
/// A manifest of up to this many extents is kept with its node, a longer one in segments.
pub const INLINE_EXTENTS: usize = 8;
/// In-place changes are rounded out to blocks of this many bytes.
pub const BLOCK: u64 = 64 << 10;

/// A piece of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSlice {
    /// Which chunk.
    pub hash: ChunkHash,
    /// Where in the chunk the piece begins, in bytes.
    pub offset: u32,
}

/// `len` bytes of a file: a piece of a chunk, or zeros that are stored nowhere (a hole).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Length in bytes, never zero in a well-formed manifest.
    pub len: u64,
    /// The bytes, or `None` for a hole.
    pub chunk: Option<ChunkSlice>,
}

impl Extent {
    /// A hole of `len` bytes.
    pub const fn hole(len: u64) -> Self {
        Extent { len, chunk: None }
    }

    /// The first `len` bytes of the chunk `hash`.
    pub const fn whole(hash: ChunkHash, len: u64) -> Self {
        Extent { len, chunk: Some(ChunkSlice { hash, offset: 0 }) }
    }

    /// The part of this extent that begins `skip` bytes in and is at most `len` long.
    fn part(&self, skip: u64, len: u64) -> Extent {
        let len = len.min(self.len.saturating_sub(skip));
        // A chunk slice never leaves its chunk, and a chunk is far below 4 GiB, so the cast keeps the value.
        let chunk = self.chunk.map(|c| ChunkSlice { hash: c.hash, offset: c.offset.saturating_add(skip as u32) });
        Extent { len, chunk }
    }

    /// Whether `next` carries on where this extent ends, so that both can be one.
    fn joins(&self, next: &Extent) -> bool {
        match (self.chunk, next.chunk) {
            (None, None) => true,
            (Some(a), Some(b)) => a.hash == b.hash && u64::from(a.offset) + self.len == u64::from(b.offset),
            _ => false,
        }
    }
}

/// The replacement of `len` bytes at `offset` by `with`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// Where, in bytes from the beginning of the file.
    pub offset: u64,
    /// How many old bytes go; what lies beyond the end counts as zeros.
    pub len: u64,
    /// What comes in their place.
    pub with: Vec<Extent>,
}

/// The extents of one file, in order, without gaps: their lengths add up to the file's size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    extents: Vec<Extent>,
}

impl Manifest {
    /// The manifest of an empty file.
    pub const fn empty() -> Self {
        Manifest { extents: Vec::new() }
    }

    /// Checks and normalises a list from outside: drops empty extents and joins neighbours. Fails with
    /// `InvalidArgument` when a slice leaves the largest possible chunk, and with `FileTooLarge` over 2^63-1 bytes.
    pub fn new(extents: impl IntoIterator<Item = Extent>) -> Result<Self> {
        let mut manifest = Manifest::empty();
        let mut size = 0u64;
        for extent in extents {
            if let Some(c) = extent.chunk
                && u64::from(c.offset).saturating_add(extent.len) > u64::from(MAX_CHUNK)
            {
                return Err(Error::invalid(format!(
                    "an extent reaches byte {} of chunk {}; a chunk has at most {MAX_CHUNK}",
                    u64::from(c.offset).saturating_add(extent.len),
                    c.hash
                )));
            }
            size = size.saturating_add(extent.len);
            if size > MAX_FILE_SIZE {
                return Err(Error::new(
                    ErrorKind::FileTooLarge,
                    format!("a file of {size} bytes is larger than {MAX_FILE_SIZE}"),
                ));
            }
            manifest.push(extent);
        }
        Ok(manifest)
    }

    /// The extents in order.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// The size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.extents.iter().map(|e| e.len).sum()
    }

    /// How many bytes are stored (not holes).
    pub fn allocated(&self) -> u64 {
        self.extents.iter().filter(|e| e.chunk.is_some()).map(|e| e.len).sum()
    }

    fn push(&mut self, extent: Extent) {
        match self.extents.last_mut() {
            _ if extent.len == 0 => {}
            Some(last) if last.joins(&extent) => last.len += extent.len,
            _ => self.extents.push(extent),
        }
    }

    /// The extents that cover `len` bytes from `offset`, cut to fit; shorter where the file ends.
    pub fn slice(&self, offset: u64, len: u64) -> Vec<Extent> {
        let end = offset.saturating_add(len);
        let (mut at, mut out) = (0u64, Vec::new());
        for extent in &self.extents {
            let stop = at.saturating_add(extent.len);
            if stop > offset && at < end {
                let skip = offset.saturating_sub(at);
                out.push(extent.part(skip, end.min(stop) - at - skip));
            }
            if stop >= end {
                break;
            }
            at = stop;
        }
        out
    }

    /// This file with every splice applied, in the order given, then cut or extended with a hole to `size` bytes.
    /// Fails as [`Manifest::new`] does.
    pub fn spliced(&self, splices: &[Splice], size: u64) -> Result<Self> {
        let mut current = self.clone();
        for splice in splices {
            let old = current.size();
            let mut next = current.slice(0, splice.offset);
            if splice.offset > old {
                next.push(Extent::hole(splice.offset - old));
            }
            next.extend_from_slice(&splice.with);
            next.extend(current.slice(splice.offset.saturating_add(splice.len), u64::MAX));
            current = Manifest::new(next)?;
        }
        current.resized(size)
    }

    /// This file cut or extended with a hole to `size` bytes. Fails with `FileTooLarge` over 2^63-1.
    pub fn resized(&self, size: u64) -> Result<Self> {
        let mut extents = self.slice(0, size);
        let have = self.size();
        if size > have {
            extents.push(Extent::hole(size - have));
        }
        Manifest::new(extents)
    }

    /// The content hash: for a file that is exactly one whole chunk the chunk's own hash (the BLAKE3 of the bytes),
    /// for an empty file the BLAKE3 of nothing, for any other the BLAKE3 of its list of extents in a context of its own.
    pub fn content_hash(&self) -> ChunkHash {
        match self.extents.as_slice() {
            [] => ChunkHash::of(b""),
            [Extent { chunk: Some(c), len }] if c.offset == 0 && *len <= SINGLE_CHUNK => c.hash,
            extents => {
                let mut hasher = blake3::Hasher::new_derive_key("agfs 2026 manifest of extents");
                for e in extents {
                    hasher.update(&e.len.to_le_bytes());
                    let slice = e.chunk.unwrap_or(ChunkSlice { hash: ChunkHash([0; 32]), offset: u32::MAX });
                    hasher.update(&slice.offset.to_le_bytes());
                    hasher.update(&slice.hash.0);
                }
                ChunkHash(*hasher.finalize().as_bytes())
            }
        }
    }

    /// Every chunk that the file needs, in order of first use, possibly more than once.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkHash> + '_ {
        self.extents.iter().filter_map(|e| e.chunk.map(|c| c.hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file as plain labels: each byte is (chunk, offset in it), or none in a hole.
    fn bytes(m: &Manifest) -> Vec<Option<(u8, u32)>> {
        m.extents()
            .iter()
            .flat_map(|e| (0..e.len).map(move |i| e.chunk.map(|c| (c.hash.0[0], c.offset + i as u32))))
            .collect()
    }

    fn extent() -> impl Strategy<Value = Extent> {
        (0u64..20, 0u8..4, 0u32..30).prop_map(|(len, chunk, offset)| match chunk {
            0 => Extent::hole(len),
            n => Extent { len, chunk: Some(ChunkSlice { hash: ChunkHash([n; 32]), offset }) },
        })
    }

    proptest! {
        #[test]
        fn splicing_is_what_it_is_on_plain_bytes(
            start in proptest::collection::vec(extent(), 0..8),
            edits in proptest::collection::vec((0u64..80, 0u64..40, proptest::collection::vec(extent(), 0..3)), 0..5),
            size in 0u64..120,
        ) {
            let m = Manifest::new(start).unwrap();
            let mut model = bytes(&m);
            let splices: Vec<_> = edits.into_iter().map(|(offset, len, with)| Splice { offset, len, with }).collect();
            for s in &splices {
                let (from, to) = (s.offset as usize, (s.offset + s.len) as usize);
                if model.len() < from { model.resize(from, None); }
                let tail = model.split_off(from);
                model.extend(bytes(&Manifest::new(s.with.clone()).unwrap()));
                model.extend(tail.into_iter().skip(to - from));
            }
            model.resize(size as usize, None);
            let got = m.spliced(&splices, size).unwrap();
            prop_assert_eq!(got.size(), size);
            prop_assert_eq!(bytes(&got), model);
        }

        #[test]
        fn a_slice_is_that_part_of_the_bytes(start in proptest::collection::vec(extent(), 0..8), offset in 0u64..100, len in 0u64..100) {
            let m = Manifest::new(start).unwrap();
            let want: Vec<_> = bytes(&m).into_iter().skip(offset as usize).take(len as usize).collect();
            prop_assert_eq!(bytes(&Manifest::new(m.slice(offset, len)).unwrap()), want);
        }
    }

    #[test]
    fn sizes_beyond_the_limit_are_refused() {
        assert_eq!(Manifest::new([Extent::hole(1 << 63)]).map_err(|e| e.kind()), Err(ErrorKind::FileTooLarge));
        assert!(Manifest::empty().resized(MAX_FILE_SIZE).is_ok());
        assert_eq!(
            Manifest::new([Extent {
                len: u64::from(MAX_CHUNK),
                chunk: Some(ChunkSlice { hash: ChunkHash([1; 32]), offset: 1 })
            }])
            .map_err(|e| e.kind()),
            Err(ErrorKind::InvalidArgument)
        );
    }
}
