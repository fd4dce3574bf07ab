//! Tests of the server's operations, with no protocol and no mount, on the in-memory store and on RocksDB.
#![allow(clippy::unwrap_used, missing_docs)]

mod bad_input;
mod basics;
mod file_log;
mod harness;
mod model;
mod scale;
mod timelines;
