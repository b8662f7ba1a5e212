//! The engine: discrete events in a total order (time, stamp), the same result everywhere.

mod matching;
mod queue;
mod resources;
mod run;
mod time;

pub use matching::{ANY, Entry};
pub use run::{Deadlock, Finished, SimulateError, run};
pub use time::{PARTS, Part, Time, Traced};

#[cfg(test)]
mod tests;
