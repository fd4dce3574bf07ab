//! Copying trees: within a space (no bytes move), from the local disk into a space, and out of it.
//!
//! Modes, modification times, symbolic links and hard links are kept; owners are the user of this process, as with `cp -r`.

mod builder;
mod download;
mod upload;
mod within;

pub(crate) use upload::local_error;

use crate::connection::Connection;
use crate::paths::Place;
use agfs_core::node::{Body, Node};
use agfs_core::{Error, FileId, Name, Result};
use std::collections::HashMap;

/// What a copy did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStats {
    /// Regular files copied, hard links included.
    pub files: u64,
    /// Directories copied, those that were there already included.
    pub dirs: u64,
    /// Symbolic links copied.
    pub symlinks: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// What was left out: sockets, pipes, devices, shadow directories.
    pub skipped: u64,
}

/// Where a copy goes: a name in a directory, and what has that name now.
struct Target {
    parent: FileId,
    name: Name,
    existing: Option<Node>,
}

/// What a directory in the space has, for a copy into it.
type Entries = HashMap<Name, Node>;

impl Connection {
    /// Into a directory that exists under the source's name, otherwise to the path itself; the entries of a source without a
    /// name go into the directory.
    async fn copy_target(&self, space: &str, to: &[u8], source: Option<&Name>) -> Result<Target> {
        let place = self.place(space, "", to, true).await?;
        match (&place.node, source) {
            (Some(dir), Some(name)) if dir.kind().is_dir() => {
                let existing = self.entries_of(space, dir.file_id).await?.remove(name);
                Ok(Target { parent: dir.file_id, name: name.clone(), existing })
            }
            // A source without a name (`.`, the root of a space): its entries go into the directory itself, which exists, so that
            // the name here is for messages only.
            (Some(dir), None) if dir.kind().is_dir() => {
                let name = place.name.clone().map_or_else(|| Name::new(b"root"), Ok)?;
                Ok(Target { parent: dir.file_id, name, existing: place.node })
            }
            _ => {
                let (parent, name) = place.entry(to)?;
                Ok(Target { parent, name, existing: place.node })
            }
        }
    }

    async fn entries_of(&self, space: &str, dir: FileId) -> Result<Entries> {
        Ok(self.list_dir(space, "", dir).await?.entries.into_iter().collect())
    }
}

/// A reference to the state in which a source was looked up, so that a whole tree is read in one state.
fn frozen(at: &str, place: &Place) -> String {
    if at.is_empty() { place.at.seq.to_string() } else { at.to_owned() }
}

/// Fails unless the source may be copied as asked.
fn check_source(node: &Node, shown: &str, recursive: bool) -> Result<()> {
    match &node.body {
        Body::Dir(_) if !recursive => {
            Err(Error::is_a_directory(format!("{shown} is a directory: copy it recursively, or name a file in it")))
        }
        _ => Ok(()),
    }
}
