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
        HANDOFF = "sync.handoff" "From the release of a lock on one CPU to its acquisition on the other: half a round trip.";
    }
    ["lock", "cpus", "model"] One Higher weakened by [Preemption, SharedCore] {
        FAIRNESS = "sync.lock_fairness"
            "Jain's index of the acquisitions of all CPUs that want a lock, median over batches: 1 even, 1/cpus when one gets all.";
    }
}

pub(super) use plan::widths;

machmeter_data::code! { pub(super) BROKEN = "W431" "lock does not exclude",
    what: "A number protected by a lock did not come out exact; the lock's figures are left out.",
    why: "Two holders at once: the machine, the library or this program is broken.",
    how: "Members add 1 to a plain number under the lock and count for themselves; the sums differ.",
    next: "Repeat; if it stays, report it with the record.",
}

machmeter_data::code! { pub(super) UNFAIR = "W432" "unfair lock",
    what: "One CPU gets a contended lock much more often than another.",
    why: "Time per acquisition looks good because the holder takes the lock again while its line is still near; the others wait.",
    how: "Jain's index of the acquisitions in each undisturbed batch (up to 1 ms), median below 0.8.",
    next: "Where waiting threads must advance, use a lock that queues, and compare hand-off instead of contended figures.",
}
