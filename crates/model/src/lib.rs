//! Models of what communication costs, as pure functions of figures: no clock, no system, no record.
//!
//! [`loggps`] fits a table of parameters to what trains of messages took, says which sizes to measure next, and predicts.
//! [`laws`] fits a cost over participants and bytes as a sum of few terms, with goodness of fit, and extrapolates.
#![forbid(unsafe_code)]

mod breaks;
pub mod laws;
pub mod loggps;
