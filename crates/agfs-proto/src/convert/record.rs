//! Records about trees: events, timelines, spaces, checkpoints, mounts, differences.

use super::node::optional_id;
use super::{FromWire, ToWire, file_id, required, time};
use crate::v1;
use agfs_core::diff::{DiffEntry, DiffKind};
use agfs_core::error::{Error, Result};
use agfs_core::event::{Event, EventKind, LogRecord};
use agfs_core::id::{CheckpointId, FamilyId, MountId, OpId, Seq, SpaceId, TimelineId};
use agfs_core::node::{Link, Node, NodeKind};
use agfs_core::op::Author;
use agfs_core::space::{Cause, Checkpoint, Consistency, Mount, Point, Space, SpaceType};
use agfs_core::timeline::Timeline;

impl FromWire<v1::Event> for Event {
    fn from_wire(w: v1::Event) -> Result<Self> {
        Ok(Event {
            kind: EventKind::from_code(&w.kind)
                .ok_or_else(|| Error::invalid(format!("{:?} is no kind of event", w.kind)))?,
            file_id: file_id(w.file_id, "event.file_id")?,
            node_kind: NodeKind::from_wire(w.node_kind)?,
            link: w.link.map(Link::from_wire).transpose()?,
            from: w.from.map(Link::from_wire).transpose()?,
            replaced: optional_id(w.replaced),
            version_no: w.version_no,
        })
    }
}

impl ToWire<v1::Event> for Event {
    fn to_wire(&self) -> v1::Event {
        v1::Event {
            kind: self.kind.code().to_owned(),
            file_id: self.file_id.0,
            node_kind: self.node_kind.to_wire(),
            link: self.link.as_ref().map(ToWire::to_wire),
            from: self.from.as_ref().map(ToWire::to_wire),
            replaced: self.replaced.map_or(0, |id| id.0),
            version_no: self.version_no,
        }
    }
}

impl FromWire<v1::LogRecord> for LogRecord {
    fn from_wire(w: v1::LogRecord) -> Result<Self> {
        Ok(LogRecord {
            seq: Seq(w.seq),
            time: time(w.time_ns),
            op_id: OpId::from_wire(w.op_id)?,
            author: w.author.map(Author::from_wire).transpose()?.unwrap_or_default(),
            event: Event::from_wire(required(w.event, "log_record.event")?)?,
        })
    }
}

impl ToWire<v1::LogRecord> for LogRecord {
    fn to_wire(&self) -> v1::LogRecord {
        v1::LogRecord {
            seq: self.seq.0,
            time_ns: self.time.0,
            op_id: self.op_id.to_wire(),
            author: Some(self.author.to_wire()),
            event: Some(self.event.to_wire()),
        }
    }
}

impl FromWire<v1::Point> for Point {
    fn from_wire(w: v1::Point) -> Result<Self> {
        Ok(Point { timeline: TimelineId(w.timeline), seq: Seq(w.seq) })
    }
}

impl ToWire<v1::Point> for Point {
    fn to_wire(&self) -> v1::Point {
        v1::Point { timeline: self.timeline.0, seq: self.seq.0 }
    }
}

impl FromWire<v1::Timeline> for Timeline {
    fn from_wire(w: v1::Timeline) -> Result<Self> {
        Ok(Timeline {
            id: TimelineId(w.id),
            family: FamilyId(w.family),
            space: SpaceId(w.space),
            parent: w.parent.map(Point::from_wire).transpose()?,
            first: Seq(w.first),
            head: Seq(w.head),
            flat: w.flat,
        })
    }
}

impl ToWire<v1::Timeline> for Timeline {
    fn to_wire(&self) -> v1::Timeline {
        v1::Timeline {
            id: self.id.0,
            family: self.family.0,
            space: self.space.0,
            parent: self.parent.as_ref().map(ToWire::to_wire),
            first: self.first.0,
            head: self.head.0,
            flat: self.flat,
        }
    }
}

