//! The direction between the crates, held by a test: core <- proto <- client <- fuse, core <- proto <- server.
//!
//! Looks at what each crate's manifest depends on and at what its production sources mention; a crate's tests may use more.
//! Also keeps the core pure: no I/O, no clock, no randomness, no wire format, nothing async.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "common/source.rs"]
mod source;

use source::{code_only, identifiers, without_tests};
use std::collections::BTreeMap;

/// Which crates of this workspace each crate may know.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("agfs-core", &[]),
    ("agfs-proto", &["agfs-core"]),
    ("agfs-client", &["agfs-core", "agfs-proto"]),
    ("agfs-fuse", &["agfs-core", "agfs-client"]),
    ("agfs-server", &["agfs-core", "agfs-proto"]),
    // For tests only: a crate may have it among its dev-dependencies, and nothing that users run has it.
    ("agfs-difftest", &[]),
    ("agfs", &["agfs-core", "agfs-proto", "agfs-client", "agfs-fuse", "agfs-server"]),
];

/// All that the core may depend on.
const CORE_DEPENDENCIES: &[&str] = &["blake3"];
/// Paths that may not begin with these in the core, and why.
const IMPURE: &[(&str, &str)] = &[
    ("std::time::SystemTime", "a clock is injected (agfs_core::time::Clock)"),
    ("std::time::Instant", "a clock is injected (agfs_core::time::Clock)"),
    ("std::fs", "I/O belongs to the rooms above"),
    ("std::net", "I/O belongs to the rooms above"),
    ("std::io", "I/O belongs to the rooms above"),
    ("std::process", "I/O belongs to the rooms above"),
    ("std::env", "settings are passed in"),
    ("tokio", "the core is not async"),
    ("futures", "the core is not async"),
    ("libc", "an operating system's numbers belong to its adapter"),
    ("rustix", "an operating system's numbers belong to its adapter"),
    ("serde", "wire formats belong to agfs-proto"),
    ("prost", "wire formats belong to agfs-proto"),
    ("rand", "random bytes are passed in"),
    ("getrandom", "random bytes are passed in"),
];

/// A manifest's dependencies (of the library and of its build script, on every target; not those of tests alone).
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let mut names = Vec::new();
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        tables.extend(targets.values().filter_map(toml::Value::as_table));
    }
    for table in tables {
        for section in ["dependencies", "build-dependencies"] {
            let Some(section) = table.get(section).and_then(toml::Value::as_table) else { continue };
            for (key, value) in section {
                // `x = { package = "y" }` is a dependency on y.
                names.push(value.get("package").and_then(toml::Value::as_str).unwrap_or(key).to_owned());
            }
        }
    }
    names
}

/// What is wrong with the dependencies of `krate`.
fn check_manifest(krate: &str, may: &[&str], manifest: &toml::Table) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in dependencies(manifest) {
        let ours = MAY_KNOW.iter().any(|(k, _)| *k == name);
        if ours && !may.contains(&name.as_str()) {
            wrong.push(format!("{krate}/Cargo.toml depends on {name}; {krate} may know {may:?} only"));
        }
        if krate == "agfs-core" && !ours && !CORE_DEPENDENCIES.contains(&name.as_str()) {
            wrong.push(format!("agfs-core/Cargo.toml depends on {name}; the core may use {CORE_DEPENDENCIES:?} only"));
        }
    }
    wrong
}

/// What is wrong with the text of a production source of `krate`.
fn check_source(krate: &str, may: &[&str], file: &str, text: &str) -> Vec<String> {
    let code = code_only(&without_tests(text));
    let mut wrong = Vec::new();
    for (line, word) in identifiers(&code) {
        let Some((other, _)) = MAY_KNOW.iter().find(|(k, _)| k.contains('-') && k.replace('-', "_") == word) else {
            continue;
        };
        if *other != krate && !may.contains(other) {
            wrong.push(format!("{file}:{line}: mentions {word}; {krate} may know {may:?} only"));
        }
    }
    if krate == "agfs-core" {
        wrong.extend(check_purity(file, &code));
    }
    wrong
}

