//! A Unix socket at a path of any length, and one JSON line each way over it. What the lines say is in `control`.

use crate::exit::local;
use agfs_core::{Error, ErrorKind, Result};
use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest path that the socket interface takes, in bytes, with its final NUL.
const MAX_SOCKET_PATH: usize = 108;

/// A path for the socket calls: a long one goes by way of an open directory. The descriptor must live until the call.
fn short(path: &Path) -> Result<(Option<OwnedFd>, PathBuf)> {
    use std::os::unix::ffi::OsStrExt;
    if path.as_os_str().as_bytes().len() < MAX_SOCKET_PATH {
        return Ok((None, path.to_path_buf()));
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::invalid(format!("{} is no path for a socket", path.display())));
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(dir, flags, Mode::empty())
        .map_err(|e| local(format!("opening {}", dir.display()), &e.into()))?;
    let through = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name);
    Ok((Some(dir), through))
}

/// Listens at a path; what a dead process left there is replaced. Only this user can connect.
pub fn listen(path: &Path) -> Result<UnixListener> {
    let failed = |e: &std::io::Error| local(format!("making the control socket {}", path.display()), e);
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(failed(&error));
    }
    let (_dir, through) = short(path)?;
    let listener = UnixListener::bind(through).map_err(|e| failed(&e))?;
    listener.set_nonblocking(true).map_err(|e| failed(&e))?;
    Ok(listener)
}

/// Sends one request to a mount process and waits for its answer. Fails with `Unavailable` when nobody listens, with
/// `TimedOut` when there is no answer in time, and with whatever the mount process says.
pub fn ask<Q: Serialize, A: DeserializeOwned>(path: &Path, request: &Q, limit: Duration) -> Result<A> {
    let gone =
        |e: std::io::Error| Error::unavailable(format!("the mount process does not answer at {}: {e}", path.display()));
    let (_dir, through) = short(path)?;
    let mut stream = UnixStream::connect(through).map_err(gone)?;
    stream.set_read_timeout(Some(limit)).map_err(gone)?;
    let mut line = serde_json::to_vec(request).map_err(|e| Error::internal(format!("encoding a request: {e}")))?;
    line.push(b'\n');
    stream.write_all(&line).map_err(gone)?;
    let mut answer = String::new();
    let read = BufReader::new(&stream).read_line(&mut answer);
    match read {
        Ok(0) => return Err(Error::unavailable("the mount process ended without an answer")),
        Ok(_) => {}
        Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
            return Err(Error::new(
                ErrorKind::TimedOut,
                format!("no answer from the mount process in {} s", limit.as_secs()),
            ));
        }
        Err(e) => return Err(gone(e)),
    }
    let reply: super::control::Reply<A> = serde_json::from_str(&answer).map_err(|e| {
        Error::unavailable(format!("the mount process answers what this program does not understand: {e}"))
    })?;
    reply.into_result()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_works() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let path = deep.join("x.sock");
        let listener = listen(&path).unwrap();
        listener.set_nonblocking(false).unwrap();
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            (&stream).write_all(b"{\"error\":{\"code\":\"conflict\",\"message\":\"busy\"}}\n").unwrap();
            line
        });
        let answer: Result<u64> = ask(&path, &7, Duration::from_secs(5));
        assert_eq!(answer.map_err(|e| e.kind()), Err(ErrorKind::Conflict));
        assert_eq!(server.join().unwrap(), "7\n");
        assert!(listen(&path).is_ok(), "what was left is replaced");
    }
}
