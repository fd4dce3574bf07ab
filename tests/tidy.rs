//! The habits of this code base as tests: file headers and lengths, nothing unfinished, no panics on what comes from
//! outside, versions in one place, no registry's address, documents that name tests which exist.
//!
//! Each rule is a function from text to findings, tried on made-up text below.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "common/source.rs"]
mod source;

use source::{code_only, without_tests};
use std::collections::BTreeSet;
use std::path::Path;

/// No file is longer than this before its tests.
const LONGEST: usize = 800;
/// Half of the files are shorter than this.
const MEDIAN: usize = 200;

fn rust_files() -> Vec<(String, String)> {
    let is_rust = |f: &Path| f.extension().is_some_and(|e| e == "rs");
    let read = |f: &std::path::PathBuf| (f.display().to_string(), source::text(f).expect("a Rust source is UTF-8"));
    source::files().iter().filter(|f| is_rust(f)).map(read).collect()
}

fn report(rule: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{rule}:\n  {}", wrong.join("\n  "));
}

/// Lines before the tests at the end of the file.
fn length(text: &str) -> usize {
    text.lines().take_while(|l| !l.starts_with("#[cfg(test)]")).count()
}

/// The lines (from 1) with a word that marks unfinished work. The words are put together here so that this file has none.
fn unfinished(text: &str) -> Vec<(usize, &str)> {
    let marks = [
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["XX", "X"].concat(),
        ["todo", "!("].concat(),
        ["unimplemented", "!("].concat(),
    ];
    text.lines().enumerate().map(|(n, l)| (n + 1, l)).filter(|(_, l)| marks.iter().any(|m| l.contains(m))).collect()
}

/// The lines (from 1) of production code that panic on an error without saying, there or on the line above, why it cannot
/// happen: `// invariant: …`.
fn panics(text: &str) -> Vec<usize> {
    let original: Vec<&str> = text.lines().collect();
    let says_why = |n: usize| original[n.saturating_sub(1)..=n].iter().any(|l| l.contains("// invariant:"));
    let code = code_only(&without_tests(text));
    let hits = code.lines().enumerate().filter(|(_, l)| l.contains(".unwrap()") || l.contains(".expect("));
    hits.filter(|(n, _)| !says_why(*n)).map(|(n, _)| n + 1).collect()
}

/// Dependencies of a manifest that do not take their version from the workspace.
fn own_versions(manifest: &toml::Table) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        tables.extend(targets.values().filter_map(toml::Value::as_table));
    }
    for table in tables {
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (name, value) in table.get(section).and_then(toml::Value::as_table).into_iter().flatten() {
                if value.get("workspace").and_then(toml::Value::as_bool) != Some(true) {
                    wrong.push(format!("[{section}] {name}"));
                }
            }
        }
    }
    if let Some(version) = manifest.get("package").and_then(|p| p.get("version")).and_then(toml::Value::as_str) {
        wrong.push(format!("[package] version = {version:?}"));
    }
    wrong
}

/// Addresses of package registries: a build takes its packages from wherever the machine's clients are set to.
fn registries() -> Vec<String> {
    let hosts: &[&[&str]] = &[
        &["crates", ".io/"],
        &["static.crates", ".io"],
        &["index.crates", ".io"],
        &["py", "pi.org"],
        &["files.python", "hosted.org"],
        &["registry.npm", "js.org"],
        &["registry.yarn", "pkg.com"],
        &["deb.debian", ".org"],
        &["security.debian", ".org"],
        &["archive.ubuntu", ".com"],
        &["proxy.golang", ".org"],
        &["repo.maven", ".apache.org"],
    ];
    hosts.iter().map(|pieces| pieces.concat()).collect()
}

