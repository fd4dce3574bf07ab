//! Scripts from a seed, weighted by what is likely to find something: few names, so that operations meet; sizes at the
//! borders of blocks and chunks; the odd cases of every call.
//!
//! Keeps a rough idea of what is open, so that most operations have something to work on. What really happened it does not
//! know.

mod paths;
mod values;

use crate::op::{Flags, On, Op, Path, Slot, Switch, Who};
use fastrand::Rng;
use std::collections::VecDeque;

/// What a generator may use: not every target can do everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Acting as another user, giving files away, trusted attributes. Needs root.
    pub privileged: bool,
    /// `..` and absolute paths. Needs a target that nothing gets out of.
    pub dotdot: bool,
    /// Shared mappings.
    pub mappings: bool,
    /// `O_TMPFILE`.
    pub tmpfile: bool,
    /// `O_PATH`.
    pub path_only: bool,
    /// Fifos and sockets that are opened.
    pub special: bool,
    /// The name `node_modules`, at which a shadow directory may begin.
    pub shadows: bool,
    /// How large files get, in bytes.
    pub largest: u64,
}

impl Profile {
    /// Everything that there is.
    pub const fn everything() -> Profile {
        Profile {
            privileged: true,
            dotdot: true,
            mappings: true,
            tmpfile: true,
            path_only: true,
            special: true,
            shadows: false,
            largest: 1 << 42,
        }
    }

    /// What can be done by requests to a file system without a kernel.
    pub const fn requests() -> Profile {
        Profile {
            privileged: false,
            mappings: false,
            tmpfile: false,
            path_only: false,
            special: false,
            largest: 3 << 20,
            ..Profile::everything()
        }
    }
}

/// What is thought to be in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guess {
    Nothing,
    File { reads: bool, writes: bool },
    Dir,
    Else,
}

/// An endless script.
pub struct Generator {
    rng: Rng,
    profile: Profile,
    slots: [Guess; Slot::COUNT as usize],
    /// Paths at which something was made lately, and whether it was a directory.
    made: VecDeque<(Path, bool)>,
    user: bool,
    step: u32,
    /// What the last attribute was filled with.
    xvalue: u8,
}

/// How many paths are remembered.
const REMEMBERED: usize = 24;

/// How often a verb is taken, in parts of all, and what makes an operation of it.
type Verb = (u32, fn(&mut Generator) -> Op);

/// What may come next, with its weight.
const VERBS: &[Verb] = &[
    (110, Generator::open),
    (20, Generator::open_tmp),
    (14, Generator::reopen),
    (40, Generator::close),
    (70, Generator::pwrite),
    (35, Generator::write),
    (35, Generator::pread),
    (8, Generator::read),
    (25, Generator::map_write),
    (10, Generator::map_read),
    (25, Generator::seek),
    (40, Generator::truncate),
    (40, Generator::fallocate),
    (25, Generator::copy),
    (12, Generator::sync),
    (75, Generator::rename),
    (40, Generator::link),
    (18, Generator::link_fd),
    (40, Generator::unlink),
    (25, Generator::rmdir),
    (45, Generator::mkdir),
    (22, Generator::symlink),
    (8, Generator::readlink),
    (12, Generator::mknod),
    (28, Generator::chmod),
    (20, Generator::chown),
    (35, Generator::utimens),
    (30, Generator::setxattr),
    (12, Generator::getxattr),
    (8, Generator::listxattr),
    (14, Generator::removexattr),
    (6, Generator::access),
    (16, Generator::stat),
    (14, Generator::list),
    (14, Generator::become_user),
];

impl Generator {
    /// The script of a seed.
    pub fn new(seed: u64, profile: Profile) -> Generator {
        let slots = [Guess::Nothing; Slot::COUNT as usize];
        Generator { rng: Rng::with_seed(seed), profile, slots, made: VecDeque::new(), user: false, step: 0, xvalue: 0 }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(..100) < percent
    }

