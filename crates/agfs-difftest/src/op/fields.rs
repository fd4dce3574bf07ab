//! The other fields of operations: sizes, flags, modes, times, attributes. Each has its own short word.

use super::path::{Path, Slot};
use super::token::Token;

/// A number of bytes, or a place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Count(pub u64);

impl Token for Count {
    fn show(&self) -> String {
        self.0.to_string()
    }

    fn read(word: &str) -> Option<Count> {
        word.parse().ok().map(Count)
    }

    fn simpler(&self) -> Vec<Count> {
        let n = self.0;
        let mut all: Vec<u64> = [0, 1, 4_096, 65_536, 262_144, 1 << 20].into_iter().filter(|c| *c < n).collect();
        if n > 1 {
            all.push(n - n % 4_096);
            // Ever smaller steps down: the way to a border is short.
            all.extend((1..64).map(|shift| n >> shift).take_while(|less| *less > 0).map(|less| n - less));
            all.retain(|c| *c < n);
            all.dedup();
        }
        all.into_iter().map(Count).collect()
    }
}

/// What an operation on an inode is given: a path followed to its end, a path whose last link is not followed (`~a`), or
/// an open file (`#3`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "said above")]
pub enum On {
    Path(Path),
    Link(Path),
    Slot(Slot),
}

impl Token for On {
    fn show(&self) -> String {
        match self {
            On::Path(path) => path.show(),
            On::Link(path) => format!("~{}", path.show()),
            On::Slot(slot) => slot.show(),
        }
    }

    fn read(word: &str) -> Option<On> {
        match word.strip_prefix('~') {
            Some(path) => Path::read(path).map(On::Link),
            None if word.starts_with('#') => Slot::read(word).map(On::Slot),
            None => Path::read(word).map(On::Path),
        }
    }

    fn simpler(&self) -> Vec<On> {
        match self {
            On::Path(path) => path.simpler().into_iter().map(On::Path).collect(),
            On::Link(path) => {
                std::iter::once(On::Path(path.clone())).chain(path.simpler().into_iter().map(On::Link)).collect()
            }
            On::Slot(_) => Vec::new(),
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            On::Path(path) | On::Link(path) => Some(path),
            On::Slot(_) => None,
        }
    }

    fn slot(&self) -> Option<Slot> {
        match self {
            On::Slot(slot) => Some(*slot),
            _ => None,
        }
    }
}

/// Permission bits, or what `access` asks for. In octal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mode(pub u32);

impl Token for Mode {
    fn show(&self) -> String {
        format!("{:o}", self.0)
    }

    fn read(word: &str) -> Option<Mode> {
        u32::from_str_radix(word, 8).ok().map(Mode)
    }

    fn simpler(&self) -> Vec<Mode> {
        if matches!(self.0, 0o644 | 0..8) { Vec::new() } else { vec![Mode(0o644)] }
    }
}

/// A set of bits written as words with `+` between.
macro_rules! bits {
    ($(#[$doc:meta])* $name:ident, $none:literal, [$( $word:literal = $bit:expr ),* $(,)?]) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name(pub i32);

        impl $name {
            const WORDS: &'static [(&'static str, i32)] = &[$( ($word, $bit) ),*];
        }

        impl Token for $name {
            fn show(&self) -> String {
                let words: Vec<&str> = Self::WORDS.iter().filter(|(_, b)| self.0 & b == *b).map(|(w, _)| *w).collect();
                if words.is_empty() { $none.to_owned() } else { words.join("+") }
            }

            fn read(word: &str) -> Option<Self> {
                let mut all = 0;
                for part in word.split('+').filter(|p| *p != $none) {
                    all |= Self::WORDS.iter().find(|(w, _)| *w == part)?.1;
                }
                Some(Self(all))
            }

            fn simpler(&self) -> Vec<Self> {
                let set = Self::WORDS.iter().filter(|(_, b)| self.0 & b == *b);
                set.map(|(_, b)| Self(self.0 & !b)).collect()
            }
        }
    };
}

bits! {
    /// Flags of `open`; `r` is reading only. `tmp` is `O_TMPFILE`.
    Flags, "r", [
        "w" = libc::O_WRONLY, "rw" = libc::O_RDWR, "creat" = libc::O_CREAT, "excl" = libc::O_EXCL,
        "trunc" = libc::O_TRUNC, "append" = libc::O_APPEND, "nofollow" = libc::O_NOFOLLOW,
        "tmp" = libc::O_TMPFILE & !libc::O_DIRECTORY, "dir" = libc::O_DIRECTORY, "path" = libc::O_PATH,
    ]
}

impl Falloc {
    /// Whether all of these bits are set.
    pub const fn has(self, bits: i32) -> bool {
        self.0 & bits == bits
    }
}

impl Flags {
    /// Whether all of these bits are set.
    pub const fn has(self, bits: i32) -> bool {
        self.0 & bits == bits
    }
}

