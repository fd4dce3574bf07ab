//! Who listens to a space: mounts that keep its tree in memory, and watchers of its log.
//!
//! Knows sequence numbers and acknowledgements, not what a change means. A message is queued while the space's write
//! lock is held, so every listener sees them in order; waiting for acknowledgements happens after it is let go.

use agfs_core::change::ChangeSet;
use agfs_core::id::{MountId, OpId, Seq};
use agfs_core::space::{Consistency, Mount, Point};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long a mount may be silent before it is taken for dead.
pub const LEASE: Duration = Duration::from_secs(10);
/// A mount with this many messages unread is cut off; it comes back and starts afresh.
const MAX_QUEUE: usize = 65_536;

/// What a mount is told.
#[derive(Clone, Debug)]
pub enum Message {
    /// The tree changed.
    Changes(Arc<ChangeSet>),
    /// The tree has another state now.
    Reset {
        /// The new head.
        head: Point,
        /// The call that did it.
        op_id: OpId,
    },
    /// The mount has the space to itself from here on.
    Grant {
        /// What its changes carry.
        epoch: u64,
    },
    /// Others want to see what the mount has.
    Recall {
        /// Of the grant.
        epoch: u64,
        /// Whether it is to give the space back, too.
        release: bool,
        /// To be sent back when everything is here; not for a release.
        token: u64,
    },
}

/// The listeners of one space.
pub struct Hub {
    mounts: Mutex<Vec<Arc<Listener>>>,
    head: watch::Sender<Point>,
}

/// A mount that listens.
#[derive(Debug)]
pub struct Listener {
    /// Which mount.
    pub mount: Mount,
    /// Whether it can have a space to itself.
    lease: bool,
    queue: mpsc::Sender<Message>,
    cut: watch::Sender<bool>,
    acked: watch::Sender<Seq>,
    pending: AtomicU64,
}

impl Listener {
    /// Whether the mount can have the space to itself: it is able to, and can change it.
    pub fn takes_lease(&self) -> bool {
        self.lease && !self.mount.read_only
    }

    /// Queues a message for this mount alone. Returns whether it could be.
    pub fn tell(&self, message: Message) -> bool {
        let told = self.queue.try_send(message).is_ok();
        if !told {
            self.cut_off();
        }
        told
    }

    /// What the mount has taken note of.
    pub fn acked(&self) -> Seq {
        *self.acked.borrow()
    }

    /// Bytes that the mount has not sent yet, as it last said.
    pub fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    /// Takes an acknowledgement.
    pub fn ack(&self, seen: Seq, pending: u64) {
        self.pending.store(pending, Ordering::Relaxed);
        self.acked.send_if_modified(|acked| {
            let newer = seen > *acked;
            *acked = seen.max(*acked);
            newer
        });
    }

    /// Ends the mount's stream: it must start afresh before it shows anything again.
    pub fn cut_off(&self) {
        self.cut.send_replace(true);
    }

    /// Returns when the mount is cut off.
    pub async fn cut(&self) {
        let mut cut = self.cut.subscribe();
        // The sender lives as long as this value, so waiting cannot fail.
        let _ = cut.wait_for(|cut| *cut).await;
    }

    /// Waits until the mount has taken note of `seq`, is gone, or its lease ran out. Returns whether it took note or is gone.
    async fn caught_up(&self, seq: Seq) -> bool {
        let mut acked = self.acked.subscribe();
        tokio::select! {
            _ = self.queue.closed() => true,
            () = self.cut() => true,
            done = tokio::time::timeout(LEASE, acked.wait_for(|a| *a >= seq)) => done.is_ok(),
        }
    }
}

impl Hub {
    /// A hub of a space whose head is `head`.
    pub fn new(head: Point) -> Self {
        Hub { mounts: Mutex::default(), head: watch::Sender::new(head) }
    }

    /// Adds a mount that has seen the present head; `lease`: it can have the space to itself. Call with the space's write lock held, so that it misses nothing.
    pub fn attach(&self, mount: Mount, lease: bool) -> (Arc<Listener>, mpsc::Receiver<Message>) {
        let (queue, messages) = mpsc::channel(MAX_QUEUE);
        let acked = watch::Sender::new(mount.seen);
        let cut = watch::Sender::new(false);
        let listener = Arc::new(Listener { mount, lease, queue, cut, acked, pending: AtomicU64::new(0) });
        let mut mounts = self.mounts.lock();
        // A mount that comes back takes its own place.
        mounts.retain(|l| {
            let other = l.mount.id != listener.mount.id;
            if !other {
                l.cut_off();
            }
            other
        });
        mounts.push(listener.clone());
        (listener, messages)
    }

    /// Takes a listener away; nobody waits for it any more.
    pub fn detach(&self, listener: &Arc<Listener>) {
        listener.cut_off();
        self.mounts.lock().retain(|l| !Arc::ptr_eq(l, listener));
    }

    /// Queues a message for every mount and moves the head that watchers see. Call with the space's write lock held.
    pub fn publish(&self, message: &Message, head: Point) {
        self.mounts.lock().retain(|l| match l.queue.try_send(message.clone()) {
            Ok(()) => true,
            Err(_) => {
                tracing::warn!(mount = %l.mount.id, path = %l.mount.mount_path, "the mount does not take its messages; it is cut off");
                l.cut_off();
                false
            }
        });
        self.head.send_replace(head);
    }

    /// The head as it moves.
    pub fn watch(&self) -> watch::Receiver<Point> {
        self.head.subscribe()
    }

    /// Waits until every live mount that asks for close-to-open consistency, other than `except`, has taken note of `seq`.
    /// One that stays silent for a lease is cut off: it must start afresh before it shows anything again.
    pub async fn wait_acks(&self, seq: Seq, except: MountId) {
        let waiting: Vec<Arc<Listener>> = self
            .mounts
            .lock()
            .iter()
            .filter(|l| l.mount.id != except && l.mount.consistency == Consistency::Cto && l.acked() < seq)
            .cloned()
            .collect();
        futures::future::join_all(waiting.into_iter().map(async |listener| {
            if !listener.caught_up(seq).await {
                tracing::warn!(mount = %listener.mount.id, path = %listener.mount.mount_path, %seq, "the mount did not answer within its lease; it is cut off");
                self.detach(&listener);
            }
        }))
        .await;
    }

    /// The mounts that listen now.
    pub fn mounts(&self) -> Vec<Arc<Listener>> {
        self.mounts.lock().clone()
    }

    /// Cuts every mount off: the space is gone.
    pub fn clear(&self) {
        self.mounts.lock().drain(..).for_each(|l| l.cut_off());
    }
}
