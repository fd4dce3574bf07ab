//! Renames to the letter: each flag on each pair of kinds as on a plain directory, exchanges without a gap, and what was moved
//! and then removed stays removed.

use crate::common::tree::{Look, look, same};
use crate::common::{Farm, long};
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const PLAIN: RenameFlags = RenameFlags::empty();
const NOREPLACE: RenameFlags = RenameFlags::NOREPLACE;
const EXCHANGE: RenameFlags = RenameFlags::EXCHANGE;

fn rename(root: &Path, from: &str, to: &str, flags: RenameFlags) -> Result<(), Errno> {
    rustix::fs::renameat_with(CWD, root.join(from), CWD, root.join(to), flags)
}

/// Everything that a rename can meet, below `a` and below `b`; each with an inode of its own but `link`, which is `file`.
fn prepare(root: &Path) {
    for dir in ["a", "b"] {
        let dir = root.join(dir);
        fs::create_dir_all(dir.join("full/sub")).unwrap();
        fs::create_dir(dir.join("empty")).unwrap();
        fs::write(dir.join("file"), dir.file_name().unwrap().as_encoded_bytes()).unwrap();
        fs::write(dir.join("other"), "other").unwrap();
        fs::hard_link(dir.join("file"), dir.join("link")).unwrap();
        std::os::unix::fs::symlink("file", dir.join("symlink")).unwrap();
        rustix::fs::mknodat(CWD, dir.join("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }
}

const NAMES: &[&str] = &["full", "empty", "file", "other", "link", "symlink", "fifo", "missing"];

/// The names below `root` with what stands there: the name that its inode had at the start, its links, and for a
/// directory its parent.
fn places(root: &Path, inodes: &[(u64, String)]) -> Vec<String> {
    let mut out = Vec::new();
    for entry in walkdir::WalkDir::new(root).sort_by_file_name() {
        let entry = entry.unwrap();
        let meta = entry.path().symlink_metadata().unwrap();
        let was = inodes.iter().find(|(ino, _)| *ino == meta.ino()).map_or("new", |(_, name)| name);
        let path = entry.path().strip_prefix(root).unwrap().display();
        let mut line = format!("{path}: {was}, {} links", meta.nlink());
        if meta.is_dir() && entry.depth() > 0 {
            let up = fs::metadata(entry.path().join("..")).unwrap().ino();
            let parent = fs::metadata(entry.path().parent().unwrap()).unwrap().ino();
            assert_eq!(up, parent, "{path}: the parent of what was moved");
        }
        if meta.is_file() {
            line += &format!(", {:?}", fs::read_to_string(entry.path()).unwrap());
        }
        out.push(line);
    }
    out
}

fn inodes(root: &Path) -> Vec<(u64, String)> {
    let walk = walkdir::WalkDir::new(root).sort_by_file_name().into_iter().map(Result::unwrap);
    walk.map(|e| {
        (e.path().symlink_metadata().unwrap().ino(), e.path().strip_prefix(root).unwrap().display().to_string())
    })
    .collect()
}

/// Renames every kind onto every other, within a directory and across two, on a fresh tree in `dir` for each; returns what
/// came of each.
fn every_pair(dir: &Path, flags: RenameFlags) -> Vec<String> {
    let mut out = Vec::new();
    for (from, to) in NAMES.iter().flat_map(|f| NAMES.iter().map(move |t| (f, t))) {
        for other in ["a", "b"] {
            let root = dir.join(format!("{from}-{to}-{other}-{}", flags.bits()));
            prepare(&root);
            let before = inodes(&root);
            let result = rename(&root, &format!("a/{from}"), &format!("{other}/{to}"), flags);
            let after = places(&root, &before);
            out.push(format!("{from} to {other}/{to}, {flags:?}: {result:?}\n    {}", after.join("\n    ")));
            fs::remove_dir_all(&root).unwrap();
        }
    }
    out
}

#[track_caller]
fn equal(want: &[String], got: &[String]) {
    assert_eq!(want.len(), got.len());
    let differ: Vec<String> =
        want.iter().zip(got).filter(|(w, g)| w != g).map(|(w, g)| format!("plain: {w}\nmount: {g}")).collect();
    assert!(differ.is_empty(), "{} differences:\n{}", differ.len(), differ[..differ.len().min(3)].join("\n"));
}

#[test]
fn every_kind_is_renamed_onto_every_other_with_every_flag() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &[]), farm.plain());
    fs::create_dir(m.join("node_modules")).unwrap();
    for flags in [PLAIN, NOREPLACE, EXCHANGE] {
        let want = every_pair(&plain, flags);
        equal(&want, &every_pair(&m, flags));
        equal(&want, &every_pair(&m.join("node_modules"), flags));
    }
    assert_eq!(fs::read_dir(&m).unwrap().count(), 1);
}

#[test]
fn a_flag_that_is_not_known_changes_nothing() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::create_dir(m.join("node_modules")).unwrap();
    for root in [m.join("tree"), m.join("node_modules/shadow")] {
        prepare(&root);
        let before = look(&root, &Look::default());
        for flags in [
            RenameFlags::WHITEOUT,
            RenameFlags::WHITEOUT | NOREPLACE,
            RenameFlags::WHITEOUT | EXCHANGE,
            NOREPLACE | EXCHANGE,
            RenameFlags::from_bits_retain(8),
            RenameFlags::from_bits_retain(1 << 31),
        ] {
            for (from, to) in [("a/file", "a/other"), ("a/file", "b/new"), ("a/full", "b/empty")] {
                // The kernel itself refuses a target that exists, before it asks about the other flag.
                let taken = flags == RenameFlags::WHITEOUT | NOREPLACE && root.join(to).exists();
                let want = if taken { Errno::EXIST } else { Errno::INVAL };
                assert_eq!(rename(&root, from, to, flags), Err(want), "{}: {from} to {to}, {flags:?}", root.display());
            }
        }
        same(&before, &look(&root, &Look::default()), "after renames that were refused");
    }
}

