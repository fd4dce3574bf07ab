//! Error kind <-> gRPC status: one table, exhaustive, no wildcard arm.
//!
//! The kind travels exactly, as its code in the metadata; the gRPC code is for peers that know nothing of it.

use agfs_core::{Error, ErrorKind};
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// The metadata key that carries the kind's stable code.
pub const CODE_KEY: &str = "agfs-code";

/// The gRPC code of a kind.
pub const fn grpc_code(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::NotFound | ErrorKind::NoAttribute | ErrorKind::Stale => Code::NotFound,
        ErrorKind::AlreadyExists => Code::AlreadyExists,
        ErrorKind::NotADirectory
        | ErrorKind::IsADirectory
        | ErrorKind::NotEmpty
        | ErrorKind::CrossDevice
        | ErrorKind::TextBusy
        | ErrorKind::TooManyLinks
        | ErrorKind::ReadOnly
        | ErrorKind::NotPermitted
        | ErrorKind::Refused => Code::FailedPrecondition,
        ErrorKind::InvalidArgument | ErrorKind::NameTooLong | ErrorKind::ValueTooLarge => Code::InvalidArgument,
        ErrorKind::BufferTooSmall | ErrorKind::FileTooLarge => Code::OutOfRange,
        ErrorKind::PermissionDenied => Code::PermissionDenied,
        ErrorKind::NoSpace | ErrorKind::QuotaExceeded => Code::ResourceExhausted,
        ErrorKind::Conflict => Code::Aborted,
        ErrorKind::Unsupported => Code::Unimplemented,
        ErrorKind::Corrupt => Code::DataLoss,
        ErrorKind::Unavailable => Code::Unavailable,
        ErrorKind::TimedOut => Code::DeadlineExceeded,
        ErrorKind::Interrupted => Code::Cancelled,
        ErrorKind::OutcomeUnknown => Code::Unknown,
        ErrorKind::Io | ErrorKind::Internal => Code::Internal,
    }
}

/// The kind of a status that carries no code of ours: it was made by the transport or by a stranger.
const fn kind_of(code: Code) -> ErrorKind {
    match code {
        Code::NotFound => ErrorKind::NotFound,
        Code::AlreadyExists => ErrorKind::AlreadyExists,
        Code::FailedPrecondition | Code::Unauthenticated => ErrorKind::Refused,
        Code::InvalidArgument => ErrorKind::InvalidArgument,
        Code::OutOfRange => ErrorKind::ValueTooLarge,
        Code::PermissionDenied => ErrorKind::PermissionDenied,
        Code::ResourceExhausted => ErrorKind::ValueTooLarge,
        Code::Aborted => ErrorKind::Conflict,
        Code::Unimplemented => ErrorKind::Unsupported,
        Code::DataLoss => ErrorKind::Corrupt,
        Code::DeadlineExceeded => ErrorKind::TimedOut,
        // The transport reports a broken connection in several ways; none tells whether the call arrived.
        Code::Unavailable | Code::Cancelled | Code::Unknown | Code::Internal | Code::Ok => ErrorKind::OutcomeUnknown,
    }
}

/// An error as it travels.
pub fn to_status(error: &Error) -> Status {
    let mut status = Status::new(grpc_code(error.kind()), error.message());
    status.metadata_mut().insert(CODE_KEY, MetadataValue::from_static(error.kind().code()));
    status
}

/// The error that a status carries.
pub fn from_status(status: &Status) -> Error {
    let ours = status.metadata().get(CODE_KEY).and_then(|v| v.to_str().ok()).and_then(ErrorKind::from_code);
    match ours {
        Some(kind) => Error::new(kind, status.message()),
        None => Error::new(kind_of(status.code()), format!("{}: {}", status.code(), status.message())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_the_wire() {
        for &kind in ErrorKind::ALL {
            let sent = Error::new(kind, format!("about {}", kind.code()));
            assert_eq!(from_status(&to_status(&sent)), sent);
        }
    }

    #[test]
    fn a_status_of_the_transport_is_never_taken_for_certain() {
        let lost = from_status(&Status::unavailable("connection reset"));
        assert_eq!(lost.retry(), agfs_core::Retry::OutcomeUnknown);
    }
}
