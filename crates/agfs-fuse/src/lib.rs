//! x
pub mod shadow;
