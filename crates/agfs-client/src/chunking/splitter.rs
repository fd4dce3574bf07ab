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

#[cfg(test)]
mod tests {
    use super::super::codec::decode;
    use super::*;
    use agfs_core::ChunkHash;
    use agfs_core::manifest::{MAX_CHUNK, Manifest};
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn noise(seed: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; len];
        blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
        bytes
    }

    fn reassemble(extents: &[Extent], chunks: &[EncodedChunk]) -> Vec<u8> {
        let raw: HashMap<ChunkHash, Bytes> = chunks.iter().map(|c| (c.hash, decode(c).unwrap())).collect();
        let mut out = Vec::new();
        for e in extents {
            match e.chunk {
                None => out.resize(out.len() + e.len as usize, 0),
                Some(c) => out.extend_from_slice(&raw[&c.hash][c.offset as usize..][..e.len as usize]),
            }
        }
        out
    }

    /// A piece of a file: bytes that look random, or zeros.
    fn piece() -> impl Strategy<Value = (u64, usize, bool)> {
        (0u64..50, prop_oneof![0usize..10_000, 0usize..1_500_000], any::<bool>())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn chunks_reassemble_to_the_input_however_it_is_pushed(
            pieces in proptest::collection::vec(piece(), 0..5),
            step in prop_oneof![1_000usize..9_000, 100_000usize..3_000_000],
        ) {
            let input: Vec<u8> = pieces
                .iter()
                .flat_map(|&(seed, len, zero)| if zero { vec![0; len] } else { noise(seed, len) })
                .collect();
            let (extents, chunks) = split(&input);
            prop_assert!(reassemble(&extents, &chunks) == input);
            prop_assert!(chunks.iter().all(|c| c.raw_len > 0 && c.raw_len <= MAX_CHUNK));
            prop_assert!(Manifest::new(extents.clone()).unwrap().size() == input.len() as u64);
            let (mut splitter, mut out) = (Splitter::new(), Vec::new());
            input.chunks(step).for_each(|part| splitter.push(part, &mut out));
            prop_assert!(splitter.finish(&mut out) == extents && out == chunks, "the cuts depend on how it was pushed");
            if input.len() as u64 <= SINGLE_CHUNK && !input.is_empty() {
                prop_assert_eq!(chunks.len(), 1);
                prop_assert_eq!(Manifest::new(extents).unwrap().content_hash(), ChunkHash::of(&input));
            }
        }
    }

    #[test]
    fn an_empty_file_has_nothing_and_a_small_one_is_one_chunk_with_the_hash_of_its_bytes() {
        assert_eq!(split(b""), (vec![], vec![]));
        for len in [1, 4_096, SINGLE_CHUNK as usize] {
            let input = noise(1, len);
            let (extents, chunks) = split(&input);
            assert_eq!(extents, [Extent::whole(ChunkHash::of(&input), len as u64)]);
            assert_eq!(chunks.len(), 1);
        }
        assert_eq!(split(&vec![0; 300_000]).1.len(), 1, "a small file of zeros is a chunk too");
        assert!(split(&noise(1, SINGLE_CHUNK as usize + 1)).1.len() <= 3);
    }

    #[test]
    fn long_runs_of_zeros_become_holes_and_short_ones_do_not() {
        let input = [noise(1, 1 << 20), vec![0; 1 << 30], noise(2, 5_000)].concat();
        let (extents, chunks) = split(&input);
        assert_eq!(extents.iter().filter(|e| e.chunk.is_none()).map(|e| e.len).sum::<u64>(), 1 << 30);
        assert_eq!(chunks.iter().map(|c| u64::from(c.raw_len)).sum::<u64>(), (1 << 20) + 5_000);
        let input = [noise(1, 1 << 20), vec![0; 60 << 10], noise(2, 5_000)].concat();
        assert!(split(&input).0.iter().all(|e| e.chunk.is_some()));
        assert_eq!(split(&vec![0; 1 << 20]).0, [Extent::hole(1 << 20)]);
    }

    #[test]
    fn a_change_in_the_middle_leaves_most_chunks_as_they_are() {
        let before = noise(3, 20 << 20);
        let mut after = before.clone();
        after.splice(10 << 20..10 << 20, *b"seventeen bytes !");
        let (old, new) = (split(&before).1, split(&after).1);
        let fresh = new.iter().filter(|c| old.iter().all(|o| o.hash != c.hash)).count();
        assert!(old.len() > 15 && fresh <= 3, "{fresh} of {} are new", new.len());
    }

    #[test]
    fn a_reader_is_cut_like_bytes_and_its_errors_are_told() {
        struct Odd(Vec<u8>, usize);
        impl Read for Odd {
            fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
                self.1 += 1;
                if self.1.is_multiple_of(3) {
                    return Err(ErrorKind::Interrupted.into());
                }
                let n = (self.1 * 777).min(self.0.len()).min(buf.len());
                buf[..n].copy_from_slice(&self.0[..n]);
                self.0.drain(..n);
                Ok(n)
            }
        }
        let input = noise(4, 3 << 20);
        let mut out = Vec::new();
        let extents = split_reader(Odd(input.clone(), 0), |c| {
            out.push(c);
            Ok(())
        });
        assert_eq!((extents.unwrap(), out), split(&input));
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
        }
        assert_eq!(split_reader(Broken, |_| Ok(())).unwrap_err().kind(), agfs_core::ErrorKind::Io);
    }
}
