//! When a failed call is sent again, and what is said when it is given up. The policy is pure; the executor waits and counts.
//!
//! Which calls may be repeated is not decided here: every mutating call carries an operation id, so all may.

use crate::connection::Connection;
use agfs_core::{Error, ErrorKind, Result, Retry, Seq};
use agfs_proto::status::{CODE_KEY, from_status};
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;

/// The metadata key under which a failed `Apply` carries the space's head at that time.
pub(crate) const SEQ_KEY: &str = "agfs-seq";

/// The first pause; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Somebody who waits no longer than this for a call sits at a terminal.
const AT_A_TERMINAL: Duration = Duration::from_secs(10);
/// How long a person is kept waiting while nothing listens at the address.
const REFUSED_AT_A_TERMINAL: Duration = Duration::from_secs(2);

/// How long one attempt of a call may take while the connection lives; a dead connection is found within seconds by
/// its keep-alive.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effort {
    /// A call that the server answers at once, or after other mounts have taken note.
    Short,
    /// A call that may move or look through much.
    Long,
}

impl Effort {
    fn limit(self, io_timeout: Duration) -> Duration {
        match self {
            Effort::Short => io_timeout.max(Duration::from_secs(30)),
            Effort::Long => io_timeout.max(Duration::from_secs(900)),
        }
    }
}

/// Why an attempt failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub error: Error,
    /// Whether no connection was made at all.
    pub refused: bool,
    /// Whether the server itself named the kind, not the transport or a stranger.
    pub named: bool,
    /// The space's head when the server refused the call.
    pub seq: Option<Seq>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { error, refused: false, named: false, seq: None }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let refused = never_connected(&status);
        let seq = status.metadata().get(SEQ_KEY).and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok()).map(Seq);
        let error = if refused {
            Error::unavailable(format!("no connection: {}", innermost(&status)))
        } else {
            from_status(&status)
        };
        let named = status.metadata().contains_key(CODE_KEY);
        Failure { error, refused, named, seq }
    }
}

/// Whether the transport says that the connection was never made, so that the call cannot have arrived.
fn never_connected(status: &Status) -> bool {
    causes(status).any(|cause| cause.is::<tonic::ConnectError>())
}

fn causes(status: &Status) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(status), |cause| cause.source())
}

fn innermost(status: &Status) -> String {
    causes(status).last().map_or_else(|| status.message().to_owned(), ToString::to_string)
}

/// How patiently failed calls are repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    total: Duration,
    refused: Duration,
}

impl Policy {
    /// Repeats for `io_timeout`; but for a caller at a terminal only two seconds while nothing listens at the address.
    pub fn new(io_timeout: Duration) -> Self {
        let refused = if io_timeout <= AT_A_TERMINAL { io_timeout.min(REFUSED_AT_A_TERMINAL) } else { io_timeout };
        Policy { total: io_timeout, refused }
    }

    /// How long to pause before the next attempt, or `None` to give up. `attempt` counts from 1, `elapsed` is the time since
    /// the first attempt began, `random` spreads callers that failed together over half of the pause.
    pub fn pause(&self, failure: &Failure, attempt: u32, elapsed: Duration, random: u64) -> Option<Duration> {
        match failure.error.retry() {
            Retry::Never => return None,
            Retry::Safe | Retry::OutcomeUnknown => {}
        }
        let limit = if failure.refused { self.refused } else { self.total };
        let left = limit.checked_sub(elapsed).filter(|left| !left.is_zero())?;
        Some(backoff(attempt, random).min(left))
    }
}

/// The pause after `attempt` failures (from 1): it doubles up to a second, and its later half is drawn by lot.
pub(crate) fn backoff(attempt: u32, random: u64) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << attempt.saturating_sub(1).min(10)).min(LONGEST_PAUSE);
    let half = doubled / 2;
    let spread = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX).max(1);
    half + Duration::from_nanos(random % spread)
}

