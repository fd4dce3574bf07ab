//! What two targets may do differently: a list of cases, each as narrow as it can be said, with its reason.

use crate::compare::Difference;
use crate::op::Op;

/// A difference that is no failure.
pub struct Accepted {
    /// Why the two sides may differ here.
    pub reason: &'static str,
    /// Whether a difference is this one.
    pub fits: fn(&Case<'_>) -> bool,
}

/// A difference where it was found.
pub struct Case<'a> {
    /// The step.
    pub op: &'a Op,
    /// The look after it, if it was found in one.
    pub look: Option<&'a Op>,
    /// What differs.
    pub difference: &'a Difference,
}

/// The reason why this difference is accepted, if it is.
pub fn reason(list: &[Accepted], case: &Case<'_>) -> Option<&'static str> {
    list.iter().find(|a| (a.fits)(case)).map(|a| a.reason)
}

/// On ext4 an attribute that is set to the value it has leaves ctime alone. It changes on other file systems.
pub const SAME_XATTR: Accepted = Accepted {
    reason: "ext4 leaves ctime alone when an extended attribute is set to the value that it has",
    fits: |case| matches!(case.op, Op::Setxattr { .. }) && case.difference.kind == "ctime changes: here only",
};
