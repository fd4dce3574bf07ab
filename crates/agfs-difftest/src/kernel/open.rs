//! `open`, `close`, and opening again.

use super::walk::{Found, Walk};
use super::{File, Handle, Ino, Inodes, Kernel, Reply, new_mode};
use crate::op::{Mode, Path, Slot};
use crate::outcome::{Answer, Kind, Outcome, Stat};

impl<F: Inodes> Kernel<F> {
    pub(super) fn open(&mut self, slot: Slot, path: &Path, flags: i32, mode: Mode) -> Answer {
        if flags & libc::O_CREAT != 0 && flags & libc::O_DIRECTORY != 0 {
            return Err(libc::EINVAL);
        }
        let mut walk = Walk::new();
        let start = match path.base {
            Some(base) if !path.absolute => self.file(base)?.ino,
            _ => self.fs.root(),
        };
        let found = self.walk_from(start, &path.bytes(), &mut walk)?;
        let file = self.open_last(found, flags, mode, &mut walk)?;
        self.put(slot, file)
    }

    /// Opens or makes the last name, through links.
    fn open_last(&mut self, mut found: Found, flags: i32, mode: Mode, walk: &mut Walk) -> Reply<File> {
        let creates = flags & libc::O_CREAT != 0;
        let mut must_be_dir = flags & libc::O_DIRECTORY != 0;
        loop {
            let Some(name) = found.name.clone() else {
                let stat = self.stat_of_dir(found.dir)?;
                return self.open_found(stat, flags, must_be_dir);
            };
            if found.slash && creates {
                return Err(libc::EISDIR);
            }
            must_be_dir |= found.slash;
            let stat = match self.look(found.dir, &name) {
                Ok(stat) => stat,
                Err(libc::ENOENT) if creates && !self.dead.contains(&found.dir) => {
                    let (ino, handle) = self.fs.create(found.dir, &name, new_mode(mode), flags)?;
                    return Ok(file(ino, handle, flags, false));
                }
                Err(e) => return Err(e),
            };
            let unfollowed = flags & libc::O_NOFOLLOW != 0 || (creates && flags & libc::O_EXCL != 0);
            if stat.kind != Kind::Link || (unfollowed && !found.slash) {
                return self.open_found(stat, flags, must_be_dir);
            }
            walk.link()?;
            let target = self.fs.readlink(stat.ino)?;
            let slash = found.slash;
            found = self.walk_from(found.dir, &target, walk)?;
            found.slash |= slash;
        }
    }

    /// The attributes of a directory, which may be gone.
    fn stat_of_dir(&mut self, ino: Ino) -> Reply<Stat> {
        self.fs.getattr(ino)
    }

    fn open_found(&mut self, stat: Stat, flags: i32, must_be_dir: bool) -> Reply<File> {
        let is_dir = stat.kind == Kind::Dir;
        if flags & libc::O_CREAT != 0 {
            if flags & libc::O_EXCL != 0 {
                return Err(libc::EEXIST);
            }
            if is_dir {
                return Err(libc::EISDIR);
            }
        }
        if must_be_dir && !is_dir {
            return Err(libc::ENOTDIR);
        }
        if stat.kind == Kind::Link {
            return Err(libc::ELOOP);
        }
        self.open_inode(stat, flags)
    }

    fn open_inode(&mut self, stat: Stat, flags: i32) -> Reply<File> {
        match stat.kind {
            Kind::Dir if flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0 => Err(libc::EISDIR),
            Kind::Dir => self.fs.opendir(stat.ino).map(|handle| file(stat.ino, handle, flags, true)),
            Kind::File => self.fs.open(stat.ino, flags).map(|handle| file(stat.ino, handle, flags, false)),
            _ => Err(libc::ENXIO),
        }
    }

    pub(super) fn reopen(&mut self, slot: Slot, from: Slot, flags: i32) -> Answer {
        let old = self.file(from)?;
        let stat = self.fs.getattr(old.ino)?;
        let opened = self.open_inode(stat, flags)?;
        self.put(slot, opened)
    }

    fn put(&mut self, slot: Slot, file: File) -> Answer {
        if let Some(old) = self.slots[usize::from(slot.0)].replace(file) {
            // As a program that opens over a descriptor: nobody hears of this.
            let _ = self.end_file(old);
        }
        Ok(Outcome::Done)
    }

    fn end_file(&mut self, file: File) -> Reply<()> {
        if file.is_dir { self.fs.closedir(file.handle) } else { self.fs.close(file.handle) }
    }

    pub(super) fn close(&mut self, slot: Slot) -> Answer {
        let file = self.slots[usize::from(slot.0)].take().ok_or(libc::EBADF)?;
        self.end_file(file)?;
        Ok(Outcome::Done)
    }
}

const fn file(ino: Ino, handle: Handle, flags: i32, is_dir: bool) -> File {
    File { ino, handle, is_dir, flags, position: 0 }
}
