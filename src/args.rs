//! Which of the free arguments is the space: decided by their count, then by whether there is a current space, then by form.
//!
//! | call | no current space | inside a mount, or with AGFS_SPACE |
//! |---|---|---|
//! | `rollback X` | usage error | X is the reference |
//! | `rollback X Y` | space, reference | space, reference |
//! | `diff X Y` | space, reference | two references, unless X is the current space |
//! | `log X` | X is the space, unless `/…` | X is a path when it looks like one or exists here, else the space |
//! | `undo X` | X is the space | X is the operation when it begins with `op-`, else the space |
//!
//! With `--space`, no argument is a space. Pure: whether a file exists is asked through a function.

use crate::exit::{Failure, Result};
use crate::location::{self, Location, Target};
use std::ffi::{OsStr, OsString};

/// What is known without looking at the arguments.
#[derive(Clone, Debug, Default)]
pub struct Here {
    /// The space given by `--space`.
    pub forced: Option<String>,
    /// The space of the mount that the current directory is in, or else AGFS_SPACE.
    pub current: Option<String>,
}

/// What a left-out space ends with.
pub const NO_SPACE: &str = "no space is named: give SPACE, or --space, or set AGFS_SPACE, or work inside a mount";

impl Here {
    /// The space meant where none is an argument.
    pub fn space(&self) -> Option<&str> {
        self.forced.as_deref().or(self.current.as_deref())
    }

    /// The same, or a usage error.
    pub fn required(&self) -> Result<String> {
        self.space().map(str::to_owned).ok_or_else(|| Failure::usage(NO_SPACE))
    }

    /// `[SPACE]`
    pub fn optional_space(&self, arg: Option<String>) -> Result<String> {
        match (arg, &self.forced) {
            (Some(arg), Some(forced)) if arg != *forced => Err(twice(&arg, forced)),
            (Some(arg), _) => Ok(arg),
            (None, _) => self.required(),
        }
    }

    /// `[SPACE] REF`
    pub fn space_and_ref(&self, args: Vec<String>) -> Result<(String, String)> {
        match <[String; 2]>::try_from(args) {
            Ok([space, reference]) => Ok((self.optional_space(Some(space))?, reference)),
            Err(args) => match args.into_iter().next() {
                Some(reference) => match self.space() {
                    Some(space) => Ok((space.to_owned(), reference)),
                    None => Err(Failure::usage(format!("only {reference:?} is given, and {NO_SPACE}"))),
                },
                None => Err(Failure::usage("a reference is missing")),
            },
        }
    }

    /// `[SPACE] [OP]`
    pub fn space_and_op(&self, args: Vec<String>) -> Result<(String, Option<String>)> {
        let mut args = args.into_iter();
        match (args.next(), args.next()) {
            (Some(space), Some(op)) => Ok((self.optional_space(Some(space))?, Some(op))),
            (Some(arg), None) if self.forced.is_some() || arg.starts_with("op-") => Ok((self.required()?, Some(arg))),
            (Some(space), None) => Ok((space, None)),
            (None, _) => Ok((self.required()?, None)),
        }
    }

    /// `[SPACE] A [B]`: the space, the reference before, and the reference after (empty: now).
    pub fn diff(&self, args: Vec<String>) -> Result<(String, String, String)> {
        let mut args = args.into_iter();
        match (args.next(), args.next(), args.next()) {
            (Some(space), Some(a), Some(b)) => Ok((self.optional_space(Some(space))?, a, b)),
            (Some(x), Some(y), None) => match self.space() {
                Some(space) if self.forced.is_some() || x != space => Ok((space.to_owned(), x, y)),
                _ => Ok((x, y, String::new())),
            },
            (Some(a), None, None) => match self.space() {
                Some(space) if self.forced.is_some() || a != space => Ok((space.to_owned(), a, String::new())),
                Some(_) => Err(Failure::usage(format!(
                    "{a:?} is the current space; which reference is it to be compared with?"
                ))),
                None => Err(Failure::usage(format!("only {a:?} is given, and {NO_SPACE}"))),
            },
            _ => Err(Failure::usage("the reference to compare with is missing")),
        }
    }

