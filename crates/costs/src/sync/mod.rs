//! Synchronization: transfer of cache lines between CPUs, contention, locks and hand-off, wake-ups.

pub mod contention;
mod cost;
pub mod info;
pub mod jobs;
mod locks;
pub mod models;
pub mod params;
#[cfg(test)]
mod tests;
pub mod transfer;
mod trips;
pub mod wakeups;

use machmeter_data::code::Code;
use machmeter_engine::part::{Part, PartContext, Verb};
use machmeter_engine::{Info, Page, ProbeError};

pub use params::Params;

#[derive(Debug, Clone, Copy)]
pub struct Sync;

/// Begins a part of pairs of CPUs; refuses one that was asked for by name and has one CPU.
fn begin(at: &PartContext<'_>, params: &Params, part: &str) -> Result<(), ProbeError> {
    let cpus = &at.host.cpus;
    if cpus.len() < 2 && params.parts.iter().any(|p| p == part) {
        return Err(ProbeError::Usage(format!("--parts {part}: needs two CPUs, and CPU {cpus} is one")));
    }
    at.host.begin()
}

impl Verb for Sync {
    const INFO: Info = info::INFO;
    const PARTS: &'static [Part<Params>] =
        &[transfer::PART, contention::PART, locks::PART, wakeups::PART, models::PART];
    const NOT_MEASURED: Code = cost::NOT_MEASURED;
    const PAGE: Page = Page::at(40);
    const SELFTEST_WITHIN_S: [u64; 2] = [30, 90];
    const SECONDS: [u64; 3] = [12, 60, 180];
    type Params = Params;

    fn names(params: &Params) -> &[String] {
        &params.parts
    }
}
