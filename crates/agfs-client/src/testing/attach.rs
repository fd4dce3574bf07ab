//! The test server's side of a mount's stream.

use super::world::{Down, World};
use agfs_core::{Error, FileId};
use agfs_proto::status::to_status;
use agfs_proto::{ToWire, v1};
use futures::StreamExt;
use futures::stream::BoxStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tonic::{Status, Streaming};
use v1::attach_down::Message as M;
use v1::attach_up::Message as Up;

pub(super) async fn attach(
    world: Arc<World>,
    mut up: Streaming<v1::AttachUp>,
) -> Result<BoxStream<'static, Down>, Status> {
    let Some(Up::Hello(hello)) = up.message().await?.and_then(|m| m.message) else {
        return Err(Status::invalid_argument("no hello"));
    };
    world.lock().hellos.push(hello.clone());
    if world.deleted.load(Ordering::SeqCst) {
        return Err(to_status(&Error::not_found("the space \"work\" was deleted")));
    }
    let (down, receiver) = unbounded_channel();
    begin(&world, hello, &down);
    let pings = (world.clone(), down.downgrade());
    tokio::spawn(async move {
        let (world, down) = pings;
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let Some(down) = down.upgrade() else { return };
            let message = v1::AttachDown { message: Some(M::Ping(v1::Ping {})) };
            if !world.mute.load(Ordering::SeqCst) && down.send(Ok(message)).is_err() {
                return;
            }
        }
    });
    let ends = down.downgrade();
    tokio::spawn(async move {
        while let Ok(Some(message)) = up.message().await {
            match message.message {
                Some(Up::Ack(ack)) => world.lock().acks.push(ack),
                Some(Up::Drained(drained)) => world.lock().drained.push(drained),
                Some(Up::Ping(_)) => world.lock().pings += 1,
                _ => {}
            }
        }
        let mut inner = world.lock();
        inner.stream_ends += 1;
        if let Some(down) = ends.upgrade() {
            inner.streams.retain(|s| !s.same_channel(&down));
        }
    });
    drop(down);
    Ok(tokio_stream::wrappers::UnboundedReceiverStream::new(receiver).boxed())
}

/// Welcomes a mount, tells it what it missed, and keeps its stream.
fn begin(world: &World, hello: v1::Hello, down: &UnboundedSender<Down>) {
    let send = |m: M| drop(down.send(Ok(v1::AttachDown { message: Some(m) })));
    let (head, space) = (world.head(), world.space());
    let mut inner = world.lock();
    let seen = hello.seen.map_or(0, |p| p.seq);
    let resumed = seen > 0 && world.resume.load(Ordering::SeqCst);
    let mut mount = hello.mount.unwrap_or_default();
    mount.id = if mount.id == 0 { 42 } else { mount.id };
    mount.space = space.id.0;
    send(M::Welcome(v1::Welcome {
        mount: Some(mount),
        space: Some(space.to_wire()),
        head: Some(head.to_wire()),
        resumed,
        root: inner.tree.nodes.get(&FileId::ROOT).map(ToWire::to_wire),
        lease_ms: world.lease_ms.load(Ordering::SeqCst),
        epoch: inner.epoch,
    }));
    if resumed {
        inner.sets.iter().filter(|s| s.from >= seen).for_each(|s| send(M::Changes(s.clone())));
    }
    inner.streams.push(down.clone());
}
