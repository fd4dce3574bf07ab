//! Names of packs: 16 bytes that sort by the time of their making and never repeat.
//!
//! The only randomness of the blob room is drawn here, through a function that is passed in.

use agfs_core::time::Clock;
use agfs_core::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// Names one pack for ever: 48 bits of milliseconds since 1970, then 80 random bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackId(pub [u8; 16]);

impl fmt::Display for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackId({self})")
    }
}

impl PackId {
    /// The id written as 32 lower-case hexadecimal digits, if that is what `text` is.
    pub fn parse(text: &str) -> Option<PackId> {
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|n| PackId(n.to_be_bytes()))
    }

    /// The key of the pack's object below the store's prefix: `packs/ab/ID`, where `ab` are the last two digits,
    /// which are random, so that packs spread over directories.
    pub fn object_key(&self) -> String {
        format!("packs/{:02x}/{self}", self.0[15])
    }
}

type Random = dyn Fn(&mut [u8]) -> Result<()> + Send + Sync;

/// Makes new ids.
pub struct PackIds {
    clock: Arc<dyn Clock>,
    random: Box<Random>,
}

impl PackIds {
    /// Ids from this clock and the operating system's randomness.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let random = |bytes: &mut [u8]| {
            getrandom::fill(bytes).map_err(|e| Error::io(format!("the system gives no random bytes: {e}")))
        };
        PackIds { clock, random: Box::new(random) }
    }

    /// An id that was not there before.
    pub fn next(&self) -> Result<PackId> {
        let mut id = [0; 16];
        (self.random)(&mut id[6..])?;
        let millis = u64::try_from(self.clock.now().0 / 1_000_000).unwrap_or(0);
        id[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
        Ok(PackId(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agfs_core::Timestamp;

    struct At(i64);
    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp(self.0)
        }
    }

    #[test]
    fn ids_sort_by_time_differ_and_parse_back() {
        let early = PackIds::new(Arc::new(At(1_800_000_000_000_000_000)));
        let late = PackIds::new(Arc::new(At(1_800_000_000_001_000_000)));
        let (a, b, c) = (early.next().unwrap(), early.next().unwrap(), late.next().unwrap());
        assert!(a != b && a < c && b < c);
        assert_eq!(PackId::parse(&a.to_string()), Some(a));
        for text in ["", "+123456789012345678901234567890ff", "ABCDEF7890123456789012345678901g"] {
            assert_eq!(PackId::parse(text), None);
        }
        let key = a.object_key();
        assert!(key.starts_with("packs/") && key.ends_with(&a.to_string()) && key[6..8] == key[key.len() - 2..]);
    }
}
