//! Error kinds by meaning, and what a caller may do about each.
//!
//! The tables that turn a kind into an errno, a gRPC code, an HTTP status or an exit code live with those
//! protocols, one file each, without a wildcard arm. No protocol's number may appear here.

use std::fmt;

/// The result of every fallible call in the core and of most calls above it.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whether a call that failed may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same call fails the same way.
    Never,
    /// The call was certainly not applied: it may be sent again.
    Safe,
    /// The call may or may not have been applied: only a call with an operation id may be sent again.
    OutcomeUnknown,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal, $retry:ident;)*) => {
        /// What went wrong, by meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorKind { $($(#[$doc])* $kind,)* }

        impl ErrorKind {
            /// Every kind, in the order of declaration: for tables and their tests.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$kind,)*];

            /// The stable snake_case code of this kind, as printed in JSON and carried on the wire.
            pub const fn code(self) -> &'static str { match self { $(ErrorKind::$kind => $code,)* } }

            /// The kind that has this code, if there is one.
            pub fn from_code(code: &str) -> Option<ErrorKind> { match code { $($code => Some(ErrorKind::$kind),)* _ => None } }

            /// Whether the failed call may be sent again.
            pub const fn retry(self) -> Retry { match self { $(ErrorKind::$kind => Retry::$retry,)* } }
        }
    };
}

kinds! {
    /// The named file, space, reference or object does not exist.
    NotFound = "not_found", Never;
    /// The name is taken.
    AlreadyExists = "already_exists", Never;
    /// A path component, or the target of a directory call, is not a directory.
    NotADirectory = "not_a_directory", Never;
    /// A file call was made on a directory.
    IsADirectory = "is_a_directory", Never;
    /// The directory to be removed or replaced has entries.
    NotEmpty = "not_empty", Never;
    /// A value is outside what the call accepts.
    InvalidArgument = "invalid_argument", Never;
    /// A name has more than 255 bytes, or a path more than 4,096.
    NameTooLong = "name_too_long", Never;
    /// The caller may not do this.
    PermissionDenied = "permission_denied", Never;
    /// The operation is not allowed on this kind of object, whoever asks.
    NotPermitted = "not_permitted", Never;
    /// The view is read-only (a past reference, or a read-only mount).
    ReadOnly = "read_only", Never;
    /// A rename or link would cross the border of a shadow directory or of a mount.
    CrossDevice = "cross_device", Never;
    /// The file is a program that runs.
    TextBusy = "text_busy", Never;
    /// The file has as many hard links as it can have.
    TooManyLinks = "too_many_links", Never;
    /// A disk is full.
    NoSpace = "no_space", Never;
    /// A quota of the space is used up.
    QuotaExceeded = "quota_exceeded", Never;
    /// The file would be larger than a file can be.
    FileTooLarge = "file_too_large", Never;
    /// The identifier named something that is gone from the tree.
    Stale = "stale", Never;
    /// The state has moved on since the caller looked (compare-and-set, changed base, busy).
    Conflict = "conflict", Never;
    /// The call makes no sense in the present state; the message says which state it needs.
    Refused = "refused", Never;
    /// The operation is not offered.
    Unsupported = "unsupported", Never;
    /// The extended attribute does not exist.
    NoAttribute = "no_attribute", Never;
    /// A value (an extended attribute, a message) is larger than its limit.
    ValueTooLarge = "value_too_large", Never;
    /// The caller's buffer is too small for the value.
    BufferTooSmall = "buffer_too_small", Never;
    /// Stored bytes do not match their checksum or cannot be decoded.
    Corrupt = "corrupt", Never;
    /// The peer could not be reached; the call was not applied.
    Unavailable = "unavailable", Safe;
    /// The connection broke, or time ran out, after the call was sent.
    OutcomeUnknown = "outcome_unknown", OutcomeUnknown;
    /// A stated deadline passed before there was an answer.
    TimedOut = "timed_out", OutcomeUnknown;
    /// The caller gave up (a signal, a cancelled request).
    Interrupted = "interrupted", OutcomeUnknown;
    /// A file or device failed.
    Io = "io", Never;
    /// A bug: an invariant did not hold.
    Internal = "internal", Never;
}

/// A failure: its kind, and a sentence that names the value that was wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    /// An error of `kind` whose message says what was wrong, with which value.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into() }
    }

    /// What went wrong, by meaning.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The sentence for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the failed call may be sent again.
    pub const fn retry(&self) -> Retry {
        self.kind.retry()
    }

    /// The same error with `what` and a colon before its message.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

macro_rules! shorthands {
    ($($name:ident => $kind:ident,)*) => {
        impl Error { $(
            #[doc = concat!("Shorthand for an error of kind `", stringify!($kind), "`.")]
            pub fn $name(message: impl Into<String>) -> Self { Error::new(ErrorKind::$kind, message) }
        )* }
    };
}

shorthands! {
    not_found => NotFound,
    already_exists => AlreadyExists,
    not_a_directory => NotADirectory,
    is_a_directory => IsADirectory,
    not_empty => NotEmpty,
    invalid => InvalidArgument,
    not_permitted => NotPermitted,
    read_only => ReadOnly,
    stale => Stale,
    conflict => Conflict,
    refused => Refused,
    unsupported => Unsupported,
    corrupt => Corrupt,
    unavailable => Unavailable,
    io => Io,
    internal => Internal,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_lead_back_to_their_kind() {
        for &kind in ErrorKind::ALL {
            assert_eq!(ErrorKind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(ErrorKind::from_code("no_such_code"), None);
    }
}