    /// `[SPACE] [PATH]`; `SPACE[@REF]:/PATH` too. `exists` says whether a relative path is there, from the current directory.
    pub fn log(&self, args: Vec<OsString>, exists: impl Fn(&OsStr) -> bool) -> Result<LogArgs> {
        let of_space = |space: String, path: Option<Target>| LogArgs { space, at: String::new(), path };
        let mut args = args.into_iter();
        match (args.next(), args.next()) {
            (None, _) => Ok(of_space(self.required()?, None)),
            (Some(space), Some(path)) => {
                let space = text(&space, "the space")?;
                Ok(of_space(self.optional_space(Some(space))?, Some(location::parse_path(location::bytes(&path))?)))
            }
            (Some(arg), None) => {
                let bytes = location::bytes(&arg);
                let inside = self.space().is_some();
                let bare = inside && !location::names_a_space(bytes) && (bytes.contains(&b'/') || exists(&arg));
                if self.forced.is_some() || bare {
                    return Ok(of_space(self.required()?, Some(location::parse_path(bytes)?)));
                }
                match location::parse_target(bytes)? {
                    Target::Location(Location { space, at, path }) => {
                        let space = space.map_or_else(|| self.required(), Ok)?;
                        Ok(LogArgs { space, at, path: path.map(Target::Absolute) })
                    }
                    path => Ok(of_space(self.required()?, Some(path))),
                }
            }
        }
    }

    /// `[SPACE[@REF]] NEW`: the space, the reference (empty: now) and the new name.
    pub fn fork(&self, args: Vec<OsString>) -> Result<(String, String, String)> {
        let mut args = args.into_iter();
        match (args.next(), args.next()) {
            (Some(from), Some(new)) => {
                let from = location::parse(location::bytes(&from))?;
                if from.path.is_some() {
                    return Err(Failure::usage(format!(
                        "{:?} names a path; a fork takes the whole space",
                        from.to_string()
                    )));
                }
                Ok((self.optional_space(from.space)?, from.at, text(&new, "the new name")?))
            }
            (Some(new), None) => Ok((self.required()?, String::new(), text(&new, "the new name")?)),
            _ => Err(Failure::usage("the name of the new space is missing")),
        }
    }
}

/// What `log` is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogArgs {
    /// The space.
    pub space: String,
    /// Where to look from; empty for the present.
    pub at: String,
    /// The file, if the versions of one are wanted.
    pub path: Option<Target>,
}

/// Takes `--json` from the end of the arguments after `--`, where programs append it: no path has that form (a file of
/// this name is `./--json`). Says whether it was there.
pub fn take_json(paths: &mut Vec<OsString>) -> bool {
    let there = paths.last().is_some_and(|p| p == "--json");
    if there {
        paths.pop();
    }
    there
}

fn text(arg: &OsStr, what: &str) -> Result<String> {
    arg.to_str().map(str::to_owned).ok_or_else(|| Failure::usage(format!("{what} must be text: {arg:?}")))
}

