//! Bringing what was not seen before into the VersionTree.
//!
//! An answer of the server was read at some point S of the log, the tree is at some point T. While a request is under way
//! the tree keeps the change sets that come. When the answer is there, it waits until the tree has reached S, and is
//! installed with every later change applied; so it does not matter which of the two was faster. What was asked for before
//! a reset is asked again after it.

use super::{Child, Progress, TreeNode, VersionTree};
use crate::upstream::Upstream;
use agfs_client::Listing;
use agfs_core::{Error, ErrorKind, FileId, Result, Seq};
use std::sync::Arc;
use tokio::sync::watch;

/// How often an answer that a reset has overtaken is asked for again.
const ATTEMPTS: usize = 8;

/// Makes the tree keep change sets as long as it lives.
struct InFlight<'a> {
    tree: &'a VersionTree,
    generation: u64,
}

impl<'a> InFlight<'a> {
    fn new(tree: &'a VersionTree) -> Self {
        let mut state = tree.state.write();
        state.in_flight += 1;
        InFlight { tree, generation: state.generation }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut state = self.tree.state.write();
        state.in_flight = state.in_flight.saturating_sub(1);
        state.trim();
    }
}

/// Takes the entry of a load away however the load ends.
struct Leading<'a> {
    tree: &'a VersionTree,
    dir: FileId,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.tree.loads.lock().remove(&self.dir);
    }
}

/// What became of a listing.
enum Installed {
    Done,
    /// The tree was reset since it was asked for.
    Overtaken,
    /// It is of a timeline that the stream has not told of.
    OtherTimeline,
}

enum Role {
    Lead(watch::Sender<Option<Result<()>>>),
    Follow(watch::Receiver<Option<Result<()>>>),
}

impl VersionTree {
    /// The node that `name` leads to in `parent`, loading what is needed.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, `Stale` (no such directory), and what the server's calls fail with.
    pub async fn lookup(&self, up: &dyn Upstream, parent: FileId, name: &[u8]) -> Result<Arc<TreeNode>> {
        for _ in 0..ATTEMPTS {
            match self.child(parent, name) {
                Child::Node(node) => return Ok(node),
                Child::Absent => {
                    return Err(Error::not_found(format!("{parent} has no entry {:?}", String::from_utf8_lossy(name))));
                }
                Child::NotADirectory => return Err(Error::not_a_directory(format!("{parent} is not a directory"))),
                Child::NoParent => drop(self.fetch(up, parent).await?),
                Child::NotLoaded => self.load_dir(up, parent).await?,
                Child::NoNode(id) => match self.fetch(up, id).await {
                    Err(e) if e.kind() == ErrorKind::Stale => {}
                    other => return other,
                },
            }
        }
        Err(overtaken(parent))
    }

    /// The node, fetched if it is not held.
    ///
    /// # Errors
    /// `Stale` when the tree has no such node, and what the server's calls fail with.
    pub async fn fetch(&self, up: &dyn Upstream, id: FileId) -> Result<Arc<TreeNode>> {
        if let Some(node) = self.node(id) {
            return Ok(node);
        }
        for _ in 0..ATTEMPTS {
            let request = InFlight::new(self);
            let (nodes, at) = up.get_nodes(&[id]).await?;
            self.reached(at, request.generation, id).await?;
            let mut state = self.state.write();
            if state.generation != request.generation {
                continue;
            }
            let read = nodes.into_iter().find(|node| node.file_id == id);
            return state
                .settle(id, read, at)
                .ok_or_else(|| Error::stale(format!("the node {id} is not in the tree any more")));
        }
        Err(overtaken(id))
    }

    /// Loads all entries of a directory, unless they are loaded. Those who ask for the same one wait for one request.
    ///
    /// # Errors
    /// `Stale` when the tree has no such directory, `NotADirectory`, and what the server's calls fail with.
    pub async fn load_dir(&self, up: &dyn Upstream, dir: FileId) -> Result<()> {
        for _ in 0..ATTEMPTS {
            if self.is_loaded(dir) {
                return Ok(());
            }
            match self.role(dir) {
                Role::Lead(done) => {
                    let leading = Leading { tree: self, dir };
                    let result = self.lead(up, dir).await;
                    drop(leading);
                    done.send_replace(Some(result.clone()));
                    return result;
                }
                Role::Follow(mut done) => {
                    // An error of the channel means that the leader was cancelled: another takes over.
                    let told = done.wait_for(Option::is_some).await.ok().and_then(|result| result.clone());
                    told.unwrap_or(Ok(()))?;
                }
            }
        }
        Err(overtaken(dir))
    }

    fn role(&self, dir: FileId) -> Role {
        let mut loads = self.loads.lock();
        if let Some(load) = loads.get(&dir) {
            return Role::Follow(load.clone());
        }
        let (done, follow) = watch::channel(None);
        loads.insert(dir, follow);
        Role::Lead(done)
    }

    async fn lead(&self, up: &dyn Upstream, dir: FileId) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let request = InFlight::new(self);
            let listing = match up.list_dir(dir).await {
                Err(e) if e.kind() == ErrorKind::NotFound => return Err(Error::stale(e.message())),
                other => other?,
            };
            self.reached(listing.at.seq, request.generation, dir).await?;
            match self.install(listing, request.generation) {
                Installed::Done => return Ok(()),
                Installed::Overtaken => {}
                Installed::OtherTimeline => self.reset_of(request.generation, dir).await?,
            }
        }
        Err(overtaken(dir))
    }

    fn install(&self, listing: Listing, generation: u64) -> Installed {
        let mut state = self.state.write();
        if state.generation != generation {
            return Installed::Overtaken;
        }
        if state.head.is_some_and(|head| head.timeline != listing.at.timeline) {
            return Installed::OtherTimeline;
        }
        if !state.dirs.contains_key(&listing.dir.file_id) {
            state.install(listing.dir, listing.entries, listing.at.seq);
        }
        Installed::Done
    }

    fn is_loaded(&self, dir: FileId) -> bool {
        self.state.read().dirs.contains_key(&dir)
    }

    /// Waits until the tree has seen `seq`, or has been reset.
    async fn reached(&self, seq: Seq, generation: u64, what: FileId) -> Result<()> {
        self.until(what, |(g, seen)| *g != generation || *seen >= seq).await
    }

    /// Waits until the tree has been reset: the server has another timeline already.
    async fn reset_of(&self, generation: u64, what: FileId) -> Result<()> {
        self.until(what, |(g, _)| *g != generation).await
    }

    async fn until(&self, what: FileId, mut there: impl FnMut(&Progress) -> bool) -> Result<()> {
        let mut progress = self.progress.subscribe();
        if there(&progress.borrow_and_update()) {
            return Ok(());
        }
        match tokio::time::timeout(self.patience, progress.wait_for(|p| there(p))).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Error::unavailable(format!(
                "the push stream did not reach the point at which {what} was read within {:?}",
                self.patience
            ))),
        }
    }
}

fn overtaken(what: FileId) -> Error {
    Error::unavailable(format!("{what} could not be read: the space changed its state {ATTEMPTS} times meanwhile"))
}
