//! What every probe shares: the clock it reads, the host it runs on, the budget it keeps, the checks of its surroundings,
//! and the registry through which the program knows it.
#![forbid(unsafe_code)]

pub mod budget;
pub mod checks;
pub mod clock;
pub mod host;
pub mod level;
pub mod placement;
pub mod probe;

pub use budget::Budget;
pub use checks::{CheckDef, ClockInput, Live, Verdict};
pub use clock::{Clock, SimulatedClock};
pub use host::{Host, Progress, Silent};
pub use level::Level;
pub use probe::{Analysis, Entry, Info, Probe, ProbeError};
