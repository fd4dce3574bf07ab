//! Times for people: RFC 3339 in and out, and how long ago. The calendar is jiff's; the present time comes from a clock.

use crate::exit::Failure;
use agfs_core::Timestamp;
use agfs_core::reference::parse_duration;
use agfs_core::time::Clock;

/// The time as RFC 3339 in UTC, to the nanosecond where it has any.
pub fn rfc3339(time: Timestamp) -> String {
    let (seconds, nanos) = time.parts();
    // invariant: the nanoseconds of a second fit an i32.
    match jiff::Timestamp::new(seconds, nanos as i32) {
        Ok(time) => time.to_string(),
        Err(_) => format!("{seconds}.{nanos:09}"),
    }
}

/// The time for a table: UTC, to the second.
pub fn short(time: Timestamp) -> String {
    let (seconds, _) = time.parts();
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => time.to_string(),
        Err(_) => seconds.to_string(),
    }
}

/// Reads an RFC 3339 time with its offset; `None` when it is not one or cannot be stored.
pub fn parse_absolute(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok().map(Timestamp)
}

/// Reads what `--since` takes: an RFC 3339 time, or how long ago (`2h`, `@1d12h`).
pub fn parse_since(text: &str, clock: &dyn Clock) -> Result<Timestamp, Failure> {
    let bare = text.strip_prefix('@').unwrap_or(text);
    if let Some(ago) = parse_duration(bare) {
        return Ok(Timestamp(clock.now().0.saturating_sub(ago)));
    }
    parse_absolute(bare).ok_or_else(|| {
        Failure::usage(format!(
            "--since {text:?} is no time: give RFC 3339 (2026-01-31T09:00:00Z) or how long ago (90s, 2h, 1d12h)"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct At(i64);
    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp(self.0)
        }
    }

    #[test]
    fn times_go_both_ways() {
        let time = Timestamp::from_parts(1_767_323_045, 5_000_000);
        assert_eq!(rfc3339(time), "2026-01-02T03:04:05.005Z");
        assert_eq!(parse_absolute(&rfc3339(time)), Some(time));
        assert_eq!(short(time), "2026-01-02T03:04:05Z");
        assert_eq!(parse_absolute("2026-01-02T04:04:05.005+01:00"), Some(time));
    }

    #[test]
    fn the_whole_range_prints() {
        for ns in [i64::MIN, -1, 0, i64::MAX] {
            assert!(!rfc3339(Timestamp(ns)).is_empty());
        }
    }

    #[test]
    fn since_takes_a_time_or_an_age() {
        let clock = At(10_000_000_000_000);
        assert_eq!(parse_since("2h", &clock).unwrap(), Timestamp(2_800_000_000_000));
        assert_eq!(parse_since("@10s", &clock).unwrap(), Timestamp(9_990_000_000_000));
        assert_eq!(parse_since("1970-01-01T00:00:01Z", &clock).unwrap(), Timestamp(1_000_000_000));
        assert!(parse_since("yesterday", &clock).is_err());
    }
}
