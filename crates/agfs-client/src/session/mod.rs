//! A mount's session.

use crate::chunking::EncodedChunk;
use crate::connection::Connection;
use crate::tree::Durable;
use agfs_core::change::ChangeSet;
use agfs_core::node::Node;
use agfs_core::op::{Author, TimedOp};
use agfs_core::space::{Consistency, Mount, Point, Space};
use agfs_core::{Error, FileId, Result, Seq};
use std::sync::Arc;
use std::time::Duration;

/// What keeps a mount's tree; told of changes in order, from one task.
pub trait TreeSink: Send + Sync + 'static {
    /// The tree changed. When this returns, the acknowledgement is sent: from then on every lookup, open and stat must be
    /// answered from `set.to` or later. `own`: made by an apply of this session that still waits. Must not block on the network or on kernel calls
    /// that can take directory or page locks.
    fn changes(&self, set: &ChangeSet, own: bool);

    /// The tree has another state now (a rollback, or the stream could not go on where it was): drop everything cached.
    /// The same rules as for `changes` hold.
    fn reset(&self, head: Point);

    /// The stream is lost, or is back (after a possible reset). While it is lost the cache may not be trusted.
    fn connected(&self, up: bool);
}

/// What a mount is to be.
#[derive(Clone, Debug)]
pub struct AttachOptions {
    /// The space, by name or id.
    pub space: String,
    /// A reference for a read-only view of the past; empty for the present.
    pub at: String,
    /// The directory to show as the root, absolute; empty for the root of the space.
    pub sub_path: Vec<u8>,
    /// Where it is mounted on this host.
    pub mount_path: String,
    /// The tenant, empty when there is none.
    pub tenant: String,
    /// The user, empty when unknown.
    pub user: String,
    /// The conversation, empty when there is none.
    pub conversation: String,
    /// Agent, task and step of what is done through the mount (its `mount` is filled in by the session).
    pub author: Author,
    /// This host's name.
    pub host: String,
    /// How it sees others' changes.
    pub consistency: Consistency,
    /// Whether it can change anything.
    pub read_only: bool,
}

/// The server's answer to a new mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The mount as registered, with its id.
    pub mount: Mount,
    /// The space.
    pub space: Space,
    /// The state that the mount has from now on.
    pub head: Point,
    /// The root of the mount, in that state.
    pub root: Node,
    /// How long a silent side is taken for alive.
    pub lease: Duration,
}

/// A live mount's session with the server.
pub struct MountSession {
    conn: Connection,
}

impl MountSession {
    /// Registers a mount.
    pub async fn attach(
        conn: Connection,
        options: AttachOptions,
        sink: Arc<dyn TreeSink>,
    ) -> Result<(Arc<MountSession>, Welcome)> {
        let _ = (conn, options, sink);
        Err(Error::unsupported(""))
    }
    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.conn
    }
    /// The mount as registered.
    pub fn mount(&self) -> Mount {
        unreachable!()
    }
    /// The last change that the sink has been told of.
    pub fn seen(&self) -> Seq {
        Seq(0)
    }
    /// Waits for `seen >= seq`.
    pub async fn wait_seen(&self, seq: Seq) -> Result<()> {
        let _ = seq;
        Ok(())
    }
    /// Waits for the stream to be up.
    pub async fn wait_connected(&self) -> Result<()> {
        Ok(())
    }
    /// Applies.
    pub async fn apply(&self, ops: Vec<TimedOp>, chunks: Vec<EncodedChunk>, durable: Durable) -> Result<Seq> {
        let _ = (ops, chunks, durable);
        Ok(Seq(0))
    }
    /// Syncs.
    pub async fn sync(&self, object: bool) -> Result<Seq> {
        let _ = object;
        Ok(Seq(0))
    }
    /// The next id.
    pub async fn next_file_id(&self) -> Result<FileId> {
        Ok(FileId(1))
    }
    /// Bytes not sent.
    pub fn set_pending(&self, bytes: u64) {
        let _ = bytes;
    }
    /// Ends.
    pub async fn detach(&self) {}
}
