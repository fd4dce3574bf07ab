//! The whole tree, walked by requests.

use super::{Ino, Inodes, Kernel, Reply};
use crate::outcome::{Answer, ContentHash, Kind, Outcome, Seen};
use std::collections::{BTreeMap, HashMap};

/// How much is read at once, in bytes: a whole number of pages.
const PIECE: u64 = 1 << 20;

impl<F: Inodes> Kernel<F> {
    pub(super) fn tree(&mut self) -> Answer {
        let mut found = BTreeMap::new();
        let mut first: HashMap<Ino, Vec<u8>> = HashMap::new();
        let mut dirs = vec![(self.fs.root(), Vec::new())];
        while let Some((dir, at)) = dirs.pop() {
            for name in self.names(dir)? {
                let path: Vec<u8> = if at.is_empty() { name.clone() } else { [&at[..], &name].join(&b'/') };
                let stat = self.look(dir, &name)?;
                let mut xattrs = BTreeMap::new();
                for name in self.fs.listxattr(stat.ino)? {
                    let value = self.fs.getxattr(stat.ino, &String::from_utf8_lossy(&name))?;
                    xattrs.insert(name, value);
                }
                let content = match stat.kind {
                    Kind::File => Some(self.content(stat.ino, stat.size)?),
                    Kind::Link => Some(blake3::hash(&self.fs.readlink(stat.ino)?)),
                    _ => None,
                };
                if stat.kind == Kind::Dir {
                    dirs.push((stat.ino, path.clone()));
                }
                found.insert(path, Seen { stat, same_as: None, content, xattrs });
            }
        }
        for (path, seen) in found.iter_mut().filter(|(_, s)| s.stat.kind != Kind::Dir && s.stat.nlink > 1) {
            let one = first.entry(seen.stat.ino).or_insert_with(|| path.clone());
            seen.same_as = (one != path).then(|| one.clone());
        }
        Ok(Outcome::Tree(found))
    }

    fn names(&mut self, dir: Ino) -> Reply<Vec<Vec<u8>>> {
        let handle = self.fs.opendir(dir)?;
        let names = self.fs.readdir(handle);
        self.fs.closedir(handle)?;
        Ok(names?.into_iter().map(|(name, _)| name).filter(|n| n != b"." && n != b"..").collect())
    }

    fn content(&mut self, ino: Ino, size: u64) -> Reply<blake3::Hash> {
        let handle = self.fs.open(ino, libc::O_RDONLY)?;
        let mut hash = ContentHash::default();
        for at in (0..size).step_by(PIECE as usize) {
            hash.add(at, &self.fs.read(handle, at, PIECE)?);
        }
        self.fs.close(handle)?;
        Ok(hash.end(size))
    }
}
