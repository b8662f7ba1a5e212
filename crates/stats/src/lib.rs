//! Statistics on slices for heavy-tailed, autocorrelated measurements.
//!
//! Every function is pure; randomized ones take a seed. None panics or returns NaN or infinity: what cannot be computed is `None`
//! or a [`StatsError`] that says why.
//!
//! | module | question |
//! | --- | --- |
//! | [`quantile`] | where do the values lie, and how sure is that without assuming a distribution |
//! | [`spread`] | how much do they vary |
//! | [`between`] | what runs differ by, beyond what each sees itself |
//! | [`serial`] | means, shares and quantiles of a stream whose neighbors are alike |
//! | [`rank`] | do two samples differ |
//! | [`levels`] | which levels of a memory hierarchy a curve of prices over working sets shows |
//! | [`segmented`] | where does a line bend |
//! | [`regimes`] | between which levels does a series jump |
//! | [`regression`] | the line through points, sums of columns, and how well they fit |
//! | [`spectrum`] | periodicity and memory of an evenly sampled series |
//! | [`events`], [`coincidence`] | periodicity of event times; do two CPUs stop together |
//! | [`lateness`] | who keeps the others waiting, and how long |
//! | [`histogram`] | counting in a hot path with bounded error |
//! | [`distribution`] | quantiles and tails of the normal, t and binomial laws |
//! | [`random`] | the seeded generator behind all of the above |

#![forbid(unsafe_code)]

pub mod between;
mod bisection;
pub mod coincidence;
pub mod distribution;
mod error;
pub mod events;
pub mod follows;
pub mod fourier;
pub mod histogram;
mod interval;
pub mod lateness;
pub mod levels;
pub mod moderate;
pub mod quantile;
pub mod random;
pub mod rank;
pub mod regimes;
pub mod regression;
pub mod segmented;
pub mod serial;
pub mod spectrum;
pub mod spread;
pub mod visits;

pub use error::StatsError;
pub use interval::Interval;
