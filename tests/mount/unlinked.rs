//! Files and directories that have lost their names while somebody holds them, and files that never had one: each call on
//! them answers as on a plain directory.

use crate::common::Farm;
use crate::common::tree::Random;
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use std::fmt::Debug;
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What each call answered, in order.
#[derive(Default)]
struct Transcript(Vec<String>);

impl Transcript {
    fn note<T: Debug>(&mut self, what: &str, answer: T) {
        self.0.push(format!("{what}: {answer:?}"));
    }

    /// What is seen of the open file.
    fn stat(&mut self, what: &str, fd: impl AsFd) {
        let file = File::from(fd.as_fd().try_clone_to_owned().unwrap());
        // The size of a directory means nothing.
        let size = |s: &fs::Metadata| if s.is_dir() { 0 } else { s.len() };
        let answer = file.metadata().map(|s| (s.mode(), s.nlink(), size(&s), s.uid(), s.gid()));
        self.note(what, answer.map_err(|e| e.raw_os_error()));
    }
}

fn open(path: impl AsRef<Path>, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path.as_ref(), flags | OFlags::CLOEXEC, Mode::from(0o644))
}

fn proc_path(fd: impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()))
}

fn read(fd: impl AsFd) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; 300];
    let n = rustix::io::pread(fd, &mut bytes, 0)?;
    bytes.truncate(n);
    Ok(bytes)
}

/// Runs the same on a plain directory, in the tree, and in a shadow directory, and compares what was answered and what is
/// left.
fn everywhere(calls: fn(&Path) -> Transcript) {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &[]), farm.plain());
    let want = calls(&plain);
    let left = |dir: &Path| fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
    for dir in [m.join("tree"), m.join("node_modules")] {
        fs::create_dir(&dir).unwrap();
        let got = calls(&dir);
        let differ: Vec<String> =
            want.0.iter().zip(&got.0).filter(|(w, g)| w != g).map(|(w, g)| format!("plain {w}\nmount {g}")).collect();
        assert!(differ.is_empty() && want.0.len() == got.0.len(), "{}:\n{}", dir.display(), differ.join("\n"));
        assert_eq!(left(&dir), left(&plain));
    }
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    assert_eq!(left(&m.join("tree")), left(&plain), "after a remount");
}

/// Everything that can be done to a file by its handle.
fn changes(t: &mut Transcript, file: &OwnedFd) {
    t.note("write", rustix::io::pwrite(file, b"written", 100));
    t.stat("after write", file);
    t.note("chmod", rustix::fs::fchmod(file, Mode::from(0o604)));
    t.note("chown", rustix::fs::fchown(file, rustix::fs::Uid::from_raw(7).into(), rustix::fs::Gid::from_raw(8).into()));
    t.note("setxattr", rustix::fs::fsetxattr(file, "user.color", b"red", XattrFlags::CREATE));
    t.note("setxattr again", rustix::fs::fsetxattr(file, "user.color", b"blue", XattrFlags::CREATE));
    let mut value = [0u8; 16];
    t.note("getxattr", rustix::fs::fgetxattr(file, "user.color", &mut value));
    t.note("value", value);
    t.note("removexattr", rustix::fs::fremovexattr(file, "user.color"));
    t.note("fsync", rustix::fs::fsync(file));
    t.note("truncate", rustix::fs::ftruncate(file, 120));
    t.note("allocate", rustix::fs::fallocate(file, FallocateFlags::empty(), 0, 200));
    t.note("punch", rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 101));
    t.note("content", read(file));
    let when = Timespec { tv_sec: -5, tv_nsec: 7 };
    t.note("utimens", rustix::fs::futimens(file, &Timestamps { last_access: when, last_modification: when }));
    t.note("times", rustix::fs::fstat(file).map(|s| (s.st_atime, s.st_atime_nsec, s.st_mtime, s.st_mtime_nsec)));
    t.stat("after all", file);
}

