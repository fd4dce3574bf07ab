//! By hand: the same random operations on two directories until they differ, and the shortest script that shows it.
//!
//! `difftest PLAIN OTHER seed FIRST COUNT STEPS` tries seeds; `difftest PLAIN OTHER script 'mkdir a 755; …'` does one.

// A tool of developers may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use agfs_difftest::accepted::Accepted;
use agfs_difftest::posix::{Limits, is_privileged};
use agfs_difftest::run::{Report, Watch};
use agfs_difftest::shrink::shrink;
use agfs_difftest::{Generator, Mismatch, Posix, Profile, Run, Script, Side};
use std::path::PathBuf;
use std::time::Instant;

/// Two directories, and how many were made in them.
struct Pair {
    dirs: [PathBuf; 2],
    made: usize,
    limits: Limits,
    accepted: Vec<Accepted>,
}

impl Pair {
    fn run(&mut self, script: &Script, watch: Watch) -> Result<Report, Box<Mismatch>> {
        self.made += 1;
        let [plain, other] = self.dirs.each_ref().map(|d| d.join(format!("{}-{}", std::process::id(), self.made)));
        let sides = [(plain, self.limits), (other, Limits::default())].map(|(dir, limits)| {
            std::fs::create_dir(&dir).unwrap();
            let at = dir.clone();
            (dir, Side::new(move || Posix::new(&at, limits)))
        });
        let [(plain, first), (other, second)] = sides;
        let mut run = Run::new(first, second, &self.accepted, watch);
        let done = run.script(script.0.clone()).map(drop).and_then(|()| run.end()).map(|(report, ..)| report);
        for dir in [plain, other] {
            let _ = std::fs::remove_dir_all(dir);
        }
        done
    }

    fn tell(&mut self, script: &Script, watch: Watch, found: &Mismatch) {
        println!("{found}\n  shrinking ...");
        let begin = Script(script.0[..(found.step + 1).min(script.0.len())].to_vec());
        // Seen sooner, it is nearer to its cause.
        let (watch, found) = match self.run(&begin, Watch::CLOSE) {
            Err(sooner) => (Watch::CLOSE, sooner),
            Ok(_) => (watch, Box::new(found.clone())),
        };
        let begin = Script(script.0[..(found.step + 1).min(script.0.len())].to_vec());
        let short = shrink(&begin, 3_000, |s| self.run(s, watch).is_err_and(|m| m.class() == found.class()));
        match self.run(&short, watch) {
            Err(last) => println!("{last}\n  {short}\n"),
            Ok(_) => println!("  does not fail again:\n  {short}\n"),
        }
    }
}

/// Differences to step over, by the words of `SKIP`: each `word/kind`, of the step and of the difference.
fn known() -> Vec<Accepted> {
    vec![Accepted {
        reason: "SKIP",
        fits: |case| {
            let skip = std::env::var("SKIP").unwrap_or_default();
            let look = case.look.map_or("", |l| l.word());
            let this = format!("{}/{}/{}", case.op.word(), look, case.difference.kind);
            skip.split(';').any(|s| !s.is_empty() && this.contains(s))
        },
    }]
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let dirs = [PathBuf::from(&args[0]), PathBuf::from(&args[1])];
    let limits = Limits { no_tmpfile: std::env::var_os("NO_TMPFILE").is_some() };
    let mut pair = Pair { dirs, made: 0, limits, accepted: known() };
    if args[2] == "script" {
        match pair.run(&Script::of(&args[3]), Watch::default()) {
            Ok(report) => println!("the same: {report:?}"),
            Err(found) => println!("{found}"),
        }
        return;
    }
    let [first, count, steps] = [3, 4, 5].map(|i| args[i].parse::<u64>().unwrap());
    for seed in first..first + count {
        let privileged = is_privileged();
        let profile = Profile { privileged, dotdot: privileged, ..Profile::everything() };
        let script = Script(Generator::new(seed, profile).take(steps as usize).collect());
        let watch = Watch { touched: [1, 1, 7][seed as usize % 3], ..Watch::default() };
        let begin = Instant::now();
        match pair.run(&script, watch) {
            Ok(report) => {
                println!("seed {seed}: the same, {} of {} succeeded, {:?}", report.successes(), report.steps, begin.elapsed());
                println!("  {:?}\n  {:?}\n  {:?}", report.succeeded, report.failed, report.accepted);
            }
            Err(found) => {
                println!("seed {seed}, {:?}", begin.elapsed());
                pair.tell(&script, watch, &found);
            }
        }
    }
}
