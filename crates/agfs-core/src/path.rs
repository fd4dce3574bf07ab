//! Paths within a space: absolute, of checked names. Resolving one needs a tree and happens elsewhere.

use crate::error::{Error, ErrorKind, Result};
use crate::name::Name;

/// The longest path, in bytes, as the operating system has it.
pub const MAX_PATH: usize = 4_096;

/// Splits a path into names. `/` and the empty path are the root; repeated and trailing slashes and `.` are ignored.
/// Fails with `InvalidArgument` on `..` (a space has no outside) and as [`Name::new`] does, and with `NameTooLong`
/// from 4,096 bytes on.
pub fn parse(path: &[u8]) -> Result<Vec<Name>> {
    if path.len() >= MAX_PATH {
        return Err(Error::new(
            ErrorKind::NameTooLong,
            format!("the path has {} bytes; a path has fewer than {MAX_PATH}", path.len()),
        ));
    }
    path.split(|&b| b == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .map(|part| {
            if part == b".." {
                return Err(Error::invalid(format!(
                    "the path {:?} goes up with '..'; give it from the root of the space",
                    String::from_utf8_lossy(path)
                )));
            }
            Name::new(part)
        })
        .collect()
}

/// The absolute path of these names, as bytes.
pub fn join<'a>(names: impl IntoIterator<Item = &'a Name>) -> Vec<u8> {
    let mut out = Vec::new();
    for name in names {
        out.push(b'/');
        out.extend_from_slice(name.as_bytes());
    }
    if out.is_empty() {
        out.push(b'/');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_parses_joins_to_a_path_that_parses_the_same(path: Vec<u8>) {
            if let Ok(names) = parse(&path) {
                prop_assert_eq!(parse(&join(&names)), Ok(names));
            }
        }
    }

    #[test]
    fn the_limits_of_a_path() {
        assert_eq!(parse(b"//a/./b/"), parse(b"/a/b"));
        assert_eq!(parse(b"").map(|p| p.len()), Ok(0));
        assert!(parse(b"/a/../b").is_err());
        assert_eq!(parse(&[b'a'; 4096]).map_err(|e| e.kind()), Err(ErrorKind::NameTooLong));
        assert_eq!(parse(&[b'/'; 4095]).map(|p| p.len()), Ok(0));
    }
}
