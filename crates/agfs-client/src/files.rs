//! Path-level helpers for entrances without a mount: reading, writing, making, removing and moving by path. All end in
//! `apply`; trees of files to and from the local disk are `transfer`'s work.

use crate::chunking::{EncodedChunk, Splitter};
use crate::connection::Connection;
use crate::paths::{Place, show};
use crate::tree::{Applied, Durable, INLINE_CHUNKS};
use agfs_core::manifest::{Extent, Manifest};
use agfs_core::node::{Body, Node};
use agfs_core::op::{Author, ContentEdit, NewNode, Op, RenameMode, TimedOp};
use agfs_core::{ChunkHash, Error, ErrorKind, FileId, Name, Result, path};
use bytes::Bytes;
use futures::StreamExt;
use rustc_hash::FxHashMap;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The mode of a new file when none is asked for.
pub(crate) const FILE_MODE: u32 = 0o644;
/// The mode of a new directory when none is asked for.
pub(crate) const DIR_MODE: u32 = 0o755;
/// How much of a file is fetched at once, in bytes (a chunk more at most).
const READ_WINDOW: u64 = 16 << 20;
/// How much is read from an input at once, in bytes.
const READ_PIECE: usize = 1 << 20;
/// The most operations in one batch of a recursive removal.
const BATCH: usize = 4_096;
/// How often a write looks again when somebody else made or removed the file meanwhile.
const ATTEMPTS: usize = 5;

/// A file that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub file_id: FileId,
    /// Its size in bytes.
    pub size: u64,
    /// What applying it did.
    pub applied: Applied,
}

/// Who owns what is made: the user of this process.
pub(crate) fn owner() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

pub(crate) fn output_failed(error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::StorageFull => ErrorKind::NoSpace,
        std::io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("writing the output failed: {error}"))
}

