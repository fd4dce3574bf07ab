//! The server's configuration. Reading it from files and flags is the command's business.

use serde::Deserialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// What a server is to be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Where it listens, gRPC and HTTP on the same port.
    pub listen: SocketAddr,
    /// Where it keeps its metadata, and contents on their way to the store.
    pub data_dir: PathBuf,
    /// Where contents go: `file:///DIR`, `s3://BUCKET/PREFIX` or `memory:///`. `None`: a directory in `data_dir`.
    pub store_url: Option<String>,
    /// The size of a pack object, in bytes.
    pub pack_size: u64,
    /// How long contents may wait before their pack is sent to the store, in seconds.
    pub seal_after_seconds: u64,
    /// Memory for the metadata cache, in bytes.
    pub cache_bytes: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7420)),
            data_dir: PathBuf::from("/var/lib/agfs"),
            store_url: None,
            pack_size: 8 << 20,
            seal_after_seconds: 5,
            cache_bytes: 256 << 20,
        }
    }
}

impl ServerConfig {
    /// The default configuration as a commented file.
    pub const fn default_toml() -> &'static str {
        include_str!("default.toml")
    }
}

/// What a server says of itself.
#[derive(Clone, Debug)]
pub struct About {
    /// The version of the program.
    pub version: String,
    /// Where contents go.
    pub store_url: String,
    /// Where metadata is.
    pub data_dir: String,
}
