//! Noise: who steals the CPU, when, and how much.
//!
//! One loop per CPU ([`machmeter_loops::noise`]) yields counts per window and the list of detours; [`attribute`] watches who had the CPU.
//!
//! Sources of error: a detour under about 2.5 turns shows as slowdown; durations are known to two clock steps; rare events
//! are seen by luck, so shares ruled by few long detours do not settle (W301).

pub mod analyze;
mod attendant;
pub mod attribute;
pub mod beside;
mod import;
pub mod info;
mod job;
mod listing;
mod on_cpu;
mod own;
pub mod ranks;
mod run;
pub mod samples;
pub mod selftest;
mod speed;
pub mod tables;
pub mod windows;

#[cfg(test)]
mod sim;

use clap::{Args, ValueEnum};
use machmeter_data::Table;
use machmeter_data::quantity::{duration_text, parse_duration_ns};
use machmeter_engine::probe::Measured;
use machmeter_engine::selftest::SelfTest;
use machmeter_engine::{Analysis, Host, Info, Page, Probe, ProbeError, Worker};
use machmeter_loops::noise::Unit;
use machmeter_loops::noise::kernel::{CacheSweep, Quantum1, Quantum15, Quantum31, Quantum63};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use attribute::Attribution;
use samples::Samples;

/// The roles in which this probe starts the program.
pub const WORKERS: &[Worker] = &[selftest::LATE, selftest::UNPRIVILEGED];

#[derive(Debug, Clone, Copy)]
pub struct Noise;

/// The work unit of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
pub enum Quantum {
    /// One count: finest detection.
    #[value(name = "1")]
    #[serde(rename = "1")]
    One,
    /// 8 increments and 7 decrements.
    #[value(name = "15")]
    #[serde(rename = "15")]
    Fifteen,
    /// 16 increments and 15 decrements.
    #[value(name = "31")]
    #[serde(rename = "31")]
    ThirtyOne,
    /// 32 increments and 31 decrements: bound by arithmetic, to show slowdown.
    #[value(name = "63")]
    #[serde(rename = "63")]
    SixtyThree,
    /// 16 cache lines of a sweep over a buffer, to show slowdown by shared caches.
    #[value(name = "cache")]
    #[serde(rename = "cache")]
    Cache,
}

impl Quantum {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
    }

    /// The work unit; the sweep of `Cache` covers `sweep_bytes`.
    fn unit(self, sweep_bytes: usize) -> Unit {
        match self {
            Self::One => Unit::One(Quantum1::default()),
            Self::Fifteen => Unit::Fifteen(Quantum15::default()),
            Self::ThirtyOne => Unit::ThirtyOne(Quantum31::default()),
            Self::SixtyThree => Unit::SixtyThree(Quantum63::default()),
            Self::Cache => Unit::Cache(CacheSweep::new(sweep_bytes)),
        }
    }
}

/// Parameters of the noise probe.
#[derive(Debug, Clone, Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Work of a turn: 1, 15, 31, 63 or cache; a number counts additions; cache sweeps 16 cache lines.
    #[arg(long, value_enum, value_name = "WORK", default_value = "1", hide_possible_values = true)]
    pub quantum: Quantum,
    /// Base window, 10us to 100ms; longer windows are derived from it.
    #[arg(long, value_name = "DUR", default_value = "100us", value_parser = window_text)]
    pub window: String,
    /// Number of base windows, instead of a time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub windows: Option<u64>,
    /// Shortest turn that counts as a gap; found by calibration by default.
    #[arg(long, value_name = "DUR", value_parser = duration_text)]
    pub threshold: Option<String>,
    /// Source of the names of causes: auto, trace, switches, totals, none; auto uses the best permitted one.
    #[arg(long, value_enum, value_name = "BY", default_value = "auto", hide_possible_values = true)]
    pub attribution: Attribution,
    /// Bytes of the cache sweep.
    #[arg(long, value_name = "BYTES", default_value_t = 1_048_576, value_parser = clap::value_parser!(u64).range(1024..=1_073_741_824))]
    pub sweep_bytes: u64,
    /// Gaps listed per CPU; chosen by run time by default. Once the list is full, only longer gaps are listed; all are counted.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(16..=100_000_000))]
    pub gap_capacity: Option<u64>,
}

/// Shortest and longest base window, ns.
const WINDOW_NS: std::ops::RangeInclusive<u64> = 10_000..=100_000_000;

fn window_text(text: &str) -> Result<String, String> {
    let ns = parse_duration_ns(text)?;
    if WINDOW_NS.contains(&ns) {
        Ok(text.to_owned())
    } else {
        Err(format!("a window of {text} is outside 10us to 100ms"))
    }
}

impl Params {
    /// As by default but for these.
    fn of(quantum: Quantum, attribution: Attribution, gap_capacity: Option<u64>) -> Self {
        Self {
            quantum,
            window: "100us".to_owned(),
            windows: None,
            threshold: None,
            attribution,
            sweep_bytes: 1 << 20,
            gap_capacity,
        }
    }

    /// Length of a base window, ns. Errors: a job file gives something that is not a window length.
    pub fn window_ns(&self) -> Result<u64, ProbeError> {
        window_text(&self.window).and_then(|t| parse_duration_ns(&t)).map_err(ProbeError::Usage)
    }

    /// Threshold, ns, if one was given. Errors: a job file gives something that is not a duration.
    pub fn threshold_ns(&self) -> Result<Option<u64>, ProbeError> {
        self.threshold.as_deref().map(parse_duration_ns).transpose().map_err(ProbeError::Usage)
    }
}

impl Probe for Noise {
    const INFO: Info = info::INFO;
    const PAGE: Page = Page::at(10);
    const SELFTEST: SelfTest = SelfTest { within_s: [30, 90], tries_again: false, run: selftest::run };
    type Params = Params;
    type Samples = Samples;

    fn measure(host: &Host<'_>, params: &Params) -> Result<Measured<Samples>, ProbeError> {
        if ranks::are_there() { ranks::measure(host, params) } else { run::measure(host, params) }
    }

    fn attend(_params: &Params) -> Option<bool> {
        ranks::attend()
    }

    fn give_up(_params: &Params) {
        ranks::give_up();
    }

    fn analyze(_params: &Params, samples: &Samples, seed: u64) -> Analysis {
        analyze::analyze(samples, seed)
    }

    fn tables(samples: &Samples) -> Vec<Table> {
        tables::to_tables(samples)
    }

    fn from_tables(tables: &[Table]) -> Result<Samples, ProbeError> {
        tables::from_tables(tables)
    }
}