impl FromWire<v1::Space> for Space {
    fn from_wire(w: v1::Space) -> Result<Self> {
        Ok(Space {
            id: SpaceId(w.id),
            name: w.name,
            space_type: SpaceType::from_code(&w.r#type)?,
            tenant_code: w.tenant_code,
            owner: w.owner,
            family: FamilyId(w.family),
            head: TimelineId(w.head),
            created: time(w.created_ns),
            deleted: w.deleted,
            shadow_rules: w.shadow_rules.map(|r| r.rules),
        })
    }
}

impl ToWire<v1::Space> for Space {
    fn to_wire(&self) -> v1::Space {
        v1::Space {
            id: self.id.0,
            name: self.name.clone(),
            r#type: self.space_type.code().to_owned(),
            tenant_code: self.tenant_code.clone(),
            owner: self.owner.clone(),
            family: self.family.0,
            head: self.head.0,
            created_ns: self.created.0,
            deleted: self.deleted,
            shadow_rules: self.shadow_rules.clone().map(|rules| v1::ShadowRules { rules }),
        }
    }
}

impl FromWire<v1::Checkpoint> for Checkpoint {
    fn from_wire(w: v1::Checkpoint) -> Result<Self> {
        Ok(Checkpoint {
            id: CheckpointId(w.id),
            space: SpaceId(w.space),
            name: w.name,
            at: Point::from_wire(required(w.at, "checkpoint.at")?)?,
            cause: Cause::from_code(&w.cause)?,
            author: w.author.map(Author::from_wire).transpose()?.unwrap_or_default(),
            note: w.note,
            pinned: w.pinned,
            created: time(w.created_ns),
        })
    }
}

impl ToWire<v1::Checkpoint> for Checkpoint {
    fn to_wire(&self) -> v1::Checkpoint {
        v1::Checkpoint {
            id: self.id.0,
            space: self.space.0,
            name: self.name.clone(),
            at: Some(self.at.to_wire()),
            cause: self.cause.code().to_owned(),
            author: Some(self.author.to_wire()),
            note: self.note.clone(),
            pinned: self.pinned,
            created_ns: self.created.0,
        }
    }
}

impl FromWire<v1::Mount> for Mount {
    fn from_wire(w: v1::Mount) -> Result<Self> {
        Ok(Mount {
            id: MountId(w.id),
            space: SpaceId(w.space),
            root_file_id: file_id(w.root_file_id.max(1), "mount.root_file_id")?,
            mount_path: w.mount_path,
            tenant_code: w.tenant_code,
            user_id: w.user_id,
            conversation_id: w.conversation_id,
            author: w.author.map(Author::from_wire).transpose()?.unwrap_or_default(),
            host: w.host,
            consistency: Consistency::from_code(&w.consistency)?,
            read_only: w.read_only,
            seen: Seq(w.seen),
        })
    }
}

impl ToWire<v1::Mount> for Mount {
    fn to_wire(&self) -> v1::Mount {
        v1::Mount {
            id: self.id.0,
            space: self.space.0,
            root_file_id: self.root_file_id.0,
            mount_path: self.mount_path.clone(),
            tenant_code: self.tenant_code.clone(),
            user_id: self.user_id.clone(),
            conversation_id: self.conversation_id.clone(),
            author: Some(self.author.to_wire()),
            host: self.host.clone(),
            consistency: self.consistency.code().to_owned(),
            read_only: self.read_only,
            seen: self.seen.0,
        }
    }
}

impl FromWire<v1::DiffEntry> for DiffEntry {
    fn from_wire(w: v1::DiffEntry) -> Result<Self> {
        Ok(DiffEntry {
            kind: DiffKind::from_code(&w.change)
                .ok_or_else(|| Error::invalid(format!("{:?} is no kind of difference", w.change)))?,
            path: w.path,
            from: (!w.from.is_empty()).then_some(w.from),
            before: w.before.map(Node::from_wire).transpose()?,
            after: w.after.map(Node::from_wire).transpose()?,
        })
    }
}

impl ToWire<v1::DiffEntry> for DiffEntry {
    fn to_wire(&self) -> v1::DiffEntry {
        v1::DiffEntry {
            change: self.kind.code().to_owned(),
            path: self.path.clone(),
            from: self.from.clone().unwrap_or_default(),
            before: self.before.as_ref().map(ToWire::to_wire),
            after: self.after.as_ref().map(ToWire::to_wire),
        }
    }
}
