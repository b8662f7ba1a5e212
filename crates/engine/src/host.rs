//! The host a probe runs on, as calibrated at the start of a run.

use machmeter_data::Table;
use machmeter_data::record::{ClockRecord, Record};
use machmeter_sys::clock::{Qualification, SourceId, TickRate};
use machmeter_sys::topology::{CpuSet, Topology};

use crate::deadline::Deadline;
use crate::level::Level;
use crate::load::Loads;
use crate::placement::Priority;
use crate::probe::ProbeError;

/// Where a run tells a person how far it is. Implementations write to stderr, and only between samples.
pub trait Progress: Send + Sync {
    fn step(&self, text: &str);
    /// A first or intermediate figure.
    fn figure(&self, text: &str);
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _text: &str) {}
    fn figure(&self, _text: &str) {}
}

pub struct Stored {
    pub record: Record,
    /// Raw tables that are stored beside it; empty when there are none.
    pub tables: Vec<Table>,
}

/// For hosts that have no stored runs.
pub fn nothing_stored(name: &str) -> Result<Stored, String> {
    Err(format!("no stored run '{name}' here"))
}

/// Everything a probe may know about where it runs.
pub struct Host<'a> {
    /// CPUs to measure.
    pub cpus: CpuSet,
    /// CPUs this process may use at all.
    pub allowed: CpuSet,
    pub topology: Topology,
    pub clock: Qualification,
    pub rate: TickRate,
    pub level: Level,
    pub priority: Priority,
    pub seed: u64,
    /// Whether the run is only to be looked at.
    pub dry_run: bool,
    /// Time that this probe may take.
    pub budget: Deadline,
    /// Whether it takes all of it: a time was asked for.
    pub fills_time: bool,
    /// Best figures ever stored for this kind of machine, by key (ns), for comparisons with the past.
    pub best_ever: &'a (dyn Fn(&str) -> Option<f64> + Sync),
    /// Opens a stored run by file name or by its name in the history (`last`); one line why not.
    pub open_record: &'a (dyn Fn(&str) -> Result<Stored, String> + Sync),
    pub loads: &'a (dyn Loads + Sync),
    pub progress: &'a dyn Progress,
}

impl Host<'_> {
    /// Ends a dry run. Called after all refusals and before anything is measured.
    pub fn begin(&self) -> Result<(), ProbeError> {
        if self.dry_run { Err(ProbeError::DryRun) } else { Ok(()) }
    }

    /// Level by which figures have enough samples: none where all the time is to be used.
    pub fn sampling_level(&self) -> Level {
        if self.fills_time { Level::Soak } else { self.level }
    }

    pub fn source(&self) -> SourceId {
        self.clock.source()
    }
}

pub fn clock_record(q: &Qualification) -> ClockRecord {
    let rate = q.tick_rate();
    let mut why = vec![
        q.verdict
            .fallback_reason
            .clone()
            .unwrap_or_else(|| "the processor's counter can be trusted".to_owned()),
    ];
    why.extend(q.verdict.notes.iter().cloned());
    ClockRecord {
        source: q.source().name().to_owned(),
        rate_hz: rate.hz(),
        rate_error_ppm: q.rate.as_ref().map_or(0.0, |r| r.error_ppm),
        kernel_deviation_ppm: q.deviation_ppm,
        step_ticks: q.step_ticks(),
        read_cost_ticks: q.read_cost_ticks().unwrap_or(0.0),
        cross_cpu_ticks: q.cross_cpu_bound_ns().map(|ns| ns / rate.ns_per_tick()),
        backward_steps: q.backward_steps() as u64,
        why: why.join("; "),
    }
}
