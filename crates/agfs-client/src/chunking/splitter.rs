//! Where a stream of bytes is cut. A small file is one chunk; a larger one is cut where its content says (FastCDC), and
//! long runs of zeros become holes.

use super::codec::{EncodedChunk, encode};
use agfs_core::Result;
use agfs_core::manifest::{Extent, SINGLE_CHUNK};
use bytes::Bytes;
use fastcdc::v2020::FastCDC;
use std::io::{ErrorKind, Read};

/// Sizes of content-defined chunks, in bytes: least, wanted on average, most.
const CUT: (usize, usize, usize) = (256 << 10, 512 << 10, 2 << 20);
/// Zeros are looked for in blocks of this many bytes, counted from the beginning of the file.
const BLOCK: usize = 4 << 10;
/// The shortest run of zeros that becomes a hole, in bytes.
const HOLE: u64 = 64 << 10;
/// How much is gathered before it is cut, in bytes; several chunks, so that cutting moves little memory.
const GATHER: usize = 4 * CUT.2;

/// Cuts a stream of bytes into extents and chunks. Give it the bytes with [`Splitter::push`], then call
/// [`Splitter::finish`]. It holds at most 9 MiB.
#[derive(Default)]
pub struct Splitter {
    extents: Vec<Extent>,
    /// Bytes that are not cut yet.
    data: Vec<u8>,
    /// Zeros after `data` whose run is not at its end yet.
    zeros: u64,
    /// An incomplete block after them.
    block: Vec<u8>,
    /// Whether more than a single chunk's worth has come.
    large: bool,
}

impl Splitter {
    /// A splitter at the beginning of a file.
    pub fn new() -> Self {
        Splitter::default()
    }

    /// Takes the next bytes; chunks that are complete go to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<EncodedChunk>) {
        if !self.large {
            if (self.data.len() + bytes.len()) as u64 <= SINGLE_CHUNK {
                self.data.extend_from_slice(bytes);
                return;
            }
            self.large = true;
            let held = std::mem::take(&mut self.data);
            self.blocks(&held, out);
        }
        self.blocks(bytes, out);
    }

    fn blocks(&mut self, mut bytes: &[u8], out: &mut Vec<EncodedChunk>) {
        if !self.block.is_empty() {
            let (more, rest) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(more);
            bytes = rest;
            if self.block.len() < BLOCK {
                return;
            }
            let block = std::mem::take(&mut self.block);
            self.take_block(&block, out);
        }
        let mut whole = bytes.chunks_exact(BLOCK);
        for block in &mut whole {
            self.take_block(block, out);
        }
        self.block.extend_from_slice(whole.remainder());
    }

    fn take_block(&mut self, block: &[u8], out: &mut Vec<EncodedChunk>) {
        if is_zero(block) {
            self.zeros += block.len() as u64;
            return;
        }
        self.end_zeros(out);
        self.data.extend_from_slice(block);
        if self.data.len() >= GATHER {
            self.cut(CUT.2, out);
        }
    }

    /// Ends a run of zeros: a hole when it is long, otherwise bytes like others.
    fn end_zeros(&mut self, out: &mut Vec<EncodedChunk>) {
        let zeros = std::mem::take(&mut self.zeros);
        if zeros >= HOLE {
            self.cut(0, out);
            self.extents.push(Extent::hole(zeros));
        } else {
            // Less than `HOLE`, so it fits.
            self.data.resize(self.data.len() + zeros as usize, 0);
        }
    }

    /// Cuts chunks off while more than `keep` bytes are left.
    fn cut(&mut self, keep: usize, out: &mut Vec<EncodedChunk>) {
        let mut at = 0;
        // A gear's cut depends on at most the longest chunk's bytes, so keeping that many makes cuts independent of how the
        // bytes were pushed.
        for piece in FastCDC::new(&self.data, CUT.0, CUT.1, CUT.2) {
            if self.data.len() - at <= keep {
                break;
            }
            if let Some(raw) = self.data.get(piece.offset..piece.offset + piece.length) {
                let chunk = encode(Bytes::copy_from_slice(raw));
                self.extents.push(Extent::whole(chunk.hash, raw.len() as u64));
                out.push(chunk);
                at = piece.offset + piece.length;
            }
        }
        self.data.drain(..at);
    }

    /// Ends the file; the last chunks go to `out`. Returns the extents of the whole file, none for an empty one.
    pub fn finish(mut self, out: &mut Vec<EncodedChunk>) -> Vec<Extent> {
        if !self.large {
            if !self.data.is_empty() {
                let chunk = encode(Bytes::from(std::mem::take(&mut self.data)));
                self.extents.push(Extent::whole(chunk.hash, u64::from(chunk.raw_len)));
                out.push(chunk);
            }
            return self.extents;
        }
        let block = std::mem::take(&mut self.block);
        if !block.is_empty() {
            self.take_block(&block, out);
        }
        self.end_zeros(out);
        self.cut(0, out);
        self.extents
    }
}

/// Cuts bytes that are all there.
pub fn split(bytes: &[u8]) -> (Vec<Extent>, Vec<EncodedChunk>) {
    let (mut splitter, mut out) = (Splitter::new(), Vec::new());
    splitter.push(bytes, &mut out);
    (splitter.finish(&mut out), out)
}

/// Cuts what a reader gives, to its end, and hands every chunk to `each` as soon as it is complete. Blocks while reading.
/// Fails with `Io` when reading fails, and as `each` does.
pub fn split_reader(mut reader: impl Read, mut each: impl FnMut(EncodedChunk) -> Result<()>) -> Result<Vec<Extent>> {
    let (mut splitter, mut out) = (Splitter::new(), Vec::new());
    let mut buffer = vec![0u8; 1 << 20];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => splitter.push(buffer.get(..n).unwrap_or_default(), &mut out),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(agfs_core::Error::io(format!("reading the content failed: {e}"))),
        }
        out.drain(..).try_for_each(&mut each)?;
    }
    let extents = splitter.finish(&mut out);
    out.into_iter().try_for_each(each)?;
    Ok(extents)
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().fold(0u8, |all, &b| all | b) == 0
}
