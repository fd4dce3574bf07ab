//! What every room of a mount shares: the tree, the server, the kernel's state, the place for scratch files, the counters.

use crate::content::ScratchDir;
use crate::kernel::{Kernel, Known};
use crate::tree::VersionTree;
use crate::upstream::{Durable, Upstream};
use agfs_client::EncodedChunk;
use agfs_core::op::{Op, TimedOp};
use agfs_core::space::Durability;
use agfs_core::{Error, FileId, Result, Seq};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The shared parts of one mount.
pub struct World {
    /// What has been seen of the space's tree.
    pub tree: Arc<VersionTree>,
    /// The server.
    pub up: Arc<dyn Upstream>,
    /// What the kernel knows.
    pub known: Arc<Known>,
    /// Messages to the kernel.
    pub kernel: Arc<dyn Kernel>,
    /// Where scratch files go.
    pub scratch: ScratchDir,
    /// Whether the push stream is up.
    pub stream: Arc<StreamState>,
    /// When a closed file is safe.
    pub durability: Durability,
    /// Whether every change is refused.
    pub read_only: bool,
    /// Bytes written that are not committed.
    pub pending: AtomicU64,
    /// The last change made through this mount, and the last of them that is known to be durable.
    pub applied: AtomicU64,
    /// As `applied`.
    pub durable: AtomicU64,
}

/// Whether the push stream is up.
#[derive(Debug)]
pub struct StreamState(watch::Sender<bool>);

impl Default for StreamState {
    fn default() -> Self {
        StreamState(watch::Sender::new(true))
    }
}

impl StreamState {
    /// Notes whether it is up.
    pub fn set(&self, up: bool) {
        self.0.send_replace(up);
    }

    /// Whether it is up.
    pub fn is_up(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the stream has been down for `time` without a break.
    pub async fn down_for(&self, time: Duration) {
        let mut state = self.0.subscribe();
        loop {
            // The sender lives as long as this value, so waiting cannot fail.
            if state.wait_for(|up| !*up).await.is_err()
                || tokio::time::timeout(time, state.wait_for(|up| *up)).await.is_err()
            {
                return;
            }
        }
    }
}

impl World {
    /// Returns when what is in memory may be trusted: at once while the stream is up.
    ///
    /// # Errors
    /// `Unavailable` when it does not come back in time.
    pub async fn current(&self) -> Result<()> {
        if self.stream.is_up() { Ok(()) } else { self.up.wait_connected().await }
    }

    /// Fails with `ReadOnly` on a read-only mount.
    pub fn writable(&self) -> Result<()> {
        if self.read_only { Err(Error::read_only("this mount is read-only")) } else { Ok(()) }
    }

    /// How safe the commit of a close must be.
    pub const fn on_close(&self) -> Durable {
        match self.durability {
            Durability::Auto => Durable::No,
            Durability::Close => Durable::Disk,
            Durability::Object => Durable::Object,
        }
    }

    /// How safe the commit of an fsync must be.
    pub const fn on_fsync(&self) -> Durable {
        match self.durability {
            Durability::Auto | Durability::Close => Durable::Disk,
            Durability::Object => Durable::Object,
        }
    }

    /// Bytes were written that are not committed.
    pub fn add_pending(&self, bytes: u64) {
        let before = self.pending.fetch_add(bytes, Ordering::Relaxed);
        self.up.set_pending(before.saturating_add(bytes));
    }

    /// Such bytes were committed, or do not matter any more.
    pub fn sub_pending(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let less = |before: u64| Some(before.saturating_sub(bytes));
        let before = self.pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).unwrap_or_default();
        self.up.set_pending(before.saturating_sub(bytes));
    }

    /// Applies one operation, made now. Returns when the tree shows it.
    ///
    /// # Errors
    /// What the server says, or `ReadOnly`.
    pub async fn apply(&self, op: Op) -> Result<Seq> {
        self.writable()?;
        let op = TimedOp { time: self.up.now(), op };
        // A new name is as safe as a closed file.
        self.apply_with(vec![op], Vec::new(), self.on_close()).await
    }

    /// Applies operations and notes how far the log is durable.
    ///
    /// # Errors
    /// What the server says.
    pub async fn apply_with(&self, ops: Vec<TimedOp>, chunks: Vec<EncodedChunk>, durable: Durable) -> Result<Seq> {
        let safe = !matches!(durable, Durable::No);
        let seq = self.up.apply(ops, chunks, durable).await?;
        self.applied.fetch_max(seq.0, Ordering::AcqRel);
        if safe {
            self.durable.fetch_max(seq.0, Ordering::AcqRel);
        }
        Ok(seq)
    }

    /// Makes everything that was applied through this mount durable, unless it is.
    ///
    /// # Errors
    /// What the server says.
    pub async fn sync(&self) -> Result<()> {
        let applied = self.applied.load(Ordering::Acquire);
        if self.durable.load(Ordering::Acquire) < applied {
            self.up.sync(matches!(self.durability, Durability::Object)).await?;
            self.durable.fetch_max(applied, Ordering::AcqRel);
        }
        Ok(())
    }

    /// A node's path in the space as far as it is in memory, for messages.
    pub fn describe(&self, id: FileId) -> String {
        let (mut names, mut at) = (Vec::new(), id);
        while let Some(node) = self.tree.node(at) {
            let Some(link) = node.link() else { break };
            names.push(link.name.display());
            at = link.parent;
            if names.len() > agfs_core::path::MAX_PATH {
                break;
            }
        }
        if names.is_empty() {
            return id.to_string();
        }
        names.reverse();
        format!("/{} ({id})", names.join("/"))
    }
}
