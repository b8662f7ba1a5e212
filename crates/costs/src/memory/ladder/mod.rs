//! The latency ladder: what a dependent load costs over working sets from one page to memory, and what follows from it: the
//! sizes of the caches, their lines and ways, the reach of the translation buffers, whether huge pages help, the clock of
//! the core, and how many misses it keeps under way.
//!
//! Loads follow a chain of pointers in random order, rebuilt at every visit. Detection reads the curves alone; what the
//! system claims is compared afterwards. Sources: Saavedra-Barrera and Smith (1995), lmbench (`McVoy` and Staelin 1996),
//! multichase, X-Ray (Yotov and others 2005).

pub(super) mod chase;
mod claims;
mod closer;
mod datasets;
mod figures;
mod found;
mod hierarchy;
pub mod info;
mod measure;
mod plan;
mod reading;
mod request;
pub(super) mod seen;
mod selftest;
mod steps;
mod summary;
#[cfg(test)]
mod tests;
mod verdicts;

use machmeter_engine::Analysis;
use machmeter_engine::cost::Rows;

use super::Params;
use found::Found;
use machmeter_engine::part::Part;
use reading::Reading;

/// Name of the part.
const NAME: &str = "ladder";

/// The part.
pub(super) const PART: Part<Params> = Part {
    metrics: &[
        info::LATENCY,
        info::LATENCY_CYCLES,
        info::CORE_CLOCK,
        info::CACHE_SIZE,
        info::LINE_SIZE,
        info::ASSOCIATIVITY,
        info::TRANSLATIONS,
        info::HUGE_GRANTED,
        info::HUGE_EFFECTIVE,
        info::PARALLELISM,
    ],
    codes: &[
        info::NO_HUGE,
        info::HUGE_NOT_EFFECTIVE,
        info::CLOCK_MOVED,
        info::LAST_DRIFTS,
        info::SHORT_LADDER,
    ],
    selftest: &[("chains of pointers", selftest::chains), ("caches beside busy neighbors", selftest::caches)],
    ..Part::of(NAME, 40, measure::measure, analyze)
};

fn analyze(_params: &Params, rows: &Rows, seed: u64) -> Analysis {
    let reading = Reading::of(rows);
    if reading.rows().all(|r| r.pairs.is_empty()) {
        return Analysis::default();
    }
    let found = Found::of(&reading, seed);
    let warnings = verdicts::warnings(&reading, &found);
    let mut metrics = figures::all(&reading, &found);
    verdicts::flag(&mut metrics, &warnings);
    Analysis {
        datasets: datasets::all(&reading, &found),
        findings: verdicts::findings(&reading, &found),
        summary: summary::write(&reading, &found),
        warnings,
        metrics,
        remember: Vec::new(),
    }
}
