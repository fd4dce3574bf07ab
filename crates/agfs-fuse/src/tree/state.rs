//! The nodes and entries that the VersionTree holds, and how a change set changes them. No waiting, no server.

use super::node::TreeNode;
use agfs_core::change::{Change, ChangeSet};
use agfs_core::name::Name;
use agfs_core::node::Node;
use agfs_core::space::Point;
use agfs_core::{FileId, Seq};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// The entries of a directory that is loaded: all of them.
pub(super) type Children = FxHashMap<Name, FileId>;

/// What a change set did to one node.
#[derive(Clone, Debug)]
pub struct Touched {
    /// The node.
    pub id: FileId,
    /// What the tree held before, if it held it.
    pub before: Option<Arc<TreeNode>>,
    /// What the node is now; `None` when it is gone.
    pub after: Option<Arc<TreeNode>>,
}

impl Touched {
    /// Whether the node's content, as far as is known, is another one now.
    pub fn new_content(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => before.version_no != after.version_no,
            (None, Some(after)) => after.version_no > 0,
            (_, None) => true,
        }
    }
}

/// All that is known of the tree, at `seen` of `timeline`.
///
/// Invariants: a node held is as it is at `seen`; the children of a directory in `dirs` are complete at `seen`.
#[derive(Debug, Default)]
pub(super) struct State {
    pub nodes: FxHashMap<FileId, Arc<TreeNode>>,
    pub dirs: FxHashMap<FileId, Children>,
    pub seen: Seq,
    /// The point of a tree that shows the present.
    pub head: Option<Point>,
    /// Counts resets: what was asked for before one is not installed after it.
    pub generation: u64,
    /// Requests under way whose answers may be older than `seen` when they come.
    pub in_flight: usize,
    /// Change sets, in order, for those answers: those that came while any request was under way, and those that this mount
    /// made and the stream has not brought.
    pub recent: VecDeque<Arc<ChangeSet>>,
    /// What the stream has brought; `seen` is ahead of it by what this mount made.
    pub confirmed: Seq,
}

impl State {
    /// Applies a change set that the stream has brought, if it was not applied when it was made.
    pub fn apply(&mut self, set: &ChangeSet) -> Vec<Touched> {
        self.confirmed = self.confirmed.max(set.to);
        let touched = if set.to > self.seen { self.take(set) } else { Vec::new() };
        self.trim();
        touched
    }

    /// Lets go of change sets that no answer can lack.
    pub fn trim(&mut self) {
        while self.in_flight == 0 && self.recent.front().is_some_and(|set| set.to <= self.confirmed) {
            self.recent.pop_front();
        }
        if self.recent.is_empty() {
            self.recent = VecDeque::new();
        }
    }

    /// Applies a change set that follows on `seen`, from the stream or made here.
    pub fn take(&mut self, set: &ChangeSet) -> Vec<Touched> {
        if self.in_flight > 0 || set.to > self.confirmed {
            self.recent.push_back(Arc::new(set.clone()));
        }
        let mut touched: Vec<Touched> = Vec::with_capacity(set.changes.len());
        let mut places: FxHashMap<FileId, usize> = FxHashMap::default();
        for change in &set.changes {
            let (id, before, after) = match change {
                Change::Put(node) => self.put(node),
                Change::Drop(id) => (*id, self.forget(*id), None),
                Change::Bind { parent, name, file_id, .. } => {
                    self.bind(*parent, name, *file_id);
                    continue;
                }
                Change::Unbind { parent, name, .. } => {
                    if let Some(children) = self.dirs.get_mut(parent) {
                        children.remove(name);
                    }
                    continue;
                }
            };
            match places.get(&id).and_then(|place| touched.get_mut(*place)) {
                Some(t) => t.after = after,
                None => {
                    places.insert(id, touched.len());
                    touched.push(Touched { id, before, after });
                }
            }
        }
        self.seen = set.to;
        if let Some(head) = &mut self.head {
            head.seq = set.to;
        }
        touched
    }

    fn put(&mut self, node: &Node) -> (FileId, Option<Arc<TreeNode>>, Option<Arc<TreeNode>>) {
        let id = node.file_id;
        let before = self.nodes.get(&id).cloned();
        let name = before.as_ref().and_then(|b| b.link().map(|l| &l.name));
        let after = Arc::new(TreeNode::new(node.clone(), name));
        if before.is_some() || node.links().any(|link| self.dirs.contains_key(&link.parent)) {
            self.hold(after.clone());
        }
        (id, before, Some(after))
    }

