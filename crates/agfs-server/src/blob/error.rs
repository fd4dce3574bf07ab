//! Failures of the staging disk and of the object store, by meaning.

use agfs_core::{Error, ErrorKind};
use std::io;
use std::path::Path;

/// A file of the staging directory failed; `what` says what was tried.
pub(super) fn file(what: &str, path: &Path, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::PermissionDenied,
        io::ErrorKind::NotADirectory => ErrorKind::NotADirectory,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("cannot {what} {}: {error}", path.display()))
}

/// The object store failed; `what` says what was tried.
pub(super) fn object(what: &str, key: &str, error: &object_store::Error) -> Error {
    use object_store::Error as E;
    let kind = match error {
        E::NotFound { .. } => ErrorKind::NotFound,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => ErrorKind::PermissionDenied,
        E::InvalidPath { .. } | E::UnknownConfigurationKey { .. } => ErrorKind::InvalidArgument,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("cannot {what} object {key}: {error}"))
}

/// A task of the runtime ended without an answer: the runtime is shutting down, or the task panicked.
pub(super) fn task(error: &tokio::task::JoinError) -> Error {
    if error.is_panic() { Error::internal("a storage task panicked") } else { closed() }
}

/// The store is closed or being closed.
pub(super) fn closed() -> Error {
    Error::refused("the chunk store is closed")
}
