//! Reading a tree as of a point: the newest record not after it, in the nearest timeline that has one.
//!
//! Records are never changed once written, so a view needs no snapshot of the store.

use super::{keys, record};
use crate::store::{Read, Step};
use agfs_core::error::{Error, Result};
use agfs_core::id::{FileId, Seq};
use agfs_core::name::Name;
use agfs_core::node::{Node, NodeKind};
use agfs_core::timeline::Lineage;
use agfs_proto::v1;
use std::collections::BTreeMap;

/// How many records of one name or node a scan steps over before it seeks.
const STEPS_BEFORE_SEEK: usize = 4;

/// A tree as of a point.
#[derive(Clone, Copy)]
pub struct View<'a> {
    read: &'a dyn Read,
    lineage: &'a Lineage,
}

/// Entries of a directory: where each name leads.
pub type Entries = BTreeMap<Name, (FileId, NodeKind)>;

impl<'a> View<'a> {
    /// The tree that `lineage` shows in `read`.
    pub fn new(read: &'a dyn Read, lineage: &'a Lineage) -> Self {
        View { read, lineage }
    }

    /// The lineage it reads by.
    pub fn lineage(&self) -> &'a Lineage {
        self.lineage
    }

    /// The node, if it is in the tree. Fails with `Corrupt` or `Io`.
    pub fn node(&self, id: FileId) -> Result<Option<Node>> {
        for point in &self.lineage.0 {
            let (_, end) = keys::node_bounds(point.timeline, id);
            let found = first_value(self.read, &keys::node(point.timeline, id, point.seq), &end)?;
            if let Some((_, value)) = found {
                if value.is_empty() {
                    return Ok(None);
                }
                return record::decode::<v1::Node, _>(&value, &format!("node {id}")).map(Some);
            }
        }
        Ok(None)
    }

    /// The node; fails with `NotFound` when it is not in the tree.
    pub fn require(&self, id: FileId) -> Result<Node> {
        self.node(id)?.ok_or_else(|| Error::not_found(format!("the node {id} is not in the tree")))
    }

    /// Where `name` leads in the entry set, if anywhere.
    pub fn child(&self, set: FileId, name: &Name) -> Result<Option<(FileId, NodeKind)>> {
        for point in &self.lineage.0 {
            let (_, end) = keys::dentry_bounds(point.timeline, set, name.as_bytes());
            let start = keys::dentry(point.timeline, set, name.as_bytes(), point.seq);
            if let Some((_, value)) = first_value(self.read, &start, &end)? {
                return record::decode_dentry(&value);
            }
        }
        Ok(None)
    }

    /// The seq and target (`None`: it was taken away) of the newest binding of `name` in the entry set.
    pub fn binding(&self, set: FileId, name: &Name) -> Result<Option<(Seq, Option<FileId>)>> {
        for point in &self.lineage.0 {
            let (_, end) = keys::dentry_bounds(point.timeline, set, name.as_bytes());
            let start = keys::dentry(point.timeline, set, name.as_bytes(), point.seq);
            if let Some((key, value)) = first_value(self.read, &start, &end)? {
                let (_, _, seq) =
                    keys::parse_dentry(&key).ok_or_else(|| Error::corrupt("a dentry's key is damaged"))?;
                return Ok(Some((seq, record::decode_dentry(&value)?.map(|(id, _)| id))));
            }
        }
        Ok(None)
    }

    /// Every live name of the entry set, in order.
    ///
    /// Costs one scan of the set's records in each timeline of the lineage; the records of one name beyond a few are
    /// sought past, as multi-version scanners of distributed databases do.
    pub fn entries(&self, set: FileId) -> Result<Entries> {
        let mut nearest: BTreeMap<Name, Option<(FileId, NodeKind)>> = BTreeMap::new();
        for point in &self.lineage.0 {
            let (start, end) = keys::entry_set(point.timeline, set);
            // The name whose newest visible record was taken, and how many records were stepped over since a seek.
            let (mut done, mut steps): (Vec<u8>, usize) = (Vec::new(), 0);
            self.read.scan(&start, &end, &mut |key, value| {
                let (_, name, seq) =
                    keys::parse_dentry(key).ok_or_else(|| Error::corrupt("a dentry's key is damaged"))?;
                let taken = name == done.as_slice();
                if !taken && seq <= point.seq {
                    let checked =
                        Name::new(name).map_err(|e| Error::corrupt(format!("a stored name is damaged: {e}")))?;
                    let target = record::decode_dentry(value)?;
                    nearest.entry(checked).or_insert(target);
                    done = name.to_vec();
                    steps = 0;
                    return Ok(Step::Next);
                }
                steps += 1;
                if steps < STEPS_BEFORE_SEEK {
                    return Ok(Step::Next);
                }
                steps = 0;
                Ok(Step::Seek(if taken {
                    keys::dentry_bounds(point.timeline, set, name).1
                } else {
                    keys::dentry(point.timeline, set, name, point.seq)
                }))
            })?;
        }
        Ok(nearest.into_iter().filter_map(|(name, target)| target.map(|t| (name, t))).collect())
    }

    /// Every version of a node that the view can see, newest first: the seq, and the node or `None` for a tombstone.
    /// `visit` returns whether to go on.
    pub fn versions(&self, id: FileId, mut visit: impl FnMut(Seq, Option<Node>) -> Result<bool>) -> Result<()> {
        // A flattened timeline has copies of its parent's records under their own seqs; each seq counts once.
        let mut last = Seq(u64::MAX);
        for point in &self.lineage.0 {
            let (_, end) = keys::node_bounds(point.timeline, id);
            let mut stopped = false;
            self.read.scan(&keys::node(point.timeline, id, point.seq), &end, &mut |key, value| {
                let (_, seq) = keys::parse_node(key).ok_or_else(|| Error::corrupt("a node's key is damaged"))?;
                if seq >= last {
                    return Ok(Step::Next);
                }
                last = seq;
                let node = if value.is_empty() { None } else { Some(record::decode::<v1::Node, _>(value, "node")?) };
                stopped = !visit(seq, node)?;
                Ok(if stopped { Step::Stop } else { Step::Next })
            })?;
            if stopped {
                break;
            }
        }
        Ok(())
    }
}

/// The first pair of a range.
fn first_value(read: &dyn Read, start: &[u8], end: &[u8]) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut found = None;
    read.scan(start, end, &mut |key, value| {
        found = Some((key.to_vec(), value.to_vec()));
        Ok(Step::Stop)
    })?;
    Ok(found)
}
