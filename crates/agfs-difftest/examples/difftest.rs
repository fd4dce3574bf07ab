//! By hand: the same random operations on two directories until they differ, and the shortest script that shows it.
//!
//! `difftest PLAIN OTHER seed FIRST COUNT STEPS` tries seeds; `difftest PLAIN OTHER script 'mkdir a 755; …'` does one.
//! With `NO_TMPFILE` set, the plain directory has no O_TMPFILE; differences whose name has one of the words of `SKIP`
//! (`step/look/difference`, separated by `;`) are stepped over.

// A tool of developers may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use agfs_difftest::accepted::Accepted;
use agfs_difftest::posix::{Limits, Posix, is_privileged};
use agfs_difftest::run::Watch;
use agfs_difftest::{Profile, Script, Side, Trial};
use std::path::PathBuf;
use std::time::Instant;

/// Two fresh directories below those two.
fn sides(dirs: &[PathBuf; 2], n: usize) -> (Side, Side) {
    let limits = [Limits { no_tmpfile: std::env::var_os("NO_TMPFILE").is_some() }, Limits::default()];
    let [first, second] = [0, 1].map(|i| {
        let dir = dirs[i].join(format!("{}-{n}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let limits = limits[i];
        Side::new(move || Posix::new(&dir, limits))
    });
    (first, second)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let dirs = [PathBuf::from(&args[0]), PathBuf::from(&args[1])];
    let skip = [Accepted {
        reason: "SKIP",
        fits: |case| {
            let look = case.look.map_or("", |l| l.word());
            let this = format!("{}/{look}/{}", case.op.word(), case.difference.kind);
            std::env::var("SKIP").unwrap_or_default().split(';').any(|s| !s.is_empty() && this.contains(s))
        },
    }];
    let mut made = 0;
    let mut trial = Trial::new(&skip, || {
        made += 1;
        sides(&dirs, made)
    });
    if args[2] == "script" {
        match trial.script(&Script::of(&args[3]), Watch::CLOSE) {
            Ok(passed) => println!("the same: {:?}", passed.report),
            Err(failure) => println!("{failure}"),
        }
        return;
    }
    let [first, count, steps] = [3, 4, 5].map(|i| args[i].parse::<u64>().unwrap());
    let profile = Profile { privileged: is_privileged(), dotdot: is_privileged(), ..Profile::everything() };
    for seed in first..first + count {
        let begin = Instant::now();
        match trial.seed(seed, steps as usize, profile) {
            Ok(passed) => {
                let report = passed.report;
                println!("seed {seed}: {} of {} succeeded, {:?}", report.successes(), report.steps, begin.elapsed());
                println!("  {:?}\n  {:?}\n  {:?}", report.succeeded, report.failed, report.accepted);
            }
            Err(failure) => println!("seed {seed}: {failure}"),
        }
    }
}
