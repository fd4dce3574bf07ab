//! A difference as a patch in git's form, which `git apply` accepts. What a patch cannot carry as text (binary and very
//! large files, special files) is named on a line of its own, which `git apply` passes over.

use super::stat::FileStat;
use agfs_core::node::{Body, Node, NodeKind};
use similar::{Algorithm, ChangeTag, TextDiff};
use std::fmt::Write as _;
use std::time::Duration;

/// The largest file that is compared line by line, in bytes.
pub const MAX_TEXT: u64 = 16 << 20;
/// How long one comparison may take before a coarser one is used.
const PATIENCE: Duration = Duration::from_secs(5);
/// How far into a file a NUL byte makes it binary, as git has it.
const BINARY_WINDOW: usize = 8_000;

/// One side of a difference.
#[derive(Clone, Debug)]
pub struct Side {
    /// The path, absolute in its space.
    pub path: Vec<u8>,
    /// The mode in git's terms.
    pub mode: u32,
    /// The content, or the target of a symbolic link; `None` when it is too large to be shown.
    pub content: Option<Vec<u8>>,
    /// Size in bytes.
    pub size: u64,
}

/// The mode that git would record; `None` for what git does not record (directories, special files).
pub fn git_mode(node: &Node) -> Option<u32> {
    match node.kind() {
        NodeKind::File if node.attr.mode & 0o100 != 0 => Some(0o100_755),
        NodeKind::File => Some(0o100_644),
        NodeKind::Symlink => Some(0o120_000),
        NodeKind::Dir | NodeKind::Fifo | NodeKind::Socket | NodeKind::CharDevice | NodeKind::BlockDevice => None,
    }
}

/// The target of a symbolic link, as its content in a patch.
pub fn link_target(node: &Node) -> Option<Vec<u8>> {
    match &node.body {
        Body::Symlink(target) => Some(target.to_vec()),
        _ => None,
    }
}

/// The part of a patch for one path, and its lines counted. `before` and `after` are `None` where nothing is there.
pub fn file(before: Option<&Side>, after: Option<&Side>) -> (Vec<u8>, FileStat) {
    if let (Some(old), Some(new)) = (before, after)
        && old.mode & 0o170_000 != new.mode & 0o170_000
    {
        // Another kind of file at the same path: git has it deleted and created.
        let ((mut out, a), (more, b)) = (file(Some(old), None), file(None, Some(new)));
        out.extend(more);
        return (out, a.and(&b));
    }
    let (Some(newer), Some(older)) = (after.or(before), before.or(after)) else { return Default::default() };
    let mut stat = FileStat::of(before, after);
    let differs = match (before, after) {
        (Some(old), Some(new)) => old.content != new.content || old.content.is_none() && old.size != new.size,
        _ => true,
    };
    let mut out = head(before, after, older, newer);
    if !differs {
        return (out, stat);
    }
    let text = |side: Option<&Side>| side.map_or(Some(Vec::new()), |s| s.content.clone());
    match (text(before), text(after)) {
        (Some(old), Some(new)) if !is_binary(&old) && !is_binary(&new) => {
            hunks(&mut out, before.map(|s| &*s.path), after.map(|s| &*s.path), &old, &new, &mut stat);
        }
        _ => {
            stat.binary = true;
            // No header of git's before it: with one, `git apply` would want the bytes.
            if !renamed(before, after) && !mode_changed(before, after) {
                out.clear();
            }
            out.extend_from_slice(named(before, after, newer).as_bytes());
        }
    }
    (out, stat)
}

fn renamed(before: Option<&Side>, after: Option<&Side>) -> bool {
    matches!((before, after), (Some(a), Some(b)) if a.path != b.path)
}

fn mode_changed(before: Option<&Side>, after: Option<&Side>) -> bool {
    matches!((before, after), (Some(a), Some(b)) if a.mode != b.mode)
}

