//! When two answers are the same. The strictest rule that two good file systems can keep: times that were set are equal to
//! the nanosecond, others are of this run and change on both sides or on neither.

use crate::outcome::{Kind, Outcome, Seen, Stat, errno_name};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;

/// A difference: what kind of thing differs, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The same for all differences of a kind.
    pub kind: String,
    /// Both sides.
    pub text: String,
    /// The attributes of both sides, if the difference is in them.
    pub stats: Option<(Stat, Stat)>,
}

/// Compares the answers of two sides, and remembers what it has seen of their inodes.
pub struct Comparer {
    /// When the run began, in nanoseconds since 1970, and a little before.
    started: i128,
    /// Whether every change on the first side is seen in its times.
    fine_times: bool,
    /// What was last seen of each inode of each side.
    before: [HashMap<u64, Times>; 2],
}

/// Times of the last change of content and of anything.
#[derive(Clone, Copy, Debug)]
struct Times {
    mtime: i128,
    ctime: i128,
}

/// How far the space that the two sides give to the same content may differ, in units of 512 bytes: the one side gives it in
/// blocks of 4 KiB and counts what describes them, the other by what was written.
const BLOCKS: u64 = (1 << 20) / 512;

/// The present, in nanoseconds since 1970.
pub fn now() -> i128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

fn difference(kind: impl Into<String>, first: &dyn Debug, second: &dyn Debug) -> Difference {
    let kind = kind.into();
    Difference { text: format!("{kind}: {first:?} there, {second:?} here"), kind, stats: None }
}

/// Of attributes.
fn of_stats(kind: impl Into<String>, a: &Stat, b: &Stat) -> Difference {
    Difference { stats: Some((*a, *b)), ..difference(kind, a, b) }
}

impl Comparer {
    /// For a run that begins now. `fine_times`: the first side shows every change in its times.
    pub fn new(fine_times: bool) -> Comparer {
        // A coarse clock lags behind by some milliseconds.
        Comparer { started: now() - 1_000_000_000, fine_times, before: [HashMap::new(), HashMap::new()] }
    }

    /// All differences between two answers to the same operation.
    pub fn compare(&mut self, first: &Outcome, second: &Outcome) -> Vec<Difference> {
        let kind = match (first, second) {
            (Outcome::Stat(a), Outcome::Stat(b)) => return self.stats(a, b),
            (Outcome::Tree(a), Outcome::Tree(b)) => return self.trees(a, b),
            (Outcome::Data(a), Outcome::Data(b)) => return data(a, b).into_iter().collect(),
            (Outcome::Judged(Ok(())), Outcome::Judged(Ok(()))) => return Vec::new(),
            (Outcome::Judged(_), Outcome::Judged(_)) => "a wrong answer".to_owned(),
            _ if first == second => return Vec::new(),
            (Outcome::Errno(a), Outcome::Errno(b)) => format!("{} becomes {}", errno_name(*a), errno_name(*b)),
            (_, Outcome::Errno(b)) => format!("success becomes {}", errno_name(*b)),
            (Outcome::Errno(a), _) => format!("{} becomes success", errno_name(*a)),
            _ => "the answer".to_owned(),
        };
        vec![difference(kind, first, second)]
    }

    /// Whether a time was made by a clock during this run, rather than set by the script.
    fn is_recent(&self, time: i128) -> bool {
        time >= self.started && time <= now() + 1_000_000_000
    }

    fn same_time(&self, first: i128, second: i128) -> bool {
        first == second || (self.is_recent(first) && self.is_recent(second))
    }

    fn stats(&mut self, a: &Stat, b: &Stat) -> Vec<Difference> {
        let file = a.kind == Kind::File;
        let wrong = [
            ("kind", a.kind != b.kind),
            ("mode", a.mode != b.mode),
            ("nlink", a.nlink != b.nlink),
            ("owner", (a.uid, a.gid) != (b.uid, b.gid)),
            ("rdev", a.rdev != b.rdev),
            // The size of a directory is the file system's own business.
            ("size", a.kind != Kind::Dir && a.size != b.size),
            // The other side reserves nothing, but it must not fill holes.
            ("blocks", file && b.blocks > a.blocks + BLOCKS),
            ("mtime", !self.same_time(a.mtime, b.mtime)),
            ("ctime", !self.same_time(a.ctime, b.ctime)),
            // A time that was set stays, unless something was read since.
            ("atime", !self.is_recent(a.atime) && a.atime != b.atime),
        ];
        let mut all: Vec<Difference> =
            wrong.iter().filter(|(_, wrong)| *wrong).map(|(kind, _)| of_stats(*kind, a, b)).collect();
        all.extend(self.changes(a, b));
        all
    }

