//! Names and inode numbers: what a rename, a deletion or another process may do to them.

use super::*;
use agfs_core::node::NodeKind;
use std::os::unix::fs::symlink;

/// So few descriptors that nearly every call opens its inode again.
const SCARCE: usize = 1;

#[test]
fn a_renamed_inode_keeps_its_number_and_is_found_again_below_renamed_parents() {
    let b = Bench::new(SCARCE);
    let a = Place::Inner(b.fs.mkdir(ROOT, b"a", 0o755, me()).unwrap().ino);
    let c = Place::Inner(
        b.fs.mkdir(a, b"b", 0o755, me()).and_then(|e| b.fs.mkdir(Place::Inner(e.ino), b"c", 0o755, me())).unwrap().ino,
    );
    let file = b.file(c, "f", b"deep");
    b.fs.rename(ROOT, b"a", ROOT, b"z", 0).unwrap();
    assert_eq!(b.content(file), b"deep");
    b.fs.rename(c, b"f", ROOT, b"g", 0).unwrap();
    b.file(c, "f", b"another");
    assert_eq!(b.content(file), b"deep");
    assert_eq!(b.fs.lookup(ROOT, b"g").unwrap().ino, file);
    assert_eq!(std::fs::read(b.local().join("z/b/c/f")).unwrap(), b"another");
}

#[test]
fn rename_replaces_exchanges_or_refuses() {
    let b = Bench::new(SCARCE);
    let (x, y) = (b.file(ROOT, "x", b"x"), b.file(ROOT, "y", b"y"));
    assert_eq!(b.fs.rename(ROOT, b"x", ROOT, b"y", libc::RENAME_NOREPLACE), Err(Errno::EXIST));
    b.fs.rename(ROOT, b"x", ROOT, b"y", libc::RENAME_EXCHANGE).unwrap();
    assert_eq!((b.fs.lookup(ROOT, b"x").unwrap().ino, b.fs.lookup(ROOT, b"y").unwrap().ino), (y, x));
    assert_eq!((b.content(x), b.content(y)), (b"x".to_vec(), b"y".to_vec()));
    b.fs.rename(ROOT, b"y", ROOT, b"x", 0).unwrap();
    assert_eq!(b.names(ROOT), ["x"]);
    assert_eq!(b.content(x), b"x");
    // The replaced one is still held by the kernel, and is what it was.
    assert_eq!(b.fs.getattr(Place::Inner(y)).unwrap().nlink, 0);
    assert_eq!(b.content(y), b"y");
    assert_eq!(b.fs.rename(ROOT, b"none", ROOT, b"x", 0), Err(Errno::NOENT));
    assert_eq!(b.fs.rename(ROOT, b"x", ROOT, b"w", libc::RENAME_EXCHANGE), Err(Errno::NOENT));
}

#[test]
fn a_deleted_inode_is_never_taken_for_one_that_gets_its_local_number() {
    let b = Bench::new(SCARCE);
    let mut reused = 0;
    for round in 0..200 {
        let old = b.file(ROOT, "f", format!("old {round}").as_bytes());
        let local = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(b.local().join("f")).unwrap());
        // Every other time the kernel lets go of the deleted inode before the next file comes.
        b.fs.unlink(ROOT, b"f").unwrap();
        if round % 2 == 0 {
            b.fs.forget(old, 1);
        }
        let new = b.file(ROOT, "f", b"new");
        let now = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(b.local().join("f")).unwrap());
        reused += usize::from(now == local);
        if round % 2 == 0 {
            assert_eq!(b.fs.getattr(Place::Inner(new)).unwrap().nlink, 1);
        } else {
            assert_ne!(old, new);
            assert_eq!(b.content(old), format!("old {round}").into_bytes());
            b.fs.forget(old, 1);
            assert_eq!(b.fs.getattr(Place::Inner(old)), Err(Errno::STALE));
        }
        assert_eq!(b.content(new), b"new");
        b.fs.unlink(ROOT, b"f").unwrap();
        b.fs.forget(new, 1);
    }
    println!("the local number was used again at once in {reused} of 200 rounds");
    assert_eq!(b.fs.inode_count(), 0);
    assert!(b.fs.path_fds() <= 1);
}

