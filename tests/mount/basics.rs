//! What every program takes for granted of a directory: names, links, modes, sizes, times, open files. On one mount.

use crate::common::Farm;
use crate::common::tree::{Random, chmod};
use rustix::fs::{CWD, FallocateFlags, RenameFlags, XattrFlags};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;

#[test]
fn a_shell_finds_what_it_expects() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    farm.sh(
        &m,
        r#"mkdir -p a/b && echo one > a/b/x && cp a/b/x y && ln y z && ln -s a/b/x s && [ "$(cat s)" = one ]
           [ "$(stat -c %h y)" = 2 ] && mv a/b/x a/x2 && rm y && [ "$(cat z)" = one ]
           chmod 750 a && [ "$(stat -c %a a)" = 750 ]
           ! ls nothere 2>/dev/null && rmdir a/b
           for i in 1 2 3; do echo line$i >> log; done && [ "$(wc -l < log)" = 3 ]
           (umask 027; mkdir u; echo > u/f) && [ "$(stat -c %a u)$(stat -c %a u/f)" = 750640 ]
           [ "$(df --output=size . | tail -1)" -gt 0 ]"#,
    );
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    assert_eq!(fs::read_to_string(m.join("log")).unwrap(), "line1\nline2\nline3\n");
    assert_eq!(fs::read_link(m.join("s")).unwrap(), Path::new("a/b/x"));
}

#[test]
fn rename_flags_are_never_dropped() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let rename = |a: &str, b: &str, flags| rustix::fs::renameat_with(CWD, m.join(a), CWD, m.join(b), flags);
    for name in ["a", "b", "c"] {
        fs::write(m.join(name), name).unwrap();
    }
    fs::create_dir_all(m.join("d/sub")).unwrap();
    fs::create_dir(m.join("e")).unwrap();

    assert_eq!(rename("a", "b", RenameFlags::NOREPLACE), Err(rustix::io::Errno::EXIST));
    assert_eq!(fs::read_to_string(m.join("b")).unwrap(), "b");
    rename("a", "free", RenameFlags::NOREPLACE).unwrap();
    assert!(!m.join("a").exists());

    rename("b", "c", RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read_to_string(m.join("b")).unwrap(), "c");
    rename("c", "d", RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read_to_string(m.join("d")).unwrap(), "b");
    assert!(m.join("c/sub").is_dir());
    rename("c", "e", RenameFlags::EXCHANGE).unwrap();
    assert!(m.join("e/sub").is_dir() && !m.join("c/sub").exists());
    assert_eq!(rename("b", "gone", RenameFlags::EXCHANGE), Err(rustix::io::Errno::NOENT));
    assert_eq!(rename("b", "white", RenameFlags::WHITEOUT), Err(rustix::io::Errno::INVAL));
}

#[test]
fn renaming_a_link_onto_its_sibling_changes_nothing() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::write(m.join("a"), "x").unwrap();
    fs::hard_link(m.join("a"), m.join("b")).unwrap();
    farm.cli([OsStr::new("sync"), m.as_os_str()]);
    let versions = farm.json(&["log", &space, "/a"]).as_array().unwrap().len();
    fs::rename(m.join("a"), m.join("b")).unwrap();
    assert_eq!(fs::metadata(m.join("a")).unwrap().nlink(), 2);
    assert_eq!(fs::metadata(m.join("b")).unwrap().ino(), fs::metadata(m.join("a")).unwrap().ino());
    farm.cli([OsStr::new("sync"), m.as_os_str()]);
    assert_eq!(farm.json(&["log", &space, "/a"]).as_array().unwrap().len(), versions);
}