/// Every way to come back to a file by its handle.
fn ways_back(t: &mut Transcript, dir: &Path, file: &OwnedFd) {
    let path = proc_path(file);
    for (what, flags) in
        [("reading", OFlags::RDONLY), ("writing", OFlags::RDWR), ("appending", OFlags::WRONLY | OFlags::APPEND)]
    {
        let again = open(&path, flags);
        t.note(what, again.as_ref().map(|_| ()));
        let Ok(again) = again else { continue };
        t.note("write", rustix::io::write(&again, what.as_bytes()));
        t.note("content", read(file));
        t.stat("again", again);
    }
    t.note("a path", rustix::fs::stat(&path).map(|s| (s.st_nlink, s.st_size)));
    t.note("truncate by path", rustix::fs::ftruncate(open(&path, OFlags::WRONLY | OFlags::TRUNC).unwrap(), 9));
    t.note("content", read(file));
    t.note("link by path", rustix::fs::linkat(CWD, &path, CWD, dir.join("back"), AtFlags::SYMLINK_FOLLOW));
    t.note("link by handle", rustix::fs::linkat(file, "", CWD, dir.join("back"), AtFlags::EMPTY_PATH));
    t.note("exclusive", open(&path, OFlags::CREATE | OFlags::EXCL | OFlags::RDWR).map(drop));
    let held = open(&path, OFlags::PATH).unwrap();
    t.stat("by a path handle", &held);
    t.note("from a path handle", open(proc_path(&held), OFlags::RDONLY).map(|f| read(f).map(|b| b.len())));
}

#[test]
fn a_file_without_a_name_can_do_all_that_a_file_can() {
    everywhere(|dir| {
        let mut t = Transcript::default();
        // Lost to unlink, to a rename, and with its last link; with and without content that no close has committed.
        for (how, committed) in
            [("unlink", true), ("unlink", false), ("rename", true), ("rename", false), ("links", true)]
        {
            let path = dir.join("f");
            if committed {
                fs::write(&path, vec![b'c'; 150]).unwrap();
            }
            let file = open(&path, OFlags::RDWR | OFlags::CREATE).unwrap();
            rustix::io::pwrite(&file, b"before", 0).unwrap();
            match how {
                "unlink" => fs::remove_file(&path).unwrap(),
                "rename" => {
                    fs::write(dir.join("g"), "another").unwrap();
                    fs::rename(dir.join("g"), &path).unwrap();
                }
                _ => {
                    fs::hard_link(&path, dir.join("g")).unwrap();
                    fs::remove_file(&path).unwrap();
                    t.stat("one left", &file);
                    fs::remove_file(dir.join("g")).unwrap();
                }
            }
            t.stat(how, &file);
            changes(&mut t, &file);
            ways_back(&mut t, dir, &file);
            let _ = fs::remove_file(&path);
        }
        t
    });
}

#[test]
fn other_kinds_without_a_name() {
    everywhere(|dir| {
        let mut t = Transcript::default();
        let path = dir.join("x");
        std::os::unix::fs::symlink("somewhere", &path).unwrap();
        let link = open(&path, OFlags::PATH | OFlags::NOFOLLOW).unwrap();
        fs::remove_file(&path).unwrap();
        t.stat("a symbolic link", &link);
        t.note("its target", rustix::fs::readlinkat(&link, "", Vec::new()));
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, Mode::from(0o600), 0).unwrap();
        let fifo = open(&path, OFlags::RDWR).unwrap();
        fs::remove_file(&path).unwrap();
        t.stat("a fifo", &fifo);
        t.note("through it", rustix::io::write(&fifo, b"x").and_then(|_| rustix::io::read(&fifo, &mut [0u8; 4])));
        t.note("opened again", open(proc_path(&fifo), OFlags::WRONLY | OFlags::NONBLOCK).map(drop));
        // The last thing that holds it is a mapping; a program that runs keeps its own file.
        fs::copy("/bin/sleep", &path).unwrap();
        let mut child = std::process::Command::new(&path).arg("60").spawn().unwrap();
        fs::remove_file(&path).unwrap();
        let running = format!("/proc/{}/exe", child.id());
        t.note("a program", fs::metadata(&running).map(|s| (s.nlink(), s.len())).map_err(|e| e.raw_os_error()));
        t.note("its bytes", fs::read(&running).unwrap() == fs::read("/bin/sleep").unwrap());
        t.note("written to", open(&running, OFlags::WRONLY).map(drop));
        child.kill().unwrap();
        child.wait().unwrap();
        t
    });
}

