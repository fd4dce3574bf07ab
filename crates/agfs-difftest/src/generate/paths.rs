//! Operations on names: which of the few names meet which, and where the odd ones go.

use super::{Generator, Guess};
use crate::op::{Flags, Mode, On, Op, Path, Renaming, Special, Switch};

/// Numbers in the table of names.
const SHADOW: u8 = 6;
const DOT: u8 = 8;
const DOTDOT: u8 = 9;
const ODD: [u8; 4] = [10, 11, 12, 13];

impl Generator {
    /// A name that is a directory, mostly.
    fn dir_name(&mut self) -> u8 {
        match self.rng.u32(..100) {
            0..90 => self.rng.u8(0..2),
            90..93 if self.profile.dotdot => DOTDOT,
            93..95 => DOT,
            95..97 if self.profile.shadows => SHADOW,
            _ => self.rng.u8(2..6),
        }
    }

    /// A name that is a file, mostly.
    fn file_name(&mut self) -> u8 {
        match self.rng.u32(..100) {
            0..91 => self.rng.u8(2..6),
            91..97 => self.rng.u8(0..2),
            97..99 => self.pick(&ODD),
            _ if self.profile.dotdot => self.pick(&[DOT, DOTDOT]),
            _ => DOT,
        }
    }

    fn place(&mut self, last: u8) -> Path {
        let mut names: Vec<u8> = (0..self.pick(&[0, 0, 0, 0, 1, 1, 1, 2, 3])).map(|_| self.dir_name()).collect();
        names.push(last);
        let base = self.chance(12).then(|| self.slot(|g| g == Guess::Dir));
        let absolute = self.profile.dotdot && self.chance(2);
        let slash = self.chance(2);
        if self.chance(1) {
            names.clear();
        }
        Path { base, absolute, slash: slash && !names.is_empty(), names }
    }

    pub(super) fn file(&mut self) -> Path {
        let name = self.file_name();
        self.place(name)
    }

    pub(super) fn dir(&mut self) -> Path {
        let name = self.dir_name();
        self.place(name)
    }

    /// A file that exists, mostly.
    pub(super) fn old_file(&mut self) -> Path {
        let old = if self.chance(70) { self.made(false) } else { None };
        old.unwrap_or_else(|| self.file())
    }

    /// A directory that exists, mostly.
    pub(super) fn old_dir(&mut self) -> Path {
        let old = if self.chance(60) { self.made(true) } else { None };
        old.unwrap_or_else(|| self.dir())
    }

    /// Something that exists, mostly.
    pub(super) fn path(&mut self) -> Path {
        if self.chance(75) { self.old_file() } else { self.old_dir() }
    }

    fn mode(&mut self) -> Mode {
        // Few that take the right to look in away: what cannot be entered finds little.
        Mode(self.pick(&[0o644, 0o666, 0o777, 0o755, 0o600, 0o4755, 0o2755, 0o6777, 0o1777, 0o2644, 0o444, 0o000]))
    }

    fn dir_mode(&mut self) -> Mode {
        Mode(self.pick(&[0o755, 0o777, 0o777, 0o1777, 0o2777, 0o3777, 0o700, 0o555]))
    }

    pub(super) fn open(&mut self) -> Op {
        let mut flags = self.pick(&[libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR, libc::O_RDWR, libc::O_RDWR]);
        let extra = [
            (libc::O_CREAT, 65),
            (libc::O_EXCL, 12),
            (libc::O_TRUNC, 18),
            (libc::O_APPEND, 15),
            (libc::O_NOFOLLOW, 12),
            (libc::O_DIRECTORY, 3),
        ];
        for (flag, chance) in extra {
            if self.chance(chance) {
                flags |= flag;
            }
        }
        let dir = self.chance(18);
        if dir {
            flags &= libc::O_NOFOLLOW;
            flags |= if self.chance(80) { libc::O_DIRECTORY } else { 0 };
        } else if flags & libc::O_CREAT == 0 && self.chance(85) {
            // Undefined without O_CREAT, though Linux defines it.
            flags &= !libc::O_EXCL;
        }
        if self.profile.path_only && self.chance(4) {
            flags |= libc::O_PATH;
        }
        let slot = self.free();
        let at = match () {
            () if dir => self.old_dir(),
            () if flags & libc::O_CREAT == 0 || self.chance(30) => self.old_file(),
            () => self.file(),
        };
        let flags = Flags(flags);
        self.note(slot, flags, dir);
        Op::Open { slot, at, flags, mode: self.mode() }
    }

