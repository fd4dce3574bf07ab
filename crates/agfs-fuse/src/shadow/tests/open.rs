//! Open files, listings, owners, attributes.

use super::*;
use agfs_core::node::NodeKind;
use agfs_core::time::Timestamp;
use std::collections::BTreeSet;
use std::os::fd::AsFd;

#[test]
fn an_open_file_outlives_its_name() {
    let b = Bench::new(1);
    let (entry, fh) = b.fs.create(ROOT, b"f", 0o600, libc::O_RDWR, me()).unwrap();
    b.fs.write(fh, 0, b"before").unwrap();
    b.fs.unlink(ROOT, b"f").unwrap();
    b.file(ROOT, "f", b"");
    b.fs.write(fh, 6, b" after").unwrap();
    assert_eq!(b.fs.read(fh, 0, 100).unwrap(), b"before after");
    let attr = b.fs.getattr(Place::Inner(entry.ino)).unwrap();
    assert_eq!((attr.nlink, attr.size, attr.kind), (0, 12, NodeKind::File));
    let set = SetAttr { size: Some(6), mode: Some(0o400), ..SetAttr::default() };
    assert_eq!(b.fs.setattr(Place::Inner(entry.ino), Some(fh), &set).unwrap().size, 6);
    b.fs.fsync(fh, false).unwrap();
    b.fs.fsync(fh, true).unwrap();
    b.fs.flush(fh).unwrap();
    b.fs.release(fh).unwrap();
    assert_eq!(b.fs.read(fh, 0, 1), Err(Errno::BADF));
    assert_eq!(b.fs.release(fh), Err(Errno::BADF));
}

#[test]
fn an_open_directory_outlives_its_name() {
    let b = Bench::new(1);
    let d = Place::Inner(b.fs.mkdir(ROOT, b"d", 0o755, me()).unwrap().ino);
    let fh = b.fs.opendir(d).unwrap();
    b.fs.rmdir(ROOT, b"d").unwrap();
    assert_eq!(b.fs.getattr(d).unwrap().nlink, 0);
    b.fs.readdir(fh, 0, &mut |entry| panic!("{entry:?}")).unwrap();
    assert_eq!(b.fs.mkdir(d, b"x", 0o755, me()).unwrap_err(), Errno::NOENT);
}

#[test]
fn a_backing_descriptor_is_the_open_file() {
    let b = Bench::new(8);
    let (entry, fh) = b.fs.create(ROOT, b"f", 0o600, libc::O_WRONLY, me()).unwrap();
    let backing = b.fs.backing_fd(fh).unwrap();
    assert_eq!(backing.ino(), entry.ino);
    b.fs.release(fh).unwrap();
    assert!(b.fs.backing_fd(fh).is_none());
    rustix::io::pwrite(backing.as_fd(), b"direct", 0).unwrap();
    assert_eq!(b.content(entry.ino), b"direct");
}

#[test]
fn open_flags_mean_what_they_mean_above() {
    let b = Bench::new(8);
    let ino = b.file(ROOT, "f", b"0123456789");
    // The kernel gives the offset, also to an appender; a write-back cache reads through a write-only handle.
    let fh = b.fs.open(ino, libc::O_WRONLY | libc::O_APPEND | libc::O_DIRECT).unwrap();
    b.fs.write(fh, 2, b"xy").unwrap();
    assert_eq!(b.fs.read(fh, 0, 4).unwrap(), b"01xy");
    assert_eq!(b.fs.read(fh, 4, 4).unwrap(), b"4567");
    let fh = b.fs.open(ino, libc::O_RDONLY).unwrap();
    assert_eq!(b.fs.write(fh, 0, b"no"), Err(Errno::BADF));
    assert_eq!(b.fs.write(fh, 0, b""), Err(Errno::BADF));
    assert_eq!(b.fs.read(fh, 8, 100).unwrap(), b"89");
    assert_eq!(b.fs.read(fh, 100, 100).unwrap(), b"");
    b.fs.open(ino, libc::O_RDWR | libc::O_TRUNC).unwrap();
    assert_eq!(b.fs.getattr(Place::Inner(ino)).unwrap().size, 0);
    let (again, _) = b.fs.create(ROOT, b"f", 0o777, libc::O_RDWR, Owner { uid: 99, gid: 99 }).unwrap();
    assert_eq!((again.ino, again.attr.mode, again.attr.uid), (ino, 0o644, me().uid));
    assert_eq!(b.fs.create(ROOT, b"f", 0o644, libc::O_RDWR | libc::O_EXCL, me()).unwrap_err(), Errno::EXIST);
    let d = b.fs.mkdir(ROOT, b"d", 0o755, me()).unwrap().ino;
    assert_eq!(b.fs.open(d, libc::O_RDWR), Err(Errno::ISDIR));
}

