//! Gathers the operations of a copy into a space and applies them in batches.

use super::{CopyStats, Target};
use crate::chunking::EncodedChunk;
use crate::connection::Connection;
use crate::files::owner;
use crate::tree::{Durable, INLINE_CHUNKS};
use agfs_core::attr::AttrChange;
use agfs_core::manifest::Extent;
use agfs_core::node::{Body, Node, NodeKind, Xattrs};
use agfs_core::op::{Author, ContentEdit, NewNode, Op, TimedOp, XattrMode};
use agfs_core::{Error, FileId, Result, Timestamp};
use std::ops::Range;

/// The most operations in one batch.
const BATCH: usize = 1_024;
/// How many ids are reserved at once.
const IDS: u32 = 1_024;

/// Content with its metadata, on its way into a space.
pub(super) struct NewFile {
    pub extents: Vec<Extent>,
    /// Chunks that the server may not have; what was sent ahead is not among them.
    pub chunks: Vec<EncodedChunk>,
    pub mode: u32,
    pub mtime: Timestamp,
}

/// The operations of one copy. Ends with [`Builder::finish`].
pub(super) struct Builder<'a> {
    conn: &'a Connection,
    space: &'a str,
    author: &'a Author,
    ids: Range<u64>,
    ops: Vec<TimedOp>,
    chunks: Vec<EncodedChunk>,
    held: usize,
    /// Times of directories, set when nothing more goes into them.
    times: Vec<(FileId, Timestamp)>,
    pub stats: CopyStats,
}

impl<'a> Builder<'a> {
    pub fn new(conn: &'a Connection, space: &'a str, author: &'a Author) -> Self {
        Builder {
            conn,
            space,
            author,
            ids: 0..0,
            ops: Vec::new(),
            chunks: Vec::new(),
            held: 0,
            times: Vec::new(),
            stats: CopyStats::default(),
        }
    }

    async fn id(&mut self) -> Result<FileId> {
        if self.ids.is_empty() {
            self.ids = self.conn.reserve_ids(self.space, IDS).await?;
        }
        self.ids.next().map(FileId).ok_or_else(|| Error::internal("an empty run of file ids"))
    }

    fn push(&mut self, op: Op) {
        self.ops.push(TimedOp { time: self.conn.now(), op });
    }

    /// Applies what is gathered when it is enough for a batch.
    async fn settle(&mut self) -> Result<()> {
        if self.ops.len() >= BATCH || self.held >= INLINE_CHUNKS { self.flush(Durable::No).await } else { Ok(()) }
    }

    async fn flush(&mut self, durable: Durable) -> Result<()> {
        self.held = 0;
        let (ops, chunks) = (std::mem::take(&mut self.ops), std::mem::take(&mut self.chunks));
        if ops.is_empty() && durable == Durable::No {
            return Ok(());
        }
        self.conn.apply(self.space, self.author, ops, chunks, durable).await.map(|_| ())
    }

    /// Makes room for something that is not a directory. Fails with `IsADirectory` when a directory is there.
    fn clear(&mut self, target: &Target) -> Result<()> {
        match &target.existing {
            Some(node) if node.kind().is_dir() => {
                Err(Error::is_a_directory(format!("{:?} is a directory; it is not replaced", target.name)))
            }
            Some(_) => {
                self.push(Op::Unlink { parent: target.parent, name: target.name.clone() });
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn create(&mut self, target: &Target, node: NewNode, mode: u32) -> Result<FileId> {
        let file_id = self.id().await?;
        let (uid, gid) = owner();
        let (parent, name) = (target.parent, target.name.clone());
        self.push(Op::Create { parent, name, file_id, node, mode, uid, gid });
        Ok(file_id)
    }

    /// A regular file; one that exists gets new content.
    pub async fn file(&mut self, target: &Target, file: NewFile) -> Result<FileId> {
        let size: u64 = file.extents.iter().map(|e| e.len).sum();
        let adding: usize = file.chunks.iter().map(|c| c.data.len()).sum();
        if self.held + adding > INLINE_CHUNKS {
            self.flush(Durable::No).await?;
        }
        self.held += adding;
        self.chunks.extend(file.chunks);
        let (file_id, mode) = match &target.existing {
            Some(node) if node.kind() == NodeKind::File => (node.file_id, Some(file.mode)),
            _ => {
                self.clear(target)?;
                (self.create(target, NewNode::File, file.mode).await?, None)
            }
        };
        let edit = ContentEdit::Whole(file.extents);
        self.push(Op::SetContent { file_id, edit, mtime: file.mtime, mode });
        self.stats.files += 1;
        self.stats.bytes += size;
        self.settle().await?;
        Ok(file_id)
    }

    /// Another name for a file that this copy has made.
    pub async fn hard_link(&mut self, target: &Target, file_id: FileId) -> Result<()> {
        if target.existing.as_ref().is_some_and(|node| node.file_id == file_id) {
            return Ok(());
        }
        self.clear(target)?;
        self.push(Op::Link { file_id, parent: target.parent, name: target.name.clone() });
        self.stats.files += 1;
        self.settle().await
    }

    pub async fn symlink(&mut self, target: &Target, to: Vec<u8>, mtime: Timestamp) -> Result<()> {
        self.stats.symlinks += 1;
        if let Some(Body::Symlink(before)) = target.existing.as_ref().map(|node| &node.body)
            && **before == *to
        {
            return Ok(());
        }
        self.clear(target)?;
        let file_id = self.create(target, NewNode::Symlink(to), 0o777).await?;
        let change = AttrChange { mtime: Some(mtime), ..AttrChange::default() };
        self.push(Op::SetAttr { file_id, change });
        self.settle().await
    }

    pub async fn special(&mut self, target: &Target, kind: NodeKind, rdev: u32, mode: u32) -> Result<()> {
        self.clear(target)?;
        self.create(target, NewNode::Special { kind, rdev }, mode).await?;
        self.settle().await
    }

    /// A directory; one that exists is used as it is. Says whether it is new.
    pub async fn dir(&mut self, target: &Target, mode: u32, mtime: Timestamp) -> Result<(FileId, bool)> {
        self.stats.dirs += 1;
        match &target.existing {
            Some(node) if node.kind().is_dir() => {
                self.times.push((node.file_id, mtime));
                Ok((node.file_id, false))
            }
            Some(_) => Err(Error::not_a_directory(format!("{:?} is not a directory; it is not replaced", target.name))),
            None => {
                let id = self.create(target, NewNode::Dir { shadow: false }, mode).await?;
                self.times.push((id, mtime));
                self.settle().await?;
                Ok((id, true))
            }
        }
    }

    pub fn xattrs(&mut self, file_id: FileId, xattrs: &Xattrs) {
        for (name, value) in xattrs {
            let (name, value) = (name.clone(), value.clone());
            self.push(Op::SetXattr { file_id, name, value, mode: XattrMode::Set });
        }
    }

    /// Applies the rest; returns when all of the copy is on the server's disk.
    pub async fn finish(mut self) -> Result<CopyStats> {
        for (file_id, mtime) in std::mem::take(&mut self.times) {
            let change = AttrChange { mtime: Some(mtime), ..AttrChange::default() };
            self.push(Op::SetAttr { file_id, change });
            self.settle().await?;
        }
        self.flush(Durable::Disk).await?;
        Ok(self.stats)
    }
}

impl Target {
    /// The entry `name` of a directory that has these entries.
    pub(super) fn entry(parent: FileId, name: agfs_core::Name, existing: Option<Node>) -> Target {
        Target { parent, name, existing }
    }
}
