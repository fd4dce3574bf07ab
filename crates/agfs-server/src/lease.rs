//! Who has a space to itself: a mount that may make changes before the server has them, as long as nobody else looks at the
//! space or changes it. Everybody else asks here first.
//!
//! Knows mounts, epochs and time, not what a change is. Locks: `offer` is called with the space's write lock held, so that a
//! grant is queued after every change before it; nothing here is held while waiting.

use crate::hub::{Hub, LEASE, Listener, Message};
use agfs_core::error::{Error, Result};
use agfs_core::id::MountId;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long nobody else may have done anything before the space is given to a mount again.
const QUIET: Duration = Duration::from_secs(1);

/// The lease of one space.
#[derive(Debug)]
pub struct Lease {
    state: Mutex<State>,
    /// Counts what happened, for those who wait.
    moved: watch::Sender<u64>,
    /// [`LEASE`] and [`QUIET`].
    patience: Duration,
    quiet: Duration,
}

#[derive(Debug, Default)]
struct State {
    holder: Option<Holder>,
    /// Calls of others that are under way and must not meet a holder.
    others: usize,
    /// Before this, no mount gets the space.
    quiet: Option<Instant>,
}

#[derive(Debug)]
struct Holder {
    listener: Arc<Listener>,
    epoch: u64,
    /// Whether it was asked to give the space back.
    recalled: bool,
    /// How often it was asked to send what it has, and how many of these it has answered.
    asked: u64,
    answered: u64,
    /// When it is taken for dead, once its stream has broken.
    dies: Option<Instant>,
}

/// As long as it lives, no mount has the space to itself but the one that asked.
#[derive(Debug)]
pub struct Excluding {
    lease: Arc<Lease>,
    quiet: Duration,
}

impl Excluding {
    /// Ends it for a call after which a mount may have the space at once.
    pub fn end_at_once(mut self) {
        self.quiet = Duration::ZERO;
    }
}

impl Drop for Excluding {
    fn drop(&mut self) {
        let mut state = self.lease.state.lock();
        state.others = state.others.saturating_sub(1);
        state.quiet = state.quiet.max(Some(Instant::now() + self.quiet));
    }
}

impl Default for Lease {
    fn default() -> Self {
        Lease { state: Mutex::default(), moved: watch::Sender::new(0), patience: LEASE, quiet: QUIET }
    }
}

