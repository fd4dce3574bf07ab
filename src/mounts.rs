//! Finding mounts on this machine: the kernel's list of them, and the register that mount processes keep in the runtime
//! directory. Reading only, apart from a mount process's own entry; nothing is mounted or unmounted here.

use crate::exit::local;
use crate::paths;
use agfs_core::{ChunkHash, Error, Result};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The file system types that the kernel shows for our mounts: fusermount3 sets the subtype, mounting without it does not.
const FSTYPES: [&[u8]; 2] = [b"fuse.agfs", b"fuse"];
/// How the source of our mounts begins.
const SOURCE: &[u8] = b"agfs:";

/// How often the register's lock is tried for.
const LOCK_TRIES: u32 = 20;
/// How long between two tries.
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// A mount as the kernel lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMount {
    /// Where it is.
    pub mountpoint: PathBuf,
    /// Whether it is one of ours.
    pub ours: bool,
    /// What is mounted; ours say `agfs:SPACE`.
    pub source: Vec<u8>,
}

impl KernelMount {
    /// The space that is mounted, if it is one of ours.
    pub fn space(&self) -> Option<String> {
        let name = self.source.strip_prefix(SOURCE).filter(|_| self.ours)?;
        String::from_utf8(name.to_vec()).ok()
    }
}

/// The kernel's list, in the order of mounting.
pub fn kernel_mounts() -> Result<Vec<KernelMount>> {
    let text = fs::read("/proc/self/mountinfo").map_err(|e| local("reading /proc/self/mountinfo", &e))?;
    Ok(parse_mountinfo(&text))
}

/// Reads `/proc/self/mountinfo`; lines that are not understood are left out.
pub fn parse_mountinfo(text: &[u8]) -> Vec<KernelMount> {
    text.split(|&b| b == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<KernelMount> {
    let mut fields = line.split(|&b| b == b' ');
    let mountpoint = unescape(fields.nth(4)?);
    // Any number of optional fields, then a dash.
    fields.find(|f| *f == b"-")?;
    let (fstype, source) = (fields.next()?, fields.next()?);
    Some(KernelMount {
        mountpoint: PathBuf::from(std::ffi::OsString::from_vec(mountpoint)),
        ours: FSTYPES.contains(&fstype) && source.starts_with(SOURCE),
        source: unescape(source),
    })
}

/// Undoes the kernel's `\040` for blanks, tabs, newlines and backslashes.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let code = (first == b'\\').then(|| tail.get(..3)).flatten().and_then(|d| std::str::from_utf8(d).ok());
        match code.and_then(|d| u8::from_str_radix(d, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    out
}

/// The mount that a path (absolute, links followed) is in: of those whose mountpoint holds it, the deepest; of several at
/// one place, the one mounted last.
pub fn covering<'a>(mounts: &'a [KernelMount], path: &Path) -> Option<&'a KernelMount> {
    mounts.iter().filter(|m| path.starts_with(&m.mountpoint)).max_by_key(|m| m.mountpoint.components().count())
}

/// What a mount process tells of itself to other programs.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Where it is mounted.
    pub mountpoint: PathBuf,
    /// The space's name.
    pub space: String,
    /// The reference that is mounted; empty for the present.
    pub at: String,
    /// The directory of the space that is shown, in base64; `/` for all.
    pub sub_path_b64: String,
    /// The server's address.
    pub server: String,
    /// The mount process.
    pub pid: u32,
}

impl Entry {
    /// The directory of the space that is shown.
    pub fn sub_path(&self) -> Vec<u8> {
        use base64::Engine;
        let decoded = base64::engine::general_purpose::STANDARD.decode(&self.sub_path_b64).ok();
        decoded.filter(|p| p.starts_with(b"/")).unwrap_or_else(|| b"/".to_vec())
    }
}

/// The file of the register for a mountpoint; the socket is beside it.
fn entry_file(mountpoint: &Path) -> PathBuf {
    let id = ChunkHash::of(mountpoint.as_os_str().as_bytes()).to_string();
    paths::runtime_dir().join("mounts").join(format!("{}.json", id.get(..16).unwrap_or(&id)))
}

/// The control socket of the mount at a mountpoint.
pub fn socket_file(mountpoint: &Path) -> PathBuf {
    entry_file(mountpoint).with_extension("sock")
}

/// The register's entry for a mountpoint, if its mount process lives. Entries of dead processes are removed.
pub fn registered(mountpoint: &Path) -> Option<Entry> {
    let path = entry_file(mountpoint);
    let mut file = File::open(&path).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        // Nobody holds it: the process is gone.
        let _ = fs::remove_file(&path);
        let _ = fs::remove_file(path.with_extension("sock"));
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str::<Entry>(&text).ok().filter(|e| e.mountpoint == mountpoint)
}