/// All that can be tried in a directory that is no more.
fn in_it(t: &mut Transcript, gone: &OwnedFd, root: &Path) {
    t.stat("the directory", gone);
    let mut buffer = Vec::with_capacity(4096);
    let mut listing = rustix::fs::RawDir::new(gone, buffer.spare_capacity_mut());
    t.note("list", listing.next().map(|e| e.map(|e| e.file_name().to_owned())));
    t.note("create", rustix::fs::openat(gone, "f", OFlags::CREATE | OFlags::RDWR, Mode::RWXU).map(drop));
    t.note("mkdir", rustix::fs::mkdirat(gone, "d", Mode::RWXU));
    t.note("symlink", rustix::fs::symlinkat("x", gone, "l"));
    t.note("mknod", rustix::fs::mknodat(gone, "p", rustix::fs::FileType::Fifo, Mode::RWXU, 0));
    t.note("link into it", rustix::fs::linkat(CWD, root.join("file"), gone, "f", AtFlags::empty()));
    t.note("rename into it", rustix::fs::renameat(CWD, root.join("file"), gone, "f"));
    t.note("look up", rustix::fs::statat(gone, "f", AtFlags::empty()).map(drop));
    t.note("unlink", rustix::fs::unlinkat(gone, "f", AtFlags::empty()));
    t.note("dot", rustix::fs::statat(gone, ".", AtFlags::empty()).map(|s| s.st_nlink));
    t.note("open dot", rustix::fs::openat(gone, ".", OFlags::RDONLY, Mode::empty()).map(drop));
    let up = rustix::fs::statat(gone, "..", AtFlags::empty()).map(|s| s.st_ino);
    t.note("its parent", up.map(|ino| ino == fs::metadata(root).unwrap().ino()));
    t.note("chmod", rustix::fs::fchmod(gone, Mode::from(0o711)));
    t.note("setxattr", rustix::fs::fsetxattr(gone, "user.x", b"1", XattrFlags::empty()));
    t.note("fsync", rustix::fs::fsync(gone));
    t.stat("after all", gone);
}

#[test]
fn a_removed_directory_that_somebody_holds_takes_nothing_more() {
    everywhere(|dir| {
        let mut t = Transcript::default();
        fs::write(dir.join("file"), "x").unwrap();
        for how in ["rmdir", "rename", "used"] {
            let path = dir.join("d");
            fs::create_dir(&path).unwrap();
            let gone = open(&path, OFlags::DIRECTORY).unwrap();
            match how {
                "rmdir" => fs::remove_dir(&path).unwrap(),
                "rename" => {
                    fs::create_dir(dir.join("e")).unwrap();
                    fs::rename(dir.join("e"), &path).unwrap();
                }
                _ => {
                    fs::create_dir(path.join("sub")).unwrap();
                    fs::write(path.join("f"), "x").unwrap();
                    fs::remove_dir_all(&path).unwrap();
                }
            }
            in_it(&mut t, &gone, dir);
            let _ = fs::remove_dir(&path);
        }
        t
    });
}

#[test]
fn a_shell_in_a_removed_directory() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &[]), farm.plain());
    let script = r#"mkdir -p d/e && cd d/e && rmdir ../e && (cd .. && rmdir ../d)
        for try in 'ls -A' 'touch f' 'mkdir g' 'echo x > f' 'cat f' 'stat -c "%F %h" .' 'ls ..' '/bin/pwd' 'cd ../../'; do
            if answer=$(eval "$try" 2>&1); then echo "$try: ok: $answer"; else echo "$try: failed: ${answer##*: }"; fi
        done"#;
    let want = farm.sh(&plain, script);
    assert!(want.contains("touch f: failed: No such file or directory"), "{want}");
    fs::create_dir(m.join("node_modules")).unwrap();
    for dir in [&m, &m.join("node_modules")] {
        assert_eq!(farm.sh(dir, script), want);
    }
}