#[test]
fn what_another_process_replaces_is_stale_and_not_another_file() {
    let b = Bench::new(SCARCE);
    let f = b.file(ROOT, "f", b"mine");
    let other = b.file(ROOT, "other", b"");
    // Long enough for the local clock to tick: a birth time is all that tells the two apart if the number is the same.
    std::thread::sleep(std::time::Duration::from_millis(20));
    std::fs::remove_file(b.local().join("f")).unwrap();
    std::fs::write(b.local().join("f"), "not mine").unwrap();
    b.fs.getattr(Place::Inner(other)).unwrap();
    assert_eq!(b.fs.getattr(Place::Inner(f)), Err(Errno::STALE));
    let new = b.fs.lookup(ROOT, b"f").unwrap().ino;
    assert_ne!(new, f);
    assert_eq!(b.content(new), b"not mine");
}

#[test]
fn hard_links_are_one_inode_reached_by_any_name() {
    let b = Bench::new(SCARCE);
    let d = Place::Inner(b.fs.mkdir(ROOT, b"d", 0o755, me()).unwrap().ino);
    let f = b.file(ROOT, "f", b"one");
    for n in 0..20 {
        let entry = b.fs.link(f, d, format!("l{n}").as_bytes()).unwrap();
        assert_eq!((entry.ino, entry.attr.nlink), (f, n + 2));
    }
    b.fs.unlink(ROOT, b"f").unwrap();
    // Every name that the table remembers goes; others are left that it does not.
    for n in (3..20).rev() {
        b.fs.unlink(d, format!("l{n}").as_bytes()).unwrap();
        assert_eq!(b.fs.getattr(Place::Inner(f)).unwrap().nlink, n);
    }
    assert_eq!(b.fs.lookup(d, b"l1").unwrap().ino, f);
    assert_eq!(b.content(f), b"one");
    b.fs.rename(d, b"l0", d, b"l1", 0).unwrap();
    assert_eq!(b.names(Place::Inner(d.ino())), ["l0", "l1", "l2"]);
    b.fs.forget(f, 22);
    assert_eq!(b.fs.getattr(Place::Inner(f)), Err(Errno::STALE));
}

#[test]
fn no_name_and_no_link_leads_out() {
    let b = Bench::new(64);
    std::fs::write(b.dir.path().join("secret"), "secret").unwrap();
    for bad in [&b".."[..], b".", b"a/b", b"/etc", b"../secret", b"\0"] {
        assert_eq!(b.fs.lookup(ROOT, bad).unwrap_err(), Errno::INVAL, "{bad:?}");
        assert_eq!(b.fs.unlink(ROOT, bad), Err(Errno::INVAL));
        assert_eq!(b.fs.mkdir(ROOT, bad, 0o755, me()).unwrap_err(), Errno::INVAL);
        assert_eq!(b.fs.rename(ROOT, b"x", ROOT, bad, 0), Err(Errno::INVAL));
    }
    assert_eq!(b.fs.lookup(ROOT, b"").unwrap_err(), Errno::NOENT);
    assert_eq!(b.fs.lookup(ROOT, &[b'x'; 256]).unwrap_err(), Errno::NAMETOOLONG);
    let up = b.fs.symlink(ROOT, b"up", b"../..", me()).unwrap();
    assert_eq!((up.attr.kind, b.fs.readlink(up.ino)), (NodeKind::Symlink, Ok(b"../..".to_vec())));
    assert_eq!(b.fs.lookup(Place::Inner(up.ino), b"secret").unwrap_err(), Errno::NOTDIR);
    assert_eq!(b.fs.opendir(Place::Inner(up.ino)).unwrap_err(), Errno::NOTDIR);
    let secret = b.dir.path().join("secret");
    let link = b.fs.symlink(ROOT, b"link", secret.to_str().unwrap().as_bytes(), me()).unwrap();
    assert_eq!(b.fs.open(link.ino, libc::O_RDONLY), Err(Errno::LOOP));
    assert_eq!(b.fs.create(ROOT, b"link", 0o644, libc::O_RDWR, me()).unwrap_err(), Errno::LOOP);
    let truncate = SetAttr { size: Some(0), ..SetAttr::default() };
    assert!(b.fs.setattr(Place::Inner(link.ino), None, &truncate).is_err());
    let chmod = SetAttr { mode: Some(0o777), ..SetAttr::default() };
    assert_eq!(b.fs.setattr(Place::Inner(link.ino), None, &chmod), Err(Errno::OPNOTSUPP));
    assert!(b.fs.setxattr(Place::Inner(link.ino), b"user.x", b"1", 0).is_err());
    let hard = b.fs.link(link.ino, ROOT, b"hard").unwrap();
    assert_eq!((hard.ino, hard.attr.kind), (link.ino, NodeKind::Symlink));
    assert_eq!(std::fs::read(&secret).unwrap(), b"secret");
    // A directory swapped for a link behind our back, with its descriptor evicted.
    let scarce = Bench::new(1);
    let d = scarce.fs.mkdir(ROOT, b"d", 0o755, me()).unwrap().ino;
    scarce.fs.mkdir(ROOT, b"e", 0o755, me()).unwrap();
    std::fs::remove_dir(scarce.local().join("d")).unwrap();
    symlink(scarce.dir.path(), scarce.local().join("d")).unwrap();
    assert_eq!(scarce.fs.lookup(Place::Inner(d), b"base").unwrap_err(), Errno::STALE);
}

