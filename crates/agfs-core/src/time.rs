//! Points in time, as stored. Reading a clock is for the rooms above; they inject one.

/// Nanoseconds since 1970-01-01T00:00:00Z, negative before it (1677 to 2262).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// From whole seconds and nanoseconds within the second (0 to 999,999,999); clamped to what can be stored.
    pub const fn from_parts(seconds: i64, nanos: u32) -> Self {
        Timestamp(seconds.saturating_mul(1_000_000_000).saturating_add(nanos as i64))
    }

    /// Whole seconds (rounded down) and the nanoseconds within that second.
    pub const fn parts(self) -> (i64, u32) {
        (self.0.div_euclid(1_000_000_000), self.0.rem_euclid(1_000_000_000) as u32)
    }
}

/// How far apart calls that are under way at once may be applied from the order of their times, in nanoseconds.
const DISORDER: i64 = 1_000_000_000;

impl Timestamp {
    /// The time of a change made at `time` to what changed at `self` last. It does not go back by the little that calls
    /// under way overtake each other; what lies further back comes from a clock that was set, and is taken as it is.
    #[must_use]
    pub const fn then(self, time: Timestamp) -> Timestamp {
        let back = self.0.saturating_sub(time.0);
        if back > 0 && back < DISORDER { self } else { time }
    }
}

/// Where the present time comes from. Production reads the system's clock; tests script it.
pub trait Clock: Send + Sync {
    /// The present time.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn changes_that_overtake_each_other_do_not_go_back() {
        let at = Timestamp::from_parts(100, 7);
        assert_eq!(at.then(Timestamp::from_parts(100, 8)), Timestamp::from_parts(100, 8));
        assert_eq!(at.then(Timestamp::from_parts(100, 6)), at);
        assert_eq!(at.then(Timestamp::from_parts(99, 8)), at);
        let set_back = Timestamp::from_parts(99, 7);
        assert_eq!(at.then(set_back), set_back);
        assert_eq!(Timestamp(i64::MIN).then(Timestamp(i64::MAX)), Timestamp(i64::MAX));
        assert_eq!(Timestamp(i64::MAX).then(Timestamp(i64::MIN)), Timestamp(i64::MIN));
    }

    proptest! {
        #[test]
        fn parts_go_both_ways(ns: i64) {
            let (s, n) = Timestamp(ns).parts();
            prop_assert!(n < 1_000_000_000);
            // The earliest second is not representable in full.
            if s > i64::MIN / 1_000_000_000 { prop_assert_eq!(Timestamp::from_parts(s, n), Timestamp(ns)); }
        }
    }
}
