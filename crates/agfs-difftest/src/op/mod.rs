//! File operations as plain data: what a generator makes, a target does, and a failure is shrunk to.
//!
//! Small numbers name files: a path is made of names out of a short table, an open file is a slot. No operation depends on
//! what an earlier one answered, so every part of a script is a script. Each operation is one line of words, and reads
//! back. Nothing here does anything.

mod fields;
mod path;
mod text;
mod token;

pub use fields::{Count, Falloc, Flags, Mode, On, Owner, Renaming, Special, Stamp, Switch, Whence, Who, XName};
pub use fields::{XHow, XValue};
pub use path::{NAMES, Path, Slot};
pub use text::Script;
pub use token::Token;

macro_rules! operations {
    ($( $(#[$doc:meta])* $name:ident = $word:literal { $( $field:ident : $kind:ty ),* } )*) => {
        /// One operation.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names of the fields are those of the calls' manual pages")]
        pub enum Op { $( $(#[$doc])* $name { $( $field: $kind ),* } ),* }

        impl Op {
            /// The word that its line begins with.
            pub const fn word(&self) -> &'static str {
                match self { $( Op::$name { .. } => $word ),* }
            }

            /// The operation as words, without the first.
            fn words(&self) -> Vec<String> {
                match self { $( Op::$name { $( $field ),* } => vec![ $( Token::show($field) ),* ] ),* }
            }

            /// Reads an operation: its first word, and the others in turn.
            fn read<'a>(word: &str, rest: &mut impl Iterator<Item = &'a str>) -> Result<Op, String> {
                match word {
                    $( $word => Ok(Op::$name { $( $field: token::next(rest, stringify!($field))? ),* }), )*
                    other => Err(format!("{other:?} is no operation")),
                }
            }

            /// Operations like this with one field made simpler.
            pub fn simpler(&self) -> Vec<Op> {
                let mut all = Vec::new();
                match self { $( Op::$name { $( $field ),* } => { $(
                    for simple in Token::simpler($field) {
                        let mut op = self.clone();
                        if let Op::$name { $field: place, .. } = &mut op {
                            *place = simple;
                        }
                        all.push(op);
                    }
                )* } ),* }
                all
            }

            /// The paths that it names, in order.
            pub fn paths(&self) -> Vec<&Path> {
                let all: Vec<Option<&Path>> = match self {
                    $( Op::$name { $( $field ),* } => vec![ $( Token::path($field) ),* ] ),*
                };
                all.into_iter().flatten().collect()
            }

            /// The open files that it names, in order, without those that paths start from.
            pub fn slots(&self) -> Vec<Slot> {
                let all: Vec<Option<Slot>> = match self {
                    $( Op::$name { $( $field ),* } => vec![ $( Token::slot($field) ),* ] ),*
                };
                all.into_iter().flatten().collect()
            }
        }
    };
}

operations! {
    /// `openat`. What was in the slot is closed first. `O_NONBLOCK` is always added.
    Open = "open" { slot: Slot, at: Path, flags: Flags, mode: Mode }
    /// `openat` of the `/proc/self/fd` entry of another slot.
    Reopen = "reopen" { slot: Slot, from: Slot, flags: Flags }
    /// `close`.
    Close = "close" { slot: Slot }
    /// `read` at the file's position.
    Read = "read" { slot: Slot, len: Count }
    /// `write` at the file's position.
    Write = "write" { slot: Slot, len: Count, fill: u8 }
    /// `pread`.
    Pread = "pread" { slot: Slot, at: Count, len: Count }
    /// `pwrite`.
    Pwrite = "pwrite" { slot: Slot, at: Count, len: Count, fill: u8 }
    /// A shared mapping that is read, as far as the file goes.
    MapRead = "mapread" { slot: Slot, at: Count, len: Count }
    /// A shared mapping that is written, as far as the file goes, perhaps synced, and taken away.
    MapWrite = "mapwrite" { slot: Slot, at: Count, len: Count, fill: u8, sync: Switch }
    /// `lseek`. For data and holes the answer is judged, not told, and the position becomes `at`.
    Seek = "seek" { slot: Slot, whence: Whence, at: Count }
    /// `truncate` or `ftruncate`.
    Truncate = "truncate" { on: On, size: Count }
    /// `fallocate`.
    Fallocate = "fallocate" { slot: Slot, how: Falloc, at: Count, len: Count }
    /// `copy_file_range`.
    Copy = "copy" { from: Slot, from_at: Count, to: Slot, to_at: Count, len: Count }
    /// `fsync`, or `fdatasync`.
    Sync = "sync" { slot: Slot, data_only: Switch }
    /// `renameat2`.
    Rename = "rename" { from: Path, to: Path, how: Renaming }
    /// `linkat`, following a link at `from` or not.
    Link = "link" { from: Path, to: Path, follow: Switch }
    /// `linkat` of an open file, by its `/proc/self/fd` entry.
    LinkFd = "linkfd" { slot: Slot, to: Path }
    /// `unlinkat`.
    Unlink = "unlink" { at: Path }
    /// `unlinkat` with `AT_REMOVEDIR`.
    Rmdir = "rmdir" { at: Path }
    /// `mkdirat`.
    Mkdir = "mkdir" { at: Path, mode: Mode }
    /// `symlinkat`.
    Symlink = "symlink" { target: Path, at: Path }
    /// `readlinkat`.
    Readlink = "readlink" { at: Path }
    /// `mknodat`.
    Mknod = "mknod" { at: Path, what: Special, mode: Mode }
    /// `chmod` or `fchmod`.
    Chmod = "chmod" { on: On, mode: Mode }
    /// `chown`, `lchown` or `fchown`.
    Chown = "chown" { on: On, uid: Owner, gid: Owner }
    /// `utimensat` or `futimens`.
    Utimens = "utimens" { on: On, atime: Stamp, mtime: Stamp }
    /// `setxattr`, `lsetxattr` or `fsetxattr`.
    Setxattr = "setxattr" { on: On, name: XName, value: XValue, how: XHow }
    /// `getxattr` and its sisters.
    Getxattr = "getxattr" { on: On, name: XName }
    /// `listxattr` and its sisters: the names of this table, sorted.
    Listxattr = "listxattr" { on: On }
    /// `removexattr` and its sisters.
    Removexattr = "removexattr" { on: On, name: XName }
    /// `access`.
    Access = "access" { at: Path, mode: Mode }
    /// `stat`, `lstat` or `fstat`.
    Stat = "stat" { on: On }
    /// The entries of a directory, sorted: names and kinds.
    List = "list" { on: On }
    /// What follows is done by this user.
    As = "as" { who: Who }
    /// The whole tree. Observes only, and as the user who began.
    Tree = "tree" { }
}

impl Op {
    /// Operations that only look, at all that this one may have touched.
    pub fn looks(&self) -> Vec<Op> {
        let mut looks = Vec::new();
        for path in self.paths() {
            let ends = [Some(path.clone()), path.parent()];
            looks.extend(ends.into_iter().flatten().map(|p| Op::Stat { on: On::Link(p) }));
        }
        for slot in self.slots() {
            looks.extend(self.window().map(|(at, len)| Op::Pread { slot, at, len }));
        }
        if let Op::Rename { from, to, .. } = self {
            looks.extend([from, to].map(|p| Op::List { on: On::Path(p.clone()) }));
        }
        looks
    }

    /// Whether the call takes no directory, so that it is made from within the one that its path starts from.
    pub const fn is_made_within(&self) -> bool {
        use Op::{Getxattr, Listxattr, Removexattr, Setxattr, Truncate};
        matches!(self, Truncate { .. } | Setxattr { .. } | Getxattr { .. } | Listxattr { .. } | Removexattr { .. })
    }

    /// The bytes to look at after a change of content: a little more than what was changed.
    fn window(&self) -> Option<(Count, Count)> {
        let around = |at: Count, len: Count| (Count(at.0.saturating_sub(5_000)), Count(len.0.min(2 << 20) + 10_000));
        match *self {
            Op::Pwrite { at, len, .. } | Op::MapWrite { at, len, .. } | Op::Fallocate { at, len, .. } => {
                Some(around(at, len))
            }
            Op::Copy { to_at, len, .. } => Some(around(to_at, len)),
            Op::Write { .. } | Op::Open { .. } | Op::Reopen { .. } => Some((Count(0), Count(64 << 10))),
            Op::Truncate { size, .. } => Some(around(size, Count(0))),
            _ => None,
        }
    }
}
