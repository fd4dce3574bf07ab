//! A transaction: operations applied one after another on top of a view, gathered into one atomic batch.
//!
//! It reads its own changes. The caller holds the space's write lock from before the transaction's first read until the
//! batch is written; nothing here locks or writes.

use super::view::View;
use super::{keys, record, segments};
use crate::store::{Batch, Mutation, Read};
use agfs_core::apply::Tree;
use agfs_core::change::{Change, Step};
use agfs_core::error::Result;
use agfs_core::event::LogRecord;
use agfs_core::id::{ChunkHash, FileId, OpId, Seq, TimelineId};
use agfs_core::manifest::Manifest;
use agfs_core::name::Name;
use agfs_core::node::{Body, Content, Node, NodeKind};
use agfs_core::op::Author;
use agfs_core::timeline::Lineage;
use agfs_core::{Error, Timestamp};
use rustc_hash::FxHashMap;

/// A directory's entries are written afresh when this many names more than half of the living are dead: a listing then
/// never costs more than a small multiple of what it returns, and a deletion pays for at most two moved entries.
const DEAD_ALLOWED: u64 = 256;

/// Who makes the changes of a transaction, and when.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The call.
    pub op_id: OpId,
    /// Who.
    pub author: Author,
    /// The server's time.
    pub time: Timestamp,
}

/// Operations applied but not yet written.
pub struct Txn<'a> {
    read: &'a dyn Read,
    lineage: &'a Lineage,
    timeline: TimelineId,
    next: Seq,
    nodes: FxHashMap<FileId, Option<Node>>,
    dentries: FxHashMap<(FileId, Name), Option<(FileId, NodeKind)>>,
    segments: FxHashMap<ChunkHash, Vec<u8>>,
    batch: Batch,
    changes: Vec<Change>,
}

/// What a finished transaction did.
pub struct Finished {
    /// To be written.
    pub batch: Batch,
    /// To be told.
    pub changes: Vec<Change>,
    /// The last seq it used (the one before its first when it did nothing).
    pub last: Seq,
}

impl<'a> Txn<'a> {
    /// A transaction on the timeline at the tip of `lineage`, whose first change gets the seq `next`.
    pub fn new(read: &'a dyn Read, lineage: &'a Lineage, timeline: TimelineId, next: Seq) -> Self {
        Txn {
            read,
            lineage,
            timeline,
            next,
            nodes: FxHashMap::default(),
            dentries: FxHashMap::default(),
            segments: FxHashMap::default(),
            batch: Batch::new(),
            changes: Vec::new(),
        }
    }

    /// The seq that the next change will have.
    pub fn next(&self) -> Seq {
        self.next
    }

