//! Manifests of large files: few extents stay with the node, many go into content-addressed segments, so that changing
//! one block of a large file writes one segment and not the whole list.

use super::{keys, record};
use crate::store::{Batch, Read};
use agfs_core::error::{Error, Result};
use agfs_core::id::ChunkHash;
use agfs_core::manifest::{Extent, INLINE_EXTENTS, Manifest};
use agfs_core::node::{Content, Layout, SegmentRef};
use agfs_proto::{FromWire, Message, ToWire, v1};
use std::sync::Arc;

/// A segment ends at an extent whose hash has these bits zero, but not before `MIN` and not after `MAX` extents: the
/// borders depend on the content alone, so a change in one place leaves the segments of the others as they are.
const BORDER: u8 = 0x7f;
const MIN: usize = 64;
const MAX: usize = 512;

/// Content for a node, with the segments that it needs put into `batch`.
pub fn store(manifest: Manifest, batch: &mut Batch) -> Content {
    if manifest.extents().len() <= INLINE_EXTENTS {
        return Content::inline(manifest);
    }
    let mut refs = Vec::new();
    let mut rest = manifest.extents();
    while !rest.is_empty() {
        let (run, tail) = rest.split_at(border(rest));
        let bytes = run.to_wire().encode_to_vec();
        let hash = ChunkHash::of(&bytes);
        batch.put(keys::segment(hash), bytes);
        refs.push(SegmentRef { len: run.iter().map(|e| e.len).sum(), hash });
        rest = tail;
    }
    Content {
        size: manifest.size(),
        allocated: manifest.allocated(),
        hash: manifest.content_hash(),
        layout: Arc::new(Layout::Segments(refs)),
    }
}

fn border(extents: &[Extent]) -> usize {
    let ends = |e: &Extent| e.chunk.is_some_and(|c| c.hash.0[0] & BORDER == 0);
    let limit = extents.len().min(MAX);
    (MIN..limit).find(|&n| extents.get(n - 1).is_some_and(ends)).unwrap_or(limit)
}

/// All extents of a file. `pending` has segments that are not in the store yet. Fails with `Corrupt` when a segment is
/// missing or is not what its hash says.
pub fn load(read: &dyn Read, pending: &dyn Fn(ChunkHash) -> Option<Vec<u8>>, content: &Content) -> Result<Manifest> {
    let refs = match &*content.layout {
        Layout::Inline(manifest) => return Ok(manifest.clone()),
        Layout::Segments(refs) => refs,
    };
    let mut extents = Vec::new();
    for segment in refs {
        extents.extend(get(read, pending, segment.hash)?);
    }
    Manifest::new(extents)
}

/// The extents of one segment. Fails with `Corrupt`.
pub fn get(read: &dyn Read, pending: &dyn Fn(ChunkHash) -> Option<Vec<u8>>, hash: ChunkHash) -> Result<Vec<Extent>> {
    let bytes = match pending(hash) {
        Some(bytes) => bytes,
        None => read
            .get(&keys::segment(hash))?
            .map(|b| b.to_vec())
            .ok_or_else(|| Error::corrupt(format!("the manifest segment {hash} is missing")))?,
    };
    if ChunkHash::of(&bytes) != hash {
        return Err(Error::corrupt(format!("the manifest segment {hash} does not match its hash")));
    }
    FromWire::from_wire(record::message::<v1::Segment>(&bytes, "manifest segment")?)
}
