//! The wire: generated messages and services, and the one door between them and the core's types.
//!
//! Everything that arrives is checked here, once; above this crate only core types exist. No call is made and no file is
//! read here, and no rule of the file system is known here beyond what makes a value well-formed.

pub mod convert;
pub mod status;

/// Messages and services of `agfs.v1`, generated from `proto/`.
#[allow(missing_docs, clippy::all, clippy::pedantic, unused_qualifications)]
pub mod v1 {
    tonic::include_proto!("agfs.v1");
}

pub use convert::{FromWire, ToWire};
pub use prost::Message;