    fn view(&self) -> View<'a> {
        View::new(self.read, self.lineage)
    }

    /// Takes in what one operation did, as the change [`Txn::next`]: node and dentry versions, and the log record.
    pub fn add(&mut self, step: Step, origin: &Origin) {
        let seq = self.next;
        for change in &step.changes {
            self.put_change(change, seq);
        }
        self.changes.extend(step.changes);
        let log =
            LogRecord { seq, time: origin.time, op_id: origin.op_id, author: origin.author.clone(), event: step.event };
        self.batch.put(keys::log(self.timeline, seq), record::encode(&log));
        self.next = seq.next();
    }

    fn put_change(&mut self, change: &Change, seq: Seq) {
        match change {
            Change::Put(node) => {
                self.batch.put(keys::node(self.timeline, node.file_id, seq), record::encode(node));
                self.nodes.insert(node.file_id, Some(node.clone()));
            }
            Change::Drop(id) => {
                self.batch.put(keys::node(self.timeline, *id, seq), bytes::Bytes::new());
                self.nodes.insert(*id, None);
            }
            Change::Bind { entry_set, name, file_id, kind, .. } => {
                let key = keys::dentry(self.timeline, *entry_set, name.as_bytes(), seq);
                self.batch.put(key, record::encode_dentry(*file_id, *kind));
                self.dentries.insert((*entry_set, name.clone()), Some((*file_id, *kind)));
            }
            Change::Unbind { entry_set, name, .. } => {
                let key = keys::dentry(self.timeline, *entry_set, name.as_bytes(), seq);
                self.batch.put(key, bytes::Bytes::new());
                self.dentries.insert((*entry_set, name.clone()), None);
            }
        }
    }

    /// The living entries of a directory, as this transaction has them.
    pub fn entries(&self, dir: &Node) -> Result<Vec<(Name, FileId, NodeKind)>> {
        let Body::Dir(info) = &dir.body else {
            return Err(Error::not_a_directory(format!("{} is not a directory", dir.file_id)));
        };
        let mut entries = self.view().entries(info.entry_set)?;
        for ((set, name), target) in &self.dentries {
            match target {
                _ if *set != info.entry_set => {}
                Some(target) => {
                    entries.insert(name.clone(), *target);
                }
                None => {
                    entries.remove(name);
                }
            }
        }
        Ok(entries.into_iter().map(|(name, (id, kind))| (name, id, kind)).collect())
    }

    /// Writes the entries of every changed directory afresh that has too many dead names, each under a new id that
    /// `new_set` gives. Belongs to the last change: readers of earlier points find the earlier entries.
    fn rewrite_directories(&mut self, new_set: &mut dyn FnMut() -> Result<FileId>) -> Result<()> {
        let crowded = |node: &Node| match &node.body {
            Body::Dir(dir) => dir.dead > DEAD_ALLOWED.saturating_add(dir.entries / 2),
            _ => false,
        };
        let put = |change: &Change| if let Change::Put(node) = change { Some(node.file_id) } else { None };
        let changed: std::collections::BTreeSet<FileId> = self.changes.iter().filter_map(put).collect();
        let present = |id: &FileId| self.nodes.get(id).cloned().flatten();
        let dirs: Vec<Node> = changed.iter().filter_map(present).filter(crowded).collect();
        let seq = Seq(self.next.0.saturating_sub(1));
        for mut dir in dirs {
            let entries = self.entries(&dir)?;
            let (id, Body::Dir(info)) = (dir.file_id, &mut dir.body) else { continue };
            let (old, new) = (info.entry_set, new_set()?);
            info.entry_set = new;
            info.dead = 0;
            for (name, file_id, kind) in &entries {
                self.batch.put(
                    keys::dentry(self.timeline, new, name.as_bytes(), seq),
                    record::encode_dentry(*file_id, *kind),
                );
            }
            let mut earlier = old.0.to_be_bytes().to_vec();
            earlier.extend_from_slice(&seq.0.to_be_bytes());
            self.batch.put(keys::earlier_set(new, self.timeline), earlier);
            dir.version = seq;
            self.batch.put(keys::node(self.timeline, id, seq), record::encode(&dir));
            self.changes.push(Change::Put(dir.clone()));
            self.nodes.insert(id, Some(dir));
        }
        Ok(())
    }

    /// Ends the transaction. `new_set` gives ids for directories whose entries are written afresh.
    pub fn finish(mut self, new_set: &mut dyn FnMut() -> Result<FileId>) -> Result<Finished> {
        self.rewrite_directories(new_set)?;
        let last = Seq(self.next.0.saturating_sub(1));
        self.batch.put(keys::head(self.timeline), record::encode_number(last.0));
        Ok(Finished { batch: self.batch, changes: self.changes, last })
    }
}

impl Tree for Txn<'_> {
    fn node(&mut self, id: FileId) -> Result<Option<Node>> {
        if let Some(node) = self.nodes.get(&id) {
            return Ok(node.clone());
        }
        let node = self.view().node(id)?;
        self.nodes.insert(id, node.clone());
        Ok(node)
    }

    fn child(&mut self, dir: &Node, name: &Name) -> Result<Option<FileId>> {
        let Body::Dir(info) = &dir.body else {
            return Err(Error::not_a_directory(format!("{} is not a directory", dir.file_id)));
        };
        if let Some(target) = self.dentries.get(&(info.entry_set, name.clone())) {
            return Ok(target.map(|(id, _)| id));
        }
        Ok(self.view().child(info.entry_set, name)?.map(|(id, _)| id))
    }

    fn manifest(&mut self, content: &Content) -> Result<Manifest> {
        segments::load(self.read, &|hash| self.segments.get(&hash).cloned(), content)
    }

    fn content(&mut self, manifest: Manifest) -> Result<Content> {
        let mut batch = Batch::new();
        let content = segments::store(manifest, &mut batch);
        for mutation in &batch {
            if let Mutation::Put { key, value } = mutation
                && let Some(hash) = key.get(1..).and_then(|h| ChunkHash::from_slice(h).ok())
            {
                self.segments.insert(hash, value.to_vec());
            }
        }
        self.batch.append(batch);
        Ok(content)
    }
}
