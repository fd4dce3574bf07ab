//! How much lies in shadow directories, outside the tree. Reads only.

use super::ShadowFs;
use super::inode::Key;
use super::meta::stat_at;
use super::roots::{names_in, open_for_reading};
use super::types::{Errno, Result};
use agfs_core::node::NodeKind;
use rustc_hash::FxHashSet;
use std::os::fd::OwnedFd;

/// Directories deeper than this below the base are counted but not entered: each level costs an open descriptor.
const MAX_DEPTH: usize = 512;

/// What all shadow directories of a mount hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Shadow directories that have a local directory here.
    pub roots: u64,
    /// Everything below them that is not a directory; a file with several links counts once.
    pub files: u64,
    /// Directories below them.
    pub dirs: u64,
    /// The sizes of the files, in bytes.
    pub bytes: u64,
    /// The space that files and directories take on the disk, in bytes.
    pub allocated: u64,
    /// Directories that could not be entered, so that the numbers are too low.
    pub unreadable: u64,
}

/// A directory being walked, and what is left to look at in it.
struct Level {
    dir: OwnedFd,
    names: Vec<Vec<u8>>,
}

impl Level {
    fn open(dir: OwnedFd) -> Result<Level> {
        let names = names_in(&dir)?.into_iter().map(|(name, _)| name).collect();
        Ok(Level { dir, names })
    }
}

impl ShadowFs {
    /// Counts what lies in all shadow directories of this mount. Takes time in proportion to it; what changes meanwhile is
    /// counted or not.
    pub fn usage(&self) -> Result<Usage> {
        let mut usage = Usage::default();
        let mut linked = FxHashSet::default();
        for root in self.roots()? {
            usage.roots += 1;
            let name = super::resolve::root_name(root);
            match open_for_reading(self.inodes.base(), name.as_bytes()).and_then(Level::open) {
                Ok(level) => count(&mut usage, &mut linked, level),
                Err(Errno::NOENT) => usage.roots -= 1,
                Err(_) => usage.unreadable += 1,
            }
        }
        Ok(usage)
    }
}

fn count(usage: &mut Usage, linked: &mut FxHashSet<Key>, root: Level) {
    let mut levels = vec![root];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.names.pop() else {
            levels.pop();
            continue;
        };
        // What vanished in the meantime is not there to be counted.
        let Ok(found) = stat_at(&level.dir, &name) else { continue };
        let allocated = found.attr.blocks.saturating_mul(512);
        if found.attr.kind != NodeKind::Dir {
            if found.attr.nlink > 1 && !linked.insert(found.identity.key) {
                continue;
            }
            usage.files += 1;
            usage.bytes = usage.bytes.saturating_add(found.attr.size);
            usage.allocated = usage.allocated.saturating_add(allocated);
            continue;
        }
        usage.dirs += 1;
        usage.allocated = usage.allocated.saturating_add(allocated);
        let deeper = if levels.len() < MAX_DEPTH {
            levels.last().map_or(Err(Errno::NOENT), |l| open_for_reading(&l.dir, &name)).and_then(Level::open)
        } else {
            Err(Errno::MFILE)
        };
        match deeper {
            Ok(next) => levels.push(next),
            Err(Errno::NOENT) => {}
            Err(_) => usage.unreadable += 1,
        }
    }
}
