//! The connection: address, channels, the client's identity. Calls are in the rooms named after their services.
//!
//! A channel connects when it is first used and by itself again after it broke; repeating calls is `retry`'s work.

use crate::system::random_u64;
use agfs_core::time::Clock;
use agfs_core::{Error, MountId, OpId, Result, Timestamp};
use agfs_proto::v1;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint, Uri};

/// The largest message, in bytes, in either direction.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;
/// How much may be under way on a stream and on a connection, in bytes.
const WINDOW: u32 = 8 << 20;

/// Where the server is and how patient the caller is.
#[derive(Clone)]
pub struct ConnectOptions {
    /// The server's address, `http://HOST:PORT`.
    pub server: String,
    /// How long a call is repeated before it fails: 60 s for a mount, 10 s for a command. Up to 10 s, an address where
    /// nothing listens is tried for 2 s only.
    pub io_timeout: Duration,
    /// The clock that dates operations.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions").field("server", &self.server).field("io_timeout", &self.io_timeout).finish()
    }
}

struct Inner {
    options: ConnectOptions,
    endpoint: Endpoint,
    calls: OnceLock<Channel>,
    bulk: OnceLock<Channel>,
    client_id: u64,
    counter: AtomicU64,
    /// The mount that the calls are of, if they are of one.
    mount: Arc<AtomicU64>,
}

/// The metadata key under which a mount says which one it is: its own looks at a space that it has to itself call nothing back.
const MOUNT_KEY: &str = "agfs-mount";

/// Says with each call which mount makes it.
#[derive(Clone)]
pub(crate) struct AsMount(Arc<AtomicU64>);

impl Interceptor for AsMount {
    fn call(&mut self, mut request: tonic::Request<()>) -> std::result::Result<tonic::Request<()>, tonic::Status> {
        let mount = self.0.load(Ordering::Relaxed);
        if mount != 0 {
            request.metadata_mut().insert(MOUNT_KEY, MetadataValue::from(mount));
        }
        Ok(request)
    }
}

/// What calls go through.
pub(crate) type Calls = InterceptedService<Channel, AsMount>;

/// A connection to one server: one HTTP/2 channel for calls and one for chunks. Cheap to clone; clones share all.
/// Calls must be made within a Tokio runtime, always the same one.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

impl Connection {
    /// Prepares a connection; nothing is sent yet. Fails with `InvalidArgument` when the address is malformed.
    pub fn new(options: ConnectOptions) -> Result<Connection> {
        let endpoint = endpoint(&options.server)?;
        let inner = Inner {
            options,
            endpoint,
            calls: OnceLock::new(),
            bulk: OnceLock::new(),
            client_id: random_u64(),
            counter: AtomicU64::new(0),
            mount: Arc::default(),
        };
        Ok(Connection { inner: Arc::new(inner) })
    }

    /// The address as given.
    pub fn server(&self) -> &str {
        &self.inner.options.server
    }

    /// How long a call is repeated before it fails.
    pub fn io_timeout(&self) -> Duration {
        self.inner.options.io_timeout
    }

    /// The present time by the injected clock.
    pub fn now(&self) -> Timestamp {
        self.inner.options.clock.now()
    }

    /// The number, drawn at random, that all operation ids of this connection carry.
    pub fn client_id(&self) -> u64 {
        self.inner.client_id
    }

    /// A new operation id.
    pub fn next_op_id(&self) -> OpId {
        let counter = self.inner.counter.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        OpId { client: self.inner.client_id, counter }
    }

    /// From now on every call, by whichever clone, says that it is of this mount.
    pub(crate) fn call_as(&self, mount: MountId) {
        self.inner.mount.store(mount.0, Ordering::Relaxed);
    }

    fn channel(&self) -> Calls {
        self.calls(self.inner.calls.get_or_init(|| self.inner.endpoint.connect_lazy()))
    }

    fn calls(&self, channel: &Channel) -> Calls {
        InterceptedService::new(channel.clone(), AsMount(self.inner.mount.clone()))
    }

    /// Chunks have a channel of their own, so that a long transfer does not stand before calls and heartbeats.
    fn bulk_channel(&self) -> Calls {
        self.calls(self.inner.bulk.get_or_init(|| self.inner.endpoint.connect_lazy()))
    }

    pub(crate) fn spaces(&self) -> v1::spaces_client::SpacesClient<Calls> {
        v1::spaces_client::SpacesClient::new(self.channel())
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE)
    }

    pub(crate) fn history(&self) -> v1::history_client::HistoryClient<Calls> {
        v1::history_client::HistoryClient::new(self.channel())
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE)
    }

    pub(crate) fn tree(&self) -> v1::tree_client::TreeClient<Calls> {
        tree_client(self.channel())
    }

    pub(crate) fn bulk(&self) -> v1::tree_client::TreeClient<Calls> {
        tree_client(self.bulk_channel())
    }
}

fn tree_client(channel: Calls) -> v1::tree_client::TreeClient<Calls> {
    v1::tree_client::TreeClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE)
}

fn endpoint(server: &str) -> Result<Endpoint> {
    let bad = |why: &str| Error::invalid(format!("{server:?} is no server address ({why}): write http://HOST:PORT"));
    let uri: Uri = server.parse().map_err(|_| bad("it is not a URL"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some(_) => return Err(bad("only http is spoken")),
        None => return Err(bad("the scheme is missing")),
    }
    if uri.authority().is_none_or(|a| a.host().is_empty()) {
        return Err(bad("the host is missing"));
    }
    if uri.port_u16().is_none_or(|port| port == 0) {
        return Err(bad("the port is missing"));
    }
    if uri.path_and_query().is_some_and(|p| p.as_str() != "/" && !p.as_str().is_empty()) {
        return Err(bad("it has a path"));
    }
    Ok(Endpoint::from(uri)
        .connect_timeout(Duration::from_secs(2))
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(2))
        .keep_alive_timeout(Duration::from_secs(5))
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW.saturating_mul(4)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemClock;
    use agfs_core::ErrorKind;

    fn open(server: &str) -> Result<Connection> {
        let io_timeout = Duration::from_secs(1);
        Connection::new(ConnectOptions { server: server.into(), io_timeout, clock: Arc::new(SystemClock) })
    }

    #[test]
    fn malformed_addresses_are_refused_with_what_is_wrong() {
        for bad in ["", "localhost:7420", "https://h:1", "http://", "http://h", "http://h:0", "http://h:1/x", "a b"] {
            let error = open(bad).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{bad}");
            assert!(error.message().contains("http://HOST:PORT"), "{error}");
        }
        for good in ["http://127.0.0.1:7420", "http://[::1]:7420", "http://host.example:80/"] {
            assert!(open(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn operation_ids_are_unique_and_clones_count_together() {
        let a = open("http://h:1").unwrap();
        let b = a.clone();
        let (x, y) = (a.next_op_id(), b.next_op_id());
        assert_eq!((x.client, x.counter + 1), (y.client, y.counter));
        assert_ne!(a.client_id(), open("http://h:1").unwrap().client_id());
    }
}
