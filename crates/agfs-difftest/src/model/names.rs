//! Names of the model: entries of directories, and what they do to links and times.

use super::Model;
use crate::kernel::{Ino, Reply};
use crate::outcome::Kind;

impl Model {
    /// A new inode with a name.
    pub(super) fn make_in(&mut self, dir: Ino, name: &[u8], mode: u32) -> Reply<Ino> {
        self.node(dir)?;
        let ino = self.make(mode);
        if Kind::of(mode) == Kind::Dir {
            self.node(dir)?.stat.nlink += 1;
        } else {
            self.node(ino)?.stat.nlink = 1;
        }
        self.node(dir)?.entries.insert(name.to_vec(), ino);
        self.touch(dir, true);
        Ok(ino)
    }

    /// Takes a name away. A directory must be empty.
    pub(super) fn remove(&mut self, dir: Ino, name: &[u8]) -> Reply<()> {
        let ino = self.node(dir)?.entries.get(name).copied().ok_or(libc::ENOENT)?;
        if !self.node(ino)?.entries.is_empty() {
            return Err(libc::ENOTEMPTY);
        }
        self.node(dir)?.entries.remove(name);
        self.lose(ino, dir)?;
        self.touch(dir, true);
        Ok(())
    }

    /// An inode has lost a name in `dir`. It stays: somebody may have it open.
    fn lose(&mut self, ino: Ino, dir: Ino) -> Reply<()> {
        let stat = &mut self.node(ino)?.stat;
        if stat.kind == Kind::Dir {
            stat.nlink = 0;
            self.node(dir)?.stat.nlink -= 1;
        } else {
            stat.nlink -= 1;
        }
        self.touch(ino, false);
        Ok(())
    }

    /// Moves a name over another, or exchanges the two.
    pub(super) fn rename_in(&mut self, from: (Ino, &[u8]), to: (Ino, &[u8]), exchange: bool) -> Reply<()> {
        let source = self.node(from.0)?.entries.get(from.1).copied().ok_or(libc::ENOENT)?;
        let target = self.node(to.0)?.entries.get(to.1).copied();
        if let Some(target) = target.filter(|_| !exchange) {
            if !self.node(target)?.entries.is_empty() {
                return Err(libc::ENOTEMPTY);
            }
            self.lose(target, to.0)?;
        }
        self.node(from.0)?.entries.remove(from.1);
        self.node(to.0)?.entries.insert(to.1.to_vec(), source);
        self.moved(source, from.0, to.0)?;
        if let Some(target) = target.filter(|_| exchange) {
            self.node(from.0)?.entries.insert(from.1.to_vec(), target);
            self.moved(target, to.0, from.0)?;
        }
        self.touch(from.0, true);
        self.touch(to.0, true);
        Ok(())
    }

    /// An inode lies in another directory now.
    fn moved(&mut self, ino: Ino, from: Ino, to: Ino) -> Reply<()> {
        if self.node(ino)?.stat.kind == Kind::Dir {
            self.node(from)?.stat.nlink -= 1;
            self.node(to)?.stat.nlink += 1;
        }
        self.touch(ino, false);
        Ok(())
    }
}