/// Waits for the deletion in the background: a disk may need milliseconds to free one directory.
fn wait_for(done: impl Fn() -> bool) {
    for _ in 0..6000 {
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the deletion did not end within a minute");
}

#[test]
fn a_root_is_made_emptied_removed_and_discarded() {
    let b = Bench::new(4);
    let id = FileId(7);
    assert_eq!(b.fs.root_is_empty(id), Ok(true));
    assert_eq!(b.fs.root_is_empty(FileId(8)), Ok(true));
    assert_eq!(b.fs.lookup(Place::Root(FileId(8)), b"x").unwrap_err(), Errno::NOENT);
    let d = b.fs.mkdir(ROOT, b"d", 0o755, me()).unwrap().ino;
    let f = b.file(Place::Inner(d), "f", &[1; 5000]);
    b.fs.link(f, ROOT, b"f2").unwrap();
    assert_eq!(b.fs.remove_root(id), Err(Errno::NOTEMPTY));
    assert_eq!(b.fs.roots(), Ok(vec![id]));
    let usage = b.fs.usage().unwrap();
    assert_eq!((usage.roots, usage.files, usage.dirs, usage.bytes, usage.unreadable), (1, 1, 1, 5000, 0));
    // Deeper than any path or set of descriptors could be.
    let mut deep = Place::Inner(d);
    for _ in 0..1000 {
        deep = Place::Inner(b.fs.mkdir(deep, b"n", 0o755, me()).unwrap().ino);
    }
    assert_eq!(b.fs.usage().unwrap().unreadable, 1);
    let open = b.fs.open(f, libc::O_RDONLY).unwrap();
    // Its owner may not remove entries from it: discarding it must.
    b.fs.setattr(Place::Inner(d), None, &SetAttr { mode: Some(0o500), ..SetAttr::default() }).unwrap();
    b.fs.discard_root(id).unwrap();
    b.fs.discard_root(id).unwrap();
    assert_eq!(b.fs.roots(), Ok(vec![]));
    assert_eq!(b.fs.read(open, 0, 1).unwrap(), [1]);
    b.fs.ensure_root(id).unwrap();
    assert_eq!(b.names(ROOT), Vec::<String>::new());
    let base = b.dir.path().join("base");
    wait_for(|| std::fs::read_dir(&base).unwrap().count() == 1);
    b.fs.remove_root(id).unwrap();
    b.fs.remove_root(id).unwrap();
    assert_eq!(b.fs.usage(), Ok(Usage::default()));
}

#[test]
fn what_was_left_half_discarded_goes_at_the_next_start() {
    let dir = TempDir::new().unwrap();
    let base = dir.path().join("base");
    std::fs::create_dir_all(base.join("discarded-3/x/y")).unwrap();
    std::fs::create_dir_all(base.join("0000000000000007/keep")).unwrap();
    let fs = ShadowFs::with_path_fds(base.clone(), 4).unwrap();
    wait_for(|| std::fs::read_dir(&base).unwrap().count() == 1);
    assert!(!base.join("discarded-3").exists());
    assert!(fs.lookup(ROOT, b"keep").is_ok());
}