/// The lines (from 1) that name a registry. In `Cargo.lock` the source of a package is exempt.
fn registry_lines(file: &str, text: &str) -> Vec<usize> {
    let exempt = |l: &str| file.ends_with("Cargo.lock") && l.contains("registry+https");
    let names = |l: &str| registries().iter().any(|r| l.contains(r.as_str()));
    text.lines().enumerate().filter(|(_, l)| names(l) && !exempt(l)).map(|(n, _)| n + 1).collect()
}

/// The tests that a Markdown document's tables name: in a column whose heading has the word "test", every name in backticks,
/// without its path. With their lines (from 1).
fn named_tests(document: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut columns: Vec<usize> = Vec::new();
    let mut in_table = false;
    for (n, line) in document.lines().enumerate() {
        if !line.trim_start().starts_with('|') {
            in_table = false;
            continue;
        }
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        if !in_table {
            in_table = true;
            let is_test = |c: &&str| c.to_lowercase().split_whitespace().any(|w| w.trim_end_matches('s') == "test");
            columns = (0..cells.len()).filter(|&i| is_test(&cells[i])).collect();
            continue;
        }
        for cell in columns.iter().filter_map(|&i| cells.get(i)) {
            for name in cell.split('`').skip(1).step_by(2) {
                found.push((n + 1, name.rsplit("::").next().unwrap_or(name).trim_end_matches("()").to_owned()));
            }
        }
    }
    found
}

/// The names of functions in Rust, Python and shell sources.
fn functions(text: &str) -> BTreeSet<String> {
    let name = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let after = |word: &str| text.split(word).skip(1).map(name).collect::<Vec<_>>();
    after("fn ").into_iter().chain(after("def ")).filter(|n| !n.is_empty()).collect()
}

#[test]
fn every_file_says_what_it_is_for() {
    let wrong: Vec<String> =
        rust_files().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(file, _)| file).collect();
    report("these do not open with //! (what the room is for, what must not be in it)", &wrong);
}

#[test]
fn files_are_short() {
    let mut lengths: Vec<(usize, String)> =
        rust_files().into_iter().map(|(file, text)| (length(&text), file)).collect();
    lengths.sort();
    let long: Vec<String> =
        lengths.iter().filter(|(n, _)| *n > LONGEST).map(|(n, file)| format!("{file}: {n} lines")).collect();
    report("these have more than 800 lines before their tests: split them by verb or concern", &long);
    let median = lengths[lengths.len() / 2].0;
    assert!(median < MEDIAN, "the median file has {median} lines, not under {MEDIAN}");
}

#[test]
fn nothing_is_left_unfinished() {
    let mut wrong = Vec::new();
    for (file, text) in rust_files() {
        wrong.extend(unfinished(&text).into_iter().map(|(n, line)| format!("{file}:{n}: {}", line.trim())));
    }
    report("unfinished work: finish it, or file it and take the mark out", &wrong);
}

#[test]
fn production_code_does_not_panic_on_errors() {
    let mut wrong = Vec::new();
    // The crate that compares file systems is made of tests alone: it panics as they do.
    let serves_users = |file: &Path| !file.starts_with("crates/agfs-difftest");
    for (file, text) in source::production().into_iter().filter(|(file, _)| serves_users(file)) {
        wrong.extend(panics(&text).into_iter().map(|n| format!("{}:{n}", file.display())));
    }
    report("unwrap/expect in production code: return the error, or say `// invariant: …` why it cannot happen", &wrong);
}

#[test]
fn versions_stand_in_the_workspace_only() {
    let mut wrong = Vec::new();
    for file in source::files().iter().filter(|f| f.file_name().is_some_and(|n| n == "Cargo.toml")) {
        let manifest: toml::Table = source::text(file).unwrap().parse().unwrap();
        wrong.extend(own_versions(&manifest).into_iter().map(|what| format!("{}: {what}", file.display())));
    }
    report("not `workspace = true`: the version belongs into [workspace.dependencies] of the root", &wrong);
}

