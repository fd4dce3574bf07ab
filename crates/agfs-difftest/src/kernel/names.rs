//! Calls that make, move and remove names, with the checks that come before the file system is asked.

use super::walk::Dots;
use super::{Inodes, Kernel, Reply, new_mode};
use crate::op::{Mode, Path, Renaming, Slot, Special, Switch};
use crate::outcome::{Answer, Kind, Outcome, Stat};

impl<F: Inodes> Kernel<F> {
    pub(super) fn mkdir(&mut self, at: &Path, mode: Mode) -> Answer {
        let (dir, name) = self.place(at, true)?;
        self.fs.mkdir(dir, &name, new_mode(mode) & 0o1777)?;
        Ok(Outcome::Done)
    }

    pub(super) fn mknod(&mut self, at: &Path, what: Special, mode: Mode) -> Answer {
        let (dir, name) = self.place(at, false)?;
        let kind = match what {
            Special::File => libc::S_IFREG,
            Special::Fifo => libc::S_IFIFO,
            Special::Socket => libc::S_IFSOCK,
        };
        self.fs.mknod(dir, &name, kind | new_mode(mode))?;
        Ok(Outcome::Done)
    }

    pub(super) fn symlink(&mut self, target: &Path, at: &Path) -> Answer {
        let target = target.bytes();
        if target.is_empty() {
            return Err(libc::ENOENT);
        }
        let (dir, name) = self.place(at, false)?;
        self.fs.symlink(dir, &name, &target)?;
        Ok(Outcome::Done)
    }

    pub(super) fn readlink(&mut self, at: &Path) -> Answer {
        let ino = self.find(at, false)?;
        if self.fs.getattr(ino)?.kind != Kind::Link {
            return Err(libc::EINVAL);
        }
        self.fs.readlink(ino).map(Outcome::Data)
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path, follow: Switch) -> Answer {
        let ino = self.find(from, follow == Switch::Yes)?;
        let stat = self.fs.getattr(ino)?;
        self.link_inode(stat, to)
    }

    pub(super) fn link_file(&mut self, slot: Slot, to: &Path) -> Answer {
        let file = self.file(slot)?;
        let stat = self.fs.getattr(file.ino)?;
        self.link_inode(stat, to)
    }

    fn link_inode(&mut self, stat: Stat, to: &Path) -> Answer {
        let (dir, name) = self.place(to, false)?;
        if stat.kind == Kind::Dir {
            return Err(libc::EPERM);
        }
        if stat.nlink == 0 {
            return Err(libc::ENOENT);
        }
        self.fs.link(stat.ino, dir, &name)?;
        Ok(Outcome::Done)
    }

    pub(super) fn unlink(&mut self, at: &Path) -> Answer {
        let found = self.walk(at)?;
        let Some(name) = found.name else { return Err(libc::EISDIR) };
        let stat = self.look(found.dir, &name)?;
        if stat.kind == Kind::Dir {
            return Err(libc::EISDIR);
        }
        if found.slash {
            return Err(libc::ENOTDIR);
        }
        self.fs.unlink(found.dir, &name)?;
        Ok(Outcome::Done)
    }

    pub(super) fn rmdir(&mut self, at: &Path) -> Answer {
        let found = self.walk(at)?;
        let Some(name) = found.name else {
            return Err(match found.dots {
                Dots::Root => libc::EBUSY,
                Dots::One => libc::EINVAL,
                Dots::Two => libc::ENOTEMPTY,
            });
        };
        let stat = self.look(found.dir, &name)?;
        if stat.kind != Kind::Dir {
            return Err(libc::ENOTDIR);
        }
        self.fs.rmdir(found.dir, &name)?;
        self.dead.insert(stat.ino);
        Ok(Outcome::Done)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, how: Renaming) -> Answer {
        if how == Renaming::Both {
            return Err(libc::EINVAL);
        }
        let exchange = how == Renaming::Exchange;
        let (old, new) = (self.walk(from)?, self.walk(to)?);
        let Some(old_name) = old.name else { return Err(libc::EBUSY) };
        let Some(new_name) = new.name else {
            return Err(if how == Renaming::NoReplace { libc::EEXIST } else { libc::EBUSY });
        };
        let source = self.look(old.dir, &old_name)?;
        let target = self.target(new.dir, &new_name, how)?;
        let is_dir = |stat: &Stat| stat.kind == Kind::Dir;
        if exchange && new.slash && !target.as_ref().is_some_and(is_dir) {
            return Err(libc::ENOTDIR);
        }
        if !is_dir(&source) && (old.slash || (!exchange && new.slash)) {
            return Err(libc::ENOTDIR);
        }
        if let Some(Some(on_the_way)) = self.below(new.dir, old.dir)
            && on_the_way == source.ino
        {
            return Err(libc::EINVAL);
        }
        if let (Some(target), Some(Some(on_the_way))) = (&target, self.below(old.dir, new.dir))
            && on_the_way == target.ino
        {
            return Err(if exchange { libc::EINVAL } else { libc::ENOTEMPTY });
        }
        match &target {
            Some(target) if target.ino == source.ino => return Ok(Outcome::Done),
            Some(target) if !exchange && is_dir(&source) && !is_dir(target) => return Err(libc::ENOTDIR),
            Some(target) if !exchange && !is_dir(&source) && is_dir(target) => return Err(libc::EISDIR),
            _ => {}
        }
        let flags = match how {
            Renaming::NoReplace => libc::RENAME_NOREPLACE,
            Renaming::Exchange => libc::RENAME_EXCHANGE,
            _ => 0,
        };
        self.fs.rename((old.dir, &old_name), (new.dir, &new_name), flags)?;
        self.moved((&source, new.dir), target.map(|t| (t, exchange.then_some(old.dir))));
        Ok(Outcome::Done)
    }

    /// What is at the new name; whether it may be there.
    fn target(&mut self, dir: u64, name: &[u8], how: Renaming) -> Reply<Option<Stat>> {
        match self.look(dir, name) {
            Ok(_) if how == Renaming::NoReplace => Err(libc::EEXIST),
            Ok(stat) => Ok(Some(stat)),
            Err(libc::ENOENT) if how != Renaming::Exchange && !self.dead.contains(&dir) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Notes where directories are now. A target without a new place is gone.
    fn moved(&mut self, source: (&Stat, u64), target: Option<(Stat, Option<u64>)>) {
        if source.0.kind == Kind::Dir {
            self.parents.insert(source.0.ino, source.1);
        }
        match target {
            Some((stat, Some(dir))) if stat.kind == Kind::Dir => drop(self.parents.insert(stat.ino, dir)),
            Some((stat, None)) if stat.kind == Kind::Dir => drop(self.dead.insert(stat.ino)),
            _ => {}
        }
    }

    pub(super) fn access(&mut self, at: &Path, mode: Mode) -> Answer {
        let ino = self.find(at, true)?;
        let stat = self.fs.getattr(ino)?;
        // Root may do everything but execute what nobody may.
        if mode.0 & 1 != 0 && stat.kind != Kind::Dir && stat.mode & 0o111 == 0 {
            return Err(libc::EACCES);
        }
        Ok(Outcome::Done)
    }
}
