//! Memory: latency over working sets, sizes of caches, translations, bandwidth, latency under load, shared accesses.

pub mod bandwidth;
pub mod info;
pub mod ladder;
pub mod loaded;
pub mod params;
mod reported;
pub mod table;

use machmeter_data::code::Code;
use machmeter_engine::part::{Part, Verb};
use machmeter_engine::{Info, Page};

pub use params::Params;

#[derive(Debug, Clone, Copy)]
pub struct Memory;

impl Verb for Memory {
    const INFO: Info = info::INFO;
    const PARTS: &'static [Part<Params>] = &[ladder::PART, bandwidth::PART, loaded::PART, table::PART];
    const NOT_MEASURED: Code = info::NOT_MEASURED;
    const PAGE: Page = Page::at(30);
    const SELFTEST_WITHIN_S: [u64; 2] = [15, 40];
    const SECONDS: [u64; 3] = [12, 80, 300];
    type Params = Params;

    fn names(params: &Params) -> &[String] {
        &params.parts
    }
}