fn head(before: Option<&Side>, after: Option<&Side>, older: &Side, newer: &Side) -> Vec<u8> {
    let mut out = format!("diff --git {} {}\n", quoted("a", &older.path), quoted("b", &newer.path));
    // Writing to a String cannot fail.
    let _ = match (before, after) {
        (None, Some(new)) => writeln!(out, "new file mode {:o}", new.mode),
        (Some(old), None) => writeln!(out, "deleted file mode {:o}", old.mode),
        (Some(old), Some(new)) if old.mode != new.mode => {
            writeln!(out, "old mode {:o}\nnew mode {:o}", old.mode, new.mode)
        }
        _ => Ok(()),
    };
    if let (Some(old), Some(new)) = (before, after)
        && old.path != new.path
    {
        let same = if old.content == new.content { 100 } else { 50 };
        let _ =
            writeln!(out, "similarity index {same}%\nrename from {}\nrename to {}", bare(&old.path), bare(&new.path));
    }
    out.into_bytes()
}

fn hunks(
    out: &mut Vec<u8>,
    old_path: Option<&[u8]>,
    new_path: Option<&[u8]>,
    old: &[u8],
    new: &[u8],
    stat: &mut FileStat,
) {
    let (old, new) = (lines(old), lines(new));
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(PATIENCE).diff_slices(&old, &new);
    let mut first = true;
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        if std::mem::take(&mut first) {
            let name = |side, path: Option<&[u8]>| path.map_or("/dev/null".to_owned(), |p| tabbed(quoted(side, p)));
            out.extend_from_slice(format!("--- {}\n+++ {}\n", name("a", old_path), name("b", new_path)).as_bytes());
        }
        out.extend_from_slice(format!("{}\n", hunk.header()).as_bytes());
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                ChangeTag::Equal => b' ',
                ChangeTag::Delete => b'-',
                ChangeTag::Insert => b'+',
            };
            stat.insertions += u64::from(sign == b'+');
            stat.deletions += u64::from(sign == b'-');
            out.push(sign);
            out.extend_from_slice(change.value());
            if !change.value().ends_with(b"\n") {
                out.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    }
}

/// Lines with their newlines; the last one without when the text has none there.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&b| b == b'\n').collect()
}

/// Whether git would take the content for binary.
pub fn is_binary(content: &[u8]) -> bool {
    content.iter().take(BINARY_WINDOW).any(|&b| b == 0)
}

fn named(before: Option<&Side>, after: Option<&Side>, newer: &Side) -> String {
    let what = if newer.content.is_none() || before.is_some_and(|b| b.content.is_none()) {
        "Large file"
    } else {
        "Binary file"
    };
    let path = bare(&newer.path);
    match (before, after) {
        (None, Some(new)) => format!("{what} {path} added ({} bytes)\n", new.size),
        (Some(old), None) => format!("{what} {path} deleted ({} bytes)\n", old.size),
        (Some(old), Some(new)) => format!("{what} {path} differs ({} -> {} bytes)\n", old.size, new.size),
        (None, None) => String::new(),
    }
}

/// The line that names something that no patch can carry: a special file, say.
pub fn other(path: &[u8], kind: &str, change: &str) -> Vec<u8> {
    format!("{kind} {} {change}\n", bare(path)).into_bytes()
}

/// A path without its leading slash, in quotes where git would put them.
fn bare(path: &[u8]) -> String {
    quote(path.strip_prefix(b"/").unwrap_or(path))
}

fn quoted(side: &str, path: &[u8]) -> String {
    quote(&[side.as_bytes(), path].concat())
}

/// In the `---` and `+++` lines a name with a blank ends with a tab, so that no date is looked for in it.
fn tabbed(name: String) -> String {
    if name.contains(' ') { name + "\t" } else { name }
}

/// C-style quotes around a name that has bytes a patch's header cannot carry.
fn quote(name: &[u8]) -> String {
    let plain = |b: &u8| (0x20..0x7f).contains(b) && !matches!(b, b'"' | b'\\');
    if name.iter().all(plain) {
        return String::from_utf8_lossy(name).into_owned();
    }
    let mut out = String::from("\"");
    for &byte in name {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x20..=0x7e => out.push(char::from(byte)),
            // Writing to a String cannot fail.
            _ => drop(write!(out, "\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
