//! A mount's session with the server: registered once, told of every change in order, applying operations and returning
//! when the mount's own tree shows them.
//!
//! The stream with its reconnecting is in `stream`, file ids in `ids`. What a change means for a tree is the sink's business.

mod ids;
mod options;
mod state;
mod stream;
#[cfg(test)]
mod tests;

pub use options::{AttachOptions, Recall, TreeSink, Welcome};

use crate::chunking::EncodedChunk;
use crate::connection::Connection;
use crate::retry::Failure;
use crate::tree::{Applied, ApplyAs, Durable, Held};
use agfs_core::op::{Author, TimedOp};
use agfs_core::space::Mount;
use agfs_core::{Error, FileId, OpId, Result, Seq};
use ids::IdPool;
use parking_lot::Mutex;
use state::{Drained, Shared};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;

/// How long a clean end may take.
const DETACH: Duration = Duration::from_secs(3);

/// A live mount's session with the server. Ends when it is dropped, cleanly by [`MountSession::detach`].
pub struct MountSession {
    shared: Arc<Shared>,
    ids: Arc<IdPool>,
    task: Mutex<Option<JoinHandle<()>>>,
    _stop: DropGuard,
}

impl std::fmt::Debug for MountSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MountSession").field("mount", &self.mount().id).field("seen", &self.seen()).finish()
    }
}

impl MountSession {
    /// Registers a mount and begins to follow its changes. The sink is told `connected(true)` and perhaps changes before this
    /// returns; a node it was told of is newer than the welcome's root when its version is. Fails as the server says (`NotFound`
    /// for an unknown space), or `Unavailable` when none answers within the connection's patience.
    pub async fn attach(
        conn: Connection,
        options: AttachOptions,
        sink: Arc<dyn TreeSink>,
    ) -> Result<(Arc<MountSession>, Welcome)> {
        let pending = Arc::new(AtomicU64::new(0));
        let drained = watch::Sender::new(None);
        let (link, welcome) = stream::first(&conn, &options, &pending, &drained).await?;
        let space = welcome.space.id.to_string();
        conn.call_as(welcome.mount.id);
        let shared = Arc::new(Shared::new(conn.clone(), options, sink, &welcome, (pending, drained)));
        let task = tokio::spawn(stream::run(shared.clone(), link));
        let session = MountSession {
            ids: IdPool::new(conn, space),
            task: Mutex::new(Some(task)),
            _stop: shared.stop.clone().drop_guard(),
            shared,
        };
        Ok((Arc::new(session), welcome))
    }

    /// The connection that it uses.
    pub fn connection(&self) -> &Connection {
        &self.shared.conn
    }

    /// The mount as the server has it registered, with what it has seen by now.
    pub fn mount(&self) -> Mount {
        let seen = self.seen();
        Mount { seen, ..self.shared.mount.lock().clone() }
    }

    /// The last change that the sink has been told of.
    pub fn seen(&self) -> Seq {
        self.shared.state.borrow().head.seq
    }

    /// Returns when the sink has been told of the change `seq`. Fails with `TimedOut` after the connection's patience, and with
    /// the session's error when it has ended.
    pub async fn wait_seen(&self, seq: Seq) -> Result<()> {
        self.shared.wait_seen(seq).await
    }

    /// Returns when the stream is up, at once when it is. Fails with `Unavailable` after the connection's patience, and with the
    /// session's error when it has ended.
    pub async fn wait_connected(&self) -> Result<()> {
        self.shared.wait_connected().await
    }

    /// Applies operations together or not at all, with the chunks that they name and the server may lack, and returns the last
    /// change made when the sink has been told of it. A refusal is returned when the sink has been told of everything that the
    /// server had when it refused.
    pub async fn apply(&self, ops: Vec<TimedOp>, chunks: Vec<EncodedChunk>, durable: Durable) -> Result<Seq> {
        let shared = &self.shared;
        shared.alive()?;
        shared.wait_connected().await?;
        let flight = InFlight::begin(shared, shared.conn.next_op_id());
        let (space, author) = self.author();
        let applying = shared.conn.apply_as(
            ApplyAs { op_id: flight.op_id, space: &space, author: &author, durable, held: None },
            &ops,
            chunks,
        );
        let outcome = tokio::select! {
            outcome = applying => outcome,
            ended = shared.ended() => return Err(ended),
        };
        self.shown(outcome).await
    }

