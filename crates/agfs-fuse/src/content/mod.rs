//! The contents of files on this mount: reads of committed versions, and writes until they are committed.
//!
//! One [`InodeData`] for each file that is open or has uncommitted writes, shared by all handles. Names and directories are
//! not known here.

mod chunker;
mod commit;
mod extents;
mod inode;
mod local;
mod read;
mod scratch;
mod table;
mod write;

pub use inode::{InodeData, Overlay};
pub use scratch::ScratchDir;
pub use table::InodeTable;
pub use write::Edit;
pub(crate) use write::without_set_ids;
