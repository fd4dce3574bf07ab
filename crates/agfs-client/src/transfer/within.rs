//! Copies within a space: new nodes with the same contents.

use super::builder::{Builder, NewFile};
use super::{CopyStats, Entries, Target, check_source, frozen};
use crate::connection::Connection;
use crate::paths::show;
use agfs_core::node::{Body, Node};
use agfs_core::op::Author;
use agfs_core::{FileId, Result};
use rustc_hash::FxHashMap;

impl Connection {
    /// Copies what is at `from` (at the reference `at`, empty: now) to `to` in the same space; into it when that is a directory.
    /// A directory only with `recursive`; it is copied as it was when the copy began, even into itself. Contents are shared,
    /// no bytes move. Fails with `NotFound`, `IsADirectory`, `NotADirectory`.
    pub async fn copy_within(
        &self,
        space: &str,
        at: &str,
        from: &[u8],
        to: &[u8],
        recursive: bool,
        author: &Author,
    ) -> Result<CopyStats> {
        let source = self.place(space, at, from, !recursive).await?;
        let (frozen, name) = (frozen(at, &source), source.name.clone());
        let node = source.existing(from)?;
        check_source(&node, &show(from), recursive)?;
        let target = self.copy_target(space, to, name.as_ref()).await?;
        let mut copy = Within {
            conn: self,
            space,
            at: &frozen,
            builder: Builder::new(self, space, author),
            linked: FxHashMap::default(),
        };
        copy.tree(node, target).await.map_err(|e| e.context(format!("copying {} to {}", show(from), show(to))))?;
        copy.builder.finish().await
    }
}

struct Within<'a> {
    conn: &'a Connection,
    space: &'a str,
    at: &'a str,
    builder: Builder<'a>,
    /// Files with several links that were copied already.
    linked: FxHashMap<FileId, FileId>,
}

impl Within<'_> {
    async fn tree(&mut self, root: Node, target: Target) -> Result<()> {
        let mut todo = vec![(root, target)];
        while let Some((node, target)) = todo.pop() {
            if node.is_shadow() {
                self.builder.stats.skipped += 1;
            } else if node.kind().is_dir() {
                let (id, new) = self.builder.dir(&target, node.attr.mode, node.attr.mtime).await?;
                if let (true, Some(xattrs)) = (new, &node.xattrs) {
                    self.builder.xattrs(id, xattrs);
                }
                let mut there = if new { Entries::new() } else { self.conn.entries_of(self.space, id).await? };
                let listing = self.conn.list_dir(self.space, self.at, node.file_id).await?;
                for (name, node) in listing.entries.into_iter().rev() {
                    let existing = there.remove(&name);
                    todo.push((node, Target::entry(id, name, existing)));
                }
            } else {
                self.leaf(&node, &target).await?;
            }
        }
        Ok(())
    }

    async fn leaf(&mut self, node: &Node, target: &Target) -> Result<()> {
        let (mode, mtime) = (node.attr.mode, node.attr.mtime);
        match &node.body {
            Body::File(content) => {
                if let Some(&copied) = self.linked.get(&node.file_id) {
                    return self.builder.hard_link(target, copied).await;
                }
                let extents = self.conn.manifest_of(content).await?.extents().to_vec();
                let id = self.builder.file(target, NewFile { extents, chunks: Vec::new(), mode, mtime }).await?;
                if let Some(xattrs) = &node.xattrs {
                    self.builder.xattrs(id, xattrs);
                }
                if !node.more_links.is_empty() {
                    self.linked.insert(node.file_id, id);
                }
                Ok(())
            }
            Body::Symlink(to) => self.builder.symlink(target, to.to_vec(), mtime).await,
            Body::Special { kind, rdev } => self.builder.special(target, *kind, *rdev, mode).await,
            Body::Dir(_) => Ok(()),
        }
    }
}
