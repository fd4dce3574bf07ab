//! What must be refused, each with its kind and nothing changed.

use crate::harness::Farm;
use agfs_core::ErrorKind;
use agfs_core::id::{ChunkHash, FileId, OpId};
use agfs_core::manifest::{Extent, Splice};
use agfs_core::op::{ContentEdit, NewNode, Op, XattrMode};

#[test]
fn operations_that_make_no_sense() {
    let farm = Farm::memory();
    let work = farm.space("s");
    work.mkdir("/d");
    work.write("/d/f", "x");
    let before = (work.picture(""), work.head());
    let (dir, name) = work.place("/d/f");
    let file = work.node("/d/f").unwrap().file_id;
    let time = work.engine().clock.now();
    let create = |parent, file_id, node| Op::Create {
        parent,
        name: agfs_core::Name::new(b"n").unwrap(),
        file_id,
        node,
        mode: 0,
        uid: 0,
        gid: 0,
    };
    let content = |edit| Op::SetContent { file_id: file, edit, mtime: time, mode: None };
    let hole = |len| Extent::hole(len);
    let cases = [
        (create(FileId(999_999), work.id(), NewNode::File), ErrorKind::NotFound),
        (create(file, work.id(), NewNode::File), ErrorKind::NotADirectory),
        (create(dir, FileId(u64::MAX), NewNode::File), ErrorKind::InvalidArgument),
        (create(dir, FileId(1), NewNode::File), ErrorKind::InvalidArgument),
        (create(dir, file, NewNode::File), ErrorKind::Conflict),
        (create(dir, work.id(), NewNode::Symlink(vec![b'x'; 5_000])), ErrorKind::NameTooLong),
        (
            create(dir, work.id(), NewNode::Special { kind: agfs_core::node::NodeKind::Dir, rdev: 0 }),
            ErrorKind::InvalidArgument,
        ),
        (Op::Unlink { parent: FileId::ROOT, name: agfs_core::Name::new(b"d").unwrap() }, ErrorKind::IsADirectory),
        (Op::Rmdir { parent: FileId::ROOT, name: agfs_core::Name::new(b"d").unwrap() }, ErrorKind::NotEmpty),
        (Op::Rmdir { parent: dir, name: name.clone() }, ErrorKind::NotADirectory),
        (Op::Link { file_id: dir, parent: FileId::ROOT, name: name.clone() }, ErrorKind::NotPermitted),
        (
            Op::Link { file_id: FileId(777_777), parent: dir, name: agfs_core::Name::new(b"l").unwrap() },
            ErrorKind::Stale,
        ),
        (
            content(ContentEdit::Whole(vec![Extent::whole(ChunkHash::of(b"never sent"), 10)])),
            ErrorKind::InvalidArgument,
        ),
        (content(ContentEdit::Whole(vec![hole(u64::MAX)])), ErrorKind::FileTooLarge),
        (content(ContentEdit::Whole(vec![hole(1 << 62), hole(1 << 62)])), ErrorKind::FileTooLarge),
        (
            content(ContentEdit::Splices { base: ChunkHash::of(b"another content"), splices: vec![], size: 0 }),
            ErrorKind::Conflict,
        ),
        (
            content(ContentEdit::Splices {
                base: ChunkHash::of(b"x"),
                splices: vec![Splice { offset: u64::MAX, len: u64::MAX, with: vec![] }],
                size: 0,
            }),
            ErrorKind::FileTooLarge,
        ),
        (Op::SetXattr { file_id: file, name: vec![], value: vec![], mode: XattrMode::Set }, ErrorKind::BufferTooSmall),
        (
            Op::SetXattr { file_id: file, name: b"user.x".to_vec(), value: vec![0; 70_000], mode: XattrMode::Set },
            ErrorKind::ValueTooLarge,
        ),
        (
            Op::SetXattr { file_id: file, name: b"user.x".to_vec(), value: vec![], mode: XattrMode::Replace },
            ErrorKind::NoAttribute,
        ),
        (Op::RemoveXattr { file_id: file, name: b"user.x".to_vec() }, ErrorKind::NoAttribute),
    ];
    for (op, kind) in cases {
        assert_eq!(work.apply(vec![op.clone()]).map_err(|e| e.kind()), Err(kind), "{op:?}");
    }
    assert_eq!((work.picture(""), work.head()), before);
}

#[test]
fn calls_that_make_no_sense() {
    let farm = Farm::memory();
    let work = farm.space("s");
    let engine = work.engine();
    for name in ["", ".x", "-x", "a/b", "a b", "a@b", &"x".repeat(129)] {
        let mut new = agfs_server::ops::NewSpace {
            op_id: farm.op(),
            name: name.into(),
            space_type: agfs_core::space::SpaceType::User,
            tenant_code: String::new(),
            owner: String::new(),
            shadow_rules: None,
            mode: 0o755,
            uid: 0,
            gid: 0,
        };
        assert_eq!(engine.create_space(new.clone()).map_err(|e| e.kind()), Err(ErrorKind::InvalidArgument), "{name:?}");
        new.name = "s".into();
        new.op_id = farm.op();
        assert_eq!(engine.create_space(new.clone()).map_err(|e| e.kind()), Err(ErrorKind::AlreadyExists));
        new.op_id = OpId::default();
        assert_eq!(engine.create_space(new).map_err(|e| e.kind()), Err(ErrorKind::InvalidArgument));
    }
    assert_eq!(engine.space("nosuch").map(|_| ()).map_err(|e| e.kind()), Err(ErrorKind::NotFound));
    assert_eq!(engine.space("sp-77").map(|_| ()).map_err(|e| e.kind()), Err(ErrorKind::NotFound));
    assert!(engine.reserve_ids(&work.cell, 0).is_err() && engine.reserve_ids(&work.cell, u32::MAX).is_err());
    work.checkpoint("c");
    let again = agfs_server::ops::NewCheckpoint {
        op_id: farm.op(),
        name: "c".into(),
        note: String::new(),
        cause: agfs_core::space::Cause::Manual,
        author: Default::default(),
    };
    assert_eq!(
        engine.create_checkpoint(&work.cell, again).map(|_| ()).map_err(|e| e.kind()),
        Err(ErrorKind::AlreadyExists)
    );
    engine.pin_checkpoint(&work.cell, farm.op(), "c", true).unwrap();
    assert_eq!(
        engine.delete_checkpoint(&work.cell, farm.op(), "c").map(|_| ()).map_err(|e| e.kind()),
        Err(ErrorKind::Refused)
    );
    engine.pin_checkpoint(&work.cell, farm.op(), "c", false).unwrap();
    engine.delete_checkpoint(&work.cell, farm.op(), "c").unwrap();
    assert!(engine.checkpoint(&work.cell, "c").is_err());
    assert_eq!(
        engine.resolve(&work.cell, "", b"/../x", false).map(|_| ()).map_err(|e| e.kind()),
        Err(ErrorKind::InvalidArgument)
    );
    assert_eq!(
        engine.resolve(&work.cell, "", &[b'a'; 5_000], false).map(|_| ()).map_err(|e| e.kind()),
        Err(ErrorKind::NameTooLong)
    );
}
