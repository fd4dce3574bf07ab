//! Attributes and extended attributes.

use super::{At, Outcome, Tree, event, require_node};
use crate::attr::AttrChange;
use crate::change::{Change, Step};
use crate::error::{Error, ErrorKind, Result};
use crate::event::EventKind;
use crate::id::FileId;
use crate::node::{MAX_XATTR_NAME, MAX_XATTR_VALUE, Node};
use crate::op::XattrMode;
use std::sync::Arc;

/// The most bytes that all extended attributes of a node may have together, names included.
const MAX_XATTRS: usize = 1 << 20;

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
    if name.is_empty() || name.len() > MAX_XATTR_NAME || name.contains(&0) {
        return Err(Error::new(
            ErrorKind::BufferTooSmall,
            format!(
                "an extended attribute's name has 1 to {MAX_XATTR_NAME} bytes without NUL, this one {}",
                name.len()
            ),
        ));
    }
    if value.len() > MAX_XATTR_VALUE {
        return Err(Error::new(
            ErrorKind::ValueTooLarge,
            format!("an extended attribute has at most {MAX_XATTR_VALUE} bytes, this one {}", value.len()),
        ));
    }
    let mut xattrs = node.xattrs.as_deref().cloned().unwrap_or_default();
    match (mode, xattrs.contains_key(name)) {
        (XattrMode::Create, true) => {
            return Err(Error::already_exists(format!("{id} already has the attribute {}", show(name))));
        }
        (XattrMode::Replace, false) => return Err(no_attribute(id, name)),
        _ => {}
    }
    xattrs.insert(name.to_vec(), value.to_vec());
    if xattrs.iter().map(|(n, v)| n.len() + v.len()).sum::<usize>() > MAX_XATTRS {
        return Err(Error::new(
            ErrorKind::NoSpace,
            format!("the extended attributes of {id} would have over {MAX_XATTRS} bytes"),
        ));
    }
    node.xattrs = Some(Arc::new(xattrs));
    node.attr.ctime = at.time;
    Ok(Some(changed(node, at)))
}

pub(super) fn remove_xattr(tree: &mut dyn Tree, at: At, id: FileId, name: &[u8]) -> Result<Outcome> {
    let mut node = require_node(tree, id)?;
    let mut xattrs = node.xattrs.as_deref().cloned().unwrap_or_default();
    if xattrs.remove(name).is_none() {
        return Err(no_attribute(id, name));
    }
    node.xattrs = (!xattrs.is_empty()).then(|| Arc::new(xattrs));
    node.attr.ctime = at.time;
    Ok(Some(changed(node, at)))
}

fn changed(mut node: Node, at: At) -> Step {
    node.version = at.seq;
    let event = event(EventKind::Attr, &node, node.link.clone());
    Step { event, changes: vec![Change::Put(node)] }
}

fn no_attribute(id: FileId, name: &[u8]) -> Error {
    Error::new(ErrorKind::NoAttribute, format!("{id} has no extended attribute {}", show(name)))
}

fn show(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
