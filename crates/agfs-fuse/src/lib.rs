//! A space as a directory of the operating system.
//!
//! Four rooms: `fuse` unpacks requests and packs replies and decides nothing; `vfs` has the semantics and knows no kernel
//! protocol; `tree` is the part of the space's tree that this mount has seen, kept true by the push stream; `content` has
//! the bytes that programs wrote and that are not committed. `shadow` is a plain file system over local directories.
//! What the server does with a change is decided in `agfs_core::apply` and nowhere here.

pub mod mount;

pub use mount::config::MountConfig;
pub use mount::status::{CacheStatus, Pending, ShadowStatus, Status};
pub use mount::{MountHandle, mount};
