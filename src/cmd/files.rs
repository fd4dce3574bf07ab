//! `agfs cat`, `put`, `rm`, `mv` and `mkdir`.

use super::content;
use crate::cli::{Cat, Mkdir, Mv, Put, Rm};
use crate::context::{Context, Place};
use crate::exit::{Failure, Result, local};
use crate::location::last_name;
use crate::output::json::lossy;
use crate::output::{confirmed, count, text};
use agfs_client::Connection;
use agfs_core::{Error, ErrorKind};
use serde::Serialize;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use tokio::fs::File;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Standard output that remembers that nobody reads it any more.
struct Pipe {
    stdout: File,
    closed: bool,
}

/// A standard stream as a file that is read or written off the runtime's thread.
fn stream(fd: impl AsFd) -> Result<File> {
    let own = fd.as_fd().try_clone_to_owned().map_err(|e| local("opening a standard stream", &e))?;
    Ok(File::from_std(std::fs::File::from(own)))
}

impl Pipe {
    fn noted<T>(&mut self, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &poll {
            self.closed |= error.kind() == io::ErrorKind::BrokenPipe;
        }
        poll
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stdout).poll_write(cx, data);
        self.noted(poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stdout).poll_flush(cx);
        self.noted(poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stdout).poll_shutdown(cx);
        self.noted(poll)
    }
}

/// Runs `agfs cat`.
pub async fn cat(ctx: &mut Context, args: &Cat) -> Result<()> {
    let places = args.locations.iter().map(|l| ctx.place(Some(l))).collect::<Result<Vec<_>>>()?;
    let conn = ctx.connect()?;
    let mut out = Pipe { stdout: stream(io::stdout())?, closed: false };
    for place in places {
        let copied = conn.read_file(&place.space, &place.at, &place.path, &mut out).await;
        let flushed = out.flush().await;
        match (copied, flushed) {
            _ if out.closed => return Err(Failure::PipeClosed),
            (Err(error), _) => return Err(error.into()),
            (Ok(_), flushed) => flushed?,
        }
    }
    Ok(())
}

/// The place that an argument names, for a change: it must be in the present.
fn present(ctx: &Context, arg: &std::ffi::OsStr) -> Result<Place> {
    let place = ctx.place(Some(arg))?;
    if !place.at.is_empty() {
        return Err(Error::read_only(format!(
            "{} is in the past, which cannot be changed: leave out @{}",
            place.display(),
            place.at
        ))
        .into());
    }
    Ok(place)
}

#[derive(Serialize)]
struct Changed {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<u64>,
}

impl Changed {
    fn at(path: &[u8]) -> Self {
        let (path, path_b64) = lossy(path);
        Changed { path, path_b64, from: None, file_id: None, size: None, seq: None, removed: None }
    }
}

/// Permission bits in octal. Fails with a usage error.
fn parse_mode(mode: &str) -> Result<u32> {
    let parsed = u32::from_str_radix(mode, 8).ok().filter(|m| *m <= agfs_core::attr::PERMISSION_BITS);
    parsed.ok_or_else(|| Failure::usage(format!("--mode {mode:?} is not permission bits in octal, such as 644")))
}

/// Runs `agfs put`.
pub async fn put(ctx: &mut Context, args: &Put) -> Result<()> {
    let place = present(ctx, &args.location)?;
    let mode = args.mode.as_deref().map(parse_mode).transpose()?;
    let author = ctx.config.author(&args.by);
    let conn = ctx.connect()?;
    let written = conn.write_file(&place.space, &place.path, stream(io::stdin())?, mode, &author).await?;
    let shape = Changed {
        file_id: Some(written.file_id.0),
        size: Some(written.size),
        seq: Some(written.applied.to.0),
        ..Changed::at(&place.path)
    };
    ctx.out.show(&shape, |_| Ok(()))
}

/// Runs `agfs mkdir`.
pub async fn mkdir(ctx: &mut Context, args: &Mkdir) -> Result<()> {
    let places = args.locations.iter().map(|l| present(ctx, l)).collect::<Result<Vec<_>>>()?;
    let author = ctx.config.author(&args.by);
    let conn = ctx.connect()?;
    let mut made = Vec::new();
    for place in places {
        let id = conn.mkdir(&place.space, &place.path, args.parents, None, &author).await?;
        made.push(Changed { file_id: Some(id.0), ..Changed::at(&place.path) });
    }
    ctx.out.show(&made, |_| Ok(()))
}

