//! Patches as `git apply` takes them: each is applied to a real directory and the result compared.

use super::*;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

type Tree = Vec<(&'static [u8], u32, Vec<u8>)>;

fn side(path: &[u8], mode: u32, content: &[u8]) -> Side {
    let path = [b"/", path].concat();
    Side { path, mode, content: Some(content.to_vec()), size: content.len() as u64 }
}

fn at(dir: &Path, path: &[u8]) -> PathBuf {
    dir.join(std::ffi::OsStr::from_bytes(path))
}

fn write(dir: &Path, tree: &Tree) {
    for (path, mode, content) in tree {
        let file = at(dir, path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        if *mode == 0o120_000 {
            std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(content), file).unwrap();
        } else {
            fs::write(&file, content).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode & 0o777)).unwrap();
        }
    }
}

fn read(dir: &Path) -> Vec<(Vec<u8>, u32, Vec<u8>)> {
    let mut out = Vec::new();
    for entry in walkdir::WalkDir::new(dir).sort_by_file_name() {
        let entry = entry.unwrap();
        let path = entry.path().strip_prefix(dir).unwrap().as_os_str().as_bytes().to_vec();
        if entry.path_is_symlink() {
            out.push((path, 0o120_000, fs::read_link(entry.path()).unwrap().as_os_str().as_bytes().to_vec()));
        } else if entry.file_type().is_file() {
            let executable = entry.metadata().unwrap().permissions().mode() & 0o100 != 0;
            out.push((path, if executable { 0o100_755 } else { 0o100_644 }, fs::read(entry.path()).unwrap()));
        }
    }
    out
}

/// Makes the patch from `before` to `after` by path, with `renames` from one path to another, and has git apply it.
fn applied(before: &Tree, after: &Tree, renames: &[(&[u8], &[u8])]) {
    let find = |tree: &Tree, path: &[u8]| tree.iter().find(|t| t.0 == path).map(|(p, m, c)| side(p, *m, c));
    let mut patch = Vec::new();
    for (from, to) in renames {
        patch.extend(file(find(before, from).as_ref(), find(after, to).as_ref()).0);
    }
    let mut paths: Vec<&[u8]> = before.iter().chain(after).map(|t| t.0).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths.into_iter().filter(|p| !renames.iter().any(|(a, b)| a == p || b == p)) {
        let (old, new) = (find(before, path), find(after, path));
        if old.as_ref().map(|s| (s.mode, &s.content)) != new.as_ref().map(|s| (s.mode, &s.content)) {
            patch.extend(file(old.as_ref(), new.as_ref()).0);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), before);
    let mut git = Command::new("git")
        .args(["apply", "--whitespace=nowarn", "-"])
        .current_dir(dir.path())
        .env("GIT_CEILING_DIRECTORIES", dir.path().parent().unwrap())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    git.stdin.take().unwrap().write_all(&patch).unwrap();
    assert!(git.wait().unwrap().success(), "git apply refused:\n{}", String::from_utf8_lossy(&patch));
    let want = tempfile::tempdir().unwrap();
    write(want.path(), after);
    assert_eq!(read(dir.path()), read(want.path()), "{}", String::from_utf8_lossy(&patch));
}

const F: u32 = 0o100_644;
const X: u32 = 0o100_755;
const L: u32 = 0o120_000;

fn numbers(n: u32) -> String {
    (1..=n).map(|i| format!("line {i}\n")).collect()
}

#[test]
fn git_applies_changes_of_text() {
    let long = numbers(100);
    let edited =
        long.replace("line 10\n", "line ten\n").replace("line 50\n", "").replace("line 90\n", "line 90\nmore\n");
    applied(&vec![(b"a/f", F, long.into())], &vec![(b"a/f", F, edited.into())], &[]);
    applied(&vec![(b"f", F, b"one\ntwo".into())], &vec![(b"f", F, b"one\ntwo\n".into())], &[]);
    applied(&vec![(b"f", F, b"one\n".into())], &vec![(b"f", F, b"one".into())], &[]);
    applied(&vec![(b"f", F, b"a\rb\nc\r\n".into())], &vec![(b"f", F, b"a\rB\nc\r\n".into())], &[]);
    applied(&vec![(b"f", F, b"\xff\xfe\nx\n".into())], &vec![(b"f", F, b"\xff\xfd\nx\n".into())], &[]);
}