#[test]
fn an_unlinked_file_lives_while_it_is_open() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let mut file = File::options().read(true).write(true).create_new(true).open(m.join("a")).unwrap();
    file.write_all(b"begin").unwrap();
    for name in ["b", "c"] {
        fs::hard_link(m.join("a"), m.join(name)).unwrap();
    }
    assert_eq!(file.metadata().unwrap().nlink(), 3);
    for name in ["a", "b", "c"] {
        fs::remove_file(m.join(name)).unwrap();
    }
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    let data = Random::new(5).bytes(10 << 20);
    file.write_all_at(&data, 5).unwrap();
    file.sync_all().unwrap();
    let mut back = vec![0; data.len()];
    file.read_exact_at(&mut back, 5).unwrap();
    assert!(back == data && file.metadata().unwrap().len() == data.len() as u64 + 5);
    file.set_len(3).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 3);
    drop(file);
    assert_eq!(fs::read_dir(&m).unwrap().count(), 0);
    assert_eq!(farm.json(&["ls", &format!("{space}:/")]), serde_json::json!([]));
}

#[test]
fn a_name_replaced_under_an_open_file_leaves_it_its_content() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::write(m.join("f"), "old").unwrap();
    let mut old = File::open(m.join("f")).unwrap();
    fs::write(m.join("f.tmp"), "new").unwrap();
    fs::rename(m.join("f.tmp"), m.join("f")).unwrap();
    assert_eq!(fs::read_to_string(m.join("f")).unwrap(), "new");
    let mut text = String::new();
    old.read_to_string(&mut text).unwrap();
    assert_eq!(text, "old");
    assert_eq!(old.metadata().unwrap().nlink(), 0);
}

#[test]
fn appends_of_several_processes_lose_no_line() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    farm.sh(
        &m,
        r#"for p in 1 2 3 4; do (for i in $(seq 1000); do printf '%d-%06d\n' $p $i; done | \
             python3 -c 'import os,sys
fd = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
for line in sys.stdin: os.write(fd, line.encode())') & done; wait
           [ "$(wc -l < log)" = 4000 ] && [ "$(sort -u log | wc -l)" = 4000 ] && [ "$(stat -c %s log)" = 36000 ]"#,
    );
}

#[test]
fn sparse_files_stay_sparse() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let file = File::options().read(true).write(true).create(true).truncate(true).open(m.join("s")).unwrap();
    file.set_len(34 << 30).unwrap();
    let places = [0u64, 4096 * 3 + 7, 1 << 30, (34 << 30) - 1];
    for &at in &places {
        file.write_all_at(b"x", at).unwrap();
    }
    drop(file);
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    let mut file = File::open(m.join("s")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 34 << 30);
    assert!(file.metadata().unwrap().blocks() * 512 < 2 << 20, "{} blocks", file.metadata().unwrap().blocks());
    let mut page = [1; 4096];
    for &at in &places {
        file.read_exact_at(&mut page[..1], at).unwrap();
        assert_eq!(page[0], b'x', "at {at}");
    }
    file.read_exact_at(&mut page, 5 << 30).unwrap();
    assert!(page.iter().all(|&b| b == 0));
    let hole = file.seek(SeekFrom::Start(0)).and_then(|_| Ok(rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(0))?));
    assert!(hole.unwrap() < 1 << 30, "no hole is reported before the third written byte");
    drop(file);
    assert_eq!(farm.json(&["stat", &format!("{space}:/s")])["size"], 34u64 << 30);
}

#[test]
fn allocation_and_truncation_do_what_they_say() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let data = Random::new(9).bytes(200_000);
    fs::write(m.join("f"), &data).unwrap();
    let file = File::options().read(true).write(true).open(m.join("f")).unwrap();
    file.set_len(100_001).unwrap();
    file.set_len(150_000).unwrap();
    let mut want = data[..100_001].to_vec();
    want.resize(150_000, 0);
    assert!(fs::read(m.join("f")).unwrap() == want, "cut and grown");

    rustix::fs::fallocate(&file, FallocateFlags::empty(), 150_000, 10_000).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 160_000);
    rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 500_000).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 160_000);
    want.resize(160_000, 0);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, punch, 5_000, 50_000).unwrap();
    want[5_000..55_000].fill(0);
    assert!(fs::read(m.join("f")).unwrap() == want, "punched");

    let copy = File::create(m.join("g")).unwrap();
    let n = rustix::fs::copy_file_range(&file, Some(&mut 60_000), &copy, Some(&mut 10), 30_000).unwrap();
    drop((file, copy));
    let copied = fs::read(m.join("g")).unwrap();
    assert!(n > 0 && copied.len() == 10 + n && copied[10..] == want[60_000..60_000 + n]);
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    assert!(fs::read(m.join("f")).unwrap() == want && fs::read(m.join("g")).unwrap() == copied, "after a remount");
}

