//! Mounts, as typed.

use super::Attribution;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// `agfs mount`
#[derive(Args, Clone, Debug)]
pub struct Mount {
    /// SPACE[@REF][:/sub]: the space, a past state of it (read-only), a directory of it
    #[arg(value_name = "SPACE[@REF][:/sub]")]
    pub what: OsString,
    /// An existing directory
    pub dir: PathBuf,
    /// Go to the background when the mount is ready
    #[arg(long, short = 'd')]
    pub daemon: bool,
    /// How the mount behaves
    #[command(flatten)]
    pub options: MountOptions,
}

/// How a mount behaves.
#[derive(Args, Clone, Debug, Default)]
pub struct MountOptions {
    /// Nothing can be changed through this mount
    #[arg(long)]
    pub read_only: bool,
    /// When others' closed files are seen: cto (at the next open) or relaxed (a moment later) [default: cto]
    #[arg(long, value_name = "MODE")]
    pub consistency: Option<String>,
    /// When a closed file is safe: auto, close or object [default: auto]
    #[arg(long, value_name = "MODE")]
    pub durability: Option<String>,
    /// Where contents are cached [env: AGFS_CACHE_DIR]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// How much is cached on disk, such as 10G [default: 10G]
    #[arg(long, value_name = "SIZE")]
    pub cache_size: Option<String>,
    /// How much is cached in memory, such as 512M [default: 256M]
    #[arg(long, value_name = "SIZE")]
    pub memory_limit: Option<String>,
    /// A shadow rule in place of the space's, once for each; `none` for no shadow directories
    #[arg(long, value_name = "PATTERN")]
    pub shadow: Vec<String>,
    /// Let other users in
    #[arg(long)]
    pub allow_other: bool,
    /// The tenant
    #[arg(long, value_name = "TENANT", default_value = "", hide_default_value = true)]
    pub tenant: String,
    /// The user
    #[arg(long, value_name = "USER", default_value = "", hide_default_value = true)]
    pub user: String,
    /// The conversation
    #[arg(long, value_name = "CONVERSATION", default_value = "", hide_default_value = true)]
    pub conversation: String,
    /// Who
    #[command(flatten)]
    pub by: Attribution,
}

/// `agfs umount`
#[derive(Args, Debug)]
pub struct Umount {
    /// Where it is mounted
    pub dir: PathBuf,
    /// Give up after this many seconds and say what is left
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
}

/// `agfs sync`
#[derive(Args, Debug)]
pub struct Sync {
    /// A directory in the mount; where you are when left out
    pub dir: Option<PathBuf>,
    /// Wait until the contents are in the object store too
    #[arg(long)]
    pub object: bool,
}

/// A mount by a directory in it.
#[derive(Args, Debug)]
pub struct OneMount {
    /// A directory in the mount; where you are when left out
    pub dir: Option<PathBuf>,
}

/// `agfs shadow …`
#[derive(Debug, Subcommand)]
pub enum Shadow {
    /// List the shadow directories of a mount and what they hold
    List(OneMount),
}
