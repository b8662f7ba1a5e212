//! The engine: discrete events in a total order (time, stamp), the same result everywhere.

mod costs;
mod loggopsim;
mod matching;
mod outcome;
mod queue;
mod rendezvous;
mod resources;
mod run;
mod time;

pub use matching::ANY;
pub use outcome::{Finished, SimulateError};
pub use run::run;
pub use time::{PARTS, Part, Time, Traced};