#[test]
fn git_applies_files_that_come_and_go() {
    applied(&vec![(b"keep", F, b"k\n".into())], &vec![(b"keep", F, b"k\n".into()), (b"d/new", X, b"n\n".into())], &[]);
    applied(&vec![(b"gone", F, b"g\n".into()), (b"k", F, b"".into())], &vec![(b"k", F, b"".into())], &[]);
    applied(&vec![(b"k", F, b"k\n".into())], &vec![(b"k", F, b"k\n".into()), (b"empty", F, b"".into())], &[]);
    applied(&vec![(b"k", F, b"k\n".into()), (b"empty", F, b"".into())], &vec![(b"k", F, b"k\n".into())], &[]);
    applied(&vec![(b"f", F, b"x\n".into())], &vec![(b"f", F, b"".into())], &[]);
}

#[test]
fn git_applies_modes_links_and_renames() {
    applied(&vec![(b"f", F, b"x\n".into())], &vec![(b"f", X, b"x\n".into())], &[]);
    applied(&vec![(b"f", X, b"x\n".into())], &vec![(b"f", F, b"y\n".into())], &[]);
    applied(&vec![(b"l", L, b"a/b".into())], &vec![(b"l", L, b"c".into())], &[]);
    applied(&vec![(b"f", F, b"x\n".into())], &vec![(b"f", L, b"x".into())], &[]);
    let (old, new) = (numbers(20), numbers(20).replace("line 3\n", "line three\n"));
    applied(
        &vec![(b"a/old", F, old.clone().into())],
        &vec![(b"b/new", F, old.clone().into())],
        &[(b"a/old", b"b/new")],
    );
    applied(&vec![(b"old", F, old.into())], &vec![(b"new", X, new.into())], &[(b"old", b"new")]);
}

#[test]
fn git_applies_names_of_all_kinds() {
    for name in [
        &b"with blank"[..],
        b"gr\xc3\xbcn",
        b"\xff\xfe",
        b"quo\"te",
        b"back\\slash",
        b"tab\there",
        b"new\nline",
        b"-dash",
    ] {
        let name: &'static [u8] = Box::leak(name.to_vec().into_boxed_slice());
        applied(&vec![(name, F, b"1\n".into())], &vec![(name, F, b"2\n".into())], &[]);
        applied(&vec![(b"k", F, b"".into())], &vec![(b"k", F, b"".into()), (name, F, b"2\n".into())], &[]);
    }
}

#[test]
fn binary_and_large_files_are_named_and_do_not_disturb_git() {
    let (bin, more) = (side(b"bin", F, b"\0\x01"), side(b"bin", F, b"\0\x02\x03"));
    let (part, stat) = file(Some(&bin), Some(&more));
    assert_eq!(String::from_utf8(part.clone()).unwrap(), "Binary file bin differs (2 -> 3 bytes)\n");
    assert!(stat.binary);
    let large = Side { content: None, size: MAX_TEXT + 1, ..side(b"big", F, b"") };
    assert!(String::from_utf8(file(None, Some(&large)).0).unwrap().starts_with("Large file big added"));
    // Between two parts that git applies.
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "1\n").unwrap();
    fs::write(dir.path().join("z"), "1\n").unwrap();
    let mut patch = file(Some(&side(b"a", F, b"1\n")), Some(&side(b"a", F, b"2\n"))).0;
    patch.extend(part);
    patch.extend(other(b"/pipe", "fifo", "added"));
    patch.extend(file(Some(&side(b"z", F, b"1\n")), Some(&side(b"z", F, b"3\n"))).0);
    fs::write(dir.path().join("p"), &patch).unwrap();
    let ok = Command::new("git").args(["apply", "p"]).current_dir(dir.path()).status().unwrap().success();
    assert!(ok, "{}", String::from_utf8_lossy(&patch));
    assert_eq!(fs::read(dir.path().join("z")).unwrap(), b"3\n");
}

#[test]
fn lines_are_counted() {
    let (_, stat) = file(Some(&side(b"f", F, b"a\nb\nc\n")), Some(&side(b"f", F, b"a\nB\nc\nd\n")));
    assert_eq!((stat.insertions, stat.deletions, stat.binary), (2, 1, false));
}
