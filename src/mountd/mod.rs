//! What runs in a mount process besides the file system: its control socket, its signals, going to the background, and
//! an end in which nothing is lost in silence.

pub mod busy;
pub mod control;
pub mod daemon;
mod serve;
mod signals;
pub mod socket;

pub use serve::{Ended, Served, serve};
pub use signals::Signals;