impl Connection {
    /// Writes the content of the file at `path` (at the reference `at`, empty: now) to `out`; symbolic links are followed.
    /// Returns the number of bytes. Fails with `NotFound`, `IsADirectory`, and `Io` when `out` does.
    pub async fn read_file(
        &self,
        space: &str,
        at: &str,
        path: &[u8],
        out: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<u64> {
        let node = self.place(space, at, path, true).await?.existing(path)?;
        match &node.body {
            Body::File(content) => {
                let manifest = self.manifest_of(content).await?;
                self.read_manifest(&manifest, out).await.map_err(|e| e.context(show(path)))
            }
            Body::Dir(_) => Err(Error::is_a_directory(format!("{} is a directory", show(path)))),
            Body::Symlink(_) | Body::Special { .. } => {
                Err(Error::invalid(format!("{} is not a regular file", show(path))))
            }
        }
    }

    /// Writes the bytes that `manifest` describes to `out`, holes as zeros. Returns their number.
    pub async fn read_manifest(&self, manifest: &Manifest, out: &mut (impl AsyncWrite + Unpin + Send)) -> Result<u64> {
        let mut window: Vec<Extent> = Vec::new();
        let mut held = 0u64;
        for extent in manifest.extents() {
            window.push(*extent);
            held += extent.chunk.map_or(0, |_| extent.len);
            if held >= READ_WINDOW {
                self.read_extents(&std::mem::take(&mut window), out).await?;
                held = 0;
            }
        }
        self.read_extents(&window, out).await?;
        out.flush().await.map_err(|e| output_failed(&e))?;
        Ok(manifest.size())
    }

    async fn read_extents(&self, extents: &[Extent], out: &mut (impl AsyncWrite + Unpin + Send)) -> Result<()> {
        const ZEROS: &[u8] = &[0; 64 << 10];
        let hashes: Vec<ChunkHash> = extents.iter().filter_map(|e| e.chunk.map(|c| c.hash)).collect();
        let mut chunks: FxHashMap<ChunkHash, Bytes> = FxHashMap::default();
        let mut coming = self.get_chunks(&hashes);
        for extent in extents {
            let Some(slice) = extent.chunk else {
                let mut left = extent.len;
                while left > 0 {
                    let n = left.min(ZEROS.len() as u64) as usize;
                    out.write_all(ZEROS.get(..n).unwrap_or(ZEROS)).await.map_err(|e| output_failed(&e))?;
                    left -= n as u64;
                }
                continue;
            };
            while !chunks.contains_key(&slice.hash) {
                match coming.next().await {
                    Some(chunk) => chunks.extend([chunk?]),
                    None => return Err(Error::corrupt(format!("chunk {} did not come", slice.hash))),
                }
            }
            let from = slice.offset as usize;
            let piece = usize::try_from(extent.len)
                .ok()
                .and_then(|len| from.checked_add(len))
                .and_then(|to| chunks.get(&slice.hash)?.get(from..to));
            let piece = piece.ok_or_else(|| {
                Error::corrupt(format!("chunk {} is shorter than the file that uses it says", slice.hash))
            })?;
            out.write_all(piece).await.map_err(|e| output_failed(&e))?;
        }
        Ok(())
    }

    /// Makes the content of the file at `path` what `input` gives, as one version; symbolic links are followed. A new file
    /// gets `mode` (0644 when `None`), one that exists keeps its own unless a mode is given. Fails with `NotFound` when the
    /// directory is missing, `IsADirectory`.
    pub async fn write_file(
        &self,
        space: &str,
        path: &[u8],
        input: impl AsyncRead + Unpin + Send,
        mode: Option<u32>,
        author: &Author,
    ) -> Result<Written> {
        // Refuse what cannot work before anything large is sent.
        writable(&self.place(space, "", path, true).await?, path)?;
        let (extents, chunks) = self.send_content(input).await?;
        let size = extents.iter().map(|e| e.len).sum();
        let mut last = Error::conflict(format!("{} changes all the time", show(path)));
        for _ in 0..ATTEMPTS {
            let place = self.place(space, "", path, true).await?;
            writable(&place, path)?;
            let now = self.now();
            let mut ops = Vec::with_capacity(2);
            let file_id = match &place.node {
                Some(node) => node.file_id,
                None => {
                    let id = FileId(self.reserve_ids(space, 1).await?.start);
                    ops.push(self.create_op(&place, path, id, NewNode::File, mode.unwrap_or(FILE_MODE))?);
                    id
                }
            };
            let edit = ContentEdit::Whole(extents.clone());
            let mode = mode.filter(|_| place.node.is_some());
            ops.push(TimedOp { time: now, op: Op::SetContent { file_id, edit, mtime: now, mode } });
            match self.apply(space, author, ops, chunks.clone(), Durable::Disk).await {
                Ok(applied) => return Ok(Written { file_id, size, applied }),
                Err(e) if raced(&e) => last = e,
                Err(e) => return Err(e.context(show(path))),
            }
        }
        Err(last)
    }

    /// Cuts what `input` gives into chunks and sends them; the last ones, at most a megabyte, are returned to travel with
    /// the operation.
    pub(crate) async fn send_content(
        &self,
        mut input: impl AsyncRead + Unpin + Send,
    ) -> Result<(Vec<Extent>, Vec<EncodedChunk>)> {
        let mut splitter = Splitter::new();
        let (mut chunks, mut piece) = (Vec::new(), vec![0u8; READ_PIECE]);
        loop {
            let n = input.read(&mut piece).await.map_err(|e| Error::io(format!("reading the input failed: {e}")))?;
            if n == 0 {
                break;
            }
            // Hashing and packing a megabyte takes milliseconds: not on the threads that carry the network.
            let work = move || {
                splitter.push(piece.get(..n).unwrap_or_default(), &mut chunks);
                (splitter, chunks, piece)
            };
            (splitter, chunks, piece) = unblocked(work).await?;
            if chunks.iter().map(|c| c.data.len()).sum::<usize>() > 4 * INLINE_CHUNKS {
                self.send_lacking(std::mem::take(&mut chunks)).await?;
            }
        }
        let (extents, mut chunks) = unblocked(move || (splitter.finish(&mut chunks), chunks)).await?;
        if chunks.iter().map(|c| c.data.len()).sum::<usize>() > INLINE_CHUNKS {
            self.send_lacking(std::mem::take(&mut chunks)).await?;
        }
        Ok((extents, chunks))
    }

    async fn send_lacking(&self, chunks: Vec<EncodedChunk>) -> Result<()> {
        let hashes: Vec<ChunkHash> = chunks.iter().map(|c| c.hash).collect();
        let have = self.have_chunks(&hashes).await?;
        let lacking = chunks.into_iter().zip(have).filter(|(_, have)| !have).map(|(chunk, _)| chunk).collect();
        self.put_chunks(lacking).await
    }

    pub(crate) fn create_op(
        &self,
        place: &Place,
        path: &[u8],
        id: FileId,
        node: NewNode,
        mode: u32,
    ) -> Result<TimedOp> {
        let (parent, name) = place.entry(path)?;
        let (uid, gid) = owner();
        Ok(TimedOp { time: self.now(), op: Op::Create { parent, name, file_id: id, node, mode, uid, gid } })
    }

    /// Makes a directory with `mode` (0755 when `None`); with `parents` also those above it, and then one that exists is no
    /// error. Fails with `NotFound`, `AlreadyExists`, `NotADirectory`.
    pub async fn mkdir(
        &self,
        space: &str,
        path: &[u8],
        parents: bool,
        mode: Option<u32>,
        author: &Author,
    ) -> Result<FileId> {
        if !parents {
            let place = self.place(space, "", path, false).await?;
            if place.node.is_some() {
                return Err(Error::already_exists(format!("{} already exists", show(path))));
            }
            let id = FileId(self.reserve_ids(space, 1).await?.start);
            let dir = NewNode::Dir { shadow: false };
            let op = self.create_op(&place, path, id, dir, mode.unwrap_or(DIR_MODE))?;
            self.apply(space, author, vec![op], Vec::new(), Durable::Disk).await.map_err(|e| e.context(show(path)))?;
            return Ok(id);
        }
        let mut last = Error::conflict(format!("{} changes all the time", show(path)));
        for _ in 0..ATTEMPTS {
            match self.mkdir_parents(space, path, mode.unwrap_or(DIR_MODE), author).await {
                Err(e) if raced(&e) => last = e,
                done => return done.map_err(|e| e.context(show(path))),
            }
        }
        Err(last)
    }

    async fn mkdir_parents(&self, space: &str, path: &[u8], mode: u32, author: &Author) -> Result<FileId> {
        let names = path::parse(path)?;
        let mut depth = 0;
        // Down to the last component that exists, through symbolic links.
        let mut here = self.place(space, "", b"/", true).await?.existing(b"/")?;
        while depth < names.len() {
            let down = path::join(names.iter().take(depth + 1));
            match self.place(space, "", &down, true).await?.node {
                Some(node) if node.kind().is_dir() => here = node,
                Some(_) => return Err(Error::not_a_directory(format!("{} is not a directory", show(&down)))),
                None => break,
            }
            depth += 1;
        }
        let missing: Vec<Name> = names.into_iter().skip(depth).collect();
        let Ok(count @ 1..) = u32::try_from(missing.len()) else { return Ok(here.file_id) };
        let ids = self.reserve_ids(space, count).await?;
        let ((uid, gid), time) = (owner(), self.now());
        let (mut parent, mut ops) = (here.file_id, Vec::new());
        for (name, id) in missing.into_iter().zip(ids) {
            let (file_id, node) = (FileId(id), NewNode::Dir { shadow: false });
            ops.push(TimedOp { time, op: Op::Create { parent, name, file_id, node, mode, uid, gid } });
            parent = file_id;
        }
        self.apply(space, author, ops, Vec::new(), Durable::Disk).await?;
        Ok(parent)
    }

    /// Removes what is at `path`, a directory only when it is empty or with `recursive`. Returns how many names went. Fails with
    /// `NotFound`, `NotEmpty`, `Refused` for the root.
    pub async fn remove(&self, space: &str, path: &[u8], recursive: bool, author: &Author) -> Result<u64> {
        let place = self.place(space, "", path, false).await?;
        let (parent, name) = place.entry(path)?;
        let node = place.existing(path)?;
        let mut ops = Vec::new();
        if recursive && node.kind().is_dir() {
            self.removal(space, &node, &mut ops).await?;
        }
        ops.push(if node.kind().is_dir() { Op::Rmdir { parent, name } } else { Op::Unlink { parent, name } });
        let (count, time) = (ops.len() as u64, self.now());
        let mut ops = ops.into_iter().map(|op| TimedOp { time, op }).peekable();
        while ops.peek().is_some() {
            let batch: Vec<TimedOp> = ops.by_ref().take(BATCH).collect();
            self.apply(space, author, batch, Vec::new(), Durable::Disk).await.map_err(|e| e.context(show(path)))?;
        }
        Ok(count)
    }

    /// The operations that empty a directory, the deepest first.
    async fn removal(&self, space: &str, dir: &Node, ops: &mut Vec<Op>) -> Result<()> {
        // Directories before what is in them; reversed at the end.
        let mut before = Vec::new();
        let mut dirs = vec![dir.file_id];
        while let Some(parent) = dirs.pop() {
            for (name, node) in self.list_dir(space, "", parent).await?.entries {
                if node.kind().is_dir() {
                    dirs.push(node.file_id);
                    before.push(Op::Rmdir { parent, name });
                } else {
                    before.push(Op::Unlink { parent, name });
                }
            }
        }
        ops.extend(before.into_iter().rev());
        Ok(())
    }

    /// Moves what is at `from` to `to`, over what is there; into it when that is a directory. Fails as a local rename does.
    pub async fn rename(&self, space: &str, from: &[u8], to: &[u8], author: &Author) -> Result<Applied> {
        let source = self.place(space, "", from, false).await?;
        let (parent, name) = source.entry(from)?;
        source.existing(from)?;
        let target = self.place(space, "", to, true).await?;
        let (new_parent, new_name) = match &target.node {
            Some(dir) if dir.kind().is_dir() => (dir.file_id, name.clone()),
            _ => target.entry(to)?,
        };
        let op = Op::Rename { parent, name, new_parent, new_name, mode: RenameMode::Replace };
        let op = TimedOp { time: self.now(), op };
        let moved = self.apply(space, author, vec![op], Vec::new(), Durable::Disk).await;
        moved.map_err(|e| e.context(format!("moving {} to {}", show(from), show(to))))
    }
}

/// Whether another caller was quicker, so that looking again helps.
fn raced(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::Stale | ErrorKind::Conflict)
}

fn writable(place: &Place, path: &[u8]) -> Result<()> {
    match place.node.as_ref().map(|node| &node.body) {
        None | Some(Body::File(_)) => Ok(()),
        Some(Body::Dir(_)) => Err(Error::is_a_directory(format!("{} is a directory", show(path)))),
        Some(Body::Symlink(_) | Body::Special { .. }) => {
            Err(Error::invalid(format!("{} is not a regular file", show(path))))
        }
    }
}

/// Runs what computes for long away from the threads that carry the network.
pub(crate) async fn unblocked<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| Error::internal(format!("a background computation failed: {e}")))
}
