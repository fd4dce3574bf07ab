//! Bytes into chunks and back: where a file is cut, what becomes a hole, how a chunk is packed. Pure; nothing is sent here.

mod codec;
mod splitter;

pub use codec::{EncodedChunk, decode, encode};
pub use splitter::{Splitter, split, split_reader};
