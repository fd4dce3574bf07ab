//! Where files of the program itself are: state, cache, sockets; and paths made absolute without touching what may hang.

use crate::exit::local;
use agfs_core::{Error, Result};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// How long a look at a directory may take before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(2);

/// A variable of the environment that names a directory; a relative one counts as unset, as the XDG rules say.
fn xdg(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute())
}

fn base(variable: &str, as_root: &str, below_home: &str) -> Result<PathBuf> {
    if let Some(dir) = xdg(variable) {
        return Ok(dir.join("agfs"));
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from(as_root));
    }
    match std::env::var_os("HOME").map(PathBuf::from).filter(|h| h.is_absolute()) {
        Some(home) => Ok(home.join(below_home).join("agfs")),
        None => Err(Error::refused(format!("neither {variable} nor HOME names a directory: set one of them"))),
    }
}

/// Where the server's data and logs are by default.
pub fn state_dir() -> Result<PathBuf> {
    base("XDG_DATA_HOME", "/var/lib/agfs", ".local/share")
}

/// Where contents are cached by default.
pub fn cache_dir() -> Result<PathBuf> {
    base("XDG_CACHE_HOME", "/var/cache/agfs", ".cache")
}

/// Where sockets and the register of mounts are.
pub fn runtime_dir() -> PathBuf {
    if let Some(dir) = xdg("XDG_RUNTIME_DIR") {
        return dir.join("agfs");
    }
    let uid = rustix::process::geteuid();
    if uid.is_root() { PathBuf::from("/run/agfs") } else { std::env::temp_dir().join(format!("agfs-{}", uid.as_raw())) }
}

/// The user's configuration directory; `None` when neither XDG_CONFIG_HOME nor HOME is set.
pub fn config_dir() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|h| h.is_absolute()).map(|h| h.join(".config"));
    xdg("XDG_CONFIG_HOME").or_else(home).map(|d| d.join("agfs"))
}

/// Makes a directory, with its parents, that only this user can enter, and refuses one that belongs to another user.
pub fn private_dir(dir: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|e| local(format!("making {}", dir.display()), &e))?;
    let owner = fs::metadata(dir).map_err(|e| local(format!("looking at {}", dir.display()), &e))?.uid();
    if owner != rustix::process::geteuid().as_raw() {
        return Err(Error::refused(format!(
            "{} belongs to user {owner}, not to you: set XDG_RUNTIME_DIR to a directory of your own",
            dir.display()
        )));
    }
    Ok(())
}

/// The path made absolute and free of `.` and `..` by its text alone.
pub fn lexical(path: &Path) -> Result<PathBuf> {
    let mut out = if path.is_absolute() { PathBuf::new() } else { current_dir()? };
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    Ok(out)
}

/// The current directory, as the kernel tells it: no file system is asked.
pub fn current_dir() -> Result<PathBuf> {
    std::env::current_dir().map_err(|e| local("finding the current directory", &e))
}

/// The path with its symbolic links followed, as the kernel's list of mounts spells it; by its text alone when the path
/// does not exist or does not answer within two seconds.
pub fn resolved(path: &Path) -> Result<PathBuf> {
    let plain = lexical(path)?;
    let target = plain.clone();
    Ok(within(PATIENCE, move || follow(&target)).flatten().unwrap_or(plain))
}

/// Opens without access to the file itself and asks the kernel what its path is.
fn follow(path: &Path) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()?;
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok().filter(|p| p.is_absolute())
}

/// Runs something that may hang in the kernel; `None` when it is not done in time (its thread is then left behind).
pub fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || drop(send.send(work())));
    receive.recv_timeout(limit).ok()
}

/// What a look at a directory that is to be mounted at, or that is a mount, shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A directory, empty or not.
    Directory {
        /// Whether it has no entries.
        empty: bool,
    },
    /// Something else.
    NotADirectory,
    /// Nothing.
    Missing,
    /// A mount whose program is gone.
    Dead,
    /// No answer in time.
    Hung,
    /// It may not be looked at.
    Denied,
}

/// Looks at a path without waiting for one that hangs.
pub fn look(path: &Path) -> Look {
    let path = path.to_path_buf();
    let look = move || match fs::metadata(&path) {
        Ok(meta) if meta.is_dir() => {
            Look::Directory { empty: fs::read_dir(&path).is_ok_and(|mut d| d.next().is_none()) }
        }
        Ok(_) => Look::NotADirectory,
        Err(e) if e.raw_os_error() == Some(libc::ENOTCONN) => Look::Dead,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Look::Missing,
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => Look::NotADirectory,
        Err(_) => Look::Denied,
    };
    within(PATIENCE, look).unwrap_or(Look::Hung)
}

/// Creates a file that must not exist, readable by this user only when `private`. Fails with `AlreadyExists`.
pub fn create_new(path: &Path, private: bool) -> Result<fs::File> {
    let mode = if private { 0o600 } else { 0o644 };
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .map_err(|e| local(format!("creating {}", path.display()), &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_absolute_by_text() {
        assert_eq!(lexical(Path::new("/a/./b/../c/")).unwrap(), Path::new("/a/c"));
        assert!(lexical(Path::new("x")).unwrap().is_absolute());
    }

    #[test]
    fn links_are_followed_and_what_is_missing_is_not_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", dir.path().join("link")).unwrap();
        assert_eq!(resolved(&dir.path().join("link")).unwrap(), resolved(&dir.path().join("real")).unwrap());
        assert_eq!(resolved(&dir.path().join("none")).unwrap(), dir.path().join("none"));
    }

    #[test]
    fn what_a_look_shows() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(look(dir.path()), Look::Directory { empty: true });
        fs::write(dir.path().join("f"), b"").unwrap();
        assert_eq!(look(dir.path()), Look::Directory { empty: false });
        assert_eq!(look(&dir.path().join("f")), Look::NotADirectory);
        assert_eq!(look(&dir.path().join("none")), Look::Missing);
    }

    #[test]
    fn what_hangs_is_left_behind() {
        assert_eq!(within(Duration::from_millis(20), || std::thread::sleep(Duration::from_secs(2))), None);
        assert_eq!(within(Duration::from_secs(5), || 7), Some(7));
    }
}
