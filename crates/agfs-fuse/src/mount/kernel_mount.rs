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
    /// How the session ended, when it has.
    ended: watch::Receiver<Option<Result<()>>>,
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
        let adapter = Adapter::new(vfs.clone(), tokio::runtime::Handle::current(), requests);
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
        let (end, ended) = watch::channel(None);
        std::thread::Builder::new()
            .name("agfs-session".into())
            .spawn(move || {
                let result = session.run().map_err(|e| Error::io(format!("the session with the kernel broke: {e}")));
                end.send_replace(Some(result));
            })
            .map_err(|e| local("starting the session's thread", &e))?;
        Ok(KernelMount { ended })
    }

    /// Returns when the session has ended.
    ///
    /// # Errors
    /// `Io` when it broke.
    pub async fn wait(&self) -> Result<()> {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(result) => result.clone().unwrap_or(Ok(())),
            Err(_) => Err(Error::internal("the session's thread panicked")),
        }
    }

    /// Unmounts, if that has not happened, and waits for the session to end.
    ///
    /// # Errors
    /// `Conflict` when the mount is in use, `Io`.
    pub async fn unmount(&self, at: &Path) -> Result<()> {
        if self.ended.borrow().is_none() {
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
