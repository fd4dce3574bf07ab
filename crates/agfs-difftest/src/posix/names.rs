//! Names: making, moving, linking and removing them, and what links point at.

use super::{Posix, of};
use crate::op::{Mode, Op, Path, Renaming, Special, Switch};
use crate::outcome::{Answer, Outcome};
use rustix::fs::{self, AtFlags, FileType, RenameFlags};

fn raw(mode: Mode) -> fs::Mode {
    fs::Mode::from_raw_mode(mode.0)
}

impl Posix {
    pub(super) fn rearrange(&self, op: &Op) -> Answer {
        match op {
            Op::Rename { from, to, how } => {
                let ((a, from), (b, to)) = (self.at(from)?, self.at(to)?);
                let flags = match how {
                    Renaming::Plain => RenameFlags::empty(),
                    Renaming::NoReplace => RenameFlags::NOREPLACE,
                    Renaming::Exchange => RenameFlags::EXCHANGE,
                    Renaming::Both => RenameFlags::NOREPLACE | RenameFlags::EXCHANGE,
                };
                fs::renameat_with(a, &from, b, &to, flags)
            }
            Op::Link { from, to, follow } => {
                let ((a, from), (b, to)) = (self.at(from)?, self.at(to)?);
                let flags = if *follow == Switch::Yes { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
                fs::linkat(a, &from, b, &to, flags)
            }
            Op::LinkFd { slot, to } => {
                let (dir, to) = self.at(to)?;
                fs::linkat(&self.fds, self.proc_name(*slot)?, dir, &to, AtFlags::SYMLINK_FOLLOW)
            }
            Op::Unlink { at } => self.at(at).map(|(dir, name)| fs::unlinkat(dir, &name, AtFlags::empty()))?,
            Op::Rmdir { at } => self.at(at).map(|(dir, name)| fs::unlinkat(dir, &name, AtFlags::REMOVEDIR))?,
            _ => unreachable!("{op} moves no name"),
        }
        .map_err(of)?;
        Ok(Outcome::Done)
    }

    pub(super) fn make(&self, op: &Op) -> Answer {
        match op {
            Op::Mkdir { at, mode } => self.at(at).map(|(dir, name)| fs::mkdirat(dir, &name, raw(*mode)))?,
            Op::Symlink { target, at } => {
                self.at(at).map(|(dir, name)| fs::symlinkat(super::c_string(target), dir, &name))?
            }
            Op::Mknod { at, what, mode } => {
                let kind = match what {
                    Special::File => FileType::RegularFile,
                    Special::Fifo => FileType::Fifo,
                    Special::Socket => FileType::Socket,
                };
                self.at(at).map(|(dir, name)| fs::mknodat(dir, &name, kind, raw(*mode), 0))?
            }
            _ => unreachable!("{op} makes no name"),
        }
        .map_err(of)?;
        Ok(Outcome::Done)
    }

    pub(super) fn readlink(&self, at: &Path) -> Answer {
        let (dir, name) = self.at(at)?;
        fs::readlinkat(dir, &name, Vec::new()).map(|target| Outcome::Data(target.into_bytes())).map_err(of)
    }

    pub(super) fn access(&self, at: &Path, mode: Mode) -> Answer {
        let (dir, name) = self.at(at)?;
        // By the effective user: the one that this thread has changed to.
        let mode = fs::Access::from_bits_truncate(mode.0);
        fs::accessat(dir, &name, mode, AtFlags::EACCESS).map_err(of)?;
        Ok(Outcome::Done)
    }
}
