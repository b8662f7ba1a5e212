//! Operations: the price list of the operating system and of plain arithmetic, with the seed's log10 ladder.

pub mod arithmetic;
pub mod calls;
mod daxpy;
pub mod info;
pub mod params;
pub mod processes;
mod repeated;
pub mod seed;
pub mod selftest;
mod table;

use machmeter_data::Table;
use machmeter_engine::cost::Rows;
use machmeter_engine::probe::Measured;
use machmeter_engine::{Analysis, Host, Info, Level, Page, Probe, ProbeError};

pub use params::Params;

use crate::part::{self, Part};

/// The probe.
#[derive(Debug, Clone, Copy)]
pub struct Ops;

/// Its parts, in the order in which they run and stand on the page.
const PARTS: &[Part<Params>] = &[arithmetic::PART, calls::PART, processes::PART, seed::PART];

impl Probe for Ops {
    const INFO: Info = info::INFO;
    const PAGE: Page = Page { place: 50, parameters: "{}" };
    type Params = Params;
    type Samples = Rows;

    fn default_ns(params: &Params, level: Level) -> Result<u64, ProbeError> {
        part::select(PARTS, &params.parts)?;
        params.check()?;
        let seconds = match level {
            Level::Quick => 15,
            Level::Standard => 40,
            Level::Thorough => 180,
            Level::Soak => level.probe_seconds(),
        };
        Ok(seconds * 1_000_000_000)
    }

    fn commands(params: &Params) -> Vec<(&'static str, &str)> {
        let starts = params.parts.is_empty() || params.parts.iter().any(|p| p == processes::PART.name);
        params.exec_target.iter().filter(|_| starts).map(|c| ("exec_target", c.as_str())).collect()
    }

    fn measure(host: &Host<'_>, params: &Params) -> Result<Measured<Rows>, ProbeError> {
        params.check()?;
        let mut measured = part::measure(host, params, PARTS, &params.parts)?;
        let started = params
            .exec_target
            .iter()
            .filter(|_| measured.samples.part(processes::PART.name).next().is_some());
        measured.side_effects.extend(started.map(|c| format!("started {c:?} (--exec-target)")));
        Ok(measured)
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
