//! Simulates message-passing programs on measured costs.
//!
//! A [`Program`] says what ranks do: a pattern of [`patterns`], or a schedule of [`goal`]. [`run`] runs it on [`Params`] (`LogGPS` by
//! size of message) beside [`noise`], in a total order of events, so that the result is the same everywhere.
#![forbid(unsafe_code)]

mod engine;
pub mod expr;
pub mod goal;
pub mod machine;
pub mod montecarlo;
pub mod noise;
mod params;
pub mod patterns;
pub mod predict;
mod program;
pub mod record;
pub mod replay;
pub mod table;

pub use engine::{ANY, Finished, PARTS, Part, SimulateError, Time, Traced, run};
pub use params::{Dialect, Line, PER_PS, Params, Protocol, Segment};
pub use program::{COLLECTIVE, Moment, Op, Program, Ready, Verb};