fn twice(arg: &str, forced: &str) -> Failure {
    Failure::usage(format!("two spaces are named: {arg:?} and --space {forced:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(forced: Option<&str>, current: Option<&str>) -> Here {
        Here { forced: forced.map(Into::into), current: current.map(Into::into) }
    }
    fn v(args: &[&str]) -> Vec<String> {
        args.iter().map(|s| s.to_string()).collect()
    }
    fn os(args: &[&str]) -> Vec<OsString> {
        args.iter().map(Into::into).collect()
    }
    fn s(a: &str, b: &str, c: &str) -> (String, String, String) {
        (a.into(), b.into(), c.into())
    }

    #[test]
    fn a_reference_alone_needs_a_current_space() {
        assert_eq!(here(None, None).space_and_ref(v(&["s", "r"])).unwrap(), ("s".into(), "r".into()));
        assert_eq!(here(None, Some("m")).space_and_ref(v(&["r"])).unwrap(), ("m".into(), "r".into()));
        assert_eq!(here(None, Some("m")).space_and_ref(v(&["s", "r"])).unwrap(), ("s".into(), "r".into()));
        let error = here(None, None).space_and_ref(v(&["r"])).unwrap_err();
        assert!(error.code() == 2 && error.to_string().contains("AGFS_SPACE"), "{error}");
        assert!(here(Some("a"), None).space_and_ref(v(&["s", "r"])).is_err());
    }

    #[test]
    fn diff_with_two_arguments_depends_on_where_one_is() {
        assert_eq!(here(None, None).diff(v(&["s", "r"])).unwrap(), s("s", "r", ""));
        assert_eq!(here(None, Some("m")).diff(v(&["a", "b"])).unwrap(), s("m", "a", "b"));
        assert_eq!(here(None, Some("m")).diff(v(&["m", "a"])).unwrap(), s("m", "a", ""));
        assert_eq!(here(Some("m"), None).diff(v(&["m", "b"])).unwrap(), s("m", "m", "b"));
        assert_eq!(here(None, Some("m")).diff(v(&["a"])).unwrap(), s("m", "a", ""));
        assert_eq!(here(None, Some("m")).diff(v(&["s", "a", "b"])).unwrap(), s("s", "a", "b"));
        assert!(here(None, None).diff(v(&["a"])).is_err());
        assert!(here(None, Some("m")).diff(v(&["m"])).is_err());
    }

    #[test]
    fn undo_knows_operations_by_their_form() {
        assert_eq!(here(None, None).space_and_op(v(&["s"])).unwrap(), ("s".into(), None));
        assert_eq!(here(None, Some("m")).space_and_op(v(&["op-1-2"])).unwrap(), ("m".into(), Some("op-1-2".into())));
        assert_eq!(here(None, Some("m")).space_and_op(v(&[])).unwrap(), ("m".into(), None));
        assert!(here(None, None).space_and_op(v(&[])).is_err());
        assert!(here(None, None).space_and_op(v(&["op-1-2"])).is_err());
    }

    #[test]
    fn log_of_a_space_or_a_file() {
        let there = |name: &OsStr| name == "doc.md";
        let log = |h: Here, args: &[&str]| h.log(os(args), there).unwrap();
        let path = |p: &str| Some(Target::Absolute(p.into()));
        let of = |space: &str, at: &str, path| LogArgs { space: space.into(), at: at.into(), path };
        assert_eq!(log(here(None, None), &["s"]), of("s", "", None));
        assert_eq!(log(here(None, None), &["s", "/doc.md"]), of("s", "", path("/doc.md")));
        assert_eq!(log(here(None, None), &["s@seq:5:/doc.md"]), of("s", "seq:5", path("/doc.md")));
        assert_eq!(log(here(None, Some("m")), &["/a"]), of("m", "", path("/a")));
        assert_eq!(log(here(None, Some("m")), &["doc.md"]), of("m", "", Some(Target::Relative(b"doc.md".into()))));
        assert_eq!(log(here(None, Some("m")), &["a/b"]), of("m", "", Some(Target::Relative(b"a/b".into()))));
        assert_eq!(log(here(None, Some("m")), &["other"]), of("other", "", None));
        assert_eq!(log(here(None, None), &["doc.md"]), of("doc.md", "", None));
        assert!(here(None, None).log(os(&["/a"]), there).is_err());
    }

    #[test]
    fn fork_takes_a_reference() {
        assert_eq!(here(None, None).fork(os(&["s@before", "n"])).unwrap(), s("s", "before", "n"));
        assert_eq!(here(None, Some("m")).fork(os(&["n"])).unwrap(), s("m", "", "n"));
        assert_eq!(here(None, Some("m")).fork(os(&["@-1", "n"])).unwrap(), s("m", "@-1", "n"));
        assert!(here(None, None).fork(os(&["s:/x", "n"])).is_err());
    }

    #[test]
    fn json_at_the_end_of_paths_is_the_option() {
        let mut paths = os(&["/doc.md", "--json"]);
        assert!(take_json(&mut paths) && paths == os(&["/doc.md"]));
        assert!(!take_json(&mut paths));
    }
}
