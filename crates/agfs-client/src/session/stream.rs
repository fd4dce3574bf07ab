//! The stream of a session: opened, followed in strict order, opened again when it is lost, ended.
//!
//! One task runs it; it alone calls the sink and moves what has been seen. It never waits for a caller of the session.

use super::options::{AttachOptions, Recall, Welcome};
use super::state::{Drained, Shared};
use crate::connection::Connection;
use crate::retry::{Effort, Failure, backoff, malformed};
use crate::system::random_u64;
use agfs_core::change::ChangeSet;
use agfs_core::node::Node;
use agfs_core::space::{Mount, Point, Space};
use agfs_core::{Error, ErrorKind, MountId, Result, Seq, TimelineId};
use agfs_proto::convert::required;
use agfs_proto::{FromWire, ToWire, v1};
use futures::Stream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::Streaming;
use v1::attach_down::Message as Down;
use v1::attach_up::Message as UpMessage;

/// The longest silence that is taken for life.
const SILENCE: Duration = Duration::from_secs(5);
/// How long the answer to a hello may take: the server may have to call back another mount's lease first.
const WELCOME: Duration = Duration::from_secs(15);
/// How long a clean end may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// What goes up besides the hello; the latest counts.
struct Up {
    /// What to acknowledge.
    seen: Option<Seq>,
    /// How often a sign of life is sent.
    pulse: Duration,
    /// Whether to end the stream.
    over: bool,
}

/// An open stream.
pub(super) struct Link {
    down: Streaming<v1::AttachDown>,
    up: watch::Sender<Up>,
    silence: Duration,
    /// The mount is up to date when it has seen this.
    target: Seq,
}

/// Opens the first stream of a new mount; what is in `pending` goes up with signs of life.
pub(super) async fn first(
    conn: &Connection,
    options: &AttachOptions,
    pending: &Arc<AtomicU64>,
    drained: &watch::Sender<Option<Drained>>,
) -> Result<(Link, Welcome)> {
    let open = || open(conn, hello(options, None), pending.clone(), drained.subscribe());
    let (link, welcome, _) = conn.call("attaching the mount", Effort::Short, open).await?;
    Ok((link, welcome))
}

fn hello(options: &AttachOptions, before: Option<(MountId, Point)>) -> v1::Hello {
    let mount = v1::Mount {
        id: before.map_or(0, |(id, _)| id.0),
        space: 0,
        root_file_id: 0,
        mount_path: options.mount_path.clone(),
        tenant_code: options.tenant.clone(),
        user_id: options.user.clone(),
        conversation_id: options.conversation.clone(),
        author: Some(options.author.to_wire()),
        host: options.host.clone(),
        consistency: options.consistency.code().to_owned(),
        read_only: options.read_only,
        seen: before.map_or(0, |(_, seen)| seen.seq.0),
    };
    v1::Hello {
        mount: Some(mount),
        space: options.space.clone(),
        seen: before.map(|(_, seen)| seen.to_wire()),
        sub_path: options.sub_path.clone(),
        at: options.at.clone(),
        lease: options.lease,
    }
}

/// The messages up: the hello, then acknowledgements as they are due and signs of life between them. An acknowledgement that
/// could not be sent yet is overtaken by a later one, so nothing piles up.
fn upward(
    hello: v1::Hello,
    up: watch::Receiver<Up>,
    pending: Arc<AtomicU64>,
    drained: watch::Receiver<Option<Drained>>,
) -> impl Stream<Item = v1::AttachUp> {
    let state = (Some(hello), up, pending, 0u64, drained);
    futures::stream::unfold(state, |(hello, mut up, pending, mut told, mut drained)| async move {
        if let Some(hello) = hello {
            let message = v1::AttachUp { message: Some(UpMessage::Hello(hello)) };
            return Some((message, (None, up, pending, told, drained)));
        }
        let pulse = up.borrow().pulse;
        let due = tokio::select! {
            changed = up.changed() => {
                if changed.is_err() {
                    return None;
                }
                true
            }
            Ok(()) = drained.changed() => {
                let last = *drained.borrow_and_update();
                let Drained { epoch, token, released } = last.unwrap_or_default();
                let message = UpMessage::Drained(v1::Drained { epoch, token, released });
                return Some((v1::AttachUp { message: Some(message) }, (None, up, pending, told, drained)));
            }
            () = tokio::time::sleep(pulse) => false,
        };
        let (seen, over) = {
            let now = up.borrow_and_update();
            (now.seen, now.over)
        };
        if over {
            return None;
        }
        let bytes = pending.load(Ordering::Relaxed);
        let message = match seen {
            Some(seen) if due || bytes != told => {
                told = bytes;
                UpMessage::Ack(v1::Ack { seen: seen.0, pending: bytes })
            }
            _ => UpMessage::Ping(v1::Ping {}),
        };
        Some((v1::AttachUp { message: Some(message) }, (None, up, pending, told, drained)))
    })
}