/// Whether the local file system can do this at all; any other error is a failure.
fn has(result: Result<()>) -> bool {
    assert!(matches!(result, Ok(()) | Err(Errno::OPNOTSUPP)), "{result:?}");
    result.is_ok()
}

#[test]
fn holes_ranges_and_copies() {
    const MIB: u64 = 1 << 20;
    let b = Bench::new(8);
    let (entry, fh) = b.fs.create(ROOT, b"sparse", 0o600, libc::O_RDWR, me()).unwrap();
    b.fs.write(fh, 8 * MIB, b"end").unwrap();
    b.fs.fsync(fh, false).unwrap();
    let attr = b.fs.getattr(Place::Inner(entry.ino)).unwrap();
    assert_eq!(attr.size, 8 * MIB + 3);
    assert!(attr.blocks * 512 < MIB, "{} blocks", attr.blocks);
    assert_eq!(b.fs.lseek(fh, 0, libc::SEEK_DATA), Ok(8 * MIB));
    assert_eq!(b.fs.lseek(fh, 0, libc::SEEK_HOLE), Ok(0));
    assert_eq!(b.fs.lseek(fh, (8 * MIB) as i64, libc::SEEK_HOLE), Ok(8 * MIB + 3));
    assert_eq!(b.fs.lseek(fh, 9 << 20, libc::SEEK_DATA), Err(Errno::NXIO));
    assert_eq!(b.fs.lseek(fh, -1, libc::SEEK_DATA), Err(Errno::NXIO));
    assert_eq!(b.fs.lseek(fh, 0, libc::SEEK_SET), Err(Errno::INVAL));
    b.fs.write(fh, 0, &[7; 8192]).unwrap();
    b.fs.fallocate(fh, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, 0, 4096).unwrap();
    assert_eq!(b.fs.read(fh, 0, 8192).unwrap(), [vec![0; 4096], vec![7; 4096]].concat());
    let zeroed = b.fs.fallocate(fh, libc::FALLOC_FL_ZERO_RANGE, 4096, 4096);
    assert_eq!(b.fs.read(fh, 4096, 4096).unwrap(), if has(zeroed) { [0; 4096] } else { [7; 4096] });
    b.fs.fallocate(fh, 0, 0, 16 * MIB).unwrap();
    assert_eq!(b.fs.getattr(Place::Inner(entry.ino)).unwrap().size, 16 * MIB);
    b.fs.fallocate(fh, libc::FALLOC_FL_KEEP_SIZE, 16 * MIB, MIB).unwrap();
    assert_eq!(b.fs.getattr(Place::Inner(entry.ino)).unwrap().size, 16 * MIB);
    if has(b.fs.fallocate(fh, libc::FALLOC_FL_COLLAPSE_RANGE, 0, 8 * MIB)) {
        assert_eq!(b.fs.read(fh, 0, 4).unwrap(), b"end\0");
        b.fs.fallocate(fh, libc::FALLOC_FL_INSERT_RANGE, 0, 8 * MIB).unwrap();
    }
    assert_eq!(b.fs.read(fh, 8 * MIB, 3).unwrap(), b"end");
    assert_eq!(b.fs.fallocate(fh, 0, 0, 0), Err(Errno::INVAL));
    let (_, to) = b.fs.create(ROOT, b"copy", 0o600, libc::O_RDWR, me()).unwrap();
    assert_eq!(b.fs.copy_file_range(fh, 8 * MIB, to, 5, 3), Ok(3));
    assert_eq!(b.fs.read(to, 0, 100).unwrap(), b"\0\0\0\0\0end");
    assert_eq!(b.fs.copy_file_range(fh, 1 << 40, to, 0, 3), Ok(0));
}

#[test]
fn a_listing_keeps_its_place_while_entries_come_and_go() {
    let b = Bench::new(8);
    for n in 0..300 {
        b.file(ROOT, &format!("f{n:03}"), b"");
    }
    let fh = b.fs.opendir(ROOT).unwrap();
    let (mut offset, mut seen, mut batch) = (0, Vec::new(), 0);
    loop {
        let mut room = 7;
        let before = seen.len();
        b.fs.readdir(fh, offset, &mut |entry| {
            if room == 0 {
                return false;
            }
            room -= 1;
            offset = entry.next;
            seen.push(String::from_utf8_lossy(entry.name).into_owned());
            true
        })
        .unwrap();
        if seen.len() == before {
            break;
        }
        // What was listed goes, new ones come.
        for name in &seen[before..] {
            let _ = b.fs.unlink(ROOT, name.as_bytes());
        }
        b.file(ROOT, &format!("new{batch}"), b"");
        batch += 1;
    }
    let unique: BTreeSet<_> = seen.iter().filter(|n| n.starts_with('f')).collect();
    assert_eq!((unique.len(), seen.len()), (300, 302));
    // From the start again: only the new ones.
    let mut names = Vec::new();
    b.fs.readdirplus(fh, 0, &mut |entry| {
        assert_eq!(entry.entry.is_none(), entry.name.starts_with(b"."));
        names.push(entry.name.to_vec());
        true
    })
    .unwrap();
    assert_eq!(names.len(), batch + 2);
    // Vanished since: left out where they are looked up.
    b.fs.unlink(ROOT, b"new0").unwrap();
    let mut count = 0;
    b.fs.readdirplus(fh, 1, &mut |_| {
        count += 1;
        true
    })
    .unwrap();
    assert_eq!(count, batch);
    b.fs.releasedir(fh).unwrap();
}

