//! One run: a script on two sides, compared after each step, with the whole tree now and then.

use crate::accepted::{self, Accepted, Case};
use crate::compare::{Comparer, Difference};
use crate::op::{Count, Flags, Mode, On, Op, Path, Slot};
use crate::outcome::{Outcome, errno_name};
use crate::target::Side;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// How many steps are given to the sides at once. They do not depend on each other's answers, so the sides need not wait.
const BATCH: usize = 24;

/// How closely a run looks.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// After every how many steps to look at what the step touched.
    pub touched: usize,
    /// After every how many steps to look at the whole tree. It is looked at in the end in any case.
    pub tree: usize,
}

impl Watch {
    /// Everything after every step: for a script that is known to fail.
    pub const CLOSE: Watch = Watch { touched: 1, tree: 1 };
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { touched: 1, tree: 250 }
    }
}

/// A step that the two sides did not do alike.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// Which step of the script, from 0.
    pub step: usize,
    /// The step.
    pub op: Op,
    /// The look in which it was seen, if not in the step's own answer.
    pub look: Option<Op>,
    /// What differs.
    pub difference: Difference,
}

impl Mismatch {
    /// The same for mismatches that are thought to have the same cause.
    pub fn class(&self) -> (&str, &'static str, bool) {
        (&self.difference.kind, self.op.word(), self.look.is_some())
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: {}", self.step, self.op)?;
        if let Some(look) = &self.look {
            write!(f, ", then {look}")?;
        }
        write!(f, ": {}", self.difference.text)
    }
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Steps done.
    pub steps: usize,
    /// Of these, how many succeeded, by the first word.
    pub succeeded: BTreeMap<&'static str, usize>,
    /// Of these, how many failed, by the first word and the errno.
    pub failed: BTreeMap<(&'static str, String), usize>,
    /// Differences that are accepted, by their reason.
    pub accepted: BTreeMap<&'static str, usize>,
}

impl Report {
    /// How many steps succeeded.
    pub fn successes(&self) -> usize {
        self.succeeded.values().sum()
    }
}

/// Two sides and what is compared of them.
pub struct Run<'a> {
    first: Side,
    second: Side,
    comparer: Comparer,
    accepted: &'a [Accepted],
    watch: Watch,
    report: Report,
}

/// Operations of a batch: which step each belongs to, and whether it is a look.
type Plan = Vec<(usize, bool, Op)>;

impl<'a> Run<'a> {
    /// Begins on two empty directories.
    pub fn new(first: Side, second: Side, accepted: &'a [Accepted], watch: Watch) -> Run<'a> {
        let fine_times = shows_every_change(&first) && shows_every_change(&second);
        Run { first, second, comparer: Comparer::new(fine_times), accepted, watch, report: Report::default() }
    }

    /// Does a script and compares.
    ///
    /// # Errors
    /// The first mismatch.
    pub fn script(&mut self, script: impl IntoIterator<Item = Op>) -> Result<&Report, Box<Mismatch>> {
        let mut steps = script.into_iter().enumerate().peekable();
        while steps.peek().is_some() {
            let mut plan = Plan::new();
            for (n, op) in steps.by_ref().take(BATCH) {
                let mut looks = Vec::new();
                if n % self.watch.touched == self.watch.touched - 1 {
                    looks = op.looks();
                    looks.extend((0..Slot::COUNT).map(|slot| Op::Stat { on: On::Slot(Slot(slot)) }));
                }
                plan.push((n, false, op));
                plan.extend(looks.into_iter().map(|look| (n, true, look)));
                if n % self.watch.tree == self.watch.tree - 1 {
                    plan.push((n, true, Op::Tree {}));
                }
            }
            self.batch(&plan)?;
        }
        Ok(&self.report)
    }

    /// Closes everything and compares the whole trees, which are returned.
    ///
    /// # Errors
    /// The first mismatch.
    pub fn end(mut self) -> Result<(Report, Outcome, Outcome), Box<Mismatch>> {
        let step = self.report.steps;
        let closes = (0..Slot::COUNT).map(|n| Op::Close { slot: Slot(n) });
        self.batch(&closes.map(|op| (step, false, op)).collect())?;
        self.batch(&vec![(step, false, Op::As { who: crate::op::Who::Root }), (step, true, Op::Tree {})])?;
        let trees = (self.first.apply(Op::Tree {}), self.second.apply(Op::Tree {}));
        Ok((self.report, trees.0, trees.1))
    }

    fn batch(&mut self, plan: &Plan) -> Result<(), Box<Mismatch>> {
        let ops: Arc<[Op]> = plan.iter().map(|(_, _, op)| op.clone()).collect();
        self.first.start(ops.clone());
        self.second.start(ops);
        let (first, second) = (self.first.finish(), self.second.finish());
        let mut of_step = None;
        for ((step, is_look, op), (a, b)) in plan.iter().zip(first.iter().zip(&second)) {
            if !is_look {
                of_step = Some(op);
                self.count(op, a);
            }
            let (look, op) = (is_look.then_some(op), of_step.unwrap_or(op));
            for difference in self.comparer.compare(a, b) {
                let case = Case { op, look, difference: &difference };
                let Some(reason) = accepted::reason(self.accepted, &case) else {
                    return Err(Box::new(Mismatch { step: *step, op: op.clone(), look: look.cloned(), difference }));
                };
                *self.report.accepted.entry(reason).or_default() += 1;
            }
        }
        Ok(())
    }

    fn count(&mut self, op: &Op, answer: &Outcome) {
        self.report.steps += 1;
        *match answer {
            Outcome::Errno(errno) => self.report.failed.entry((op.word(), errno_name(*errno))).or_default(),
            _ => self.report.succeeded.entry(op.word()).or_default(),
        } += 1;
    }
}

/// Whether two changes of a file in a row, with a look between, are told apart by its times. Leaves nothing behind.
fn shows_every_change(side: &Side) -> bool {
    let (slot, at) = (Slot(0), Path::new(&[0]));
    let flags = Flags(libc::O_RDWR | libc::O_CREAT);
    let time = |side: &Side| match side.apply(Op::Stat { on: On::Slot(slot) }) {
        Outcome::Stat(stat) => stat.mtime,
        other => panic!("a directory to test in that shows nothing: {other:?}"),
    };
    side.apply(Op::Open { slot, at: at.clone(), flags, mode: Mode(0o600) });
    let mut told = true;
    for _ in 0..3 {
        let before = time(side);
        side.apply(Op::Write { slot, len: Count(1), fill: 1 });
        told &= time(side) != before;
    }
    side.apply(Op::Close { slot });
    side.apply(Op::Unlink { at });
    told
}
