//! What the system tests share: a server with its mounts and command line ([`farm`]), programs run under a deadline
//! ([`run`]), and whole trees filled, read and compared ([`tree`]). Holds no expectation of its own about AGFS.

// Every integration binary compiles this room for itself and uses its own part of it.
#![allow(dead_code)]

pub mod farm;
pub mod process;
pub mod run;
pub mod tree;

pub use farm::{Farm, long, program};