    pub(super) fn open_tmp(&mut self) -> Op {
        if !self.profile.tmpfile {
            return self.open();
        }
        let slot = self.free();
        let access = self.pick(&[libc::O_RDWR, libc::O_RDWR, libc::O_WRONLY, libc::O_RDONLY]);
        let excl = if self.chance(15) { libc::O_EXCL } else { 0 };
        let flags = Flags(libc::O_TMPFILE | access | excl);
        self.note(slot, flags, false);
        Op::Open { slot, at: self.old_dir(), flags, mode: self.mode() }
    }

    pub(super) fn rename(&mut self) -> Op {
        let (from, to) = match self.rng.u32(..10) {
            0..3 => (self.old_dir(), self.dir()),
            3 => (self.path(), self.path()),
            4 | 5 => (self.old_file(), self.old_file()),
            _ => (self.old_file(), self.file()),
        };
        let how = match self.rng.u32(..20) {
            0..12 => Renaming::Plain,
            12..15 => Renaming::NoReplace,
            15..19 => Renaming::Exchange,
            _ => Renaming::Both,
        };
        Op::Rename { from, to, how }
    }

    pub(super) fn link(&mut self) -> Op {
        Op::Link { from: self.old_file(), to: self.file(), follow: self.switch(30) }
    }

    pub(super) fn link_fd(&mut self) -> Op {
        Op::LinkFd { slot: self.slot(|g| matches!(g, Guess::File { .. })), to: self.file() }
    }

    pub(super) fn unlink(&mut self) -> Op {
        let at = if self.chance(95) { self.old_file() } else { self.old_dir() };
        Op::Unlink { at }
    }

    pub(super) fn rmdir(&mut self) -> Op {
        let at = if self.chance(90) { self.old_dir() } else { self.old_file() };
        Op::Rmdir { at }
    }

    pub(super) fn mkdir(&mut self) -> Op {
        let at = if self.chance(85) { self.dir() } else { self.file() };
        Op::Mkdir { at, mode: self.dir_mode() }
    }

    pub(super) fn symlink(&mut self) -> Op {
        let mut target = if self.chance(60) { self.path() } else { self.dir() };
        target.base = None;
        if self.profile.dotdot && self.chance(20) {
            target.names.insert(0, DOTDOT);
        }
        Op::Symlink { target, at: self.file() }
    }

    pub(super) fn readlink(&mut self) -> Op {
        Op::Readlink { at: self.path() }
    }

    pub(super) fn mknod(&mut self) -> Op {
        let what = if self.profile.special { self.pick(Special::ALL) } else { Special::File };
        Op::Mknod { at: self.file(), what, mode: self.mode() }
    }

    pub(super) fn access(&mut self) -> Op {
        Op::Access { at: self.path(), mode: Mode(self.rng.u32(..8)) }
    }

    pub(super) fn list(&mut self) -> Op {
        let on = if self.chance(35) { On::Slot(self.slot(|g| g == Guess::Dir)) } else { On::Path(self.old_dir()) };
        Op::List { on }
    }

    pub(super) fn chmod(&mut self) -> Op {
        let dir = self.chance(25);
        let on = if dir { On::Path(self.old_dir()) } else { self.on_followed() };
        Op::Chmod { on, mode: if dir { self.dir_mode() } else { self.mode() } }
    }

    /// Whether a link is followed where nobody said.
    pub(super) fn stat(&mut self) -> Op {
        let on = match self.switch(30) {
            Switch::Yes => On::Slot(self.opened()),
            Switch::No => On::Path(self.path()),
        };
        Op::Stat { on }
    }
}
