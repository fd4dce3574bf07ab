//! Group commit of an fsync: callers that wait at the same time share one.
//!
//! Works for anything that can be made durable; it knows neither files nor engines. Blocks threads, so async callers
//! come through a blocking thread.

use agfs_core::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// Lets the first caller run the fsync (the leader) and everyone who comes while it runs wait for the next one.
///
/// A caller is answered by an fsync that began after it called, never by one that was already under way: that one may
/// have missed what the caller wrote. Each caller gets the result of exactly the fsync that covers it, since a later
/// success says nothing about pages whose write failed before.
#[derive(Debug, Default)]
pub struct GroupSync {
    state: Mutex<State>,
    finished: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whether a leader is running its fsync.
    running: bool,
    /// The fsync that has not begun; whoever calls now is covered by it.
    next: Arc<Round>,
}

/// One fsync and, once it is over, how it went.
#[derive(Debug, Default)]
struct Round(Mutex<Option<Result<()>>>);

impl GroupSync {
    /// A group with nobody in it.
    pub fn new() -> Self {
        GroupSync::default()
    }

    /// Returns when an `fsync` that began after this call has ended, with its result: this caller's own or another's.
    /// Every caller's `fsync` must make the same thing durable. It runs without a lock held.
    pub fn sync(&self, fsync: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        let mine = Arc::clone(&state.next);
        loop {
            if let Some(result) = mine.0.lock().clone() {
                return result;
            }
            if !state.running {
                break;
            }
            self.finished.wait(&mut state);
        }
        // Nobody runs and this round is not over, so it is the one that comes next: lead it.
        state.running = true;
        state.next = Arc::default();
        drop(state);

        let mut lead = Lead { group: self, round: &mine, result: None };
        let result = fsync();
        lead.result = Some(result.clone());
        drop(lead);
        result
    }
}

/// Ends the leader's round, also when its fsync panics: no follower may wait for ever.
struct Lead<'a> {
    group: &'a GroupSync,
    round: &'a Round,
    result: Option<Result<()>>,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let result = self.result.take().unwrap_or_else(|| Err(Error::internal("the sync of a group panicked")));
        let mut state = self.group.state.lock();
        *self.round.0.lock() = Some(result);
        state.running = false;
        self.group.finished.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::sync::{Barrier, mpsc};
    use std::thread;

    #[test]
    fn callers_that_come_during_a_sync_share_the_next_one() {
        let (group, runs) = (GroupSync::new(), AtomicU64::new(0));
        let (started_tx, started) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let (group, runs) = (&group, &runs);
            scope.spawn(move || {
                group.sync(|| {
                    started_tx.send(()).unwrap();
                    released.recv().unwrap();
                    runs.fetch_add(1, SeqCst);
                    Ok(())
                })
            });
            started.recv().unwrap();
            let joined = Arc::new(AtomicU64::new(0));
            for _ in 0..20 {
                let joined = Arc::clone(&joined);
                scope.spawn(move || {
                    joined.fetch_add(1, SeqCst);
                    group.sync(|| {
                        runs.fetch_add(1, SeqCst);
                        Ok(())
                    })
                });
            }
            // A caller has joined once it holds the next round; the leader, the state and this thread hold it too.
            while Arc::strong_count(&group.state.lock().next) < 21 {
                thread::yield_now();
            }
            assert_eq!((joined.load(SeqCst), runs.load(SeqCst)), (20, 0));
            release.send(()).unwrap();
        });
        assert_eq!(runs.load(SeqCst), 2);
    }

    #[test]
    fn a_caller_is_covered_by_a_sync_that_began_after_its_write() {
        let (group, written, durable, runs) =
            (GroupSync::new(), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let barrier = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    for _ in 0..200 {
                        let mine = written.fetch_add(1, SeqCst) + 1;
                        group
                            .sync(|| {
                                let seen = written.load(SeqCst);
                                thread::yield_now();
                                durable.fetch_max(seen, SeqCst);
                                runs.fetch_add(1, SeqCst);
                                Ok(())
                            })
                            .unwrap();
                        assert!(durable.load(SeqCst) >= mine);
                    }
                });
            }
        });
        assert!(runs.load(SeqCst) <= 1600);
    }

    #[test]
    fn a_failure_reaches_those_it_covers_and_nobody_after() {
        let group = GroupSync::new();
        let failed = group.sync(|| Err(Error::io("the disk is gone")));
        assert_eq!(failed.map_err(|e| e.kind()), Err(agfs_core::ErrorKind::Io));
        assert_eq!(group.sync(|| Ok(())), Ok(()));
    }

    #[test]
    fn a_panic_in_the_leader_leaves_the_group_usable() {
        let group = GroupSync::new();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| group.sync(|| panic!("fsync"))));
        assert!(caught.is_err());
        assert_eq!(group.sync(|| Ok(())), Ok(()));
    }
}
