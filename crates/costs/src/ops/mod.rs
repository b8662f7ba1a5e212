//! Operations: the price list of the operating system and of plain arithmetic, with Howell's ladder of decades.

pub mod arithmetic;
pub mod calls;
mod cost;
pub mod decades;
pub mod info;
pub mod params;
mod planned;
mod prices;
pub mod processes;
mod table;

use machmeter_data::code::Code;
use machmeter_engine::part::{Part, Verb};
use machmeter_engine::{Info, Page, ProbeError, Worker};

pub use params::Params;

/// The roles in which this probe starts the program.
pub const WORKERS: &[Worker] = &[prices::WORKER];

#[derive(Debug, Clone, Copy)]
pub struct Ops;

impl Verb for Ops {
    const INFO: Info = info::INFO;
    const PARTS: &'static [Part<Params>] = &[arithmetic::PART, calls::PART, processes::PART, decades::PART];
    const NOT_MEASURED: Code = cost::NOT_MEASURED;
    const PAGE: Page = Page::at(50);
    const SELFTEST_WITHIN_S: [u64; 2] = [40, 90];
    const SECONDS: [u64; 3] = [12, 40, 180];
    type Params = Params;

    fn names(params: &Params) -> &[String] {
        &params.parts
    }

    fn check(params: &Params) -> Result<(), ProbeError> {
        params.check()
    }

    fn commands(params: &Params) -> Vec<(&'static str, &str)> {
        let starts = params.measures(processes::PART.name);
        params.exec_target.iter().filter(|_| starts).map(|c| ("exec_target", c.as_str())).collect()
    }
}
