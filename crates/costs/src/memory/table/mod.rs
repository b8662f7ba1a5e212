//! The table of shared accesses (Howell, "Microbenchmarking", 1998); rows and buffers: `docs/memory.md`.

mod analyze;
mod measure;
mod member;
mod plan;

#[cfg(test)]
mod tests;

use machmeter_engine::part::Part;

use super::Params;

pub(super) const PART: Part<Params> = Part {
    metrics: &[SHARED],
    codes: &[ALONE, MODEL_FAILED, SMALL_BUFFER, THIN],
    ..Part::of("table", 25, measure::measure, analyze::analyze)
};

machmeter_data::metrics! {
    ["operation", "model", "cpus", "access"]
    Nanoseconds Lower weakened by [Frequency, SharedCore, MemoryPlacement, Clock, ClockOffset] {
        SHARED = "memory.shared"
            "One shared access: mean over the members' lower quartiles; the largest of these is its maximum. \
             access=streamed: accesses overlap. access=dependent: along a random chain; a dependent write also reads the line that it \
             writes, for the way on.";
    }
}

machmeter_data::code! { ALONE = "W415" "one CPU",
    what: "Rows of the table of shared accesses that need a second member or all members at once were not measured: one CPU is there.",
    why: "A second member on the same CPU would measure the scheduler, not memory.",
    how: "The number of measured CPUs.",
    next: "Measure with two or more CPUs (--cpus).",
}

machmeter_data::code! { THIN = "W417" "table incomplete",
    what: "Rows of the table of shared accesses have no figure: too few samples were undisturbed, or the time was over.",
    why: "A figure of fewer than six samples has no interval.",
    how: "Samples during which no member was switched out and all did their share, against six.",
    next: "Give more time (-t, or --parts table), or stop what else runs on these CPUs.",
}

machmeter_data::code! { SMALL_BUFFER = "W418" "table within a cache",
    what: "The buffers of the table of shared accesses are less than twice the last cache.",
    why: "Rows of own and of another member's memory may partly be of the cache, and look cheaper than memory is.",
    how: "Size of a member's buffer, which free memory (a quarter of it for all), the time and 256 MiB bound, against the last cache \
          that was asked for, detected by the ladder of the same run, or claimed by the system.",
    next: "Free memory or give more (container limits), give more time (-t), or name the cache with --cache-size.",
}

machmeter_data::code! { MODEL_FAILED = "W416" "model not measured",
    what: "A programming model could not run its rows of the table of shared accesses; the reason is in the text.",
    why: "Its figures are missing, not zero.",
    how: "The team could not be started, or a member was lost.",
    next: "Look at the limits on processes and memory (ulimit -u, container limits), or leave the model out with --models.",
}
