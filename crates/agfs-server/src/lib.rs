//! The AGFS server's rooms: where metadata and contents are kept, and what is done with them.

pub mod blob;
pub mod store;
