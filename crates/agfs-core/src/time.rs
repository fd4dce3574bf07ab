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

/// Where the present time comes from. Production reads the system's clock; tests script it.
pub trait Clock: Send + Sync {
    /// The present time.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
