//! What is agreed with the kernel when a mount begins: capabilities and mount options.

use fuser::{Config, InitFlags, KernelConfig, MountOption, SessionACL};

/// The largest write and read-ahead, in bytes.
const MAX_IO: u32 = 1 << 20;
/// How many background requests (read-ahead, mostly) may be under way.
const BACKGROUND: u16 = 64;

/// What is asked for where the kernel has it. Not among them: the writeback cache (a close must find everything written),
/// and locks (the kernel keeps them by itself).
const WANTED: &[InitFlags] = &[
    InitFlags::FUSE_ASYNC_READ,
    InitFlags::FUSE_BIG_WRITES,
    InitFlags::FUSE_MAX_PAGES,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_CACHE_SYMLINKS,
    InitFlags::FUSE_ATOMIC_O_TRUNC,
    // Files are opened by handle (open_by_handle_at, NFS) also after the kernel has forgotten them: it looks `.` and `..` up.
    InitFlags::FUSE_EXPORT_SUPPORT,
    // The file system takes set-id bits away itself; without this every write asks for an extended attribute first.
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
];

/// Sets the kernel's side up.
pub(super) fn negotiate(config: &mut KernelConfig) {
    for flag in WANTED {
        if config.add_capabilities(*flag).is_err() {
            tracing::debug!(?flag, "the kernel does not offer this");
        }
    }
    // Each answers an error with the nearest value that is possible.
    let _ = config.set_max_write(MAX_IO).or_else(|nearest| config.set_max_write(nearest));
    let _ = config.set_max_readahead(MAX_IO).or_else(|nearest| config.set_max_readahead(nearest));
    let _ = config.set_max_background(BACKGROUND);
    let _ = config.set_congestion_threshold(BACKGROUND * 3 / 4);
}

/// How a mount is to be made.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the space, shown as the source of the mount.
    pub space: String,
    /// Whether other users may look in.
    pub allow_other: bool,
    /// Whether the kernel refuses every change.
    pub read_only: bool,
    /// Event loops.
    pub threads: usize,
}

/// The mount options. Characters that would end an option early are replaced in the name.
pub fn mount_options(options: &Options) -> Config {
    let name: String = options.space.chars().map(|c| if matches!(c, ',' | '\\' | '\n') { '_' } else { c }).collect();
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(format!("agfs:{name}")),
        // Not by its own name: that would not reach the kernel where no helper is needed.
        MountOption::CUSTOM("subtype=agfs".into()),
        MountOption::DefaultPermissions,
        MountOption::NoDev,
        MountOption::NoSuid,
        if options.read_only { MountOption::RO } else { MountOption::RW },
    ];
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(options.threads.max(1));
    config.clone_fd = options.threads > 1;
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_smuggle_options_in() {
        let options = Options { space: "a,allow_other".into(), allow_other: false, read_only: true, threads: 2 };
        let config = mount_options(&options);
        assert!(config.mount_options.contains(&MountOption::FSName("agfs:a_allow_other".into())));
        assert!(config.mount_options.contains(&MountOption::RO));
        assert_eq!((config.acl, config.n_threads, config.clone_fd), (SessionACL::Owner, Some(2), true));
    }
}
