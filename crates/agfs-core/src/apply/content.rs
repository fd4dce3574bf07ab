//! New content for a file: one version each.

use super::{At, Outcome, Tree, event, require_node};
use crate::attr::PERMISSION_BITS;
use crate::change::{Change, Step};
use crate::error::{Error, Result};
use crate::event::EventKind;
use crate::id::FileId;
use crate::manifest::Manifest;
use crate::node::Body;
use crate::op::ContentEdit;
use crate::time::Timestamp;

pub(super) fn set_content(
    tree: &mut dyn Tree,
    at: At,
    id: FileId,
    edit: &ContentEdit,
    mtime: Timestamp,
    mode: Option<u32>,
) -> Result<Outcome> {
    let mut node = require_node(tree, id)?;
    let Body::File(old) = &node.body else {
        return Err(if node.kind().is_dir() {
            Error::is_a_directory(format!("{id} is a directory, it has no content"))
        } else {
            Error::invalid(format!("{id} is not a regular file, it has no content"))
        });
    };
    let manifest = match edit {
        ContentEdit::Whole(extents) => Manifest::new(extents.iter().copied())?,
        ContentEdit::Splices { base, splices, size } => {
            if *base != old.hash {
                return Err(Error::conflict(format!(
                    "{id} has the content {} by now, the change was made to {base}",
                    old.hash
                )));
            }
            tree.manifest(old)?.spliced(splices, *size)?
        }
    };
    node.body = Body::File(tree.content(manifest)?);
    node.version_no = node.version_no.saturating_add(1);
    node.version = at.seq;
    node.attr.mtime = mtime;
    node.attr.ctime = node.attr.ctime.then(at.time);
    if let Some(mode) = mode {
        node.attr.mode = mode & PERMISSION_BITS;
    }
    let event = event(EventKind::Write, &node, node.link.clone());
    Ok(Some(Step { event, changes: vec![Change::Put(node)] }))
}
