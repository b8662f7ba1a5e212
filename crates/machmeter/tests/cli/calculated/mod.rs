//! Tests of verbs that calculate with stored records: expressions, predictions, simulations.

#![allow(clippy::unwrap_used, reason = "tests fail and tell their figures")]

mod expr;
pub(crate) mod given;
pub(crate) mod planted;
pub(crate) mod predict;
mod simulate;
