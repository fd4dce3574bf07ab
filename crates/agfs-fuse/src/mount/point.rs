//! The directory to mount at: whether it will do, and healing what a process that died has left there.

use crate::errno::local;
use agfs_core::{Error, ErrorKind, Result};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a look at the mountpoint may take: below a file system that hangs it would take for ever.
const PATIENCE: Duration = Duration::from_secs(10);

/// Checks a mountpoint and returns its absolute path.
///
/// # Errors
/// `NotFound`, `NotADirectory`, `AlreadyExists` (a live mount of ours), `Refused` (no usable `/dev/fuse`), `TimedOut`.
pub(super) async fn prepare(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).map_err(|e| local(format!("the mountpoint {}", path.display()), &e))?;
    let shown = path.display().to_string();
    let work = tokio::task::spawn_blocking(move || check(&path).map(|()| path));
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(|e| Error::internal(format!("a worker failed: {e}")))?,
        Err(_) => Err(Error::new(
            ErrorKind::TimedOut,
            format!("{shown} does not answer: a file system there hangs; take it away with umount -l {shown}"),
        )),
    }
}

fn check(path: &Path) -> Result<()> {
    check_device()?;
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_dir() => {
            return Err(Error::not_a_directory(format!("{} is not a directory; mount at one", path.display())));
        }
        Ok(_) => {}
        Err(e) if e.raw_os_error() == Some(libc::ENOTCONN) => return heal(path),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::not_found(format!("{} does not exist; make the directory first", path.display())));
        }
        Err(e) => return Err(local(format!("the mountpoint {}", path.display()), &e)),
    }
    if is_ours(&mount_table()?, path) {
        return Err(Error::already_exists(format!(
            "{} is a mount of agfs already; take it away first with: agfs umount {}",
            path.display(),
            path.display()
        )));
    }
    Ok(())
}

/// Takes away what a process that died has left.
fn heal(path: &Path) -> Result<()> {
    tracing::info!(path = %path.display(), "taking away the mount of a process that has ended");
    detach(path)?;
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(Error::not_a_directory(format!("{} is not a directory; mount at one", path.display()))),
        Err(e) => Err(local(format!("the mountpoint {}", path.display()), &e)),
    }
}

/// Unmounts lazily, by the setuid helper where this process may not.
fn detach(path: &Path) -> Result<()> {
    use rustix::mount::{UnmountFlags, unmount};
    match unmount(path, UnmountFlags::DETACH) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::PERM) => helper(path, &["-u", "-z"]),
        Err(e) => Err(local(format!("unmounting {}", path.display()), &e.into())),
    }
}

/// Unmounts unless it is in use.
///
/// # Errors
/// `Conflict` when it is in use, `Io`.
pub(super) fn unmount(path: &Path) -> Result<()> {
    match rustix::mount::unmount(path, rustix::mount::UnmountFlags::empty()) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::BUSY) => Err(Error::conflict(format!(
            "{} is in use: a program has a file open or its working directory there (fuser -vm {} lists them)",
            path.display(),
            path.display()
        ))),
        Err(rustix::io::Errno::PERM) => helper(path, &["-u"]),
        Err(e) => Err(local(format!("unmounting {}", path.display()), &e.into())),
    }
}

fn helper(path: &Path, flags: &[&str]) -> Result<()> {
    let done = std::process::Command::new("fusermount3").args(flags).arg("--").arg(path).output();
    match done {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let kind = if said.contains("busy") { ErrorKind::Conflict } else { ErrorKind::Io };
            Err(Error::new(kind, format!("unmounting {}: {said}", path.display())))
        }
        Err(e) => Err(Error::io(format!("unmounting {}: fusermount3 cannot be run: {e}", path.display()))),
    }
}

/// Whether the kernel lets this process open its FUSE device.
fn check_device() -> Result<()> {
    match File::options().read(true).write(true).open("/dev/fuse") {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Err(Error::refused(
            "/dev/fuse may not be opened by this user: run as root, or give access with chmod 666 /dev/fuse",
        )),
        Err(_) => Err(Error::refused(
            "there is no /dev/fuse: load the module with modprobe fuse, or start the container with --device /dev/fuse --cap-add SYS_ADMIN",
        )),
    }
}

fn mount_table() -> Result<Vec<u8>> {
    std::fs::read("/proc/self/mountinfo").map_err(|e| local("reading /proc/self/mountinfo", &e))
}

/// Whether the topmost mount at `path` is one of ours, by the kernel's table of mounts.
fn is_ours(table: &[u8], path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let wanted = path.as_os_str().as_bytes();
    let here = table.split(|&b| b == b'\n').filter_map(|line| {
        let mut fields = line.split(|&b| b == b' ');
        let at = unescape(fields.nth(4)?);
        let mut rest = fields.skip_while(|f| *f != b"-").skip(1);
        let (kind, source) = (rest.next()?, rest.next()?);
        let ours = kind == b"fuse.agfs" || (kind == b"fuse" && source.starts_with(b"agfs:"));
        (at == wanted).then_some(ours)
    });
    here.last().unwrap_or(false)
}

/// Undoes the octal escapes of blanks in the table of mounts.
fn unescape(field: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(field.len()), field);
    while let Some((&byte, tail)) = rest.split_first() {
        let code = tail.get(..3).and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| u8::from_str_radix(d, 8).ok());
        match code {
            Some(code) if byte == b'\\' => {
                out.push(code);
                rest = tail.get(3..).unwrap_or_default();
            }
            _ => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_mounts_is_read_with_its_escapes_and_its_order() {
        let line = |at: &str, kind: &str| format!("36 35 98:0 / {at} rw,noatime shared:1 - {kind} agfs:x rw\n");
        let table = line("/a\\040b", "fuse.agfs") + &line("/c", "fuse.agfs") + &line("/c", "ext4");
        assert!(is_ours(table.as_bytes(), Path::new("/a b")));
        assert!(!is_ours(table.as_bytes(), Path::new("/c")), "another file system lies on top");
        assert!(!is_ours(table.as_bytes(), Path::new("/a")));
        assert!(!is_ours(b"garbage\n\\\n", Path::new("/a")));
    }

    #[tokio::test]
    async fn a_mountpoint_must_be_a_directory_that_exists() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        if check_device().is_ok() {
            assert_eq!(prepare(&file).await.unwrap_err().kind(), ErrorKind::NotADirectory);
            assert_eq!(prepare(&dir.path().join("no")).await.unwrap_err().kind(), ErrorKind::NotFound);
            assert_eq!(prepare(dir.path()).await.unwrap(), dir.path());
        }
    }
}
