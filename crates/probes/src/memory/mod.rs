//! Memory: latency over working sets, sizes of caches, reach of the translation buffers, bandwidth by kernel and width, latency under
//! load, and the seed's table of shared accesses.

pub mod bandwidth;
pub mod info;
pub mod ladder;
pub mod loaded;
pub mod params;
pub mod selftest;
pub mod table;

use machmeter_data::Table;
use machmeter_engine::cost::Rows;
use machmeter_engine::probe::Measured;
use machmeter_engine::{Analysis, Host, Info, Level, Page, Probe, ProbeError};

pub use params::Params;

use crate::part::{self, Part};

/// The probe.
#[derive(Debug, Clone, Copy)]
pub struct Memory;

/// Its parts, in the order in which they run and stand on the page.
const PARTS: &[Part<Params>] = &[ladder::PART, bandwidth::PART, loaded::PART, table::PART];

impl Probe for Memory {
    const INFO: Info = info::INFO;
    const PAGE: Page = Page { place: 30, parameters: "{}" };
    type Params = Params;
    type Samples = Rows;

    fn default_ns(params: &Params, level: Level) -> Result<u64, ProbeError> {
        part::select(PARTS, &params.parts)?;
        let seconds = match level {
            Level::Quick => 25,
            Level::Standard => 80,
            Level::Thorough => 300,
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
