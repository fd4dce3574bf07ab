//! How much room there is for contents and metadata on this server. Asks the local disk; knows no space and no quota.

use std::path::Path;

/// Bytes of the disk that contents and metadata are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// All of them; 0 when contents are not on a local disk.
    pub total: u64,
    /// Those that are free for the server.
    pub free: u64,
}

/// The room at `store_url` (only a `file:` store has a limit that can be asked for) and in `data_dir`. Where they are on
/// different disks, the one with less room counts: each write needs both.
pub fn of(store_url: &str, data_dir: &Path) -> Capacity {
    let Some(dir) = store_url.strip_prefix("file://") else { return Capacity::default() };
    let disks = [Path::new(dir), data_dir].map(disk);
    disks.into_iter().flatten().min_by_key(|c| c.free).unwrap_or_default()
}

fn disk(dir: &Path) -> Option<Capacity> {
    let s = rustix::fs::statvfs(dir).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(s.f_frsize);
    Some(Capacity { total: bytes(s.f_blocks), free: bytes(s.f_bavail) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_store_has_the_room_of_its_disk_and_others_say_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let here = of(&format!("file://{}", dir.path().display()), dir.path());
        assert!(here.free > 0 && here.free <= here.total);
        assert_eq!(of("s3://bucket/x", dir.path()), Capacity::default());
        assert_eq!(of("memory:///", dir.path()), Capacity::default());
        assert_eq!(of("file:///no/such/dir", Path::new("/no/such/dir")), Capacity::default());
    }
}
