//! Makes a failing script short: first fewer operations (delta debugging), then simpler ones.

use crate::op::{Op, Script};
use std::time::{Duration, Instant};

/// The shortest failing script that was found within `tries` attempts and [`PATIENCE`]. `fails` does a script anew and says
/// whether it fails as the first one did.
pub fn shrink(script: &Script, tries: usize, fails: impl FnMut(&Script) -> bool) -> Script {
    let mut shrinker = Shrinker { fails, tries, until: Instant::now() + PATIENCE };
    let mut best = script.0.clone();
    loop {
        let before = best.clone();
        best = shrinker.fewer(best);
        best = shrinker.simpler(best);
        if best == before || shrinker.is_tired() {
            return Script(best);
        }
    }
}

/// How long shrinking may take.
const PATIENCE: Duration = Duration::from_secs(90);

struct Shrinker<F> {
    fails: F,
    tries: usize,
    until: Instant,
}

impl<F: FnMut(&Script) -> bool> Shrinker<F> {
    fn is_tired(&self) -> bool {
        self.tries == 0 || Instant::now() > self.until
    }

    fn fails(&mut self, ops: &[Op]) -> bool {
        if self.is_tired() {
            return false;
        }
        self.tries -= 1;
        (self.fails)(&Script(ops.to_vec()))
    }

    /// Takes away ever smaller pieces, from the end on: what came last before the failure matters most, but what it needs
    /// stands before.
    fn fewer(&mut self, mut ops: Vec<Op>) -> Vec<Op> {
        let mut size = ops.len().div_ceil(2);
        while size > 0 {
            let mut shorter = false;
            let mut end = ops.len();
            while end > 0 {
                let start = end.saturating_sub(size);
                let without: Vec<Op> = ops[..start].iter().chain(&ops[end..]).cloned().collect();
                if self.fails(&without) {
                    (ops, shorter) = (without, true);
                }
                end = start.min(ops.len());
            }
            if !shorter || size > ops.len() {
                size /= 2;
            }
        }
        ops
    }

    /// Replaces operations by simpler ones until none can be.
    fn simpler(&mut self, mut ops: Vec<Op>) -> Vec<Op> {
        let mut at = 0;
        while at < ops.len() {
            let found = ops[at].simpler().into_iter().find(|op| {
                let mut other = ops.clone();
                other[at] = op.clone();
                self.fails(&other)
            });
            match found {
                Some(op) => ops[at] = op,
                None => at += 1,
            }
        }
        ops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Generator, Profile};
    use crate::op::Renaming;

    /// A planted failure: an exchange after a file was made longer than a page.
    fn planted(script: &Script) -> bool {
        let mut grown = false;
        script.0.iter().any(|op| {
            grown |= matches!(op, Op::Truncate { size, .. } if size.0 > 4_096);
            grown && matches!(op, Op::Rename { how: Renaming::Exchange, .. })
        })
    }

    #[test]
    fn a_planted_failure_becomes_two_operations() {
        let script = Script(Generator::new(7, Profile::everything()).take(2_000).collect());
        assert!(planted(&script));
        let mut runs = 0;
        let short = shrink(&script, 5_000, |s| {
            runs += 1;
            planted(s)
        });
        assert!(planted(&short));
        assert_eq!(short.0.len(), 2, "{short}");
        assert!(matches!(&short.0[0], Op::Truncate { size, .. } if size.0 == 4_097), "{short}");
        assert!(runs < 400, "{runs} runs");
    }

    #[test]
    fn it_ends_when_its_tries_are_used_up() {
        let script = Script(Generator::new(7, Profile::everything()).take(500).collect());
        let mut runs = 0;
        let short = shrink(&script, 10, |s| {
            runs += 1;
            planted(s)
        });
        assert!(runs <= 10 && planted(&short));
    }
}
