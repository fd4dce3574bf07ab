//! Contents and directories as commands need them: whole small files, beginnings, and walks.

use crate::exit::Result;
use agfs_client::Connection;
use agfs_core::node::{Content, Node};
use agfs_core::{Name, Result as CoreResult};

/// The bytes of a content; `None` when it has more than `limit`.
pub async fn bytes(conn: &Connection, content: &Content, limit: u64) -> CoreResult<Option<Vec<u8>>> {
    if content.size > limit {
        return Ok(None);
    }
    let manifest = conn.manifest_of(content).await?;
    let mut out = Vec::with_capacity(usize::try_from(content.size).unwrap_or(0));
    conn.read_manifest(&manifest, &mut out).await?;
    Ok(Some(out))
}

/// The node at a path, and the directory that it is in (none for the root).
pub async fn node(conn: &Connection, space: &str, at: &str, path: &[u8]) -> CoreResult<(Node, Option<Node>)> {
    let mut nodes = conn.resolve(space, at, path).await?.nodes;
    let node = nodes.pop().ok_or_else(|| agfs_core::Error::internal("the server resolved a path to nothing"))?;
    Ok((node, nodes.pop()))
}

/// One thing found by a walk.
pub struct Step {
    /// The path below where the walk began, without a leading slash.
    pub path: Vec<u8>,
    /// Its name.
    pub name: Name,
    /// What it is.
    pub node: Node,
    /// For each level down to it, whether it is the last entry there: for drawing a tree.
    pub last: Vec<bool>,
}

/// Walks what is below a directory, depth first and in order of name, down to `depth` levels, and hands each thing to `visit`.
pub async fn walk(
    conn: &Connection,
    (space, at): (&str, &str),
    top: &Node,
    depth: usize,
    mut visit: impl FnMut(Step) -> Result<()>,
) -> Result<()> {
    struct Level {
        path: Vec<u8>,
        entries: std::vec::IntoIter<(Name, Node)>,
        last: Vec<bool>,
    }
    let first = conn.list_dir(space, at, top.file_id).await?;
    let mut levels = vec![Level { path: Vec::new(), entries: first.entries.into_iter(), last: Vec::new() }];
    while let Some(level) = levels.last_mut() {
        let Some((name, node)) = level.entries.next() else {
            levels.pop();
            continue;
        };
        let mut path = level.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        let mut last = level.last.clone();
        last.push(level.entries.len() == 0);
        let below = node.kind().is_dir() && !node.is_shadow() && levels.len() < depth;
        let entries = if below { Some(conn.list_dir(space, at, node.file_id).await?.entries) } else { None };
        visit(Step { path: path.clone(), name, node, last: last.clone() })?;
        if let Some(entries) = entries {
            levels.push(Level { path, entries: entries.into_iter(), last });
        }
    }
    Ok(())
}
