//! Finds a chunk and brings it, checked: from memory, from a local pack, or from the object store.
//!
//! Every chunk is decompressed and hashed before it is handed out or kept in memory.

use super::codec::{EncodedChunk, decode};
use super::error;
use super::index::{Index, Location};
use super::pack;
use super::staging::Staging;
use super::url::Target;
use agfs_core::{ChunkHash, Error, ErrorKind, Result};
use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;

/// Chunks with more bytes than this are decompressed and hashed on a blocking thread.
const INLINE: usize = 64 << 10;
/// Only chunks up to this size are read with what lies behind them, and are copied into memory when they are written.
pub(super) const SMALL: usize = 64 << 10;

/// The bytes a cached chunk stands for, with what the table needs for it.
#[derive(Clone)]
struct ByBytes;

impl Weighter<ChunkHash, EncodedChunk> for ByBytes {
    fn weight(&self, _: &ChunkHash, chunk: &EncodedChunk) -> u64 {
        chunk.data.len() as u64 + 128
    }
}

/// Reads chunks.
pub(super) struct Reader {
    staging: Arc<Staging>,
    index: Arc<Index>,
    target: Target,
    cache: Cache<ChunkHash, EncodedChunk, ByBytes>,
    read_ahead: u64,
}

/// A chunk with its plain bytes.
type Checked = (EncodedChunk, Bytes);

enum Found {
    Chunk(Checked),
    Remote(Location),
}

impl Reader {
    pub fn new(staging: Arc<Staging>, index: Arc<Index>, target: Target, cache: u64, read_ahead: u64) -> Self {
        let cache = Cache::with_weighter((cache / 4096).max(16) as usize, cache, ByBytes);
        // A local directory is read through the page cache, which reads ahead by itself.
        let read_ahead = if target.directory.is_some() { 0 } else { read_ahead };
        Reader { staging, index, target, cache, read_ahead }
    }

    /// Bytes of chunks in memory.
    pub fn cached(&self) -> u64 {
        self.cache.weight()
    }

    /// Keeps a chunk that was checked, when it is small. Copies it: its bytes may be a part of a larger message.
    pub fn remember(&self, chunk: &EncodedChunk) {
        if chunk.data.len() <= SMALL {
            let data = Bytes::copy_from_slice(&chunk.data);
            self.cache.insert(chunk.hash, EncodedChunk { data, ..chunk.clone() });
        }
    }

    /// Where the chunk is. May read the index's disk.
    pub fn locate(&self, hash: ChunkHash) -> Result<Location> {
        let found = match self.staging.find(&hash) {
            Some(location) => Some(location),
            None => self.index.get(hash)?,
        };
        found.ok_or_else(|| Error::not_found(format!("chunk {hash} is not stored")))
    }

    /// The chunk as stored.
    pub async fn encoded(self: &Arc<Self>, hash: ChunkHash) -> Result<EncodedChunk> {
        match self.cache.get(&hash) {
            Some(chunk) => Ok(chunk),
            None => Ok(self.fetch(hash).await?.0),
        }
    }

    /// The chunk's plain bytes.
    pub async fn raw(self: &Arc<Self>, hash: ChunkHash) -> Result<Bytes> {
        match self.cache.get(&hash) {
            Some(chunk) => Ok(self.check(chunk).await?.1),
            None => Ok(self.fetch(hash).await?.1),
        }
    }

    async fn fetch(self: &Arc<Self>, hash: ChunkHash) -> Result<Checked> {
        let reader = Arc::clone(self);
        let found = match self.staging.blocking(move || reader.local(hash)).await? {
            Found::Chunk(checked) => checked,
            Found::Remote(location) => self.remote(location).await?,
        };
        self.cache.insert(hash, found.0.clone());
        Ok(found)
    }

    fn local(&self, hash: ChunkHash) -> Result<Found> {
        let location = self.locate(hash)?;
        // A pack that is not here any more is in the object store: it leaves only after it has arrived there.
        let Some(pack) = self.staging.pack(location.pack) else { return Ok(Found::Remote(location)) };
        let chunk = pack.read(&location.entry)?;
        let raw = decode(&chunk).map_err(|e| in_pack(e, &location))?;
        Ok(Found::Chunk((chunk, raw)))
    }

