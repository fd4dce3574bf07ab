//! The stream of a mount: changes down, acknowledgements up.
//!
//! When the stream ends, nobody waits for the mount any more: a client whose stream ended trusts nothing it has cached
//! until it is attached again. Silence for a lease ends it too.

use super::{Service, fail};
use crate::engine::SpaceCell;
use crate::hub::{LEASE, Listener, Message};
use crate::model::paths;
use crate::model::view::View;
use agfs_core::error::{Error, Result};
use agfs_core::id::{MountId, Seq};
use agfs_core::node::Node;
use agfs_core::path;
use agfs_core::space::{Mount, Point};
use agfs_proto::v1::attach_down::Message as Down;
use agfs_proto::v1::attach_up::Message as Up;
use agfs_proto::{FromWire, ToWire, v1};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Status, Streaming};

/// How often a sign of life is sent when there is nothing else to say.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// How a stream ends that the client has ended in good order.
const CLEAN: &str = "the client ended";

type DownStream = Pin<Box<dyn Stream<Item = Result<v1::AttachDown, Status>> + Send>>;

/// What a mount asked for, checked.
struct Wanted {
    cell: Arc<SpaceCell>,
    mount: Mount,
    root: Node,
    /// The past state that it shows, if it is not of the present.
    past: Option<Point>,
    seen: Option<Point>,
    /// Whether it can have the space to itself.
    lease: bool,
}

impl Service {
    pub(super) async fn attach_mount(&self, mut up: Streaming<v1::AttachUp>) -> Result<DownStream, Status> {
        let first = tokio::time::timeout(LEASE, up.next()).await;
        let first = first.map_err(|_| fail(Error::invalid("the stream said nothing")))?.transpose()?;
        let Some(v1::AttachUp { message: Some(Up::Hello(hello)) }) = first else {
            return Err(fail(Error::invalid("the first message of an attach stream must be `hello`")));
        };
        let wanted = self.check_hello(hello).map_err(fail)?;
        let alone = wanted.cell.lease.clone().exclude(wanted.mount.id).await;
        let (listener, messages, welcome) = self.register(wanted.cell.clone(), wanted).map_err(fail)?;
        alone.end_at_once();
        let (sender, receiver) = mpsc::channel(64);
        let (cell, listener) = (listener.0, listener.1);
        let (engine, at) = (self.engine.clone(), cell.clone());
        let offer = move || {
            if let Err(error) = engine.offer_lease(&at) {
                tracing::warn!(%error, "no mount could be given the space to itself");
            }
        };
        tokio::spawn(async move {
            let mut clean = false;
            if sender.send(Ok(down(Down::Welcome(welcome)))).await.is_ok() {
                let ended = serve(&cell, &listener, messages, &sender, &mut up, offer).await;
                clean = ended == CLEAN;
                tracing::info!(mount = %listener.mount.id, path = %listener.mount.mount_path, ended, "mount detached");
            }
            cell.lease.lost(&listener, clean);
            cell.hub.detach(&listener);
        });
        Ok(Box::pin(ReceiverStream::new(receiver)))
    }

    fn check_hello(&self, hello: v1::Hello) -> Result<Wanted> {
        let cell = self.engine.space(&hello.space)?;
        let (point, lineage) = self.engine.at(&cell, &hello.at)?;
        let names = path::parse(&hello.sub_path)?;
        let root = paths::resolve(View::new(self.engine.read(), &lineage), &names)?;
        if !root.kind().is_dir() {
            return Err(Error::not_a_directory(format!(
                "{} is not a directory, so it cannot be mounted",
                String::from_utf8_lossy(&hello.sub_path)
            )));
        }
        let wire = hello.mount.ok_or_else(|| Error::invalid("the message `hello` lacks its field mount"))?;
        let mut mount = Mount::from_wire(v1::Mount { root_file_id: root.file_id.0, ..wire })?;
        mount.space = cell.id;
        mount.read_only |= !hello.at.is_empty();
        let past = (!hello.at.is_empty()).then_some(point);
        let seen = hello.seen.map(Point::from_wire).transpose()?;
        Ok(Wanted { cell, mount, root, past, seen, lease: hello.lease })
    }