#[test]
fn names_are_bytes() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let long = "n".repeat(255);
    let names: Vec<&[u8]> = vec![
        "é".as_bytes(),
        "e\u{301}".as_bytes(),
        b"\xe9",
        b"A",
        b"a",
        b"new\nline",
        b"quote'\"",
        b"%2F",
        b"-rf",
        b" ",
        b"\\",
        b"...",
        long.as_bytes(),
    ];
    for (i, name) in names.iter().enumerate() {
        fs::write(m.join(OsStr::from_bytes(name)), i.to_string()).unwrap();
    }
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    let listed: BTreeSet<Vec<u8>> =
        fs::read_dir(&m).unwrap().map(|e| e.unwrap().file_name().as_bytes().to_vec()).collect();
    assert_eq!(listed, names.iter().map(|n| n.to_vec()).collect());
    for (i, name) in names.iter().enumerate() {
        assert_eq!(fs::read_to_string(m.join(OsStr::from_bytes(name))).unwrap(), i.to_string(), "{name:?}");
    }
    let entries = farm.json(&["ls", &format!("{space}:/")]);
    let entries = entries.as_array().unwrap();
    assert_eq!(entries.len(), names.len());
    let lossless = entries.iter().filter(|e| e["name_b64"] == "6Q==").count();
    assert_eq!(lossless, 1, "the name that is not UTF-8 comes in base64 too: {entries:?}");
}

#[test]
fn large_directories_list_whole_while_they_change() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let dir = m.join("d");
    fs::create_dir(&dir).unwrap();
    for i in 0..3000 {
        File::create(dir.join(format!("f{i}"))).unwrap();
    }
    // Entries that stay are listed exactly once, whatever is removed while the listing goes on.
    let mut seen = Vec::new();
    for (i, entry) in fs::read_dir(&dir).unwrap().enumerate() {
        seen.push(entry.unwrap().file_name().into_string().unwrap());
        if i < 1000 {
            fs::remove_file(dir.join(format!("f{}", 2999 - i))).unwrap();
        }
    }
    let stayed: BTreeSet<String> = (0..2000).map(|i| format!("f{i}")).collect();
    let listed: Vec<&String> = seen.iter().filter(|n| stayed.contains(*n)).collect();
    assert_eq!(listed.len(), 2000);
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>().len(), 2000);
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(fs::read_dir(&m).unwrap().count(), 0);
}