    /// Which times changed on one side only since both were last seen.
    fn changes(&mut self, a: &Stat, b: &Stat) -> Vec<Difference> {
        let before = [(0, a), (1, b)].map(|(side, stat): (usize, &Stat)| self.before[side].get(&stat.ino).copied());
        let mut changed = |side: usize, stat: &Stat| {
            let times = Times { mtime: stat.mtime, ctime: stat.ctime };
            let before = self.before[side].insert(stat.ino, times)?;
            Some([before.mtime != times.mtime, before.ctime != times.ctime])
        };
        // Both are remembered, also where only one was seen before.
        let (Some(first), Some(second)) = (changed(0, a), changed(1, b)) else { return Vec::new() };
        if a.atime == a.mtime && a.mtime == a.ctime {
            // Just made: perhaps under the number of another that was made in the same tick of the clock and is gone.
            return Vec::new();
        }
        let wrong = |n: &usize| first[*n] != second[*n] && (self.fine_times || first[*n]);
        let tell = |n| format!("{} changes: {} only", ["mtime", "ctime"][n], if second[n] { "here" } else { "there" });
        let mut all: Vec<Difference> = (0..2).filter(wrong).map(|n| of_stats(tell(n), a, b)).collect();
        all.iter_mut().for_each(|d| d.text = format!("{}, before {before:?}", d.text));
        all
    }

    fn trees(&mut self, a: &BTreeMap<Vec<u8>, Seen>, b: &BTreeMap<Vec<u8>, Seen>) -> Vec<Difference> {
        let mut all = Vec::new();
        let paths: BTreeSet<&Vec<u8>> = a.keys().chain(b.keys()).collect();
        for path in paths {
            let mut here = match (a.get(path), b.get(path)) {
                (Some(x), Some(y)) => self.seen(x, y),
                (x, _) => {
                    let [first, second] = if x.is_some() { ["there", "missing"] } else { ["missing", "there"] };
                    vec![difference("a path", &first, &second)]
                }
            };
            here.iter_mut().for_each(|d| d.text = format!("{}: {}", String::from_utf8_lossy(path), d.text));
            all.extend(here);
        }
        all
    }

    fn seen(&mut self, x: &Seen, y: &Seen) -> Vec<Difference> {
        let mut all = self.stats(&x.stat, &y.stat);
        if x.same_as != y.same_as {
            all.push(difference("hard links", &x.same_as, &y.same_as));
        }
        if x.xattrs != y.xattrs {
            all.push(difference("xattrs", &x.xattrs, &y.xattrs));
        }
        if x.content != y.content {
            all.push(difference("content", &x.content, &y.content));
        }
        all
    }
}

/// Whether a tree is what it was, with every time to the nanosecond and every inode number. Only how much space it takes may
/// have changed.
///
/// # Errors
/// The first difference.
#[allow(clippy::result_large_err, reason = "the way out of a test that fails")]
pub fn kept(before: &Outcome, after: &Outcome) -> Result<(), Difference> {
    let (Outcome::Tree(a), Outcome::Tree(b)) = (before, after) else {
        return Err(difference("no tree", before, after));
    };
    let paths: BTreeSet<&Vec<u8>> = a.keys().chain(b.keys()).collect();
    for path in paths {
        let (x, mut y) = (a.get(path), b.get(path).cloned());
        if let (Some(x), Some(y)) = (x, &mut y) {
            y.stat.blocks = x.stat.blocks;
        }
        if x != y.as_ref() {
            return Err(difference(format!("what was kept of {}", String::from_utf8_lossy(path)), &x, &y));
        }
    }
    Ok(())
}

fn data(a: &[u8], b: &[u8]) -> Option<Difference> {
    if a.len() != b.len() {
        return Some(difference("bytes read", &a.len(), &b.len()));
    }
    let at = a.iter().zip(b).position(|(x, y)| x != y)?;
    let differing = a.iter().zip(b).filter(|(x, y)| x != y).count();
    let show = |bytes: &[u8]| format!("{:?}", &bytes[at..bytes.len().min(at + 8)]);
    Some(difference("content", &format!("at byte {at}, {differing} in all: {}", show(a)), &show(b)))
}
