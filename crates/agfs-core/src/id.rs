//! Identifiers: one macro makes them all, so that they look, print and parse alike.
//!
//! An identifier is a number and nothing more; who allocates it and what it names belong to the rooms above.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

macro_rules! number_ids {
    ($($(#[$doc:meta])* $name:ident, $prefix:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// The next identifier in order; stays at the maximum when there is none.
            #[must_use]
            pub const fn next(self) -> Self { $name(self.0.saturating_add(1)) }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, concat!($prefix, "{}"), self.0) }
        }

        impl FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self> {
                text.strip_prefix($prefix)
                    .filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
                    .and_then(|digits| digits.parse().ok())
                    .map($name)
                    .ok_or_else(|| Error::invalid(format!(concat!("{:?} is not an id of the form ", $prefix, "NUMBER"), text)))
            }
        }
    )* };
}

number_ids! {
    /// A space: a name that points at the head of a timeline.
    SpaceId, "sp-";
    /// Spaces that came from one another by forking share a family, and with it the allocation of file ids.
    FamilyId, "fam-";
    /// One branch of history.
    TimelineId, "tl-";
    /// A node of the tree (the inode number): unique within a family and never reused.
    FileId, "f-";
    /// A mount that is or was live.
    MountId, "m-";
    /// A named sequence number.
    CheckpointId, "cp-";
    /// The position of one change in the history of a space; grows by one a change and never goes back,
    /// not even by a rollback. Zero is before the first change.
    Seq, "seq:";
}

impl FileId {
    /// The root directory of every space.
    pub const ROOT: FileId = FileId(1);
}

/// Identifies one mutating call, whoever repeats it: 64 bits for the client, 64 bits counted by the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId {
    /// Drawn at random when the client starts.
    pub client: u64,
    /// Counted up by the client, one a call.
    pub counter: u64,
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op-{:016x}-{:x}", self.client, self.counter)
    }
}

impl FromStr for OpId {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (client, counter) = text.strip_prefix("op-")?.split_once('-')?;
            let hex = |s: &str| {
                if s.is_empty() || !s.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return None;
                }
                u64::from_str_radix(s, 16).ok()
            };
            Some(OpId { client: hex(client)?, counter: hex(counter)? })
        };
        parse().ok_or_else(|| Error::invalid(format!("{text:?} is not an operation id of the form op-HEX-HEX")))
    }
}

/// The BLAKE3 hash that addresses a chunk, a manifest segment, or the content of a file.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkHash(pub [u8; 32]);

impl ChunkHash {
    /// The hash of `data`.
    pub fn of(data: &[u8]) -> Self {
        ChunkHash(*blake3::hash(data).as_bytes())
    }

    /// The hash in a wire or disk field; fails with `InvalidArgument` unless it has 32 bytes.
    pub fn from_slice(bytes: &[u8]) -> Result<Self> {
        bytes
            .try_into()
            .map(ChunkHash)
            .map_err(|_| Error::invalid(format!("a hash has 32 bytes, this one {}", bytes.len())))
    }
}

impl fmt::Display for ChunkHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for ChunkHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_id_parses_back_from_its_text(n: u64, client: u64, counter: u64) {
            prop_assert_eq!(SpaceId(n).to_string().parse::<SpaceId>(), Ok(SpaceId(n)));
            prop_assert_eq!(Seq(n).to_string().parse::<Seq>(), Ok(Seq(n)));
            let op = OpId { client, counter };
            prop_assert_eq!(op.to_string().parse::<OpId>(), Ok(op));
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,40}") {
            let _ = text.parse::<OpId>();
            let _ = text.parse::<CheckpointId>();
        }
    }

    #[test]
    fn signs_and_blanks_are_not_numbers() {
        for text in ["sp-", "sp-+1", "sp--1", "sp- 1", "1", "sp-1x", "sp-18446744073709551616"] {
            assert!(text.parse::<SpaceId>().is_err(), "{text}");
        }
        assert!("op-+1-2".parse::<OpId>().is_err());
    }
}
