//! What a dataflow runtime kernel costs here: prices of its primitives, and benchmark graphs that characterize it.
#![forbid(unsafe_code)]

mod analyze;
mod files;
mod graphs;
mod info;
mod kernels;
mod params;
mod predict;
mod prices;
mod profile;
mod published;
mod selftest;
mod show;

use std::path::Path;

use machmeter_data::code::Code;
use machmeter_engine::part::{Part, Verb};
use machmeter_engine::{Info, Page, ProbeError};

pub use params::Params;

pub struct Flow;

impl Verb for Flow {
    const INFO: Info = info::INFO;
    const PARTS: &'static [Part<Params>] = &[
        Part {
            selftest: &[("the firing loop", selftest::firing)],
            ..Part::of(prices::PART, 1, prices::measure, prices::analyze)
        },
        Part {
            selftest: &[("boxes that wait", selftest::waits), ("graphs", selftest::graphs)],
            ..Part::of(graphs::PART, 3, graphs::measure, analyze::analyze)
        },
    ];
    const NOT_MEASURED: Code = info::NOT_MEASURED;
    const PAGE: Page = Page { weight: 4, parameters: r#"{"parts": ["prices"]}"#, ..Page::at(47) };
    const SELFTEST_WITHIN_S: [u64; 2] = [15, 30];
    const SECONDS: [u64; 3] = [4, 10, 60];
    type Params = Params;

    fn names(params: &Params) -> &[String] {
        &params.parts
    }

    fn check(params: &Params) -> Result<(), ProbeError> {
        params.graphs()?;
        params.kernels()?;
        params.sampling()?;
        params.granularities()?;
        files::Over::of(params).map(drop)
    }

    fn destinations(params: &Params) -> Vec<(&'static str, &Path)> {
        params.out.iter().map(|path| ("out", path.as_path())).collect()
    }
}
