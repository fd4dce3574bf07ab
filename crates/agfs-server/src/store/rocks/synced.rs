//! The mark of how far the log was synced: tells a torn tail, which may be dropped, from damage, which may not.
//!
//! The engine can stop its replay at the first record that does not match its checksum, and so bring back a prefix of
//! the history whatever a power loss made of the tail: a short record, pages of zeros, pages that came in another
//! order. But it would go back just as silently past a damaged record in the middle. The mark is the number of the
//! last write known to be on disk; a replay that ends before it has lost what was promised.
//!
//! The mark is written after the sync it reports and is not synced itself. A kill leaves it exact; after a power loss
//! it may be older than the last sync, which makes the check weaker but never wrong.

use agfs_core::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const NAME: &str = "AGFS-SYNCED";
const CONTEXT: &str = "agfs 2026 synced mark of the metadata log";

/// The file with the mark: eight bytes of the number, little-endian, and eight of a checksum.
pub(super) struct SyncedMark(File);

impl SyncedMark {
    /// Opens or makes the file of `dir`. A new file gets its bytes at once, so that no later mark needs room on the disk.
    pub(super) fn open(dir: &Path) -> Result<Self> {
        let path = dir.join(NAME);
        let open = || {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
            if file.metadata()?.len() < 16 {
                file.write_all_at(&encode(0), 0)?;
            }
            Ok(file)
        };
        open().map(SyncedMark).map_err(|e| super::error::from_file(&path, &e))
    }

    /// The mark, or zero when there is none: an empty file, or one that a power loss left half written.
    pub(super) fn load(&self) -> Result<u64> {
        let mut bytes = [0; 16];
        match self.0.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
            Err(e) => return Err(Error::io(format!("cannot read {NAME}: {e}"))),
        }
        let (number, _) = split(bytes);
        Ok(if encode(number) == bytes { number } else { 0 })
    }

    /// Writes the mark. The caller has synced every write up to `number`.
    pub(super) fn store(&self, number: u64) -> Result<()> {
        self.0.write_all_at(&encode(number), 0).map_err(|e| Error::io(format!("cannot write {NAME}: {e}")))
    }
}

fn split(bytes: [u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(bytes);
    (both as u64, (both >> 64) as u64)
}

fn encode(number: u64) -> [u8; 16] {
    let (mut out, mut sum) = ([0; 16], [0; 8]);
    blake3::Hasher::new_derive_key(CONTEXT).update(&number.to_le_bytes()).finalize_xof().fill(&mut sum);
    out[..8].copy_from_slice(&number.to_le_bytes());
    out[8..].copy_from_slice(&sum);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_wrote_and_takes_damage_for_no_mark() {
        let dir = tempfile::TempDir::new().unwrap();
        let mark = SyncedMark::open(dir.path()).unwrap();
        assert_eq!(mark.load(), Ok(0));
        for number in [1, u64::MAX, 77] {
            mark.store(number).unwrap();
            assert_eq!(SyncedMark::open(dir.path()).unwrap().load(), Ok(number));
        }
        mark.0.write_all_at(&[1], 3).unwrap();
        assert_eq!(mark.load(), Ok(0));
        mark.0.set_len(5).unwrap();
        assert_eq!(mark.load(), Ok(0));
    }
}
