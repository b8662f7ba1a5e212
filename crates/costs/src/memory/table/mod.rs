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
            "Cost of one shared access: the mean over the members of each lower quartile. The largest lower quartile is the maximum. \
             access=streamed: accesses overlap. access=dependent: accesses follow a random chain; a dependent write also reads the line, to \
             find the next one.";
    }
}

machmeter_data::code! { ALONE = "W415" "one CPU",
    what: "Rows of the table of shared accesses that need a second member were not measured: there is only one CPU.",
    why: "A second member on the same CPU would measure the scheduler, not memory.",
    how: "The number of measured CPUs.",
    next: "Measure two or more CPUs (--cpus).",
}

machmeter_data::code! { THIN = "W417" "table incomplete",
    what: "Rows of the table of shared accesses have no figure: too few samples were undisturbed, or the time was over.",
    why: "A figure of fewer than six samples has no interval.",
    how: "Samples in which no member was switched out and every member did its share, against six.",
    next: "Give more time (-t, or --parts table), or stop other programs on these CPUs.",
}

machmeter_data::code! { SMALL_BUFFER = "W418" "table within a cache",
    what: "The buffers of the table of shared accesses are smaller than twice the last cache.",
    why: "Accesses to own memory and to another member's memory may partly hit the cache, and look cheaper than memory.",
    how: "The size of a member's buffer against the last cache: given, detected by the ladder of the same run, or claimed by the system. Free memory (a \
          quarter for all members), the time and 256 MiB limit the buffer.",
    next: "Free memory or raise the container's limit, give more time (-t), or set the cache size with --cache-size.",
}

machmeter_data::code! { MODEL_FAILED = "W416" "model not measured",
    what: "A programming model could not run its rows of the table of shared accesses; the text gives the reason.",
    why: "Its figures are missing, not zero.",
    how: "The team could not be started, or lost a member.",
    next: "Check the limits on processes and memory (ulimit -u, container limits), or leave the model out with --models.",
}
