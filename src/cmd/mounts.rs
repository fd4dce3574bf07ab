//! `agfs mounts`, `status` and `sync`.

use crate::cli::{OneMount, Sync};
use crate::context::Context;
use crate::exit::Result;
use crate::mountd::control::{Done, Request, StatusShape};
use crate::mountd::socket;
use crate::mounts::{self, Found};
use crate::output::json::MountShape;
use crate::output::table::Table;
use crate::output::{count, size, text};
use agfs_client::MountState;
use agfs_core::{Error, Result as CoreResult};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// How long a mount process may take to say how it does.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a sync may take.
const SYNC: Duration = Duration::from_secs(600);
/// How long the server is waited for where it can only add to what is known.
const SERVER: Duration = Duration::from_secs(2);

/// Runs `agfs mounts`.
pub async fn list(ctx: &mut Context) -> Result<()> {
    let all = ctx.connect()?.list_mounts().await?;
    let shapes: Vec<MountShape> = all.iter().map(MountShape::from).collect();
    ctx.out.show(&shapes, |out| {
        let mut table = Table::new(&["ID", "SPACE", "PATH", "HOST", "AGENT", "LEASE", ">SEEN", ">LAG", ">PENDING"]);
        for state in &all {
            let mount = &state.mount;
            table.row([
                mount.id.to_string(),
                text(state.space_name.as_bytes()),
                text(mount.mount_path.as_bytes()),
                text(mount.host.as_bytes()),
                text(mount.author.agent.as_bytes()),
                state.lease.clone(),
                mount.seen.0.to_string(),
                state.head.0.saturating_sub(mount.seen.0).to_string(),
                size(state.pending),
            ]);
        }
        out.table(&table)
    })
}

/// Asks the process of a mount. Fails with `Refused` when it cannot be asked from here.
pub fn ask<A: DeserializeOwned>(found: &Found, request: &Request, limit: Duration) -> CoreResult<A> {
    let place = found.mountpoint.display();
    if found.entry.is_none() {
        return Err(Error::refused(format!(
            "the process of the mount at {place} cannot be asked: it is gone, or another user's, or has another XDG_RUNTIME_DIR"
        )));
    }
    socket::ask(&mounts::socket_file(&found.mountpoint), request, limit).map_err(|e| e.context(place))
}

#[derive(Serialize)]
struct Full {
    #[serde(flatten)]
    own: StatusShape,
    lease: String,
    head_seq: Option<u64>,
    lag: Option<u64>,
    pending: u64,
}

/// Runs `agfs status`.
pub async fn status(ctx: &mut Context, args: &OneMount) -> Result<()> {
    let found = ctx.mount_at(args.dir.as_deref())?;
    let own: StatusShape = ask(&found, &Request::Status, ANSWER)?;
    let at_server = server_side(ctx, &own).await;
    let full = Full {
        lease: at_server.as_ref().map_or("unknown".to_owned(), |s| s.lease.clone()),
        head_seq: at_server.as_ref().map(|s| s.head.0),
        lag: at_server.as_ref().map(|s| s.head.0.saturating_sub(own.seen_seq)),
        pending: own.dirty_bytes,
        own,
    };
    ctx.out.show(&full, |out| out.table(&table(&full)))
}

/// What the server knows of the mount; nothing when it does not answer.
async fn server_side(ctx: &Context, own: &StatusShape) -> Option<MountState> {
    let all = ctx.connect_for(SERVER).ok()?.list_mounts().await.ok()?;
    all.into_iter().find(|s| s.mount.id.to_string() == own.mount)
}

fn table(full: &Full) -> Table {
    let own = &full.own;
    let mut table = Table::new(&["MOUNT", "VALUE"]);
    table.row(["space".into(), format!("{} ({})", text(own.space.as_bytes()), own.space_id)]);
    table.row(["path".into(), text(own.path.as_bytes())]);
    table.row(["id, process".into(), format!("{}, {}", own.mount, own.pid)]);
    table.row(["stream".into(), if own.connected { "connected" } else { "lost, reconnecting" }.into()]);
    table.row(["lease".into(), full.lease.clone()]);
    let lag = full.lag.map_or("unknown".into(), |l| count(l, "change", "changes"));
    table.row(["seen, lag".into(), format!("seq:{}, {lag}", own.seen_seq)]);
    table.row(["pending".into(), format!("{}, {}", count(own.dirty_files, "file", "files"), size(own.dirty_bytes))]);
    table.row([
        "tree".into(),
        format!(
            "{} in memory, {} whole",
            count(own.cached_nodes, "node", "nodes"),
            count(own.loaded_dirs, "directory", "directories")
        ),
    ]);
    let cache = &own.cache;
    table.row(["cache".into(), format!("{} on disk, {} in memory", size(cache.disk_bytes), size(cache.memory_bytes))]);
    let hits = format!(
        "{} from memory, {} from disk, {} from the server, {} damaged",
        cache.memory_hits, cache.disk_hits, cache.misses, cache.damaged
    );
    table.row(["reads".into(), hits]);
    let shadow = &own.shadow;
    let outside = format!(
        "{}, {}, {}",
        count(shadow.dirs, "directory", "directories"),
        count(shadow.files, "file", "files"),
        size(shadow.bytes)
    );
    table.row(["shadow".into(), outside]);
    table
}

#[derive(Serialize)]
struct Synced {
    path: String,
    synced: bool,
}

/// Runs `agfs sync`.
pub fn sync(ctx: &mut Context, args: &Sync) -> Result<()> {
    let found = ctx.mount_at(args.dir.as_deref())?;
    let timeout_ms = u64::try_from(SYNC.as_millis()).unwrap_or(u64::MAX);
    let Done {} = ask(&found, &Request::Sync { object: args.object, timeout_ms }, SYNC + ANSWER)?;
    let shape = Synced { path: found.mountpoint.to_string_lossy().into_owned(), synced: true };
    ctx.out.show(&shape, |_| Ok(()))
}
