//! Calls on attributes and listings, with the checks that come before the file system is asked.

use super::{Change, Ino, Inodes, Kernel, Reply};
use crate::op::{Mode, On, Owner, Stamp, XHow, XName, XValue};
use crate::outcome::{Answer, Kind, Outcome};

impl<F: Inodes> Kernel<F> {
    fn set(&mut self, on: &On, change: Change) -> Answer {
        let ino = self.inode(on)?;
        self.fs.setattr(ino, None, change)?;
        Ok(Outcome::Done)
    }

    pub(super) fn chmod(&mut self, on: &On, mode: Mode) -> Answer {
        let change = Change { mode: Some(mode.0 & 0o7777), ..Change::default() };
        match on {
            // There is no chmod of a link.
            On::Link(path) => self.set(&On::Path(path.clone()), change),
            on => self.set(on, change),
        }
    }

    pub(super) fn chown(&mut self, on: &On, uid: Owner, gid: Owner) -> Answer {
        self.set(on, Change { uid: uid.0, gid: gid.0, ..Change::default() })
    }

    pub(super) fn utimens(&mut self, on: &On, atime: Stamp, mtime: Stamp) -> Answer {
        if (atime, mtime) == (Stamp::Omit, Stamp::Omit) {
            // Succeeds without a look at the path; a descriptor must be open.
            return match on {
                On::Slot(slot) => self.file(*slot).map(|_| Outcome::Done),
                _ => Ok(Outcome::Done),
            };
        }
        let given = |stamp| (stamp != Stamp::Omit).then_some(stamp);
        self.set(on, Change { atime: given(atime), mtime: given(mtime), ..Change::default() })
    }

    /// The inode and the name of an attribute that may be there; `absent` where the kind of inode has none.
    fn attribute(&mut self, on: &On, name: XName, absent: i32) -> Reply<(Ino, String)> {
        if let On::Slot(slot) = on {
            self.file(*slot)?;
        }
        let name = name.name();
        if name.len() > 255 {
            return Err(libc::ERANGE);
        }
        let ino = self.inode(on)?;
        let kind = self.fs.getattr(ino)?.kind;
        let known = ["user.", "trusted.", "security."].iter().find(|prefix| name.starts_with(*prefix));
        if known == Some(&"user.") && !matches!(kind, Kind::File | Kind::Dir) {
            return Err(absent);
        }
        match known {
            None => Err(libc::EOPNOTSUPP),
            Some(prefix) if name == *prefix => Err(libc::EINVAL),
            Some(_) => Ok((ino, name)),
        }
    }

    pub(super) fn setxattr(&mut self, on: &On, name: XName, value: XValue, how: XHow) -> Answer {
        let (ino, name) = self.attribute(on, name, libc::EPERM)?;
        self.fs.setxattr(ino, &name, &value.bytes(), how)?;
        Ok(Outcome::Done)
    }

    pub(super) fn getxattr(&mut self, on: &On, name: XName) -> Answer {
        let (ino, name) = self.attribute(on, name, libc::ENODATA)?;
        self.fs.getxattr(ino, &name).map(Outcome::Data)
    }

    pub(super) fn removexattr(&mut self, on: &On, name: XName) -> Answer {
        let (ino, name) = self.attribute(on, name, libc::EPERM)?;
        self.fs.removexattr(ino, &name)?;
        Ok(Outcome::Done)
    }

    pub(super) fn listxattr(&mut self, on: &On) -> Answer {
        let ino = self.inode(on)?;
        let mut names: Vec<_> = self.fs.listxattr(ino)?.into_iter().map(|name| (name, Kind::Other)).collect();
        names.sort();
        Ok(Outcome::Names(names))
    }

    pub(super) fn list(&mut self, on: &On) -> Answer {
        if let On::Slot(slot) = on {
            let file = self.file(*slot)?;
            return if file.is_dir { self.entries(file.ino, file.handle) } else { Err(libc::ENOTDIR) };
        }
        let (On::Path(path) | On::Link(path)) = on else { return Err(libc::EBADF) };
        let ino = self.find(path, true)?;
        if self.fs.getattr(ino)?.kind != Kind::Dir {
            return Err(libc::ENOTDIR);
        }
        let handle = self.fs.opendir(ino)?;
        let names = self.entries(ino, handle);
        self.fs.closedir(handle)?;
        names
    }

    /// What a listing shows: of a removed directory nothing.
    fn entries(&mut self, ino: Ino, handle: u64) -> Answer {
        if self.dead.contains(&ino) {
            return Ok(Outcome::Names(Vec::new()));
        }
        let mut names = self.fs.readdir(handle)?;
        names.retain(|(name, _)| name != b"." && name != b"..");
        names.extend([(b".".to_vec(), Kind::Dir), (b"..".to_vec(), Kind::Dir)]);
        names.sort();
        Ok(Outcome::Names(names))
    }
}
