//! One word of an operation's line: how a field is written, read back, and made simpler.

use super::path::{Path, Slot};

/// A field of an operation.
pub trait Token: Sized {
    /// As one word without spaces, `;` or `#`.
    fn show(&self) -> String;

    /// Reads what `show` wrote.
    fn read(word: &str) -> Option<Self>;

    /// Simpler values to try, the simplest first. Never endless: what is simplest has none.
    fn simpler(&self) -> Vec<Self> {
        Vec::new()
    }

    /// The path in it.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// The open file in it.
    fn slot(&self) -> Option<Slot> {
        None
    }
}

/// Reads the next word as a field.
pub(super) fn next<'a, T: Token>(rest: &mut impl Iterator<Item = &'a str>, field: &str) -> Result<T, String> {
    let word = rest.next().ok_or_else(|| format!("{field} is missing"))?;
    T::read(word).ok_or_else(|| format!("{word:?} is no {field}"))
}

impl Token for u8 {
    fn show(&self) -> String {
        self.to_string()
    }

    fn read(word: &str) -> Option<u8> {
        word.parse().ok()
    }

    fn simpler(&self) -> Vec<u8> {
        if *self > 1 { vec![1] } else { Vec::new() }
    }
}