    async fn remote(self: &Arc<Self>, location: Location) -> Result<Checked> {
        let bytes = self.range(&location).await?;
        let damaged = || {
            let (hash, pack) = (location.entry.hash, location.pack);
            Error::corrupt(format!("chunk {hash} in pack {pack}: its record is damaged"))
        };
        let (entry, chunk) = pack::decode_record(&bytes, location.entry.offset).ok_or_else(damaged)?;
        if entry != location.entry {
            return Err(damaged());
        }
        let own = pack::RECORD_HEADER_LEN + chunk.data.len();
        if bytes.len() > own {
            self.keep_neighbours(bytes.slice(own..));
            // The cache must not hold the whole range for the sake of one chunk in it.
            let data = Bytes::copy_from_slice(&chunk.data);
            return self.check(EncodedChunk { data, ..chunk }).await.map_err(|e| in_pack(e, &location));
        }
        self.check(chunk).await.map_err(|e| in_pack(e, &location))
    }

    /// The bytes of the pack from the record on: at least the record, when the pack is as long as it should be.
    async fn range(&self, location: &Location) -> Result<Bytes> {
        let (entry, key) = (&location.entry, location.pack.object_key());
        let start = u64::from(entry.offset);
        let small = entry.stored_len as usize <= SMALL;
        let end = if small { entry.end().max(start + self.read_ahead) } else { entry.end() };
        let truncated = |size: u64| {
            let what = format!("is truncated to {size} bytes, chunk {} lies at {start} to {}", entry.hash, entry.end());
            Error::corrupt(format!("pack {} {what}", location.pack))
        };
        let missing = || {
            Error::corrupt(format!(
                "pack {} is missing from the object store, with chunk {}",
                location.pack, entry.hash
            ))
        };
        let path = Key::from(key.as_str());
        let options = GetOptions { range: Some(GetRange::Bounded(start..end)), ..GetOptions::default() };
        let result = match self.target.store.get_opts(&path, options).await {
            Ok(result) if result.meta.size < entry.end() => return Err(truncated(result.meta.size)),
            Ok(result) => result,
            Err(object_store::Error::NotFound { .. }) => return Err(missing()),
            // A range that begins behind the end is an error, and how it looks differs between stores: ask for the size.
            Err(e) => match self.target.store.head(&path).await {
                Ok(meta) if meta.size < entry.end() => return Err(truncated(meta.size)),
                Err(object_store::Error::NotFound { .. }) => return Err(missing()),
                _ => return Err(error::object(&format!("read chunk {} from", entry.hash), &key, &e)),
            },
        };
        if result.range.start != start {
            return Err(Error::new(
                ErrorKind::Io,
                format!("the object store gave another range of {key} than asked for"),
            ));
        }
        result.bytes().await.map_err(|e| error::object(&format!("read chunk {} from", entry.hash), &key, &e))
    }

    async fn check(&self, chunk: EncodedChunk) -> Result<Checked> {
        if chunk.raw_len as usize <= INLINE {
            return decode(&chunk).map(|raw| (chunk, raw));
        }
        self.staging.blocking(move || decode(&chunk).map(|raw| (chunk, raw))).await
    }

    /// Checks the whole records in `bytes` and keeps them, in the background.
    fn keep_neighbours(self: &Arc<Self>, bytes: Bytes) {
        let reader = Arc::clone(self);
        drop(self.staging.tasks.spawn_blocking(move || {
            let mut rest = bytes;
            while let Some((_, chunk)) = pack::decode_record(&rest, 0) {
                rest = rest.slice(pack::RECORD_HEADER_LEN + chunk.data.len()..);
                if chunk.data.len() <= SMALL && reader.cache.peek(&chunk.hash).is_none() && decode(&chunk).is_ok() {
                    reader.remember(&chunk);
                }
            }
        }));
    }
}

fn in_pack(error: Error, location: &Location) -> Error {
    error.context(format!("pack {}", location.pack))
}
