//! References: the ways to name a point in the history of a space. Looking one up happens in the server.

use crate::error::{Error, Result};
use crate::id::{CheckpointId, OpId, Seq};
use crate::time::Timestamp;
use std::fmt;

/// A way to name a point in history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ref {
    /// The present.
    Head,
    /// The n-th last checkpoint, counted from 1 (`@-1`).
    LastCheckpoint(u32),
    /// A checkpoint by id.
    Checkpoint(CheckpointId),
    /// A checkpoint by name.
    Name(String),
    /// A sequence number (`seq:123`).
    Seq(Seq),
    /// As it was at this time.
    Time(Timestamp),
    /// As it was this many nanoseconds ago (`@2h`).
    Ago(i64),
    /// After this operation (`op-…`).
    Op(OpId),
}

/// Parses the text of a reference. `parse_time` reads an absolute time (RFC 3339); it is passed in because calendars are
/// a library's business. Fails with `InvalidArgument`.
pub fn parse(text: &str, parse_time: impl Fn(&str) -> Option<Timestamp>) -> Result<Ref> {
    let bad = || {
        Error::invalid(format!(
            "{text:?} is not a reference: give a checkpoint's name or id, @-1 (the last checkpoint), seq:NUMBER, a time (@2h or RFC 3339) or an operation id"
        ))
    };
    if text.is_empty() {
        return Err(bad());
    }
    if text == "@" || text == "head" {
        return Ok(Ref::Head);
    }
    if let Some(rest) = text.strip_prefix('@') {
        if let Some(n) = rest.strip_prefix('-') {
            return n.parse().ok().filter(|&n| n > 0).map(Ref::LastCheckpoint).ok_or_else(bad);
        }
        return parse_duration(rest).map(Ref::Ago).or_else(|| parse_time(rest).map(Ref::Time)).ok_or_else(bad);
    }
    if text.starts_with("seq:") {
        return text.parse().map(Ref::Seq).map_err(|_| bad());
    }
    if let Ok(id) = text.parse() {
        return Ok(Ref::Checkpoint(id));
    }
    if let Ok(op) = text.parse() {
        return Ok(Ref::Op(op));
    }
    if let Some(time) = parse_time(text) {
        return Ok(Ref::Time(time));
    }
    crate::space::check_checkpoint_name(text).map_err(|_| bad())?;
    Ok(Ref::Name(text.to_owned()))
}

/// A duration such as `90s`, `2h`, `1d12h`, in nanoseconds; `None` when it is not one or does not fit.
pub fn parse_duration(text: &str) -> Option<i64> {
    let (mut total, mut digits) = (0i64, String::new());
    for c in text.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let seconds = match c {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        let n: i64 = digits.parse().ok()?;
        total = total.checked_add(n.checked_mul(seconds)?.checked_mul(1_000_000_000)?)?;
        digits.clear();
    }
    (digits.is_empty() && !text.is_empty()).then_some(total)
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ref::Head => f.write_str("@"),
            Ref::LastCheckpoint(n) => write!(f, "@-{n}"),
            Ref::Checkpoint(id) => write!(f, "{id}"),
            Ref::Name(name) => f.write_str(name),
            Ref::Seq(seq) => write!(f, "{seq}"),
            Ref::Time(t) => write!(f, "time {}.{:09}", t.parts().0, t.parts().1),
            Ref::Ago(ns) => write!(f, "@{}s", ns / 1_000_000_000),
            Ref::Op(op) => write!(f, "{op}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn p(text: &str) -> Result<Ref> {
        parse(text, |t| (t == "2026-01-02T03:04:05Z").then_some(Timestamp(5)))
    }

    #[test]
    fn every_form() {
        assert_eq!(p("@-1"), Ok(Ref::LastCheckpoint(1)));
        assert_eq!(p("seq:12"), Ok(Ref::Seq(Seq(12))));
        assert_eq!(p("@2h"), Ok(Ref::Ago(7_200_000_000_000)));
        assert_eq!(p("@1d12h"), Ok(Ref::Ago(129_600_000_000_000)));
        assert_eq!(p("2026-01-02T03:04:05Z"), Ok(Ref::Time(Timestamp(5))));
        assert_eq!(p("before"), Ok(Ref::Name("before".into())));
        assert_eq!(p("cp-7"), Ok(Ref::Checkpoint(CheckpointId(7))));
        assert_eq!(p("op-00000000000000ff-1"), Ok(Ref::Op(OpId { client: 255, counter: 1 })));
        for bad in ["", "@-0", "@x", "seq:", "seq:-1", "a:b", "a/b", "@99999999999999999999d"] {
            assert!(p(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,60}") { let _ = p(&text); }
    }
}
