//! A small server in memory for the tests of this crate: real calls over a real port, with faults on demand.
//!
//! Not a model of the real server's rules beyond what the client relies on.

mod attach;
mod calls;
mod history;
mod service;
mod world;

pub(crate) use world::{TestTree, World};

use crate::{ConnectOptions, Connection, SystemClock};
use agfs_proto::v1;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// The services over a world.
#[derive(Clone)]
pub(crate) struct Service(Arc<World>);

impl std::ops::Deref for Service {
    type Target = World;
    fn deref(&self) -> &World {
        &self.0
    }
}

/// A running server. Its runtime is its own, so that stopping it cuts every connection at once, as a kill does.
pub(crate) struct Server {
    pub world: Arc<World>,
    pub addr: SocketAddr,
    runtime: Option<Runtime>,
}

impl Server {
    pub fn start() -> Server {
        let mut server = Server { world: Arc::new(World::new()), addr: "127.0.0.1:0".parse().unwrap(), runtime: None };
        server.restart();
        server
    }

    /// Cuts every connection and stops listening.
    pub fn kill(&mut self) {
        self.world.forget_streams();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Listens again, on the same port.
    pub fn restart(&mut self) {
        self.kill();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (world, addr) = (self.world.clone(), self.addr);
        let (bound, wait) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            let listener = loop {
                match tokio::net::TcpListener::bind(addr).await {
                    Ok(listener) => break listener,
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            };
            bound.send(listener.local_addr().unwrap()).unwrap();
            let limit = crate::connection::MAX_MESSAGE;
            tonic::transport::Server::builder()
                .add_service(v1::tree_server::TreeServer::new(Service(world.clone())).max_decoding_message_size(limit))
                .add_service(v1::history_server::HistoryServer::new(Service(world.clone())))
                .add_service(v1::spaces_server::SpacesServer::new(Service(world)))
                .serve_with_incoming(tokio_stream::wrappers::TcpListenerStream::new(listener))
                .await
                .unwrap();
        });
        self.addr = wait.recv().unwrap();
        self.runtime = Some(runtime);
    }

    pub fn connect(&self, io_timeout: Duration) -> Connection {
        connect(self.addr, io_timeout)
    }
}

pub(crate) fn connect(addr: SocketAddr, io_timeout: Duration) -> Connection {
    let options = ConnectOptions { server: format!("http://{addr}"), io_timeout, clock: Arc::new(SystemClock) };
    Connection::new(options).unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until something becomes true; fails the test after ten seconds.
pub(crate) async fn until(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never came true: {what}");
}
