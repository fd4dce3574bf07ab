//! Differential tests of file systems: a seeded generator of file operations, targets that do them (a real directory, a
//! model, anything behind a kernel's requests), a comparison after each step, and a shrinker for what differs.
//!
//! For tests only: nothing that users run depends on it, and it knows no other crate of this workspace. Holds no opinion of
//! its own about what is right; where two targets may differ, a list says so with the reason (`accepted`).

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod accepted;
pub mod compare;
pub mod found;
pub mod generate;
pub mod judge;
pub mod kernel;
pub mod model;
pub mod op;
pub mod outcome;
pub mod posix;
pub mod run;
pub mod shrink;
pub mod target;
pub mod trial;

pub use generate::{Generator, Profile};
pub use kernel::Kernel;
pub use model::Model;
pub use op::{Op, Script};
pub use outcome::{Outcome, Stat};
pub use posix::Posix;
pub use run::{Mismatch, Run};
pub use target::{Side, Target};
pub use trial::Trial;