#[test]
fn nothing_is_exchanged_across_the_border_of_a_shadow() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::create_dir(m.join("node_modules")).unwrap();
    for (root, text) in [(m.join("f"), "tree"), (m.join("node_modules/f"), "shadow")] {
        fs::write(root, text).unwrap();
    }
    for flags in [PLAIN, EXCHANGE] {
        assert_eq!(rename(&m, "f", "node_modules/f", flags), Err(Errno::XDEV), "{flags:?}");
        assert_eq!(rename(&m, "node_modules/f", "f", flags), Err(Errno::XDEV), "{flags:?}");
    }
    assert_eq!(rename(&m, "f", "node_modules/new", NOREPLACE), Err(Errno::XDEV));
    assert_eq!(rename(&m, "node_modules/f", "new", NOREPLACE), Err(Errno::XDEV));
    assert_eq!(fs::read_to_string(m.join("f")).unwrap(), "tree");
    assert_eq!(fs::read_to_string(m.join("node_modules/f")).unwrap(), "shadow");
}

#[test]
fn an_exchange_leaves_no_moment_without_either_name() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, second) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    fs::create_dir_all(m.join("x")).unwrap();
    fs::create_dir_all(m.join("y/dir")).unwrap();
    fs::write(m.join("x/file"), "content").unwrap();
    let rounds = if long() { 5_000 } else { 500 };
    std::thread::scope(|scope| {
        let changing = scope.spawn(|| {
            for _ in 0..rounds {
                rename(&m, "x/file", "y/dir", EXCHANGE).unwrap();
            }
        });
        let watch = |m: &Path| {
            let mut seen = [0, 0];
            while !changing.is_finished() {
                for name in ["x/file", "y/dir"] {
                    let meta = fs::metadata(m.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
                    assert!(meta.is_dir() || meta.len() == 7, "{name}: neither of the two");
                    seen[usize::from(meta.is_dir())] += 1;
                }
            }
            assert!(seen[0] > 0 && seen[1] > 0, "never seen in both states: {seen:?}");
        };
        std::thread::scope(|watching| {
            watching.spawn(|| watch(&m));
            watching.spawn(|| watch(&second));
        });
    });
    for m in [&m, &second] {
        assert_eq!(fs::read_to_string(m.join("x/file")).unwrap(), "content");
        assert!(m.join("y/dir").is_dir());
    }
}

#[test]
fn renaming_links_onto_each_other_anywhere_is_no_change() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, second) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    prepare(&m);
    fs::hard_link(m.join("a/file"), m.join("b/third")).unwrap();
    farm.cli([OsStr::new("sync"), m.as_os_str()]);
    let (records, before) = (farm.json(&["log", &space]), look(&m, &Look { times: true, ..Look::default() }));
    for (from, to) in [("a/file", "a/link"), ("a/link", "b/third"), ("b/third", "a/file"), ("a/file", "a/file")] {
        assert_eq!(rename(&m, from, to, PLAIN), Ok(()));
        assert_eq!(rename(&m, from, to, EXCHANGE), Ok(()));
        assert_eq!(rename(&m, from, to, NOREPLACE), Err(Errno::EXIST));
    }
    for m in [&m, &second] {
        same(&before, &look(m, &Look { times: true, ..Look::default() }), "after renames of links");
        assert_eq!(fs::metadata(m.join("b/third")).unwrap().nlink(), 3);
    }
    farm.cli([OsStr::new("sync"), m.as_os_str()]);
    assert_eq!(farm.json(&["log", &space, "/a/file"]).as_array().unwrap().len(), 1);
    assert_eq!(farm.json(&["log", &space]), records);
}

#[test]
fn what_was_moved_and_then_removed_does_not_come_back() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, second) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    let rounds = if long() { 200 } else { 20 };
    for round in 0..rounds {
        fs::create_dir(m.join("old")).unwrap();
        fs::write(m.join("old/f"), vec![round as u8; 1 << 20]).unwrap();
        // Written, and not closed before all is gone.
        let late = fs::File::create(m.join("old/late")).unwrap();
        std::io::Write::write_all(&mut &late, &[1; 100_000]).unwrap();
        fs::rename(m.join("old"), m.join("new")).unwrap();
        assert!(second.join("new/f").exists(), "round {round}");
        fs::remove_dir_all(m.join("new")).unwrap();
        drop(late);
        for m in [&m, &second] {
            assert_eq!(fs::read_dir(m).unwrap().count(), 0, "round {round}");
            assert!(!m.join("old").exists() && !m.join("new/f").exists(), "round {round}");
        }
    }
    farm.cli([OsStr::new("sync"), m.as_os_str()]);
    assert_eq!(farm.json(&["ls", &format!("{space}:/")]), serde_json::json!([]));
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    assert_eq!(fs::read_dir(&m).unwrap().count(), 0);
}