bits! {
    /// Mode of `fallocate`.
    Falloc, "plain", [
        "keep" = libc::FALLOC_FL_KEEP_SIZE, "punch" = libc::FALLOC_FL_PUNCH_HOLE, "zero" = libc::FALLOC_FL_ZERO_RANGE,
    ]
}

/// One of a few words.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $( $variant:ident = $word:literal ),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "its words say it")]
        pub enum $name { $( $variant ),* }

        impl $name {
            /// All of them, the simplest first.
            pub const ALL: &'static [$name] = &[$( $name::$variant ),*];
        }

        impl Token for $name {
            fn show(&self) -> String {
                match self { $( $name::$variant => $word.to_owned() ),* }
            }

            fn read(word: &str) -> Option<Self> {
                match word { $( $word => Some($name::$variant), )* _ => None }
            }

            fn simpler(&self) -> Vec<Self> {
                Self::ALL.iter().copied().take_while(|other| other != self).collect()
            }
        }
    };
}

choice! {
    /// Yes or no.
    Switch { No = "no", Yes = "yes" }
}
choice! {
    /// Flags of `renameat2`.
    Renaming { Plain = "plain", NoReplace = "noreplace", Exchange = "exchange", Both = "noreplace+exchange" }
}
choice! {
    /// What `mknod` makes.
    Special { File = "file", Fifo = "fifo", Socket = "socket" }
}
choice! {
    /// From where `lseek` counts, or what it looks for.
    Whence { Set = "set", End = "end", Data = "data", Hole = "hole" }
}
choice! {
    /// Who does something: the user of the test, or one without privileges.
    Who { Root = "root", User = "user" }
}
choice! {
    /// Flags of `setxattr`.
    XHow { Set = "set", Create = "create", Replace = "replace" }
}
choice! {
    /// Names of extended attributes; `Empty` is a namespace without a name, `Long` has 255 bytes, `TooLong` 256.
    XName {
        A = "user.a", B = "user.b", C = "user.c", Trusted = "trusted.t", Empty = "user.", Long = "long",
        TooLong = "toolong", None = "nospace", System = "system.x",
    }
}

impl XName {
    /// The name itself.
    pub fn name(self) -> String {
        match self {
            XName::Long => format!("user.{}", "x".repeat(250)),
            XName::TooLong => format!("user.{}", "x".repeat(251)),
            plain => plain.show(),
        }
    }
}

/// The value of an extended attribute: its length and its bytes. As `5*120`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct XValue {
    /// How many bytes.
    pub len: u32,
    /// Each of them.
    pub fill: u8,
}

impl XValue {
    /// The value itself.
    pub fn bytes(self) -> Vec<u8> {
        vec![self.fill; self.len as usize]
    }
}

impl Token for XValue {
    fn show(&self) -> String {
        format!("{}*{}", self.len, self.fill)
    }

    fn read(word: &str) -> Option<XValue> {
        let (len, fill) = word.split_once('*')?;
        Some(XValue { len: len.parse().ok()?, fill: fill.parse().ok()? })
    }

    fn simpler(&self) -> Vec<XValue> {
        [0, 1].into_iter().filter(|len| *len < self.len).map(|len| XValue { len, ..*self }).collect()
    }
}

/// A user or group; `-` leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(pub Option<u32>);

impl Token for Owner {
    fn show(&self) -> String {
        self.0.map_or_else(|| "-".to_owned(), |n| n.to_string())
    }

    fn read(word: &str) -> Option<Owner> {
        if word == "-" { Some(Owner(None)) } else { word.parse().ok().map(|n| Owner(Some(n))) }
    }

    fn simpler(&self) -> Vec<Owner> {
        if self.0.is_some() { vec![Owner(None)] } else { Vec::new() }
    }
}

/// A time to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stamp {
    /// `UTIME_OMIT`.
    Omit,
    /// `UTIME_NOW`.
    Now,
    /// Seconds and nanoseconds since 1970. As `-5.999`.
    At(i64, u32),
}

impl Token for Stamp {
    fn show(&self) -> String {
        match self {
            Stamp::Omit => "omit".to_owned(),
            Stamp::Now => "now".to_owned(),
            Stamp::At(seconds, nanos) => format!("{seconds}.{nanos}"),
        }
    }

    fn read(word: &str) -> Option<Stamp> {
        match word {
            "omit" => Some(Stamp::Omit),
            "now" => Some(Stamp::Now),
            at => {
                let (seconds, nanos) = at.split_once('.')?;
                Some(Stamp::At(seconds.parse().ok()?, nanos.parse().ok()?))
            }
        }
    }

    fn simpler(&self) -> Vec<Stamp> {
        match self {
            Stamp::Omit => Vec::new(),
            Stamp::Now => vec![Stamp::Omit],
            Stamp::At(s, n) => {
                let fewer = (*n != 0).then_some(Stamp::At(*s, 0));
                [Some(Stamp::Omit), Some(Stamp::Now), fewer].into_iter().flatten().collect()
            }
        }
    }
}