#[test]
fn a_removed_directory_of_another_mount_takes_nothing_more() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, other) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    fs::create_dir(m.join("d")).unwrap();
    fs::write(m.join("d/f"), "held").unwrap();
    let (dir, file) = (open(m.join("d"), OFlags::DIRECTORY).unwrap(), File::open(m.join("d/f")).unwrap());
    fs::remove_dir_all(other.join("d")).unwrap();
    assert!(!m.join("d").exists());
    let seen = fs::read_dir(proc_path(&dir)).map(|d| d.count());
    assert!(seen.is_err() || seen.is_ok_and(|n| n == 0), "it lists entries");
    for made in [
        rustix::fs::openat(&dir, "g", OFlags::CREATE | OFlags::RDWR, Mode::RWXU).map(drop),
        rustix::fs::mkdirat(&dir, "g", Mode::RWXU),
        rustix::fs::statat(&dir, "f", AtFlags::empty()).map(drop),
    ] {
        assert_eq!(made, Err(Errno::NOENT));
    }
    assert_eq!(fs::metadata(proc_path(&dir)).unwrap().nlink(), 0);
    assert_eq!((file.metadata().unwrap().nlink(), read(&file)), (0, Ok(b"held".to_vec())));
    drop((dir, file));
    assert_eq!(fs::read_dir(&m).unwrap().count(), 0);
}

#[test]
fn all_links_are_removed_by_one_command_while_it_is_written() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::create_dir(m.join("node_modules")).unwrap();
    for dir in [&m.join("tree"), &m.join("node_modules/d")] {
        fs::create_dir(dir).unwrap();
        let file = File::options().read(true).write(true).create_new(true).open(dir.join("a")).unwrap();
        farm.sh(dir, "ln a b; ln a c; [ $(stat -c %h a) = 3 ]; rm a b c; [ -z \"$(ls -A)\" ]");
        let data = Random::new(11).bytes(10 << 20);
        for (i, part) in data.chunks(100_000).enumerate() {
            file.write_all_at(part, i as u64 * 100_000).unwrap();
        }
        let mut back = vec![0; data.len()];
        file.read_exact_at(&mut back, 0).unwrap();
        let meta = file.metadata().unwrap();
        assert!(back == data && meta.nlink() == 0 && meta.len() == data.len() as u64);
        farm.sh(dir, "[ -z \"$(ls -A)\" ]");
    }
    // The client dies with such a file open: nothing of it is there afterwards.
    let orphan = File::options().write(true).create_new(true).open(m.join("tree/a")).unwrap();
    orphan.write_all_at(&[1; 1 << 20], 0).unwrap();
    orphan.sync_all().unwrap();
    fs::remove_file(m.join("tree/a")).unwrap();
    orphan.write_all_at(&[2; 1 << 20], 0).unwrap();
    farm.kill9(&m);
    let m = farm.mount(&space, &[]);
    assert_eq!(fs::read_dir(m.join("tree")).unwrap().count(), 0);
    assert_eq!(farm.json(&["ls", &format!("{space}:/tree")]), serde_json::json!([]));
}

#[test]
fn a_file_that_never_had_a_name_is_refused_cleanly() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::create_dir_all(m.join("node_modules/d")).unwrap();
    fs::create_dir(m.join("d")).unwrap();
    fs::write(m.join("f"), "x").unwrap();
    for dir in ["", "d", "node_modules", "node_modules/d"] {
        for flags in [OFlags::RDWR, OFlags::WRONLY, OFlags::RDWR | OFlags::EXCL, OFlags::WRONLY | OFlags::APPEND] {
            let made = open(m.join(dir), OFlags::TMPFILE | flags);
            assert_eq!(made.map(drop), Err(Errno::OPNOTSUPP), "{dir}: {flags:?}");
        }
        // Programs know what to do then: a name that is taken away at once.
        let program = "import tempfile\nwith tempfile.TemporaryFile(dir='.') as f: f.write(b'x' * 9); f.flush(); f.seek(0); assert f.read() == b'x' * 9";
        farm.sh(&m.join(dir), &format!("python3 -c \"{program}\""));
    }
    assert_eq!(open(m.join("f"), OFlags::TMPFILE | OFlags::RDWR).map(drop), Err(Errno::NOTDIR));
    assert_eq!(open(m.join("none"), OFlags::TMPFILE | OFlags::RDWR).map(drop), Err(Errno::NOENT));
    assert_eq!(open(m.join("d"), OFlags::TMPFILE | OFlags::RDONLY).map(drop), Err(Errno::INVAL));
    for dir in ["d", "node_modules/d"] {
        assert_eq!(fs::read_dir(m.join(dir)).unwrap().count(), 0);
    }
}
