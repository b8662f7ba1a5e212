//! The metric of all operations, and warnings that several parts give.

use machmeter_data::record::Warning;
use machmeter_engine::cost::Row;

machmeter_data::metrics! {
    ["operation", "cpus", "distance_bytes", "model", "kind", "wake"]
    Nanoseconds Lower weakened by [Frequency, WakeUp, SharedCore, Clock, ClockOffset] {
        COST = "sync.cost"
            "Cost of an operation for each participating CPU. Of a contended lock: time per acquisition, over all CPUs. Distance: bytes \
             between the words (0: the same word). Wake: the place of the thread that is woken.";
    }
}

machmeter_data::code! { pub(super) NOT_MEASURED = "W420" "sync part not measured",
    what: "A part of the sync probe was not measured; the text gives the reason.",
    why: "Its figures are missing, not zero.",
    how: "The part ended with an error before its first sample.",
    next: "The other parts are valid. Remove the cause, then repeat this part with --parts.",
}

machmeter_data::code! { pub(super) ONE_CPU = "W422" "one CPU only",
    what: "Operations between two CPUs were not measured: only one CPU is selected. The text names the parts.",
    why: "On one CPU, a lock is always free when a thread runs, and no thread wakes beside the waker. The figures would be those of the scheduler.",
    how: "The number of selected CPUs.",
    next: "Select more CPUs (--cpus), or widen the affinity mask (taskset) or the cgroup's cpuset.",
}

/// Why what takes two CPUs was not measured.
pub(super) const NEEDS_TWO: &str = "needs two CPUs, has 1";

/// The warning of rows that need two CPUs, where there are such, with what `text` says of so many.
pub(super) fn one_cpu<'r>(
    rows: impl Iterator<Item = &'r Row>,
    text: impl FnOnce(usize) -> String,
) -> Option<Warning> {
    let n = rows.filter(|r| r.refused.as_deref() == Some(NEEDS_TWO)).count();
    (n > 0).then(|| ONE_CPU.warning(text(n)))
}
