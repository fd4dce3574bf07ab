//! The versions of a path.

use crate::harness::{Farm, Work};
use agfs_core::op::NewNode;

/// Size, path and number of each version, newest first; each is checked to be what the path had at its seq.
fn versions(work: &Work<'_>, path: &str) -> Vec<(u64, u64, String)> {
    let log = work.engine().file_log(&work.cell, "", path.as_bytes()).unwrap();
    for v in &log {
        let at = String::from_utf8(v.path.clone()).unwrap();
        let node = work.node_at(&v.seq.to_string(), &at).unwrap();
        assert_eq!((node.size(), node.file_id), (v.size, v.file_id), "{v:?}");
    }
    log.into_iter().map(|v| (v.version_no, v.size, String::from_utf8(v.path).unwrap())).collect()
}

#[test]
fn joined_across_saves_by_rename() {
    let farm = Farm::memory();
    let work = farm.space("s");
    for n in 1..=6u64 {
        let text = "x".repeat(n as usize);
        if n % 2 == 0 {
            work.write("/doc.tmp", &text);
            work.rename("/doc.tmp", "/doc");
        } else {
            work.write("/doc", &text);
        }
    }
    let want: Vec<_> = (1..=6).rev().map(|n| (n, n, "/doc".to_owned())).collect();
    assert_eq!(versions(&work, "/doc"), want);
}

#[test]
fn joined_across_renames_and_deletions() {
    let farm = Farm::memory();
    let work = farm.space("s");
    work.mkdir("/d");
    work.write("/d/a", "1");
    work.write("/d/a", "22");
    work.rename("/d/a", "/d/b");
    work.write("/d/b", "333");
    work.unlink("/d/b");
    work.write("/d/b", "4444");
    assert_eq!(
        versions(&work, "/d/b"),
        [(4, 4, "/d/b".into()), (3, 3, "/d/b".into()), (2, 2, "/d/a".into()), (1, 1, "/d/a".into())]
    );
}

#[test]
fn joined_across_saves_that_keep_a_backup() {
    let farm = Farm::memory();
    let work = farm.space("s");
    work.write("/f", "1");
    work.write("/f", "22");
    work.rename("/f", "/f.bak");
    work.write("/tmp", "333");
    work.rename("/tmp", "/f");
    assert_eq!(versions(&work, "/f"), [(3, 3, "/f".into()), (2, 2, "/f".into()), (1, 1, "/f".into())]);
    assert_eq!(versions(&work, "/f.bak").iter().map(|v| v.1).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn attributes_make_no_version_and_an_empty_file_is_one() {
    let farm = Farm::memory();
    let work = farm.space("s");
    let id = work.create("/f", NewNode::File);
    assert_eq!(versions(&work, "/f"), [(1, 0, "/f".into())]);
    let change = agfs_core::attr::AttrChange { mode: Some(0o600), ..Default::default() };
    work.apply(vec![agfs_core::op::Op::SetAttr { file_id: id, change }]).unwrap();
    assert_eq!(versions(&work, "/f").len(), 1);
    work.set(id, "abc");
    assert_eq!(versions(&work, "/f"), [(1, 3, "/f".into())]);
}

#[test]
fn found_in_a_directory_whose_entries_were_written_afresh() {
    let farm = Farm::memory();
    let work = farm.space("s");
    work.write("/keep", "1");
    work.unlink("/keep");
    let set = work.node("/").unwrap().dir().unwrap().entry_set;
    for n in 0..400 {
        work.write(&format!("/t{n}"), "t");
        work.unlink(&format!("/t{n}"));
    }
    assert_ne!(work.node("/").unwrap().dir().unwrap().entry_set, set, "the entries were written afresh");
    work.write("/keep", "22");
    assert_eq!(versions(&work, "/keep"), [(2, 2, "/keep".into()), (1, 1, "/keep".into())]);
}

#[test]
fn a_restore_is_a_version_and_a_rollback_hides_what_it_set_aside() {
    let farm = Farm::memory();
    let work = farm.space("s");
    work.write("/f", "1");
    let c = work.checkpoint("c");
    work.write("/f", "22");
    work.restore("c", &["/f"]).unwrap();
    assert_eq!(versions(&work, "/f").iter().map(|v| v.1).collect::<Vec<_>>(), [1, 2, 1]);
    work.rollback(&c.to_string());
    work.write("/f", "333");
    assert_eq!(versions(&work, "/f").iter().map(|v| v.1).collect::<Vec<_>>(), [3, 1]);
}

#[test]
fn of_a_path_that_is_gone() {
    let farm = Farm::memory();
    let work = farm.space("s");
    work.write("/f", "1");
    work.write("/f", "22");
    work.unlink("/f");
    assert_eq!(versions(&work, "/f").iter().map(|v| v.1).collect::<Vec<_>>(), [2, 1]);
    work.write("/a", "333");
    work.rename("/a", "/b");
    assert_eq!(versions(&work, "/a").iter().map(|v| v.1).collect::<Vec<_>>(), [3]);
    let never = work.engine().file_log(&work.cell, "", b"/never");
    assert_eq!(never.map(|_| ()).map_err(|e| e.kind()), Err(agfs_core::ErrorKind::NotFound));
}

#[test]
fn the_emptiness_that_a_shell_makes_before_it_writes_is_no_version() {
    let farm = Farm::memory();
    let work = farm.space("s");
    let id = work.create("/f", NewNode::File);
    work.set(id, "1");
    work.set(id, "");
    work.set(id, "22");
    assert_eq!(versions(&work, "/f").iter().map(|v| v.1).collect::<Vec<_>>(), [2, 1]);
    work.set(id, "");
    assert_eq!(versions(&work, "/f").iter().map(|v| v.1).collect::<Vec<_>>(), [0, 2, 1]);
}