#[test]
fn no_registry_is_named() {
    let mut wrong = Vec::new();
    for file in source::files() {
        let Some(text) = source::text(&file) else { continue };
        let name = file.display().to_string();
        wrong.extend(registry_lines(&name, &text).into_iter().map(|n| format!("{name}:{n}")));
    }
    report("the address of a package registry: clients are configured on the machine, not here", &wrong);
}

#[test]
fn the_lock_file_is_committed() {
    assert!(source::files().iter().any(|f| f == Path::new("Cargo.lock")), "git does not track Cargo.lock");
}

#[test]
fn documents_name_tests_that_exist() {
    let is_script = |f: &Path| f.extension().is_some_and(|e| e == "rs" || e == "py" || e == "sh");
    let known: BTreeSet<String> = source::files()
        .iter()
        .filter(|f| is_script(f))
        .filter_map(|f| source::text(f))
        .flat_map(|text| functions(&text))
        .collect();
    let mut wrong = Vec::new();
    for file in source::files().iter().filter(|f| f.starts_with("docs") && f.extension().is_some_and(|e| e == "md")) {
        let names = named_tests(&source::text(file).unwrap());
        wrong.extend(
            names
                .into_iter()
                .filter(|(_, name)| !known.contains(name))
                .map(|(n, name)| format!("{}:{n}: {name}", file.display())),
        );
    }
    report("these tests are named in a document and do not exist", &wrong);
}

#[test]
fn the_rules_find_what_they_forbid() {
    let mark = ["TO", "DO"].concat();
    assert_eq!(unfinished(&format!("fn a() {{}}\n// {mark}: b")).len(), 1);
    assert_eq!(unfinished(&["todo", "!()"].concat()).len(), 1);
    assert!(unfinished("// to do or not to do").is_empty());

    assert_eq!(panics("fn a() {\n    b().unwrap();\n    c().expect(\"d\");\n}"), [2, 3]);
    assert_eq!(panics("#[cfg(test)]\nmod t;\nfn a() { b().unwrap() }"), [3]);
    let fine = "/// `x.unwrap()`\nfn a() {\n    b().unwrap(); // invariant: c\n    // invariant: d\n    e().unwrap();\n    \
                f().unwrap_or(1);\n}\n#[cfg(test)]\nmod tests {\n    fn g() { h().unwrap() }\n}\n";
    assert_eq!(panics(fine), [0usize; 0]);

    let own = |text: &str| own_versions(&text.parse().unwrap()).len();
    assert_eq!(
        own("[dependencies]\na = \"1\"\nb = { version = \"2\" }\nc = { path = \"../c\" }\nd.workspace = true"),
        3
    );
    assert_eq!(own("[target.'cfg(unix)'.dev-dependencies]\na = \"1\""), 1);
    assert_eq!(own("[package]\nversion = \"1.0.0\""), 1);
    assert_eq!(own("[package]\nversion.workspace = true\n[dev-dependencies]\na = { workspace = true }"), 0);

    for registry in registries() {
        assert_eq!(registry_lines("README.md", &format!("see\nhttps://{registry}x")), [2]);
    }
    let lock = format!("source = \"registry+https://index.crates{}/\"\nhttps://{}", ".io", ["py", "pi.org"].concat());
    assert_eq!(registry_lines("Cargo.lock", &lock), [2]);

    assert_eq!(length("//! a\nfn b() {}\n#[cfg(test)]\nmod tests {}\n"), 2);
}

#[test]
fn tables_of_tests_are_read() {
    let document = "| `not_me` | x |\n\n| operation | test |\n|---|---|\n| `rename` | `mount::basics::renames`, `b()` |\n| x | |\n";
    let names: Vec<String> = named_tests(document).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["renames", "b"]);
    let known = functions("async fn renames(x: u8) {}\n    fn b<T>() {}\ndef c(): pass");
    assert!(["renames", "b", "c"].iter().all(|n| known.contains(*n)), "{known:?}");
}
