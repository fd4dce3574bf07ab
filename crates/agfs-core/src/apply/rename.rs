//! Rename: onto a free name, over another node, without replacing, and exchanging two nodes.

use super::remove::require_empty_dir;
use super::{At, Outcome, Tree, bind, drop_link, event, require_child, require_dir, require_node, touch_dir, unbind};
use crate::change::{Change, Step};
use crate::error::{Error, Result};
use crate::event::EventKind;
use crate::id::FileId;
use crate::name::Name;
use crate::node::{Link, Node};
use crate::op::RenameMode;

/// The one or two directories of a rename: the same directory is changed through one value.
struct Dirs {
    from: Node,
    to: Option<Node>,
}

impl Dirs {
    fn load(tree: &mut dyn Tree, from: FileId, to: FileId) -> Result<Dirs> {
        let from_node = require_dir(tree, from)?;
        Ok(Dirs { from: from_node, to: if from == to { None } else { Some(require_dir(tree, to)?) } })
    }

    fn to(&mut self) -> &mut Node {
        self.to.as_mut().unwrap_or(&mut self.from)
    }

    fn puts(self) -> impl Iterator<Item = Change> {
        [Some(self.from), self.to].into_iter().flatten().map(Change::Put)
    }
}

pub(super) fn rename(
    tree: &mut dyn Tree,
    at: At,
    (parent, name): (FileId, &Name),
    (new_parent, new_name): (FileId, &Name),
    mode: RenameMode,
) -> Result<Outcome> {
    let mut dirs = Dirs::load(tree, parent, new_parent)?;
    let id = require_child(tree, &dirs.from, name)?;
    let node = require_node(tree, id)?;
    let target_id = tree.child(dirs.to(), new_name)?;
    let (old, new) = (Link { parent, name: name.clone() }, Link { parent: new_parent, name: new_name.clone() });
    match (mode, target_id) {
        (RenameMode::NoReplace, Some(_)) => {
            return Err(Error::already_exists(format!("{new_parent} already has an entry {new_name:?}")));
        }
        (RenameMode::Exchange, None) => {
            return Err(Error::not_found(format!("{new_parent} has no entry {new_name:?} to exchange with")));
        }
        // POSIX: two links of one file: nothing happens and it is no error.
        (_, Some(target)) if target == id => return Ok(None),
        _ => {}
    }
    if node.kind().is_dir() {
        forbid_cycle(tree, id, new_parent)?;
    }
    let target = target_id.map(|t| require_node(tree, t)).transpose()?;
    if let (RenameMode::Exchange, Some(target)) = (mode, &target) {
        if target.kind().is_dir() {
            forbid_cycle(tree, target.file_id, parent)?;
        }
        return exchange(dirs, at, (node, old), (target.clone(), new)).map(Some);
    }
    let mut changes = Vec::with_capacity(6);
    let mut event = event(EventKind::Rename, &node, Some(new.clone()));
    event.from = Some(old.clone());
    if let Some(target) = target {
        check_replace(&node, &target, new_name)?;
        event.replaced = Some(target.file_id);
        changes.push(unbind(dirs.to(), new_name, target.kind(), at)?);
        changes.push(if target.kind().is_dir() { Change::Drop(target.file_id) } else { drop_link(target, &new, at) });
    }
    changes.push(unbind(&mut dirs.from, name, node.kind(), at)?);
    changes.push(bind(dirs.to(), new_name, id, node.kind(), at)?);
    changes.push(Change::Put(moved(node, &old, new, at)));
    changes.extend(dirs.puts());
    Ok(Some(Step { event, changes }))
}

fn exchange(mut dirs: Dirs, at: At, (a, a_at): (Node, Link), (b, b_at): (Node, Link)) -> Result<Step> {
    let mut event = event(EventKind::Exchange, &a, Some(b_at.clone()));
    event.from = Some(a_at.clone());
    event.replaced = Some(b.file_id);
    let mut changes =
        vec![unbind(&mut dirs.from, &a_at.name, a.kind(), at)?, unbind(dirs.to(), &b_at.name, b.kind(), at)?];
    changes.push(bind(&mut dirs.from, &a_at.name, b.file_id, b.kind(), at)?);
    changes.push(bind(dirs.to(), &b_at.name, a.file_id, a.kind(), at)?);
    touch_dir(&mut dirs.from, at);
    changes.push(Change::Put(moved(a, &a_at, b_at.clone(), at)));
    changes.push(Change::Put(moved(b, &b_at, a_at, at)));
    changes.extend(dirs.puts());
    Ok(Step { event, changes })
}

fn moved(mut node: Node, old: &Link, new: Link, at: At) -> Node {
    if node.link.as_ref() == Some(old) {
        node.link = Some(new);
    } else if let Some(link) = node.more_links.iter_mut().find(|link| *link == old) {
        *link = new;
    }
    node.attr.ctime = node.attr.ctime.then(at.time);
    node.version = at.seq;
    node
}

fn check_replace(node: &Node, target: &Node, name: &Name) -> Result<()> {
    match (node.kind().is_dir(), target.kind().is_dir()) {
        (true, true) => require_empty_dir(target, name),
        (true, false) => {
            Err(Error::not_a_directory(format!("{name:?} is not a directory: a directory cannot replace it")))
        }
        (false, true) => {
            Err(Error::is_a_directory(format!("{name:?} is a directory: only a directory can replace it")))
        }
        (false, false) => Ok(()),
    }
}

/// A directory may not move below itself.
fn forbid_cycle(tree: &mut dyn Tree, moving: FileId, into: FileId) -> Result<()> {
    let mut at = into;
    loop {
        if at == moving {
            return Err(Error::invalid(format!("the directory {moving} cannot move into itself")));
        }
        match require_node(tree, at)?.link {
            Some(link) => at = link.parent,
            None => return Ok(()),
        }
    }
}
