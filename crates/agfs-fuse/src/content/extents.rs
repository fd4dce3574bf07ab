//! Where each byte of a committed content is, for reading at any offset. Pure.

use agfs_core::manifest::{ChunkSlice, Manifest};
use std::ops::Range;

/// A run of bytes of a file within one chunk, or a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Length in bytes.
    pub len: u64,
    /// Where the bytes are; `None` for zeros.
    pub chunk: Option<ChunkSlice>,
}

/// A manifest with the offset of each extent.
#[derive(Debug)]
pub struct Extents {
    manifest: Manifest,
    starts: Vec<u64>,
    size: u64,
}

impl Extents {
    /// Adds the offsets to a manifest.
    pub fn new(manifest: Manifest) -> Self {
        let mut size = 0u64;
        let starts = manifest
            .extents()
            .iter()
            .map(|extent| {
                let start = size;
                size = size.saturating_add(extent.len);
                start
            })
            .collect();
        Extents { manifest, starts, size }
    }

    /// The index of the extent that holds `offset`.
    fn index(&self, offset: u64) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// The pieces that make up `range`; what lies beyond the end is zeros.
    pub fn pieces(&self, range: Range<u64>) -> Vec<Piece> {
        let (mut at, mut out) = (range.start, Vec::new());
        let extents = self.manifest.extents().iter().zip(&self.starts).skip(self.index(at));
        for (extent, start) in extents {
            if at >= range.end || *start >= range.end {
                break;
            }
            let skip = at.saturating_sub(*start);
            let len = extent.len.saturating_sub(skip).min(range.end - at);
            // A slice lies within a chunk, and a chunk is far below 4 GiB, so the sum keeps its value.
            let chunk = extent.chunk.map(|c| ChunkSlice { hash: c.hash, offset: c.offset.saturating_add(skip as u32) });
            if len > 0 {
                out.push(Piece { len, chunk });
                at += len;
            }
        }
        if at < range.end {
            out.push(Piece { len: range.end - at, chunk: None });
        }
        out
    }

    /// The ranges below `limit` that are stored bytes.
    pub fn data(&self, limit: u64) -> impl Iterator<Item = Range<u64>> {
        self.manifest
            .extents()
            .iter()
            .zip(&self.starts)
            .filter(|(extent, _)| extent.chunk.is_some())
            .map(move |(extent, start)| *start..start.saturating_add(extent.len).min(limit))
            .filter(|range| range.start < range.end)
    }

    /// The chunks of the extents that follow `offset`, at most `count`, the one that holds `offset` left out.
    pub fn chunks_after(&self, offset: u64, count: usize) -> Vec<agfs_core::ChunkHash> {
        let mut hashes: Vec<_> = self
            .manifest
            .extents()
            .iter()
            .skip(self.index(offset) + 1)
            .filter_map(|extent| extent.chunk.map(|c| c.hash))
            .take(count)
            .collect();
        hashes.dedup();
        hashes
    }

    /// How many extents there are.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// The size of the file in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agfs_core::ChunkHash;
    use agfs_core::manifest::Extent;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_are_what_the_manifest_slices(lens in proptest::collection::vec((1u64..30, 0u8..3), 0..12), from in 0u64..200, len in 0u64..200) {
            let manifest = Manifest::new(lens.iter().map(|(len, chunk)| match chunk {
                0 => Extent::hole(*len),
                n => Extent { len: *len, chunk: Some(ChunkSlice { hash: ChunkHash([*n; 32]), offset: 3 }) },
            })).unwrap();
            let pieces = Extents::new(manifest.clone()).pieces(from..from + len);
            prop_assert_eq!(pieces.iter().map(|p| p.len).sum::<u64>(), len);
            let mut want = manifest.slice(from, len);
            want.push(Extent::hole(len - want.iter().map(|e| e.len).sum::<u64>()));
            let got = Manifest::new(pieces.iter().map(|p| Extent { len: p.len, chunk: p.chunk })).unwrap();
            prop_assert_eq!(got, Manifest::new(want).unwrap());
        }
    }
}
