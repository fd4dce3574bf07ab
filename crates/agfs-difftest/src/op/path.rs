//! How operations name files: paths out of a short table of names, and slots of open files.

use super::token::Token;
use std::borrow::Cow;

/// The table of names: how each is written in a script. Its place is its number.
///
/// `L255` and `L256` are names of that many bytes, `XFF` is not UTF-8, `NL` has a line feed in it.
pub const NAMES: [&str; 14] =
    ["a", "b", "c", "d", "e", "f", "node_modules", "g", ".", "..", "L255", "L256", "XFF", "NL"];

/// The name `.`.
const DOT: u8 = 8;

/// The bytes of a name by its number in [`NAMES`].
pub fn name_bytes(number: u8) -> Cow<'static, [u8]> {
    match NAMES[usize::from(number)] {
        "L255" => vec![b'n'; 255].into(),
        "L256" => vec![b'n'; 256].into(),
        "XFF" => (&b"\xff\xfe\x01"[..]).into(),
        "NL" => (&b"n\nl"[..]).into(),
        plain => plain.as_bytes().into(),
    }
}

/// An open file, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u8);

impl Slot {
    /// How many there are.
    pub const COUNT: u8 = 8;
}

impl Token for Slot {
    fn show(&self) -> String {
        format!("#{}", self.0)
    }

    fn read(word: &str) -> Option<Slot> {
        word.strip_prefix('#')?.parse().ok().filter(|n| *n < Slot::COUNT).map(Slot)
    }

    fn slot(&self) -> Option<Slot> {
        Some(*self)
    }
}

/// A path, or the target of a symbolic link.
///
/// As text: `a/../L255/`; `@3:a` from the directory that slot 3 has open, `/a` from the root, `''` the empty path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path {
    /// The open directory from which it starts, if not from the root of the test.
    pub base: Option<Slot>,
    /// Whether it begins with a slash.
    pub absolute: bool,
    /// Numbers of names.
    pub names: Vec<u8>,
    /// Whether it ends with a slash.
    pub slash: bool,
}

impl Path {
    /// From the root of the test.
    pub fn new(names: &[u8]) -> Path {
        Path { names: names.to_vec(), ..Path::default() }
    }

    /// What the system call gets.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = if self.absolute { b"/".to_vec() } else { Vec::new() };
        out.extend(self.names.iter().map(|n| name_bytes(*n)).collect::<Vec<_>>().join(&b'/'));
        if self.slash && !self.names.is_empty() {
            out.push(b'/');
        }
        out
    }

    /// The directory that the last name is in, as a path; `None` for a path without names.
    pub fn parent(&self) -> Option<Path> {
        let (_, parents) = self.names.split_last()?;
        let mut parent = Path { names: parents.to_vec(), slash: false, ..self.clone() };
        if parent.names.is_empty() && !parent.absolute {
            parent.names.push(DOT);
        }
        Some(parent)
    }
}

impl Token for Path {
    fn show(&self) -> String {
        let base = self.base.map(|b| format!("@{}:", b.0)).unwrap_or_default();
        let root = if self.absolute { "/" } else { "" };
        let names = self.names.iter().map(|n| NAMES[usize::from(*n)]).collect::<Vec<_>>().join("/");
        let slash = if self.slash && !self.names.is_empty() { "/" } else { "" };
        let text = format!("{base}{root}{names}{slash}");
        if text.is_empty() { "''".to_owned() } else { text }
    }

    fn read(word: &str) -> Option<Path> {
        let mut path = Path::default();
        let mut rest = if word == "''" { "" } else { word };
        if let Some(based) = rest.strip_prefix('@') {
            let (base, names) = based.split_once(':')?;
            path.base = Some(Slot::read(&format!("#{base}"))?);
            rest = names;
        }
        if let Some(names) = rest.strip_prefix('/') {
            (path.absolute, rest) = (true, names);
        }
        if let Some(names) = rest.strip_suffix('/') {
            (path.slash, rest) = (true, names);
        }
        if !rest.is_empty() {
            let number = |name: &str| NAMES.iter().position(|n| *n == name).and_then(|n| u8::try_from(n).ok());
            path.names = rest.split('/').map(number).collect::<Option<Vec<u8>>>()?;
        }
        Some(path)
    }

    fn simpler(&self) -> Vec<Path> {
        let mut all = Vec::new();
        if self.names.len() > 1 {
            all.extend((0..self.names.len()).map(|i| {
                let mut path = self.clone();
                path.names.remove(i);
                path
            }));
        }
        if self.base.is_some() {
            all.push(Path { base: None, ..self.clone() });
        }
        if self.absolute {
            all.push(Path { absolute: false, ..self.clone() });
        }
        if self.slash {
            all.push(Path { slash: false, ..self.clone() });
        }
        for (i, _) in self.names.iter().enumerate().filter(|(_, n)| **n > DOT) {
            let mut path = self.clone();
            path.names[i] = 0;
            all.push(path);
        }
        all
    }

    fn path(&self) -> Option<&Path> {
        Some(self)
    }
}
