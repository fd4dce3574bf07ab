//! Locations: `SPACE[@REF][:/PATH]`, and what stands for a path where the space is known. Pure parsing: nothing is looked up.
//!
//! A path is bytes. One that no terminal can carry may be written `b64:BASE64` (of the absolute path) in place of `/PATH`;
//! JSON output gives that text as `path_b64`.

use crate::when::parse_absolute;
use agfs_core::reference;
use agfs_core::space::check_space_name;
use agfs_core::{Error, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::os::unix::ffi::OsStrExt;

/// A place in a space, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The space by name or id; `None` where the current one is meant (`@REF:/PATH`).
    pub space: Option<String>,
    /// The reference, in the form that the server reads; empty for the present.
    pub at: String,
    /// The absolute path, if one was given.
    pub path: Option<Vec<u8>>,
}

/// What an argument that may be a location or a path turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A place in a named space, or in the current one at a reference.
    Location(Location),
    /// An absolute path in the current space.
    Absolute(Vec<u8>),
    /// A path from the current directory (it begins with `.`).
    Relative(Vec<u8>),
}

/// Reads `SPACE[@REF][:/PATH]`. Fails with `InvalidArgument` that shows the form.
pub fn parse(text: &[u8]) -> Result<Location> {
    let shown = || String::from_utf8_lossy(text).into_owned();
    let bad = |why: String| Error::invalid(format!("{:?} is not SPACE[@REF][:/PATH]: {why}", shown()));
    let (head, path) = split_path(text).map_err(&bad)?;
    let head = std::str::from_utf8(head).map_err(|_| bad("the space and reference must be text".into()))?;
    let (space, at) = match head.split_once('@') {
        Some((space, at)) => (space, reference_text(at).map_err(|e| bad(e.message().to_owned()))?),
        None => (head, String::new()),
    };
    if space.is_empty() && at.is_empty() {
        return Err(bad("it names no space".into()));
    }
    if !space.is_empty() {
        check_space_name(space).map_err(|e| bad(e.message().to_owned()))?;
    }
    Ok(Location { space: (!space.is_empty()).then(|| space.to_owned()), at, path })
}

/// Reads an argument where the space may be left out: `/…` and `./…` are paths, everything else is a location.
pub fn parse_target(text: &[u8]) -> Result<Target> {
    if let Some(path) = plain_path(text)? {
        return Ok(path);
    }
    parse(text).map(Target::Location)
}

/// Reads a path argument where no space can stand: `/…`, `b64:…`, or relative to the current directory.
pub fn parse_path(text: &[u8]) -> Result<Target> {
    match plain_path(text)? {
        Some(path) => Ok(path),
        None if text.is_empty() => Err(Error::invalid("an empty path; write /PATH from the root of the space")),
        None => Ok(Target::Relative(text.to_vec())),
    }
}

/// Whether a copy's argument means a place in a space: a space's name (or nothing) up to `@` or `:`, and then `:/`, `:b64:` or
/// the end. `./a:/b` and `/a:/b` are local files.
pub fn names_a_space(text: &[u8]) -> bool {
    let name_end = text.iter().position(|b| matches!(b, b'@' | b':' | b'/')).unwrap_or(text.len());
    let name_ok = std::str::from_utf8(&text[..name_end]).is_ok_and(|n| n.is_empty() || check_space_name(n).is_ok());
    let marked = text.get(name_end) == Some(&b'@') || (name_end > 0 && text.get(name_end) == Some(&b':'));
    name_ok && marked && matches!(split_path(text), Ok((_, Some(_))))
}

/// The reference in the form that the server reads: `-1` and `2h` after an `@` are `@-1` and `@2h`.
fn reference_text(text: &str) -> Result<String> {
    let relative = text.strip_prefix('-').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        || reference::parse_duration(text).is_some();
    let full = if relative { format!("@{text}") } else { text.to_owned() };
    reference::parse(&full, parse_absolute)?;
    Ok(full)
}

/// Splits off the path: it begins after the first `:` that `/` or `b64:` follows, and no reference holds those.
fn split_path(text: &[u8]) -> std::result::Result<(&[u8], Option<Vec<u8>>), String> {
    for (at, _) in text.iter().enumerate().filter(|(_, b)| **b == b':') {
        let (head, rest) = (&text[..at], &text[at + 1..]);
        if rest.starts_with(b"/") {
            return Ok((head, Some(rest.to_vec())));
        }
        if let Some(coded) = rest.strip_prefix(b"b64:") {
            return decode(coded).map(|path| (head, Some(path)));
        }
        if rest.is_empty() {
            return Ok((head, Some(b"/".to_vec())));
        }
    }
    Ok((text, None))
}

fn plain_path(text: &[u8]) -> Result<Option<Target>> {
    if let Some(coded) = text.strip_prefix(b"b64:") {
        return decode(coded).map(|p| Some(Target::Absolute(p))).map_err(Error::invalid);
    }
    let relative = matches!(text, b"." | b"..") || text.starts_with(b"./") || text.starts_with(b"../");
    Ok(match text.first() {
        Some(b'/') => Some(Target::Absolute(text.to_vec())),
        _ if relative => Some(Target::Relative(text.to_vec())),
        _ => None,
    })
}

fn decode(coded: &[u8]) -> std::result::Result<Vec<u8>, String> {
    match STANDARD.decode(coded) {
        Ok(path) if path.starts_with(b"/") => Ok(path),
        Ok(_) => Err("the path after 'b64:' must begin with '/'".into()),
        Err(error) => Err(format!("what follows 'b64:' is not base64: {error}")),
    }
}

