//! Counts by name, for the status of a mount.

use std::sync::atomic::{AtomicU64, Ordering};

/// Declares an enum of things to count, and the table of their names.
macro_rules! counted {
    ($($(#[$edoc:meta])* $name:ident { $($variant:ident = $text:literal,)* })*) => { $(
        $(#[$edoc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each is named after the request or call that it counts")]
        pub enum $name { $($variant,)* }

        impl $name {
            /// All names, in order of declaration.
            pub const NAMES: &'static [&'static str] = &[$($text,)*];
        }
    )* };
}

counted! {
    /// File system requests.
    Verb {
        Access = "access", CopyFileRange = "copy_file_range", Create = "create", Fallocate = "fallocate", Flush = "flush",
        Forget = "forget", Fsync = "fsync", Fsyncdir = "fsyncdir", Getattr = "getattr", Getxattr = "getxattr", Ioctl = "ioctl", Link = "link",
        Listxattr = "listxattr", Lookup = "lookup", Lseek = "lseek", Mkdir = "mkdir", Mknod = "mknod", Open = "open",
        Opendir = "opendir", Read = "read", Readdir = "readdir", Readdirplus = "readdirplus", Readlink = "readlink",
        Release = "release", Releasedir = "releasedir", Removexattr = "removexattr", Rename = "rename", Rmdir = "rmdir",
        Setattr = "setattr", Setxattr = "setxattr", Statfs = "statfs", Symlink = "symlink", Unlink = "unlink",
        Write = "write",
    }
    /// Calls to the server.
    Call {
        Apply = "apply", Capacity = "capacity", GetChunk = "get_chunk", GetNodes = "get_nodes", ListDir = "list_dir",
        ManifestOf = "manifest_of", PutChunks = "put_chunks", Sync = "sync",
    }
}

/// One count for each name of a table.
#[derive(Debug)]
pub struct Counters {
    names: &'static [&'static str],
    counts: Box<[AtomicU64]>,
}

impl Counters {
    /// All zero.
    pub fn new(names: &'static [&'static str]) -> Self {
        Counters { names, counts: names.iter().map(|_| AtomicU64::new(0)).collect() }
    }

    /// One more of the thing with this number in the table.
    pub fn count(&self, which: usize) {
        if let Some(count) = self.counts.get(which) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counts with their names.
    pub fn snapshot(&self) -> Vec<(&'static str, u64)> {
        self.names.iter().zip(&self.counts).map(|(name, count)| (*name, count.load(Ordering::Relaxed))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_to_their_names_in_order() {
        let c = Counters::new(Call::NAMES);
        c.count(Call::ListDir as usize);
        c.count(Call::ListDir as usize);
        assert!(c.snapshot().contains(&("list_dir", 2)));
        for names in [Verb::NAMES, Call::NAMES] {
            assert!(names.is_sorted());
        }
        assert_eq!(Verb::NAMES[Verb::Write as usize], "write");
    }
}
