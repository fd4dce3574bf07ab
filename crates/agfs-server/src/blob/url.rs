//! From a URL to an object store. The only place that knows which kinds there are.

use agfs_core::{Error, Result};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where packs go.
#[derive(Clone, Debug)]
pub struct Target {
    /// The store; keys are below its prefix already.
    pub store: Arc<dyn ObjectStore>,
    /// The directory of a `file:` store: packs can be linked into it instead of copied.
    pub directory: Option<PathBuf>,
}

impl Target {
    /// The store at `file:///dir` (made when it is not there), `s3://bucket/prefix` or `memory:///`.
    ///
    /// For `s3:` the endpoint, region, credentials and style are taken from the `AWS_*` environment variables; an
    /// endpoint that begins with `http://` needs no `AWS_ALLOW_HTTP`. Fails with `InvalidArgument` on any other URL.
    pub fn open(url: &str) -> Result<Target> {
        let invalid = |why: &str| {
            Error::invalid(format!("{url:?} is no place for contents: {why} (file:///dir, s3://bucket/prefix)"))
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| invalid("it has no scheme"))?;
        match scheme {
            "file" if rest.starts_with('/') => directory(PathBuf::from(rest)),
            "file" => Err(invalid("a file URL has an absolute path")),
            "memory" if rest.is_empty() || rest == "/" => {
                Ok(Target { store: Arc::new(InMemory::new()), directory: None })
            }
            "memory" => Err(invalid("a memory URL has no path")),
            "s3" => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                if bucket.is_empty() {
                    return Err(invalid("it names no bucket"));
                }
                s3(bucket, prefix.trim_matches('/'))
            }
            _ => Err(invalid("its scheme is none that is known")),
        }
    }
}

fn directory(root: PathBuf) -> Result<Target> {
    std::fs::create_dir_all(&root).map_err(|e| super::error::file("make the directory", &root, &e))?;
    let store = LocalFileSystem::new_with_prefix(&root)
        .map_err(|e| super::error::object("open the directory of", &root.display().to_string(), &e))?
        // A local copy is removed after a put, so the put must be on disk.
        .with_fsync(true);
    Ok(Target { store: Arc::new(store), directory: Some(root) })
}

fn s3(bucket: &str, prefix: &str) -> Result<Target> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let unset = |builder: &AmazonS3Builder, key| builder.get_config_value(&AmazonS3ConfigKey::Client(key)).is_none();
    let endpoint = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint]
        .iter()
        .find_map(|key| builder.get_config_value(key));
    if endpoint.is_some_and(|e| e.starts_with("http://")) {
        builder = builder.with_allow_http(true);
    }
    // A pack of 8 MiB takes half a minute at 2 Mbit/s, and the default of 30 s would then fail for ever.
    if unset(&builder, ClientConfigKey::Timeout) {
        builder = builder.with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), "300 seconds");
    }
    // Uploads have a loop of their own; a reader must hear within a time that a program waits.
    builder = builder.with_retry(RetryConfig {
        backoff: BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() },
        max_retries: 5,
        retry_timeout: Duration::from_secs(20),
    });
    let store = builder.build().map_err(|e| super::error::object("open the store of", bucket, &e))?;
    let store: Arc<dyn ObjectStore> =
        if prefix.is_empty() { Arc::new(store) } else { Arc::new(PrefixStore::new(store, prefix)) };
    Ok(Target { store, directory: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agfs_core::ErrorKind;

    #[test]
    fn known_urls_open_and_others_are_refused() {
        let dir = tempfile::TempDir::new().unwrap();
        let root = dir.path().join("a b/c%20d");
        let target = Target::open(&format!("file://{}", root.display())).unwrap();
        assert!(root.is_dir() && target.directory == Some(root));
        assert!(Target::open("memory:///").unwrap().directory.is_none());
        assert!(Target::open("s3://bucket/some/prefix/").is_ok());
        for url in ["", "/dir", "file://dir", "memory:///x", "s3://", "s3:///prefix", "gs://bucket"] {
            assert_eq!(Target::open(url).err().map(|e| e.kind()), Some(ErrorKind::InvalidArgument), "{url}");
        }
    }
}
