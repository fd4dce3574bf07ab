//! How the program ends: every failure of a command, and the one table from error kinds to exit codes.
//!
//! | code | meaning | kinds |
//! |---|---|---|
//! | 0 | ok | |
//! | 1 | error | broken data, lost servers, full disks, wrong kinds of files, bugs |
//! | 2 | usage | arguments and values that the call does not accept |
//! | 3 | differences or problems found | `diff --exit-code`, `doctor` |
//! | 4 | conflict | the name is taken, in use, not empty, or the state has moved on |
//! | 5 | not found | spaces, references, paths, attributes |
//! | 6 | refused | permissions, read-only views, quotas, calls that make no sense in the present state |
//! | 124 | timed out | a stated time ran out first |

use agfs_core::{Error, ErrorKind};
use std::fmt;
use std::io;

/// What `diff --exit-code` and `doctor` end with when they found something.
pub const FOUND: u8 = 3;
/// What a wrong command line ends with.
pub const USAGE: u8 = 2;

/// Why a command ends early.
#[derive(Debug)]
pub enum Failure {
    /// Something went wrong: print it.
    Error(Error),
    /// The command line makes no sense: print this and how to get help.
    Usage(String),
    /// Everything that there was to say is printed: only end with this code.
    Code(u8),
    /// Whoever read the output has gone away: end in silence.
    PipeClosed,
}

/// The result of a command.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A wrong command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure::Usage(message.into())
    }

    /// The exit code.
    pub const fn code(&self) -> u8 {
        match self {
            Failure::Error(error) => exit_code(error.kind()),
            Failure::Usage(_) => USAGE,
            Failure::Code(code) => *code,
            Failure::PipeClosed => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Error(error) => f.write_str(error.message()),
            Failure::Usage(message) => f.write_str(message),
            Failure::Code(_) | Failure::PipeClosed => Ok(()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::PipeClosed,
            _ => Failure::Error(Error::io(format!("writing the output: {error}"))),
        }
    }
}

/// The exit code of an error of this kind.
pub const fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::InvalidArgument | ErrorKind::NameTooLong | ErrorKind::ValueTooLarge => USAGE,
        ErrorKind::AlreadyExists | ErrorKind::NotEmpty | ErrorKind::TextBusy | ErrorKind::Conflict => 4,
        ErrorKind::NotFound | ErrorKind::NoAttribute | ErrorKind::Stale => 5,
        ErrorKind::PermissionDenied
        | ErrorKind::NotPermitted
        | ErrorKind::ReadOnly
        | ErrorKind::QuotaExceeded
        | ErrorKind::Refused
        | ErrorKind::Unsupported => 6,
        ErrorKind::TimedOut => 124,
        ErrorKind::NotADirectory
        | ErrorKind::IsADirectory
        | ErrorKind::CrossDevice
        | ErrorKind::TooManyLinks
        | ErrorKind::NoSpace
        | ErrorKind::FileTooLarge
        | ErrorKind::BufferTooSmall
        | ErrorKind::Corrupt
        | ErrorKind::Unavailable
        | ErrorKind::OutcomeUnknown
        | ErrorKind::Interrupted
        | ErrorKind::Io
        | ErrorKind::Internal => 1,
    }
}

/// The error of a local system call: its kind by meaning, and `what` was being done to which file.
pub fn local(what: impl fmt::Display, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
        io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
        io::ErrorKind::NotADirectory => ErrorKind::NotADirectory,
        io::ErrorKind::IsADirectory => ErrorKind::IsADirectory,
        io::ErrorKind::DirectoryNotEmpty => ErrorKind::NotEmpty,
        io::ErrorKind::StorageFull => ErrorKind::NoSpace,
        io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
        io::ErrorKind::ResourceBusy => ErrorKind::Conflict,
        io::ErrorKind::TimedOut => ErrorKind::TimedOut,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_ends_with_a_documented_code() {
        for &kind in ErrorKind::ALL {
            assert!([1, 2, 4, 5, 6, 124].contains(&exit_code(kind)), "{kind:?}");
        }
    }

    #[test]
    fn the_codes_that_the_contract_names() {
        let table = [
            (ErrorKind::NotFound, 5),
            (ErrorKind::Conflict, 4),
            (ErrorKind::Refused, 6),
            (ErrorKind::TimedOut, 124),
            (ErrorKind::InvalidArgument, 2),
            (ErrorKind::Unavailable, 1),
        ];
        for (kind, code) in table {
            assert_eq!(Failure::from(Error::new(kind, "x")).code(), code, "{kind:?}");
        }
    }

    #[test]
    fn a_closed_pipe_is_no_failure_and_silent() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failure.code(), failure.to_string()), (0, String::new()));
    }
}
