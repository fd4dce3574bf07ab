//! Operations on one timeline: batches, repetition, restart.

use crate::harness::Farm;
use agfs_core::op::{Batch, ContentEdit, NewNode, Op, RenameMode, TimedOp};
use agfs_core::{ErrorKind, Timestamp};

#[test]
fn a_batch_is_applied_whole_or_not_at_all() {
    let farm = Farm::memory();
    let work = farm.space("s");
    work.mkdir("/d");
    let before = work.picture("");
    let (parent, name) = work.place("/d/x");
    let create =
        Op::Create { parent, name: name.clone(), file_id: work.id(), node: NewNode::File, mode: 0o600, uid: 1, gid: 2 };
    let err = work.apply(vec![create.clone(), Op::Rmdir { parent, name: name.clone() }]).unwrap_err();
    assert_eq!(err.kind(), ErrorKind::NotADirectory);
    assert!(err.message().contains("operation 1"), "{err}");
    assert_eq!(work.picture(""), before);
    work.apply(vec![create, Op::Unlink { parent, name }]).unwrap();
    assert_eq!(work.picture(""), before);
}

#[test]
fn a_call_that_comes_again_is_answered_and_not_redone() {
    let farm = Farm::memory();
    let work = farm.space("s");
    let (parent, name) = work.place("/x");
    let op = Op::Create { parent, name, file_id: work.id(), node: NewNode::File, mode: 0o600, uid: 1, gid: 2 };
    let time = work.engine().clock.now();
    let batch = Batch { op_id: farm.op(), author: Default::default(), ops: vec![TimedOp { time, op }] };
    let first = work.engine().apply(&work.cell, &batch).unwrap();
    let again = work.engine().apply(&work.cell, &batch).unwrap();
    assert_eq!((again.from, again.to, again.repeated), (first.from, first.to, true));
    let id = farm.op();
    let back = work.engine().rollback(&work.cell, id, "seq:1", Default::default(), false).unwrap();
    assert_eq!(work.engine().rollback(&work.cell, id, "seq:1", Default::default(), false).unwrap(), back);
    assert_eq!(work.head(), back.seq);
}

#[test]
fn everything_is_there_after_a_restart() {
    let farm = Farm::rocks();
    let work = farm.space("s");
    work.mkdir("/d");
    work.write("/d/a", "one");
    work.checkpoint("c");
    work.write("/d/a", "two");
    work.rollback("c");
    work.write("/d/b", "three");
    let (want, head) = (work.picture(""), work.head());
    let farm = farm.reopened();
    let work = farm.work("s");
    assert_eq!((work.picture(""), work.head()), (want, head));
    work.undo().unwrap();
    assert_eq!(work.text(&work.node("/d/a").unwrap()), "two");
    work.write("/d/c", "ids are not given twice");
}

#[test]
fn the_flags_of_rename() {
    let farm = Farm::memory();
    let work = farm.space("s");
    work.mkdir("/d");
    work.mkdir("/d/e");
    work.write("/a", "a");
    work.write("/b", "b");
    let kind = |r: agfs_core::Result<_>| r.map(|_| ()).map_err(|e| e.kind());
    assert_eq!(kind(work.rename_as("/a", "/b", RenameMode::NoReplace)), Err(ErrorKind::AlreadyExists));
    assert_eq!(kind(work.rename_as("/a", "/nothing", RenameMode::Exchange)), Err(ErrorKind::NotFound));
    assert_eq!(kind(work.rename_as("/d", "/d/e/f", RenameMode::Replace)), Err(ErrorKind::InvalidArgument));
    assert_eq!(kind(work.rename_as("/d", "/d/e", RenameMode::Exchange)), Err(ErrorKind::InvalidArgument));
    assert_eq!(kind(work.rename_as("/a", "/d", RenameMode::Replace)), Err(ErrorKind::IsADirectory));
    assert_eq!(kind(work.rename_as("/d", "/a", RenameMode::Replace)), Err(ErrorKind::NotADirectory));
    work.rename_as("/a", "/d", RenameMode::Exchange).unwrap();
    assert_eq!(work.text(&work.node("/d").unwrap()), "a");
    assert!(work.node("/a/e").unwrap().kind().is_dir());
    work.picture("");
    work.rename_as("/a/e", "/e", RenameMode::NoReplace).unwrap();
    work.picture("");
}

#[test]
fn hard_links_are_counted_and_a_rename_onto_a_sibling_does_nothing() {
    let farm = Farm::memory();
    let work = farm.space("s");
    let id = work.create("/a", NewNode::File);
    work.set(id, "x");
    let (parent, name) = work.place("/b");
    work.apply(vec![Op::Link { file_id: id, parent, name }]).unwrap();
    let head = work.head();
    assert_eq!(work.rename("/a", "/b"), head, "no new version");
    assert_eq!(work.node("/a").unwrap().nlink(), 2);
    work.unlink("/a");
    assert_eq!(work.picture("").into_iter().collect::<Vec<_>>(), [("/b".to_owned(), "file 644 x1 \"x\"".to_owned())]);
    work.unlink("/b");
    assert!(work.picture("").is_empty());
    assert!(work.engine().nodes(&work.cell, "", &[id]).unwrap().0.is_empty());
}

#[test]
fn calls_that_overtake_each_other_take_no_ctime_back() {
    let farm = Farm::memory();
    let work = farm.space("s");
    work.write("/f", "one");
    let id = work.node("/f").unwrap().file_id;
    let now = work.engine().clock.now();
    let (early, late) = (Timestamp(now.0 + 1_000), Timestamp(now.0 + 2_000));
    let (parent, name) = work.place("/g");
    let content = |text: &[u8], mtime| Op::SetContent {
        file_id: id,
        edit: ContentEdit::Whole(work.chunk(text)),
        mtime,
        mode: None,
    };
    // The commit of a write took its time first and comes second.
    work.apply_at(late, vec![Op::Link { file_id: id, parent, name }]).unwrap();
    work.apply_at(early, vec![content(b"two", early)]).unwrap();
    let attr = work.node("/f").unwrap().attr;
    assert_eq!((attr.mtime, attr.ctime), (early, late));
    // A clock that was set back is another matter: the change is seen.
    let set_back = Timestamp(now.0 - 3_600_000_000_000);
    work.apply_at(set_back, vec![content(b"three", set_back)]).unwrap();
    assert_eq!(work.node("/f").unwrap().attr.ctime, set_back);
}