#[test]
fn special_files_modes_and_times_are_kept() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    farm.sh(&m, "mkfifo p && (echo through > p &) && [ \"$(cat p)\" = through ]");
    let socket = std::os::unix::net::UnixListener::bind(m.join("k")).unwrap();
    let mut peer = std::os::unix::net::UnixStream::connect(m.join("k")).unwrap();
    peer.write_all(b"x").unwrap();
    socket.accept().unwrap().0.read_exact(&mut [0]).unwrap();
    drop((socket, peer));

    fs::write(m.join("f"), "x").unwrap();
    chmod(&m.join("f"), 0o4711);
    let time = |secs, nanos| std::time::UNIX_EPOCH + std::time::Duration::new(secs, nanos);
    let times = fs::FileTimes::new().set_modified(time(1_234_567_890, 123_456_789)).set_accessed(time(99, 1));
    File::options().write(true).open(m.join("f")).unwrap().set_times(times).unwrap();
    let before = fs::metadata(m.join("f")).unwrap().ctime();

    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    assert!(fs::symlink_metadata(m.join("p")).unwrap().file_type().is_fifo());
    assert!(fs::symlink_metadata(m.join("k")).unwrap().file_type().is_socket());
    let meta = fs::metadata(m.join("f")).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.mtime(), meta.mtime_nsec()), (0o4711, 1_234_567_890, 123_456_789));
    assert_eq!(meta.ctime(), before);
    // A write by somebody without privilege takes the set-user-id bit away; by root it may stay, as on any file system.
    fs::write(m.join("f"), "longer").unwrap();
    let meta = fs::metadata(m.join("f")).unwrap();
    assert!(meta.mtime() > 1_700_000_000 && meta.len() == 6 && meta.mode() & 0o777 == 0o711);
}

#[test]
fn extended_attributes() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let f = m.join("f");
    fs::write(&f, "x").unwrap();
    rustix::fs::setxattr(&f, "user.color", b"red", XattrFlags::empty()).unwrap();
    let create = rustix::fs::setxattr(&f, "user.color", b"blue", XattrFlags::CREATE);
    assert_eq!(create, Err(rustix::io::Errno::EXIST));
    let replace = rustix::fs::setxattr(&f, "user.none", b"x", XattrFlags::REPLACE);
    assert_eq!(replace, Err(rustix::io::Errno::NODATA));
    rustix::fs::setxattr(&f, "user.empty", b"", XattrFlags::empty()).unwrap();
    farm.umount(&m);
    let f = farm.mount(&space, &[]).join("f");
    let mut buffer = [0u8; 64];
    let n = rustix::fs::getxattr(&f, "user.color", &mut buffer[..]).unwrap();
    assert_eq!(&buffer[..n], b"red");
    assert_eq!(rustix::fs::getxattr(&f, "user.color", &mut buffer[..1]), Err(rustix::io::Errno::RANGE));
    let n = rustix::fs::listxattr(&f, &mut buffer[..]).unwrap();
    let names: BTreeSet<&[u8]> = buffer[..n].split(|&b| b == 0).filter(|s| !s.is_empty()).collect();
    assert_eq!(names, BTreeSet::from([b"user.color".as_slice(), b"user.empty"]));
    rustix::fs::removexattr(&f, "user.color").unwrap();
    assert_eq!(rustix::fs::getxattr(&f, "user.color", &mut buffer[..]), Err(rustix::io::Errno::NODATA));
}

#[test]
fn closed_files_can_be_opened_again_at_once() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let mut random = Random::new(4);
    for i in 0..500 {
        let path = m.join(format!("f{}", i % 20));
        let size = 1 + (random.number() % 100_000) as usize;
        let data = random.bytes(size);
        fs::write(&path, &data).unwrap();
        assert!(fs::read(&path).unwrap() == data, "round {i}");
        File::options().append(true).open(&path).unwrap().write_all(b"tail").unwrap();
        let got = fs::read(&path).unwrap();
        assert!(got[..size] == data && &got[size..] == b"tail", "round {i}, appended");
    }
}

#[test]
fn a_mount_of_a_subdirectory_and_a_read_only_mount() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::create_dir_all(m.join("a/b")).unwrap();
    fs::write(m.join("a/b/f"), "deep").unwrap();
    let sub = farm.mount(&format!("{space}:/a"), &["--read-only"]);
    assert_eq!(fs::read_to_string(sub.join("b/f")).unwrap(), "deep");
    for result in [fs::write(sub.join("x"), ""), fs::remove_file(sub.join("b/f")), fs::create_dir(sub.join("d"))] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
    }
    fs::write(m.join("a/b/f"), "changed").unwrap();
    assert_eq!(fs::read_to_string(sub.join("b/f")).unwrap(), "changed");
}
