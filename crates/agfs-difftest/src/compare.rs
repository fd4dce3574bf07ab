//! When two answers are the same. The strictest rule that two good file systems can keep: times that were set are equal to
//! the nanosecond, others are of this run and change on both sides or on neither.

use crate::outcome::{Kind, Outcome, Seen, Stat, errno_name};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

/// A difference: what kind of thing differs, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The same for all differences of a kind.
    pub kind: String,
    /// Both sides.
    pub text: String,
}

type Compared = Result<(), Difference>;

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
#[derive(Clone, Copy)]
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

fn differ(kind: impl Into<String>, first: &dyn Debug, second: &dyn Debug) -> Compared {
    let kind = kind.into();
    Err(Difference { text: format!("{kind}: {first:?} there, {second:?} here"), kind })
}

fn equal<T: PartialEq + Debug>(kind: &str, first: T, second: T) -> Compared {
    if first == second { Ok(()) } else { differ(kind, &first, &second) }
}

impl Comparer {
    /// For a run that begins now. `fine_times`: the first side shows every change in its times.
    pub fn new(fine_times: bool) -> Comparer {
        // A coarse clock lags behind by some milliseconds.
        Comparer { started: now() - 1_000_000_000, fine_times, before: [HashMap::new(), HashMap::new()] }
    }

    /// Compares two answers to the same operation.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare(&mut self, first: &Outcome, second: &Outcome) -> Compared {
        match (first, second) {
            (Outcome::Stat(a), Outcome::Stat(b)) => self.stats(a, b),
            (Outcome::Tree(a), Outcome::Tree(b)) => self.trees(a, b),
            (Outcome::Data(a), Outcome::Data(b)) => data(a, b),
            (Outcome::Judged(Ok(())), Outcome::Judged(Ok(()))) => Ok(()),
            (Outcome::Errno(a), Outcome::Errno(b)) if a == b => Ok(()),
            (Outcome::Errno(a), Outcome::Errno(b)) => {
                differ(format!("{} becomes {}", errno_name(*a), errno_name(*b)), first, second)
            }
            (_, Outcome::Errno(b)) => differ(format!("success becomes {}", errno_name(*b)), first, second),
            (Outcome::Errno(a), _) => differ(format!("{} becomes success", errno_name(*a)), first, second),
            (Outcome::Judged(_), Outcome::Judged(_)) => differ("a wrong answer", first, second),
            _ if first == second => Ok(()),
            _ => differ("the answer", first, second),
        }
    }

    /// Whether a time was made by a clock during this run, rather than set by the script.
    fn is_recent(&self, time: i128) -> bool {
        time >= self.started && time <= now() + 1_000_000_000
    }

    fn same_time(&self, first: i128, second: i128) -> bool {
        first == second || (self.is_recent(first) && self.is_recent(second))
    }

    fn stats(&mut self, a: &Stat, b: &Stat) -> Compared {
        let both = |kind: &str| differ(kind, a, b);
        equal("kind", a.kind, b.kind)?;
        if a.mode != b.mode {
            return both("mode");
        }
        if a.nlink != b.nlink {
            return both("nlink");
        }
        if (a.uid, a.gid) != (b.uid, b.gid) {
            return both("owner");
        }
        equal("rdev", a.rdev, b.rdev)?;
        // The size of a directory is the file system's own business.
        if a.kind != Kind::Dir && a.size != b.size {
            return both("size");
        }
        // The other side reserves nothing, but it must not fill holes.
        if a.kind == Kind::File && b.blocks > a.blocks + BLOCKS {
            return both("blocks");
        }
        self.times(a, b)
    }

    fn times(&mut self, a: &Stat, b: &Stat) -> Compared {
        if !self.same_time(a.mtime, b.mtime) {
            return differ("mtime", a, b);
        }
        if !self.same_time(a.ctime, b.ctime) {
            return differ("ctime", a, b);
        }
        // A time that was set stays, unless something was read since.
        if !self.is_recent(a.atime) && a.atime != b.atime {
            return differ("atime", a, b);
        }
        let mut changed = |side: usize, stat: &Stat| {
            let times = Times { mtime: stat.mtime, ctime: stat.ctime };
            let before = self.before[side].insert(stat.ino, times)?;
            Some((before.mtime != times.mtime, before.ctime != times.ctime))
        };
        // Both are remembered, also where only one was seen before.
        let (Some(first), Some(second)) = (changed(0, a), changed(1, b)) else { return Ok(()) };
        if a.atime == a.mtime && a.mtime == a.ctime {
            // Just made: perhaps under the number of another that was made in the same tick of the clock and is gone.
            return Ok(());
        }
        let wrong = |a: bool, b: bool| if self.fine_times { a != b } else { a && !b };
        if wrong(first.0, second.0) {
            return differ(format!("mtime changes: {}", if second.0 { "here only" } else { "there only" }), a, b);
        }
        if wrong(first.1, second.1) {
            return differ(format!("ctime changes: {}", if second.1 { "here only" } else { "there only" }), a, b);
        }
        Ok(())
    }

    fn trees(&mut self, a: &BTreeMap<Vec<u8>, Seen>, b: &BTreeMap<Vec<u8>, Seen>) -> Compared {
        let only = |one: &BTreeMap<Vec<u8>, Seen>, other: &BTreeMap<Vec<u8>, Seen>| {
            one.keys().find(|k| !other.contains_key(*k)).map(|k| String::from_utf8_lossy(k).into_owned())
        };
        if let Some(path) = only(a, b) {
            return differ("a path of the tree", &path, &"nothing");
        }
        if let Some(path) = only(b, a) {
            return differ("a path of the tree", &"nothing", &path);
        }
        for ((path, x), y) in a.iter().zip(b.values()) {
            let compared = self.stats(&x.stat, &y.stat).and_then(|()| {
                equal("hard links", &x.same_as, &y.same_as)?;
                equal("xattrs", &x.xattrs, &y.xattrs)?;
                equal("content", x.content, y.content)
            });
            compared.map_err(|d| Difference {
                text: format!("{}: {}", String::from_utf8_lossy(path), d.text),
                kind: format!("tree: {}", d.kind),
            })?;
        }
        Ok(())
    }
}

/// Whether a tree is what it was, with every time to the nanosecond and every inode number. Only how much space it takes may
/// have changed.
///
/// # Errors
/// The first difference.
pub fn kept(before: &Outcome, after: &Outcome) -> Compared {
    let (Outcome::Tree(a), Outcome::Tree(b)) = (before, after) else { return differ("no tree", before, after) };
    equal("paths", a.keys().collect::<Vec<_>>(), b.keys().collect())?;
    for ((path, x), y) in a.iter().zip(b.values()) {
        let same_space = Seen { stat: Stat { blocks: x.stat.blocks, ..y.stat }, ..y.clone() };
        if *x != same_space {
            return differ(format!("what was kept of {}", String::from_utf8_lossy(path)), x, y);
        }
    }
    Ok(())
}

fn data(a: &[u8], b: &[u8]) -> Compared {
    if a.len() != b.len() {
        return differ("bytes read", &a.len(), &b.len());
    }
    match a.iter().zip(b).position(|(x, y)| x != y) {
        None => Ok(()),
        Some(at) => {
            let differing = a.iter().zip(b).filter(|(x, y)| x != y).count();
            let show = |bytes: &[u8]| format!("{:?}", &bytes[at..bytes.len().min(at + 8)]);
            differ("content", &format!("at byte {at}, {differing} in all: {}", show(a)), &show(b))
        }
    }
}
