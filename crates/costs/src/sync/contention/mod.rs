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
        FAIRNESS = "sync.fairness" "Operations of the slowest CPU over those of the fastest at one word, median of batches.";
    }
    ["operation"] Bytes Lower weakened by [SharedCore, Clock] {
        FALSE_SHARING = "sync.false_sharing"
            "Smallest distance measured from which on two CPUs leave each other's words alone: costs no more than half above words far apart.";
    }
}

machmeter_data::code! { pub(super) UNFAIR = "W425" "unfair line",
    what: "One CPU gets a contended line much more often than another.",
    why: "The figure is that of the measuring CPU, by turns each of them; a thread on the slow side waits longer than it says.",
    how: "Operations of the slowest over those of the fastest CPU in each batch, median below 0.5.",
    next: "Use one counter per thread, or a fair lock, where every thread must advance.",
}

#[cfg(test)]
mod tests;
