//! What the kernel has cached of this mount, and how it is told that something is not so any more.
//!
//! Three messages, by what they may wait for: the epoch bump and the attribute invalidation take no directory or page lock
//! and may be sent from the stream's task before it acknowledges; page invalidations may wait for a page that waits for us,
//! so one thread of their own sends them. None is ever sent from a request or with a lock held.

mod known;
mod notify;
mod threads;

pub use known::Known;
pub use notify::KernelLink;

use agfs_core::FileId;

/// Messages to the kernel.
pub trait Kernel: Send + Sync + 'static {
    /// Every cached name, also of what does not exist, is looked up again when it is next used.
    fn bump_epoch(&self);
    /// The attributes of a node are asked for again when they are next used.
    fn invalidate_attr(&self, id: FileId);
    /// As `invalidate_attr`, from another thread: for what a request has changed without the kernel knowing.
    fn invalidate_attr_soon(&self, id: FileId);
    /// The cached content of a node is dropped soon, from another thread.
    fn invalidate_pages_soon(&self, id: FileId);
    /// `bump_epoch` and `invalidate_attr` again in a moment: answers were on their way when they were sent.
    fn repeat_soon(&self, ids: Vec<FileId>);
}
