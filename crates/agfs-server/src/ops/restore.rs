//! Restoring paths: making them what they were at a point, as new changes on top. What else is in the space stays.

use super::history::{HistoryOp, HistoryResult};
use crate::engine::{Engine, SpaceCell, SpaceState};
use crate::model::txn::{Origin, Txn};
use crate::model::view::View;
use crate::model::{paths, timelines};
use agfs_core::apply::Tree;
use agfs_core::change::{Change, Step};
use agfs_core::diff::{same_attributes, same_body};
use agfs_core::error::{Error, Result};
use agfs_core::event::{Event, EventKind};
use agfs_core::id::{FamilyId, FileId, OpId};
use agfs_core::name::Name;
use agfs_core::node::{Body, DirInfo, Link, Node};
use agfs_core::op::Author;
use agfs_core::path;
use agfs_core::space::Point;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Who restores, and as what it is recorded.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) op_id: OpId,
    pub(super) author: Author,
    pub(super) dry_run: bool,
    pub(super) kind: EventKind,
    pub(super) subject: Option<OpId>,
    /// The entries of the record that it changes.
    pub(super) marks: Vec<HistoryOp>,
}

impl Engine {
    /// Makes `paths` (bytes, absolute) what they were at `text`, directories with all that is in them. What was not
    /// there at that point is taken away. Fails with `NotFound` for a path that is neither there nor here.
    pub fn restore(
        self: &Arc<Self>,
        cell: &SpaceCell,
        op_id: OpId,
        text: &str,
        paths: &[Vec<u8>],
        author: Author,
        dry_run: bool,
    ) -> Result<HistoryResult> {
        if paths.is_empty() {
            return Err(Error::invalid(
                "name at least one path to restore; `agfs rollback` takes the whole space back",
            ));
        }
        let point = self.point(cell, text)?;
        let mut state = cell.lock();
        if let Some(done) = self.answered(op_id)? {
            return HistoryResult::decode(&done.body);
        }
        let call = Call { op_id, author, dry_run, kind: EventKind::Restore, subject: None, marks: Vec::new() };
        self.restore_locked(cell, &mut state, point, paths, call)
    }

    /// The same on a locked space.
    pub(super) fn restore_locked(
        &self,
        cell: &SpaceCell,
        state: &mut SpaceState,
        point: Point,
        paths: &[Vec<u8>],
        call: Call,
    ) -> Result<HistoryResult> {
        let origin = Origin { op_id: call.op_id, author: call.author.clone(), time: state.tick(&*self.clock) };
        let before = state.head();
        let lineage = Arc::clone(&state.lineage);
        let past = timelines::lineage(self.read(), point)?;
        let mut restorer = Restorer {
            engine: self,
            family: state.space.family,
            past: View::new(self.read(), &past),
            txn: Txn::new(self.read(), &lineage, state.timeline.id, before.seq.next()),
            origin: &origin,
            brought_back: FxHashSet::default(),
            changed: 0,
        };
        for path in paths {
            restorer.path(&path::parse(path)?)?;
        }
        let (txn, changed) = (restorer.txn, restorer.changed);
        let mut result =
            HistoryResult { op_id: call.op_id, seq: before.seq, set_aside: 0, subject: call.subject, changed };
        if call.dry_run {
            return Ok(result);
        }
        let mut finished = self.finish(txn, state)?;
        result.seq = finished.last;
        for marked in &call.marks {
            marked.put(&mut finished.batch, cell);
        }
        if changed > 0 {
            let after = Point { timeline: before.timeline, seq: finished.last };
            let entry = HistoryOp {
                kind: call.kind,
                op_id: call.op_id,
                before,
                after,
                paths: paths.to_vec(),
                subject: call.subject,
                undone: false,
            };
            entry.put(&mut finished.batch, cell);
        }
        let body = result.encode();
        self.commit(cell, state, finished, &origin, Some(body))?;
        Ok(result)
    }
}

/// Makes places of the present what they were in the past.
struct Restorer<'a> {
    engine: &'a Engine,
    family: FamilyId,
    past: View<'a>,
    txn: Txn<'a>,
    origin: &'a Origin,
    /// Nodes that were gone and that this call brought back: further links of them are links again, not copies.
    brought_back: FxHashSet<FileId>,
    changed: u64,
}

