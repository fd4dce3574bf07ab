//! Checkpoint, rollback, undo, redo, restore, fork, diff, references.

use crate::harness::{Farm, Work};
use agfs_core::ErrorKind;
use agfs_core::diff::DiffKind;
use agfs_core::op::{NewNode, Op};

fn diff(work: &Work<'_>, a: &str, b: &str) -> Vec<(String, &'static str)> {
    let entries = work.engine().diff(&work.cell, a, b, &[]).unwrap();
    entries.into_iter().map(|e| (String::from_utf8(e.path).unwrap(), e.kind.code())).collect()
}

fn fill(work: &Work<'_>) {
    for d in ["/d1", "/d2", "/d2/e"] {
        work.mkdir(d);
    }
    for (path, text) in [("/d1/a", "1"), ("/d1/b", "2"), ("/d2/c", "3"), ("/d2/e/f", "4"), ("/top", "5")] {
        work.write(path, text);
    }
    work.create("/link", NewNode::Symlink(b"d1/a".to_vec()));
}

fn wreck(work: &Work<'_>) {
    work.unlink("/d1/a");
    work.unlink("/d1/b");
    let (parent, name) = work.place("/d1");
    work.apply(vec![Op::Rmdir { parent, name }]).unwrap();
    work.write("/d2/c", "changed");
    work.rename("/d2/e", "/moved");
    work.write("/new", "n");
    let id = work.node("/top").unwrap().file_id;
    let change = agfs_core::attr::AttrChange { mode: Some(0o600), ..Default::default() };
    work.apply(vec![Op::SetAttr { file_id: id, change }]).unwrap();
}

#[test]
fn a_rollback_is_exact_and_so_is_its_undo_and_redo() {
    for farm in [Farm::memory(), Farm::rocks()] {
        let work = farm.space("s");
        fill(&work);
        let want = work.picture("");
        work.checkpoint("before");
        wreck(&work);
        let after = work.picture("");
        assert_eq!(
            diff(&work, "before", ""),
            [
                ("/d1".into(), "deleted"),
                ("/d1/a".into(), "deleted"),
                ("/d1/b".into(), "deleted"),
                ("/d2/c".into(), "modified"),
                ("/moved".into(), "renamed"),
                ("/new".into(), "added"),
                ("/top".into(), "mode")
            ]
        );
        let r = work.rollback("before");
        assert_eq!(work.picture(""), want);
        assert_eq!(r.set_aside, 8);
        assert!(diff(&work, "before", "").is_empty());
        work.undo().unwrap();
        assert_eq!(work.picture(""), after);
        work.redo().unwrap();
        assert_eq!(work.picture(""), want);
        assert_eq!(work.redo().map_err(|e| e.kind()), Err(ErrorKind::NotFound));
        work.undo().unwrap();
        assert_eq!(work.picture(""), after);
        assert_eq!(work.undo().map_err(|e| e.kind()), Err(ErrorKind::NotFound), "nothing is left to undo");
        assert_eq!(work.picture("before"), want);
    }
}

#[test]
fn what_was_done_after_a_rollback_is_set_aside_by_its_undo_and_comes_back_by_redo() {
    let farm = Farm::memory();
    let work = farm.space("s");
    fill(&work);
    work.checkpoint("c");
    work.write("/top", "later");
    work.rollback("c");
    work.write("/mine", "work of an hour");
    let mine = work.picture("");
    let r = work.undo().unwrap();
    assert_eq!(r.set_aside, 2);
    assert!(work.node("/mine").is_err());
    work.redo().unwrap();
    assert_eq!(work.picture(""), mine);
}

#[test]
fn restore_touches_only_its_paths() {
    let farm = Farm::memory();
    let work = farm.space("s");
    fill(&work);
    let want = work.picture("");
    work.checkpoint("c");
    wreck(&work);
    work.write("/d2/mine", "keep");
    let before = work.picture("");
    let r = work.restore("c", &["/d1"]).unwrap();
    assert_eq!(r.changed, 4, "a directory, two files, and the directory's time");
    let got = work.picture("");
    assert_eq!(got.get("/d1/a"), want.get("/d1/a"));
    assert_eq!(
        got.iter().filter(|(p, _)| !p.starts_with("/d1")).collect::<Vec<_>>(),
        before.iter().collect::<Vec<_>>()
    );
    work.restore("c", &["/top", "/d2"]).unwrap();
    let got = work.picture("");
    assert_eq!(got.get("/top"), want.get("/top"));
    assert!(!got.contains_key("/d2/mine"), "what was not there is taken away");
    assert_eq!(got.get("/d2/e/f"), want.get("/d2/e/f"));
    assert!(got.contains_key("/moved/f"), "the moved directory is not among the paths and stays");
    work.undo().unwrap();
    assert!(work.node("/d2/mine").is_ok());
    work.write("/unrelated", "since");
    // Something else has changed since: only the paths of the first restore go back.
    work.undo().unwrap();
    assert!(work.node("/d1").is_err() && work.node("/unrelated").is_ok());
    assert_eq!(work.restore("c", &["/never"]).map_err(|e| e.kind()), Err(ErrorKind::NotFound));
}

