//! Spaces: create, show, list, delete, fork.

use super::dedup::{self, Answer};
use super::rollback::{put_event, put_timeline};
use crate::engine::{Engine, SpaceCell, SpaceState, head_lineage};
use crate::model::txn::Origin;
use crate::model::{keys, record, timelines};
use crate::store::Batch;
use agfs_core::apply::new_root;
use agfs_core::error::{Error, Result};
use agfs_core::event::EventKind;
use agfs_core::id::{FamilyId, FileId, OpId, Seq, SpaceId, TimelineId};
use agfs_core::op::Author;
use agfs_core::shadow::Rules;
use agfs_core::space::{Point, Space, SpaceType, check_space_name};
use agfs_core::timeline::Timeline;
use agfs_proto::v1;
use std::sync::Arc;

/// What a new space is to be.
#[derive(Clone, Debug)]
pub struct NewSpace {
    /// The call.
    pub op_id: OpId,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub space_type: SpaceType,
    /// The tenant, or empty.
    pub tenant_code: String,
    /// The owner, or empty.
    pub owner: String,
    /// Shadow rules in place of the defaults.
    pub shadow_rules: Option<Vec<String>>,
    /// Permission bits of the root directory.
    pub mode: u32,
    /// Owner of the root directory.
    pub uid: u32,
    /// Group of the root directory.
    pub gid: u32,
}

/// A space and where its head is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceInfo {
    /// The space.
    pub space: Space,
    /// The seq of its head.
    pub head: Seq,
}

impl SpaceCell {
    /// The space and where its head is.
    pub fn info(&self) -> SpaceInfo {
        let state = self.lock();
        SpaceInfo { space: state.space.clone(), head: state.timeline.head }
    }
}

impl Engine {
    /// Makes a space with an empty root directory. Fails with `AlreadyExists` when the name is taken.
    pub fn create_space(&self, new: NewSpace) -> Result<SpaceInfo> {
        check_space_name(&new.name)?;
        if let Some(rules) = &new.shadow_rules {
            Rules::parse(rules)?;
        }
        let _naming = self.naming.lock();
        if let Some(done) = self.answered(new.op_id)? {
            return Ok(self.space(&done.space.to_string())?.info());
        }
        self.require_free_name(&new.name)?;
        let id = SpaceId(self.alloc.next("space")?);
        let family = FamilyId(self.alloc.next("family")?);
        let seq = Seq(1);
        let timeline = Timeline {
            id: TimelineId(self.alloc.next("timeline")?),
            family,
            space: id,
            parent: None,
            first: seq,
            head: seq,
            flat: false,
        };
        let time = self.clock.now();
        let space = Space {
            id,
            name: new.name,
            space_type: new.space_type,
            tenant_code: new.tenant_code,
            owner: new.owner,
            family,
            head: timeline.id,
            created: time,
            deleted: false,
            shadow_rules: new.shadow_rules,
        };
        let mut batch = Batch::new();
        let root = new_root(seq, time, new.mode & 0o7777, new.uid, new.gid);
        batch.put(keys::node(timeline.id, FileId::ROOT, seq), record::encode::<v1::Node>(&root));
        self.put_new_space(&mut batch, &space, &timeline, new.op_id, Author::default(), EventKind::Create);
        self.meta.write(batch)?;
        let lineage = Arc::new(head_lineage(self.read(), &timeline)?);
        Ok(self.admit(SpaceState { space, timeline, lineage, last_time: time }).info())
    }

    /// Makes a space that begins as another was at `at`. Copies nothing: its timeline branches there.
    pub fn fork_space(
        self: &Arc<Self>,
        source: &SpaceCell,
        at: &str,
        new_name: &str,
        op_id: OpId,
        author: Author,
    ) -> Result<SpaceInfo> {
        check_space_name(new_name)?;
        let target = self.point(source, at)?;
        let origin = source.info().space;
        let _naming = self.naming.lock();
        if let Some(done) = self.answered(op_id)? {
            return Ok(self.space(&done.space.to_string())?.info());
        }
        self.require_free_name(new_name)?;
        let branch = timelines::branch_point(self.read(), target)?;
        let seq = target.seq.next();
        let id = SpaceId(self.alloc.next("space")?);
        let timeline = Timeline {
            id: TimelineId(self.alloc.next("timeline")?),
            family: origin.family,
            space: id,
            parent: Some(branch),
            first: seq,
            head: seq,
            flat: false,
        };
        let time = self.clock.now();
        let space = Space { id, name: new_name.to_owned(), head: timeline.id, created: time, ..origin };
        let mut batch = Batch::new();
        self.put_new_space(&mut batch, &space, &timeline, op_id, author, EventKind::Fork);
        self.meta.write(batch)?;
        let lineage = Arc::new(head_lineage(self.read(), &timeline)?);
        self.shorten_later(&lineage);
        Ok(self.admit(SpaceState { space, timeline, lineage, last_time: time }).info())
    }

    /// Takes a space away: its name is free again. Its history stays until it is collected, for the forks that stand on
    /// it. Fails with `Refused` while it is mounted.
    pub fn delete_space(&self, name: &str, op_id: OpId) -> Result<SpaceInfo> {
        let _naming = self.naming.lock();
        if let Some(done) = self.answered(op_id)? {
            let gone = record::get::<v1::Space, _>(self.read(), &keys::space(done.space), "space")?;
            let space =
                gone.ok_or_else(|| Error::corrupt(format!("the deleted space {} has no record", done.space)))?;
            return Ok(SpaceInfo { space, head: done.after.seq });
        }
        let cell = self.space(name)?;
        let state = cell.lock();
        if let Some(mount) = cell.hub.mounts().first() {
            let m = &mount.mount;
            return Err(Error::refused(format!(
                "the space {name:?} is mounted at {} on {}: unmount it first",
                m.mount_path, m.host
            )));
        }
        let info = SpaceInfo { space: Space { deleted: true, ..state.space.clone() }, head: state.timeline.head };
        let mut batch = Batch::new();
        batch.put(keys::space(cell.id), record::encode::<v1::Space>(&info.space));
        batch.delete(keys::space_name(&info.space.name));
        dedup::keep(
            &mut batch,
            op_id,
            Answer { from: info.head, after: state.head(), space: cell.id, body: Vec::new() },
        );
        self.meta.write(batch)?;
        self.dismiss(&info.space);
        cell.hub.clear();
        Ok(info)
    }

    fn require_free_name(&self, name: &str) -> Result<()> {
        if self.has_space(name) {
            return Err(Error::already_exists(format!("there already is a space {name:?}; choose another name")));
        }
        Ok(())
    }

    fn put_new_space(
        &self,
        batch: &mut Batch,
        space: &Space,
        timeline: &Timeline,
        op_id: OpId,
        author: Author,
        kind: EventKind,
    ) {
        let at = Point { timeline: timeline.id, seq: timeline.head };
        let origin = Origin { op_id, author, time: space.created };
        put_timeline(batch, timeline);
        put_event(batch, at, &origin, kind);
        batch.put(keys::head_since(space.id, timeline.first), record::encode_number(timeline.id.0));
        batch.put(keys::space(space.id), record::encode::<v1::Space>(space));
        batch.put(keys::space_name(&space.name), record::encode_number(space.id.0));
        dedup::keep(batch, op_id, Answer { from: Seq(0), after: at, space: space.id, body: Vec::new() });
    }
}
