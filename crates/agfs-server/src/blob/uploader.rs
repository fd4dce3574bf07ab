//! Moves finished packs into the object store, for as long as it takes, and then removes the local ones.

use super::error;
use super::index::Index;
use super::pack_id::PackId;
use super::sealer::sync_dir;
use super::staging::{SealedPack, Staging};
use super::url::Target;
use agfs_core::{Error, Result};
use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{ObjectStoreExt, PutPayload, WriteMultipart};
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Up to this size, in bytes, a pack is one put; above it, a multipart upload with parts of this size.
const PART: u64 = 16 << 20;

/// One of the workers that upload. Each takes packs as they come.
pub(super) struct Uploader {
    pub staging: Arc<Staging>,
    pub index: Arc<Index>,
    pub target: Target,
    pub retry: (Duration, Duration),
}

impl Uploader {
    /// Uploads packs until it is dropped.
    pub async fn run(self: Arc<Self>) {
        loop {
            while let Some(pack) = self.staging.take_sealed() {
                self.until_uploaded(pack).await;
            }
            self.staging.sealed.notified().await;
        }
    }

    async fn until_uploaded(&self, pack: SealedPack) {
        let (mut pause, longest) = self.retry;
        let mut attempts = 1u32;
        while let Err(error) = self.upload(&pack).await {
            tracing::warn!(pack = %pack.local.id, attempts, %error, "a pack could not be uploaded and is tried again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
            attempts = attempts.saturating_add(1);
        }
        tracing::debug!(pack = %pack.local.id, bytes = pack.len, attempts, "pack uploaded");
    }

    async fn upload(&self, pack: &SealedPack) -> Result<()> {
        let linked = match &self.target.directory {
            Some(root) => {
                let id = pack.local.id;
                let (from, to) = (self.staging.sealed_path(id), root.join(id.object_key()));
                self.staging.blocking(move || link(&from, &to)).await?
            }
            None => false,
        };
        let there = linked || (pack.recovered && self.is_there(pack).await?);
        if !there {
            self.send(pack).await?;
        }
        self.finish(pack.local.id).await
    }

    async fn is_there(&self, pack: &SealedPack) -> Result<bool> {
        let key = pack.local.id.object_key();
        match self.target.store.head(&Key::from(key.as_str())).await {
            Ok(meta) => Ok(meta.size == pack.len),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(e) => Err(error::object("look for", &key, &e)),
        }
    }

    async fn send(&self, pack: &SealedPack) -> Result<()> {
        let key = pack.local.id.object_key();
        let path = Key::from(key.as_str());
        let failed = |e: object_store::Error| error::object("upload", &key, &e);
        if pack.len <= PART {
            let payload = PutPayload::from(self.part(pack, 0).await?);
            return self.target.store.put(&path, payload).await.map(drop).map_err(failed);
        }
        let upload = self.target.store.put_multipart(&path).await.map_err(failed)?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART as usize);
        let mut at = 0;
        while at < pack.len {
            let part = match self.part(pack, at).await {
                Ok(part) => part,
                Err(e) => return upload.abort().await.map_err(failed).and(Err(e)),
            };
            at += part.len() as u64;
            upload.wait_for_capacity(2).await.map_err(failed)?;
            upload.put(part);
        }
        upload.finish().await.map(drop).map_err(failed)
    }

    async fn part(&self, pack: &SealedPack, at: u64) -> Result<Bytes> {
        let (local, len) = (Arc::clone(&pack.local), PART.min(pack.len - at) as usize);
        let job = move || {
            let mut bytes = vec![0; len];
            let read = local.file.read_exact_at(&mut bytes, at);
            read.map(|()| bytes.into()).map_err(|e| Error::io(format!("cannot read local pack {}: {e}", local.id)))
        };
        self.staging.blocking(job).await
    }

    /// The object store has the pack. Before the local file goes, the index must be on disk: after a power loss the
    /// local file would be what the index is made from again.
    async fn finish(&self, id: PackId) -> Result<()> {
        let (staging, index) = (Arc::clone(&self.staging), Arc::clone(&self.index));
        let job = move || {
            index.sync()?;
            let path = staging.sealed_path(id);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    // It is found again at the next start and removed then.
                    tracing::warn!(path = %path.display(), error = %e, "the local copy of an uploaded pack stays");
                }
                _ => {}
            }
            // Who reads it meanwhile has the file open.
            staging.uploaded(id);
            Ok(())
        };
        self.staging.blocking(job).await
    }
}

/// Gives a finished pack its second name, in the directory that is the object store, and puts that name on disk.
/// False when the two directories are not on one file system.
fn link(from: &Path, to: &Path) -> Result<bool> {
    let dir = to.parent().unwrap_or(Path::new("/"));
    let existed = dir.is_dir();
    fs::create_dir_all(dir).map_err(|e| error::file("make the directory", dir, &e))?;
    match fs::hard_link(from, to) {
        Ok(()) => {}
        // An earlier attempt or run came this far. The id says that it is the same pack, the size that it is whole.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            let size = |path: &Path| fs::metadata(path).map(|m| m.len()).ok();
            if size(from).is_none() || size(from) != size(to) {
                return Ok(false);
            }
        }
        Err(_) => return Ok(false),
    }
    sync_dir(dir)?;
    if !existed {
        for above in dir.ancestors().skip(1).take(2) {
            sync_dir(above)?;
        }
    }
    Ok(true)
}
