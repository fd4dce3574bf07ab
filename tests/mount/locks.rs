//! Locks on one mount: flock, fcntl and open file description locks, as between programs on a plain directory. What is tried
//! stands in tests/programs/locks.py and holds on both, in the tree, in a shadow, and on files without a name.

use crate::common::process::{signal, start};
use crate::common::{Farm, program};
use rustix::process::Signal;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The command line of the program of locks for `what` in the current directory.
fn locks(what: &str) -> String {
    format!("python3 -B '{}' . {what}", program("locks.py"))
}

/// Tries these on a plain directory and on a mount.
fn both(what: &str) {
    let mut farm = Farm::new();
    let space = farm.space();
    for dir in [farm.plain(), farm.mount(&space, &[])] {
        farm.sh(&dir, &locks(what));
    }
}

#[test]
fn locks_are_shared_or_exclusive_and_change_from_one_to_the_other() {
    both("sharing_and_excluding upgrading_and_downgrading read_only kinds_beside_each_other");
}

#[test]
fn who_waits_for_a_lock_is_woken() {
    both("waiting_and_waking waiting_for_a_range");
}

#[test]
fn who_waits_for_a_lock_can_be_interrupted() {
    both("interrupted restarted");
}

#[test]
fn locks_end_with_their_holder() {
    both("killed closing inheriting");
}

#[test]
fn ranges_are_locked_by_the_byte() {
    both("ranges");
}

#[test]
fn a_deadlock_is_told_to_exactly_one() {
    both("a_cycle no_cycle");
}

#[test]
fn two_open_files_of_one_process_lock_against_each_other() {
    both("one_process_twice");
}

#[test]
fn a_lock_stays_with_the_file_when_names_move() {
    both("names_that_move");
}

#[test]
fn what_is_counted_under_a_lock_is_exact() {
    both("counting counting_by_close");
}

/// A process that holds locks of every kind in `dir`.
fn holder(farm: &Farm, dir: &Path, name: &str) -> Child {
    let log = farm.path(name);
    let mut command = Command::new("python3");
    farm.isolate(&mut command);
    command.args(["-B", &program("locks.py"), ".", "hold"]).current_dir(dir);
    let child = start(&mut command, &log);
    let begin = Instant::now();
    while std::fs::read_to_string(&log).unwrap() != "held\n" {
        assert!(begin.elapsed() < Duration::from_secs(20), "{}", std::fs::read_to_string(&log).unwrap());
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn kill(mut child: Child) {
    signal(&child, Signal::KILL);
    child.wait().unwrap();
}

#[test]
fn a_dead_holder_frees_its_locks_at_once() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    for round in 0..5 {
        let held = holder(&farm, &m, &format!("holder{round}.log"));
        farm.sh(&m, &locks("somebody_holds"));
        kill(held);
        farm.sh(&m, &locks("nobody_holds"));
    }
}

#[test]
fn no_lock_outlives_its_mount() {
    let mut farm = Farm::new();
    let space = farm.space();
    let cache = farm.path("cache");
    let m = farm.mount_with_cache(&space, &[], &cache);
    let held = holder(&farm, &m, "holder1.log");
    farm.sh(&m, &locks("somebody_holds"));
    kill(held);
    farm.umount(&m);
    let m = farm.mount_with_cache(&space, &[], &cache);
    farm.sh(&m, &locks("nobody_holds"));

    // The client dies, and the holder lives on with files of a mount that is gone.
    let held = holder(&farm, &m, "holder2.log");
    farm.kill9(&m);
    let m = farm.mount_with_cache(&space, &[], &cache);
    farm.sh(&m, &locks("nobody_holds"));
    kill(held);
    farm.sh(&m, &locks("nobody_holds"));
}
