//! What a mount asks for, what the server answers, and who is told of changes.

use agfs_core::change::ChangeSet;
use agfs_core::node::Node;
use agfs_core::op::Author;
use agfs_core::space::{Consistency, Mount, Point, Space};
use std::time::Duration;

/// What keeps a mount's tree. Called from one task, in order.
pub trait TreeSink: Send + Sync + 'static {
    /// The tree changed. When this returns, the acknowledgement is sent: from then on every lookup, open and stat must be
    /// answered from `set.to` or later. `own` says that an apply of this session made the change and still waits for it.
    /// Must not block on the network, nor on kernel calls that can take directory or page locks.
    fn changes(&self, set: &ChangeSet, own: bool);

    /// The tree has another state now (a rollback, or the stream could not go on where it was): drop everything cached.
    /// The same rules as for [`TreeSink::changes`] hold.
    fn reset(&self, head: Point);

    /// The stream is lost; or it is back, after a possible reset and after the changes that were missed. While it is lost the
    /// cache may not be trusted.
    fn connected(&self, up: bool);

    /// The mount has the space to itself from here on, under this epoch: nobody else changes it or looks at it before
    /// [`TreeSink::recalled`]. Also told after the stream was lost and is back, before `connected`, if it still has it.
    fn granted(&self, epoch: u64) {
        let _ = epoch;
    }

    /// Others want to see what this mount has made: it is to be sent, and then [`super::MountSession::drained`] called. Must
    /// not wait for that.
    fn recalled(&self, recall: Recall) {
        let _ = recall;
    }
}

/// What others want of a mount that has the space to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recall {
    /// The grant's.
    pub epoch: u64,
    /// Whether the space is to be given back, too.
    pub release: bool,
    /// To be given back, but for a release.
    pub token: u64,
}

/// What a mount is to be.
#[derive(Clone, Debug)]
pub struct AttachOptions {
    /// The space, by name or id.
    pub space: String,
    /// A reference, for a read-only view of the past; empty for the present.
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
    /// Agent, task and step of what is done through the mount; its `mount` is filled in by the session.
    pub author: Author,
    /// This host's name.
    pub host: String,
    /// How it sees others' changes.
    pub consistency: Consistency,
    /// Whether it can change anything.
    pub read_only: bool,
    /// Whether the sink understands [`TreeSink::granted`] and [`TreeSink::recalled`].
    pub lease: bool,
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
    /// How long either side may be silent before the other takes it for dead.
    pub lease: Duration,
    /// The epoch under which a mount that is back still has the space to itself, if it does.
    pub epoch: Option<u64>,
}
