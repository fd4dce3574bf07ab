//! Random file operations on a mount and on a plain directory, side by side: every answer, errno, attribute and byte must be
//! the same, and stay so after a remount. What was found in this way stays here as a script of its own.
//!
//! `AGFS_TEST_LONG=1` tries many more seeds. By hand, on any two directories: the example of the crate `agfs-difftest`.

use crate::common::{Farm, long};
use agfs_difftest::accepted::{Accepted, Case, SAME_XATTR};
use agfs_difftest::compare::kept;
use agfs_difftest::found::FOUND;
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

#[test]
fn random_operations_on_a_mount_do_what_they_do_on_a_plain_directory() {
    let (seeds, steps) = if long() { (0..400, 5_000) } else { (0..40, 2_000) };
    Arena::new("").seeds(seeds, steps);
}

#[test]
fn random_operations_in_a_shadow_do_what_they_do_on_a_plain_directory() {
    let (seeds, steps) = if long() { (1_000..1_200, 5_000) } else { (1_000..1_016, 2_000) };
    Arena::new("node_modules").seeds(seeds, steps);
}

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
