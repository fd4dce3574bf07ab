//! New nodes and new names: create, mkdir, symlink, mknod, link.

use super::{At, Outcome, Tree, bind, event, require_dir, require_node};
use crate::attr::{Attr, PERMISSION_BITS, SET_GID};
use crate::change::{Change, Step};
use crate::error::{Error, ErrorKind, Result};
use crate::event::EventKind;
use crate::id::FileId;
use crate::name::Name;
use crate::node::{Body, Content, DirInfo, Link, MAX_LINKS, MAX_SYMLINK, Node, NodeKind};
use crate::op::NewNode;

/// Whose the new node is to be.
#[derive(Clone, Copy)]
pub(super) struct Owner {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

pub(super) fn create(
    tree: &mut dyn Tree,
    at: At,
    parent: FileId,
    name: &Name,
    file_id: FileId,
    new: &NewNode,
    owner: Owner,
) -> Result<Outcome> {
    let mut dir = require_dir(tree, parent)?;
    require_free(tree, &dir, name)?;
    if tree.node(file_id)?.is_some() {
        return Err(Error::conflict(format!("the id {file_id} is taken; reserve a new one")));
    }
    let body = body(new, file_id)?;
    let mut attr = Attr {
        mode: owner.mode & PERMISSION_BITS,
        uid: owner.uid,
        gid: owner.gid,
        atime: at.time,
        mtime: at.time,
        ctime: at.time,
        btime: at.time,
    };
    if dir.attr.mode & SET_GID != 0 {
        attr.gid = dir.attr.gid;
        if matches!(body, Body::Dir(_)) {
            attr.mode |= SET_GID;
        }
    }
    let link = Link { parent, name: name.clone() };
    let node = Node {
        file_id,
        link: Some(link.clone()),
        more_links: Vec::new(),
        attr,
        xattrs: None,
        body,
        version: at.seq,
        version_no: 0,
    };
    let bound = bind(&mut dir, name, file_id, node.kind(), at)?;
    let event = event(EventKind::Create, &node, Some(link));
    Ok(Some(Step { event, changes: vec![Change::Put(node), bound, Change::Put(dir)] }))
}

fn body(new: &NewNode, file_id: FileId) -> Result<Body> {
    Ok(match new {
        NewNode::File => Body::File(Content::empty()),
        NewNode::Dir { shadow } => {
            Body::Dir(DirInfo { entries: 0, subdirs: 0, dead: 0, entry_set: file_id, shadow: *shadow })
        }
        NewNode::Symlink(target) => {
            if target.is_empty() || target.contains(&0) {
                return Err(Error::not_found("a symbolic link needs a target of at least one byte, without NUL"));
            }
            if target.len() > MAX_SYMLINK {
                return Err(Error::new(
                    ErrorKind::NameTooLong,
                    format!("a symbolic link's target has at most {MAX_SYMLINK} bytes, this one {}", target.len()),
                ));
            }
            Body::Symlink(target.as_slice().into())
        }
        NewNode::Special { kind, rdev } => match kind {
            NodeKind::Fifo | NodeKind::Socket => Body::Special { kind: *kind, rdev: 0 },
            NodeKind::CharDevice | NodeKind::BlockDevice => Body::Special { kind: *kind, rdev: *rdev },
            NodeKind::File | NodeKind::Dir | NodeKind::Symlink => {
                return Err(Error::invalid(format!("{kind:?} is not a special file")));
            }
        },
    })
}

pub(super) fn link(tree: &mut dyn Tree, at: At, file_id: FileId, parent: FileId, name: &Name) -> Result<Outcome> {
    let mut dir = require_dir(tree, parent)?;
    let mut node = require_node(tree, file_id)?;
    if node.kind().is_dir() {
        return Err(Error::not_permitted(format!("{file_id} is a directory: directories have no hard links")));
    }
    require_free(tree, &dir, name)?;
    if node.links().count() >= MAX_LINKS {
        return Err(Error::new(
            ErrorKind::TooManyLinks,
            format!("{file_id} has {MAX_LINKS} links, the most a file can have"),
        ));
    }
    let link = Link { parent, name: name.clone() };
    node.more_links.extend(node.link.replace(link.clone()));
    node.attr.ctime = node.attr.ctime.then(at.time);
    node.version = at.seq;
    let bound = bind(&mut dir, name, file_id, node.kind(), at)?;
    let event = event(EventKind::Link, &node, Some(link));
    Ok(Some(Step { event, changes: vec![Change::Put(node), bound, Change::Put(dir)] }))
}

fn require_free(tree: &mut dyn Tree, dir: &Node, name: &Name) -> Result<()> {
    match tree.child(dir, name)? {
        None => Ok(()),
        Some(_) => Err(Error::already_exists(format!("{} already has an entry {name:?}", dir.file_id))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::new_root;
    use crate::id::Seq;
    use crate::time::Timestamp;

    /// A root and one file with as many links as asked for; every other name is free.
    struct Two(Node, Node);

    impl Tree for Two {
        fn node(&mut self, id: FileId) -> Result<Option<Node>> {
            Ok([&self.0, &self.1].into_iter().find(|node| node.file_id == id).cloned())
        }
        fn child(&mut self, _: &Node, _: &Name) -> Result<Option<FileId>> {
            Ok(None)
        }
        fn manifest(&mut self, _: &Content) -> Result<crate::manifest::Manifest> {
            Ok(crate::manifest::Manifest::empty())
        }
        fn content(&mut self, manifest: crate::manifest::Manifest) -> Result<Content> {
            Ok(Content::inline(manifest))
        }
    }

    #[test]
    fn a_file_has_at_most_65000_links() {
        let name = |i: usize| Name::new(format!("l{i}").as_bytes()).unwrap();
        let link_to = |i| Link { parent: FileId::ROOT, name: name(i) };
        let root = new_root(Seq(1), Timestamp(1), 0o755, 0, 0);
        let file = |links: usize| Node {
            file_id: FileId(7),
            link: Some(link_to(0)),
            more_links: (1..links).map(link_to).collect(),
            body: Body::File(Content::empty()),
            ..root.clone()
        };
        let at = At { seq: Seq(2), time: Timestamp(2) };
        let another = |links| link(&mut Two(root.clone(), file(links)), at, FileId(7), FileId::ROOT, &name(links));
        assert!(another(64_999).unwrap().is_some());
        assert_eq!(another(65_000).unwrap_err().kind(), ErrorKind::TooManyLinks);
    }
}
