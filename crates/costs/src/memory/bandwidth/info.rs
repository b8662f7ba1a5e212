//! What the part tells: metrics and warnings.

machmeter_data::metrics! {
    ["kernel", "level", "working_set_bytes", "cpus", "pages", "data", "convention"]
    BytesPerSecond Higher weakened by [Frequency, SharedCore, MemoryPlacement, Clock] {
        BANDWIDTH = "memory.bandwidth"
            "Bytes that the kernel's instructions load and store per second, summed over all CPUs, each on its own memory. convention=stream: \
             the vector width that a compiler uses for STREAM's loops, with the same byte count.";
        WITH_ALLOCATE = "memory.bandwidth_with_allocate"
            "The same, plus a read of every line that an ordinary store writes without loading it first. This is the traffic on the memory \
             bus, unless the processor avoids these reads.";
    }
    ["kernel", "cpus"] One Higher weakened by [Frequency, SharedCore, MemoryPlacement] {
        SCALING = "memory.scaling" "Memory bandwidth of several CPUs over that of one CPU.";
    }
    ["kernel"] Count Neither weakened by [Frequency, SharedCore, MemoryPlacement] {
        SATURATION = "memory.saturation_cpus"
            "Smallest number of CPUs that reaches 95 % of the highest bandwidth.";
    }
    ["kernel"] FlopsPerSecond Higher weakened by [Frequency, SharedCore, Clock] {
        PEAK = "memory.peak_flops"
            "Floating-point operations per second of one CPU on registers only: independent multiply-adds, counted as two operations each.";
    }
}

machmeter_data::code! { pub SMALL_BUFFER = "W406" "memory buffer small",
    what: "The buffer of the bandwidth kernels is less than four times the last cache.",
    why: "Lines that stay in the cache from one round to the next are not moved again. The bandwidth of memory then looks higher than it is.",
    how: "The size of the buffer against the last cache, as the ladder found it or as the system claims it. Level, time and free memory limit the buffer.",
    next: "Give more time (-t), free memory, or set the size with --buffer.",
}
machmeter_data::code! { pub DATA_MATTERS = "W407" "bandwidth depends on the data",
    what: "Memory that holds zeros is moved faster than memory that holds other data.",
    why: "Some processors and hosts shorten transfers of zeros. A tool that writes zeros then reports a bandwidth that no program with real data reaches.",
    how: "The same kernels run in turns over zeros and over random mantissas. A ratio above 1.2 is reported.",
    next: "Compare only with tools that move the same contents. Most other tools write zeros (memset, calloc).",
}
machmeter_data::code! { pub NO_HUGE = "W408" "huge pages not granted",
    what: "The rows with huge pages have no figures: the system gave no huge pages, or too few for the whole buffer.",
    why: "Figures of small pages must not appear under the name of huge pages.",
    how: "AnonHugePages of the mapping in /proc/self/smaps, read after the buffer was written.",
    next: "Set /sys/kernel/mm/transparent_hugepage/enabled to madvise or always, and free memory.",
}
machmeter_data::code! { pub ONE_CPU = "W409" "memory by one CPU only",
    what: "Bandwidth of several CPUs and latency under load were not measured: they need two CPUs.",
    why: "One CPU alone seldom reaches the bandwidth of the memory.",
    how: "The number of measured CPUs.",
    next: "Measure more CPUs (--cpus).",
}
machmeter_data::code! { pub NOT_TOGETHER = "W410" "CPUs rarely measured together",
    what: "Most samples with several CPUs were rejected: one of the CPUs was switched out or started late.",
    why: "The remaining samples are from moments when nothing else ran. They may be too few for a figure.",
    how: "Samples kept against samples taken.",
    next: "Stop other programs on these CPUs.",
}
machmeter_data::code! { pub NOT_REACHED = "W411" "bandwidth rows not reached",
    what: "Some rows have no figure: the time was over before they had enough samples.",
    why: "The rows are missing, not zero.",
    how: "Rows of the plan with fewer samples than an interval needs.",
    next: "Give more time (-t), or select fewer kernels (--kernels).",
}
