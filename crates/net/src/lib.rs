//! What a message costs between two processes: `LogGPS` parameters of links, and how long round trips take.
//!
//! ```text
//! near end, the thread that measures            far end, a process on another CPU or machine
//! Near::begin  -- order, beside the link -->    far::attend
//! Near::turn   == messages over the link ==     take_part
//! Near::end    <- what it saw, beside the link --
//! ```
#![forbid(unsafe_code)]

mod analyze;
mod cells;
mod far;
mod info;
mod measure;
mod near;
mod orders;
mod params;
mod peer;
mod plan;
mod planted;
mod points;
mod selftest;
mod serve;
#[cfg(test)]
mod serve_tests;
mod set;
mod show;
#[cfg(test)]
mod sim;
#[cfg(test)]
mod tests;

use machmeter_data::code::Code;
use machmeter_engine::cost::Fact;
use machmeter_engine::part::{Part, Verb};
use machmeter_engine::{Info, Page, ProbeError, Worker};

pub use params::{Direction, Params};
pub use peer::{PORT, Token, frames};
pub use serve::{Served, Server, Stop};

/// What each link said of itself: transport and words.
const LINKS: Fact<Vec<(String, String)>> = Fact::named("net.links");

/// Where the far end is, if not here.
const PEER: Fact<String> = Fact::named("net.peer");

pub struct Net;

pub const WORKERS: &[Worker] = &[far::WORKER];

impl Verb for Net {
    const INFO: Info = info::INFO;
    const PARTS: &'static [Part<Params>] = &[Part {
        selftest: &[
            ("a planted link", selftest::planted),
            ("a limited link", selftest::limited),
            ("sizes that wait", selftest::thresholds),
        ],
        ..Part::of(plan::PART, 1, measure::measure, analyze::analyze)
    }];
    const NOT_MEASURED: Code = info::NOT_MEASURED;
    const PAGE: Page = Page { weight: 5, ..Page::at(45) };
    const SELFTEST_WITHIN_S: [u64; 2] = [25, 60];
    const SECONDS: [u64; 3] = [3, 10, 60];
    type Params = Params;

    fn check(params: &Params) -> Result<(), ProbeError> {
        params.transports()?;
        params.range()?;
        params.check_congestion()?;
        params.peer().map(drop)
    }
}
