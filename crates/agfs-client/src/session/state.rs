//! What the stream's task and the callers of a session share: how far the sink has been told, whether the stream is up,
//! whether the session has ended.

use super::options::{AttachOptions, TreeSink, Welcome};
use crate::connection::Connection;
use agfs_core::space::{Mount, Point};
use agfs_core::{Error, ErrorKind, OpId, Result, Seq};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Where a session stands.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// What the sink has been told of.
    pub head: Point,
    /// Whether the stream is up and has caught up.
    pub up: bool,
    /// Why the session is over, once it is.
    pub ended: Option<Error>,
}

/// What a mount has sent of what it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Drained {
    pub epoch: u64,
    pub token: u64,
    pub released: bool,
}

/// Shared between the stream's task and callers. No lock in it is held across an await or a call of the sink.
pub(super) struct Shared {
    pub conn: Connection,
    pub options: AttachOptions,
    pub sink: Arc<dyn TreeSink>,
    pub mount: Mutex<Mount>,
    pub state: watch::Sender<State>,
    /// Bytes that the mount has not sent.
    pub pending: Arc<AtomicU64>,
    /// The last answer to recalls; a later one says all that an earlier one said.
    pub drained: watch::Sender<Option<Drained>>,
    /// Operations of this session whose callers still wait.
    pub in_flight: Mutex<FxHashSet<OpId>>,
    /// When the stream was lost, while it is.
    pub lost: Mutex<Option<Instant>>,
    pub stop: CancellationToken,
}

impl Shared {
    pub fn new(
        conn: Connection,
        options: AttachOptions,
        sink: Arc<dyn TreeSink>,
        welcome: &Welcome,
        (pending, drained): (Arc<AtomicU64>, watch::Sender<Option<Drained>>),
    ) -> Self {
        Shared {
            conn,
            options,
            sink,
            mount: Mutex::new(welcome.mount.clone()),
            state: watch::Sender::new(State { head: welcome.head, up: false, ended: None }),
            pending,
            drained,
            in_flight: Mutex::new(FxHashSet::default()),
            lost: Mutex::new(None),
            stop: CancellationToken::new(),
        }
    }

    /// Fails with the session's error once it has ended.
    pub fn alive(&self) -> Result<()> {
        match &self.state.borrow().ended {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Ends the session for good; the first reason stays.
    pub fn end(&self, error: Error) {
        self.state.send_modify(|state| {
            state.up = false;
            state.ended.get_or_insert(error);
        });
    }

    /// Returns the session's error when it ends.
    pub async fn ended(&self) -> Error {
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|s| s.ended.is_some()).await.ok().and_then(|s| s.ended.clone());
        // The sender lives in `self`, so waiting cannot fail.
        ended.unwrap_or_else(|| Error::internal("the session is gone"))
    }

    /// Waits, for the connection's patience, until the state is as wanted; `None` when that time is over.
    async fn wait(&self, wanted: impl FnMut(&State) -> bool) -> Result<Option<()>> {
        self.wait_for(self.conn.io_timeout(), wanted).await
    }

    /// As `wait`, for this long.
    async fn wait_for(&self, patience: Duration, mut wanted: impl FnMut(&State) -> bool) -> Result<Option<()>> {
        let mut state = self.state.subscribe();
        let waited = state.wait_for(|s| s.ended.is_some() || wanted(s));
        match tokio::time::timeout(patience, waited).await {
            Err(_) => Ok(None),
            Ok(Ok(state)) => match &state.ended {
                Some(error) => Err(error.clone()),
                None => Ok(Some(())),
            },
            Ok(Err(_)) => Err(Error::internal("the session is gone")),
        }
    }

    pub async fn wait_seen(&self, seq: Seq) -> Result<()> {
        self.wait(|s| s.head.seq >= seq).await?.ok_or_else(|| {
            let (seen, patience) = (self.state.borrow().head.seq, self.conn.io_timeout().as_secs());
            let message = format!(
                "the server at {} has applied {seq}, but its stream has brought this mount only to {seen} within {patience} s",
                self.conn.server()
            );
            Error::new(ErrorKind::TimedOut, message)
        })
    }

    /// Waits until the stream is up. The connection's patience counts from the loss of the stream and not from the call:
    /// callers that come one after another during a long outage do not each wait for the whole of it.
    pub async fn wait_connected(&self) -> Result<()> {
        let gone = self.lost.lock().map_or(Duration::ZERO, |lost| lost.elapsed());
        self.wait_for(self.conn.io_timeout().saturating_sub(gone), |s| s.up).await?.ok_or_else(|| {
            Error::unavailable(format!(
                "this mount has had no connection to the server at {} for {} s: start it again with `agfs server run`",
                self.conn.server(),
                self.conn.io_timeout().as_secs()
            ))
        })
    }
}
