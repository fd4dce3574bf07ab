//! The life of a mount process once the file system is mounted: answer the control socket, obey signals, and end when the
//! mount is gone, whoever took it away.

use super::busy;
use super::control::{Done, Reply, Request, StatusShape, not_drained};
use super::signals::Signals;
use super::socket;
use crate::mounts::{self, Entry, Registration};
use crate::output::remark;
use agfs_client::Connection;
use agfs_core::{Error, ErrorKind, Result};
use agfs_fuse::MountHandle;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// How long a mount that was told to end by a signal goes on sending.
const DRAIN: Duration = Duration::from_secs(30);
/// The longest request, in bytes.
const MAX_REQUEST: u64 = 64 << 10;
/// Where the flag for a lazy unmount takes effect.
const GONE_SOON: Duration = Duration::from_secs(5);

/// A mount that is to be served.
pub struct Served {
    /// The mount.
    pub handle: Arc<MountHandle>,
    /// The way to its server.
    pub connection: Connection,
    /// What is told to other programs.
    pub entry: Entry,
}

/// How a mount ended.
#[derive(Debug)]
pub enum Ended {
    /// With everything sent.
    Clean,
    /// With something left, as the error says.
    Left(Error),
}

/// Serves a mount until it is gone. `ready` is called once programs and commands can use it.
///
/// # Errors
/// What keeps it from being served (then it is unmounted again), or what the file system ended with.
pub async fn serve(served: Served, ready: impl FnOnce() -> Result<()>) -> Result<Ended> {
    let handle = served.handle.clone();
    match start(&served, ready) {
        Ok((registration, listener, signals)) => {
            let control = tokio::spawn(listen(listener, Arc::new(served)));
            let ended = live(&handle, signals).await;
            control.abort();
            drop(registration);
            ended
        }
        Err(error) => {
            handle.unmount().await?;
            Err(error)
        }
    }
}

fn start(served: &Served, ready: impl FnOnce() -> Result<()>) -> Result<(Registration, UnixListener, Signals)> {
    let registration = Registration::new(&served.entry)?;
    let listener = socket::listen(&mounts::socket_file(&served.entry.mountpoint))?;
    let listener = UnixListener::from_std(listener).map_err(|e| Error::io(format!("the control socket: {e}")))?;
    let signals = Signals::new()?;
    ready()?;
    Ok((registration, listener, signals))
}

/// Waits for the end: the mount is taken away (by `agfs umount`, by `umount`, by anybody), or a signal asks for it.
async fn live(handle: &Arc<MountHandle>, mut signals: Signals) -> Result<Ended> {
    let ended = tokio::select! {
        gone = handle.wait_unmounted() => {
            tracing::info!("the mount ends: it was unmounted");
            gone.map(|()| Ended::Clean)
        }
        () = signals.next() => {
            tracing::info!("the mount ends: a signal asked for it");
            end(handle, signals).await
        }
    };
    match &ended {
        Ok(Ended::Clean) => tracing::info!("ended with everything sent"),
        Ok(Ended::Left(error)) | Err(error) => tracing::error!(%error, "ended with something left"),
    }
    ended
}

/// Drains within a limit and unmounts; a second signal cuts the draining short.
async fn end(handle: &Arc<MountHandle>, mut signals: Signals) -> Result<Ended> {
    remark("ending: sending what was written (a second signal ends at once)");
    let drained = tokio::select! {
        drained = handle.drain(DRAIN) => drained.map_err(|p| not_drained(&p)),
        () = signals.next() => match handle.drain(Duration::ZERO).await {
            Ok(()) => Ok(()),
            Err(pending) => Err(not_drained(&pending)),
        },
    };
    match handle.unmount().await {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::Conflict => detach(handle).await?,
        Err(error) => return Err(error),
    }
    Ok(drained.map_or_else(Ended::Left, |()| Ended::Clean))
}

/// Takes a mount in use out of the tree; programs that still use it get errors once this process is gone.
async fn detach(handle: &MountHandle) -> Result<()> {
    let mountpoint = handle.status().mountpoint;
    remark(&format!("{} is {}: taking it away from them", mountpoint.display(), busy::users(&mountpoint)));
    lazy_unmount(mountpoint).await?;
    let _ = tokio::time::timeout(GONE_SOON, handle.wait_unmounted()).await;
    Ok(())
}

async fn lazy_unmount(mountpoint: PathBuf) -> Result<()> {
    let work = tokio::task::spawn_blocking(move || crate::cmd::umount::detach(&mountpoint));
    work.await.map_err(|e| Error::internal(format!("unmounting: {e}")))?
}

async fn listen(listener: UnixListener, served: Arc<Served>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(answer(stream, served.clone()))),
            Err(error) => {
                tracing::warn!(%error, "the control socket");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn answer(stream: UnixStream, served: Arc<Served>) {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    if BufReader::new(read.take(MAX_REQUEST)).read_line(&mut line).await.is_err() {
        return;
    }
    let mut reply = match serde_json::from_str::<Request>(&line) {
        Ok(Request::Status) => encode(Ok(StatusShape::from(served.handle.status()))),
        Ok(Request::Sync { object, timeout_ms }) => {
            encode(sync(&served, object, Duration::from_millis(timeout_ms)).await)
        }
        Ok(Request::Umount { timeout_ms }) => encode(umount(&served, Duration::from_millis(timeout_ms)).await),
        Err(error) => {
            encode::<Done>(Err(Error::unsupported(format!("this mount process does not know {line:?}: {error}"))))
        }
    };
    reply.push(b'\n');
    // Who asked may have given up.
    let _ = write.write_all(&reply).await;
}

fn encode<T: serde::Serialize>(result: Result<T>) -> Vec<u8> {
    serde_json::to_vec(&Reply::new(result))
        .unwrap_or_else(|_| br#"{"error":{"code":"internal","message":"encoding"}}"#.to_vec())
}

async fn sync(served: &Served, object: bool, limit: Duration) -> Result<Done> {
    served.handle.drain(limit).await.map_err(|p| not_drained(&p))?;
    if object {
        served.connection.sync(&served.entry.space, true).await?;
    }
    Ok(Done {})
}

async fn umount(served: &Served, limit: Duration) -> Result<Done> {
    served.handle.drain(limit).await.map_err(|p| not_drained(&p))?;
    match served.handle.unmount().await {
        Err(error) if error.kind() == ErrorKind::Conflict => {
            let mountpoint = served.entry.mountpoint.clone();
            let who = tokio::task::spawn_blocking(move || busy::users(&mountpoint)).await.unwrap_or_default();
            Err(match who.is_empty() {
                true => error,
                false => Error::conflict(format!("{who}: end them, or leave the directory, and try again")),
            })
        }
        other => other.map(|()| Done {}),
    }
}
