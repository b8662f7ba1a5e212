//! The noise loop: its work units, its notes, and one compiled instance for each clock source and unit.

#[allow(unsafe_code, reason = "the work units are assembly: a compiler would remove increments that cancel")]
pub mod kernel;
pub mod measure;
mod notes;
mod stalling;
mod unit;

pub use stalling::{Stall, record_stalling};
pub use unit::{Unit, bursts, chains, record_unit};
