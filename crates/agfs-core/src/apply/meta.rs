//! Attributes and extended attributes.

use super::{At, Outcome, Tree, event, require_node};
use crate::attr::AttrChange;
use crate::change::{Change, Step};
use crate::error::Result;
use crate::event::EventKind;
use crate::id::FileId;
use crate::node::Node;
use crate::op::XattrMode;
use crate::xattr;
use std::sync::Arc;

pub(super) fn set_attr(tree: &mut dyn Tree, at: At, id: FileId, change: &AttrChange) -> Result<Outcome> {
    let mut node = require_node(tree, id)?;
    if change.is_empty() {
        return Ok(None);
    }
    change.apply(&mut node.attr, at.time);
    Ok(Some(changed(node, at)))
}

pub(super) fn set_xattr(
    tree: &mut dyn Tree,
    at: At,
    id: FileId,
    name: &[u8],
    value: &[u8],
    mode: XattrMode,
) -> Result<Outcome> {
    let mut node = require_node(tree, id)?;
    let mut xattrs = node.xattrs.as_deref().cloned().unwrap_or_default();
    if !xattr::set(&mut xattrs, id, name, value, mode)? {
        return Ok(None);
    }
    node.xattrs = Some(Arc::new(xattrs));
    node.attr.ctime = node.attr.ctime.then(at.time);
    Ok(Some(changed(node, at)))
}

pub(super) fn remove_xattr(tree: &mut dyn Tree, at: At, id: FileId, name: &[u8]) -> Result<Outcome> {
    let mut node = require_node(tree, id)?;
    let mut xattrs = node.xattrs.as_deref().cloned().unwrap_or_default();
    xattr::remove(&mut xattrs, id, name)?;
    node.xattrs = (!xattrs.is_empty()).then(|| Arc::new(xattrs));
    node.attr.ctime = node.attr.ctime.then(at.time);
    Ok(Some(changed(node, at)))
}

fn changed(mut node: Node, at: At) -> Step {
    node.version = at.seq;
    let event = event(EventKind::Attr, &node, node.link.clone());
    Step { event, changes: vec![Change::Put(node)] }
}
