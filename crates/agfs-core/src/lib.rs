//! The pure heart of AGFS: what a space, a node, an operation and a version *are*.
//!
//! Everything here is a value or a function of values. This crate must not do I/O, read a clock, draw a random
//! number, know of a wire format, a database or an operating system call, or be async. Rooms that need those pass
//! the results in.

pub mod apply;
pub mod attr;
pub mod change;
pub mod diff;
pub mod error;
pub mod event;
pub mod id;
pub mod manifest;
pub mod name;
pub mod node;
pub mod op;
pub mod path;
pub mod reference;
pub mod shadow;
pub mod space;
pub mod time;
pub mod timeline;
pub mod xattr;

pub use error::{Error, ErrorKind, Result, Retry};
pub use id::{CheckpointId, ChunkHash, FamilyId, FileId, MountId, OpId, Seq, SpaceId, TimelineId};
pub use name::Name;
pub use time::Timestamp;
