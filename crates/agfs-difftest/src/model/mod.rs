//! A file system in a map: an inode is its attributes and a vector of bytes. As dumb as can be, to be right by inspection.
//!
//! Answers requests as a local file system under Linux does for root. No path, no permission, no limit of space.

mod data;
mod names;

use crate::kernel::{Change, Handle, Ino, Inodes, Reply};
use crate::op::{Falloc, Stamp, XHow};
use crate::outcome::{Kind, Stat};
use std::collections::BTreeMap;

/// An inode.
#[derive(Clone, Debug)]
struct Node {
    stat: Stat,
    data: Vec<u8>,
    entries: BTreeMap<Vec<u8>, Ino>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A file system in memory.
pub struct Model {
    nodes: BTreeMap<Ino, Node>,
    open: BTreeMap<Handle, (Ino, i32)>,
    next: u64,
    time: i128,
}

/// The root's number.
const ROOT: Ino = 1;

impl Default for Model {
    fn default() -> Model {
        Model::new()
    }
}

impl Model {
    /// An empty file system.
    pub fn new() -> Model {
        let mut model =
            Model { nodes: BTreeMap::new(), open: BTreeMap::new(), next: ROOT, time: crate::compare::now() };
        model.make(libc::S_IFDIR | 0o755);
        model
    }

    /// A new inode that no name leads to.
    fn make(&mut self, mode: u32) -> Ino {
        let (ino, now) = (self.next, self.now());
        self.next += 1;
        let kind = Kind::of(mode);
        let stat = Stat {
            ino,
            kind,
            mode: mode & 0o7777,
            nlink: if kind == Kind::Dir { 2 } else { 0 },
            uid: 0,
            gid: 0,
            rdev: 0,
            size: 0,
            blocks: 0,
            atime: now,
            mtime: now,
            ctime: now,
        };
        self.nodes.insert(ino, Node { stat, data: Vec::new(), entries: BTreeMap::new(), xattrs: BTreeMap::new() });
        ino
    }

    /// A moment after every earlier one.
    fn now(&mut self) -> i128 {
        self.time = crate::compare::now().max(self.time + 1);
        self.time
    }

    fn node(&mut self, ino: Ino) -> Reply<&mut Node> {
        self.nodes.get_mut(&ino).ok_or(libc::ESTALE)
    }

    /// The inode and the flags of an open file.
    fn file(&self, handle: Handle) -> Reply<(Ino, i32)> {
        self.open.get(&handle).copied().ok_or(libc::EBADF)
    }

    fn put_open(&mut self, ino: Ino, flags: i32) -> Handle {
        self.next += 1;
        self.open.insert(self.next, (ino, flags));
        self.next
    }

    /// Notes that something of an inode changed; its content, perhaps.
    fn touch(&mut self, ino: Ino, content: bool) {
        let now = self.now();
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.stat.ctime = now;
            if content {
                node.stat.mtime = now;
            }
        }
    }
}

impl Inodes for Model {
    fn root(&self) -> Ino {
        ROOT
    }

    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Reply<Stat> {
        if name.len() > 255 {
            return Err(libc::ENAMETOOLONG);
        }
        let ino = self.node(dir)?.entries.get(name).copied().ok_or(libc::ENOENT)?;
        self.getattr(ino)
    }

    fn getattr(&mut self, ino: Ino) -> Reply<Stat> {
        self.node(ino).map(|node| node.stat)
    }

    fn setattr(&mut self, ino: Ino, _: Option<Handle>, change: Change) -> Reply<()> {
        let now = self.now();
        if let Some(size) = change.size {
            self.resize(ino, size)?;
        }
        let stat = &mut self.node(ino)?.stat;
        let of = |stamp: Stamp| match stamp {
            Stamp::At(seconds, nanos) => i128::from(seconds) * 1_000_000_000 + i128::from(nanos),
            _ => now,
        };
        stat.mode = change.mode.unwrap_or(stat.mode);
        stat.uid = change.uid.unwrap_or(stat.uid);
        stat.gid = change.gid.unwrap_or(stat.gid);
        stat.atime = change.atime.map_or(stat.atime, of);
        stat.mtime = change.mtime.map_or(stat.mtime, of);
        stat.ctime = now;
        // A change of owner, also to nobody else, takes set-id bits from what is no directory.
        let chown = change.mode.is_none() && change.size.is_none() && change.atime.or(change.mtime).is_none();
        if chown && stat.kind != Kind::Dir {
            stat.mode &= if stat.mode & 0o010 != 0 { 0o1777 } else { 0o3777 };
        }
        Ok(())
    }

    fn readlink(&mut self, ino: Ino) -> Reply<Vec<u8>> {
        self.node(ino).map(|node| node.data.clone())
    }

    fn mknod(&mut self, dir: Ino, name: &[u8], mode: u32) -> Reply<()> {
        self.make_in(dir, name, mode).map(drop)
    }

