//! Core to core: what it costs to move a cache line from one CPU to another, for every pair of CPUs, both ways, in several
//! kinds, and how that changes over time. Unit: ns one way (half a round trip), or ns per line read.
//!
//! A virtual machine's CPUs move between the host's: the same two are on one core now and on two dies later. So every sample
//! carries what a compare-and-swap cost in the same millisecond, the series of these is clustered into levels
//! ([`machmeter_stats::regimes`]), and figures are given per level with its share of the time.
//!
//! Methods after core-to-core-latency (compare-and-swap of one word), c2clat (two words, lowest batches) and Intel's MLC
//! (reads of lines that are clean or dirty in the other CPU's cache).

mod analyze;
mod measure;
mod selftest;
mod show;

use super::Params;
use machmeter_engine::cost::Fact;
use machmeter_engine::part::Part;

/// Couples of CPUs that there are.
const COUPLES: Fact<usize> = Fact::named("transfer.couples");
/// The couples visited, with how far they are apart.
const CLASSES: Fact<Vec<(usize, usize, String)>> = Fact::named("transfer.classes");

pub(super) const PART: Part<Params> = Part {
    metrics: &[CORE_TO_CORE, REGIME_SHARE],
    codes: &[ASYMMETRY, SAMPLED],
    selftest: &[("transfer beside busy neighbors", selftest::busy_neighbors)],
    ..Part::of("transfer", 35, measure::measure, analyze::analyze)
};

machmeter_data::metrics! {
    ["from", "to", "kind", "placement"] Nanoseconds Lower weakened by [Frequency, SharedCore, Clock, ClockOffset] {
        CORE_TO_CORE = "memory.core_to_core"
            "Latency of a cache line between two CPUs: half a round trip (cas, store_load_1, store_load_2), or one dependent read of a line \
             that the other CPU holds (read_dirty, read_clean). Placements have names by rising cost: near is the cheapest or only one in the \
             run, far the most expensive of several.";
    }
    ["from", "to", "placement"] One Neither weakened by [Preemption, SharedCore] {
        REGIME_SHARE = "sync.regime_share" "Share of the time that two CPUs spent at one placement.";
    }
}

machmeter_data::code! { pub(super) ASYMMETRY = "W423" "asymmetric pair",
    what: "The latency between two CPUs depends on which of them owns the memory and starts.",
    why: "A round trip is symmetric. The difference comes from the home of the line (memory node, cache slice) or from the speed of the two CPUs.",
    how: "Both directions at the same level: their intervals do not overlap, and the ratio is above 1.25.",
    next: "Place shared data on the memory node of the CPU with the lower figure.",
}
machmeter_data::code! { pub(super) SAMPLED = "W424" "pairs sampled",
    what: "Only some pairs of CPUs were measured.",
    why: "The time did not allow all pairs. Pairs without a measurement are null in the matrix.",
    how: "Pairs measured against all pairs. One pair of each class of distance is measured first.",
    next: "Measure longer (-t), or select fewer CPUs (--cpus).",
}

#[cfg(test)]
mod tests;