#[test]
fn restoring_the_root_is_a_rollback_as_new_changes() {
    let farm = Farm::memory();
    let work = farm.space("s");
    fill(&work);
    let want = work.picture("");
    work.checkpoint("c");
    wreck(&work);
    work.restore("c", &["/"]).unwrap();
    assert_eq!(work.picture(""), want);
}

#[test]
fn a_fork_and_its_source_go_their_own_ways() {
    let farm = Farm::memory();
    let work = farm.space("s");
    fill(&work);
    let want = work.picture("");
    let head = work.head();
    work.write("/top", "after the point of the fork");
    farm.engine.fork_space(&work.cell, &head.to_string(), "twin", farm.op(), Default::default()).unwrap();
    let twin = farm.work("twin");
    assert_eq!(twin.picture(""), want);
    wreck(&twin);
    work.unlink("/d2/c");
    assert!(twin.node("/d2/c").is_ok() && work.node("/d1/a").is_ok());
    assert_eq!(twin.picture(&head.to_string()), want, "a seq from before the fork is known in the fork");
    twin.checkpoint("t");
    farm.engine.fork_space(&twin.cell, "t", "triplet", farm.op(), Default::default()).unwrap();
    assert_eq!(farm.work("triplet").picture(""), twin.picture("t"));
    assert_ne!(
        work.create("/n1", NewNode::File),
        twin.create("/n2", NewNode::File),
        "file ids are unique in the family"
    );
}

#[test]
fn every_kind_of_reference_finds_its_point() {
    let farm = Farm::memory();
    let work = farm.space("s");
    let a = work.write("/f", "a");
    let first = work.checkpoint("one");
    let b = work.write("/f", "b");
    work.checkpoint("two");
    let text = |at: &str| work.text(&work.node_at(at, "/f").unwrap());
    assert_eq!(
        (text(&a.to_string()), text(&b.to_string()), text("@-1"), text("@-2")),
        ("a".into(), "b".into(), "b".into(), "a".into())
    );
    assert_eq!(first, a);
    let back = work.rollback("one");
    work.write("/f", "c");
    assert_eq!(text(&b.to_string()), "b", "what was rolled back is still there by its seq");
    assert_eq!(text(&back.op_id.to_string()), "a", "an operation names the state after it");
    let now = work.engine().clock.now();
    let time = jiff::Timestamp::from_nanosecond(i128::from(now.0)).unwrap().to_string();
    assert_eq!(text(&time), "c");
    for (bad, kind) in [
        ("nosuch", ErrorKind::NotFound),
        ("seq:99999", ErrorKind::NotFound),
        ("seq:0", ErrorKind::NotFound),
        ("@-9", ErrorKind::NotFound),
        ("1999-01-01T00:00:00Z", ErrorKind::NotFound),
        ("a/b", ErrorKind::InvalidArgument),
        ("op-0000000000000001-1", ErrorKind::NotFound),
        ("cp-999", ErrorKind::NotFound),
    ] {
        assert_eq!(work.engine().point(&work.cell, bad).map_err(|e| e.kind()), Err(kind), "{bad}");
    }
}

