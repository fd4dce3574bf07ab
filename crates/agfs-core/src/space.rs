//! Space, Mount and Checkpoint: the records that are about trees, not in them.

use crate::error::{Error, Result};
use crate::id::{CheckpointId, FamilyId, FileId, MountId, Seq, SpaceId, TimelineId};
use crate::op::Author;
use crate::time::Timestamp;

macro_rules! codes {
    ($($(#[$edoc:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $code:literal,)* })*) => { $(
        $(#[$edoc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every value.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];
            /// The word printed and carried on the wire.
            pub const fn code(self) -> &'static str { match self { $($name::$variant => $code,)* } }
            /// The value of this word; fails with `InvalidArgument` and the list of the words that are accepted.
            pub fn from_code(code: &str) -> Result<Self> {
                match code {
                    $($code => Ok($name::$variant),)*
                    _ => Err(Error::invalid(format!("{code:?} is none of {}", [$($code,)*].join(", ")))),
                }
            }
        }
    )* };
}

codes! {
    /// What a space is for.
    SpaceType {
        /// A person's own files.
        User = "user",
        /// A project that several agents share.
        Project = "project",
        /// One conversation.
        Conversation = "conversation",
        /// One task, for its duration.
        Task = "task",
        /// A team's shared files.
        Team = "team",
    }
    /// Why a checkpoint was made.
    Cause {
        /// Somebody asked.
        Manual = "manual",
        /// Before a task.
        BeforeTask = "before-task",
        /// Before a subtask.
        BeforeSubtask = "before-subtask",
        /// Before a rollback.
        BeforeRollback = "before-rollback",
        /// By a rule of the space.
        Policy = "policy",
    }
    /// How soon other mounts see what was closed.
    Consistency {
        /// At their next open: a commit waits until every other live mount has taken note.
        Cto = "cto",
        /// After the stream's latency: a commit does not wait.
        Relaxed = "relaxed",
    }
    /// When a closed file is safe.
    Durability {
        /// fsync and unmount reach the server's disk; a close is there within a second.
        Auto = "auto",
        /// Each close is on the server's disk before it returns.
        Close = "close",
        /// Each close is in the object store before it returns.
        Object = "object",
    }
}

/// A file tree with a name and a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Its id.
    pub id: SpaceId,
    /// Its name: 1 to 128 of letters, digits, `.`, `_` and `-`, not beginning with `.` or `-`.
    pub name: String,
    /// What it is for.
    pub space_type: SpaceType,
    /// The tenant, empty when there is none.
    pub tenant_code: String,
    /// The owner, empty when there is none.
    pub owner: String,
    /// Spaces forked from one another share it.
    pub family: FamilyId,
    /// The timeline that is its present.
    pub head: TimelineId,
    /// When it was made.
    pub created: Timestamp,
    /// Whether it was deleted (its history stays until it is collected).
    pub deleted: bool,
    /// Shadow rules, one a line, in place of the defaults; `None` for the defaults.
    pub shadow_rules: Option<Vec<String>>,
}

/// The longest name of a space or checkpoint, in bytes.
pub const MAX_LABEL: usize = 128;

/// Checks the name of a space: it must not look like a path or a reference. Fails with `InvalidArgument`.
pub fn check_space_name(name: &str) -> Result<()> {
    let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > MAX_LABEL || name.starts_with(['.', '-']) || !name.chars().all(ok) {
        return Err(Error::invalid(format!(
            "{name:?} is not a name for a space: use 1 to {MAX_LABEL} letters, digits, '.', '_' or '-', not beginning with '.' or '-'"
        )));
    }
    Ok(())
}

/// Checks the name of a checkpoint: it must not be mistaken for another form of reference. Fails with `InvalidArgument`.
pub fn check_checkpoint_name(name: &str) -> Result<()> {
    let bad = |c: char| c.is_control() || matches!(c, '/' | '@');
    if name.is_empty() || name.len() > MAX_LABEL || name.chars().any(bad) || name.contains(':') || name.trim() != name {
        return Err(Error::invalid(format!(
            "{name:?} is not a name for a checkpoint: use 1 to {MAX_LABEL} bytes without '/', ':', '@' or control characters"
        )));
    }
    let reserved = name.parse::<CheckpointId>().is_ok() || name.parse::<crate::id::OpId>().is_ok();
    if reserved {
        return Err(Error::invalid(format!("{name:?} has the form of an id; choose another name")));
    }
    Ok(())
}

/// A name for a point in history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its id.
    pub id: CheckpointId,
    /// The space it was made in.
    pub space: SpaceId,
    /// Its name, unique in the space; empty when it has none.
    pub name: String,
    /// The point.
    pub at: Point,
    /// Why it was made.
    pub cause: Cause,
    /// Who made it.
    pub author: Author,
    /// A remark.
    pub note: String,
    /// Whether it is kept from expiry.
    pub pinned: bool,
    /// When it was made.
    pub created: Timestamp,
}

/// A point in history: everything up to `seq` as seen from `timeline`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    /// The timeline.
    pub timeline: TimelineId,
    /// The last change that counts.
    pub seq: Seq,
}

/// One mount of a space at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its id.
    pub id: MountId,
    /// The space.
    pub space: SpaceId,
    /// The directory that it shows as its root.
    pub root_file_id: FileId,
    /// Where it is mounted, on its host.
    pub mount_path: String,
    /// The tenant, empty when there is none.
    pub tenant_code: String,
    /// The user, empty when unknown.
    pub user_id: String,
    /// The conversation, empty when there is none.
    pub conversation_id: String,
    /// Agent, task and step of what is done through it.
    pub author: Author,
    /// The host's name.
    pub host: String,
    /// How it sees others' changes.
    pub consistency: Consistency,
    /// Whether it can change anything.
    pub read_only: bool,
    /// The last change it has taken note of.
    pub seen: Seq,
}
