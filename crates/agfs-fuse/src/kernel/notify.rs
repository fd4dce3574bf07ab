//! Messages to the kernel over the session's descriptor.
//!
//! One thread sends what may wait; the rest is sent where it is asked for. Deciding what to send is the sink's work.

use super::Kernel;
use agfs_core::FileId;
use fuser::{INodeNo, Notifier};
use parking_lot::Mutex;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// The notify code of the epoch bump (FUSE_NOTIFY_INC_EPOCH, Linux 6.16).
const INC_EPOCH: i32 = 8;
/// How long answers that were on their way when a message was sent may still take to arrive.
const SETTLE: Duration = Duration::from_millis(10);

enum Job {
    Attr(FileId),
    Pages(FileId),
    Again(Vec<FileId>),
    End,
}

struct Live {
    notifier: Notifier,
    device: OwnedFd,
    jobs: Mutex<Sender<Job>>,
}

/// The way to the kernel; silent until the session exists, and after it ended.
pub struct KernelLink {
    live: OnceLock<Live>,
    root: OnceLock<FileId>,
    has_epoch: AtomicBool,
}

impl Default for KernelLink {
    fn default() -> Self {
        KernelLink { live: OnceLock::new(), root: OnceLock::new(), has_epoch: AtomicBool::new(false) }
    }
}

/// Writes the epoch message: a bare header of 16 bytes, the code where an error would be.
fn write_epoch(device: &OwnedFd) -> rustix::io::Result<()> {
    let mut message = [0u8; 16];
    let (len, rest) = message.split_at_mut(4);
    len.copy_from_slice(&16u32.to_ne_bytes());
    if let Some(code) = rest.get_mut(..4) {
        code.copy_from_slice(&INC_EPOCH.to_ne_bytes());
    }
    rustix::io::write(device, &message).map(drop)
}

impl KernelLink {
    /// The node that is the root of the mount, which the kernel calls 1.
    pub fn set_root(&self, root: FileId) {
        self.root.get_or_init(|| root);
    }

    /// Connects to a session. Returns whether the kernel has dentry epochs.
    ///
    /// # Errors
    /// `Io` when the notifier's thread cannot be started.
    pub fn connect(self: &std::sync::Arc<Self>, notifier: Notifier, device: OwnedFd) -> agfs_core::Result<bool> {
        let epoch = write_epoch(&device).is_ok();
        let (jobs, queue) = channel();
        let live = Live { notifier, device, jobs: Mutex::new(jobs) };
        if self.live.set(live).is_err() {
            return Err(agfs_core::Error::internal("a kernel link is connected once"));
        }
        self.has_epoch.store(epoch, Ordering::Release);
        let link = self.clone();
        std::thread::Builder::new()
            .name("agfs-notify".into())
            .spawn(move || {
                for job in queue {
                    match job {
                        Job::Attr(id) => link.invalidate_attr(id),
                        Job::Pages(id) => link.send_pages(id),
                        Job::Again(ids) => {
                            std::thread::sleep(SETTLE);
                            link.bump_epoch();
                            ids.into_iter().for_each(|id| link.invalidate_attr(id));
                        }
                        Job::End => break,
                    }
                }
            })
            .map_err(|e| agfs_core::Error::io(format!("starting the notifier's thread: {e}")))?;
        Ok(epoch)
    }

    /// Ends the notifier's thread; nothing is sent after it.
    pub fn close(&self) {
        self.queue(Job::End);
    }

    /// Whether the kernel has dentry epochs.
    pub fn has_epoch(&self) -> bool {
        self.has_epoch.load(Ordering::Acquire)
    }

    fn nodeid(&self, id: FileId) -> INodeNo {
        if self.root.get() == Some(&id) { INodeNo::ROOT } else { INodeNo(id.0) }
    }

    fn queue(&self, job: Job) {
        if let Some(live) = self.live.get() {
            // The thread is gone only when the mount is.
            let _ = live.jobs.lock().send(job);
        }
    }

    fn send_pages(&self, id: FileId) {
        if let Some(live) = self.live.get() {
            quiet(live.notifier.inval_inode(self.nodeid(id), 0, 0));
        }
    }
}

/// A kernel that is gone needs no messages.
fn quiet(sent: std::io::Result<()>) {
    if let Err(error) = sent {
        tracing::debug!(%error, "an invalidation was not taken");
    }
}

impl Kernel for KernelLink {
    fn bump_epoch(&self) {
        if let Some(live) = self.live.get()
            && self.has_epoch()
        {
            quiet(write_epoch(&live.device).map_err(Into::into));
        }
    }

    fn invalidate_attr(&self, id: FileId) {
        if let Some(live) = self.live.get() {
            // A negative offset leaves the pages alone.
            quiet(live.notifier.inval_inode(self.nodeid(id), -1, 0));
        }
    }

    fn invalidate_attr_soon(&self, id: FileId) {
        self.queue(Job::Attr(id));
    }

    fn invalidate_pages_soon(&self, id: FileId) {
        self.queue(Job::Pages(id));
    }

    fn repeat_soon(&self, ids: Vec<FileId>) {
        self.queue(Job::Again(ids));
    }
}