#[test]
fn a_listing_counts_only_the_lookups_that_were_taken_and_predicts_numbers() {
    let b = Bench::new(8);
    let d = Place::Inner(b.fs.mkdir(ROOT, b"d", 0o755, me()).unwrap().ino);
    for n in 0..50 {
        let ino = b.file(d, &format!("f{n}"), b"");
        b.fs.forget(ino, 1);
    }
    assert_eq!(b.fs.inode_count(), 1);
    let mut listed = Vec::new();
    let fh = b.fs.opendir(d).unwrap();
    b.fs.readdir(fh, 0, &mut |entry| {
        listed.push((entry.name.to_vec(), entry.ino, entry.next));
        true
    })
    .unwrap();
    assert_eq!(listed.len(), 52);
    for (name, ino, _) in &listed {
        match &name[..] {
            b"." => assert_eq!(*ino, d.ino()),
            b".." => assert_eq!(*ino, ROOT.ino()),
            name => {
                assert_eq!(b.fs.lookup(d, name).unwrap().ino, *ino);
                b.fs.forget(*ino, 1);
            }
        }
    }
    let mut room = 10;
    let mut taken = Vec::new();
    b.fs.readdirplus(fh, listed[1].2, &mut |entry| {
        room -= 1;
        if room >= 0 {
            taken.extend(entry.entry.map(|e| (e.ino, 1)));
        }
        room >= 0
    })
    .unwrap();
    assert_eq!(b.fs.inode_count(), 1 + taken.len());
    b.fs.forget_many(taken);
    assert_eq!(b.fs.inode_count(), 1);
    // Without a handle, in steps, by the local file system's own cookies.
    let (mut offset, mut seen) = (0, BTreeSet::new());
    loop {
        let (mut room, before) = (5, seen.len());
        b.fs.list(d, offset, false, &mut |entry| {
            if room == 0 {
                return false;
            }
            room -= 1;
            offset = entry.next;
            assert!(seen.insert(entry.name.to_vec()));
            true
        })
        .unwrap();
        if seen.len() == before {
            break;
        }
    }
    assert_eq!(seen, listed.iter().map(|(name, ..)| name.clone()).collect());
}

#[test]
fn special_files_and_device_numbers() {
    let b = Bench::new(8);
    let fifo = b.fs.mknod(ROOT, b"fifo", libc::S_IFIFO | 0o640, 0, me()).unwrap();
    assert_eq!((fifo.attr.kind, fifo.attr.mode), (NodeKind::Fifo, 0o640));
    let socket = b.fs.mknod(ROOT, b"sock", libc::S_IFSOCK | 0o666, 0, me()).unwrap();
    assert_eq!((socket.attr.kind, socket.attr.mode), (NodeKind::Socket, 0o666));
    let file = b.fs.mknod(ROOT, b"file", libc::S_IFREG | 0o604, 0, me()).unwrap();
    assert_eq!((file.attr.kind, file.attr.mode), (NodeKind::File, 0o604));
    assert_eq!(b.fs.mknod(ROOT, b"dir", libc::S_IFDIR | 0o755, 0, me()).unwrap_err(), Errno::PERM);
    assert_eq!(b.fs.readlink(fifo.ino), Err(Errno::INVAL));
    // Opened by mistake, it does not hang the thread.
    assert_eq!(b.fs.open(fifo.ino, libc::O_WRONLY), Err(Errno::NXIO));
    if is_root() {
        // Major 8, minor 259: both halves of the minor number.
        let rdev = 0x03 | 8 << 8 | 0x100 << 12;
        let dev = b.fs.mknod(ROOT, b"dev", libc::S_IFBLK | 0o600, rdev, me()).unwrap();
        assert_eq!((dev.attr.kind, dev.attr.rdev), (NodeKind::BlockDevice, rdev));
        let local = std::os::unix::fs::MetadataExt::rdev(&std::fs::metadata(b.local().join("dev")).unwrap());
        assert_eq!((libc::major(local), libc::minor(local)), (8, 259));
    }
}

