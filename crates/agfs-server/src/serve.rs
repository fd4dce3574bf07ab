//! Starting and stopping a server.

use crate::blob::{BlobConfig, ChunkStore};
use crate::config::{About, ServerConfig};
use crate::engine::Engine;
use crate::grpc::Service;
use crate::http::with_http;
use crate::store::{MetaStore, RocksConfig, RocksStore};
use agfs_core::error::{Error, ErrorKind, Result};
use agfs_core::time::{Clock, Timestamp};
use axum::serve::ListenerExt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// How often what was committed is brought to the disk without being asked for.
const SYNC_EVERY: Duration = Duration::from_millis(500);

/// The system's clock: the one place in the server that reads it.
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // This is where the injected clock comes from.
    fn now(&self) -> Timestamp {
        match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)),
            Err(before) => Timestamp(i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns)),
        }
    }
}

/// A server that accepts calls.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its state, for whoever runs it in the same process.
    pub engine: Arc<Engine>,
    stop: oneshot::Sender<()>,
    done: tokio::task::JoinHandle<Result<()>>,
}

impl Running {
    /// Stops taking calls, brings everything to the disk and closes the store.
    pub async fn stop(self) -> Result<()> {
        // The server may have ended by itself; then there is nobody to tell.
        let _ = self.stop.send(());
        self.done.await.map_err(|e| Error::internal(format!("the server's task failed: {e}")))?
    }

    /// Waits until the server ends by itself.
    pub async fn ended(&mut self) -> Result<()> {
        (&mut self.done).await.map_err(|e| Error::internal(format!("the server's task failed: {e}")))?
    }
}

/// Runs a server until `shutdown` completes. Fails with `Refused` when the data directory is in use, with `Io` when the
/// address cannot be bound, and as opening the stores does.
pub async fn run(config: ServerConfig, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
    let mut running = start(config).await?;
    tokio::select! {
        () = shutdown => {}
        ended = running.ended() => return ended,
    }
    running.stop().await
}

/// Starts a server; it accepts calls when this returns.
pub async fn start(config: ServerConfig) -> Result<Running> {
    let listener = TcpListener::bind(config.listen).await.map_err(|e| {
        Error::new(ErrorKind::Io, format!("cannot listen on {}: {e}; is another server running there?", config.listen))
    })?;
    let address = listener.local_addr().map_err(|e| Error::io(format!("cannot tell the address listened on: {e}")))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (engine, about) = open(&config, clock).await?;
    let app = with_http(Service::new(engine.clone(), about.clone()).routes().into_axum_router(), engine.clone(), about);
    let (stop, stopped) = oneshot::channel::<()>();
    let served = engine.clone();
    let done = tokio::spawn(async move {
        let syncer = tokio::spawn(sync_regularly(served.clone()));
        let serving = axum::serve(
            listener.tap_io(|tcp| {
                // Small answers must not wait for more to come.
                if let Err(error) = tcp.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY could not be set");
                }
            }),
            app,
        );
        tokio::select! {
            result = serving => result.map_err(|e| Error::io(format!("the server cannot accept connections: {e}")))?,
            _ = stopped => {}
        }
        syncer.abort();
        close(&served).await
    });
    tracing::info!(%address, data_dir = %config.data_dir.display(), "serving");
    Ok(Running { address, engine, stop, done })
}

async fn open(config: &ServerConfig, clock: Arc<dyn Clock>) -> Result<(Arc<Engine>, Arc<About>)> {
    let dir = &config.data_dir;
    make_dir(dir)?;
    let rocks = RocksConfig {
        block_cache: usize::try_from(config.cache_bytes).unwrap_or(usize::MAX),
        ..RocksConfig::default()
    };
    let meta_dir = dir.join("meta");
    let meta = tokio::task::spawn_blocking(move || RocksStore::open(&meta_dir, &rocks))
        .await
        .map_err(|e| Error::internal(format!("the task that opens the store failed: {e}")))??;
    let meta: Arc<dyn MetaStore> = Arc::new(meta);
    let url = match &config.store_url {
        Some(url) => url.clone(),
        None => {
            let objects =
                std::path::absolute(dir.join("objects")).map_err(|e| Error::io(format!("{}: {e}", dir.display())))?;
            make_dir(&objects)?;
            format!("file://{}", objects.display())
        }
    };
    let blob = BlobConfig {
        pack_size: config.pack_size,
        seal_after: Duration::from_secs(config.seal_after_seconds),
        ..BlobConfig::new(url.clone(), dir.join("staging"))
    };
    let chunks = ChunkStore::open(blob, meta.clone(), clock.clone()).await?;
    let about =
        About { version: env!("CARGO_PKG_VERSION").to_owned(), store_url: url, data_dir: dir.display().to_string() };
    Ok((Arc::new(Engine::open(meta, chunks, clock)?), Arc::new(about)))
}

fn make_dir(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|e| Error::io(format!("cannot make the directory {}: {e}", dir.display())))
}

async fn sync_regularly(engine: Arc<Engine>) {
    let mut tick = tokio::time::interval(SYNC_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = engine.make_durable(crate::ops::Durable::Disk).await {
            tracing::error!(%error, "what was committed could not be brought to the disk");
        }
    }
}

async fn close(engine: &Arc<Engine>) -> Result<()> {
    let contents = engine.chunks.close().await;
    let engine = engine.clone();
    let metadata = tokio::task::spawn_blocking(move || engine.meta.sync()).await;
    contents?;
    metadata.map_err(|e| Error::internal(format!("the task that syncs the store failed: {e}")))?
}
