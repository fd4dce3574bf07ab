//! The words between `agfs umount|sync|status` and a mount process: one JSON line each way. Both ends are this program;
//! a mount process may be older or newer than the command, so unknown keys are passed over.

use agfs_core::{Error, ErrorKind, Result};
use agfs_fuse::{Pending, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is asked of a mount process.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(tag = "cmd", rename_all = "snake_case")]
pub enum Request {
    /// How it does.
    Status,
    /// Everything written so far made durable on the server.
    Sync {
        /// In the object store too.
        object: bool,
        /// How long it may take.
        timeout_ms: u64,
    },
    /// Drain, then unmount; stays mounted when it cannot.
    Umount {
        /// How long the draining may take.
        timeout_ms: u64,
    },
}

/// The answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply<T> {
    /// It went well.
    Ok(T),
    /// It did not.
    Error {
        /// The kind's code.
        code: String,
        /// What was wrong.
        message: String,
    },
}

impl<T> Reply<T> {
    /// The answer that a result makes.
    pub fn new(result: Result<T>) -> Self {
        match result {
            Ok(value) => Reply::Ok(value),
            Err(e) => Reply::Error { code: e.kind().code().to_owned(), message: e.message().to_owned() },
        }
    }

    /// The result that was sent.
    pub fn into_result(self) -> Result<T> {
        match self {
            Reply::Ok(value) => Ok(value),
            Reply::Error { code, message } => {
                Err(Error::new(ErrorKind::from_code(&code).unwrap_or(ErrorKind::Internal), message))
            }
        }
    }
}

/// An answer without content.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Done {}

/// How a mount does.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct StatusShape {
    /// The space's name.
    pub space: String,
    /// The space's id.
    pub space_id: String,
    /// The mount's id at the server.
    pub mount: String,
    /// Where it is mounted.
    pub path: String,
    /// The mount process.
    pub pid: u32,
    /// Whether the push stream is up.
    pub connected: bool,
    /// The last change that the tree shows.
    pub seen_seq: u64,
    /// Files with writes that are not committed.
    pub dirty_files: u64,
    /// Bytes in them.
    pub dirty_bytes: u64,
    /// Nodes held in memory.
    pub cached_nodes: u64,
    /// Directories held whole.
    pub loaded_dirs: u64,
    /// The chunk cache.
    pub cache: CacheShape,
    /// What lies outside the tree.
    pub shadow: ShadowShape,
    /// How often each request of the kernel came.
    pub requests: BTreeMap<String, u64>,
    /// How often each call was made to the server.
    pub upstream_calls: BTreeMap<String, u64>,
}

/// The chunk cache of a mount.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct CacheShape {
    /// Reads answered from memory.
    pub memory_hits: u64,
    /// Reads answered from the disk.
    pub disk_hits: u64,
    /// Reads that went to the server.
    pub misses: u64,
    /// Damaged entries that were dropped.
    pub damaged: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Bytes in memory.
    pub memory_bytes: u64,
}

/// The shadow directories of a mount.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ShadowShape {
    /// Directories.
    pub dirs: u64,
    /// Files in them.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
}

impl From<Status> for StatusShape {
    fn from(status: Status) -> Self {
        let counts = |list: Vec<(&'static str, u64)>| list.into_iter().map(|(k, n)| (k.to_owned(), n)).collect();
        StatusShape {
            space: status.space_name,
            space_id: status.space.to_string(),
            mount: status.mount.to_string(),
            path: status.mountpoint.to_string_lossy().into_owned(),
            pid: std::process::id(),
            connected: status.connected,
            seen_seq: status.seen.0,
            dirty_files: status.dirty_files,
            dirty_bytes: status.dirty_bytes,
            cached_nodes: status.cached_nodes,
            loaded_dirs: status.loaded_dirs,
            cache: CacheShape {
                memory_hits: status.cache.memory_hits,
                disk_hits: status.cache.disk_hits,
                misses: status.cache.misses,
                damaged: status.cache.damaged,
                disk_bytes: status.cache.disk_bytes,
                memory_bytes: status.cache.memory_bytes,
            },
            shadow: ShadowShape { dirs: status.shadow.dirs, files: status.shadow.files, bytes: status.shadow.bytes },
            requests: counts(status.requests),
            upstream_calls: counts(status.upstream_calls),
        }
    }
}

/// What could not be drained, as an error that says what is left, where, and why.
pub fn not_drained(pending: &Pending) -> Error {
    use crate::output::{count, size};
    let mut message = format!(
        "not everything could be sent in time: {} ({}) left in {}",
        count(pending.files, "file", "files"),
        size(pending.bytes),
        pending.scratch.display()
    );
    for (path, why) in pending.paths.iter().take(10) {
        message.push_str(&format!("; {path}: {why}"));
    }
    let more = pending.paths.len().saturating_sub(10);
    if more > 0 {
        message.push_str(&format!("; and {more} more"));
    }
    if !pending.reason.is_empty() {
        message.push_str(&format!("; the server: {}", pending.reason));
    }
    Error::new(ErrorKind::TimedOut, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_go_both_ways() {
        for request in
            [Request::Status, Request::Sync { object: true, timeout_ms: 5 }, Request::Umount { timeout_ms: 7 }]
        {
            let text = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request, "{text}");
        }
        let text = serde_json::to_string(&Reply::<Done>::new(Err(Error::refused("no")))).unwrap();
        assert_eq!(text, r#"{"error":{"code":"refused","message":"no"}}"#);
        let back: Reply<Done> = serde_json::from_str(&text).unwrap();
        assert_eq!(back.into_result().unwrap_err(), Error::refused("no"));
        assert!(serde_json::from_str::<StatusShape>(r#"{"space":"s","later":1}"#).is_ok());
    }

    #[test]
    fn what_is_left_is_said() {
        let pending = Pending {
            files: 2,
            bytes: 2048,
            scratch: "/cache/x".into(),
            paths: vec![("/a".into(), "no server".into())],
            reason: "disk full".into(),
        };
        let error = not_drained(&pending);
        for part in ["2 files", "2.0 KiB", "/cache/x", "/a: no server", "disk full"] {
            assert!(error.message().contains(part), "{error}");
        }
    }
}
