//! Which errno a program gets for each kind of error: the one that ext4 would give. The only table of its kind.

use agfs_core::{Error, ErrorKind};

/// The errno of a kind.
pub const fn of_kind(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::NotFound => libc::ENOENT,
        ErrorKind::AlreadyExists => libc::EEXIST,
        ErrorKind::NotADirectory => libc::ENOTDIR,
        ErrorKind::IsADirectory => libc::EISDIR,
        ErrorKind::NotEmpty => libc::ENOTEMPTY,
        ErrorKind::InvalidArgument => libc::EINVAL,
        ErrorKind::NameTooLong => libc::ENAMETOOLONG,
        ErrorKind::PermissionDenied => libc::EACCES,
        ErrorKind::NotPermitted => libc::EPERM,
        ErrorKind::ReadOnly => libc::EROFS,
        ErrorKind::CrossDevice => libc::EXDEV,
        ErrorKind::TextBusy => libc::ETXTBSY,
        ErrorKind::TooManyLinks => libc::EMLINK,
        ErrorKind::NoSpace => libc::ENOSPC,
        ErrorKind::QuotaExceeded => libc::EDQUOT,
        ErrorKind::FileTooLarge => libc::EFBIG,
        // The kernel walks the path again, with every name looked up afresh.
        ErrorKind::Stale => libc::ESTALE,
        ErrorKind::Conflict => libc::EBUSY,
        ErrorKind::Refused => libc::EPERM,
        ErrorKind::Unsupported => libc::EOPNOTSUPP,
        ErrorKind::NoAttribute => libc::ENODATA,
        ErrorKind::ValueTooLarge => libc::E2BIG,
        ErrorKind::BufferTooSmall => libc::ERANGE,
        ErrorKind::Interrupted => libc::EINTR,
        ErrorKind::Corrupt
        | ErrorKind::Unavailable
        | ErrorKind::OutcomeUnknown
        | ErrorKind::TimedOut
        | ErrorKind::Io
        | ErrorKind::Internal => libc::EIO,
    }
}

/// Whether an operator should hear of it: what a program caused by itself is no news.
pub const fn is_news(kind: ErrorKind) -> bool {
    of_kind(kind) == libc::EIO || matches!(kind, ErrorKind::NoSpace | ErrorKind::QuotaExceeded)
}

/// The kind of a local errno, as precise as callers need.
pub fn kind_of(errno: i32) -> ErrorKind {
    match errno {
        libc::ENOENT => ErrorKind::NotFound,
        libc::EEXIST => ErrorKind::AlreadyExists,
        libc::ENOTDIR => ErrorKind::NotADirectory,
        libc::EISDIR => ErrorKind::IsADirectory,
        libc::ENOSPC => ErrorKind::NoSpace,
        libc::EDQUOT => ErrorKind::QuotaExceeded,
        libc::EFBIG => ErrorKind::FileTooLarge,
        libc::EACCES => ErrorKind::PermissionDenied,
        libc::EPERM => ErrorKind::NotPermitted,
        libc::EROFS => ErrorKind::ReadOnly,
        libc::EINVAL => ErrorKind::InvalidArgument,
        libc::EBUSY => ErrorKind::Conflict,
        _ => ErrorKind::Io,
    }
}

/// A local I/O failure as an error: `what` says what was attempted, on which file.
pub fn local(what: impl std::fmt::Display, error: &std::io::Error) -> Error {
    let kind = error.raw_os_error().map_or(ErrorKind::Io, kind_of);
    Error::new(kind, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_broken_data_and_lost_servers_are_eio() {
        let eio: Vec<_> = ErrorKind::ALL.iter().filter(|k| of_kind(**k) == libc::EIO).map(|k| k.code()).collect();
        assert_eq!(eio, ["corrupt", "unavailable", "outcome_unknown", "timed_out", "io", "internal"]);
        assert!(ErrorKind::ALL.iter().all(|k| of_kind(*k) > 0));
    }

    #[test]
    fn local_errors_keep_their_meaning() {
        for errno in [libc::ENOSPC, libc::EACCES, libc::EROFS, libc::ENOENT, libc::EFBIG, libc::EDQUOT] {
            let e = local("x", &std::io::Error::from_raw_os_error(errno));
            assert_eq!(of_kind(e.kind()), errno);
        }
    }
}
