//! The kernel's side of a mount: the session with it, its threads, its end.

use super::point;
use crate::counters::Counters;
use crate::errno::local;
use crate::fuse::{Adapter, Options, mount_options};
use crate::kernel::KernelLink;
use crate::vfs::Vfs;
use agfs_core::{Error, Result};
use fuser::Session;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long the session may take to end after the kernel let go.
const END: Duration = Duration::from_secs(30);

/// A session with the kernel.
pub(super) struct KernelMount {
    /// Whether the session is over.
    ended: watch::Receiver<bool>,
}

impl KernelMount {
    /// Mounts and begins to serve.
    ///
    /// # Errors
    /// Those of mounting, by errno.
    pub async fn start(
        at: &Path,
        options: &Options,
        vfs: Arc<Vfs>,
        requests: Arc<Counters>,
        link: &Arc<KernelLink>,
    ) -> Result<KernelMount> {
        let (end, ended) = watch::channel(false);
        let adapter = Adapter::new(vfs.clone(), tokio::runtime::Handle::current(), requests, end);
        let (config, path) = (mount_options(options), at.to_owned());
        let made = tokio::task::spawn_blocking(move || Session::new(adapter, &path, &config)).await;
        let session = made
            .map_err(|e| Error::internal(format!("a worker failed: {e}")))?
            .map_err(|e| local(format!("mounting at {}", at.display()), &e))?;
        let device = session.as_fd().try_clone_to_owned().map_err(|e| local("the FUSE descriptor", &e))?;
        let has_epoch = link.connect(session.notifier(), device)?;
        if !has_epoch {
            tracing::info!("the kernel has no dentry epochs (Linux 6.16): names are looked up each time");
        }
        vfs.set_epoch(has_epoch);
        let background = session.spawn().map_err(|e| local("starting the session's threads", &e))?;
        // Dropped, it would unmount whatever lies at the path by then, which may be somebody else's. The adapter tells of the
        // end, and `unmount` is the only place that unmounts.
        std::mem::forget(background);
        Ok(KernelMount { ended })
    }

    /// Returns when the session has ended.
    ///
    /// # Errors
    /// `Internal` when its threads are gone without having said so.
    pub async fn wait(&self) -> Result<()> {
        let mut ended = self.ended.clone();
        let over = ended.wait_for(|over| *over).await;
        over.map(drop).map_err(|_| Error::internal("the session with the kernel broke"))
    }

    /// Unmounts, if that has not happened, and waits for the session to end.
    ///
    /// # Errors
    /// `Conflict` when the mount is in use, `Io`.
    pub async fn unmount(&self, at: &Path) -> Result<()> {
        if !*self.ended.borrow() {
            let path = at.to_owned();
            let done = tokio::task::spawn_blocking(move || point::unmount(&path)).await;
            done.map_err(|e| Error::internal(format!("a worker failed: {e}")))??;
        }
        match tokio::time::timeout(END, self.wait()).await {
            Ok(result) => result,
            Err(_) => Err(Error::io(format!("the session at {} does not end", at.display()))),
        }
    }
}
