//! `agfs umount`, and taking away a mount whose process is gone.

use crate::cli::Umount;
use crate::context::Context;
use crate::exit::{Result, local};
use crate::mountd::control::{Done, Request};
use crate::mountd::socket;
use crate::mounts::{self, KernelMount};
use crate::output::remark;
use crate::paths::{self, Look};
use agfs_core::{Error, ErrorKind, Result as CoreResult};
use rustix::mount::{UnmountFlags, unmount};
use serde::Serialize;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How much longer than the draining the whole may take: the unmounting itself.
const UNMOUNTING: Duration = Duration::from_secs(10);
/// How long between looks at the kernel's list.
const POLL: Duration = Duration::from_millis(5);

#[derive(Serialize)]
struct Unmounted {
    path: String,
    unmounted: bool,
}

/// Runs `agfs umount`.
pub fn run(ctx: &mut Context, args: &Umount) -> Result<()> {
    let dir = paths::resolved(&args.dir)?;
    let all = mounts::kernel_mounts()?;
    let mount = ours(&all, &dir)?;
    let limit = Duration::from_secs(args.timeout);
    match mounts::registered(&mount.mountpoint) {
        Some(_) => by_its_process(&mount.mountpoint, limit)?,
        None => without_process(&mount.mountpoint)?,
    }
    let shape = Unmounted { path: dir.to_string_lossy().into_owned(), unmounted: true };
    ctx.out.show(&shape, |_| Ok(()))
}

/// The mount at exactly this directory. Fails with `NotFound` when there is none, with `Refused` when it is not ours.
fn ours<'a>(all: &'a [KernelMount], dir: &Path) -> CoreResult<&'a KernelMount> {
    match all.iter().rfind(|m| m.mountpoint == dir) {
        Some(mount) if mount.ours => Ok(mount),
        Some(mount) => Err(Error::refused(format!(
            "{} is a mount of {}, not of agfs: use umount",
            dir.display(),
            String::from_utf8_lossy(&mount.source)
        ))),
        None => Err(Error::not_found(match mounts::covering(all, dir).filter(|m| m.ours) {
            Some(mount) => format!(
                "{} is not a mountpoint; the mount it is in is at {}",
                dir.display(),
                mount.mountpoint.display()
            ),
            None => format!("{} is not a mountpoint; `agfs mounts` lists the live mounts", dir.display()),
        })),
    }
}

/// How many mounts the kernel has at a place.
fn stacked(mountpoint: &Path) -> CoreResult<usize> {
    Ok(mounts::kernel_mounts()?.iter().filter(|m| m.mountpoint == mountpoint).count())
}

fn by_its_process(mountpoint: &Path, limit: Duration) -> CoreResult<()> {
    let before = stacked(mountpoint)?;
    let end = Instant::now() + limit + UNMOUNTING;
    let gone = || Ok::<_, Error>(stacked(mountpoint)? < before);
    let request = Request::Umount { timeout_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) };
    loop {
        match socket::ask::<_, Done>(&mounts::socket_file(mountpoint), &request, limit + UNMOUNTING) {
            Ok(Done {}) => break,
            // It may end before its answer is out; or it has not begun to listen.
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                if gone()? {
                    break;
                }
                if Instant::now() >= end || mounts::registered(mountpoint).is_none() {
                    return Err(error);
                }
            }
            Err(error) => return Err(error.context(mountpoint.display())),
        }
        std::thread::sleep(POLL);
    }
    while !gone()? {
        if Instant::now() >= end {
            let message = format!("{} was drained, and is still in the kernel's list of mounts", mountpoint.display());
            return Err(Error::new(ErrorKind::TimedOut, message));
        }
        std::thread::sleep(POLL);
    }
    // The process lets go of its cache directory last.
    while mounts::registered(mountpoint).is_some() && Instant::now() < end {
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// A mount of ours without a process that this user can ask: one that died is taken away, one that lives is not touched.
fn without_process(mountpoint: &Path) -> CoreResult<()> {
    match paths::look(mountpoint) {
        Look::Dead => {
            detach(mountpoint)?;
            remark(&format!(
                "the process of the mount at {} was gone already; what it had sent is safe",
                mountpoint.display()
            ));
            Ok(())
        }
        Look::Hung => Err(Error::new(
            ErrorKind::TimedOut,
            format!("{} does not answer, and its process cannot be asked: `umount -l` it", mountpoint.display()),
        )),
        Look::Directory { .. } | Look::NotADirectory | Look::Missing | Look::Denied => Err(Error::refused(format!(
            "the mount at {} is served by another user's process, or by one with another XDG_RUNTIME_DIR: unmount it from there, or with fusermount3 -u",
            mountpoint.display()
        ))),
    }
}

/// Takes a mount out of the tree at once, whoever uses it. Fails with `PermissionDenied` where neither this process nor
/// fusermount3 may.
pub fn detach(mountpoint: &Path) -> CoreResult<()> {
    let Err(error) = unmount(mountpoint, UnmountFlags::DETACH) else { return Ok(()) };
    let helped = Command::new("fusermount3").args(["-u", "-z", "--"]).arg(mountpoint).output();
    match helped {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(Error::new(
            ErrorKind::PermissionDenied,
            format!("unmounting {}: {}", mountpoint.display(), String::from_utf8_lossy(&output.stderr).trim()),
        )),
        Err(_) => Err(local(format!("unmounting {}", mountpoint.display()), &error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_ours_is_unmounted() {
        let mount = |at: &str, ours| KernelMount { mountpoint: at.into(), ours, source: b"tmpfs".to_vec() };
        let all = [mount("/", false), mount("/tmp", false), mount("/ws", true)];
        let kind = |dir: &str| ours(&all, Path::new(dir)).map(|m| m.mountpoint.clone()).map_err(|e| e.kind());
        assert_eq!(kind("/ws"), Ok("/ws".into()));
        assert_eq!(kind("/tmp"), Err(ErrorKind::Refused));
        assert_eq!(kind("/ws/inner"), Err(ErrorKind::NotFound));
        assert_eq!(kind("/nowhere"), Err(ErrorKind::NotFound));
        assert!(ours(&all, Path::new("/ws/inner")).unwrap_err().message().contains("/ws"));
    }
}
