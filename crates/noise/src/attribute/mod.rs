//! Who caused each detour: the best witness permitted watches while the loops run, and a post-pass matches the gaps.

pub mod activity_log;
pub mod matching;
mod spans;
pub mod stolen;
mod switches;
mod totals;
mod traced;
pub mod unlisted;

use activity_log::ActivityLog;
use clap::ValueEnum;
use machmeter_sys::clock::{SourceId, TickRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meter {
    pub cpu: usize,
    pub tid: i32,
    /// The process's main thread, which empties the buffers: it is no source, its gaps are booked as own time.
    pub main_tid: i32,
}

impl Meter {
    /// Whether a thread is no other one.
    fn is_own(&self, tid: i32) -> bool {
        tid == self.tid || tid == self.main_tid
    }
}

/// Something that sees who has the CPU while the loops run.
pub trait Witness: Sync {
    /// Called on each measuring thread (the `index`-th) before its loop. Why one cannot be watched is in the activity log.
    fn attach(&self, _index: usize) {}

    /// Called about twenty times a second by the main thread, to empty what may fill up.
    fn drain(&self) {}

    /// Ends the watch and tells what was seen, in the order of `meters`.
    fn finish(self: Box<Self>, meters: &[Meter]) -> ActivityLog;
}

/// Source of the names of causes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// The best permitted source.
    #[default]
    Auto,
    /// The kernel's trace events, or an error.
    Trace,
    /// Context-switch records of the measuring threads, or an error.
    Switches,
    /// Counters before and after the recording only.
    Totals,
    /// No names.
    None,
}

/// The witness, if any, and why no better one is there.
pub type Called = (Option<Box<dyn Witness>>, Vec<String>);

type Start<'a> = &'a dyn Fn() -> Result<Box<dyn Witness>, String>;

/// Calls the best witness that the system permits, for `seconds`, on the loop's clock; notes say why no better one came.
/// Errors: a witness asked for by name cannot come.
pub fn call(
    asked: Attribution,
    cpus: &[usize],
    seconds: f64,
    source: SourceId,
    rate: TickRate,
) -> Result<Called, String> {
    let witnesses: [(Attribution, Start<'_>); 3] = [
        (Attribution::Trace, &|| Ok(Box::new(traced::Traced::start(cpus, seconds, rate.ns_per_tick())?))),
        (Attribution::Switches, &|| Ok(Box::new(switches::Switches::start(cpus, source, rate)?))),
        (Attribution::Totals, &|| Ok(Box::new(totals::Totals::start()))),
    ];
    let mut notes = Vec::new();
    for (_, start) in witnesses.iter().filter(|w| [Attribution::Auto, w.0].contains(&asked)) {
        match start() {
            Ok(witness) => return Ok((Some(witness), notes)),
            Err(e) if asked != Attribution::Auto => return Err(e),
            Err(e) => notes.push(e),
        }
    }
    Ok((None, notes))
}
