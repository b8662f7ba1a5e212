//! Who caused each detour: witnesses watch while the loops run, and a post-pass matches what they saw with the gaps.
//!
//! All witnesses stand behind one trait; the best one that the system permits is taken.

pub mod activity_log;
pub mod matching;
mod spans;
mod switches;
mod totals;
mod traced;

use activity_log::ActivityLog;
use clap::ValueEnum;
use machmeter_sys::clock::{SourceId, TickRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A measuring thread, as a witness knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meter {
    pub cpu: usize,
    pub tid: i32,
}

/// Something that sees who has the CPU while the loops run.
pub trait Witness: Sync {
    /// Called on each measuring thread (the `index`-th) before its loop begins. Why a thread cannot be watched is said in the
    /// activity log.
    fn attach(&self, _index: usize) {}

    /// Called about twenty times a second by the main thread, to empty what may fill up.
    fn drain(&self) {}

    /// Ends the watch and tells what was seen, in the order of `meters`.
    fn finish(self: Box<Self>, meters: &[Meter]) -> ActivityLog;
}

/// Which witness to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// The best that is permitted.
    #[default]
    Auto,
    /// The kernel's trace events, or an error.
    Trace,
    /// Context-switch records of the measuring threads, or an error.
    Switches,
    /// Counters before and after only.
    Totals,
    /// None.
    None,
}

/// The witness, if any, and why no better one is there.
pub type Called = (Option<Box<dyn Witness>>, Vec<String>);

/// Calls the best witness for `cpus` that the system permits. `seconds` is how long it will watch;
/// `source` and `rate` are the loop's clock. Notes say why better
/// ones are not there.
///
/// # Errors
/// When a witness was asked for by name and cannot come.
pub fn call(
    asked: Attribution,
    cpus: &[usize],
    seconds: f64,
    source: SourceId,
    rate: TickRate,
) -> Result<Called, String> {
    let mut notes = Vec::new();
    if matches!(asked, Attribution::Auto | Attribution::Trace) {
        match traced::Traced::start(cpus, seconds) {
            Ok(w) => return Ok((Some(Box::new(w)), notes)),
            Err(e) if asked == Attribution::Trace => return Err(e),
            Err(e) => notes.push(e),
        }
    }
    if matches!(asked, Attribution::Auto | Attribution::Switches) {
        match switches::Switches::start(cpus, source, rate) {
            Ok(w) => return Ok((Some(Box::new(w)), notes)),
            Err(e) if asked == Attribution::Switches => return Err(e),
            Err(e) => notes.push(e),
        }
    }
    if matches!(asked, Attribution::Auto | Attribution::Totals) {
        return Ok((Some(Box::new(totals::Totals::start())), notes));
    }
    Ok((None, notes))
}
