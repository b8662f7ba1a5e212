//! Synchronization: transfer of cache lines between CPUs, contention, locks and hand-off, wake-ups.

pub mod contention;
pub mod info;
pub mod locks;
pub mod models;
pub mod params;
mod rounds;
pub mod selftest;
pub mod transfer;
pub mod wakeups;

use machmeter_data::Table;
use machmeter_engine::cost::Rows;
use machmeter_engine::probe::Measured;
use machmeter_engine::{Analysis, Host, Info, Level, Page, Probe, ProbeError};

pub use params::Params;

use machmeter_engine::part::{self, Part};

/// The probe.
#[derive(Debug, Clone, Copy)]
pub struct Sync;

/// Its parts, in the order in which they run and stand on the page.
const PARTS: &[Part<Params>] = &[transfer::PART, contention::PART, locks::PART, wakeups::PART, models::PART];

impl Probe for Sync {
    const INFO: Info = info::INFO;
    const PAGE: Page = Page { place: 40, parameters: "{}" };
    type Params = Params;
    type Samples = Rows;

    fn default_ns(params: &Params, level: Level) -> Result<u64, ProbeError> {
        part::select(PARTS, &params.parts)?;
        let seconds = match level {
            Level::Quick => 15,
            Level::Standard => 60,
            Level::Thorough => 180,
            Level::Soak => level.probe_seconds(),
        };
        Ok(seconds * 1_000_000_000)
    }

    fn measure(host: &Host<'_>, params: &Params) -> Result<Measured<Rows>, ProbeError> {
        part::measure(host, params, PARTS, &params.parts)
    }

    fn analyze(params: &Params, samples: &Rows, seed: u64) -> Analysis {
        part::analyze(&info::INFO, params, samples, seed, PARTS, &info::NOT_MEASURED)
    }

    fn tables(samples: &Rows) -> Vec<Table> {
        samples.to_tables(info::INFO.name)
    }

    fn from_tables(tables: &[Table]) -> Result<Rows, ProbeError> {
        Rows::from_tables(info::INFO.name, tables)
    }
}
