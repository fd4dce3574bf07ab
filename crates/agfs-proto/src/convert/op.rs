//! Operations.

use super::{FromWire, ToWire, all, file_id, name, required, time};
use crate::v1;
use agfs_core::attr::AttrChange;
use agfs_core::error::{Error, Result};
use agfs_core::id::{ChunkHash, MountId};
use agfs_core::manifest::{Extent, Splice};
use agfs_core::op::{Author, ContentEdit, NewNode, Op, RenameMode, TimedOp, XattrMode};

impl FromWire<v1::Author> for Author {
    fn from_wire(w: v1::Author) -> Result<Self> {
        const MAX: usize = 256;
        for (field, value) in [("agent", &w.agent), ("task", &w.task), ("step", &w.step)] {
            if value.len() > MAX || value.chars().any(char::is_control) {
                return Err(Error::invalid(format!(
                    "{field} has {} bytes; use up to {MAX} without control characters",
                    value.len()
                )));
            }
        }
        Ok(Author { mount: MountId(w.mount), agent: w.agent.into(), task: w.task.into(), step: w.step.into() })
    }
}

impl ToWire<v1::Author> for Author {
    fn to_wire(&self) -> v1::Author {
        v1::Author {
            mount: self.mount.0,
            agent: self.agent.to_string(),
            task: self.task.to_string(),
            step: self.step.to_string(),
        }
    }
}

impl FromWire<v1::NewNode> for NewNode {
    fn from_wire(w: v1::NewNode) -> Result<Self> {
        Ok(match required(w.kind, "new_node.kind")? {
            v1::new_node::Kind::File(_) => NewNode::File,
            v1::new_node::Kind::Dir(d) => NewNode::Dir { shadow: d.shadow },
            v1::new_node::Kind::Symlink(target) => NewNode::Symlink(target),
            v1::new_node::Kind::Special(s) => {
                let (kind, rdev) = FromWire::from_wire(s)?;
                NewNode::Special { kind, rdev }
            }
        })
    }
}

impl ToWire<v1::NewNode> for NewNode {
    fn to_wire(&self) -> v1::NewNode {
        let kind = match self {
            NewNode::File => v1::new_node::Kind::File(v1::NewFile {}),
            NewNode::Dir { shadow } => v1::new_node::Kind::Dir(v1::NewDir { shadow: *shadow }),
            NewNode::Symlink(target) => v1::new_node::Kind::Symlink(target.clone()),
            NewNode::Special { kind, rdev } => {
                v1::new_node::Kind::Special(v1::Special { kind: kind.to_wire(), rdev: *rdev })
            }
        };
        v1::NewNode { kind: Some(kind) }
    }
}

impl FromWire<v1::Splice> for Splice {
    fn from_wire(w: v1::Splice) -> Result<Self> {
        Ok(Splice { offset: w.offset, len: w.len, with: all(w.with)? })
    }
}

impl FromWire<v1::ContentEdit> for ContentEdit {
    fn from_wire(w: v1::ContentEdit) -> Result<Self> {
        Ok(match w.base {
            None => ContentEdit::Whole(all::<_, Extent>(w.extents)?),
            Some(base) => {
                ContentEdit::Splices { base: ChunkHash::from_slice(&base)?, splices: all(w.splices)?, size: w.size }
            }
        })
    }
}

impl ToWire<v1::ContentEdit> for ContentEdit {
    fn to_wire(&self) -> v1::ContentEdit {
        let extents = |list: &[Extent]| list.iter().map(ToWire::to_wire).collect();
        match self {
            ContentEdit::Whole(list) => {
                v1::ContentEdit { base: None, splices: Vec::new(), size: 0, extents: extents(list) }
            }
            ContentEdit::Splices { base, splices, size } => v1::ContentEdit {
                base: Some(base.0.to_vec()),
                splices: splices
                    .iter()
                    .map(|s| v1::Splice { offset: s.offset, len: s.len, with: extents(&s.with) })
                    .collect(),
                size: *size,
                extents: Vec::new(),
            },
        }
    }
}

fn rename_mode(wire: i32) -> Result<RenameMode> {
    match v1::RenameMode::try_from(wire) {
        Ok(v1::RenameMode::Replace) => Ok(RenameMode::Replace),
        Ok(v1::RenameMode::NoReplace) => Ok(RenameMode::NoReplace),
        Ok(v1::RenameMode::Exchange) => Ok(RenameMode::Exchange),
        Err(_) => Err(Error::invalid(format!("{wire} is no rename mode"))),
    }
}

fn xattr_mode(wire: i32) -> Result<XattrMode> {
    match v1::XattrMode::try_from(wire) {
        Ok(v1::XattrMode::Set) => Ok(XattrMode::Set),
        Ok(v1::XattrMode::Create) => Ok(XattrMode::Create),
        Ok(v1::XattrMode::Replace) => Ok(XattrMode::Replace),
        Err(_) => Err(Error::invalid(format!("{wire} is no mode of setting an attribute"))),
    }
}

