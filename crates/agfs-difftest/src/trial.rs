//! Scripts on fresh pairs of targets: what fails is shrunk and told as one string that can be pasted into a test.

use crate::accepted::Accepted;
use crate::generate::{Generator, Profile};
use crate::op::Script;
use crate::outcome::Outcome;
use crate::run::{Mismatch, Report, Run, Watch};
use crate::shrink::shrink;
use crate::target::Side;
use std::fmt;

/// How many attempts shrinking may take.
const TRIES: usize = 2_000;

/// Makes fresh pairs of empty targets, the one that is right first, and says what may differ.
pub struct Trial<'a> {
    make: Box<dyn FnMut() -> (Side, Side) + 'a>,
    accepted: &'a [Accepted],
}

/// What a script that passed leaves: what it did, and the trees of both sides.
pub struct Passed {
    /// What it did.
    pub report: Report,
    /// The trees of both sides.
    pub trees: (Outcome, Outcome),
}

/// A failure: the whole script's and the shortest's.
#[derive(Debug)]
pub struct Failure {
    /// What differed at first.
    pub found: Box<Mismatch>,
    /// What differs in the short script.
    pub shrunk: Box<Mismatch>,
    /// The shortest script.
    pub script: Script,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n  shrunk: {}\n  {}", self.found, self.shrunk, self.script)
    }
}

impl<'a> Trial<'a> {
    /// A trial on pairs that `make` makes.
    pub fn new(accepted: &'a [Accepted], make: impl FnMut() -> (Side, Side) + 'a) -> Trial<'a> {
        Trial { make: Box::new(make), accepted }
    }

    fn attempt(&mut self, script: &Script, watch: Watch) -> Result<Passed, Box<Mismatch>> {
        let (first, second) = (self.make)();
        let mut run = Run::new(first, second, self.accepted, watch);
        run.script(script.0.iter().cloned())?;
        let (report, first, second) = run.end()?;
        Ok(Passed { report, trees: (first, second) })
    }

    /// Does a script.
    ///
    /// # Errors
    /// The failure, shrunk.
    pub fn script(&mut self, script: &Script, watch: Watch) -> Result<Passed, Box<Failure>> {
        self.attempt(script, watch).map_err(|found| Box::new(self.shrunk(script, watch, found)))
    }

    /// Does the script of a seed.
    ///
    /// # Errors
    /// The failure, shrunk.
    pub fn seed(&mut self, seed: u64, steps: usize, profile: Profile) -> Result<Passed, Box<Failure>> {
        let script = Script(Generator::new(seed, profile).take(steps).collect());
        // Looking changes what is cached: some runs look less.
        let watch = Watch { touched: if seed % 3 == 2 { 7 } else { 1 }, ..Watch::default() };
        self.script(&script, watch)
    }

    fn shrunk(&mut self, script: &Script, watch: Watch, found: Box<Mismatch>) -> Failure {
        let until = |m: &Mismatch| Script(script.0[..(m.step + 1).min(script.0.len())].to_vec());
        // Seen sooner, it is nearer to its cause.
        let (watch, sooner) = match self.attempt(&until(&found), Watch::CLOSE) {
            Err(sooner) => (Watch::CLOSE, sooner),
            Ok(_) => (watch, found.clone()),
        };
        let begin = until(&sooner);
        let short = shrink(&begin, TRIES, |s| self.attempt(s, watch).is_err_and(|m| m.class() == sooner.class()));
        let shrunk = self.attempt(&short, watch).err().unwrap_or(sooner);
        Failure { found, shrunk, script: short }
    }
}
