//! An object store that can be down, and counts.

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::*;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Passes everything on while it is up, and fails every request while it is down.
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn ObjectStore>,
    down: AtomicBool,
    gets: AtomicU64,
    puts: AtomicU64,
}

impl Faulty {
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Faulty { inner, down: AtomicBool::new(false), gets: AtomicU64::new(0), puts: AtomicU64::new(0) }
    }

    pub fn set_down(&self, down: bool) {
        self.down.store(down, SeqCst);
    }

    pub fn gets(&self) -> u64 {
        self.gets.load(SeqCst)
    }

    pub fn puts(&self) -> u64 {
        self.puts.load(SeqCst)
    }

    fn check(&self) -> Result<()> {
        match self.down.load(SeqCst) {
            false => Ok(()),
            true => Err(Error::Generic { store: "faulty", source: "the store is down".into() }),
        }
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faulty({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.check()?;
        self.puts.fetch_add(1, SeqCst);
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.check()?;
        self.puts.fetch_add(1, SeqCst);
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.check()?;
        self.gets.fetch_add(1, SeqCst);
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
