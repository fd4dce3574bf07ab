//! Tests of the shadow room on a real local disk, with no mount.

mod differential;
mod many;
mod names;
mod open;

use super::*;
use agfs_core::id::FileId;
use tempfile::TempDir;

/// A shadow file system with one root, in a directory of its own.
pub(super) struct Bench {
    pub(super) fs: ShadowFs,
    pub(super) dir: TempDir,
}

/// The root of every test.
pub(super) const ROOT: Place = Place::Root(FileId(7));

impl Bench {
    pub(super) fn new(path_fds: usize) -> Bench {
        let dir = TempDir::new().unwrap();
        let fs = ShadowFs::with_path_fds(dir.path().join("base"), path_fds).unwrap();
        fs.ensure_root(FileId(7)).unwrap();
        Bench { fs, dir }
    }

    /// The root's local directory, to look behind the room's back.
    pub(super) fn local(&self) -> std::path::PathBuf {
        self.dir.path().join("base").join("0000000000000007")
    }

    /// A new file with this content, its lookup kept.
    pub(super) fn file(&self, parent: Place, name: &str, content: &[u8]) -> u64 {
        let (entry, fh) = self.fs.create(parent, name.as_bytes(), 0o644, libc::O_RDWR | libc::O_EXCL, me()).unwrap();
        assert_eq!(self.fs.write(fh, 0, content), Ok(content.len()));
        self.fs.release(fh).unwrap();
        entry.ino
    }

    pub(super) fn content(&self, ino: u64) -> Vec<u8> {
        let fh = self.fs.open(ino, libc::O_RDONLY).unwrap();
        let data = self.fs.read(fh, 0, 1 << 20).unwrap();
        self.fs.release(fh).unwrap();
        data
    }

    /// Names in a directory as a listing gives them, sorted, without the dots.
    pub(super) fn names(&self, place: Place) -> Vec<String> {
        let fh = self.fs.opendir(place).unwrap();
        let mut names = Vec::new();
        self.fs
            .readdir(fh, 0, &mut |entry| {
                names.push(String::from_utf8_lossy(entry.name).into_owned());
                true
            })
            .unwrap();
        self.fs.releasedir(fh).unwrap();
        names.retain(|n| n != "." && n != "..");
        names.sort();
        names
    }
}

/// The owner that needs no privilege.
pub(super) fn me() -> Owner {
    Owner { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
}

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
