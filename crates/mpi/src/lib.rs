//! What message-passing calls cost, as functions of ranks and bytes.
//!
//! ```text
//! operations   a table of scripts
//! stage        plays a script: an ensemble of ranks, or a simulation of them
//! cells        what is sampled of it: turns back to back, searches
//! windows      turns at agreed moments
//! pairs        all pairs of ranks, and many at once; which are slow
//! launch       all cells of one start of the ranks, in rank 0
//! run          the session: starts launches, or leads the ranks of a launcher
//! analyze      from rows of several launches to laws
//! ```
#![forbid(unsafe_code)]

mod analyze;
mod cells;
mod ensemble;
mod guidelines;
mod info;
mod launch;
mod loggps;
mod operations;
mod orders;
mod pairing;
mod pairs;
mod params;
mod plan;
mod run;
mod selftest;
mod show;
mod simulated;
mod stage;
#[cfg(test)]
mod tests;
mod windows;
mod worker;

use machmeter_data::code::Code;
use machmeter_engine::part::{Part, Verb};
use machmeter_engine::{Info, Page, ProbeError, Worker};

pub use params::Params;

#[derive(Debug, Clone, Copy)]
pub struct Mpi;

pub const WORKERS: &[Worker] = &[worker::WORKER, selftest::RANK];

impl Verb for Mpi {
    const INFO: Info = info::INFO;
    // What its option calls parts share the launches: they are sets of operations.
    const PARTS: &'static [Part<Params>] = &[Part {
        selftest: &[
            ("planted costs and sizes that wait", selftest::planted),
            ("planted clocks, and a rank that comes late", selftest::ranks),
        ],
        ..Part::of(cells::PART, 1, run::measure, analyze::analyze)
    }];
    const NOT_MEASURED: Code = info::NOT_MEASURED;
    // It takes all CPUs for itself, and a library that few machines have.
    const PAGE: Page = Page { weight: 0, ..Page::at(46) };
    const SELFTEST_WITHIN_S: [u64; 2] = [20, 30];
    const SECONDS: [u64; 3] = [15, 60, 600];
    type Params = Params;

    fn check(params: &Params) -> Result<(), ProbeError> {
        params.operations()?;
        params.range().map(drop)
    }

    fn attend(params: &Params) -> Option<bool> {
        worker::attend(params.lib.as_deref())
    }

    fn give_up(params: &Params) {
        worker::give_up(params.lib.as_deref());
    }
}
