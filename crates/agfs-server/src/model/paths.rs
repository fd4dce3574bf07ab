//! Paths: following one down a tree, and naming a node by one.

use super::view::View;
use agfs_core::error::{Error, Result};
use agfs_core::id::FileId;
use agfs_core::name::Name;
use agfs_core::node::{Body, Link, Node};
use agfs_core::path;

/// The deepest directory that a path is built for; a longer chain is a damaged one.
const MAX_DEPTH: usize = 4_096;

/// The nodes along `names`, the root first; shorter where something is missing. Symbolic links are not followed.
pub fn walk(view: View<'_>, root: FileId, names: &[Name]) -> Result<Vec<Node>> {
    let mut nodes = vec![view.require(root)?];
    for name in names {
        let Some(Body::Dir(dir)) = nodes.last().map(|n| &n.body) else { break };
        let Some((id, _)) = view.child(dir.entry_set, name)? else { break };
        nodes.push(view.require(id)?);
    }
    Ok(nodes)
}

/// The node at `names`. Fails with `NotFound` or `NotADirectory` and the path.
pub fn resolve(view: View<'_>, names: &[Name]) -> Result<Node> {
    let mut nodes = walk(view, FileId::ROOT, names)?;
    match nodes.pop() {
        Some(node) if nodes.len() == names.len() => Ok(node),
        last => Err(missing(names, last.as_ref(), nodes.len())),
    }
}

/// Why a walk that ended at `last` after `depth` names did not reach the end.
pub fn missing(names: &[Name], last: Option<&Node>, depth: usize) -> Error {
    let shown = |n: usize| String::from_utf8_lossy(&path::join(&names[..n.min(names.len())])).into_owned();
    match last {
        Some(node) if !node.kind().is_dir() => Error::not_a_directory(format!("{} is not a directory", shown(depth))),
        _ => Error::not_found(format!("there is no {}", shown(depth + 1))),
    }
}

/// The absolute path of a node by its newest link, or `None` when it is not in the tree.
pub fn of_node(view: View<'_>, id: FileId) -> Result<Option<Vec<u8>>> {
    let mut names: Vec<Name> = Vec::new();
    let mut at = id;
    while at != FileId::ROOT {
        let Some(Node { link: Some(link), .. }) = view.node(at)? else { return Ok(None) };
        names.push(link.name);
        at = link.parent;
        if names.len() > MAX_DEPTH {
            return Err(Error::corrupt(format!("the directories above {id} form a ring")));
        }
    }
    Ok(Some(path::join(names.iter().rev())))
}

/// The absolute path of a place, or `None` when its directory is not in the tree.
pub fn of_link(view: View<'_>, link: &Link) -> Result<Option<Vec<u8>>> {
    Ok(of_node(view, link.parent)?.map(|mut dir| {
        if dir.last() != Some(&b'/') {
            dir.push(b'/');
        }
        dir.extend_from_slice(link.name.as_bytes());
        dir
    }))
}