#[test]
fn long_chains_are_flattened_and_read_the_same() {
    let farm = Farm::memory();
    let work = farm.space("s");
    fill(&work);
    let mut wants = Vec::new();
    for round in 0..60 {
        work.write("/d2/c", &format!("round {round}"));
        work.write(&format!("/r{round}"), "x");
        work.checkpoint(&format!("c{round}"));
        wants.push(work.picture(""));
        work.write("/d2/c", "lost");
        work.unlink("/top");
        work.rollback(&format!("c{round}"));
        assert_eq!(work.picture(""), wants[round], "round {round}");
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while work.cell.lock().lineage.0.len() > agfs_core::timeline::FLATTEN_AT {
        assert!(std::time::Instant::now() < deadline, "not flattened");
        std::thread::sleep(std::time::Duration::from_millis(5));
        work.undo().and_then(|_| work.redo()).unwrap();
    }
    for (round, want) in wants.iter().enumerate() {
        assert_eq!(&work.picture(&format!("c{round}")), want, "checkpoint {round} after flattening");
    }
    assert_eq!(work.engine().file_log(&work.cell, "", b"/d2/c").unwrap().len(), 61);
}

#[test]
fn a_rename_shows_where_it_came_from() {
    let farm = Farm::memory();
    let work = farm.space("s");
    fill(&work);
    work.checkpoint("c");
    work.rename("/d1/a", "/elsewhere");
    let d = work.engine().diff(&work.cell, "c", "", &[b"/d1".to_vec()]).unwrap();
    assert_eq!((d.len(), d[0].kind, d[0].from.as_deref()), (1, DiffKind::Renamed, Some(&b"/d1/a"[..])));
}

#[test]
fn redoing_a_restore_leaves_what_was_made_since() {
    let farm = Farm::memory();
    let work = farm.space("s");
    fill(&work);
    work.checkpoint("c");
    work.write("/top", "changed");
    work.restore("c", &["/top"]).unwrap();
    work.undo().unwrap();
    work.write("/unrelated", "since the undo");
    work.redo().unwrap();
    assert_eq!(work.text(&work.node("/top").unwrap()), "5");
    assert!(work.node("/unrelated").is_ok());
}

#[test]
fn splices_for_a_content_of_another_branch_are_refused() {
    use agfs_core::manifest::{Extent, Splice};
    use agfs_core::op::ContentEdit;
    let farm = Farm::memory();
    let work = farm.space("s");
    let id = work.create("/f", NewNode::File);
    work.set(id, "first");
    work.checkpoint("c");
    work.set(id, "left behind");
    let old = work.node("/f").unwrap().content().unwrap().hash;
    work.rollback("c");
    work.set(id, "the other second version");
    let edit = ContentEdit::Splices {
        base: old,
        splices: vec![Splice { offset: 0, len: 1, with: vec![Extent::hole(1)] }],
        size: 9,
    };
    let op = Op::SetContent { file_id: id, edit, mtime: work.engine().clock.now(), mode: None };
    assert_eq!(work.apply(vec![op]).map_err(|e| e.kind()), Err(ErrorKind::Conflict));
}

#[test]
fn forks_of_forks_are_flattened_too() {
    let farm = Farm::memory();
    let mut work = farm.space("s0");
    fill(&work);
    let mut wants = vec![work.picture("")];
    for n in 1..40 {
        farm.engine.fork_space(&work.cell, "", &format!("s{n}"), farm.op(), Default::default()).unwrap();
        work = farm.work(&format!("s{n}"));
        work.write("/d2/c", &format!("in fork {n}"));
        wants.push(work.picture(""));
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    // A flattening that came while another one ran was left out; the next fork asks again.
    for n in 0.. {
        farm.engine.fork_space(&work.cell, "", &format!("again{n}"), farm.op(), Default::default()).unwrap();
        if work.cell.lock().lineage.0.len() <= agfs_core::timeline::FLATTEN_AT {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "not flattened");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    for (n, want) in wants.iter().enumerate() {
        assert_eq!(&farm.work(&format!("s{n}")).picture(""), want, "fork {n}");
    }
}

#[test]
fn a_rollback_keeps_the_state_before_it_as_a_checkpoint() {
    let farm = Farm::memory();
    let work = farm.space("s");
    fill(&work);
    work.checkpoint("c");
    wreck(&work);
    let before = work.picture("");
    work.rollback("@-1");
    let kept = work.engine().list_checkpoints(&work.cell).unwrap().remove(0);
    assert_eq!(kept.cause, agfs_core::space::Cause::BeforeRollback);
    assert_eq!(work.picture(&kept.id.to_string()), before);
    assert_eq!(work.engine().checkpoint(&work.cell, "@-1").unwrap().name, "c", "the last that was asked for");
}

#[test]
fn a_deleted_space_is_gone_and_its_deletion_is_answered_again() {
    let farm = Farm::memory();
    let work = farm.space("s");
    let op = farm.op();
    let gone = farm.engine.delete_space("s", op).unwrap();
    assert_eq!(farm.engine.delete_space("s", op).unwrap(), gone);
    assert_eq!(farm.engine.delete_space("s", farm.op()).map_err(|e| e.kind()), Err(ErrorKind::NotFound));
    assert!(farm.engine.space("s").is_err());
    farm.space("s");
    assert_ne!(farm.engine.space("s").unwrap().id, work.cell.id, "the name is free again");
}
