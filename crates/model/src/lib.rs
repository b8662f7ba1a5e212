//! Models of what communication costs, as pure functions of figures: no clock, no system, no record.
//!
//! [`loggps`] fits a table of parameters to what trains of messages took, says which sizes to measure next, and predicts.
#![forbid(unsafe_code)]

mod breaks;
pub mod loggps;
