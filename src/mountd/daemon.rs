//! Going to the background: the program starts itself again, and waits on a pipe until that one is ready or says why not.

use super::control::{Done, Reply};
use crate::exit::local;
use crate::paths;
use agfs_core::{ChunkHash, Error, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Set for a process that is to tell its parent, on standard output, when it is ready.
const MARK: &str = "AGFS_READY";

/// Whether this process was started by [`spawn`].
pub fn is_child() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Where a mount in the background writes its log.
pub fn log_file(mountpoint: &Path) -> Result<PathBuf> {
    let id = ChunkHash::of(mountpoint.as_os_str().as_bytes()).to_string();
    Ok(paths::state_dir()?.join("logs").join(format!("mount-{}.log", id.get(..16).unwrap_or(&id))))
}

/// Starts this program again with the same arguments, in a session of its own and with its log in a file, and returns when
/// it is ready, with its process id. Fails with what it failed with.
pub fn spawn(mountpoint: &Path) -> Result<u32> {
    let log = log_file(mountpoint)?;
    if let Some(dir) = log.parent() {
        paths::private_dir(dir)?;
    }
    let file = File::options()
        .create(true)
        .append(true)
        .open(&log)
        .map_err(|e| local(format!("opening {}", log.display()), &e))?;
    let program = std::env::current_exe().map_err(|e| local("finding this program's own file", &e))?;
    let mut child = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(MARK, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::from(file))
        .spawn()
        .map_err(|e| local("starting the mount process", &e))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    match serde_json::from_str::<Reply<Done>>(&line) {
        Ok(reply) => reply.into_result().map(|Done {}| child.id()),
        Err(_) => {
            let _ = child.wait();
            Err(Error::io(format!("the mount process ended before it was ready; its log is {}", log.display())))
        }
    }
}

/// Leaves the parent's session. To be called early in a process that [`spawn`] started.
pub fn detach() -> Result<()> {
    rustix::process::setsid().map(drop).map_err(|e| local("leaving the terminal's session", &e.into()))
}

/// Tells the parent that this process is ready, or why it will not be, and lets go of its terminal and directory.
pub fn tell(result: Result<()>) -> Result<()> {
    let mut line = serde_json::to_vec(&Reply::new(result.map(|()| Done {})))
        .map_err(|e| Error::internal(format!("encoding the readiness: {e}")))?;
    line.push(b'\n');
    let mut out = std::io::stdout();
    // A parent that has gone away does not need to know.
    let _ = out.write_all(&line).and_then(|()| out.flush());
    let null = File::options().write(true).open("/dev/null").map_err(|e| local("opening /dev/null", &e))?;
    rustix::stdio::dup2_stdout(&null).map_err(|e| local("letting go of standard output", &e.into()))?;
    std::env::set_current_dir("/").map_err(|e| local("leaving the current directory", &e))
}