    fn mkdir(&mut self, dir: Ino, name: &[u8], mode: u32) -> Reply<()> {
        let inherited = self.node(dir)?.stat.mode & 0o2000;
        self.make_in(dir, name, libc::S_IFDIR | mode | inherited).map(drop)
    }

    fn symlink(&mut self, dir: Ino, name: &[u8], target: &[u8]) -> Reply<()> {
        let ino = self.make_in(dir, name, libc::S_IFLNK | 0o777)?;
        let node = self.node(ino)?;
        (node.data, node.stat.size) = (target.to_vec(), target.len() as u64);
        Ok(())
    }

    fn unlink(&mut self, dir: Ino, name: &[u8]) -> Reply<()> {
        self.remove(dir, name)
    }

    fn rmdir(&mut self, dir: Ino, name: &[u8]) -> Reply<()> {
        self.remove(dir, name)
    }

    fn rename(&mut self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: u32) -> Reply<()> {
        self.rename_in(from, to, flags & libc::RENAME_EXCHANGE != 0)
    }

    fn link(&mut self, ino: Ino, dir: Ino, name: &[u8]) -> Reply<()> {
        self.node(dir)?.entries.insert(name.to_vec(), ino);
        self.node(ino)?.stat.nlink += 1;
        self.touch(ino, false);
        self.touch(dir, true);
        Ok(())
    }

    fn create(&mut self, dir: Ino, name: &[u8], mode: u32, flags: i32) -> Reply<(Ino, Handle)> {
        let ino = self.make_in(dir, name, libc::S_IFREG | mode)?;
        Ok((ino, self.put_open(ino, flags)))
    }

    fn open(&mut self, ino: Ino, flags: i32) -> Reply<Handle> {
        if flags & libc::O_TRUNC != 0 {
            self.resize(ino, 0)?;
        }
        Ok(self.put_open(ino, flags))
    }

    fn read(&mut self, handle: Handle, at: u64, len: u64) -> Reply<Vec<u8>> {
        self.read_at(handle, at, len)
    }

    fn write(&mut self, handle: Handle, at: u64, data: &[u8]) -> Reply<()> {
        self.write_at(handle, at, data)
    }

    fn fallocate(&mut self, handle: Handle, how: Falloc, at: u64, len: u64) -> Reply<()> {
        self.allocate(handle, how, at, len)
    }

    fn seek(&mut self, handle: Handle, at: u64, hole: bool) -> Reply<Option<u64>> {
        // Everything is data.
        let ino = self.file(handle)?.0;
        let size = self.node(ino)?.stat.size;
        Ok(if at >= size { None } else { Some(if hole { size } else { at }) })
    }

    fn copy(&mut self, from: (Handle, u64), to: (Handle, u64), len: u64) -> Reply<u64> {
        let data = self.read_at(from.0, from.1, len)?;
        self.write_at(to.0, to.1, &data)?;
        Ok(data.len() as u64)
    }

    fn fsync(&mut self, handle: Handle) -> Reply<()> {
        self.file(handle).map(drop)
    }

    fn close(&mut self, handle: Handle) -> Reply<()> {
        self.open.remove(&handle).map(drop).ok_or(libc::EBADF)
    }

    fn opendir(&mut self, ino: Ino) -> Reply<Handle> {
        self.node(ino)?;
        Ok(self.put_open(ino, libc::O_RDONLY))
    }

    fn readdir(&mut self, handle: Handle) -> Reply<Vec<(Vec<u8>, Kind)>> {
        let ino = self.file(handle)?.0;
        let entries = self.node(ino)?.entries.clone();
        entries.into_iter().map(|(name, ino)| Ok((name, self.node(ino)?.stat.kind))).collect()
    }

    fn closedir(&mut self, handle: Handle) -> Reply<()> {
        self.close(handle)
    }

    fn setxattr(&mut self, ino: Ino, name: &str, value: &[u8], how: XHow) -> Reply<()> {
        let xattrs = &mut self.node(ino)?.xattrs;
        match (how, xattrs.contains_key(name.as_bytes())) {
            (XHow::Create, true) => return Err(libc::EEXIST),
            (XHow::Replace, false) => return Err(libc::ENODATA),
            _ => {}
        }
        xattrs.insert(name.as_bytes().to_vec(), value.to_vec());
        self.touch(ino, false);
        Ok(())
    }

    fn getxattr(&mut self, ino: Ino, name: &str) -> Reply<Vec<u8>> {
        self.node(ino)?.xattrs.get(name.as_bytes()).cloned().ok_or(libc::ENODATA)
    }

    fn listxattr(&mut self, ino: Ino) -> Reply<Vec<Vec<u8>>> {
        Ok(self.node(ino)?.xattrs.keys().cloned().collect())
    }

    fn removexattr(&mut self, ino: Ino, name: &str) -> Reply<()> {
        self.node(ino)?.xattrs.remove(name.as_bytes()).ok_or(libc::ENODATA)?;
        self.touch(ino, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
