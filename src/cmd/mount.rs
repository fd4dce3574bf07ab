//! `agfs mount`: what was typed made into a mount, in this process or in one in the background.

use super::{content, umount};
use crate::cli::{Mount, MountOptions};
use crate::config::parse_size;
use crate::context::Context;
use crate::exit::{Failure, Result};
use crate::location::{self, Location, encode};
use crate::mountd::{self, Ended, Served, daemon};
use crate::mounts::{self, Entry};
use crate::output::remark;
use crate::paths::{self, Look};
use agfs_client::Connection;
use agfs_core::space::{Consistency, Durability};
use agfs_core::{Error, Result as CoreResult};
use agfs_fuse::MountConfig;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a program in a mount waits for a server that does not answer.
const IO_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Serialize)]
struct Mounted {
    space: String,
    path: String,
    pid: u32,
}

/// Runs `agfs mount`.
pub async fn run(ctx: &mut Context, args: Mount) -> Result<()> {
    if daemon::is_child() {
        return in_background(ctx, &args).await;
    }
    let location = location::parse(location::bytes(&args.what))?;
    let dir = paths::resolved(&args.dir)?;
    // Wrong options are said without a server, and by the process that was called.
    let mount = prepare(ctx, &location, dir.clone(), &args.options)?;
    check(ctx, &location, &args.dir).await?;
    if args.daemon {
        let pid = daemon::spawn(&dir)?;
        let mounted = Mounted { space: shown(&location), path: dir.to_string_lossy().into_owned(), pid };
        return ctx.out.show(&mounted, |_| {
            remark(&format!("{} is mounted at {} (process {pid})", mounted.space, mounted.path));
            Ok(())
        });
    }
    let ended = start(mount, |mounted| {
        if ctx.json() {
            ctx.out.json_line(&mounted).map_err(|f| Error::io(f.to_string()))?;
        }
        remark(&format!("{} is mounted at {}; Ctrl-C or `agfs umount` ends it", mounted.space, mounted.path));
        Ok(())
    })
    .await?;
    finish(ended)
}

/// The end of a mount process: an error when something is left.
pub fn finish(ended: Ended) -> Result<()> {
    match ended {
        Ended::Clean => Ok(()),
        Ended::Left(error) => Err(Failure::Error(error)),
    }
}

async fn in_background(ctx: &mut Context, args: &Mount) -> Result<()> {
    daemon::detach()?;
    let parsed = location::parse(location::bytes(&args.what));
    let mount =
        parsed.map_err(Failure::from).and_then(|l| prepare(ctx, &l, paths::resolved(&args.dir)?, &args.options));
    let mount = match mount {
        Ok(mount) => mount,
        Err(failure) => {
            daemon::tell(Err(Error::invalid(failure.to_string())))?;
            return Err(failure);
        }
    };
    let mut told = false;
    let ended = start(mount, |_| {
        told = true;
        daemon::tell(Ok(()))
    })
    .await;
    if let (Err(Failure::Error(error)), false) = (&ended, told) {
        daemon::tell(Err(error.clone()))?;
    }
    finish(ended?)
}

fn shown(location: &Location) -> String {
    let path = location.path.clone().filter(|p| p != b"/");
    Location { path, ..location.clone() }.to_string()
}

/// What can be said before anything is mounted: the space and the state exist, and the directory can be mounted at.
async fn check(ctx: &Context, location: &Location, dir: &Path) -> Result<()> {
    let Some(space) = location.space.clone() else { return Err(Failure::usage("the space to mount is missing")) };
    let conn = ctx.connect()?;
    conn.get_space(&space).await?;
    let path = location.path.clone().unwrap_or_else(|| b"/".to_vec());
    if !location.at.is_empty() || path != b"/" {
        let (node, _) = content::node(&conn, &space, &location.at, &path).await?;
        if !node.kind().is_dir() {
            return Err(
                Error::not_a_directory(format!("{} is a file: a mount shows a directory", shown(location))).into()
            );
        }
    }
    Ok(check_dir(dir)?)
}

