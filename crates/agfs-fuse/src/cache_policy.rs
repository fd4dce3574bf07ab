//! What the kernel may keep, and for how long. Pure, and the only place that decides it.
//!
//! Everything kept is kept true by the stream: a change by somebody else bumps the dentry epoch and invalidates attributes
//! before it is acknowledged. So lifetimes are long where those messages exist, and zero where they do not. That a name does
//! not exist is never kept: the file system knows it from memory.

use std::time::Duration;

/// As good as for ever; the messages end it.
const LONG: Duration = Duration::from_secs(24 * 3_600);

/// How long a name leads where it leads.
pub const fn entry_ttl(kernel_has_epoch: bool) -> Duration {
    if kernel_has_epoch { LONG } else { Duration::ZERO }
}

/// How long attributes hold. They are invalidated by a message that every kernel has.
pub const fn attr_ttl() -> Duration {
    LONG
}

/// How long the attributes of a shadow's inside hold: nobody else changes it.
pub const fn shadow_ttl() -> Duration {
    Duration::from_secs(1)
}

/// What is known when a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Whether the handle can write.
    pub writes: bool,
    /// The version that the kernel's pages belong to, if they belong to one.
    pub pages: Option<u64>,
    /// The version that reads are answered from (with this mount's own uncommitted writes on top).
    pub version_no: u64,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenAs {
    /// The kernel keeps the pages it has.
    pub keep_cache: bool,
    /// The kernel need not say when a descriptor is closed.
    pub no_flush: bool,
}

/// How to open a file.
pub const fn open(opening: Opening) -> OpenAs {
    let keep_cache = match opening.pages {
        Some(pages) => pages == opening.version_no,
        None => false,
    };
    OpenAs { keep_cache, no_flush: !opening.writes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_only_where_the_kernel_can_be_told() {
        assert_eq!((entry_ttl(true), entry_ttl(false)), (LONG, Duration::ZERO));
    }

    #[test]
    fn attributes_are_kept_and_invalidated() {
        assert_eq!(attr_ttl(), LONG);
        assert_eq!(shadow_ttl(), Duration::from_secs(1));
    }

    #[test]
    fn pages_are_kept_only_when_they_belong_to_the_version_that_is_opened() {
        let row = |pages, version_no| open(Opening { writes: false, pages, version_no }).keep_cache;
        assert!(row(Some(3), 3));
        assert!(row(Some(0), 0), "a new file's pages are those of its writer");
        assert!(!row(Some(2), 3), "pages of an older version go");
        assert!(!row(Some(4), 3), "after a rollback the numbers go back");
        assert!(!row(None, 3), "pages of no single version go");
        assert!(!row(None, 0));
    }

    #[test]
    fn only_writers_must_say_when_they_close() {
        for (writes, no_flush) in [(true, false), (false, true)] {
            assert_eq!(open(Opening { writes, pages: None, version_no: 1 }).no_flush, no_flush);
        }
    }
}