/// Bytes as base64, as they stand in JSON and after `b64:`.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The location as text that reads back the same.
impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.space.as_deref().unwrap_or_default())?;
        if !self.at.is_empty() {
            write!(f, "@{}", self.at)?;
        }
        match self.path.as_deref().map(|p| (p, std::str::from_utf8(p))) {
            None => Ok(()),
            Some((_, Ok(path))) if path.starts_with('/') => write!(f, ":{path}"),
            Some((bytes, _)) => write!(f, ":b64:{}", encode(bytes)),
        }
    }
}

/// Makes `path`, given from the directory `base` (absolute, in the space), absolute: `.` and `..` are taken away.
/// Fails with `InvalidArgument` when it leaves the root.
pub fn absolute(base: &[u8], path: &[u8]) -> Result<Vec<u8>> {
    let mut names: Vec<&[u8]> = Vec::new();
    for part in base.split(|&b| b == b'/').chain(path.split(|&b| b == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => {
                if names.pop().is_none() {
                    let shown = String::from_utf8_lossy(path);
                    return Err(Error::invalid(format!("the path {shown:?} leads out of the space")));
                }
            }
            name => names.push(name),
        }
    }
    let mut out = Vec::new();
    names.iter().for_each(|name| {
        out.push(b'/');
        out.extend_from_slice(name);
    });
    if out.is_empty() {
        out.push(b'/');
    }
    Ok(out)
}

/// The last name of an absolute path; empty for the root.
pub fn last_name(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&b| b != b'/').map_or(0, |n| n + 1);
    let start = path[..end].iter().rposition(|&b| b == b'/').map_or(0, |n| n + 1);
    &path[start..end]
}

/// The bytes of an argument.
pub fn bytes(text: &std::ffi::OsStr) -> &[u8] {
    text.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn loc(space: &str, at: &str, path: Option<&[u8]>) -> Location {
        Location { space: (!space.is_empty()).then(|| space.into()), at: at.into(), path: path.map(<[u8]>::to_vec) }
    }

    #[test]
    fn every_form() {
        for (text, want) in [
            ("s1", loc("s1", "", None)),
            ("s1:/doc.md", loc("s1", "", Some(b"/doc.md"))),
            ("s1:", loc("s1", "", Some(b"/"))),
            ("s1@seq:5:/doc.md", loc("s1", "seq:5", Some(b"/doc.md"))),
            ("s1@seq:5", loc("s1", "seq:5", None)),
            ("s1@before:/a:/b", loc("s1", "before", Some(b"/a:/b"))),
            ("s1@-1:/x", loc("s1", "@-1", Some(b"/x"))),
            ("s1@@-1:/x", loc("s1", "@-1", Some(b"/x"))),
            ("s1@2h", loc("s1", "@2h", None)),
            ("s1@2026-01-02T03:04:05Z:/x", loc("s1", "2026-01-02T03:04:05Z", Some(b"/x"))),
            ("s1@2026-01-02T03:04:05+01:00", loc("s1", "2026-01-02T03:04:05+01:00", None)),
            ("@cp-7:/x", loc("", "cp-7", Some(b"/x"))),
            ("s1:b64:L/8=", loc("s1", "", Some(b"/\xff"))),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_location() {
        for text in ["", ":/x", "a/b", "s1@", "s1@@:x", "s1:x", "s1@a/b", "-x:/y", "s1:b64:!", "s1:b64:eA=="] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?} → {:?}", parse(text.as_bytes()));
        }
    }

    #[test]
    fn a_copy_tells_local_files_from_spaces() {
        for text in ["s1:/x", "s1:", "s1@seq:5:/x", "@before:/x", "s1:b64:L3g="] {
            assert!(names_a_space(text.as_bytes()), "{text}");
        }
        for text in ["x", "./s1:/x", "/s1:/x", "a/b:/c", "s1:x", "..", "-:/x", ":/x"] {
            assert!(!names_a_space(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn paths_from_a_directory() {
        assert_eq!(absolute(b"/a/b", b"./c").unwrap(), b"/a/b/c");
        assert_eq!(absolute(b"/a/b", b"../..").unwrap(), b"/");
        assert!(absolute(b"/a", b"../../x").is_err());
        assert_eq!(last_name(b"/a/b/"), b"b");
        assert_eq!(last_name(b"/"), b"");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text: Vec<u8>) {
            let _ = (parse(&text), parse_target(&text), parse_path(&text), names_a_space(&text), absolute(b"/a", &text));
            let _ = last_name(&text);
        }

        #[test]
        fn no_text_near_the_grammar_makes_it_panic(text in "[a@:/0-9b64.-]{0,24}") {
            let _ = (parse(text.as_bytes()), names_a_space(text.as_bytes()));
        }

        #[test]
        fn what_parses_prints_and_parses_the_same(
            space in "[a-z][a-z0-9._-]{0,8}",
            at in prop_oneof![Just(String::new()), "seq:[0-9]{1,6}", "cp-[0-9]{1,5}", "@-[1-9]", "@[1-9][smhdw]", "[a-z]{3,9}"],
            path in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20)),
        ) {
            let path = path.map(|p| [&b"/"[..], &p].concat());
            let location = Location { space: Some(space), at, path };
            let text = location.to_string();
            prop_assert_eq!(parse(text.as_bytes()), Ok(location), "{}", text);
        }
    }
}
