//! `agfs cp`: which side of a copy is local, and where exactly the copy goes.

use super::files::{into, is_dir};
use crate::cli::Cp;
use crate::context::{Context, Place};
use crate::exit::{Failure, Result, local};
use crate::location::{bytes, last_name, names_a_space};
use crate::output::{count, size};
use crate::paths;
use agfs_client::{Connection, CopyStats, random_u64};
use agfs_core::Error;
use agfs_core::op::Author;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One end of a copy.
enum End {
    Local(PathBuf),
    Space(Place),
}

impl End {
    fn read(ctx: &Context, arg: &OsStr) -> Result<End> {
        match names_a_space(bytes(arg)) {
            true => ctx.place(Some(arg)).map(End::Space),
            false => Ok(End::Local(PathBuf::from(arg))),
        }
    }
}

#[derive(Default, Serialize)]
struct Copied {
    files: u64,
    dirs: u64,
    symlinks: u64,
    bytes: u64,
    skipped: u64,
}

impl Copied {
    fn add(&mut self, stats: &CopyStats) {
        self.files += stats.files;
        self.dirs += stats.dirs;
        self.symlinks += stats.symlinks;
        self.bytes += stats.bytes;
        self.skipped += stats.skipped;
    }
}

/// Runs `agfs cp`.
pub async fn run(ctx: &mut Context, args: Cp) -> Result<()> {
    let mut all: Vec<OsString> = args.paths;
    let Some(last) = all.pop() else { return Err(Failure::usage("cp needs what to copy and where to")) };
    let target = End::read(ctx, &last)?;
    if let End::Space(place) = &target
        && !place.at.is_empty()
    {
        return Err(Error::read_only(format!(
            "{} is in the past, which cannot be changed: leave out @{}",
            place.display(),
            place.at
        ))
        .into());
    }
    let conn = ctx.connect()?;
    if all.len() > 1 && !target_is_dir(&conn, &target).await? {
        return Err(Error::not_a_directory(format!(
            "{} sources need a directory to be copied into, and {last:?} is none",
            all.len()
        ))
        .into());
    }
    let author = ctx.config.author(&args.by);
    let progress = progress();
    let mut copied = Copied::default();
    for source in &all {
        progress.set_message(format!("copying {}", source.to_string_lossy()));
        let source = End::read(ctx, source)?;
        copied.add(&one(&conn, &source, &target, args.recursive, &author).await?);
    }
    progress.finish_and_clear();
    if copied.skipped > 0 {
        crate::output::remark(&format!(
            "{} left out",
            count(copied.skipped, "socket or device", "sockets and devices")
        ));
    }
    ctx.out.show(&copied, |out| {
        out.line(&format!("{} copied ({})", count(copied.files, "file", "files"), size(copied.bytes)))
    })
}

/// Something that turns while a copy runs, on a terminal only.
fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

async fn target_is_dir(conn: &Connection, target: &End) -> Result<bool> {
    match target {
        End::Local(path) => Ok(path.is_dir()),
        End::Space(place) => is_dir(conn, &place.space, &place.path).await,
    }
}

async fn one(conn: &Connection, source: &End, target: &End, recursive: bool, author: &Author) -> Result<CopyStats> {
    match (source, target) {
        (End::Local(from), End::Local(to)) => Err(Failure::usage(format!(
            "neither {} nor {} is in a space (SPACE:/PATH): use cp",
            from.display(),
            to.display()
        ))),
        (End::Local(from), End::Space(to)) => {
            let name = paths::lexical(from)?;
            let path = into(conn, &to.space, &to.path, name.as_os_str().as_bytes()).await?;
            Ok(conn.upload(from, &to.space, &path, recursive, author).await?)
        }
        (End::Space(from), End::Local(to)) => {
            let path = local_target(to, &from.path);
            Ok(conn.download(&from.space, &from.at, &from.path, &path, recursive).await?)
        }
        (End::Space(from), End::Space(to)) => {
            let path = into(conn, &to.space, &to.path, &from.path).await?;
            if same_space(conn, &from.space, &to.space).await? {
                return Ok(conn.copy_within(&from.space, &from.at, &from.path, &path, recursive, author).await?);
            }
            between(conn, from, (&to.space, &path), recursive, author).await
        }
    }
}

/// `to/NAME OF from` when `to` is a directory here, else `to`.
fn local_target(to: &Path, from: &[u8]) -> PathBuf {
    let name = last_name(from);
    if to.is_dir() && !name.is_empty() { to.join(OsStr::from_bytes(name)) } else { to.to_path_buf() }
}

async fn same_space(conn: &Connection, a: &str, b: &str) -> Result<bool> {
    Ok(a == b || conn.get_space(a).await?.space.id == conn.get_space(b).await?.space.id)
}

/// From one space to another, by way of a private local directory that is removed at the end.
async fn between(
    conn: &Connection,
    from: &Place,
    to: (&str, &[u8]),
    recursive: bool,
    author: &Author,
) -> Result<CopyStats> {
    struct Scratch(PathBuf);
    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
    let scratch = Scratch(paths::cache_dir()?.join(format!("cp-{:016x}", random_u64())));
    paths::private_dir(&scratch.0)?;
    let here = scratch.0.join("copy");
    conn.download(&from.space, &from.at, &from.path, &here, recursive).await?;
    here.symlink_metadata().map_err(|e| local(format!("looking at {}", here.display()), &e))?;
    Ok(conn.upload(&here, to.0, to.1, recursive, author).await?)
}
