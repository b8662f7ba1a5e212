//! Contention: what an operation costs each of several CPUs that do it at once, to one word or to several. Unit: ns each.
//!
//! A batch counts only if each partner did between 0.2 and 5 times as much in it, by counters on lines of their own.

mod analyze;
mod measure;

use super::Params;
use machmeter_engine::part::Part;

pub(super) const PART: Part<Params> = Part {
    metrics: &[FAIRNESS, FALSE_SHARING],
    codes: &[UNFAIR],
    ..Part::of("contention", 20, measure::measure, analyze::analyze)
};

machmeter_data::metrics! {
    ["operation", "cpus", "distance_bytes", "model"] One Higher weakened by [Preemption, SharedCore] {
        FAIRNESS = "sync.fairness"
            "Operations of the slowest CPU over those of the fastest at one word: the median of batches.";
    }
    ["operation"] Bytes Lower weakened by [SharedCore, Clock] {
        FALSE_SHARING = "sync.false_sharing"
            "Smallest measured distance without false sharing: words at this distance cost at most 1.5 times as much as words far apart.";
    }
}

machmeter_data::code! { pub(super) UNFAIR = "W425" "unfair line",
    what: "One CPU gets a contended line much more often than another.",
    why: "The CPUs measure in turns, so the figure mixes fast and slow ones. A thread on the slow CPU waits longer.",
    how: "Operations of the slowest CPU over those of the fastest in each batch: the median is below 0.5.",
    next: "If every thread must make progress, use one counter per thread or a fair lock.",
}

#[cfg(test)]
mod tests;
