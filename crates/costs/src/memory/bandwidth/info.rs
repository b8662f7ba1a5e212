//! What the part tells: metrics and warnings.

machmeter_data::metrics! {
    ["kernel", "level", "working_set_bytes", "cpus", "pages", "data", "convention"]
    BytesPerSecond Higher weakened by [Frequency, SharedCore, MemoryPlacement, Clock] {
        BANDWIDTH = "memory.bandwidth"
            "Bytes that the kernel's instructions load and store per second, over all CPUs that take part, each on memory of its own. \
             With convention=stream: the width a compiler takes for STREAM's loops; the bytes are counted alike.";
        WITH_ALLOCATE = "memory.bandwidth_with_allocate"
            "The same with a read of every line that an ordinary store writes without having loaded it: what the memory bus moves, \
             unless the processor finds a way around it.";
    }
    ["kernel", "cpus"] One Higher weakened by [Frequency, SharedCore, MemoryPlacement] {
        SCALING = "memory.scaling" "Bandwidth in memory of so many CPUs over that of one.";
    }
    ["kernel"] Count Neither weakened by [Frequency, SharedCore, MemoryPlacement] {
        SATURATION = "memory.saturation_cpus"
            "Fewest CPUs that reach 95 % of the highest bandwidth seen with any number of them.";
    }
    ["kernel"] FlopsPerSecond Higher weakened by [Frequency, SharedCore, Clock] {
        PEAK = "memory.peak_flops"
            "Floating-point operations per second of one CPU on registers alone: independent multiply-adds, each counting two.";
    }
}

machmeter_data::code! { pub SMALL_BUFFER = "W406" "memory buffer small",
    what: "The memory that the kernels walked over is less than four times the last cache.",
    why: "What is still in the cache from the round before is not moved again; the bandwidth of memory looks higher than it is.",
    how: "Size of the buffer, which level, time and free memory bound, against what the ladder saw of the last cache, or what the system claims.",
    next: "Give more time (-t), free memory, or name the size with --buffer.",
}
machmeter_data::code! { pub DATA_MATTERS = "W407" "bandwidth depends on the data",
    what: "Memory that holds zeros is moved faster than memory that does not.",
    why: "Processors and hosts shorten transfers of zeros; a meter that writes zeros reports a bandwidth that no program with \
          real data has.",
    how: "The same kernels over zeros and over random mantissas, interleaved; more than 1.2 times is told.",
    next: "Compare with tools only where the contents agree; most others write zeros (memset, calloc).",
}
machmeter_data::code! { pub NO_HUGE = "W408" "huge pages not granted",
    what: "The rows with huge pages have no figures: the system gave none, or not for all of the buffer.",
    why: "Asking is not having: figures of small pages under the name of huge ones would mislead.",
    how: "AnonHugePages of the mapping in /proc/self/smaps after it was written.",
    next: "Allow them: /sys/kernel/mm/transparent_hugepage/enabled must say madvise or always.",
}
machmeter_data::code! { pub ONE_CPU = "W409" "memory by one CPU only",
    what: "Bandwidth of several CPUs and latency under load were not measured: they need two CPUs.",
    why: "One CPU seldom moves what the memory can give.",
    how: "Number of measured CPUs.",
    next: "Measure with more CPUs (--cpus).",
}
machmeter_data::code! { pub NOT_TOGETHER = "W410" "CPUs seldom worked together",
    what: "Most samples with several CPUs were thrown away, because one of them was switched out or came late.",
    why: "What is left are moments at which nothing else ran; there may be too few of them for a figure.",
    how: "Samples kept against samples tried.",
    next: "Stop what else runs on these CPUs.",
}
machmeter_data::code! { pub NOT_REACHED = "W411" "bandwidth rows not reached",
    what: "Some rows have no figure because the time was over before enough samples were taken.",
    why: "They are missing, not zero.",
    how: "Rows of the plan with fewer samples than an interval needs.",
    next: "Give more time (-t), or name fewer kernels (--kernels).",
}
