//! The difference between two states of a tree, as a list of paths. Collecting the states happens elsewhere.

use crate::id::FileId;
use crate::node::{Body, Node};

/// How a path differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DiffKind {
    /// It is there now and was not.
    Added,
    /// Its content or target differs.
    Modified,
    /// It was there and is not now.
    Deleted,
    /// It is elsewhere now.
    Renamed,
    /// Only its attributes differ.
    Mode,
}

impl DiffKind {
    /// Every kind.
    pub const ALL: &'static [DiffKind] =
        &[DiffKind::Added, DiffKind::Modified, DiffKind::Deleted, DiffKind::Renamed, DiffKind::Mode];

    /// The word printed and carried on the wire.
    pub const fn code(self) -> &'static str {
        match self {
            DiffKind::Added => "added",
            DiffKind::Modified => "modified",
            DiffKind::Deleted => "deleted",
            DiffKind::Renamed => "renamed",
            DiffKind::Mode => "mode",
        }
    }

    /// The kind of this word, if it is one.
    pub fn from_code(code: &str) -> Option<Self> {
        DiffKind::ALL.iter().copied().find(|k| k.code() == code)
    }
}

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffEntry {
    /// How.
    pub kind: DiffKind,
    /// The path (now, or before for what is deleted), absolute, as bytes.
    pub path: Vec<u8>,
    /// For a rename: the path before.
    pub from: Option<Vec<u8>>,
    /// The node before.
    pub before: Option<Node>,
    /// The node now.
    pub after: Option<Node>,
}

/// A name with the node it leads to, in one of the two states.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The absolute path.
    pub path: Vec<u8>,
    /// What is there.
    pub node: Node,
}

/// Whether two nodes hold the same: content, target or device. Directories always do.
pub fn same_body(a: &Node, b: &Node) -> bool {
    match (&a.body, &b.body) {
        (Body::File(x), Body::File(y)) => x.size == y.size && x.hash == y.hash,
        (Body::Dir(_), Body::Dir(_)) => true,
        (Body::Symlink(x), Body::Symlink(y)) => x == y,
        (x @ Body::Special { .. }, y @ Body::Special { .. }) => x == y,
        _ => false,
    }
}

/// Whether two nodes have the same attributes that people set: mode, owner, extended attributes.
pub fn same_attributes(a: &Node, b: &Node) -> bool {
    (a.attr.mode, a.attr.uid, a.attr.gid) == (b.attr.mode, b.attr.uid, b.attr.gid) && a.xattrs == b.xattrs
}

/// Compares what stood at the touched places before with what stands there after. `before` and `after` list every
/// touched place that exists in that state; places in neither list are equal. The result is in order of path.
///
/// A path whose node was replaced by another (an editor's save) counts as one path, modified or unchanged; a node that
/// left one path and is at another that was free is renamed.
pub fn compare(before: Vec<Placed>, after: Vec<Placed>) -> Vec<DiffEntry> {
    use std::collections::BTreeMap;
    let old: BTreeMap<Vec<u8>, Node> = before.into_iter().map(|p| (p.path, p.node)).collect();
    let new: BTreeMap<Vec<u8>, Node> = after.into_iter().map(|p| (p.path, p.node)).collect();
    // Where a node was that is no longer there: candidates for the origin of a rename.
    let mut left: BTreeMap<FileId, &Vec<u8>> =
        old.iter().filter(|(path, _)| !new.contains_key(*path)).map(|(path, node)| (node.file_id, path)).collect();
    let mut out = Vec::new();
    for (path, node) in &new {
        let entry = |kind, from: Option<&Vec<u8>>, was: Option<&Node>| DiffEntry {
            kind,
            path: path.clone(),
            from: from.cloned(),
            before: was.cloned(),
            after: Some(node.clone()),
        };
        match old.get(path) {
            Some(was) if !same_body(was, node) => out.push(entry(DiffKind::Modified, None, Some(was))),
            Some(was) if !same_attributes(was, node) => out.push(entry(DiffKind::Mode, None, Some(was))),
            Some(_) => {}
            None => match left.remove(&node.file_id) {
                Some(from) => out.push(entry(DiffKind::Renamed, Some(from), old.get(from))),
                None => out.push(entry(DiffKind::Added, None, None)),
            },
        }
    }
    let renamed: std::collections::BTreeSet<Vec<u8>> = out.iter().filter_map(|e| e.from.clone()).collect();
    for (path, node) in old.iter().filter(|(path, _)| !new.contains_key(*path) && !renamed.contains(*path)) {
        out.push(DiffEntry {
            kind: DiffKind::Deleted,
            path: path.clone(),
            from: None,
            before: Some(node.clone()),
            after: None,
        });
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    out
}
