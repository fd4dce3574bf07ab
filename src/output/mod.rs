//! What is printed and how: standard output as JSON or for people, colour, questions, progress. No command's logic.

pub mod json;
pub mod patch;
pub mod stat;
pub mod table;

use crate::exit::{Failure, Result};
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

/// Standard output.
pub struct Out {
    json: bool,
    color: bool,
    stdout: BufWriter<Stdout>,
}

impl Out {
    /// Standard output, as JSON or for people; in colour only on a terminal, and never when NO_COLOR is set.
    pub fn new(json: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let able = std::env::var_os("TERM").is_none_or(|t| t != "dumb");
        let color = wanted && able && io::stdout().is_terminal();
        Out { json, color, stdout: BufWriter::new(io::stdout()) }
    }

    /// Whether JSON is wanted.
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// Whether colour is wanted.
    pub const fn color(&self) -> bool {
        self.color
    }

    /// Prints a value as JSON, indented for a terminal.
    pub fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let text =
            if io::stdout().is_terminal() { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
        let text = text.map_err(|e| agfs_core::Error::internal(format!("encoding the output: {e}")))?;
        self.line(&text)
    }

    /// Prints a value as JSON on one line, and sends it off at once.
    pub fn json_line<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let text = serde_json::to_string(value)
            .map_err(|e| agfs_core::Error::internal(format!("encoding the output: {e}")))?;
        self.line(&text)?;
        self.flush()
    }

    /// Prints the value as JSON, or what `people` makes of it.
    pub fn show<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
        people: impl FnOnce(&mut Out) -> Result<()>,
    ) -> Result<()> {
        if self.json { self.json(value) } else { people(self) }
    }

    /// Prints a table.
    pub fn table(&mut self, table: &table::Table) -> Result<()> {
        let text = table.render(self.color);
        self.bytes(text.as_bytes())
    }

    /// Prints a line.
    pub fn line(&mut self, text: &str) -> Result<()> {
        self.bytes(text.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Prints bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.stdout.write_all(bytes).map_err(Failure::from)
    }

    /// Sends off what was printed.
    pub fn flush(&mut self) -> Result<()> {
        self.stdout.flush().map_err(Failure::from)
    }
}

/// Prints a remark on standard error; nobody there to read it is no error.
pub fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "agfs: {text}");
}

/// Asks on the terminal, if there is one to ask; the answer counts as yes where nobody can be asked.
pub fn confirmed(question: &str, yes: bool, json: bool) -> bool {
    if yes || json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return true;
    }
    let _ = write!(io::stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    let _ = io::stdin().read_line(&mut answer);
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// A name or path for people: what is no text, and what a terminal would obey, is escaped.
pub fn text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for part in bytes.utf8_chunks() {
        for c in part.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                c if c.is_control() => out.extend(c.escape_unicode()),
                c => out.push(c),
            }
        }
        for byte in part.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// A number of bytes for people.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// `1 file`, `2 files`.
pub fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_a_terminal_that_it_would_obey() {
        assert_eq!(text(b"a\x1b[31mb\n\xff"), "a\\u{1b}[31mb\\n\\xff");
        assert_eq!(text("grün".as_bytes()), "grün");
    }

    #[test]
    fn sizes_and_counts() {
        assert_eq!((size(0), size(1023), size(1536)), ("0 B".into(), "1023 B".into(), "1.5 KiB".into()));
        assert_eq!(size(u64::MAX), "16.0 EiB");
        assert_eq!((count(1, "file", "files"), count(0, "file", "files")), ("1 file".into(), "0 files".into()));
    }
}
