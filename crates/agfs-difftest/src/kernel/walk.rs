//! Paths to inodes: name by name, through links, up by `..`.

use super::{Ino, Inodes, Kernel, Reply};
use crate::op::Path;
use crate::outcome::{Kind, Stat};

/// How many links a walk follows.
const LINKS: u32 = 40;

/// Where the last name of a path is, or would be.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The directory; where there is no last name, what the path leads to.
    pub dir: Ino,
    /// The last name, if it is neither `.` nor `..` nor nothing.
    pub name: Option<Vec<u8>>,
    /// What stands in its place.
    pub dots: Dots,
    /// Whether a slash follows.
    pub slash: bool,
}

/// What a path ends with that is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dots {
    Root,
    One,
    Two,
}

/// A walk that is under way.
pub(super) struct Walk {
    links: u32,
}

impl Walk {
    pub(super) const fn new() -> Walk {
        Walk { links: 0 }
    }

    /// Counts a link.
    pub(super) fn link(&mut self) -> Reply<()> {
        self.links += 1;
        if self.links > LINKS { Err(libc::ELOOP) } else { Ok(()) }
    }
}

impl<F: Inodes> Kernel<F> {
    /// A name in a directory. What was removed has none.
    pub(super) fn look(&mut self, dir: Ino, name: &[u8]) -> Reply<Stat> {
        if self.dead.contains(&dir) {
            return Err(libc::ENOENT);
        }
        let stat = self.fs.lookup(dir, name)?;
        if stat.kind == Kind::Dir {
            self.parents.insert(stat.ino, dir);
        }
        Ok(stat)
    }

    fn parent(&self, dir: Ino) -> Ino {
        self.parents.get(&dir).copied().unwrap_or_else(|| self.fs.root())
    }

    /// Whether `dir` is `above` or lies below it; then the child of `above` on the way, if it is not `above` itself.
    pub(super) fn below(&self, dir: Ino, above: Ino) -> Option<Option<Ino>> {
        let (mut at, mut child) = (dir, None);
        loop {
            if at == above {
                return Some(child);
            }
            if at == self.fs.root() {
                return None;
            }
            (at, child) = (self.parent(at), Some(at));
        }
    }

    /// Walks to the directory of a path's last name.
    pub(super) fn walk(&mut self, path: &Path) -> Reply<Found> {
        let start = match path.base {
            Some(slot) if !path.absolute => self.file(slot)?.ino,
            _ => self.fs.root(),
        };
        self.walk_from(start, &path.bytes(), &mut Walk::new())
    }

    /// Walks from a directory to that of the last name.
    pub(super) fn walk_from(&mut self, start: Ino, path: &[u8], walk: &mut Walk) -> Reply<Found> {
        if path.is_empty() {
            return Err(libc::ENOENT);
        }
        let mut at = if path[0] == b'/' { self.fs.root() } else { start };
        let slash = path.last() == Some(&b'/');
        let names: Vec<&[u8]> = path.split(|b| *b == b'/').filter(|n| !n.is_empty()).collect();
        let Some((last, dirs)) = names.split_last() else {
            return Ok(Found { dir: at, name: None, dots: Dots::Root, slash });
        };
        for name in dirs {
            at = self.step(at, name, walk)?;
        }
        self.must_be_dir(at)?;
        let (dir, name, dots) = match *last {
            b"." => (at, None, Dots::One),
            b".." => (self.parent(at), None, Dots::Two),
            name => (at, Some(name.to_vec()), Dots::Root),
        };
        Ok(Found { dir, name, dots, slash })
    }

    fn must_be_dir(&mut self, ino: Ino) -> Reply<()> {
        if self.dead.contains(&ino) || self.fs.getattr(ino)?.kind == Kind::Dir { Ok(()) } else { Err(libc::ENOTDIR) }
    }

    /// One name in the middle of a path: a directory, or a link to one.
    fn step(&mut self, dir: Ino, name: &[u8], walk: &mut Walk) -> Reply<Ino> {
        self.must_be_dir(dir)?;
        match name {
            b"." => return Ok(dir),
            b".." => return Ok(self.parent(dir)),
            _ => {}
        }
        let stat = self.look(dir, name)?;
        if stat.kind != Kind::Link {
            return Ok(stat.ino);
        }
        walk.link()?;
        let target = self.fs.readlink(stat.ino)?;
        let found = self.walk_from(dir, &target, walk)?;
        self.end(found, true, walk)
    }

    /// What a walk's last name leads to.
    pub(super) fn end(&mut self, found: Found, follow: bool, walk: &mut Walk) -> Reply<Ino> {
        let Some(name) = &found.name else { return Ok(found.dir) };
        let stat = self.look(found.dir, name)?;
        if stat.kind == Kind::Link && (follow || found.slash) {
            walk.link()?;
            let target = self.fs.readlink(stat.ino)?;
            let next = self.walk_from(found.dir, &target, walk)?;
            let ino = self.end(next, true, walk)?;
            if found.slash {
                self.must_be_dir(ino)?;
            }
            return Ok(ino);
        }
        if found.slash && stat.kind != Kind::Dir { Err(libc::ENOTDIR) } else { Ok(stat.ino) }
    }

    /// What a path leads to.
    pub(super) fn find(&mut self, path: &Path, follow: bool) -> Reply<Ino> {
        let mut walk = Walk::new();
        let start = match path.base {
            Some(slot) if !path.absolute => self.file(slot)?.ino,
            _ => self.fs.root(),
        };
        let found = self.walk_from(start, &path.bytes(), &mut walk)?;
        self.end(found, follow, &mut walk)
    }
}