impl Restorer<'_> {
    fn path(&mut self, names: &[Name]) -> Result<()> {
        let then = paths::walk(self.past, FileId::ROOT, names)?;
        let Some((last, above)) = names.split_last() else {
            let (then, now) = (self.past.require(FileId::ROOT)?, self.require(FileId::ROOT)?);
            return self.same_dir(&then, now);
        };
        let was_there = then.len() == names.len() + 1;
        let mut dir = self.require(FileId::ROOT)?;
        for (depth, name) in above.iter().enumerate() {
            dir = match self.txn.child(&dir, name)? {
                Some(id) => self.require(id)?,
                None if was_there => {
                    // The directory above is gone too: it comes back without what else was in it.
                    let old = then.get(depth + 1).ok_or_else(|| Error::internal("a path was cut short"))?.clone();
                    self.bring_back(&dir, name, &old)?
                }
                None => return Err(paths::missing(names, None, depth)),
            };
        }
        let target = then.last().filter(|_| was_there);
        if target.is_none() && self.txn.child(&dir, last)?.is_none() {
            return Err(paths::missing(names, None, names.len() - 1));
        }
        self.place(dir.file_id, last, target)
    }

    /// Makes the place (`parent`, `name`) what it was: `then`, or nothing.
    fn place(&mut self, parent: FileId, name: &Name, then: Option<&Node>) -> Result<()> {
        let dir = self.require(parent)?;
        let now = self.txn.child(&dir, name)?.map(|id| self.require(id)).transpose()?;
        let Some(then) = then else {
            return now.map_or(Ok(()), |now| self.remove(parent, name, now));
        };
        match now {
            Some(now) if now.file_id == then.file_id && now.kind() == then.kind() => match (&then.body, &now.body) {
                (Body::Dir(_), Body::Dir(_)) => self.same_dir(then, now),
                _ => self.same_node(then, now),
            },
            // Replaced by another node since (an editor's save): the content goes into the one that is there now.
            Some(now)
                if matches!((&then.body, &now.body), (Body::File(_), Body::File(_))) && now.more_links.is_empty() =>
            {
                self.same_node(then, now)
            }
            now => {
                if let Some(now) = now {
                    self.remove(parent, name, now)?;
                }
                let dir = self.require(parent)?;
                let back = self.bring_back(&dir, name, then)?;
                if then.kind().is_dir() { self.same_dir(then, back) } else { Ok(()) }
            }
        }
    }

    /// Gives a node that is still there the content and attributes that it had.
    fn same_node(&mut self, then: &Node, now: Node) -> Result<()> {
        let (same_content, same_attr) = (same_body(then, &now), same_attributes(then, &now));
        if same_content && same_attr && then.attr.mtime == now.attr.mtime {
            return Ok(());
        }
        let version_no = if same_content { now.version_no } else { now.version_no.saturating_add(1) };
        let node = Node {
            attr: then.attr,
            xattrs: then.xattrs.clone(),
            body: if same_content { now.body.clone() } else { then.body.clone() },
            version_no,
            ..now
        };
        self.put(node)
    }

    /// Makes a directory's entries and attributes what they were.
    fn same_dir(&mut self, then: &Node, now: Node) -> Result<()> {
        let Some(info) = then.dir() else { return Ok(()) };
        if info.shadow {
            return Ok(());
        }
        let wanted = self.past.entries(info.entry_set)?;
        for (name, _, _) in self.txn.entries(&now)? {
            if !wanted.contains_key(&name) {
                self.place(now.file_id, &name, None)?;
            }
        }
        for (name, (id, _)) in wanted {
            let old = self.past.require(id)?;
            self.place(now.file_id, &name, Some(&old))?;
        }
        let now = self.require(now.file_id)?;
        if same_attributes(then, &now) && then.attr.mtime == now.attr.mtime {
            return Ok(());
        }
        self.put(Node { attr: then.attr, xattrs: then.xattrs.clone(), ..now })
    }

    /// Puts the past node at a free place. It keeps its id when that is not in use in the present; otherwise the place
    /// gets a copy under a new id.
    fn bring_back(&mut self, dir: &Node, name: &Name, then: &Node) -> Result<Node> {
        let link = Link { parent: dir.file_id, name: name.clone() };
        let seq = self.txn.next();
        let present = self.txn.node(then.file_id)?;
        if let Some(mut node) = present.clone().filter(|n| self.brought_back.contains(&n.file_id) && !n.kind().is_dir())
        {
            node.more_links.extend(node.link.replace(link));
            return self.bind(dir, name, node);
        }
        let file_id = match present {
            None => then.file_id,
            Some(_) => FileId(self.engine.alloc.file_ids(self.family, 1)?.start),
        };
        let body = match &then.body {
            Body::Dir(info) => Body::Dir(DirInfo {
                entries: 0,
                subdirs: 0,
                dead: 0,
                entry_set: self.fresh_set(file_id, then)?,
                ..*info
            }),
            other => other.clone(),
        };
        self.brought_back.insert(file_id);
        let node = Node {
            file_id,
            link: Some(link),
            more_links: Vec::new(),
            attr: then.attr,
            xattrs: then.xattrs.clone(),
            body,
            version: seq,
            version_no: then.version_no,
        };
        self.bind(dir, name, node)
    }

    /// Where the entries of a directory that comes back are kept. Under the id that they had there would be old records
    /// of names that were bound while it lived.
    fn fresh_set(&self, file_id: FileId, then: &Node) -> Result<FileId> {
        if file_id != then.file_id {
            return Ok(file_id);
        }
        Ok(FileId(self.engine.alloc.file_ids(self.family, 1)?.start))
    }

    fn bind(&mut self, dir: &Node, name: &Name, node: Node) -> Result<Node> {
        let (id, seq, kind) = (node.file_id, self.txn.next(), node.kind());
        let mut dir = self.require(dir.file_id)?;
        let parent = dir.file_id;
        touch(&mut dir, self.origin.time, seq, |info| {
            info.entries = info.entries.saturating_add(1);
            info.subdirs = info.subdirs.saturating_add(u32::from(kind.is_dir()));
        });
        let entry_set = dir.dir().map_or(parent, |info| info.entry_set);
        let event = restored(&node, node.link.clone());
        let bind = Change::Bind { parent, entry_set, name: name.clone(), file_id: id, kind };
        self.add(Step { event, changes: vec![Change::Put(Node { version: seq, ..node }), bind, Change::Put(dir)] });
        self.require(id)
    }

    /// Takes away what is at a place, a directory with all that is in it.
    fn remove(&mut self, parent: FileId, name: &Name, now: Node) -> Result<()> {
        if now.kind().is_dir() {
            for (name, id, _) in self.txn.entries(&now)? {
                let child = self.require(id)?;
                self.remove(now.file_id, &name, child)?;
            }
        }
        let now = self.require(now.file_id)?;
        let (seq, kind, id) = (self.txn.next(), now.kind(), now.file_id);
        let mut dir = self.require(parent)?;
        touch(&mut dir, self.origin.time, seq, |info| {
            info.entries = info.entries.saturating_sub(1);
            info.subdirs = info.subdirs.saturating_sub(u32::from(kind.is_dir()));
            info.dead = info.dead.saturating_add(1);
        });
        let entry_set = dir.dir().map_or(parent, |info| info.entry_set);
        let gone = Link { parent, name: name.clone() };
        let event = restored(&now, Some(gone.clone()));
        let unbind = Change::Unbind { parent, entry_set, name: name.clone() };
        let node = unlinked(now, &gone).map_or(Change::Drop(id), |node| Change::Put(Node { version: seq, ..node }));
        self.add(Step { event, changes: vec![unbind, node, Change::Put(dir)] });
        Ok(())
    }

    fn put(&mut self, node: Node) -> Result<()> {
        let node = Node { version: self.txn.next(), ..node };
        let event = restored(&node, node.link.clone());
        self.add(Step { event, changes: vec![Change::Put(node)] });
        Ok(())
    }

    fn add(&mut self, step: Step) {
        self.changed += 1;
        self.txn.add(step, self.origin);
    }

    fn require(&mut self, id: FileId) -> Result<Node> {
        self.txn.node(id)?.ok_or_else(|| Error::corrupt(format!("the node {id} is missing though a name leads to it")))
    }
}

/// The node without one of its links; `None` when that was the last.
fn unlinked(mut node: Node, gone: &Link) -> Option<Node> {
    if node.kind().is_dir() {
        return None;
    }
    if node.link.as_ref() == Some(gone) {
        node.link = node.more_links.pop();
    } else {
        node.more_links.retain(|l| l != gone);
    }
    node.link.is_some().then_some(node)
}

fn touch(dir: &mut Node, time: agfs_core::Timestamp, seq: agfs_core::Seq, count: impl FnOnce(&mut DirInfo)) {
    dir.attr.mtime = time;
    dir.attr.ctime = time;
    dir.version = seq;
    if let Body::Dir(info) = &mut dir.body {
        count(info);
    }
}

fn restored(node: &Node, link: Option<Link>) -> Event {
    Event {
        kind: EventKind::Restore,
        file_id: node.file_id,
        node_kind: node.kind(),
        link,
        from: None,
        replaced: None,
        version_no: node.version_no,
    }
}