    /// Registers the mount at the head of the space, so that it misses nothing from there on.
    #[allow(clippy::type_complexity)] // Three values that are made together and taken apart at once.
    fn register(
        &self,
        cell: Arc<SpaceCell>,
        wanted: Wanted,
    ) -> Result<((Arc<SpaceCell>, Arc<Listener>), mpsc::Receiver<Message>, v1::Welcome)> {
        let mut mount = wanted.mount;
        if mount.id == MountId(0) {
            mount.id = MountId(self.engine.alloc.next("mount")?);
        }
        mount.author.mount = mount.id;
        let state = cell.lock();
        // The root as of the head that the mount starts from, not as of the time when the request was checked.
        let root = match wanted.past {
            Some(_) => wanted.root,
            None => View::new(self.engine.read(), &state.lineage).require(wanted.root.file_id)?,
        };
        let head = wanted.past.unwrap_or_else(|| state.head());
        mount.seen = state.head().seq;
        let space = state.space.clone();
        let (listener, messages) = cell.hub.attach(mount.clone(), wanted.lease);
        let epoch = cell.lease.back(&listener).unwrap_or(0);
        drop(state);
        let welcome = v1::Welcome {
            mount: Some(mount.to_wire()),
            space: Some(space.to_wire()),
            head: Some(head.to_wire()),
            resumed: wanted.seen == Some(head),
            root: Some(root.to_wire()),
            lease_ms: LEASE.as_millis() as u32,
            epoch,
        };
        tracing::info!(mount = %mount.id, space = %space.name, path = %mount.mount_path, agent = %mount.author.agent, "mount attached");
        Ok(((cell, listener), messages, welcome))
    }
}

/// Carries messages until one side ends; returns why. `offer` is called now and then, to give the space to this mount.
async fn serve(
    cell: &SpaceCell,
    listener: &Listener,
    mut messages: mpsc::Receiver<Message>,
    sender: &mpsc::Sender<Result<v1::AttachDown, Status>>,
    up: &mut Streaming<v1::AttachUp>,
    offer: impl Fn(),
) -> &'static str {
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    let mut heard = tokio::time::Instant::now();
    loop {
        tokio::select! {
            () = listener.cut() => return "cut off",
            message = messages.recv() => {
                let Some(message) = message else { return "cut off" };
                if sender.send(Ok(down(wire(&message)))).await.is_err() {
                    return "the client closed the stream";
                }
            }
            said = up.next() => match said {
                Some(Ok(v1::AttachUp { message: Some(Up::Ack(ack)) })) => {
                    heard = tokio::time::Instant::now();
                    listener.ack(Seq(ack.seen), ack.pending);
                }
                Some(Ok(v1::AttachUp { message: Some(Up::Drained(d)) })) => {
                    heard = tokio::time::Instant::now();
                    cell.lease.drained(listener.mount.id, d.epoch, d.token, d.released);
                }
                Some(Ok(_)) => heard = tokio::time::Instant::now(),
                Some(Err(_)) => return "the connection broke",
                None => return CLEAN,
            },
            _ = heartbeat.tick() => {
                offer();
                if heard.elapsed() > LEASE {
                    return "silent for longer than its lease";
                }
                if sender.send(Ok(down(Down::Ping(v1::Ping {})))).await.is_err() {
                    return "the client closed the stream";
                }
            }
        }
    }
}

fn down(message: Down) -> v1::AttachDown {
    v1::AttachDown { message: Some(message) }
}

fn wire(message: &Message) -> Down {
    match message {
        Message::Changes(set) => Down::Changes(set.to_wire()),
        Message::Grant { epoch } => Down::Grant(v1::Grant { epoch: *epoch }),
        Message::Recall { epoch, release, token } => {
            Down::Recall(v1::Recall { epoch: *epoch, release: *release, token: *token })
        }
        Message::Reset { head, op_id } => Down::Reset(v1::Reset { head: Some(head.to_wire()), op_id: op_id.to_wire() }),
    }
}
