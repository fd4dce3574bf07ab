//! Reading this repository's own sources: which files there are, which part of a file is production code, and what of
//! that is code rather than comment or text. For the tests that hold the code base to its rules; knows none of the rules.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
pub fn root() -> PathBuf {
    // The variable wins over the compiled-in path: a checkout may be moved after it was built.
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// Every file of the repository, relative to its root: what git tracks or would track.
pub fn files() -> Vec<PathBuf> {
    let out = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git runs");
    assert!(out.status.success(), "git ls-files: {}", String::from_utf8_lossy(&out.stderr));
    let names = String::from_utf8(out.stdout).expect("paths in this repository are UTF-8");
    let mut files: Vec<PathBuf> = names.split('\0').filter(|n| !n.is_empty()).map(PathBuf::from).collect();
    // A file that is deleted but not yet committed is still listed.
    files.retain(|f| root().join(f).is_file());
    assert!(!files.is_empty(), "git lists no file in {}", root().display());
    files
}

/// The text of a file of the repository; `None` for a file that is not text.
pub fn text(file: &Path) -> Option<String> {
    String::from_utf8(std::fs::read(root().join(file)).expect("a listed file can be read")).ok()
}

/// Whether the file is below `src/` of the root or of a crate, and not a test module by its name.
fn is_in_a_crate(file: &Path) -> bool {
    let parts: Vec<&str> = file.iter().filter_map(|p| p.to_str()).collect();
    let inner = match parts.as_slice() {
        ["crates", _, "src", inner @ ..] | ["src", inner @ ..] => inner,
        _ => return false,
    };
    let is_test = |p: &&str| matches!(*p, "tests" | "test" | "tests.rs" | "test.rs") || p.ends_with("_tests.rs");
    file.extension().is_some_and(|e| e == "rs") && !inner.iter().any(is_test)
}

/// The files that are compiled into something that users run, with their text: those of the crates, without modules that
/// are declared under `#[cfg(test)]`.
pub fn production() -> Vec<(PathBuf, String)> {
    let read = |f: PathBuf| text(&f).map(|t| (f, t));
    let mut all: Vec<(PathBuf, String)> = files().into_iter().filter(|f| is_in_a_crate(f)).filter_map(read).collect();
    let tests: Vec<PathBuf> = all.iter().flat_map(|(file, text)| test_modules(file, text)).collect();
    // `x.rs`, and everything below `x/`.
    all.retain(|(file, _)| !tests.iter().any(|t| file.with_extension("") == *t || file.starts_with(t)));
    all
}

/// Where the modules lie that this file declares under `#[cfg(test)]`, without their extension.
fn test_modules(file: &Path, text: &str) -> Vec<PathBuf> {
    let stem = file.file_stem().unwrap_or_default();
    let parent = file.parent().unwrap_or(Path::new(""));
    let dir = if ["mod", "lib", "main"].iter().any(|n| stem == *n) { parent.to_owned() } else { parent.join(stem) };
    let mut found = Vec::new();
    let mut marked = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[cfg(") && line.contains("test") && !line.contains("not(test") {
            marked = true;
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            let name = line.strip_suffix(';').and_then(|l| l.split_once("mod ")).map(|(_, name)| name);
            found.extend(name.filter(|_| marked).map(|name| dir.join(name)));
            marked = false;
        }
    }
    found
}

/// The source with every item under `#[cfg(test)]` replaced by empty lines, so that line numbers stay. Relies on rustfmt's
/// layout: an item ends at the line that closes it at its own indentation.
pub fn without_tests(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if !line.trim_start().starts_with("#[cfg(test)]") {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        out.push('\n');
        let indent = &line[..line.len() - line.trim_start().len()];
        let mut in_header = true;
        for item in lines.by_ref() {
            out.push('\n');
            if item.strip_prefix(indent).is_some_and(|rest| rest.starts_with('}')) {
                break;
            }
            let code = item.trim();
            if in_header && !code.starts_with("#[") && !code.starts_with("//") {
                in_header = false;
                if code.ends_with(';') || code.ends_with(',') || code.ends_with('}') {
                    break;
                }
            }
        }
    }
    out
}

/// The source with comments and the contents of string and character literals blanked; line numbers stay.
pub fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        if end > at {
            out.extend(bytes[at..end].iter().map(|&b| if b == b'\n' { b'\n' } else { b' ' }));
            at = end;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).expect("whole literals are blanked, so that the rest stays UTF-8")
}

/// Where the comment or literal that starts at `at` ends; `at` when none starts there.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return block_comment_end(bytes, at);
    }
    if rest[0] == b'"' {
        return quoted_end(bytes, at + 1, b'"');
    }
    if rest[0] == b'r' && (!in_word || bytes[at - 1] == b'b') {
        let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
        if rest.get(1 + hashes) == Some(&b'"') {
            let close = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
            let body = at + 2 + hashes;
            let found = bytes[body..].windows(close.len()).position(|w| w == close);
            return found.map_or(bytes.len(), |n| body + n + close.len());
        }
    }
    if rest[0] == b'\'' {
        // A character literal closes after one character or an escape; anything else is a lifetime.
        let chars = std::str::from_utf8(&rest[1..]).unwrap_or_default();
        let first = chars.chars().next().unwrap_or(' ');
        if first == '\\' || chars[first.len_utf8()..].starts_with('\'') {
            return quoted_end(bytes, at + 1, b'\'');
        }
    }
    at
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