    fn switch(&mut self, percent: u32) -> Switch {
        if self.chance(percent) { Switch::Yes } else { Switch::No }
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.usize(..from.len())]
    }

    /// A slot that fits, mostly; now and then any.
    fn slot(&mut self, fits: impl Fn(Guess) -> bool) -> Slot {
        let fitting: Vec<u8> = (0..Slot::COUNT).filter(|n| fits(self.slots[usize::from(*n)])).collect();
        if fitting.is_empty() || self.chance(4) {
            return Slot(self.rng.u8(..Slot::COUNT));
        }
        Slot(self.pick(&fitting))
    }

    fn writable(&mut self) -> Slot {
        self.slot(|g| matches!(g, Guess::File { writes: true, .. }))
    }

    fn readable(&mut self) -> Slot {
        self.slot(|g| matches!(g, Guess::File { reads: true, .. }))
    }

    fn opened(&mut self) -> Slot {
        self.slot(|g| g != Guess::Nothing)
    }

    /// A slot to open something in: a free one, mostly.
    fn free(&mut self) -> Slot {
        if self.chance(75) { self.slot(|g| g == Guess::Nothing) } else { Slot(self.rng.u8(..Slot::COUNT)) }
    }

    /// An inode that exists, mostly.
    fn on(&mut self) -> On {
        match self.rng.u32(..10) {
            0..4 => On::Slot(self.opened()),
            4..6 => On::Link(self.path()),
            _ => On::Path(self.path()),
        }
    }

    /// The same for a call that has no way to leave a link unfollowed.
    fn on_followed(&mut self) -> On {
        match self.on() {
            On::Link(path) => On::Path(path),
            other => other,
        }
    }

    fn note(&mut self, slot: Slot, flags: Flags, dir: bool) {
        let access = flags.0 & libc::O_ACCMODE;
        self.slots[usize::from(slot.0)] = match () {
            () if flags.has(libc::O_PATH) => Guess::Else,
            () if dir => Guess::Dir,
            () => Guess::File { reads: access != libc::O_WRONLY, writes: access != libc::O_RDONLY },
        };
    }

    fn become_user(&mut self) -> Op {
        if !self.profile.privileged {
            return self.stat();
        }
        // Not for long: as a user most calls are refused.
        self.user = !self.user && self.chance(60);
        Op::As { who: if self.user { Who::User } else { Who::Root } }
    }

    /// What comes next, by weight.
    fn verb(&mut self) -> fn(&mut Generator) -> Op {
        let all: u32 = VERBS.iter().map(|(weight, _)| weight).sum();
        let mut at = self.rng.u32(..all);
        let found = VERBS.iter().find(|(weight, _)| match at.checked_sub(*weight) {
            Some(rest) => {
                at = rest;
                false
            }
            None => true,
        });
        found.unwrap_or(&VERBS[0]).1
    }

    /// Notes what was perhaps made and perhaps taken away.
    fn note_names(&mut self, op: &Op) {
        let (gone, made, is_dir) = match op {
            Op::Open { at, flags, .. } if flags.has(libc::O_CREAT) => (None, Some(at), false),
            Op::Mkdir { at, .. } => (None, Some(at), true),
            Op::Mknod { at, .. } | Op::Symlink { at, .. } | Op::Link { to: at, .. } | Op::LinkFd { to: at, .. } => {
                (None, Some(at), false)
            }
            Op::Rename { from, to, .. } => {
                (Some(from), Some(to), self.made.iter().any(|(path, is_dir)| path == from && *is_dir))
            }
            Op::Unlink { at } | Op::Rmdir { at } => (Some(at), None, false),
            _ => return,
        };
        self.made.retain(|(path, _)| Some(path) != gone && Some(path) != made);
        self.made.extend(made.map(|at| (at.clone(), is_dir)));
        if self.made.len() > REMEMBERED {
            self.made.pop_front();
        }
    }

    /// A path where something of that kind was made, if there is one.
    fn made(&mut self, is_dir: bool) -> Option<Path> {
        let fitting: Vec<&Path> = self.made.iter().filter(|(_, d)| *d == is_dir).map(|(path, _)| path).collect();
        (!fitting.is_empty()).then(|| fitting[self.rng.usize(..fitting.len())].clone())
    }

    /// What every script begins with: some directories and files.
    fn prelude(&mut self) -> Option<Op> {
        let (a, b, c, d) = (0, 1, 2, 3);
        let dirs: [&[u8]; 4] = [&[a], &[b], &[a, b], &[b, a]];
        let files: [&[u8]; 3] = [&[c], &[a, d], &[b, a, c]];
        self.step += 1;
        let n = self.step as usize - 1;
        match n {
            0..4 => Some(Op::Mkdir { at: Path::new(dirs[n]), mode: crate::op::Mode(0o777) }),
            4..7 => {
                let (slot, flags) = (Slot(n as u8 - 4), Flags(libc::O_RDWR | libc::O_CREAT));
                self.note(slot, flags, false);
                Some(Op::Open { slot, at: Path::new(files[n - 4]), flags, mode: crate::op::Mode(0o666) })
            }
            _ => None,
        }
    }
}

impl Iterator for Generator {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        let op = match self.prelude() {
            Some(op) => op,
            None if self.user && self.chance(12) => {
                self.user = false;
                Op::As { who: Who::Root }
            }
            None => self.verb()(self),
        };
        self.note_names(&op);
        Some(op)
    }
}
