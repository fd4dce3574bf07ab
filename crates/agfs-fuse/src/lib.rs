//! A space as a directory of the operating system.
//!
//! Four rooms: `fuse` unpacks requests and packs replies and decides nothing; `vfs` has the semantics and knows no kernel
//! protocol; `tree` is the part of the space's tree that this mount has seen, kept true by the push stream; `content` has
//! the bytes that programs wrote and that are not committed. `shadow` is a plain file system over local directories.
//! What the server does with a change is decided in `agfs_core::apply` and nowhere here.

mod cache_policy;
mod content;
mod counters;
mod errno;
mod fuse;
mod kernel;
pub mod mount;
pub mod shadow;
mod sink;
#[cfg(test)]
mod testing;
mod tree;
mod upstream;
mod vfs;
mod world;

pub use mount::config::MountConfig;
pub use mount::status::{CacheStatus, Pending, ShadowStatus, Status};
pub use mount::{MountHandle, mount};
