//! Random file operations on a mount and on a plain directory, side by side: every answer, errno, attribute and byte must be
//! the same, and stay so after a remount. What was found in this way stays here as a script of its own.
//!
//! `AGFS_TEST_LONG=1` tries many more seeds. One seed: `cargo run --example difftest` on any two directories.

use crate::common::Farm;
use agfs_difftest::accepted::{Accepted, Case, SAME_XATTR};
use agfs_difftest::compare::kept;
use agfs_difftest::op::Op;
use agfs_difftest::outcome::{Kind, Outcome, Stat};
use agfs_difftest::posix::{Limits, Posix, is_privileged};
use agfs_difftest::run::Watch;
use agfs_difftest::{Profile, Script, Side, Trial};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// After how many seeds that fail the others are not tried.
const ENOUGH: usize = 2;

/// Where a mount may differ from a plain directory, and why.
const ACCEPTED: &[Accepted] = &[
    SAME_XATTR,
    Accepted {
        reason: "the kernel does not tell a file system in user space that a fifo was read or written",
        fits: |case| of_stats(case, |first, _| first.kind == Kind::Fifo && case.difference.kind.contains("time")),
    },
    Accepted {
        reason: "who may not keep set-group-id depends on all of a writer's groups, which the kernel does not tell",
        fits: |case| {
            let kept = |a: &Stat, b: &Stat| b.mode == a.mode | libc::S_ISGID && b.mode & libc::S_IXGRP == 0;
            case.difference.kind == "mode" && of_stats(case, kept)
        },
    },
];

fn of_stats(case: &Case<'_>, holds: impl Fn(&Stat, &Stat) -> bool) -> bool {
    case.difference.stats.as_ref().is_some_and(|(first, second)| holds(first, second))
}

/// A mount and a plain directory, and the directories in both in which scripts were done.
struct Arena {
    farm: Farm,
    space: String,
    mount: PathBuf,
    /// Where below the mount.
    below: &'static str,
    plain: PathBuf,
    made: usize,
    limits: Limits,
}

impl Arena {
    fn new(below: &'static str) -> Arena {
        let mut farm = Farm::new();
        let space = farm.space();
        // As root a script is also done by another user.
        let options: &[&str] = if is_privileged() { &["--allow-other"] } else { &[] };
        let (mount, plain) = (farm.mount(&space, options), farm.plain());
        std::fs::create_dir_all(mount.join(below)).unwrap();
        let limits = Limits { no_tmpfile: !has_tmpfile(&mount.join(below)) };
        Arena { farm, space, mount, below, plain, made: 0, limits }
    }

    /// Two fresh directories.
    fn sides(&mut self) -> (Side, Side) {
        self.made += 1;
        let (plain, other) = (self.plain.join(self.made.to_string()), self.on_mount(self.made));
        std::fs::create_dir(&plain).unwrap();
        std::fs::create_dir(&other).unwrap();
        let limits = self.limits;
        (Side::new(move || Posix::new(&plain, limits)), Side::new(move || Posix::new(&other, Limits::default())))
    }

    fn on_mount(&self, n: usize) -> PathBuf {
        self.mount.join(self.below).join(n.to_string())
    }

