//! The AGFS server: where spaces live.
//!
//! `ops` is what it does, blind to protocols, over `model` (how trees are kept), `store` (an ordered key-value engine) and
//! `blob` (contents in packs). `grpc` and `http` are thin entrances. Nothing here knows of FUSE or of the client's caches.

pub mod blob;
mod capacity;
pub mod config;
pub mod engine;
mod grpc;
mod http;
pub mod hub;
mod lease;
pub mod model;
pub mod ops;
mod serve;
pub mod store;

pub use config::ServerConfig;
pub use serve::{Running, SystemClock, run, start};
