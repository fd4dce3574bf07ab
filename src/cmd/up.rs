//! `agfs up`: a server if none answers, a space, a mount, and a word on what to try.

use super::mount::{self, Ready};
use super::{server, space};
use crate::cli::{ServerRun, Up};
use crate::context::Context;
use crate::exit::{Failure, Result, local};
use crate::location::Location;
use crate::output::remark;
use crate::paths;
use agfs_core::space::SpaceType;
use agfs_core::{Error, ErrorKind, Result as CoreResult};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The space that is mounted when none is named.
const SPACE: &str = "default";
/// How long a server may take to begin to answer.
const STARTUP: Duration = Duration::from_secs(30);
/// How long one look takes at whether a server answers.
const LOOK: Duration = Duration::from_millis(500);

/// A server in this process.
struct Own {
    stop: oneshot::Sender<()>,
    task: JoinHandle<CoreResult<()>>,
}

/// Runs `agfs up`.
pub async fn run(ctx: &mut Context, args: Up) -> Result<()> {
    let space = ctx.here().forced.or_else(|| ctx.config.space.clone()).unwrap_or_else(|| SPACE.to_owned());
    std::fs::create_dir_all(&args.dir)
        .or_else(exists)
        .map_err(|e| local(format!("making {}", args.dir.display()), &e))?;
    mount::check_dir(&args.dir)?;
    let own = if answers(ctx).await { None } else { Some(start_server(ctx, &args).await?) };
    let result = mounted(ctx, &args, &space, own.is_some()).await;
    let stopped = match own {
        Some(own) => stop(own).await,
        None => Ok(()),
    };
    result.and(stopped.map_err(Failure::from))
}

/// A directory that is there already is as good as one that was made; so is a dead mount, which is looked at later.
fn exists(error: std::io::Error) -> std::io::Result<()> {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => Ok(()),
        _ if error.raw_os_error() == Some(libc::ENOTCONN) => Ok(()),
        _ => Err(error),
    }
}

async fn answers(ctx: &Context) -> bool {
    match ctx.connect_for(LOOK) {
        Ok(conn) => tokio::time::timeout(LOOK * 2, conn.server_info()).await.is_ok_and(|info| info.is_ok()),
        Err(_) => false,
    }
}

/// The address that the configured server would have, when it is one of this machine's own.
fn local_address(server: &str) -> Option<String> {
    let rest = server.strip_prefix("http://")?.trim_end_matches('/');
    let (host, port) = rest.rsplit_once(':')?;
    let host = if host == "localhost" { "127.0.0.1" } else { host };
    let address: std::net::IpAddr = host.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    address.is_loopback().then(|| format!("{host}:{port}"))
}

async fn start_server(ctx: &Context, args: &Up) -> Result<Own> {
    let server = &ctx.config.server;
    let Some(listen) = local_address(server) else {
        return Err(Error::unavailable(format!(
            "no server answers at {server}, and one is started here only for an address of this machine: start it there, or leave out --server and AGFS_SERVER"
        ))
        .into());
    };
    let config = server::load(None, &ServerRun { listen: Some(listen), data: args.data.clone(), store: None })?;
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(agfs_server::run(config, async move { drop(stopped.await) }));
    let own = Own { stop, task };
    let end = Instant::now() + STARTUP;
    while !answers(ctx).await {
        if own.task.is_finished() {
            stop_now(own).await?;
            return Err(Error::unavailable("the server ended before it answered").into());
        }
        if Instant::now() >= end {
            return Err(Error::new(
                ErrorKind::TimedOut,
                format!("the server at {server} does not answer after {} s", STARTUP.as_secs()),
            )
            .into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(own)
}

async fn stop(own: Own) -> CoreResult<()> {
    remark("stopping the server");
    stop_now(own).await
}

async fn stop_now(own: Own) -> CoreResult<()> {
    // A server that has ended already needs no word.
    let _ = own.stop.send(());
    own.task.await.map_err(|e| Error::internal(format!("the server: {e}")))?
}

async fn mounted(ctx: &mut Context, args: &Up, space: &str, own_server: bool) -> Result<()> {
    let conn = ctx.connect()?;
    match conn.create_space(space::new_space(space, SpaceType::Project)).await {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    let location = Location { space: Some(space.to_owned()), at: String::new(), path: None };
    let prepared = mount::prepare(ctx, &location, paths::resolved(&args.dir)?, &args.options)?;
    let server = ctx.config.server.clone();
    let json = ctx.json();
    let ended = mount::start(prepared, |ready| {
        if json {
            return ctx.out.json_line(&ready).map_err(|f| Error::io(f.to_string()));
        }
        ctx.out
            .line(&welcome(&ready, &server, own_server))
            .and_then(|()| ctx.out.flush())
            .map_err(|f| Error::io(f.to_string()))
    })
    .await?;
    mount::finish(ended)
}

fn welcome(ready: &Ready, server: &str, own_server: bool) -> String {
    let Ready { space, path, .. } = ready;
    let whose = if own_server { "started here" } else { "was running" };
    let path = quoted(path);
    // Commands find another server than the usual one by its address.
    let export = match server {
        crate::config::DEFAULT_SERVER => String::new(),
        other => format!("  export AGFS_SERVER={other}\n"),
    };
    format!(
        "\
The space {space} is mounted at {path} (server {server}, {whose}). Try, in another terminal:

{export}  cd {path}
  echo 'hello' > notes.md            # an ordinary directory: git, npm, python, your editor
  agfs checkpoint create --name good # a name for the state as it is now
  echo 'oops' > notes.md; ls -la
  agfs diff good --patch             # what changed since
  agfs rollback good                 # everything back, under the running mount
  agfs undo                          # and forth again
  agfs log notes.md                  # every version of one file
  agfs status                        # how the mount does

Ctrl-C here unmounts; nothing is lost."
    )
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_started_for_an_own_address_only() {
        assert_eq!(local_address("http://127.0.0.1:7420"), Some("127.0.0.1:7420".into()));
        assert_eq!(local_address("http://localhost:1/"), Some("127.0.0.1:1".into()));
        assert_eq!(local_address("http://[::1]:1"), Some("[::1]:1".into()));
        for other in ["http://10.0.0.1:7420", "http://example:1", "https://127.0.0.1:1", "nonsense"] {
            assert_eq!(local_address(other), None, "{other}");
        }
    }

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!((quoted("/a/b-c"), quoted("/it's")), ("/a/b-c".into(), r"'/it'\''s'".into()));
    }
}