    /// Does something in fresh directories.
    fn trial<T>(&mut self, act: impl FnOnce(&mut Trial<'_>) -> T) -> T {
        act(&mut Trial::new(ACCEPTED, || self.sides()))
    }

    /// Does the scripts of some seeds, and looks again after a remount with an empty cache.
    fn seeds(mut self, seeds: std::ops::Range<u64>, steps: usize) {
        let privileged = is_privileged();
        let profile = Profile { privileged, dotdot: privileged, ..Profile::everything() };
        let (begin, mut trees, mut successes) = (Instant::now(), Vec::new(), 0);
        let mut failures = Vec::new();
        for seed in seeds {
            match self.trial(|t| t.seed(seed, steps, profile)) {
                Ok(passed) => {
                    successes += passed.report.successes();
                    trees.push((self.made, passed.trees.1));
                }
                Err(failure) => failures.push(format!("seed {seed}: {failure}")),
            }
            if failures.len() == ENOUGH {
                break;
            }
        }
        let all = steps * trees.len();
        println!("{all} operations in {:?}, {successes} succeeded", begin.elapsed());
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert!(successes > all / 4, "only {successes} of {all} did anything");
        self.farm.umount(&self.mount);
        if self.below.is_empty() {
            self.mount = self.farm.mount(&self.space, &[]);
            for (n, before) in trees {
                let after = tree(&self.on_mount(n));
                kept(&before, &after).unwrap_or_else(|d| panic!("after a remount, in directory {n}: {}", d.text));
            }
        }
    }
}

fn tree(dir: &Path) -> Outcome {
    let dir = dir.to_owned();
    Side::new(move || Posix::new(&dir, Limits::default())).apply(Op::Tree {})
}

fn has_tmpfile(dir: &Path) -> bool {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::open(dir, OFlags::TMPFILE | OFlags::RDWR, Mode::RWXU).is_ok()
}

fn is_long() -> bool {
    std::env::var_os("AGFS_TEST_LONG").is_some()
}

#[test]
fn random_operations_on_a_mount_do_what_they_do_on_a_plain_directory() {
    let (seeds, steps) = if is_long() { (0..400, 5_000) } else { (0..12, 1_500) };
    Arena::new("").seeds(seeds, steps);
}

#[test]
fn random_operations_in_a_shadow_do_what_they_do_on_a_plain_directory() {
    let (seeds, steps) = if is_long() { (1_000..1_200, 5_000) } else { (1_000..1_006, 1_500) };
    Arena::new("node_modules").seeds(seeds, steps);
}

/// Scripts that once differed, shrunk.
const FOUND: &[(&str, &str)] = &[
    (
        "a_mapped_page_of_a_file_open_for_appending_goes_to_its_place",
        "open #2 d rw+creat+append 644; pwrite #2 0 13528 70; mapwrite #2 1273 2786 17 yes; pread #2 0 20000",
    ),
    (
        "a_mapped_page_of_a_file_open_for_appending_makes_it_no_longer",
        "open #0 c rw+creat 644; pwrite #0 0 1 1; open #6 c rw+append 644; mapwrite #6 0 1 1 no; close #6; close #0",
    ),
    (
        "a_mode_set_on_a_file_being_written_survives_the_loss_of_its_name",
        "open #1 d rw+creat 644; write #1 1 1; chmod #1 4755; unlink d",
    ),
    (
        "an_owner_set_on_a_file_being_written_survives_the_loss_of_its_name",
        "open #0 c rw+creat 644; truncate c 755; chown c 1000 -; unlink c",
    ),
    ("losing_its_last_name_changes_ctime", "open #0 c creat 644; unlink c"),
    ("being_replaced_changes_ctime", "open #0 c creat 644; open #1 d creat 644; rename d c plain"),
    ("losing_one_of_two_names_changes_ctime", "open #0 c creat 644; link c d no; unlink c"),
    ("a_listing_shows_what_was_made_since_the_opening", "mkdir b 755; open #6 b r 644; mkdir b/a 755; list #6"),
    ("truncation_by_open_of_an_empty_file_changes_mtime", "open #0 c creat 644; open #0 c trunc 0"),
    ("truncation_by_open_for_reading", "open #3 c rw+creat 644; pwrite #3 0 1 1; open #5 c trunc 644"),
    (
        "truncation_by_open_for_reading_after_allocation",
        "open #0 c rw+creat 644; fallocate #0 plain 0 1; open #2 c trunc 0",
    ),
    ("a_change_of_owner_to_nobody_else_changes_ctime", "mkdir a 755; chown a - -"),
    (
        "a_change_of_owner_to_nobody_else_takes_set_ids",
        "open #4 f creat 4755; chown f - -; open #5 e creat 2755; chown e - -",
    ),
    (
        "a_commit_does_not_take_ctime_back",
        "open #0 c rw+creat 644; pwrite #0 0 1 1; setxattr #0 user.a 0*37 set; sync #0 no",
    ),
    ("a_commit_at_close_does_not_take_ctime_back", "open #1 d rw+creat 644; pwrite #1 0 1 1; linkfd #1 a; close #1"),
    (
        "an_attribute_without_a_name_is_refused",
        "setxattr . user. 0*1 set; setxattr . user. 0*1 replace; getxattr . user.",
    ),
    ("an_attribute_without_a_name_is_not_removed", "mkdir a 755; removexattr a user."),
    ("allocation_that_keeps_the_size_changes_times", "open #1 d rw+creat 644; fallocate #1 keep 0 1"),
    (
        "truncation_to_the_same_size_changes_times",
        "open #1 d rw+creat 644; pwrite #1 0 9 1; truncate #1 9; truncate d 9",
    ),
    (
        "a_removed_directory_that_is_open",
        "mkdir a 755; open #1 a r 0; rmdir a; list #1; stat #1; mkdir @1:b 755; stat @1:.",
    ),
    (
        "an_unlinked_file_that_is_open",
        "open #1 c rw+creat 644; unlink c; setxattr #1 user.a 3*7 set; getxattr #1 user.a; reopen #2 #1 rw; pwrite #2 0 5 5; \
         pread #1 0 9; linkfd #1 d; chmod #1 600; truncate #2 3; stat #1",
    ),
];

fn found_scripts_do_what_they_do_on_a_plain_directory(below: &'static str) {
    let mut arena = Arena::new(below);
    let mut wrong = Vec::new();
    for (name, script) in FOUND {
        if let Err(failure) = arena.trial(|t| t.script(&Script::of(script), Watch::CLOSE)) {
            wrong.push(format!("{name}: {failure}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), FOUND.len(), wrong.join("\n"));
}

#[test]
fn what_once_differed_is_the_same_on_a_mount() {
    found_scripts_do_what_they_do_on_a_plain_directory("");
}

#[test]
fn what_once_differed_is_the_same_in_a_shadow() {
    found_scripts_do_what_they_do_on_a_plain_directory("node_modules");
}
