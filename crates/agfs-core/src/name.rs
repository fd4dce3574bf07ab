//! A name in a directory: bytes, checked once.
//!
//! Names are not text. Nothing here or above may assume UTF-8 or fold case.

use crate::error::{Error, ErrorKind, Result};
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The longest name, in bytes, as on ext4.
pub const MAX_NAME: usize = 255;

/// A directory entry's name: 1 to 255 bytes, any but `/` and NUL, and not `.` or `..`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<[u8]>);

impl Name {
    /// Checks `bytes`. Fails with `NameTooLong` over 255 bytes and with `InvalidArgument` when the bytes are
    /// empty, are `.` or `..`, or hold `/` or NUL.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(64)]).into_owned();
        if bytes.len() > MAX_NAME {
            return Err(Error::new(
                ErrorKind::NameTooLong,
                format!("the name {:?}… has {} bytes; a name has at most {MAX_NAME}", shown(), bytes.len()),
            ));
        }
        if bytes.is_empty() {
            return Err(Error::invalid("a name may not be empty"));
        }
        if bytes == b"." || bytes == b".." {
            return Err(Error::invalid(format!("{:?} is not a name that an entry can have", shown())));
        }
        if let Some(&bad) = bytes.iter().find(|&&b| b == b'/' || b == 0) {
            let what = if bad == 0 { "NUL" } else { "'/'" };
            return Err(Error::invalid(format!("the name {:?} holds {what}, which no name may", shown())));
        }
        Ok(Name(bytes.into()))
    }

    /// The bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name for people: bytes that are not UTF-8 are replaced.
    pub fn display(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_limits_of_a_name() {
        for bad in [&b""[..], b".", b"..", b"a/b", b"a\0b", b"/", b"\0"] {
            assert_eq!(Name::new(bad).map_err(|e| e.kind()), Err(ErrorKind::InvalidArgument), "{bad:?}");
        }
        assert_eq!(Name::new(&[b'x'; 256]).map_err(|e| e.kind()), Err(ErrorKind::NameTooLong));
        for good in [&b"..."[..], b"-", b" ", b"\xff\xfe", b"\n", &[b'x'; 255]] {
            assert_eq!(Name::new(good).map(|n| n.as_bytes().to_vec()), Ok(good.to_vec()));
        }
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_kept_byte_for_byte(bytes: Vec<u8>) {
            if let Ok(name) = Name::new(&bytes) {
                prop_assert_eq!(name.as_bytes(), &bytes[..]);
                prop_assert!(!bytes.contains(&b'/') && !bytes.contains(&0));
            }
        }
    }
}