fn quoted_end(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The identifiers of blanked source with their line numbers (from 1), in order.
pub fn identifiers(code: &str) -> Vec<(usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.lines()
        .enumerate()
        .flat_map(|(n, line)| line.split(move |c| !is_word(c)).filter(|w| !w.is_empty()).map(move |w| (n + 1, w)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let source = "let a = \"x // \\\" y\"; // no\n/* a /* b */\n c */ let b = 'q'; let c: &'static str = r#\"d \" e\"#;\nlet d = b'\\'';";
        let code = code_only(source);
        assert_eq!(code.lines().count(), source.lines().count());
        let words: Vec<&str> = identifiers(&code).into_iter().map(|(_, w)| w).collect();
        assert_eq!(words, ["let", "a", "let", "b", "let", "c", "static", "str", "let", "d", "b"]);
    }

    #[test]
    fn only_items_under_cfg_test_are_taken_out() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests;\nfn b() {}\n#[cfg(test)]\n#[allow(x)]\nmod t {\n    fn c() {\n    }\n}\nfn d() {}\n";
        let code = without_tests(source);
        assert_eq!(code.lines().count(), source.lines().count());
        assert!(code.contains("fn a") && code.contains("fn b") && code.contains("fn d"));
        assert!(!code.contains("fn c") && !code.contains("mod tests"));
    }

    #[test]
    fn test_modules_are_not_production() {
        for (file, production) in [
            ("src/main.rs", true),
            ("crates/agfs-core/src/apply/mod.rs", true),
            ("crates/agfs-core/src/apply/tests.rs", false),
            ("crates/agfs-server/src/store/tests/conformance.rs", false),
            ("crates/agfs-core/tests/x.rs", false),
            ("tests/mount.rs", false),
        ] {
            assert_eq!(is_in_a_crate(Path::new(file)), production, "{file}");
        }
        let text = "mod a;\n#[cfg(test)]\npub mod suite;\n#[cfg(any(test, feature = \"x\"))]\n/// Doc.\nmod b;\nmod c;";
        let found = test_modules(Path::new("crates/x/src/store/mod.rs"), text);
        assert_eq!(found, [Path::new("crates/x/src/store/suite"), Path::new("crates/x/src/store/b")]);
        assert_eq!(test_modules(Path::new("src/y.rs"), text)[0], Path::new("src/y/suite"));
    }
}