/// Opens a stream and waits for the welcome. The last of the result says whether the server goes on where the mount was.
async fn open(
    conn: &Connection,
    hello: v1::Hello,
    pending: Arc<AtomicU64>,
    drained: watch::Receiver<Option<Drained>>,
) -> std::result::Result<(Link, Welcome, bool), Failure> {
    let before = hello.seen.as_ref().map(|p| Seq(p.seq));
    let (up, up_rx) = watch::channel(Up { seen: None, pulse: SILENCE * 2 / 5, over: false });
    let opening = async {
        let mut down = conn.tree().attach(upward(hello, up_rx, pending, drained)).await?.into_inner();
        loop {
            match down.message().await?.and_then(|m| m.message) {
                Some(Down::Welcome(welcome)) => return Ok((down, welcome)),
                Some(Down::Ping(_)) => {}
                Some(_) => {
                    return Err(malformed(Error::invalid("a stream that does not begin with its welcome")).into());
                }
                None => return Err(Error::unavailable("the server ended the stream before its welcome").into()),
            }
        }
    };
    let opened: std::result::Result<_, Failure> = tokio::time::timeout(WELCOME, opening).await.unwrap_or_else(|_| {
        let message = format!("the server did not welcome the mount within {} s", WELCOME.as_secs());
        Err(Error::new(ErrorKind::TimedOut, message).into())
    });
    let (down, wire) = opened?;
    let resumed = wire.resumed;
    let welcome = welcome(wire).map_err(malformed)?;
    let silence = if welcome.lease.is_zero() { SILENCE } else { welcome.lease.min(SILENCE) };
    // The welcome is acknowledged like a change: what the mount answers from now on is that state or later.
    let seen = before.filter(|_| resumed).unwrap_or(welcome.head.seq);
    up.send_modify(|up| {
        up.pulse = silence * 2 / 5;
        up.seen = Some(seen);
    });
    Ok((Link { down, up, silence, target: welcome.head.seq }, welcome, resumed))
}

fn welcome(w: v1::Welcome) -> Result<Welcome> {
    Ok(Welcome {
        mount: Mount::from_wire(required(w.mount, "welcome.mount")?)?,
        space: Space::from_wire(required(w.space, "welcome.space")?)?,
        head: Point::from_wire(required(w.head, "welcome.head")?)?,
        root: Node::from_wire(required(w.root, "welcome.root")?)?,
        lease: Duration::from_millis(u64::from(w.lease_ms)),
        epoch: (w.epoch != 0).then_some(w.epoch),
    })
}

/// Follows the stream until the session ends; opens it again whenever it is lost.
pub(super) async fn run(shared: Arc<Shared>, mut link: Link) {
    let mut resumable = true;
    loop {
        let lost = tokio::select! {
            biased;
            () = shared.stop.cancelled() => return farewell(link).await,
            lost = follow(&shared, &mut link, &mut resumable) => lost,
        };
        drop(link);
        lose(&shared, &lost);
        if ends(&lost) {
            return shared.end(lost.error);
        }
        let again = tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            again = reopen(&shared, &mut resumable) => again,
        };
        link = match again {
            Ok(link) => link,
            Err(error) => return shared.end(error),
        };
    }
}

/// Tells everybody that the stream is lost, unless they know.
fn lose(shared: &Shared, lost: &Failure) {
    let was_up = shared.state.borrow().up;
    shared.state.send_modify(|state| state.up = false);
    if was_up {
        *shared.lost.lock() = Some(std::time::Instant::now());
        tracing::warn!(error = %lost.error, server = shared.conn.server(), "the stream of changes is lost");
        shared.sink.connected(false);
    }
}

/// Whether the server has said that this mount cannot be, so that trying again is of no use.
fn ends(failure: &Failure) -> bool {
    let for_good = matches!(
        failure.error.kind(),
        ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::InvalidArgument
            | ErrorKind::PermissionDenied
            | ErrorKind::NotPermitted
            | ErrorKind::ReadOnly
            | ErrorKind::Stale
            | ErrorKind::Refused
            | ErrorKind::Unsupported
    );
    failure.named && for_good
}

