//! What comes from the system by itself: the time and randomness. The only place in the client that asks for either.

use agfs_core::Timestamp;
use agfs_core::time::Clock;
use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that is injected everywhere else")]
    fn now(&self) -> Timestamp {
        to_timestamp(SystemTime::now())
    }
}

/// A system time (of a local file, say) as it is stored; clamped to what can be stored.
pub(crate) fn to_timestamp(time: SystemTime) -> Timestamp {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Timestamp::from_parts(i64::try_from(after.as_secs()).unwrap_or(i64::MAX), after.subsec_nanos()),
        Err(before) => {
            let before = i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX);
            Timestamp(before.saturating_neg())
        }
    }
}

/// A random number from the operating system.
pub fn random_u64() -> u64 {
    // The standard library keys its hashers from the same source by another way, and cannot fail.
    getrandom::u64().unwrap_or_else(|_| RandomState::new().hash_one(0u8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn system_times_keep_their_nanoseconds_on_both_sides_of_the_epoch() {
        assert_eq!(to_timestamp(UNIX_EPOCH + Duration::new(5, 7)), Timestamp(5_000_000_007));
        assert_eq!(to_timestamp(UNIX_EPOCH - Duration::new(5, 7)), Timestamp(-5_000_000_007));
        assert!(SystemClock.now() > Timestamp(1_700_000_000_000_000_000));
        assert_ne!(random_u64(), random_u64());
    }
}
