//! Memory: latency over working sets, sizes of caches, reach of the translation buffers, bandwidth by kernel and width, latency under
//! load, and the table of shared accesses.

pub mod bandwidth;
pub mod info;
pub mod ladder;
pub mod loaded;
pub mod params;
mod reported;
pub mod table;

use machmeter_data::code::Code;
use machmeter_engine::part::{Part, Verb};
use machmeter_engine::{Info, Level, Page};

pub use params::Params;

#[derive(Debug, Clone, Copy)]
pub struct Memory;

impl Verb for Memory {
    const INFO: Info = info::INFO;
    const PARTS: &'static [Part<Params>] = &[ladder::PART, bandwidth::PART, loaded::PART, table::PART];
    const NOT_MEASURED: Code = info::NOT_MEASURED;
    const PAGE: Page = Page::at(30);
    const SELFTEST_WITHIN_S: [u64; 2] = [15, 40];
    type Params = Params;

    fn names(params: &Params) -> &[String] {
        &params.parts
    }

    fn seconds(level: Level) -> u64 {
        match level {
            Level::Quick => 12,
            Level::Standard => 80,
            Level::Thorough => 300,
            Level::Soak => level.probe_seconds(),
        }
    }
}
