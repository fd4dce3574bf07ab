//! How trees are kept in the ordered store: keys, records, versioned reading, and the transaction that applies operations.
//!
//! Nothing here knows who calls, locks a space, or tells anybody of changes.

pub mod alloc;
pub mod keys;
pub mod paths;
pub mod record;
pub mod segments;
pub mod timelines;
pub mod txn;
pub mod view;
