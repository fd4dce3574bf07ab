//! Listings. A listing changes nothing but, when asked for entries, the count of lookups.

use super::ShadowFs;
use super::data::sync;
use super::inode::Key;
use super::meta::{kind_of, stat_at, stat_fd};
use super::types::{DirEntry, Errno, Place, Result};
use agfs_core::node::NodeKind;
use parking_lot::Mutex;
use rustix::fs::{FileType, Mode, OFlags, RawDir, SeekFrom};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Bytes of directory entries asked for at once.
const BUFFER: usize = 32 * 1024;

/// What the local directory says of an entry.
struct Item {
    /// The local inode number.
    ino: u64,
    /// `None` where the local file system does not tell without a look at the inode.
    kind: Option<NodeKind>,
    name: Box<[u8]>,
}

/// An open directory: its entries as they were when it was last read from the start.
pub(super) struct OpenDir {
    fd: OwnedFd,
    place: Place,
    dev: u64,
    snapshot: Mutex<Option<Arc<[Item]>>>,
}

impl OpenDir {
    /// The entries: read anew when the reader starts at the beginning.
    fn items(&self, offset: u64) -> Result<Arc<[Item]>> {
        let mut snapshot = self.snapshot.lock();
        if offset > 0
            && let Some(items) = &*snapshot
        {
            return Ok(items.clone());
        }
        rustix::fs::seek(&self.fd, SeekFrom::Start(0))?;
        let mut items = Vec::new();
        read_entries(&self.fd, |item, _| {
            items.push(item);
            true
        })?;
        let items: Arc<[Item]> = items.into();
        *snapshot = Some(items.clone());
        Ok(items)
    }
}

/// Reads entries from where the descriptor stands; `each` also gets the local cookie after the entry, and stops with `false`.
fn read_entries(fd: &OwnedFd, mut each: impl FnMut(Item, u64) -> bool) -> Result<()> {
    let mut buffer = vec![MaybeUninit::<u8>::uninit(); BUFFER];
    let mut entries = RawDir::new(fd, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            // The directory was removed: it has no entries.
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        let kind = match entry.file_type() {
            FileType::Unknown => None,
            known => kind_of(known),
        };
        let item = Item { ino: entry.ino(), kind, name: entry.file_name().to_bytes().into() };
        if !each(item, entry.next_entry_cookie()) {
            return Ok(());
        }
    }
    Ok(())
}

impl ShadowFs {
    fn open_dir(&self, place: Place) -> Result<OpenDir> {
        let path = self.inodes.fd(place.ino())?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&path, c".", flags, Mode::empty())?;
        let dev = stat_fd(&fd)?.identity.key.dev;
        Ok(OpenDir { fd, place, dev, snapshot: Mutex::new(None) })
    }

    /// Opens a directory for listing. Returns the handle.
    pub fn opendir(&self, place: Place) -> Result<u64> {
        Ok(self.dirs.insert(self.open_dir(place)?))
    }

    /// Closes a directory handle.
    pub fn releasedir(&self, fh: u64) -> Result<()> {
        self.dirs.remove(fh).map(drop)
    }

    /// Brings a directory's entries to the disk.
    pub fn fsyncdir(&self, fh: u64, datasync: bool) -> Result<()> {
        sync(&self.dirs.get(fh)?.fd, datasync)
    }

    /// Lists from `offset`: 0 for the start, else the `next` of an entry of this handle. The handle keeps a snapshot, so
    /// offsets stay good while entries come and go; a start at 0 takes a new one. `sink` gets each entry and says whether
    /// it had room: after `false` the listing stops, and that entry counts as not given.
    pub fn readdir(&self, fh: u64, offset: u64, sink: &mut dyn FnMut(DirEntry<'_>) -> bool) -> Result<()> {
        self.read_handle(fh, offset, false, sink)
    }

    /// As [`ShadowFs::readdir`], and looks each entry up: one lookup for each that `sink` took. Names that vanished since
    /// the snapshot are left out.
    pub fn readdirplus(&self, fh: u64, offset: u64, sink: &mut dyn FnMut(DirEntry<'_>) -> bool) -> Result<()> {
        self.read_handle(fh, offset, true, sink)
    }

    fn read_handle(&self, fh: u64, offset: u64, plus: bool, sink: &mut dyn FnMut(DirEntry<'_>) -> bool) -> Result<()> {
        let dir = self.dirs.get(fh)?;
        let items = dir.items(offset)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        for (item, next) in items.iter().skip(start).zip(offset.saturating_add(1)..) {
            if !self.give(&dir, item, next, plus, sink) {
                break;
            }
        }
        Ok(())
    }

    /// Lists without a handle, for a kernel that was told to open none: as [`ShadowFs::readdir`] or, if `plus`,
    /// [`ShadowFs::readdirplus`], but the offsets are the local file system's own.
    pub fn list(
        &self,
        place: Place,
        offset: u64,
        plus: bool,
        sink: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let dir = self.open_dir(place)?;
        if offset > 0 {
            rustix::fs::seek(&dir.fd, SeekFrom::Start(offset))?;
        }
        read_entries(&dir.fd, |item, next| self.give(&dir, &item, next, plus, sink))
    }

    /// Gives one entry to `sink`; whether it had room.
    fn give(
        &self,
        dir: &OpenDir,
        item: &Item,
        next: u64,
        plus: bool,
        sink: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> bool {
        let name = &*item.name;
        let own = dir.place.ino();
        if name == b"." || name == b".." {
            let up = || self.inodes.change(|table| table.parent(own)).unwrap_or(own);
            let ino = if name == b"." { own } else { up() };
            return sink(DirEntry { ino, next, kind: NodeKind::Dir, name, entry: None });
        }
        let looked = if plus || item.kind.is_none() { Some(stat_at(&dir.fd, name)) } else { None };
        match looked {
            Some(Err(Errno::NOENT)) => true,
            Some(Ok(found)) if plus => {
                let entry = self.inodes.entry(dir.place, name, &found);
                let kind = found.attr.kind;
                let taken = sink(DirEntry { ino: entry.ino, next, kind, name, entry: Some(entry) });
                if !taken {
                    self.forget(entry.ino, 1);
                }
                taken
            }
            looked => {
                let seen = looked.and_then(Result::ok).map(|found| found.attr.kind);
                let Some(kind) = item.kind.or(seen) else { return true };
                let ino = self.inodes.change(|table| table.predict(Key { dev: dir.dev, ino: item.ino }));
                sink(DirEntry { ino, next, kind, name, entry: None })
            }
        }
    }
}