fn check_purity(file: &str, code: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (line, word) in identifiers(code) {
        if word == "async" {
            wrong.push(format!("{file}:{line}: async; the core is not async"));
        }
    }
    for (line, path) in paths(code) {
        let hit = IMPURE.iter().find(|(p, _)| path == *p || path.starts_with(&format!("{p}::")));
        if let Some((what, why)) = hit {
            wrong.push(format!("{file}:{line}: uses {what}; {why}"));
        }
    }
    wrong
}

/// The paths of blanked source with their lines: every `a::b::c` and, with groups expanded, what every `use` names.
fn paths(code: &str) -> Vec<(usize, String)> {
    let in_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut found = Vec::new();
    for (n, line) in code.lines().enumerate() {
        let here = line.split(|c| !in_path(c)).filter(|p| p.contains("::"));
        found.extend(here.map(|path| (n + 1, path.trim_matches(':').to_owned())));
    }
    for (at, _) in code.match_indices("use ").filter(|(at, _)| begins_item(&code[..*at])) {
        let tree = code[at + 4..].split(';').next().unwrap_or_default();
        let mut names = Vec::new();
        expand("", tree, &mut names);
        let line = 1 + code[..at].matches('\n').count();
        found.extend(names.into_iter().map(|name| (line, name)));
    }
    found
}

/// Whether an item may begin after `before`: at the start of a line, but for a visibility.
fn begins_item(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    line.is_empty()
        || line == "pub"
        || (line.starts_with("pub(") && line.ends_with(')'))
        || line.ends_with(['{', '}', ';'])
}

/// Expands a `use` tree into whole paths.
fn expand(prefix: &str, tree: &str, names: &mut Vec<String>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let name = tree.split_whitespace().next().unwrap_or_default();
        let full = format!("{prefix}{name}");
        names.push(full.trim_start_matches("::").trim_end_matches("::self").to_owned());
        return;
    };
    let prefix = format!("{prefix}{}", tree[..open].trim());
    let close = tree.rfind('}').unwrap_or(tree.len());
    let inner = &tree[open + 1..close];
    let (mut depth, mut from) = (0usize, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                expand(&prefix, &inner[from..at], names);
                from = at + 1;
            }
            _ => {}
        }
    }
    if !inner[from..].trim().is_empty() {
        expand(&prefix, &inner[from..], names);
    }
}