    /// Keeps a node that is known to be as it is at `seen`. An empty directory is loaded by that.
    pub fn hold(&mut self, node: Arc<TreeNode>) {
        if let Some(dir) = node.dir()
            && dir.entries == 0
            && !dir.shadow
        {
            self.dirs.entry(node.id).or_default();
        }
        self.nodes.insert(node.id, node);
    }

    fn forget(&mut self, id: FileId) -> Option<Arc<TreeNode>> {
        self.dirs.remove(&id);
        self.nodes.remove(&id)
    }

    pub fn bind(&mut self, parent: FileId, name: &Name, id: FileId) {
        let Some(children) = self.dirs.get_mut(&parent) else { return };
        // The node's own link and the entry share the bytes of the name.
        let shared = self.nodes.get(&id).and_then(|n| n.link()).map(|l| &l.name).filter(|n| *n == name);
        children.insert(shared.unwrap_or(name).clone(), id);
    }

    /// What the change sets after `from` say last of each node.
    pub fn news_since(&self, from: Seq) -> FxHashMap<FileId, Option<&Node>> {
        let mut news = FxHashMap::default();
        for change in self.recent.iter().filter(|set| set.to > from).flat_map(|set| &set.changes) {
            match change {
                Change::Put(node) => news.insert(node.file_id, Some(node)),
                Change::Drop(id) => news.insert(*id, None),
                Change::Bind { .. } | Change::Unbind { .. } => continue,
            };
        }
        news
    }

    /// A node read at `from`, brought to `seen`: held ones are already, others by what has come since.
    pub fn settle(&mut self, id: FileId, read: Option<Node>, from: Seq) -> Option<Arc<TreeNode>> {
        if let Some(held) = self.nodes.get(&id) {
            return Some(held.clone());
        }
        let news = self.news_since(from);
        let node = match news.get(&id) {
            Some(last) => last.cloned()?,
            None => read?,
        };
        let node = Arc::new(TreeNode::new(node, None));
        self.hold(node.clone());
        Some(node)
    }

    /// Installs a directory's entries, read at `from`, brought to `seen`.
    pub fn install(&mut self, dir: Node, entries: Vec<(Name, Node)>, from: Seq) {
        let id = dir.file_id;
        let news: FxHashMap<FileId, Option<Node>> =
            self.news_since(from).into_iter().map(|(id, node)| (id, node.cloned())).collect();
        let now = |node: Node| match news.get(&node.file_id) {
            Some(last) => last.clone(),
            None => Some(node),
        };
        if !self.nodes.contains_key(&id) {
            let Some(dir) = now(dir) else { return };
            self.hold(Arc::new(TreeNode::new(dir, None)));
        }
        let mut children = Children::with_capacity_and_hasher(entries.len(), Default::default());
        for (name, node) in entries {
            let child = node.file_id;
            if let Some(held) = self.nodes.get(&child) {
                let shared = held.link().map(|l| &l.name).filter(|n| **n == name).cloned();
                children.insert(shared.unwrap_or(name), child);
                continue;
            }
            if let Some(node) = now(node) {
                self.hold(Arc::new(TreeNode::new(node, Some(&name))));
            }
            children.insert(name, child);
        }
        self.dirs.insert(id, children);
        let recent = std::mem::take(&mut self.recent);
        for change in recent.iter().filter(|set| set.to > from).flat_map(|set| &set.changes) {
            match change {
                Change::Bind { parent, name, file_id, .. } if *parent == id => {
                    if let Some(Some(node)) = news.get(file_id)
                        && !self.nodes.contains_key(file_id)
                    {
                        self.hold(Arc::new(TreeNode::new(node.clone(), Some(name))));
                    }
                    self.bind(id, name, *file_id);
                }
                Change::Unbind { parent, name, .. } if *parent == id => {
                    self.dirs.get_mut(&id).map(|children| children.remove(name));
                }
                _ => {}
            }
        }
        self.recent = recent;
    }

    /// Another state of the tree: nothing that is held counts any more. Returns what was held, for the caller to drop
    /// where that takes no one's time.
    pub fn reset(&mut self, head: Point) -> State {
        let fresh = State {
            seen: head.seq,
            confirmed: head.seq,
            head: Some(head),
            generation: self.generation + 1,
            in_flight: self.in_flight,
            ..State::default()
        };
        std::mem::replace(self, fresh)
    }
}
