//! Names taken away: unlink, rmdir.

use super::{At, Outcome, Tree, drop_link, event, require_child, require_dir, require_node, unbind};
use crate::change::{Change, Step};
use crate::error::{Error, Result};
use crate::event::EventKind;
use crate::id::FileId;
use crate::name::Name;
use crate::node::{Body, Link, Node};

pub(super) fn unlink(tree: &mut dyn Tree, at: At, parent: FileId, name: &Name) -> Result<Outcome> {
    let mut dir = require_dir(tree, parent)?;
    let id = require_child(tree, &dir, name)?;
    let node = require_node(tree, id)?;
    if node.kind().is_dir() {
        return Err(Error::is_a_directory(format!("{name:?} is a directory: remove it with rmdir")));
    }
    let link = Link { parent, name: name.clone() };
    let event = event(EventKind::Delete, &node, Some(link.clone()));
    let unbound = unbind(&mut dir, name, node.kind(), at)?;
    Ok(Some(Step { event, changes: vec![unbound, drop_link(node, &link, at), Change::Put(dir)] }))
}

pub(super) fn rmdir(tree: &mut dyn Tree, at: At, parent: FileId, name: &Name) -> Result<Outcome> {
    let mut dir = require_dir(tree, parent)?;
    let id = require_child(tree, &dir, name)?;
    let node = require_node(tree, id)?;
    require_empty_dir(&node, name)?;
    let event = event(EventKind::Delete, &node, Some(Link { parent, name: name.clone() }));
    let unbound = unbind(&mut dir, name, node.kind(), at)?;
    Ok(Some(Step { event, changes: vec![unbound, Change::Drop(id), Change::Put(dir)] }))
}

/// Fails unless `node` is a directory without entries.
pub(super) fn require_empty_dir(node: &Node, name: &Name) -> Result<()> {
    match &node.body {
        Body::Dir(dir) if dir.entries == 0 => Ok(()),
        Body::Dir(dir) => Err(Error::not_empty(format!("the directory {name:?} has {} entries", dir.entries))),
        _ => Err(Error::not_a_directory(format!("{name:?} is not a directory"))),
    }
}