/// Whether a path leads to a directory now.
pub async fn is_dir(conn: &Connection, space: &str, path: &[u8]) -> Result<bool> {
    match content::node(conn, space, "", path).await {
        Ok((node, _)) => Ok(node.kind().is_dir()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// `to/NAME OF from` when `to` is a directory, else `to`.
pub async fn into(conn: &Connection, space: &str, to: &[u8], from: &[u8]) -> Result<Vec<u8>> {
    let name = last_name(from);
    if !name.is_empty() && is_dir(conn, space, to).await? {
        let base = to.strip_suffix(b"/").unwrap_or(to);
        return Ok([base, b"/", name].concat());
    }
    Ok(to.to_vec())
}

/// Runs `agfs mv`.
pub async fn mv(ctx: &mut Context, args: &Mv) -> Result<()> {
    let (from, to) = (present(ctx, &args.from)?, present(ctx, &args.to)?);
    if from.space != to.space {
        return Err(Failure::usage(format!(
            "mv works within one space, not from {} to {}: use `agfs cp -r` and `agfs rm -r`",
            from.space, to.space
        )));
    }
    let author = ctx.config.author(&args.by);
    let conn = ctx.connect()?;
    let target = into(&conn, &from.space, &to.path, &from.path).await?;
    let applied = conn.rename(&from.space, &from.path, &target, &author).await?;
    let shape = Changed { from: Some(lossy(&from.path).0), seq: Some(applied.to.0), ..Changed::at(&target) };
    ctx.out.show(&shape, |_| Ok(()))
}

/// Runs `agfs rm`.
pub async fn rm(ctx: &mut Context, args: &Rm) -> Result<()> {
    let places = args.locations.iter().map(|l| present(ctx, l)).collect::<Result<Vec<_>>>()?;
    let author = ctx.config.author(&args.by);
    let conn = ctx.connect()?;
    let mut gone = Vec::new();
    for place in places {
        if args.care.dry_run {
            gone.push(Changed { removed: Some(would_go(ctx, &conn, &place, args).await?), ..Changed::at(&place.path) });
            continue;
        }
        let question = format!("Remove {} and all below it?", text(place.display().as_bytes()));
        if args.recursive && !args.force && !confirmed(&question, args.care.yes, ctx.json()) {
            continue;
        }
        match conn.remove(&place.space, &place.path, args.recursive, &author).await {
            Ok(removed) => gone.push(Changed { removed: Some(removed), ..Changed::at(&place.path) }),
            Err(error) if args.force && error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    ctx.out.show(&gone, |_| Ok(()))
}

/// Says what a removal would take away, and how much that is.
async fn would_go(ctx: &mut Context, conn: &Connection, place: &Place, args: &Rm) -> Result<u64> {
    let (node, _) = match content::node(conn, &place.space, "", &place.path).await {
        Err(error) if args.force && error.kind() == ErrorKind::NotFound => return Ok(0),
        other => other?,
    };
    let mut paths = vec![place.path.clone()];
    if node.kind().is_dir() {
        if !args.recursive {
            return Err(Error::is_a_directory(format!("{} is a directory: give -r", place.display())).into());
        }
        content::walk(conn, (&place.space, ""), &node, usize::MAX, |step| {
            paths.push([&place.path, &b"/"[..], &step.path].concat());
            Ok(())
        })
        .await?;
    }
    if !ctx.json() {
        for path in &paths {
            ctx.out.line(&format!("would remove {}", text(path)))?;
        }
        ctx.out.line(&count(paths.len() as u64, "thing", "things"))?;
    }
    Ok(paths.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal() {
        assert_eq!((parse_mode("644").unwrap(), parse_mode("04755").unwrap()), (0o644, 0o4755));
        assert!(parse_mode("8").is_err() && parse_mode("17777").is_err() && parse_mode("u+x").is_err());
    }
}
