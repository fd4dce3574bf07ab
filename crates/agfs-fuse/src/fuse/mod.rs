//! The kernel's adapter: unpacks a request, calls the file system, packs the reply. Decides nothing.

mod adapter;
mod convert;
mod init;
mod run;

pub use init::{Options, mount_options};

use crate::counters::{Counters, Verb};
use crate::errno;
use crate::vfs::{Caller, Entry, Vfs};
use agfs_core::{Error, ErrorKind};
use convert::Numbers;
use fuser::{Errno, Generation, ReplyEntry, Request};
use std::ffi::OsStr;
use std::sync::Arc;
use tokio::runtime::Handle;

/// File ids are never used again, so generations say nothing.
const GENERATION: Generation = Generation(0);

/// The adapter of one mount.
pub struct Adapter {
    vfs: Arc<Vfs>,
    runtime: Handle,
    numbers: Numbers,
    requests: Arc<Counters>,
}

impl Adapter {
    /// An adapter that runs what must wait on `runtime`.
    pub fn new(vfs: Arc<Vfs>, runtime: Handle, requests: Arc<Counters>) -> Self {
        let numbers = Numbers { root: vfs.root() };
        Adapter { vfs, runtime, numbers, requests }
    }

    fn count(&self, verb: Verb) {
        self.requests.count(verb as usize);
    }
}

/// The errno of an error; what an operator should know is logged.
fn errno_of(verb: Verb, ino: u64, error: &Error) -> Errno {
    let kind = error.kind();
    let name = Verb::NAMES.get(verb as usize).copied().unwrap_or("request");
    match kind {
        ErrorKind::Corrupt => tracing::error!(request = name, ino, "damaged content: {error}"),
        _ if errno::is_news(kind) => tracing::warn!(request = name, ino, kind = kind.code(), "{error}"),
        _ => tracing::debug!(request = name, ino, kind = kind.code(), "{error}"),
    }
    Errno::from_i32(errno::of_kind(kind))
}

fn caller(req: &Request) -> Caller {
    Caller { uid: req.uid(), gid: req.gid() }
}

fn bytes(name: &OsStr) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    name.as_bytes().to_vec()
}

impl Numbers {
    fn reply_entry(self, reply: ReplyEntry, entry: &Entry) {
        reply.entry_with_ttls(&entry.attr_ttl, &entry.entry_ttl, &self.attr(&entry.stat), GENERATION);
    }
}