/// Whether a directory can be mounted at; a dead mount of ours that is there is taken away first.
pub fn check_dir(dir: &Path) -> CoreResult<()> {
    let place = paths::resolved(dir)?;
    let all = mounts::kernel_mounts()?;
    let there = all.iter().rfind(|m| m.mountpoint == place).filter(|m| m.ours);
    match (paths::look(&place), there) {
        (Look::Dead, Some(_)) => {
            umount::detach(&place)?;
            remark(&format!("a dead mount at {} was taken away", place.display()));
            check_dir(dir)
        }
        (Look::Directory { .. }, Some(mount)) => Err(Error::already_exists(format!(
            "{} is already a mount of {}: `agfs umount` it first, or mount elsewhere",
            place.display(),
            mount.space().unwrap_or_default()
        ))),
        (Look::Directory { empty }, None) => {
            if !empty {
                remark(&format!("{} is not empty: what is in it is hidden while mounted", place.display()));
            }
            Ok(())
        }
        (Look::NotADirectory, _) => Err(Error::not_a_directory(format!("{} is not a directory", place.display()))),
        (Look::Missing, _) => {
            Err(Error::not_found(format!("the directory {} does not exist: make it first", place.display())))
        }
        (Look::Dead | Look::Hung, _) => {
            Err(Error::conflict(format!("{} is a mount that does not answer: `umount -l` it first", place.display())))
        }
        (Look::Denied, _) => Err(Error::new(
            agfs_core::ErrorKind::PermissionDenied,
            format!("you may not look into {}", place.display()),
        )),
    }
}

/// A mount that is about to be made.
pub struct Prepared {
    config: MountConfig,
    connection: Connection,
    entry: Entry,
    shown: String,
}

/// Puts together how to mount: the options, then the settings, then the defaults.
pub fn prepare(ctx: &Context, location: &Location, dir: PathBuf, options: &MountOptions) -> Result<Prepared> {
    let config = &ctx.config;
    let space = location.space.clone().ok_or_else(|| Failure::usage("the space to mount is missing"))?;
    let pick = |flag: &Option<String>, setting: &String| flag.as_ref().unwrap_or(setting).clone();
    let consistency = Consistency::from_code(&pick(&options.consistency, &config.consistency))
        .map_err(|e| e.context("--consistency"))?;
    let durability =
        Durability::from_code(&pick(&options.durability, &config.durability)).map_err(|e| e.context("--durability"))?;
    let cache_size = parse_size(&pick(&options.cache_size, &config.cache_size), "--cache-size")?;
    let memory_limit = parse_size(&pick(&options.memory_limit, &config.memory_limit), "--memory-limit")?;
    if !options.shadow.is_empty() {
        agfs_core::shadow::Rules::parse(&options.shadow).map_err(|e| e.context("--shadow"))?;
    }
    let cache_dir = match options.cache_dir.as_ref().or(config.cache_dir.as_ref()) {
        Some(dir) => paths::lexical(dir)?,
        None => paths::cache_dir()?,
    };
    let connection = ctx.connect_for(IO_TIMEOUT)?;
    let sub_path = location.path.clone().unwrap_or_else(|| b"/".to_vec());
    let entry = Entry {
        mountpoint: dir.clone(),
        space: space.clone(),
        at: location.at.clone(),
        sub_path_b64: encode(&sub_path),
        server: config.server.clone(),
        pid: std::process::id(),
    };
    let config = MountConfig {
        connection: connection.clone(),
        io_timeout: IO_TIMEOUT,
        space,
        at: location.at.clone(),
        sub_path,
        mountpoint: dir,
        cache_dir,
        cache_size,
        memory_limit,
        read_only: options.read_only || !location.at.is_empty(),
        allow_other: options.allow_other,
        consistency,
        durability,
        shadow_rules: (!options.shadow.is_empty()).then(|| options.shadow.clone()),
        tenant: options.tenant.clone(),
        user: options.user.clone(),
        conversation: options.conversation.clone(),
        author: config.author(&options.by),
        host: gethostname::gethostname().to_string_lossy().into_owned(),
        threads: 0,
    };
    Ok(Prepared { config, connection, entry, shown: shown(location) })
}

/// What is told when a mount is ready.
#[derive(Clone, Debug, Serialize)]
pub struct Ready {
    /// What is mounted.
    pub space: String,
    /// Where.
    pub path: String,
    /// The mount process.
    pub pid: u32,
}

/// Mounts and serves until the mount is gone. `ready` is called once it can be used.
pub async fn start(mount: Prepared, ready: impl FnOnce(Ready) -> CoreResult<()>) -> Result<Ended> {
    let Prepared { config, connection, mut entry, shown } = mount;
    let handle = Arc::new(agfs_fuse::mount(config).await?);
    // The name, where an id was typed.
    entry.space.clone_from(&handle.space().name);
    let told = Ready { space: shown, path: entry.mountpoint.to_string_lossy().into_owned(), pid: entry.pid };
    Ok(mountd::serve(Served { handle, connection, entry }, || ready(told)).await?)
}