impl Connection {
    /// Makes the call `what` (a few words for the error message) by `attempt`, again and again as the policy says.
    pub(crate) async fn call<T, E, Fut>(
        &self,
        what: &str,
        effort: Effort,
        mut attempt: impl FnMut() -> Fut,
    ) -> Result<T, Failure>
    where
        E: Into<Failure>,
        Fut: Future<Output = std::result::Result<T, E>>,
    {
        let policy = Policy::new(self.io_timeout());
        let limit = effort.limit(self.io_timeout());
        let began = Instant::now();
        let mut certain = true;
        for attempts in 1u32.. {
            let failure = match tokio::time::timeout(limit, attempt()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(failure)) => failure.into(),
                Err(_) => {
                    Failure::from(Error::new(ErrorKind::TimedOut, format!("no answer within {} s", limit.as_secs())))
                }
            };
            certain &= failure.error.retry() != Retry::OutcomeUnknown;
            let elapsed = began.elapsed();
            match policy.pause(&failure, attempts, elapsed, crate::system::random_u64()) {
                Some(pause) => {
                    tracing::debug!(what, attempts, error = %failure.error, "a call failed and is sent again");
                    tokio::time::sleep(pause).await;
                }
                None => return Err(self.given_up(what, failure, attempts, elapsed, certain)),
            }
        }
        Err(Error::internal(format!("{what} was attempted too often")).into())
    }

    fn given_up(&self, what: &str, failure: Failure, attempts: u32, elapsed: Duration, certain: bool) -> Failure {
        if failure.error.retry() == Retry::Never {
            return failure;
        }
        let (server, tried) = (self.server(), seconds(elapsed));
        let message = if failure.refused {
            format!("no AGFS server answers at {server} (tried for {tried}): start one with `agfs server run`")
        } else {
            let times = if attempts == 1 { "once".to_owned() } else { format!("{attempts} times") };
            format!("{what}: the AGFS server at {server} gave no answer (tried {times} for {tried}): {}", failure.error)
        };
        let kind = if certain { failure.error.kind() } else { ErrorKind::OutcomeUnknown };
        Failure { error: Error::new(kind, message), ..failure }
    }
}

fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        _ => format!("{} s", (duration.as_millis() + 500) / 1_000),
    }
}

/// A malformed answer is the server's fault, never the caller's argument.
pub(crate) fn malformed(error: Error) -> Error {
    Error::internal(format!("the server's answer is malformed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: ErrorKind, refused: bool) -> Failure {
        Failure { error: Error::new(kind, "x"), refused, named: false, seq: None }
    }

    #[test]
    fn pauses_grow_to_a_second_and_are_spread() {
        for attempt in 1..60 {
            let whole = Duration::from_millis(20 << (attempt - 1).min(10)).min(LONGEST_PAUSE);
            for random in [0, 1, u64::MAX / 3, u64::MAX] {
                let pause = backoff(attempt, random);
                assert!(pause >= whole / 2 && pause <= whole, "{attempt} {pause:?}");
            }
        }
    }

    #[test]
    fn only_what_may_be_repeated_is_repeated_and_only_for_its_time() {
        let policy = Policy::new(Duration::from_secs(60));
        for &kind in ErrorKind::ALL {
            let again = policy.pause(&failed(kind, false), 1, Duration::ZERO, 0).is_some();
            assert_eq!(again, kind.retry() != Retry::Never, "{kind:?}");
        }
        let lost = failed(ErrorKind::OutcomeUnknown, false);
        assert!(policy.pause(&lost, 99, Duration::from_secs(59), 0).is_some());
        assert_eq!(policy.pause(&lost, 99, Duration::from_secs(60), 0), None);
        // The last pause does not go over the limit.
        let late = policy.pause(&lost, 99, Duration::from_millis(59_990), u64::MAX);
        assert_eq!(late, Some(Duration::from_millis(10)));
    }

    #[test]
    fn a_person_waits_two_seconds_for_a_server_that_is_not_there_and_a_mount_the_whole_time() {
        let refused = failed(ErrorKind::Unavailable, true);
        let cli = Policy::new(Duration::from_secs(10));
        assert!(cli.pause(&refused, 3, Duration::from_millis(1_900), 0).is_some());
        assert_eq!(cli.pause(&refused, 3, Duration::from_secs(2), 0), None);
        assert!(cli.pause(&failed(ErrorKind::OutcomeUnknown, false), 3, Duration::from_secs(5), 0).is_some());
        assert!(Policy::new(Duration::from_secs(60)).pause(&refused, 3, Duration::from_secs(50), 0).is_some());
    }
}