impl Lease {
    fn moved(&self) {
        self.moved.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Gives the space to the only mount there is, if nobody else has done anything for a while. `epoch` is asked for a
    /// number that was never given. Call with the space's write lock held.
    ///
    /// # Errors
    /// What `epoch` fails with.
    pub fn offer(&self, hub: &Hub, epoch: impl FnOnce() -> Result<u64>) -> Result<()> {
        let mounts = hub.mounts();
        let [only] = mounts.as_slice() else { return Ok(()) };
        let mut state = self.state.lock();
        let busy = state.holder.is_some() || state.others > 0 || state.quiet.is_some_and(|at| Instant::now() < at);
        if busy || !only.takes_lease() {
            return Ok(());
        }
        let epoch = epoch()?;
        if only.tell(Message::Grant { epoch }) {
            let listener = only.clone();
            state.holder = Some(Holder { listener, epoch, recalled: false, asked: 0, answered: 0, dies: None });
        }
        Ok(())
    }

    /// Whether the mount `by` may change the space under `epoch`.
    ///
    /// # Errors
    /// `Conflict` when it was fenced.
    pub fn check(&self, by: MountId, epoch: u64) -> Result<()> {
        match &self.state.lock().holder {
            Some(holder) if holder.listener.mount.id == by && holder.epoch == epoch => Ok(()),
            _ => Err(Error::conflict(format!(
                "the mount {by} does not have the space to itself any more (epoch {epoch})"
            ))),
        }
    }

    /// The mount that has the space, if one has.
    pub fn holder(&self) -> Option<MountId> {
        self.state.lock().holder.as_ref().map(|holder| holder.listener.mount.id)
    }

    /// Returns when nobody but `by` has the space to itself, which stays so as long as the result lives. Waits for a holder to
    /// send what it has; one that does not answer within its lease is fenced.
    pub async fn exclude(self: &Arc<Self>, by: MountId) -> Excluding {
        self.state.lock().others += 1;
        let excluding = Excluding { lease: self.clone(), quiet: self.quiet };
        self.wait(by, |holder| {
            if !std::mem::replace(&mut holder.recalled, true) {
                holder.listener.tell(Message::Recall { epoch: holder.epoch, release: true, token: 0 });
            }
            false
        })
        .await;
        excluding
    }

    /// Returns when a holder other than `by` has sent everything that it had when this was called, or is gone.
    pub async fn drain(&self, by: MountId) {
        let mut mine = None;
        self.wait(by, move |holder| {
            let (epoch, token) = *mine.get_or_insert_with(|| {
                holder.asked += 1;
                let ask = Message::Recall { epoch: holder.epoch, release: false, token: holder.asked };
                holder.listener.tell(ask);
                (holder.epoch, holder.asked)
            });
            // Another holder has begun since: what this one had is there.
            holder.epoch != epoch || holder.answered >= token
        })
        .await;
    }

    /// Waits until there is no holder other than `by`, or `enough` says so of it; fences it when that takes a lease.
    async fn wait(&self, by: MountId, mut enough: impl FnMut(&mut Holder) -> bool) {
        let mut moved = self.moved.subscribe();
        let mut patience: Option<(u64, Instant)> = None;
        loop {
            moved.borrow_and_update();
            let deadline = {
                let mut state = self.state.lock();
                let Some(holder) = state.holder.as_mut().filter(|h| h.listener.mount.id != by) else { return };
                if enough(holder) {
                    return;
                }
                let began = match patience {
                    Some((epoch, at)) if epoch == holder.epoch => at,
                    _ => Instant::now(),
                };
                patience = Some((holder.epoch, began));
                holder.dies.unwrap_or(began + self.patience)
            };
            // The sender lives as long as this value, so waiting cannot fail.
            if tokio::time::timeout_at(deadline, moved.changed()).await.is_err() {
                self.fence(by);
            }
        }
    }

    /// Takes the space from whoever has it.
    fn fence(&self, by: MountId) {
        let fenced = self.state.lock().holder.take_if(|holder| holder.listener.mount.id != by);
        if let Some(holder) = fenced {
            let mount = &holder.listener.mount;
            tracing::warn!(mount = %mount.id, path = %mount.mount_path, epoch = holder.epoch, "the mount that has the space to itself does not answer; it is fenced");
            holder.listener.cut_off();
        }
        self.moved();
    }

    /// The holder has sent what it had when it was asked (`token`), or everything and gives the space back (`released`).
    pub fn drained(&self, by: MountId, epoch: u64, token: u64, released: bool) {
        let mut state = self.state.lock();
        if let Some(holder) = state.holder.as_mut().filter(|h| h.listener.mount.id == by && h.epoch == epoch) {
            holder.answered = holder.answered.max(token);
            if released {
                state.holder = None;
            }
        }
        drop(state);
        self.moved();
    }

    /// The stream of a mount is over. After a clean end nothing is kept for it; otherwise it may come back within its lease.
    pub fn lost(&self, listener: &Arc<Listener>, clean: bool) {
        let mut state = self.state.lock();
        if let Some(holder) = state.holder.as_mut().filter(|h| Arc::ptr_eq(&h.listener, listener)) {
            if clean {
                state.holder = None;
            } else {
                holder.dies = Some(Instant::now() + self.patience);
            }
        }
        drop(state);
        self.moved();
    }

    /// A mount is back with a new stream. Returns the epoch under which it still has the space, if it does.
    pub fn back(&self, listener: &Arc<Listener>) -> Option<u64> {
        let mut state = self.state.lock();
        let holder = state.holder.as_mut().filter(|h| h.listener.mount.id == listener.mount.id)?;
        holder.listener = listener.clone();
        holder.dies = None;
        if holder.asked > holder.answered {
            // It may have been lost with the stream before.
            listener.tell(Message::Recall { epoch: holder.epoch, release: false, token: holder.asked });
        }
        if holder.recalled {
            listener.tell(Message::Recall { epoch: holder.epoch, release: true, token: 0 });
        }
        Some(holder.epoch)
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
