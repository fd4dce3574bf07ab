//! FileEvent: one record of the log, which is event feed, audit trail and history in one.
//!
//! A record names nodes by id and places by (directory, name); whoever shows it looks the path up at its seq.

use crate::id::{FileId, OpId, Seq};
use crate::node::{Link, NodeKind};
use crate::op::Author;
use crate::time::Timestamp;

macro_rules! event_kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal;)*) => {
        /// What happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EventKind { $($(#[$doc])* $kind,)* }

        impl EventKind {
            /// Every kind.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$kind,)*];
            /// The word printed and carried on the wire.
            pub const fn code(self) -> &'static str { match self { $(EventKind::$kind => $code,)* } }
            /// The kind of this word, if it is one.
            pub fn from_code(code: &str) -> Option<Self> { match code { $($code => Some(EventKind::$kind),)* _ => None } }
        }
    };
}

event_kinds! {
    /// A node was made.
    Create = "create";
    /// A file got new content.
    Write = "write";
    /// A node was moved, perhaps over another.
    Rename = "rename";
    /// Two nodes changed places.
    Exchange = "exchange";
    /// A name was taken away.
    Delete = "delete";
    /// Attributes or extended attributes changed.
    Attr = "attr";
    /// A hard link was added.
    Link = "link";
    /// A node was brought back, or put back, as it was at an earlier point.
    Restore = "restore";
    /// The head moved to a new timeline that branches at an earlier point.
    Rollback = "rollback";
    /// A rollback or restore was taken back.
    Undo = "undo";
    /// What was taken back was done again.
    Redo = "redo";
    /// The space began as a fork.
    Fork = "fork";
}

/// What happened to which node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// To which node (the root for events of the whole space).
    pub file_id: FileId,
    /// What kind of node it is.
    pub node_kind: NodeKind,
    /// The place concerned: of the node after the event, or of the name taken away.
    pub link: Option<Link>,
    /// For a rename or exchange: the place before.
    pub from: Option<Link>,
    /// For a rename over another node, or an exchange: that other node.
    pub replaced: Option<FileId>,
    /// The node's `version_no` after the event.
    pub version_no: u64,
}

/// An event in its place in history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Its sequence number.
    pub seq: Seq,
    /// The server's time, which never goes back within a space.
    pub time: Timestamp,
    /// The call that made it.
    pub op_id: OpId,
    /// Who.
    pub author: Author,
    /// What.
    pub event: Event,
}