impl FromWire<v1::Op> for TimedOp {
    fn from_wire(w: v1::Op) -> Result<Self> {
        use v1::op::Op as W;
        let op = match required(w.op, "op.op")? {
            W::Create(c) => Op::Create {
                parent: file_id(c.parent, "create.parent")?,
                name: name(&c.name)?,
                file_id: file_id(c.file_id, "create.file_id")?,
                node: NewNode::from_wire(required(c.node, "create.node")?)?,
                mode: c.mode,
                uid: c.uid,
                gid: c.gid,
            },
            W::Link(l) => Op::Link {
                file_id: file_id(l.file_id, "link.file_id")?,
                parent: file_id(l.parent, "link.parent")?,
                name: name(&l.name)?,
            },
            W::Unlink(u) => Op::Unlink { parent: file_id(u.parent, "unlink.parent")?, name: name(&u.name)? },
            W::Rmdir(r) => Op::Rmdir { parent: file_id(r.parent, "rmdir.parent")?, name: name(&r.name)? },
            W::Rename(r) => Op::Rename {
                parent: file_id(r.parent, "rename.parent")?,
                name: name(&r.name)?,
                new_parent: file_id(r.new_parent, "rename.new_parent")?,
                new_name: name(&r.new_name)?,
                mode: rename_mode(r.mode)?,
            },
            W::SetAttr(s) => Op::SetAttr {
                file_id: file_id(s.file_id, "set_attr.file_id")?,
                change: AttrChange::from_wire(required(s.change, "set_attr.change")?)?,
            },
            W::SetXattr(s) => Op::SetXattr {
                file_id: file_id(s.file_id, "set_xattr.file_id")?,
                name: s.name,
                value: s.value,
                mode: xattr_mode(s.mode)?,
            },
            W::RemoveXattr(r) => Op::RemoveXattr { file_id: file_id(r.file_id, "remove_xattr.file_id")?, name: r.name },
            W::SetContent(s) => Op::SetContent {
                file_id: file_id(s.file_id, "set_content.file_id")?,
                edit: ContentEdit::from_wire(required(s.edit, "set_content.edit")?)?,
                mtime: time(s.mtime_ns),
                mode: s.mode,
            },
        };
        Ok(TimedOp { time: time(w.time_ns), op })
    }
}

impl ToWire<v1::Op> for TimedOp {
    fn to_wire(&self) -> v1::Op {
        use v1::op::Op as W;
        let bytes = |n: &agfs_core::Name| n.as_bytes().to_vec();
        let op = match &self.op {
            Op::Create { parent, name, file_id, node, mode, uid, gid } => W::Create(v1::CreateOp {
                parent: parent.0,
                name: bytes(name),
                file_id: file_id.0,
                node: Some(node.to_wire()),
                mode: *mode,
                uid: *uid,
                gid: *gid,
            }),
            Op::Link { file_id, parent, name } => {
                W::Link(v1::LinkOp { file_id: file_id.0, parent: parent.0, name: bytes(name) })
            }
            Op::Unlink { parent, name } => W::Unlink(v1::UnlinkOp { parent: parent.0, name: bytes(name) }),
            Op::Rmdir { parent, name } => W::Rmdir(v1::RmdirOp { parent: parent.0, name: bytes(name) }),
            Op::Rename { parent, name, new_parent, new_name, mode } => W::Rename(v1::RenameOp {
                parent: parent.0,
                name: bytes(name),
                new_parent: new_parent.0,
                new_name: bytes(new_name),
                mode: match mode {
                    RenameMode::Replace => v1::RenameMode::Replace as i32,
                    RenameMode::NoReplace => v1::RenameMode::NoReplace as i32,
                    RenameMode::Exchange => v1::RenameMode::Exchange as i32,
                },
            }),
            Op::SetAttr { file_id, change } => {
                W::SetAttr(v1::SetAttrOp { file_id: file_id.0, change: Some(change.to_wire()) })
            }
            Op::SetXattr { file_id, name, value, mode } => W::SetXattr(v1::SetXattrOp {
                file_id: file_id.0,
                name: name.clone(),
                value: value.clone(),
                mode: match mode {
                    XattrMode::Set => v1::XattrMode::Set as i32,
                    XattrMode::Create => v1::XattrMode::Create as i32,
                    XattrMode::Replace => v1::XattrMode::Replace as i32,
                },
            }),
            Op::RemoveXattr { file_id, name } => {
                W::RemoveXattr(v1::RemoveXattrOp { file_id: file_id.0, name: name.clone() })
            }
            Op::SetContent { file_id, edit, mtime, mode } => W::SetContent(v1::SetContentOp {
                file_id: file_id.0,
                edit: Some(edit.to_wire()),
                mtime_ns: mtime.0,
                mode: *mode,
            }),
        };
        v1::Op { time_ns: self.time.0, op: Some(op) }
    }
}
