//! Interactive: how late audio, video, X, games and custom tasks run under load.
//!
//! A task is a job stream (`engine::stream`) in its own process; a load is a process tree; a cell is a task under a load.
//! [`run`] records, [`worker`] is the task's process, [`analyze`] is pure, [`oracle`] simulates one task exactly.
//!
//! Sources of error: a wake-up's own cost (tens of us in a virtual machine) counts as lateness; short runs have few seconds.

pub mod analyze;
pub mod info;
mod measure;
pub mod oracle;
pub mod params;
pub mod predict;
pub mod run;
pub mod samples;
pub mod selftest;
pub mod tasks;
pub mod worker;

use machmeter_data::Table;
use machmeter_engine::probe::Measured;
use machmeter_engine::selftest::SelfTest;
use machmeter_engine::{Analysis, Host, Info, Level, Page, Probe, ProbeError, Worker};

use params::Params;
use samples::Samples;

pub const WORKERS: &[Worker] = &[worker::WORKER];

pub struct Interactive;

impl Probe for Interactive {
    const INFO: Info = info::INFO;
    const SELFTEST: SelfTest = SelfTest { within_s: [60, 200], tries_again: true, run: selftest::run };
    // Two tasks under no load and one take 1.7 s in their shortest segments, and 0.5 s are kept back for what follows.
    const PAGE: Page = Page {
        place: 20,
        parameters: r#"{"tasks": "audio-pro,video", "loads": "none,burn"}"#,
        least_ns: 3_000_000_000,
        weight: Page::EQUAL,
    };
    type Params = Params;
    type Samples = Samples;

    fn default_ns(params: &Params, level: Level) -> Result<u64, ProbeError> {
        measure::default_ns(params, level)
    }

    fn measure(host: &Host<'_>, params: &Params) -> Result<Measured<Samples>, ProbeError> {
        measure::measure(host, params)
    }

    fn analyze(_params: &Params, samples: &Samples, _seed: u64) -> Analysis {
        let mut analysis = analyze::analyze(samples);
        analysis.warnings.extend(predict::warnings(samples));
        analysis
    }

    fn tables(samples: &Samples) -> Vec<Table> {
        samples::to_tables(samples)
    }

    fn from_tables(tables: &[Table]) -> Result<Samples, ProbeError> {
        samples::from_tables(tables)
    }
}
