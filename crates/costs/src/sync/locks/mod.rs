//! Locks: what it costs to take and give one back alone (latency), when all want it (time per acquisition, throughput), and
//! from the release on one CPU to the acquisition on another (latency of a hand-off); how fair it is; and barriers.
//!
//! Kinds that programs use: one that spins, a mutex on a bare futex, mutexes of the C and Rust libraries, readers and writers.
//! What spins costs nanoseconds and is timed in pairs of batches; what may sleep is timed trip by trip. Every lock is proven: a plain number that it protects must come out exact, else there is no figure.

mod analyze;
mod contended;
mod measure;
mod plan;
mod selftest;
#[cfg(test)]
mod tests;

use super::Params;
use machmeter_engine::part::Part;

const NAME: &str = "locks";

pub(super) const PART: Part<Params> = Part {
    metrics: &[HANDOFF, FAIRNESS],
    codes: &[BROKEN, UNFAIR],
    selftest: &[("locks exclude", selftest::exclusion), ("a lock that does not", selftest::open_lock)],
    ..Part::of(NAME, 35, measure::measure, analyze::analyze)
};

machmeter_data::metrics! {
    ["lock", "from", "to", "model"] Nanoseconds Lower weakened by [Frequency, WakeUp, SharedCore, Clock, ClockOffset] {
        HANDOFF = "sync.handoff"
            "Time from the release of a lock on one CPU to its acquisition on another: half a round trip.";
    }
    ["lock", "cpus", "model"] One Higher weakened by [Preemption, SharedCore] {
        FAIRNESS = "sync.lock_fairness"
            "Jain's index of the acquisitions of all CPUs that contend for a lock, the median of batches: 1 if even, 1/cpus if one CPU gets all.";
    }
}

pub(super) use plan::widths;

machmeter_data::code! { pub(super) BROKEN = "W431" "broken lock",
    what: "A counter protected by a lock ended with a wrong sum. The figures of the lock are left out.",
    why: "Two threads held the lock at once: the machine, the library or this program is broken.",
    how: "Each member adds 1 to a plain number under the lock and counts its own additions. The sums differ.",
    next: "Repeat the run. If the error persists, report it with the record.",
}

machmeter_data::code! { pub(super) UNFAIR = "W432" "unfair lock",
    what: "One CPU gets a contended lock much more often than another.",
    why: "The time per acquisition looks short because the holder takes the lock again while its cache line is near. The other threads wait.",
    how: "Jain's index of the acquisitions in each undisturbed batch (up to 1 ms): the median is below 0.8.",
    next: "If waiting threads must make progress, use a lock that queues. Compare the hand-off figures, not the contended ones.",
}
