//! Everything that a directory shows, walked by descriptors so that no depth is too much.

use super::inode::{entries, ours, stat_of};
use super::of;
use crate::outcome::{Answer, ContentHash, Kind, Outcome, Seen, Stat};
use rustix::fs::{self, AtFlags, Mode, OFlags, SeekFrom};
use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::os::fd::OwnedFd;

/// How much is read at once, in bytes.
const PIECE: usize = 1 << 18;

/// The whole tree below `root`, without `root` itself.
pub(super) fn tree(root: &OwnedFd) -> Answer {
    let mut walk = Walk { found: BTreeMap::new(), first: HashMap::new() };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    walk.dir(&fs::openat(root, ".", flags, Mode::empty()).map_err(of)?, &[])?;
    Ok(Outcome::Tree(walk.found))
}

struct Walk {
    found: BTreeMap<Vec<u8>, Seen>,
    /// The first path of each inode.
    first: HashMap<u64, Vec<u8>>,
}

impl Walk {
    fn dir(&mut self, dir: &OwnedFd, at: &[u8]) -> Result<(), i32> {
        for (name, kind) in entries(dir)?.into_iter().filter(|(n, _)| n != b"." && n != b"..") {
            let path = if at.is_empty() { name.clone() } else { [at, &name].join(&b'/') };
            let name = CString::new(name).map_err(|_| libc::EINVAL)?;
            let stat = stat_of(&fs::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(of)?);
            if stat.kind != kind {
                // The listing and the inode say different things.
                return Err(libc::EUCLEAN);
            }
            let open = |flags: OFlags| {
                let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
                fs::openat(dir, &name, flags, Mode::empty()).map_err(of)
            };
            let mut seen = Seen { stat, same_as: self.same_as(&stat, &path), content: None, xattrs: BTreeMap::new() };
            match stat.kind {
                Kind::Dir => {
                    let sub = open(OFlags::DIRECTORY)?;
                    seen.xattrs = xattrs(&sub)?;
                    self.dir(&sub, &path)?;
                }
                Kind::File => {
                    let file = open(OFlags::RDONLY)?;
                    seen.xattrs = xattrs(&file)?;
                    seen.content = Some(content(&file, stat.size)?);
                }
                Kind::Link => {
                    let target = fs::readlinkat(dir, &name, Vec::new()).map_err(of)?;
                    seen.content = Some(blake3::hash(target.to_bytes()));
                }
                _ => {}
            }
            self.found.insert(path, seen);
        }
        Ok(())
    }

    fn same_as(&mut self, stat: &Stat, path: &[u8]) -> Option<Vec<u8>> {
        if stat.kind == Kind::Dir || stat.nlink < 2 {
            return None;
        }
        let first = self.first.entry(stat.ino).or_insert_with(|| path.to_vec());
        (first != path).then(|| first.clone())
    }
}

/// The content by its hash: holes are stepped over.
fn content(file: &OwnedFd, size: u64) -> Result<blake3::Hash, i32> {
    let mut hash = ContentHash::default();
    let mut room = vec![0; PIECE];
    let mut at = 0;
    while at < size {
        at = match fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => data - data % 4_096,
            Err(rustix::io::Errno::NXIO) => break,
            Err(e) => return Err(of(e)),
        };
        let end = fs::seek(file, SeekFrom::Hole(at)).map_or(size, |hole| hole.next_multiple_of(4_096).max(at + 4_096));
        while at < end.min(size) {
            let want = PIECE.min((end - at) as usize);
            let mut have = 0;
            while have < want {
                match rustix::io::pread(file, &mut room[have..want], at + have as u64).map_err(of)? {
                    0 => break,
                    n => have += n,
                }
            }
            hash.add(at, &room[..have]);
            at += want as u64;
        }
    }
    Ok(hash.end(size))
}

fn xattrs(file: &OwnedFd) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, i32> {
    let mut room = vec![0; 1 << 16];
    let n = fs::flistxattr(file, &mut room[..]).map_err(of)?;
    let mut all = BTreeMap::new();
    for name in ours(&room[..n]) {
        let mut value = vec![0; 1 << 16];
        let n = fs::fgetxattr(file, name.as_slice(), &mut value[..]).map_err(of)?;
        value.truncate(n);
        all.insert(name, value);
    }
    Ok(all)
}