    /// As [`MountSession::apply`], for a mount that has the space to itself: under an operation id that it may have written
    /// down, and with the change that the first follows on. Fails with `Conflict`, too, when the mount was fenced.
    pub async fn apply_held(
        &self,
        op_id: OpId,
        ops: &[TimedOp],
        chunks: Vec<EncodedChunk>,
        durable: Durable,
        held: Held,
    ) -> Result<Seq> {
        let shared = &self.shared;
        shared.alive()?;
        shared.wait_connected().await?;
        let _flight = InFlight::begin(shared, op_id);
        let (space, author) = self.author();
        let applying = shared.conn.apply_as(
            ApplyAs { op_id, space: &space, author: &author, durable, held: Some(held) },
            ops,
            chunks,
        );
        let outcome = tokio::select! {
            outcome = applying => outcome,
            ended = shared.ended() => return Err(ended),
        };
        self.shown(outcome).await
    }

    /// The space and the author of what this mount does.
    fn author(&self) -> (String, Author) {
        let mount = self.shared.mount.lock();
        (mount.space.to_string(), Author { mount: mount.id, ..mount.author.clone() })
    }

    /// Waits until the sink has been told of what came out of an apply.
    async fn shown(&self, outcome: std::result::Result<Applied, Failure>) -> Result<Seq> {
        let shared = &self.shared;
        match outcome {
            Ok(applied) => shared.wait_seen(applied.to).await.map(|()| applied.to),
            Err(failure) => {
                if let Some(seq) = failure.seq {
                    // The refusal stands whether or not the stream can show the reason in time.
                    let _ = shared.wait_seen(seq).await;
                }
                Err(failure.error)
            }
        }
    }

    /// Answers a recall: everything made until it came is sent, or (`released`) everything, and nothing more comes under this
    /// epoch.
    pub fn drained(&self, recall: Recall, released: bool) {
        self.shared.drained.send_modify(|last| {
            let before = last.filter(|d| d.epoch == recall.epoch);
            *last = Some(Drained {
                epoch: recall.epoch,
                token: before.map_or(0, |d| d.token).max(recall.token),
                released: before.is_some_and(|d| d.released) || released,
            });
        });
    }

    /// Returns when everything applied before is on the server's disk, or with `object` in the object store.
    pub async fn sync(&self, object: bool) -> Result<Seq> {
        self.shared.alive()?;
        let space = self.shared.mount.lock().space.to_string();
        tokio::select! {
            done = self.shared.conn.sync(&space, object) => done,
            ended = self.shared.ended() => Err(ended),
        }
    }

    /// An id for a new node, for this mount alone; from a stock that is filled in the background.
    pub async fn next_file_id(&self) -> Result<FileId> {
        self.shared.alive()?;
        self.ids.next().await
    }

    /// Says how many bytes this mount has not sent; the server is told with the next sign of life.
    pub fn set_pending(&self, bytes: u64) {
        self.shared.pending.store(bytes, Ordering::Relaxed);
    }

    /// Ends the session: the server forgets the mount at once. Every later call fails with `Refused`.
    pub async fn detach(&self) {
        self.shared.end(Error::refused("this mount is detached"));
        self.shared.stop.cancel();
        let task = self.task.lock().take();
        if let Some(task) = task
            && tokio::time::timeout(DETACH, task).await.is_err()
        {
            tracing::warn!("the server did not confirm the end of the mount");
        }
    }
}

/// An operation id that is this session's own as long as this lives.
struct InFlight<'a> {
    shared: &'a Shared,
    op_id: OpId,
}

impl<'a> InFlight<'a> {
    fn begin(shared: &'a Shared, op_id: OpId) -> Self {
        shared.in_flight.lock().insert(op_id);
        InFlight { shared, op_id }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.shared.in_flight.lock().remove(&self.op_id);
    }
}
