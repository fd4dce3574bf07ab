//! The scripts below deploy/: what is installed is left alone, what is missing is named, and failures are counted.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)
}

fn tool(dir: &Path, name: &str, body: &str) {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/bash\n{body}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs bootstrap.sh where `apt-get` and `sudo` only note that they were called; returns what it said and the notes.
fn bootstrap(args: &[&str], path: &dyn Fn(&Path) -> String, id: u32) -> (Output, String) {
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path().join("notes");
    for name in ["apt-get", "rustup"] {
        tool(dir.path(), name, &format!("echo {name} \"$@\" >> '{}'", notes.display()));
    }
    tool(dir.path(), "sudo", "exit 1");
    tool(dir.path(), "id", &format!("echo {id}"));
    let out = Command::new("/bin/bash")
        .arg(script("bootstrap.sh"))
        .args(args)
        .env("PATH", path(dir.path()))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    (out, std::fs::read_to_string(notes).unwrap_or_default())
}

/// The usual PATH with the noting programs in front.
fn usual(dir: &Path) -> String {
    format!("{}:{}", dir.display(), std::env::var("PATH").unwrap())
}

/// A PATH with little in it: the noting programs and what a script cannot do without.
fn bare(dir: &Path) -> String {
    for name in ["cat", "env"] {
        let _ = std::os::unix::fs::symlink(format!("/usr/bin/{name}"), dir.join(name));
    }
    tool(dir, "cargo", "exit 0");
    tool(dir, "rustfmt", "exit 0");
    dir.display().to_string()
}

#[test]
fn where_everything_is_there_nothing_is_done() {
    for what in ["build", "test"] {
        let (out, notes) = bootstrap(&[what], &usual, 0);
        assert!(out.status.success(), "{what}: {}", String::from_utf8_lossy(&out.stderr));
        assert_eq!((notes.as_str(), out.stdout.as_slice(), out.stderr.as_slice()), ("", &b""[..], &b""[..]), "{what}");
    }
}

#[test]
fn what_is_missing_is_installed_in_one_go() {
    let (out, notes) = bootstrap(&["test"], &bare, 0);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let calls: Vec<&str> = notes.lines().collect();
    assert_eq!(calls.len(), 2, "{notes}");
    assert!(calls[0].starts_with("apt-get update") && calls[1].starts_with("apt-get install -y"), "{notes}");
    for package in
        ["make", "g++", "clang", "pkg-config", "fuse3", "git", "rsync", "vim", "nano", "nodejs", "npm", "python3-venv"]
    {
        assert!(calls[1].split(' ').any(|w| w == package), "{package} in {notes}");
    }
}

#[test]
fn without_root_it_names_the_packages_and_changes_nothing() {
    let (out, notes) = bootstrap(&["build"], &bare, 1000);
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!((out.status.code(), notes.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("fuse3") && err.contains("root") && err.lines().count() == 1, "{err}");
}

#[test]
fn check_names_what_is_missing_only() {
    let (out, notes) = bootstrap(&["build", "--check"], &bare, 0);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!((out.status.code(), notes.as_str()), (Some(1), ""), "{said}");
    assert!(said.starts_with("missing: ") && said.contains("fuse3"), "{said}");
    let (out, _) = bootstrap(&["perhaps"], &usual, 0);
    assert_eq!(out.status.code(), Some(2));
}

/// Runs test-tools.sh where `cargo` only notes what it is asked to install, as programs that say their version.
fn test_tools(dir: &Path) -> String {
    let (root, notes) = (dir.join("tools"), dir.join("notes"));
    let body = r#"while [ $# -gt 0 ]; do [ "$1" = --root ] && root=$2; what=$1; shift; done; mkdir -p "$root/bin"
        echo "$what" >> "$NOTES"
        printf '#!/bin/sh\necho %s %s\n' "${what%@*}" "${what#*@}" > "$root/bin/${what%@*}" && chmod +x "$root/bin/${what%@*}""#;
    tool(dir, "cargo", body);
    let mut command = Command::new("/bin/bash");
    command.arg(script("test-tools.sh")).env("PATH", usual(dir)).env("AGFS_TEST_TOOLS", &root).env("NOTES", &notes);
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let said = std::fs::read_to_string(&notes).unwrap_or_default();
    let _ = std::fs::remove_file(notes);
    said
}

#[test]
fn test_suites_are_installed_once_and_again_for_another_version() {
    let dir = tempfile::tempdir().unwrap();
    let all = test_tools(dir.path());
    assert!(all.lines().count() == 2 && all.contains("pjdfstest@") && all.contains("fsx@"), "{all}");
    assert_eq!(test_tools(dir.path()), "");
    tool(&dir.path().join("tools/bin"), "fsx", "echo fsx 0.0.1");
    let again = test_tools(dir.path());
    assert!(again.lines().count() == 1 && again.starts_with("fsx@"), "{again}");
}

fn sum(commands: &[&str]) -> (Option<i32>, String) {
    let out = Command::new("/bin/bash").arg(script("sum-tests.sh")).args(commands).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    (out.status.code(), text.trim_end().lines().last().unwrap_or_default().to_owned())
}

#[test]
fn test_results_are_added_up() {
    let line = "echo 'test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.1s'";
    let bad = "echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out'; exit 101";
    assert_eq!(sum(&["true", line, line, "echo 4 passed, 0 failed"]), (Some(0), "10 passed, 0 failed".into()));
    assert_eq!(sum(&[line, bad, line]), (Some(1), "7 passed, 2 failed".into()));
    assert_eq!(sum(&["exit 1", line]), (Some(1), "3 passed, 1 failed".into()), "a command that fails counts");
    assert_eq!(sum(&["false | true", line]), (Some(1), "3 passed, 1 failed".into()), "so does one inside a pipe");
    assert_eq!(sum(&["true"]).0, Some(1), "a run without a test proves nothing");
}