#[test]
fn the_crates_know_only_what_lies_below_them() {
    let (root, production) = (source::root(), source::production());
    let mut wrong = Vec::new();
    let mut seen = BTreeMap::new();
    for (krate, may) in MAY_KNOW {
        let dir = if *krate == "agfs" { String::new() } else { format!("crates/{krate}/") };
        let path = root.join(format!("{dir}Cargo.toml"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let manifest: toml::Table = text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        wrong.extend(check_manifest(krate, may, &manifest));
        let sources = format!("{dir}src");
        for (file, text) in production.iter().filter(|(f, _)| f.starts_with(&sources)) {
            *seen.entry(*krate).or_insert(0) += 1;
            wrong.extend(check_source(krate, may, &file.display().to_string(), text));
        }
    }
    assert_eq!(seen.len(), MAY_KNOW.len(), "some crate has no source: {seen:?}");
    assert!(wrong.is_empty(), "the layering is broken:\n  {}", wrong.join("\n  "));
}

#[test]
fn every_crate_has_a_place_in_the_layering() {
    let dirs = std::fs::read_dir(source::root().join("crates")).unwrap();
    for name in dirs.map(|d| d.unwrap().file_name().into_string().unwrap()) {
        assert!(MAY_KNOW.iter().any(|(k, _)| *k == name), "crates/{name} is not in the table of tests/layering.rs");
    }
}

fn may(krate: &str) -> &'static [&'static str] {
    MAY_KNOW.iter().find(|(k, _)| *k == krate).map(|(_, may)| *may).unwrap()
}

#[test]
fn a_manifest_that_breaks_the_direction_is_found() {
    for (krate, manifest) in [
        ("agfs-core", "[dependencies]\nagfs-proto.workspace = true"),
        ("agfs-core", "[dependencies]\nserde = { workspace = true }"),
        ("agfs-core", "[target.'cfg(unix)'.dependencies]\nlibc.workspace = true"),
        ("agfs-proto", "[dependencies]\nagfs-client.workspace = true"),
        ("agfs-client", "[build-dependencies]\nagfs-fuse.workspace = true"),
        ("agfs-fuse", "[dependencies]\nagfs-proto.workspace = true"),
        ("agfs-fuse", "[dependencies]\nwire = { package = \"agfs-proto\", path = \"../agfs-proto\" }"),
        ("agfs-server", "[dependencies]\nagfs-client.workspace = true"),
        ("agfs-fuse", "[dependencies]\nagfs-difftest.workspace = true"),
        ("agfs", "[dependencies]\nagfs-difftest.workspace = true"),
        ("agfs-difftest", "[dependencies]\nagfs-core.workspace = true"),
    ] {
        let wrong = check_manifest(krate, may(krate), &manifest.parse().unwrap());
        assert_eq!(wrong.len(), 1, "{krate}: {manifest}: {wrong:?}");
    }
    let tests = "[dev-dependencies]\nagfs-difftest.workspace = true";
    assert!(check_manifest("agfs-fuse", may("agfs-fuse"), &tests.parse().unwrap()).is_empty());
    let fine = "[dependencies]\nblake3.workspace = true\n[dev-dependencies]\nproptest.workspace = true";
    assert!(check_manifest("agfs-core", may("agfs-core"), &fine.parse().unwrap()).is_empty());
}

#[test]
fn a_source_that_breaks_the_direction_is_found() {
    for (krate, text) in [
        ("agfs-core", "use agfs_proto::wire;"),
        ("agfs-proto", "fn f() { agfs_client::connect(); }"),
        ("agfs-fuse", "use agfs_proto as wire;"),
        ("agfs-server", "pub use agfs_fuse::{Vfs, tree};"),
        ("agfs-client", "fn f(x: &agfs_server::ops::Ops) {}"),
        ("agfs-core", "use std::time::SystemTime;"),
        ("agfs-core", "fn f() -> std::time::Instant { std::time::Instant::now() }"),
        ("agfs-core", "use std::{fmt, fs::File};"),
        (
            "agfs-core",
            "fn a() {}\nuse std::{\n    collections::{BTreeMap, BTreeSet},\n    time::{Duration, SystemTime},\n};",
        ),
        ("agfs-core", "pub(crate) use tokio;"),
        ("agfs-core", "fn f() { let _ = libc::ENOENT; }"),
        ("agfs-core", "#[derive(serde::Serialize)]\nstruct A;"),
        ("agfs-core", "use ::rand::Rng as _;"),
        ("agfs-core", "mod m {\n    use std::env;\n}"),
        ("agfs-core", "pub async fn f() {}"),
        ("agfs-core", "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\nuse std::net::IpAddr;"),
    ] {
        let wrong = check_source(krate, may(krate), "x.rs", text);
        assert!(!wrong.is_empty(), "{krate}: passes though it should not: {text}");
    }
}

#[test]
fn a_source_that_keeps_the_direction_passes() {
    for (krate, text) in [
        ("agfs-core", "//! Not `agfs_proto::x`, nor std::fs.\nuse std::{fmt, time::Duration};\nfn f() {}"),
        ("agfs-core", "fn f() -> &'static str { \"use agfs_server::x; async std::env\" }"),
        ("agfs-core", "#[cfg(test)]\nmod tests {\n    use std::fs;\n    use agfs_server::x;\n}"),
        ("agfs-core", "fn f(rand: u8) -> u8 { let serde = rand; serde }"),
        ("agfs-fuse", "use agfs_client::Client;\nuse agfs_core::{FileId, Name};"),
        ("agfs-server", "use std::fs; use agfs_proto::v1;"),
    ] {
        let wrong = check_source(krate, may(krate), "x.rs", text);
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
