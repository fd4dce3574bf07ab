//! Applying an operation to a tree: the one place that decides what an operation does.
//!
//! Pure: reads nodes through [`Tree`], returns the changes, and leaves writing them to the caller. Who may do what is the
//! kernel's or the entrance's business. Storage, sequence allocation and notification must not leak in here.

mod content;
mod create;
mod meta;
mod remove;
mod rename;

use crate::change::{Change, Step};
use crate::error::{Error, Result};
use crate::event::{Event, EventKind};
use crate::id::{FileId, Seq};
use crate::name::Name;
use crate::node::{Body, DirInfo, Link, Node, NodeKind};
use crate::op::{Op, TimedOp};
use crate::time::Timestamp;

/// What applying reads of a tree. Implementations return what the steps before made.
pub trait Tree {
    /// The node, or `None` when the tree has none with this id.
    fn node(&mut self, id: FileId) -> Result<Option<Node>>;

    /// The node that `name` leads to in `dir`, by id.
    fn child(&mut self, dir: &Node, name: &Name) -> Result<Option<FileId>>;

    /// The stored manifest of a file's content, for splicing.
    fn manifest(&mut self, content: &crate::node::Content) -> Result<crate::manifest::Manifest>;

    /// Content as it is to be kept with a node: long manifests are put into segments by the implementation.
    fn content(&mut self, manifest: crate::manifest::Manifest) -> Result<crate::node::Content>;
}

/// What one operation did: nothing (it changed nothing, as a rename of a link onto its sibling), or one step.
pub type Outcome = Option<Step>;

/// Applies `op` as the change `seq`. Fails without any change, with the kind that a local file system would report.
pub fn apply(tree: &mut dyn Tree, op: &TimedOp, seq: Seq) -> Result<Outcome> {
    let at = At { seq, time: op.time };
    match &op.op {
        Op::Create { parent, name, file_id, node, mode, uid, gid } => {
            let owner = create::Owner { mode: *mode, uid: *uid, gid: *gid };
            create::create(tree, at, *parent, name, *file_id, node, owner)
        }
        Op::Link { file_id, parent, name } => create::link(tree, at, *file_id, *parent, name),
        Op::Unlink { parent, name } => remove::unlink(tree, at, *parent, name),
        Op::Rmdir { parent, name } => remove::rmdir(tree, at, *parent, name),
        Op::Rename { parent, name, new_parent, new_name, mode } => {
            rename::rename(tree, at, (*parent, name), (*new_parent, new_name), *mode)
        }
        Op::SetAttr { file_id, change } => meta::set_attr(tree, at, *file_id, change),
        Op::SetXattr { file_id, name, value, mode } => meta::set_xattr(tree, at, *file_id, name, value, *mode),
        Op::RemoveXattr { file_id, name } => meta::remove_xattr(tree, at, *file_id, name),
        Op::SetContent { file_id, edit, mtime, mode } => content::set_content(tree, at, *file_id, edit, *mtime, *mode),
    }
}

/// When and as which change an operation is applied.
#[derive(Clone, Copy)]
struct At {
    seq: Seq,
    time: Timestamp,
}

fn require_node(tree: &mut dyn Tree, id: FileId) -> Result<Node> {
    tree.node(id)?.ok_or_else(|| Error::stale(format!("the node {id} is not in the tree any more")))
}

/// A directory that entries can be put into or taken from.
fn require_dir(tree: &mut dyn Tree, id: FileId) -> Result<Node> {
    let node =
        tree.node(id)?.ok_or_else(|| Error::not_found(format!("the directory {id} is not in the tree any more")))?;
    match &node.body {
        Body::Dir(DirInfo { shadow: true, .. }) => Err(Error::refused(format!(
            "{id} is a shadow directory: what lies in it is on each client's own disk, not in the tree"
        ))),
        Body::Dir(_) => Ok(node),
        _ => Err(Error::not_a_directory(format!("{id} is not a directory"))),
    }
}

/// The id that `name` leads to; fails with `NotFound`.
fn require_child(tree: &mut dyn Tree, dir: &Node, name: &Name) -> Result<FileId> {
    tree.child(dir, name)?.ok_or_else(|| Error::not_found(format!("{} has no entry {name:?}", dir.file_id)))
}

fn dir_mut(node: &mut Node) -> Result<&mut DirInfo> {
    match &mut node.body {
        Body::Dir(dir) => Ok(dir),
        _ => Err(Error::not_a_directory(format!("{} is not a directory", node.file_id))),
    }
}

/// Counts a new entry in `dir` and returns the change that binds it.
fn bind(dir: &mut Node, name: &Name, file_id: FileId, kind: NodeKind, at: At) -> Result<Change> {
    touch_dir(dir, at);
    let parent = dir.file_id;
    let info = dir_mut(dir)?;
    info.entries = info.entries.saturating_add(1);
    info.subdirs = info.subdirs.saturating_add(u32::from(kind.is_dir()));
    Ok(Change::Bind { parent, entry_set: info.entry_set, name: name.clone(), file_id, kind })
}

/// Counts an entry less in `dir` and returns the change that unbinds it.
fn unbind(dir: &mut Node, name: &Name, kind: NodeKind, at: At) -> Result<Change> {
    touch_dir(dir, at);
    let parent = dir.file_id;
    let info = dir_mut(dir)?;
    info.entries = info.entries.saturating_sub(1);
    info.subdirs = info.subdirs.saturating_sub(u32::from(kind.is_dir()));
    info.dead = info.dead.saturating_add(1);
    Ok(Change::Unbind { parent, entry_set: info.entry_set, name: name.clone() })
}

fn touch_dir(dir: &mut Node, at: At) {
    dir.attr.mtime = at.time;
    dir.attr.ctime = dir.attr.ctime.then(at.time);
    dir.version = at.seq;
}

/// Takes one hard link from a node that is not a directory, and says what becomes of it.
fn drop_link(mut node: Node, gone: &Link, at: At) -> Change {
    if node.link.as_ref() == Some(gone) {
        node.link = node.more_links.pop();
    } else {
        node.more_links.retain(|link| link != gone);
    }
    if node.link.is_none() {
        return Change::Drop(node.file_id);
    }
    node.attr.ctime = node.attr.ctime.then(at.time);
    node.version = at.seq;
    Change::Put(node)
}

fn event(kind: EventKind, node: &Node, link: Option<Link>) -> Event {
    Event {
        kind,
        file_id: node.file_id,
        node_kind: node.kind(),
        link,
        from: None,
        replaced: None,
        version_no: node.version_no,
    }
}

/// The root directory of a new space, made as the change `seq`.
pub fn new_root(seq: Seq, time: Timestamp, mode: u32, uid: u32, gid: u32) -> Node {
    Node {
        file_id: FileId::ROOT,
        link: None,
        more_links: Vec::new(),
        attr: crate::attr::Attr { mode, uid, gid, atime: time, mtime: time, ctime: time, btime: time },
        xattrs: None,
        body: Body::Dir(DirInfo { entries: 0, subdirs: 0, dead: 0, entry_set: FileId::ROOT, shadow: false }),
        version: seq,
        version_no: 0,
    }
}
