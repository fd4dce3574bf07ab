//! A mount from beginning to end: checks, session, kernel mount, drain, unmount.

pub mod config;
pub mod status;

use agfs_core::Result;
use agfs_core::space::Space;
use config::MountConfig;
use status::{Pending, Status};
use std::time::Duration;

/// A live mount. Dropping it does not unmount.
pub struct MountHandle {
    space: Space,
}

/// Mounts a space and returns when programs can use it.
///
/// # Errors
/// `NotFound` (mountpoint or space), `NotADirectory`, `AlreadyExists` (already a mount of ours, or another client holds the
/// cache directory for this path), `Refused` (no `/dev/fuse`), `Unavailable` (no server).
pub async fn mount(config: MountConfig) -> Result<MountHandle> {
    unreachable!("{}", config.space)
}

impl MountHandle {
    /// The space that is mounted.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Returns when the kernel no longer has the mount, whoever took it away.
    pub async fn wait_unmounted(&self) -> Result<()> {
        Ok(())
    }

    /// Commits everything that was written and makes it durable on the server. What could not be sent within `timeout` is
    /// returned, and stays for another attempt.
    ///
    /// # Errors
    /// [`Pending`]: what is left, and why.
    pub async fn drain(&self, _timeout: Duration) -> std::result::Result<(), Pending> {
        Ok(())
    }

    /// Takes the mount away (after [`MountHandle::drain`]): detaches it from the kernel, then ends the session.
    ///
    /// # Errors
    /// `Conflict` when programs still have files open below it, `Io`.
    pub async fn unmount(&self) -> Result<()> {
        Ok(())
    }

    /// The state of the mount now. Cheap; makes no call to the server.
    pub fn status(&self) -> Status {
        unreachable!()
    }
}
