//! What the server does, one file per family of verbs, blind to protocols: every entrance ends here.
//!
//! Wire messages do not come in here; conversions and status codes are the entrances' business.

mod apply;
mod checkpoint;
mod dedup;
mod diff;
mod file_log;
mod flatten;
mod history;
mod log;
mod read;
mod reference;
mod restore;
mod rollback;
mod space;

pub use apply::{Applied, Durable, Held};
pub use checkpoint::NewCheckpoint;
pub use file_log::FileVersion;
pub use history::HistoryResult;
pub use log::{LogFilter, LogLine};
pub use read::{Listing, Resolved};
pub use space::{NewSpace, SpaceInfo};
