//! What this mount does when the stream says that the tree changed. Called from the stream's task; nothing here waits for
//! the network, or for the kernel longer than a message takes.
//!
//! The order matters: the tree first, so that whoever asks is answered from the new state; then what the kernel has cached;
//! only when this returns is the change acknowledged, and the one who made it goes on.

use crate::content::InodeTable;
use crate::kernel::{Kernel, Known};
use crate::tree::{Touched, VersionTree};
use crate::world::StreamState;
use agfs_client::TreeSink;
use agfs_core::FileId;
use agfs_core::change::ChangeSet;
use agfs_core::space::Point;
use std::sync::Arc;

/// The mount's end of the stream.
pub struct Sink {
    /// The tree.
    pub tree: Arc<VersionTree>,
    /// The open files.
    pub inodes: Arc<InodeTable>,
    /// What the kernel knows.
    pub known: Arc<Known>,
    /// Messages to the kernel.
    pub kernel: Arc<dyn Kernel>,
    /// Whether the stream is up.
    pub stream: Arc<StreamState>,
}

impl Sink {
    fn tell_kernel(&self, touched: &[Touched]) {
        let known: Vec<&Touched> = touched.iter().filter(|t| self.known.is_known(t.id)).collect();
        for t in known.iter().filter(|t| t.new_content()) {
            self.known.clear_pages(t.id);
        }
        self.kernel.bump_epoch();
        for t in &known {
            self.kernel.invalidate_attr(t.id);
        }
        for t in known.iter().filter(|t| t.new_content() && is_file(t)) {
            self.kernel.invalidate_pages_soon(t.id);
        }
        if self.known.is_answering() {
            // An answer from before the change may reach the kernel after these messages.
            self.kernel.repeat_soon(touched.iter().map(|t| t.id).collect());
        }
    }
}

fn is_file(touched: &Touched) -> bool {
    let node = touched.after.as_ref().or(touched.before.as_ref());
    node.is_none_or(|node| node.content().is_some())
}

impl TreeSink for Sink {
    fn changes(&self, set: &ChangeSet, own: bool) {
        let touched = self.tree.apply(set);
        for t in touched.iter().filter(|t| t.after.is_none()) {
            self.inodes.orphan(t.id, t.before.clone(), set.time(), || self.known.is_known(t.id));
        }
        // What this mount did itself, its kernel knows.
        if !own && !touched.is_empty() {
            self.tell_kernel(&touched);
        }
    }

    fn reset(&self, head: Point) {
        self.tree.reset(head);
        let known: Vec<FileId> = self.known.clear_all_pages();
        self.kernel.bump_epoch();
        for id in &known {
            self.kernel.invalidate_attr(*id);
        }
        for id in &known {
            self.kernel.invalidate_pages_soon(*id);
        }
        if self.known.is_answering() {
            self.kernel.repeat_soon(known);
        }
    }

    fn connected(&self, up: bool) {
        self.stream.set(up);
        if !up {
            // Names are looked up again, and the lookups wait until the stream is back.
            self.kernel.bump_epoch();
        }
    }
}
