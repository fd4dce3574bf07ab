//! System tests: real programs on real mounts, through the documented command line only. One binary; a file for each kind of
//! behaviour. What needs no mount is tested inside the crates.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

#[path = "mount/alike.rs"]
mod alike;
#[path = "mount/attribution.rs"]
mod attribution;
#[path = "mount/basics.rs"]
mod basics;
#[path = "mount/cargo.rs"]
mod cargo;
#[path = "mount/compare.rs"]
mod compare;
#[path = "mount/copying.rs"]
mod copying;
#[path = "mount/cpython.rs"]
mod cpython;
#[path = "mount/crash.rs"]
mod crash;
#[path = "mount/differential.rs"]
mod differential;
#[path = "mount/editors.rs"]
mod editors;
#[path = "mount/errno.rs"]
mod errno;
#[path = "mount/errors.rs"]
mod errors;
#[path = "mount/git.rs"]
mod git;
#[path = "mount/history.rs"]
mod history;
#[path = "mount/life.rs"]
mod life;
#[path = "mount/links.rs"]
mod links;
#[path = "mount/listing.rs"]
mod listing;
#[path = "mount/locks.rs"]
mod locks;
#[path = "mount/node.rs"]
mod node;
#[path = "mount/python.rs"]
mod python;
#[path = "mount/rename.rs"]
mod rename;
#[path = "mount/requests.rs"]
mod requests;
#[path = "mount/rollback.rs"]
mod rollback;
#[path = "mount/saves.rs"]
mod saves;
#[path = "mount/sqlite.rs"]
mod sqlite;
#[path = "mount/suites.rs"]
mod suites;
#[path = "mount/two_mounts.rs"]
mod two_mounts;
#[path = "mount/unlinked.rs"]
mod unlinked;

/// A file that is not declared above would never be compiled, and its tests never run.
#[test]
fn every_file_of_tests_is_declared() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let declared = std::fs::read_to_string(root.join("mount.rs")).unwrap();
    for entry in std::fs::read_dir(root.join("mount")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let name = file.strip_suffix(".rs").unwrap_or_else(|| panic!("tests/mount/{file} is not a Rust file"));
        let lines = format!("#[path = \"mount/{file}\"]\nmod {name};\n");
        assert!(declared.contains(&lines), "tests/mount/{file} is not declared in tests/mount.rs");
    }
}
