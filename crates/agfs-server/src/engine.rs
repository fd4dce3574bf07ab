//! What every operation works with: the store, the contents, the clock, the counters, and the spaces that are open.
//!
//! Holds them and hands them out; what is done with them is in `ops`, one file per family of verbs.

use crate::blob::ChunkStore;
use crate::hub::Hub;
use crate::lease::Lease;
use crate::model::alloc::Allocator;
use crate::model::{keys, record, timelines};
use crate::store::{MetaStore, Read, Step};
use agfs_core::error::{Error, Result};
use agfs_core::id::{Seq, SpaceId};
use agfs_core::space::{Point, Space};
use agfs_core::time::{Clock, Timestamp};
use agfs_core::timeline::{Lineage, Timeline};
use agfs_proto::v1;
use parking_lot::{Mutex, MutexGuard, RwLock};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The server's state.
pub struct Engine {
    /// Metadata.
    pub meta: Arc<dyn MetaStore>,
    /// Contents.
    pub chunks: Arc<ChunkStore>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Numbers given out once.
    pub alloc: Allocator,
    spaces: RwLock<FxHashMap<SpaceId, Arc<SpaceCell>>>,
    names: RwLock<BTreeMap<String, SpaceId>>,
    /// Held while spaces are created or renamed, so that a name is taken once. Taken before any space's own lock.
    pub naming: Mutex<()>,
    /// Whether a timeline is being flattened.
    pub flattening: AtomicBool,
}

/// A space that is open: its head under a lock, and who listens to it.
pub struct SpaceCell {
    /// Its id.
    pub id: SpaceId,
    state: Mutex<SpaceState>,
    /// Mounts and watchers.
    pub hub: Hub,
    /// Which mount has it to itself.
    pub lease: Arc<Lease>,
}

/// The head of a space. One writer at a time: whoever holds the lock.
pub struct SpaceState {
    /// The space's record.
    pub space: Space,
    /// The timeline that is written, with its last seq.
    pub timeline: Timeline,
    /// Where its present is read; the tip's seq is the greatest there is, so that it need not follow every change.
    pub lineage: Arc<Lineage>,
    /// The time of the last change: the next one is not earlier.
    pub last_time: Timestamp,
}

impl SpaceState {
    /// The state as stored. Fails with `Corrupt` when its records do not fit together.
    pub fn load(read: &dyn Read, space: Space) -> Result<SpaceState> {
        let timeline = timelines::get(read, space.head)?;
        let last = timelines::log_record(read, timeline.id, timeline.head)?;
        let last_time = last.map_or(space.created, |r| r.time);
        let lineage = Arc::new(head_lineage(read, &timeline)?);
        Ok(SpaceState { space, timeline, lineage, last_time })
    }

    /// The present as a point.
    pub fn head(&self) -> Point {
        Point { timeline: self.timeline.id, seq: self.timeline.head }
    }

    /// The lineage that shows the present, whatever is written after.
    pub fn lineage_now(&self) -> Lineage {
        self.lineage.as_of(self.timeline.head)
    }

    /// The time for a change that is made now.
    pub fn tick(&self, clock: &dyn Clock) -> Timestamp {
        clock.now().max(self.last_time)
    }
}

/// The lineage of the head of a timeline, open at the tip.
pub fn head_lineage(read: &dyn Read, timeline: &Timeline) -> Result<Lineage> {
    // A seq of the timeline's own, even while it has none, so that its tip is always part of the lineage.
    let tip = Point { timeline: timeline.id, seq: timeline.head.max(timeline.first) };
    Ok(timelines::lineage(read, tip)?.as_of(Seq(u64::MAX)))
}

impl SpaceCell {
    /// A space with this head and nobody listening.
    pub fn new(state: SpaceState) -> Self {
        let hub = Hub::new(state.head());
        SpaceCell { id: state.space.id, state: Mutex::new(state), hub, lease: Arc::default() }
    }

    /// Locks the head for writing. Never held across an await or a call to a peer.
    pub fn lock(&self) -> MutexGuard<'_, SpaceState> {
        self.state.lock()
    }
}

impl Engine {
    /// Opens every space in the store.
    pub fn open(meta: Arc<dyn MetaStore>, chunks: Arc<ChunkStore>, clock: Arc<dyn Clock>) -> Result<Engine> {
        let mut found: Vec<Space> = Vec::new();
        let (start, end) = keys::spaces();
        meta.scan(&start, &end, &mut |_, value| {
            found.push(record::decode::<v1::Space, _>(value, "space")?);
            Ok(Step::Next)
        })?;
        let engine = Engine {
            alloc: Allocator::new(meta.clone()),
            meta,
            chunks,
            clock,
            spaces: RwLock::default(),
            names: RwLock::default(),
            naming: Mutex::new(()),
            flattening: AtomicBool::new(false),
        };
        for space in found.into_iter().filter(|s| !s.deleted) {
            engine.admit(SpaceState::load(engine.read(), space)?);
        }
        Ok(engine)
    }

    /// Gives a space to the one mount that it has, if it can have it: see [`Lease::offer`].
    ///
    /// # Errors
    /// Those of the store.
    pub fn offer_lease(&self, cell: &SpaceCell) -> Result<()> {
        // A space that is being changed is busy; there will be another time.
        let Some(_locked) = cell.state.try_lock() else { return Ok(()) };
        cell.lease.offer(&cell.hub, || self.alloc.next("lease"))
    }

    /// The store, for reading.
    pub fn read(&self) -> &dyn Read {
        &*self.meta as &dyn Read
    }

    /// Makes a space known.
    pub fn admit(&self, state: SpaceState) -> Arc<SpaceCell> {
        let name = state.space.name.clone();
        let cell = Arc::new(SpaceCell::new(state));
        self.spaces.write().insert(cell.id, cell.clone());
        self.names.write().insert(name, cell.id);
        cell
    }

    /// Makes a space unknown; its records stay.
    pub fn dismiss(&self, space: &Space) {
        self.spaces.write().remove(&space.id);
        self.names.write().remove(&space.name);
    }

    /// The space with this name or id. Fails with `NotFound`.
    pub fn space(&self, name: &str) -> Result<Arc<SpaceCell>> {
        let id = self.names.read().get(name).copied().or_else(|| name.parse().ok());
        id.and_then(|id| self.spaces.read().get(&id).cloned()).ok_or_else(|| {
            Error::not_found(format!("there is no space {name:?}; `agfs space list` shows those there are"))
        })
    }

    /// Whether a space has this name.
    pub fn has_space(&self, name: &str) -> bool {
        self.names.read().contains_key(name)
    }

    /// Every space, in order of name.
    pub fn all_spaces(&self) -> Vec<Arc<SpaceCell>> {
        let spaces = self.spaces.read();
        self.names.read().values().filter_map(|id| spaces.get(id).cloned()).collect()
    }
}
