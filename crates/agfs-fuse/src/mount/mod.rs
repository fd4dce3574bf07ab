//! A mount from beginning to end: checks, session, kernel mount, drain, unmount.

pub mod config;
mod dirs;
mod kernel_mount;
mod point;
pub mod status;

use crate::content::ScratchDir;
use crate::counters::{Call, Counters, Verb};
use crate::kernel::KernelLink;
use crate::shadow::ShadowFs;
use crate::sink::Sink;
use crate::tree::VersionTree;
use crate::upstream::SessionUpstream;
use crate::vfs::Vfs;
use crate::world::World;
use agfs_client::{AttachOptions, ChunkCache, MountSession, Welcome};
use agfs_core::shadow::{DEFAULT_RULES, Rules};
use agfs_core::space::Space;
use agfs_core::{Error, ErrorKind, MountId, Result};
use config::MountConfig;
use dirs::MountDirs;
use kernel_mount::KernelMount;
use parking_lot::Mutex;
use status::{CacheStatus, Pending, ShadowStatus, Status};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often files that could not be committed at their close are tried again.
const RETRY: Duration = Duration::from_secs(3);
/// How many paths a report of what is pending names.
const NAMED: usize = 100;

/// A live mount. Dropping it does not unmount.
pub struct MountHandle {
    space: Space,
    mount: MountId,
    mountpoint: PathBuf,
    session: Arc<MountSession>,
    cache: Arc<ChunkCache>,
    vfs: Arc<Vfs>,
    kernel: Arc<KernelLink>,
    kernel_mount: KernelMount,
    requests: Arc<Counters>,
    calls: Arc<Counters>,
    shadow_usage: Arc<Mutex<ShadowStatus>>,
    background: Vec<tokio::task::JoinHandle<()>>,
    /// Held as long as the mount lives.
    dirs: MountDirs,
}

/// Mounts a space and returns when programs can use it. Must be called within a multi-threaded Tokio runtime that lives as
/// long as the mount.
///
/// # Errors
/// `NotFound` (mountpoint, space or reference), `NotADirectory`, `AlreadyExists` (already a mount of ours), `Refused` (no
/// `/dev/fuse`, or another process holds this mount's directory), `Unavailable` (no server), and errors of the local disk.
pub async fn mount(config: MountConfig) -> Result<MountHandle> {
    let mountpoint = point::prepare(&config.mountpoint).await?;
    let space = config.connection.get_space(&config.space).await?.space;
    let dirs = MountDirs::open(&config.cache_dir, space.id, &mountpoint)?;
    let chunks = config.cache_dir.join("chunks");
    let cache = Arc::new(ChunkCache::open(&chunks, config.cache_size, config.memory_limit)?);
    let rules = rules(&config, &space)?;
    let shadow = ShadowFs::new(dirs.shadow())
        .map_err(|e| Error::io(format!("opening the shadow directories in {}: {e}", dirs.shadow().display())))?;

    let kernel = Arc::new(KernelLink::default());
    let sink = Arc::new(Sink {
        tree: Arc::new(VersionTree::new(config.io_timeout)),
        inodes: Arc::default(),
        known: Arc::default(),
        kernel: kernel.clone(),
        stream: Arc::default(),
    });
    let options = attach_options(&config, &mountpoint);
    let (session, welcome) = MountSession::attach(config.connection.clone(), options, sink.clone()).await?;
    let Welcome { mount, space, head, root, .. } = welcome;
    let root_id = root.file_id;
    sink.tree.begin(head, root, config.at.is_empty());
    kernel.set_root(root_id);

    let calls = Arc::new(Counters::new(Call::NAMES));
    let upstream = SessionUpstream {
        session: session.clone(),
        cache: cache.clone(),
        space: space.id.to_string(),
        at: if config.at.is_empty() { String::new() } else { head.seq.to_string() },
        calls: calls.clone(),
    };
    let world = Arc::new(world(&config, &sink, Arc::new(upstream), ScratchDir::new(dirs.scratch())));
    let vfs = Vfs::new(world, sink.inodes.clone(), Arc::new(shadow), rules, root_id);
    let requests = Arc::new(Counters::new(Verb::NAMES));
    let options = crate::fuse::Options {
        space: space.name.clone(),
        allow_other: config.allow_other,
        read_only: config.read_only || !config.at.is_empty(),
        threads: threads(config.threads),
    };
    let started = KernelMount::start(&mountpoint, &options, vfs.clone(), requests.clone(), &kernel).await;
    let kernel_mount = match started {
        Ok(kernel_mount) => kernel_mount,
        Err(e) => {
            session.detach().await;
            return Err(e);
        }
    };
    let shadow_usage = Arc::default();
    let background = vec![
        tokio::spawn(retry_closed(vfs.clone())),
        tokio::spawn(measure_shadows(vfs.shadow().clone(), Arc::clone(&shadow_usage))),
    ];
    Ok(MountHandle {
        space,
        mount: mount.id,
        mountpoint,
        session,
        cache,
        vfs,
        kernel,
        kernel_mount,
        requests,
        calls,
        shadow_usage,
        background,
        dirs,
    })
}

/// Event loops: more than processors do not help, one alone would let a slow request hold up the others.
fn threads(asked: usize) -> usize {
    if asked > 0 { asked } else { std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 8)) }
}

fn rules(config: &MountConfig, space: &Space) -> Result<Rules> {
    match config.shadow_rules.as_ref().or(space.shadow_rules.as_ref()) {
        Some(rules) => Rules::parse(rules),
        None => Rules::parse(DEFAULT_RULES),
    }
}

