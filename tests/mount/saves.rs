//! What was written is there: at once for the next open, after a save by rename, after an fsync, and line by line where
//! several append.

use crate::common::tree::Random;
use crate::common::{Farm, long, program};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

#[test]
fn a_reader_gets_one_whole_generation_of_a_file_that_is_saved() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let (count, pause) = if long() { (500, 0.1) } else { (60, 0.02) };
    let script = format!("python3 -B '{}' . {count} {pause}", program("atomic_save.py"));
    farm.sh(&m, &script);
    let last = fs::read(m.join("f")).unwrap();
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    assert!(fs::read(m.join("f")).unwrap() == last && last[..8] == u64::to_le_bytes(count), "after a remount");
    assert_eq!(fs::read_dir(&m).unwrap().count(), 1);
    let log = farm.json(&["log", &space, "/f", "--limit", "10000"]);
    let sizes: Vec<u64> = log.as_array().unwrap().iter().map(|v| v["size"].as_u64().unwrap()).collect();
    // The first one was not saved by a rename.
    assert_eq!(sizes, vec![1 << 20; count as usize + 1]);
}

#[test]
fn closed_files_are_opened_at_once_by_children_too() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &[]), farm.plain());
    fs::create_dir(m.join("node_modules")).unwrap();
    let rounds = if long() { 10_000 } else { 1_000 };
    for (dir, rounds) in [(&plain, 100), (&m.join("node_modules"), 100), (&m, rounds)] {
        let script = format!("python3 -B '{}' . {rounds}", program("reopen.py"));
        farm.sh_within(dir, &script, Duration::from_secs(600));
    }
}

#[test]
fn size_and_content_are_exact_after_each_fsync() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, second) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    fs::create_dir(m.join("node_modules")).unwrap();
    let mut random = Random::new(16);
    let mut write_on = |path: &Path, elsewhere: Option<&Path>| {
        let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
        let mut want = Vec::new();
        for step in 0..40 {
            // Sizes that are kept in memory and on disk, and that cross from one to the other.
            let size = *random.pick(&[1, 100, 4_096, 70_000, 300_000]);
            let data = random.bytes(size);
            let at = if step % 3 == 2 { random.number() as usize % want.len() } else { want.len() };
            file.write_all_at(&data, at as u64).unwrap();
            want.resize(want.len().max(at + data.len()), 0);
            want[at..at + data.len()].copy_from_slice(&data);
            if step % 2 == 0 { file.sync_all() } else { file.sync_data() }.unwrap();
            assert_eq!(file.metadata().unwrap().len(), want.len() as u64, "step {step}");
            let mut got = vec![0; want.len()];
            file.read_exact_at(&mut got, 0).unwrap();
            assert!(got == want, "step {step}: another content after fsync");
            if let Some(elsewhere) = elsewhere {
                assert!(fs::read(elsewhere).unwrap() == want, "step {step}: another mount reads something else");
            }
        }
    };
    for i in 0..if long() { 20 } else { 2 } {
        let name = format!("f{i}");
        write_on(&m.join(&name), Some(&second.join(&name)));
        write_on(&m.join("node_modules").join(&name), None);
    }
}

/// All lines `PROCESS-NUMBER` are there once, each whole, and those of one process in order.
fn every_line_is_there(text: &str, processes: usize, lines: usize) {
    assert_eq!(text.len(), processes * lines * 10, "bytes");
    for who in 0..processes {
        let own: Vec<&str> = text.lines().filter(|l| l.starts_with(&format!("{who}-"))).collect();
        let want: Vec<String> = (0..lines).map(|i| format!("{who}-{i:07}")).collect();
        assert!(own == want, "process {who}: {} lines, or not in order", own.len());
    }
}

#[test]
fn shells_that_append_with_an_open_for_each_line_lose_none() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::create_dir(m.join("node_modules")).unwrap();
    let lines = if long() { 1_000 } else { 250 };
    for dir in [&m, &m.join("node_modules")] {
        farm.sh(
            dir,
            &format!(
                r#"for p in 0 1 2 3; do
                       (for ((i = 0; i < {lines}; i++)); do printf '%d-%07d\n' $p $i >> log; done) & pids="${{pids-}} $!"
                   done; for p in $pids; do wait $p; done"#
            ),
        );
        every_line_is_there(&fs::read_to_string(dir.join("log")).unwrap(), 4, lines);
    }
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    every_line_is_there(&fs::read_to_string(m.join("log")).unwrap(), 4, lines);
}

#[test]
fn turns_of_two_mounts_that_keep_the_file_open_lose_no_line() {
    let mut farm = Farm::new();
    let space = farm.space();
    let mounts = [farm.mount(&space, &[]), farm.mount(&space, &[])];
    fs::write(mounts[0].join("log"), "").unwrap();
    // Both have read it, and go on having it open.
    let readers = mounts.each_ref().map(|m| File::open(m.join("log")).unwrap());
    let (lines, turn) = (1_000, if long() { 5 } else { 25 });
    for at in (0..lines).step_by(turn) {
        for who in 0..4 {
            let mut file = File::options().append(true).open(mounts[who % 2].join("log")).unwrap();
            for i in at..at + turn {
                file.write_all(format!("{who}-{i:07}\n").as_bytes()).unwrap();
            }
        }
        for reader in &readers {
            assert_eq!(reader.metadata().unwrap().len(), ((at + turn) * 4 * 10) as u64);
        }
    }
    for (m, reader) in mounts.iter().zip(&readers) {
        every_line_is_there(&fs::read_to_string(m.join("log")).unwrap(), 4, lines);
        let mut text = vec![0; lines * 40];
        reader.read_exact_at(&mut text, 0).unwrap();
        every_line_is_there(std::str::from_utf8(&text).unwrap(), 4, lines);
    }
    farm.cli([OsStr::new("sync"), mounts[0].as_os_str()]);
    every_line_is_there(&farm.cli(["cat", &format!("{space}:/log")]).out(), 4, lines);
}
