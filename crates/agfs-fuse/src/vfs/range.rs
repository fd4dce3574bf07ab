//! Ranges of open files: fallocate, lseek, copy_file_range.

use super::Vfs;
use super::route::{as_shadow, local};
use crate::content::Edit;
use agfs_core::manifest::MAX_FILE_SIZE;
use agfs_core::{Error, ErrorKind, Result};

/// How much one call of copy_file_range copies at most, in bytes; programs call again.
const MOST: u64 = 16 << 20;
/// How much is copied at once, in bytes.
const STEP: u64 = 1 << 20;

impl Vfs {
    /// Allocates, punches or zeroes, with the modes of fallocate(2). Allocation reserves nothing: it only sets the size.
    /// `drop_ids`: the caller may not keep set-id bits.
    ///
    /// # Errors
    /// `Unsupported` for other modes, `FileTooLarge`, and those of the local disk.
    pub async fn fallocate(&self, fh: u64, offset: u64, len: u64, mode: i32, drop_ids: bool) -> Result<()> {
        if let Some(fh) = as_shadow(fh) {
            self.shadow.fallocate(fh, mode, offset, len).map_err(local)?;
            return self.drop_ids_shadow(fh, drop_ids);
        }
        const KEEP: i32 = libc::FALLOC_FL_KEEP_SIZE;
        const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | KEEP;
        const ZERO: i32 = libc::FALLOC_FL_ZERO_RANGE;
        const ZERO_KEEP: i32 = ZERO | KEEP;
        let handle = self.files.get(fh)?;
        let data = &handle.data;
        let end = offset.checked_add(len).filter(|end| *end <= MAX_FILE_SIZE).ok_or_else(|| {
            Error::new(ErrorKind::FileTooLarge, format!("{len} bytes at {offset} are beyond what a file can have"))
        })?;
        let now = self.world.up.now();
        let (zero, extend) = match mode {
            0 => (false, true),
            KEEP => (false, false),
            PUNCH | ZERO_KEEP => (true, false),
            ZERO => (true, true),
            _ => return Err(Error::unsupported(format!("fallocate with the mode {mode:#x} is not offered"))),
        };
        // Every mode counts as a change of the file.
        let first = if extend { Edit::Extend(end) } else { Edit::Touch };
        data.edit(&first, drop_ids, now).await?;
        if zero {
            data.edit(&Edit::Zero(offset..end), drop_ids, now).await?;
        }
        if handle.syncs { self.sync_data(data).await } else { Ok(()) }
    }

    /// The next data or hole at or after `offset`; `None` where lseek(2) says ENXIO.
    ///
    /// # Errors
    /// `InvalidArgument` for another `whence`, and what loading the file's extents fails with.
    pub async fn lseek(&self, fh: u64, offset: i64, whence: i32) -> Result<Option<u64>> {
        if let Some(fh) = as_shadow(fh) {
            return match self.shadow.lseek(fh, offset, whence) {
                Err(crate::shadow::Errno::NXIO) => Ok(None),
                other => other.map(Some).map_err(local),
            };
        }
        let hole = match whence {
            libc::SEEK_DATA => false,
            libc::SEEK_HOLE => true,
            _ => return Err(Error::invalid(format!("lseek from {whence} is not for the file system"))),
        };
        let Ok(offset) = u64::try_from(offset) else { return Ok(None) };
        let data = self.files.get(fh)?.data.clone();
        data.follow().await?;
        data.seek(offset, hole).await
    }

    /// Copies bytes between two open files. Returns how many; fewer than asked for at the end of the source, or because one
    /// call does not copy more than 16 MiB. `drop_ids`: the caller may not keep set-id bits.
    ///
    /// # Errors
    /// `CrossDevice` between a shadow and the tree, and what reading and writing fail with.
    pub async fn copy_file_range(&self, from: (u64, u64), to: (u64, u64), len: u64, drop_ids: bool) -> Result<u32> {
        match (as_shadow(from.0), as_shadow(to.0)) {
            (Some(a), Some(b)) => {
                let copied = self.shadow.copy_file_range(a, from.1, b, to.1, len).map_err(local)?;
                self.drop_ids_shadow(b, drop_ids)?;
                return Ok(u32::try_from(copied).unwrap_or(u32::MAX));
            }
            (None, None) => {}
            _ => return Err(Error::new(ErrorKind::CrossDevice, "a shadow directory lies between the two files")),
        }
        let (source, to_handle) = (self.files.get(from.0)?.data.clone(), self.files.get(to.0)?);
        let target = &to_handle.data;
        source.follow().await?;
        let (mut done, len) = (0, len.min(MOST));
        while done < len {
            let at = from.1.saturating_add(done);
            let bytes = source.read(at..at.saturating_add(STEP.min(len - done))).await?;
            if bytes.is_empty() {
                break;
            }
            let edit = Edit::Write { offset: to.1.saturating_add(done), data: &bytes, append: false };
            target.edit(&edit, drop_ids, self.world.up.now()).await?;
            done += bytes.len() as u64;
        }
        if to_handle.syncs {
            self.sync_data(target).await?;
        }
        Ok(u32::try_from(done).unwrap_or(u32::MAX))
    }
}