#[test]
fn new_files_belong_to_the_caller_with_the_mode_asked_for() {
    let b = Bench::new(8);
    let caller = if is_root() { Owner { uid: 1234, gid: 2345 } } else { me() };
    let (f, fh) = b.fs.create(ROOT, b"f", 0o4777, libc::O_RDWR, caller).unwrap();
    assert_eq!((f.attr.uid, f.attr.gid, f.attr.mode), (caller.uid, caller.gid, 0o4777));
    let place = Place::Inner(f.ino);
    let set = SetAttr { size: Some(1), kill_suidgid: true, ..SetAttr::default() };
    assert_eq!(b.fs.setattr(place, Some(fh), &set).unwrap().mode, 0o777);
    b.fs.setattr(place, None, &SetAttr { mode: Some(0o6711), ..SetAttr::default() }).unwrap();
    b.fs.kill_suidgid(place).unwrap();
    assert_eq!(b.fs.getattr(place).unwrap().mode, 0o711);
    let l = b.fs.symlink(ROOT, b"l", b"f", caller).unwrap();
    assert_eq!((l.attr.uid, l.attr.gid), (caller.uid, caller.gid));
    let d = b.fs.mkdir(ROOT, b"d", 0o2775, caller).unwrap();
    assert_eq!((d.attr.uid, d.attr.gid, d.attr.mode), (caller.uid, caller.gid, 0o2775));
    if is_root() {
        // The group and the bit go down; a file takes the group only.
        let other = Owner { uid: 77, gid: 88 };
        let sub = b.fs.mkdir(Place::Inner(d.ino), b"sub", 0o700, other).unwrap();
        assert_eq!((sub.attr.uid, sub.attr.gid, sub.attr.mode), (77, caller.gid, 0o2700));
        let (g, _) = b.fs.create(Place::Inner(d.ino), b"g", 0o600, libc::O_RDWR, other).unwrap();
        assert_eq!((g.attr.uid, g.attr.gid, g.attr.mode), (77, caller.gid, 0o600));
        let root_in = b.fs.mkdir(Place::Inner(d.ino), b"r", 0o700, me()).unwrap();
        assert_eq!((root_in.attr.uid, root_in.attr.gid), (0, caller.gid));
    }
}

#[test]
fn times_are_set_to_the_nanosecond_also_on_links() {
    let b = Bench::new(8);
    let f = Place::Inner(b.file(ROOT, "f", b""));
    let l = Place::Inner(b.fs.symlink(ROOT, b"l", b"f", me()).unwrap().ino);
    for place in [f, l] {
        let at = Timestamp::from_parts(-5, 123_456_789);
        let set = SetAttr { atime: Some(SetTime::At(at)), ..SetAttr::default() };
        let before = b.fs.getattr(place).unwrap();
        let after = b.fs.setattr(place, None, &set).unwrap();
        assert_eq!((after.atime, after.mtime), (at, before.mtime));
        let set = SetAttr { mtime: Some(SetTime::At(at)), atime: Some(SetTime::Now), ..SetAttr::default() };
        let after = b.fs.setattr(place, None, &set).unwrap();
        assert_eq!(after.mtime, at);
        assert!(after.atime >= before.ctime);
        assert!(after.btime > Timestamp(0));
    }
}

#[test]
fn extended_attributes() {
    let b = Bench::new(1);
    let f = Place::Inner(b.file(ROOT, "f", b""));
    assert_eq!(b.fs.listxattr(f), Ok(vec![]));
    assert_eq!(b.fs.getxattr(f, b"user.a"), Err(Errno::NODATA));
    b.fs.setxattr(f, b"user.a", b"1\0\xff", libc::XATTR_CREATE as u32).unwrap();
    assert_eq!(b.fs.setxattr(f, b"user.a", b"2", libc::XATTR_CREATE as u32), Err(Errno::EXIST));
    assert_eq!(b.fs.setxattr(f, b"user.b", b"2", libc::XATTR_REPLACE as u32), Err(Errno::NODATA));
    b.fs.setxattr(f, b"user.empty", b"", 0).unwrap();
    assert_eq!(b.fs.getxattr(f, b"user.a").unwrap(), b"1\0\xff");
    assert_eq!(b.fs.getxattr(f, b"user.empty").unwrap(), b"");
    let list = b.fs.listxattr(f).unwrap();
    let names: BTreeSet<_> = list.split_inclusive(|&c| c == 0).collect();
    assert_eq!(names, BTreeSet::from([&b"user.a\0"[..], b"user.empty\0"]));
    b.fs.removexattr(f, b"user.a").unwrap();
    assert_eq!(b.fs.removexattr(f, b"user.a"), Err(Errno::NODATA));
    assert_eq!(b.fs.setxattr(f, b"system.posix_acl_access", b"x", 0), Err(Errno::OPNOTSUPP));
    assert!(b.fs.statfs().unwrap().blocks > 0);
}
