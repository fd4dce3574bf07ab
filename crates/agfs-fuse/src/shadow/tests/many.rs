//! Many inodes, many threads: what is held stays bounded and right.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many descriptors of this process are of something below `dir`: other tests hold descriptors, too.
fn open_below(dir: &std::path::Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    links.filter(|link| std::fs::read_link(link).is_ok_and(|target| target.starts_with(dir))).count()
}

#[test]
fn a_hundred_thousand_inodes_hold_few_descriptors() {
    const DIRS: usize = 200;
    const FILES: usize = 500;
    let b = Bench::new(100);
    let mut inos = Vec::new();
    for d in 0..DIRS {
        let dir = b.fs.mkdir(ROOT, format!("d{d}").as_bytes(), 0o755, me()).unwrap().ino;
        inos.push(dir);
        for f in 0..FILES {
            let (entry, fh) =
                b.fs.create(Place::Inner(dir), format!("f{f}").as_bytes(), 0o644, libc::O_WRONLY, me()).unwrap();
            b.fs.release(fh).unwrap();
            inos.push(entry.ino);
        }
    }
    assert_eq!(b.fs.inode_count(), DIRS * (FILES + 1));
    for (n, &ino) in inos.iter().enumerate() {
        assert_eq!(b.fs.getattr(Place::Inner(ino)).unwrap().ino, ino);
        if n % 1000 == 0 {
            assert!(b.fs.path_fds() <= 100, "{}", b.fs.path_fds());
            // And one for the base.
            assert!(open_below(b.dir.path()) <= 101);
        }
    }
    for d in 0..DIRS {
        let dir = b.fs.lookup(ROOT, format!("d{d}").as_bytes()).unwrap().ino;
        for f in 0..FILES {
            b.fs.unlink(Place::Inner(dir), format!("f{f}").as_bytes()).unwrap();
            let ino = inos[d * (FILES + 1) + f + 1];
            b.fs.forget(ino, 1);
        }
        b.fs.rmdir(ROOT, format!("d{d}").as_bytes()).unwrap();
        b.fs.forget(dir, 2);
    }
    assert_eq!(b.fs.inode_count(), 0);
    assert_eq!(b.fs.root_is_empty(FileId(7)), Ok(true));
}

#[test]
fn a_parent_stays_while_a_child_is_held_in_whatever_order_they_are_forgotten() {
    let b = Bench::new(1);
    let mut dirs = Vec::new();
    let mut place = ROOT;
    for _ in 0..2000 {
        let ino = b.fs.mkdir(place, b"d", 0o755, me()).unwrap().ino;
        dirs.push(ino);
        place = Place::Inner(ino);
    }
    let file = b.file(place, "f", b"deep");
    for &ino in &dirs {
        b.fs.forget(ino, 1);
    }
    assert_eq!(b.content(file), b"deep");
    assert_eq!(b.fs.inode_count(), 2001);
    b.fs.forget(file, 1);
    assert_eq!(b.fs.inode_count(), 0);
}

/// Readers hold on to inodes by number while others rename them and their parents back and forth: no call may fail.
#[test]
fn renames_never_make_a_held_inode_unreachable() {
    let b = Bench::new(2);
    let a = b.fs.mkdir(ROOT, b"a", 0o755, me()).unwrap().ino;
    let c = b.fs.mkdir(Place::Inner(a), b"c", 0o755, me()).unwrap().ino;
    let file = b.file(Place::Inner(c), "f", b"held");
    let stop = AtomicBool::new(false);
    let (fs, stop) = (&b.fs, &stop);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(fs.getattr(Place::Inner(file)).unwrap().size, 4);
                    assert_eq!(fs.getattr(Place::Inner(c)).unwrap().ino, c);
                    assert!(fs.lookup(ROOT, b"none").is_err());
                }
            });
        }
        for _ in 0..3000 {
            fs.rename(ROOT, b"a", ROOT, b"b", 0).unwrap();
            fs.rename(Place::Inner(c), b"f", ROOT, b"f", 0).unwrap();
            fs.rename(Place::Inner(a), b"c", ROOT, b"c", 0).unwrap();
            fs.rename(ROOT, b"b", ROOT, b"a", 0).unwrap();
            fs.rename(ROOT, b"c", Place::Inner(a), b"c", 0).unwrap();
            fs.rename(ROOT, b"f", Place::Inner(c), b"f", 0).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
}
