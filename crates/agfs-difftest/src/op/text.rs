//! A whole script as one string: operations separated by `; ` or line feeds, so that a failure can be pasted into a test.

use super::{Op, Special, Who};
use std::fmt;
use std::str::FromStr;

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        self.words().iter().try_for_each(|word| write!(f, " {word}"))
    }
}

impl FromStr for Op {
    type Err = String;

    fn from_str(line: &str) -> Result<Op, String> {
        let mut words = line.split_whitespace();
        let first = words.next().ok_or("an operation is missing")?;
        let op = Op::read(first, &mut words).map_err(|e| format!("{line:?}: {e}"))?;
        match words.next() {
            None => Ok(op),
            Some(more) => Err(format!("{line:?}: {more:?} is too much")),
        }
    }
}

/// Operations in the order in which they are done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script(pub Vec<Op>);

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Op::to_string).collect();
        f.write_str(&lines.join("; "))
    }
}

impl FromStr for Script {
    type Err = String;

    fn from_str(text: &str) -> Result<Script, String> {
        let lines = text.split(['\n', ';']).map(str::trim).filter(|l| !l.is_empty());
        lines.map(str::parse).collect::<Result<Vec<Op>, String>>().map(Script)
    }
}

impl Script {
    /// Reads a script that a test is made of.
    ///
    /// # Panics
    /// If it is none.
    pub fn of(text: &str) -> Script {
        text.parse().unwrap_or_else(|e| panic!("{e}"))
    }

    /// Whether it can be done by requests to a file system without a kernel: nothing in it is the kernel's own.
    pub fn is_of_requests(&self) -> bool {
        self.0.iter().all(|op| match op {
            Op::MapRead { .. } | Op::MapWrite { .. } | Op::As { who: Who::User } => false,
            Op::Mknod { what, .. } => *what == Special::File,
            Op::Open { flags, .. } => !flags.has(libc::O_TMPFILE) && !flags.has(libc::O_PATH),
            _ => true,
        })
    }

    /// Scripts like this with one operation made simpler: where it is, and what it becomes.
    pub fn simpler_ops(&self) -> impl Iterator<Item = (usize, Op)> {
        self.0.iter().enumerate().flat_map(|(i, op)| op.simpler().into_iter().map(move |s| (i, s)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Generator, Profile};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_script_reads_back(seed in any::<u64>()) {
            let script = Script(Generator::new(seed, Profile::everything()).take(60).collect());
            prop_assert_eq!(&Script::of(&script.to_string()), &script);
            for (i, op) in script.simpler_ops() {
                prop_assert_eq!(&op.to_string().parse::<Op>().unwrap(), &op);
                prop_assert_ne!(&script.0[i], &op);
            }
        }
    }

    #[test]
    fn what_is_no_script_is_refused() {
        for text in ["frobnicate a", "mkdir a", "mkdir a 755 b", "mkdir zz 755", "close #9", "open #1 a what 644"] {
            assert!(text.parse::<Script>().is_err(), "{text}");
        }
        assert_eq!(Script::of("mkdir a 755;\n unlink a/b ;").0.len(), 2);
    }

    #[test]
    fn what_was_found_is_written_as_it_is_read() {
        for (name, text) in crate::found::FOUND {
            assert_eq!(&Script::of(text).to_string(), text, "{name}");
        }
    }

    #[test]
    fn making_simpler_ends() {
        for op in Generator::new(1, Profile::everything()).take(500) {
            let (mut at, mut steps) = (op.clone(), 0);
            while let Some(next) = at.simpler().into_iter().next() {
                (at, steps) = (next, steps + 1);
                assert!(steps < 200, "{op}");
            }
        }
    }
}
