//! The gRPC entrance: thin adapters that check a message, call an operation, and answer. No rule of the file system
//! lives here.

mod attach;
mod history;
mod spaces;
mod tree;

use crate::config::About;
use crate::engine::{Engine, SpaceCell};
use crate::lease::Excluding;
use agfs_core::error::{Error, Result};
use agfs_core::id::{MountId, Seq};
use agfs_core::op::Author;
use agfs_proto::v1::history_server::HistoryServer;
use agfs_proto::v1::spaces_server::SpacesServer;
use agfs_proto::v1::tree_server::TreeServer;
use agfs_proto::{FromWire, status, v1};
use std::sync::Arc;
use tonic::Status;

/// The largest message taken, in bytes.
const MAX_MESSAGE: usize = 64 << 20;

/// What every service works with.
#[derive(Clone)]
pub struct Service {
    engine: Arc<Engine>,
    about: Arc<About>,
}

impl Service {
    /// The services over an engine.
    pub fn new(engine: Arc<Engine>, about: Arc<About>) -> Self {
        Service { engine, about }
    }

    /// All gRPC routes.
    pub fn routes(self) -> tonic::service::Routes {
        let spaces = SpacesServer::new(self.clone()).max_decoding_message_size(MAX_MESSAGE);
        let tree =
            TreeServer::new(self.clone()).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE);
        let history =
            HistoryServer::new(self).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE);
        tonic::service::Routes::new(spaces).add_service(tree).add_service(history)
    }

    fn space(&self, name: &str) -> Result<Arc<SpaceCell>, Status> {
        self.engine.space(name).map_err(fail)
    }

    /// A space to be looked at, with everything that a mount which has it to itself has made until now. `by`: the mount that
    /// asks, if it is one.
    async fn space_now(&self, name: &str, by: MountId) -> Result<Arc<SpaceCell>, Status> {
        let cell = self.space(name)?;
        cell.lease.drain(by).await;
        Ok(cell)
    }

    /// A space to be changed, which no mount but `by` has to itself while the second value lives.
    async fn space_alone(&self, name: &str, by: MountId) -> Result<(Arc<SpaceCell>, Excluding), Status> {
        let cell = self.space(name)?;
        let excluding = cell.lease.exclude(by).await;
        Ok((cell, excluding))
    }

    /// Runs what may read much or write much away from the threads that serve connections.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Engine>) -> Result<T> + Send + 'static,
    ) -> Result<T, Status> {
        let engine = Arc::clone(&self.engine);
        tokio::task::spawn_blocking(move || work(&engine))
            .await
            .map_err(|e| fail(Error::internal(format!("the task of this call failed: {e}"))))?
            .map_err(fail)
    }

    /// After a change: waits until the other mounts have taken note of it.
    async fn settle(&self, cell: &SpaceCell, seq: Seq, author: &Author) {
        let relaxed = cell
            .hub
            .mounts()
            .iter()
            .any(|l| l.mount.id == author.mount && l.mount.consistency == agfs_core::space::Consistency::Relaxed);
        if !relaxed {
            cell.hub.wait_acks(seq, author.mount).await;
        }
    }
}

/// The metadata key under which a mount says which one it is.
const MOUNT_KEY: &str = "agfs-mount";
/// Who calls that is no mount.
const NO_MOUNT: MountId = MountId(0);

/// The mount that makes a call; [`NO_MOUNT`] for everybody else.
fn caller<T>(request: &tonic::Request<T>) -> MountId {
    let said = request.metadata().get(MOUNT_KEY).and_then(|value| value.to_str().ok());
    said.and_then(|id| id.parse().ok()).map_or(NO_MOUNT, MountId)
}

fn fail(error: Error) -> Status {
    if error.kind() == agfs_core::ErrorKind::Internal {
        tracing::error!(%error, "internal error");
    }
    status::to_status(&error)
}

/// An author from a message; absent means unknown.
fn author(wire: Option<v1::Author>) -> Result<Author, Status> {
    wire.map(Author::from_wire).transpose().map(Option::unwrap_or_default).map_err(fail)
}

/// A checked core value from a message.
fn checked<W, C: FromWire<W>>(wire: W) -> Result<C, Status> {
    C::from_wire(wire).map_err(fail)
}

/// The author of a call that came through no mount must not claim one.
fn outside(author: Author) -> Author {
    Author { mount: MountId(0), ..author }
}