/// Opens the stream again, as often as it takes. Fails when the server refuses the mount.
async fn reopen(shared: &Shared, resumable: &mut bool) -> Result<Link> {
    for attempt in 1u32.. {
        let (mount, seen) = (shared.mount.lock().id, shared.state.borrow().head);
        let seen = if *resumable { seen } else { Point { timeline: TimelineId(0), seq: Seq(0) } };
        let hello = hello(&shared.options, Some((mount, seen)));
        match open(&shared.conn, hello, shared.pending.clone(), shared.drained.subscribe()).await {
            Ok((link, welcome, resumed)) => {
                *shared.mount.lock() = welcome.mount;
                if !(resumed && *resumable) {
                    reset(shared, &link, welcome.head);
                }
                *resumable = true;
                if let Some(epoch) = welcome.epoch {
                    shared.sink.granted(epoch);
                }
                tracing::info!(resumed, "the stream of changes is back");
                return Ok(link);
            }
            Err(failure) if ends(&failure) => return Err(failure.error),
            Err(failure) => {
                tracing::debug!(attempt, error = %failure.error, "the stream of changes cannot be opened");
                tokio::time::sleep(backoff(attempt, random_u64())).await;
            }
        }
    }
    Err(Error::internal("the stream was opened too often"))
}

/// Takes messages as they come. Returns why the stream is lost; `resumable` says whether a new one may go on from there.
async fn follow(shared: &Shared, link: &mut Link, resumable: &mut bool) -> Failure {
    let mut progress = Instant::now();
    loop {
        let state = shared.state.borrow().clone();
        if !state.up && state.head.seq >= link.target {
            shared.sink.connected(true);
            *shared.lost.lock() = None;
            shared.state.send_modify(|state| state.up = true);
        } else if !state.up && progress.elapsed() > link.silence {
            *resumable = false;
            return Error::unavailable("the server does not bring this mount up to date").into();
        }
        let message = match tokio::time::timeout(link.silence, link.down.message()).await {
            Ok(Ok(Some(message))) => message.message,
            Ok(Ok(None)) => return Error::unavailable("the server ended the stream").into(),
            Ok(Err(status)) => return status.into(),
            Err(_) => {
                let message = format!("the server was silent for {} ms", link.silence.as_millis());
                return Error::unavailable(message).into();
            }
        };
        let taken = match message {
            // A view of the past: the present may change as it likes, and nobody is to wait for this mount.
            Some(Down::Changes(set)) if !shared.options.at.is_empty() => {
                acknowledge(link, Seq(set.to));
                continue;
            }
            Some(Down::Reset(reset)) if !shared.options.at.is_empty() => {
                acknowledge(link, Seq(reset.head.map_or(0, |head| head.seq)));
                continue;
            }
            Some(Down::Changes(set)) => changes(shared, link, set),
            Some(Down::Reset(wire)) => required(wire.head, "reset.head")
                .and_then(Point::from_wire)
                .map(|head| reset(shared, link, head))
                .map_err(malformed),
            Some(Down::Ping(_)) | None => continue,
            Some(Down::Welcome(_)) => Err(malformed(Error::invalid("a second welcome"))),
            Some(Down::Grant(_) | Down::Recall(_)) if !shared.options.lease => {
                Err(malformed(Error::invalid("a lease that was not asked for")))
            }
            Some(Down::Grant(grant)) => {
                shared.sink.granted(grant.epoch);
                Ok(())
            }
            Some(Down::Recall(r)) => {
                shared.sink.recalled(Recall { epoch: r.epoch, release: r.release, token: r.token });
                Ok(())
            }
        };
        progress = Instant::now();
        if let Err(error) = taken {
            return error.into();
        }
    }
}

fn changes(shared: &Shared, link: &Link, wire: v1::ChangeSet) -> Result<()> {
    let set = ChangeSet::from_wire(wire).map_err(malformed)?;
    let seen = shared.state.borrow().head.seq;
    if set.to <= seen {
        // Delivered before; the acknowledgement may have been lost.
        acknowledge(link, seen);
        return Ok(());
    }
    if set.from != seen {
        return Err(Error::unavailable(format!(
            "the stream has a gap: changes from {} on came to a mount that has seen {seen}",
            set.from
        )));
    }
    let own = shared.in_flight.lock().contains(&set.op_id);
    shared.sink.changes(&set, own);
    acknowledge(link, set.to);
    shared.state.send_modify(|state| state.head.seq = set.to);
    Ok(())
}

fn reset(shared: &Shared, link: &Link, head: Point) {
    shared.sink.reset(head);
    acknowledge(link, head.seq);
    shared.state.send_modify(|state| state.head = head);
}

fn acknowledge(link: &Link, seen: Seq) {
    link.up.send_modify(|up| up.seen = Some(seen));
}

/// Ends the stream from this side and waits a moment for the server to do the same.
async fn farewell(mut link: Link) {
    link.up.send_modify(|up| up.over = true);
    let drained = async { while let Ok(Some(_)) = link.down.message().await {} };
    if tokio::time::timeout(FAREWELL, drained).await.is_err() {
        tracing::debug!("the server did not end the stream");
    }
}
