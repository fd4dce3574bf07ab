//! Paths within a space with symbolic links followed, as the path-level helpers need them.

use crate::connection::Connection;
use crate::tree::Resolved;
use agfs_core::node::{Body, Node};
use agfs_core::space::Point;
use agfs_core::{Error, FileId, Name, Result, path};

/// How many symbolic links are followed on one path, as the operating system has it.
const MAX_FOLLOWED: usize = 40;

/// Where a path leads.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The directory that has, or would have, the last name. For the root: the root itself.
    pub parent: Node,
    /// The last name; `None` for the root.
    pub name: Option<Name>,
    /// What is there, if anything.
    pub node: Option<Node>,
    /// The state in which the path was followed.
    pub at: Point,
}

impl Place {
    /// The node, or `NotFound` with the path.
    pub fn existing(self, shown: &[u8]) -> Result<Node> {
        self.node.ok_or_else(|| Error::not_found(format!("there is no {}", show(shown))))
    }

    /// Directory and name, or `Refused` for the root.
    pub fn entry(&self, shown: &[u8]) -> Result<(FileId, Name)> {
        match &self.name {
            Some(name) => Ok((self.parent.file_id, name.clone())),
            None => Err(Error::refused(format!("{} is the root of the space; name something in it", show(shown)))),
        }
    }
}

/// A path for people.
pub(crate) fn show(path: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(path))
}

impl Connection {
    /// Follows `path` and every symbolic link on the way, the last one only with `follow_last`. Everything but the last name must
    /// exist: fails with `NotFound`, `NotADirectory`, and with `Refused` for a link that leads out of the space.
    pub(crate) async fn place(&self, space: &str, at: &str, path: &[u8], follow_last: bool) -> Result<Place> {
        let mut names = path::parse(path)?;
        for _ in 0..=MAX_FOLLOWED {
            let Resolved { nodes, at: state } = self.resolve_partial(space, at, &path::join(&names)).await?;
            let reached = nodes.len().saturating_sub(1).min(names.len());
            let Some(last) = nodes.last().cloned() else {
                return Err(Error::internal("a resolved path without its root"));
            };
            let complete = reached == names.len();
            if let Body::Symlink(target) = &last.body
                && (!complete || follow_last)
            {
                names = followed(&names, reached, target, path)?;
                continue;
            }
            let parent_of = |n: usize| nodes.get(n).cloned().ok_or_else(|| Error::internal("a path without a parent"));
            if complete {
                let parent = parent_of(reached.saturating_sub(1))?;
                return Ok(Place { parent, name: names.last().cloned(), node: Some(last), at: state });
            }
            if !last.kind().is_dir() {
                let shown = path::join(names.iter().take(reached));
                return Err(Error::not_a_directory(format!("{} is not a directory", show(&shown))));
            }
            if reached + 1 == names.len() {
                return Ok(Place { parent: last, name: names.last().cloned(), node: None, at: state });
            }
            let shown = path::join(names.iter().take(reached + 1));
            return Err(Error::not_found(format!("there is no directory {}", show(&shown))));
        }
        Err(Error::refused(format!("{} goes through more than {MAX_FOLLOWED} symbolic links", show(path))))
    }
}

/// The names of the path in which the link at `names[..reached]` is replaced by its target.
fn followed(names: &[Name], reached: usize, target: &[u8], path: &[u8]) -> Result<Vec<Name>> {
    let outside = || {
        Error::refused(format!(
            "{} goes through a symbolic link to {}, which is not in the space",
            show(path),
            show(target)
        ))
    };
    if target.first() == Some(&b'/') {
        return Err(outside());
    }
    let mut out: Vec<Name> = names.iter().take(reached.saturating_sub(1)).cloned().collect();
    for part in target.split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                out.pop().ok_or_else(outside)?;
            }
            name => out.push(Name::new(name)?),
        }
    }
    out.extend(names.iter().skip(reached).cloned());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(path: &str, reached: usize, target: &str) -> Result<String> {
        let names = path::parse(path.as_bytes()).unwrap();
        followed(&names, reached, target.as_bytes(), path.as_bytes())
            .map(|n| String::from_utf8(path::join(&n)).unwrap())
    }

    #[test]
    fn a_link_is_replaced_by_its_target() {
        assert_eq!(follow("/a/l/c", 2, "../b").unwrap(), "/b/c");
        assert_eq!(follow("/l", 1, "x/./y").unwrap(), "/x/y");
        assert_eq!(follow("/a/l/c", 2, "x").unwrap(), "/a/x/c");
        assert!(follow("/l", 1, "..").is_err());
        assert!(follow("/l", 1, "/etc").is_err());
    }
}