fn attach_options(config: &MountConfig, mountpoint: &std::path::Path) -> AttachOptions {
    AttachOptions {
        space: config.space.clone(),
        at: config.at.clone(),
        sub_path: config.sub_path.clone(),
        mount_path: mountpoint.to_string_lossy().into_owned(),
        tenant: config.tenant.clone(),
        user: config.user.clone(),
        conversation: config.conversation.clone(),
        author: config.author.clone(),
        host: config.host.clone(),
        consistency: config.consistency,
        read_only: config.read_only || !config.at.is_empty(),
        lease: false,
    }
}

fn world(config: &MountConfig, sink: &Sink, up: Arc<SessionUpstream>, scratch: ScratchDir) -> World {
    World {
        tree: sink.tree.clone(),
        up,
        known: sink.known.clone(),
        kernel: sink.kernel.clone(),
        scratch,
        stream: sink.stream.clone(),
        durability: config.durability,
        read_only: config.read_only || !config.at.is_empty(),
        pending: AtomicU64::new(0),
        applied: AtomicU64::new(0),
        durable: AtomicU64::new(0),
    }
}

async fn retry_closed(vfs: Arc<Vfs>) {
    loop {
        tokio::time::sleep(RETRY).await;
        vfs.retry_closed().await;
    }
}

async fn measure_shadows(shadow: Arc<ShadowFs>, usage: Arc<Mutex<ShadowStatus>>) {
    loop {
        let shadow = shadow.clone();
        if let Ok(Ok(now)) = tokio::task::spawn_blocking(move || shadow.usage()).await {
            *usage.lock() = ShadowStatus { dirs: now.roots, bytes: now.bytes, files: now.files };
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

impl MountHandle {
    /// The space that is mounted.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Returns when the kernel no longer has the mount, whoever took it away. [`MountHandle::drain`] and
    /// [`MountHandle::unmount`] are still to be called then.
    ///
    /// # Errors
    /// `Io` when the session with the kernel broke.
    pub async fn wait_unmounted(&self) -> Result<()> {
        self.kernel_mount.wait().await
    }

    /// Commits everything that was written and makes it durable on the server. What could not be sent within `timeout` is
    /// returned, and stays for another attempt.
    ///
    /// # Errors
    /// [`Pending`]: what is left, and why.
    pub async fn drain(&self, timeout: Duration) -> std::result::Result<(), Pending> {
        let work = async {
            let failed = self.vfs.commit_all().await;
            if !failed.is_empty() {
                return Err(self.pending(failed, String::new()));
            }
            match self.vfs.world().sync().await {
                // The space was deleted: there is nothing that could be made durable.
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
                other => other.map_err(|e| self.pending(Vec::new(), e.message().to_owned())),
            }
        };
        match tokio::time::timeout(timeout, work).await {
            Ok(result) => result,
            Err(_) => Err(self.pending(Vec::new(), format!("the server did not take everything within {timeout:?}"))),
        }
    }

    fn pending(&self, failed: Vec<(agfs_core::FileId, u64, Error)>, reason: String) -> Pending {
        let dirty = self.vfs.inodes().dirty(false);
        let why =
            |id| failed.iter().find(|(f, _, _)| *f == id).map_or_else(|| reason.clone(), |(_, _, e)| e.to_string());
        Pending {
            files: dirty.len() as u64,
            bytes: dirty.iter().map(|data| data.pending().0).sum(),
            scratch: self.dirs.scratch(),
            paths: dirty.iter().take(NAMED).map(|d| (self.vfs.world().describe(d.id), why(d.id))).collect(),
            reason,
        }
    }

    /// Takes the mount away (after [`MountHandle::drain`]): detaches it from the kernel, then ends the session.
    ///
    /// # Errors
    /// `Conflict` when programs still have files open below it; then the mount goes on. `Io`.
    pub async fn unmount(&self) -> Result<()> {
        self.kernel_mount.unmount(&self.mountpoint).await?;
        self.kernel.close();
        for task in &self.background {
            task.abort();
        }
        // Handles that the kernel closed on its way out.
        let failed = self.vfs.commit_all().await;
        self.session.detach().await;
        match failed.first() {
            None => Ok(()),
            Some((id, bytes, e)) => Err(Error::new(
                ErrorKind::Unavailable,
                format!("{} files were not committed, the first is {id} ({bytes} bytes): {e}", failed.len()),
            )),
        }
    }

    /// The state of the mount now. Cheap; makes no call to the server.
    pub fn status(&self) -> Status {
        let world = self.vfs.world();
        let (cached_nodes, loaded_dirs) = world.tree.counts();
        let cache = self.cache.stats();
        Status {
            space: self.space.id,
            space_name: self.space.name.clone(),
            mount: self.mount,
            mountpoint: self.mountpoint.clone(),
            connected: world.stream.is_up(),
            seen: world.tree.seen(),
            dirty_files: self.vfs.inodes().dirty(false).len() as u64,
            dirty_bytes: world.pending.load(Ordering::Relaxed),
            cached_nodes,
            loaded_dirs,
            cache: CacheStatus {
                memory_hits: cache.memory_hits,
                disk_hits: cache.disk_hits,
                misses: cache.misses,
                damaged: cache.damaged,
                disk_bytes: cache.disk_bytes,
                memory_bytes: cache.memory_bytes,
            },
            shadow: *self.shadow_usage.lock(),
            requests: self.requests.snapshot(),
            upstream_calls: self.calls.snapshot(),
        }
    }
}