/// A mount process's own entry: there as long as this lives, and locked so that others see that it does.
pub struct Registration {
    path: PathBuf,
    _locked: File,
}

impl Registration {
    /// Registers a mount. Fails with `Conflict` when a living process has registered the same mountpoint.
    pub fn new(entry: &Entry) -> Result<Registration> {
        let path = entry_file(&entry.mountpoint);
        if let Some(dir) = path.parent() {
            paths::private_dir(dir)?;
        }
        let failed = |e: &std::io::Error| local(format!("registering the mount in {}", path.display()), e);
        let mut file = Self::lock(&path, &entry.mountpoint)?;
        let text = serde_json::to_vec(entry).map_err(|e| Error::internal(format!("registering the mount: {e}")))?;
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&text)
        };
        write(&mut file).map_err(|e| failed(&e))?;
        Ok(Registration { path, _locked: file })
    }

    /// Opens and locks the file. Whoever only looks holds the lock for a moment, and may remove a dead process's file.
    fn lock(path: &Path, mountpoint: &Path) -> Result<File> {
        use std::os::unix::fs::MetadataExt;
        let failed = |e: &std::io::Error| local(format!("registering the mount in {}", path.display()), e);
        for _ in 0..LOCK_TRIES {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let file = options.open(path).map_err(|e| failed(&e))?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let held = file.metadata().map_err(|e| failed(&e))?;
                if fs::metadata(path).is_ok_and(|there| there.ino() == held.ino()) {
                    return Ok(file);
                }
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Err(Error::conflict(format!("another process serves {}: `agfs umount` it first", mountpoint.display())))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path.with_extension("sock"));
        let _ = fs::remove_file(&self.path);
    }
}

/// One of our mounts, found by a path in it.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it is.
    pub mountpoint: PathBuf,
    /// The space, as the kernel's list names it.
    pub space: Option<String>,
    /// What its process tells, if it is this user's and lives.
    pub entry: Option<Entry>,
    /// The rest of the path below the mountpoint, absolute in the mount.
    pub inner: Vec<u8>,
}

/// Finds the mount of ours that holds a path. The path need not exist. `Ok(None)` when it is in no mount of ours.
pub fn find(path: &Path) -> Result<Option<Found>> {
    let path = paths::resolved(path)?;
    let mounts = kernel_mounts()?;
    let Some(mount) = covering(&mounts, &path).filter(|m| m.ours) else { return Ok(None) };
    let rest = path.strip_prefix(&mount.mountpoint).unwrap_or(Path::new(""));
    Ok(Some(Found {
        mountpoint: mount.mountpoint.clone(),
        space: mount.space(),
        entry: registered(&mount.mountpoint),
        inner: [b"/", rest.as_os_str().as_bytes()].concat(),
    }))
}

impl Found {
    /// The path in the space that stands for the path in the mount.
    pub fn space_path(&self) -> Result<Vec<u8>> {
        let base = self.entry.as_ref().map_or_else(|| b"/".to_vec(), Entry::sub_path);
        crate::location::absolute(&base, &self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &[u8] = b"22 1 8:1 / / rw - ext4 /dev/vda rw\n\
        30 22 0:40 / /mnt/a\\040b rw,nosuid - fuse.agfs agfs:s1 rw,user_id=0\n\
        31 22 0:41 / /mnt rw shared:5 master:1 - tmpfs tmpfs rw\n\
        32 31 0:42 / /mnt/x rw shared:5 - fuse agfs:old rw\n\
        33 31 0:43 / /mnt/x rw - fuse.agfs agfs:new rw\n\
        34 31 0:44 / /mnt/other rw - fuse.sshfs host: rw\n\
        broken line\n";

    #[test]
    fn the_kernels_list_is_read() {
        let mounts = parse_mountinfo(INFO);
        assert_eq!(mounts.len(), 6);
        assert_eq!(mounts.iter().filter(|m| m.ours).count(), 3);
        assert_eq!(mounts[1].mountpoint, Path::new("/mnt/a b"));
        assert_eq!((mounts[1].space(), mounts[2].space()), (Some("s1".into()), None));
        assert_eq!(unescape(b"a\\134\\04\\x\\"), b"a\\\\04\\x\\");
    }

    #[test]
    fn the_deepest_and_latest_mount_covers() {
        let mounts = parse_mountinfo(INFO);
        let at = |p: &str| covering(&mounts, Path::new(p)).and_then(KernelMount::space);
        assert_eq!(at("/mnt/x/y"), Some("new".into()));
        assert_eq!(at("/mnt/a b"), Some("s1".into()));
        assert_eq!(at("/mnt/xy"), None);
        assert_eq!(at("/home"), None);
    }
}
