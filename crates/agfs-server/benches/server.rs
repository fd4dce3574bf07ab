//! What the server must hold, measured on RocksDB through the operations alone: going back at any size, batches of small
//! operations, listings of directories with a long past. Prints a table; asserts nothing.
//!
//! `cargo bench -p agfs-server` takes the sizes from `AGFS_BENCH_NODES` (default `100,10000,1000000`).

use agfs_core::id::{FileId, OpId};
use agfs_core::op::{Author, Batch, NewNode, Op, TimedOp};
use agfs_core::space::{Cause, SpaceType};
use agfs_core::time::Clock;
use agfs_core::{Name, Result};
use agfs_server::SystemClock;
use agfs_server::blob::{BlobConfig, ChunkStore};
use agfs_server::engine::{Engine, SpaceCell};
use agfs_server::ops::{NewCheckpoint, NewSpace};
use agfs_server::store::{MetaStore, RocksConfig, RocksStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many operations a batch has.
const BATCH: usize = 500;
/// How often each call is made; the median is shown.
const ROUNDS: usize = 31;

struct Bench {
    engine: Arc<Engine>,
    counter: AtomicU64,
}

impl Bench {
    fn op(&self) -> OpId {
        OpId { client: 1, counter: self.counter.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    fn space(&self, name: &str) -> Result<Arc<SpaceCell>> {
        self.engine.create_space(NewSpace {
            op_id: self.op(),
            name: name.to_owned(),
            space_type: SpaceType::Project,
            tenant_code: String::new(),
            owner: String::new(),
            shadow_rules: None,
            mode: 0o755,
            uid: 0,
            gid: 0,
        })?;
        self.engine.space(name)
    }

    fn apply(&self, cell: &SpaceCell, ops: Vec<Op>) -> Result<()> {
        let time = SystemClock.now();
        let ops = ops.into_iter().map(|op| TimedOp { time, op }).collect();
        self.engine.apply(cell, &Batch { op_id: self.op(), author: Author::default(), ops }).map(|_| ())
    }

    /// Makes `count` files, a thousand to a directory.
    fn fill(&self, cell: &SpaceCell, count: usize) -> Result<()> {
        let (mut left, mut dir) = (count, 0);
        while left > 0 {
            let here = left.min(999);
            let mut ids = self.engine.reserve_ids(cell, here as u32 + 1)?.map(FileId);
            let parent = ids.next().unwrap_or_default();
            let mut ops = vec![create(FileId::ROOT, &format!("d{dir}"), parent, NewNode::Dir { shadow: false })?];
            for (n, id) in ids.enumerate() {
                ops.push(create(parent, &format!("f{n}"), id, NewNode::File)?);
            }
            self.apply(cell, ops)?;
            left -= here;
            dir += 1;
        }
        Ok(())
    }
}

fn create(parent: FileId, name: &str, file_id: FileId, node: NewNode) -> Result<Op> {
    Ok(Op::Create { parent, name: Name::new(name.as_bytes())?, file_id, node, mode: 0o644, uid: 0, gid: 0 })
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, |t| t.as_secs_f64() * 1e3)
}

fn timed<T>(f: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let start = Instant::now();
    f()?;
    Ok(start.elapsed())
}

/// Checkpoint, fork, rollback and undo, each with the sync that makes it durable, in milliseconds.
fn going_back(bench: &Bench, nodes: usize) -> Result<()> {
    let cell = bench.space(&format!("n{nodes}"))?;
    bench.fill(&cell, nodes)?;
    let mut times: [Vec<Duration>; 4] = Default::default();
    for round in 0..ROUNDS {
        let checkpoint = NewCheckpoint {
            op_id: bench.op(),
            name: format!("c{round}"),
            note: String::new(),
            cause: Cause::Manual,
            author: Author::default(),
        };
        let engine = &bench.engine;
        let sync = || engine.meta.sync();
        let id = engine.reserve_ids(&cell, 1)?.start;
        times[0].push(timed(|| engine.create_checkpoint(&cell, checkpoint).and_then(|_| sync()))?);
        bench.apply(&cell, vec![create(FileId::ROOT, &format!("change{round}"), FileId(id), NewNode::File)?])?;
        let name = format!("n{nodes}f{round}");
        times[1].push(timed(|| {
            engine.fork_space(&cell, &format!("c{round}"), &name, bench.op(), Author::default()).and_then(|_| sync())
        })?);
        times[2].push(timed(|| {
            engine.rollback(&cell, bench.op(), &format!("c{round}"), Author::default(), false).and_then(|_| sync())
        })?);
        times[3].push(timed(|| engine.undo(&cell, bench.op(), None, Author::default(), false).and_then(|_| sync()))?);
    }
    let [checkpoint, fork, rollback, undo] = times.map(median);
    println!(
        "{nodes:>9} nodes   checkpoint {checkpoint:7.3} ms   fork {fork:7.3} ms   rollback {rollback:7.3} ms   undo {undo:7.3} ms"
    );
    Ok(())
}

/// Small operations a second through batches.
fn batches(bench: &Bench) -> Result<()> {
    let cell = bench.space("batches")?;
    let count = 200_000usize;
    let mut parent = FileId::ROOT;
    let start = Instant::now();
    for batch in 0..count / BATCH {
        let mut ids = bench.engine.reserve_ids(&cell, BATCH as u32)?.map(FileId);
        let mut ops = Vec::with_capacity(BATCH);
        if batch % 10 == 0 {
            let id = ids.next().unwrap_or_default();
            ops.push(create(FileId::ROOT, &format!("d{batch}"), id, NewNode::Dir { shadow: false })?);
            parent = id;
        }
        for id in ids {
            ops.push(create(parent, &format!("f{id}"), id, NewNode::File)?);
        }
        bench.apply(&cell, ops)?;
    }
    bench.engine.meta.sync()?;
    let rate = count as f64 / start.elapsed().as_secs_f64();
    println!("{rate:>9.0} creates a second in batches of {BATCH}, synced at the end");
    Ok(())
}

/// A listing of a directory whose entries came and went 10^5 times, against one without a past.
fn listings(bench: &Bench) -> Result<()> {
    let cell = bench.space("listings")?;
    let show = |name: &str, pairs: usize, same_name: bool| -> Result<f64> {
        let mut ids = bench.engine.reserve_ids(&cell, 1_001)?.map(FileId);
        let dir = ids.next().unwrap_or_default();
        bench.apply(&cell, vec![create(FileId::ROOT, name, dir, NewNode::Dir { shadow: false })?])?;
        bench.apply(
            &cell,
            ids.enumerate().map(|(n, id)| create(dir, &format!("k{n}"), id, NewNode::File)).collect::<Result<_>>()?,
        )?;
        let mut done = 0;
        while done < pairs {
            let mut ops = Vec::new();
            for id in bench.engine.reserve_ids(&cell, BATCH as u32)? {
                let temporary = if same_name { "tmp".to_owned() } else { format!("t{id}") };
                ops.push(create(dir, &temporary, FileId(id), NewNode::File)?);
                ops.push(Op::Unlink { parent: dir, name: Name::new(temporary.as_bytes())? });
            }
            bench.apply(&cell, ops)?;
            done += BATCH;
        }
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            times.push(timed(|| {
                let mut listing = bench.engine.list_dir(&cell, "", dir)?;
                bench.engine.list_part(&mut listing, usize::MAX)
            })?);
        }
        Ok(median(times))
    };
    let fresh = show("fresh", 0, false)?;
    let same = show("same", 100_000, true)?;
    let many = show("many", 100_000, false)?;
    println!(
        "listing of 1,000 entries: {fresh:.3} ms fresh; after 100,000 create/delete pairs {same:.3} ms ({:.2}x) of one name, {many:.3} ms ({:.2}x) of as many names",
        same / fresh,
        many / fresh
    );
    Ok(())
}

fn run() -> Result<()> {
    let dir = tempfile_dir()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let meta: Arc<dyn MetaStore> = Arc::new(RocksStore::open(&dir.join("meta"), &RocksConfig::default())?);
    let runtime = tokio::runtime::Runtime::new().map_err(|e| agfs_core::Error::io(e.to_string()))?;
    let chunks = runtime.block_on(ChunkStore::open(
        BlobConfig::new("memory:///", dir.join("staging")),
        meta.clone(),
        clock.clone(),
    ))?;
    let bench = Bench { engine: Arc::new(Engine::open(meta, chunks, clock)?), counter: AtomicU64::new(0) };
    batches(&bench)?;
    listings(&bench)?;
    let sizes = std::env::var("AGFS_BENCH_NODES").unwrap_or_else(|_| "100,10000,1000000".into());
    for nodes in sizes.split(',').filter_map(|n| n.trim().parse().ok()) {
        going_back(&bench, nodes)?;
    }
    drop(bench);
    drop(runtime);
    std::fs::remove_dir_all(&dir).map_err(|e| agfs_core::Error::io(e.to_string()))
}

/// A new directory beside the build products: on a disk, where `/tmp` may be memory.
fn tempfile_dir() -> Result<std::path::PathBuf> {
    let dir = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).map_err(|e| agfs_core::Error::io(format!("{}: {e}", dir.display())))?;
    Ok(dir)
}

fn main() {
    if let Err(error) = run() {
        eprintln!("the benchmark failed: {error}");
        std::process::exit(1);
    }
}
