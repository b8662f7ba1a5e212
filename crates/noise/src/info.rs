//! What the noise probe says about itself: metrics, warnings, method, sources.

use machmeter_data::{Code, MetricInfo, code};
use machmeter_engine::Info;

machmeter_data::metrics! {
    ["cpu", "rank", "quantum"] Nanoseconds Lower weakened by [Frequency, SharedCore, Clock] {
        TURN = "noise.turn"
            "Cost of one undisturbed turn of the loop: one work unit, one read of the counter, two comparisons.";
    }
    ["cpu", "rank"] One Lower weakened by [Preemption, Clock] {
        STOLEN = "noise.stolen_fraction"
            "Share of wall time in which the loop did not run (gaps), without the work of the interrupted turns.";
    }
    ["cpu", "rank"] One Lower weakened by [Frequency, SharedCore, Clock] {
        SLOWDOWN = "noise.slowdown_fraction"
            "Share of wall time lost because the loop ran slower than in its own best 5 % of windows.";
    }
    ["cpu", "rank"] One Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        LOST = "noise.lost_fraction"
            "Share of wall time lost to stolen time or slowdown: the deficit against the count of undisturbed windows.";
    }
    ["cpu", "rank"] Hertz Lower weakened by [Preemption, Clock] {
        RATE = "noise.detour_rate" "Gaps of 500 ns or more per second of wall time.";
        LONG_GAPS = "noise.long_gap_rate"
            "Gaps over 1 ms per second of CPU time, over all CPUs, with the interval of a Poisson count.";
    }
    ["cpu", "rank"] Nanoseconds Lower weakened by [Preemption, Clock] {
        DURATION = "noise.detour_duration"
            "Duration of gaps of 500 ns or more, minus one undisturbed turn: median, quantiles, maximum.";
    }
    ["cpu", "rank", "source", "kind"] One Lower weakened by [Preemption, Clock, Rights] {
        SOURCE = "noise.source_fraction"
            "Share of wall time taken by one source, per CPU and over all (`cpu=all`). The sources, micro-stalls and gaps too short for the list add up to the stolen time.";
    }
    ["cpu", "rank", "class", "source"] Hertz Neither weakened by [Preemption, Clock] {
        PERIOD = "noise.period"
            "Frequency of a periodic source of gaps, found in the event times of one duration class or one source.";
    }
    ["cpu", "rank"] One Lower weakened by [SharedCore, Clock] {
        MICROSTALL = "noise.microstall_fraction"
            "Share of wall time in gaps below 500 ns: stalls caused by the SMT sibling, too short for the kernel.";
    }
    ["cpu", "rank"] Hertz Lower weakened by [SharedCore, Clock] {
        MICROSTALL_RATE = "noise.microstall_rate"
            "Clusters of gaps below 500 ns per second of wall time. A single gap is a cluster of one.";
    }
    ["cpu", "rank"] One Lower weakened by [Clock] {
        OWN = "noise.own_fraction"
            "Share of wall time that the meter used for its own notes and wake-ups. No other figure includes it.";
    }
    ["operation", "ranks"] Nanoseconds Lower weakened by [Preemption, Clock] {
        COLLECTIVE = "noise.collective"
            "Mean cost of a collective operation after 50 us of work on each rank: from the arrival of half of the ranks to the end of the last one.";
        COLLECTIVE_QUIET = "noise.collective_quiet"
            "Median cost of the same operation in the quietest tenth of the turns. The difference is the cost of noise.";
    }
    ["operation", "rank"] One Lower weakened by [Preemption, Clock] {
        LATE = "noise.late_fraction"
            "Share of the time spent waiting for the last rank that this rank causes.";
    }
}

/// All metrics of the probe, sorted by id.
pub const METRICS: &[MetricInfo] = &[
    COLLECTIVE,
    COLLECTIVE_QUIET,
    DURATION,
    RATE,
    LATE,
    LONG_GAPS,
    LOST,
    MICROSTALL,
    MICROSTALL_RATE,
    OWN,
    PERIOD,
    SLOWDOWN,
    SOURCE,
    STOLEN,
    TURN,
];

/// Warnings of the probe, sorted by id.
pub const CODES: &[Code] = &[
    code! { "W301" "few gaps dominate",
        what: "Half of the stolen time comes from so few gaps that the share of stolen time does not settle in this run.",
        why: "A few large gaps decide the mean. Another run of this length may differ by the share of those gaps.",
        how: "The number of gaps that make up half of the stolen time is below 30.",
        next: "Measure longer (-t), or read percentiles and rates per class instead of the share.",
    },
    code! { "W303" "page faults in the loop",
        what: "The measuring thread took page faults during the recording.",
        why: "The meter disturbed itself: some gaps are page faults of its own memory.",
        how: "The growth of the thread's fault counters during the loop. It is 0 in a correct recording.",
        next: "Allow memory locking (ulimit -l) and free memory.",
    },
    code! { "W304" "real-time share",
        what: "The kernel takes time from real-time threads on purpose: the fair server or RT throttling.",
        why: "A measuring thread under a real-time policy loses up to 50 ms of each second if an ordinary thread wants the CPU. Gaps of that length are \
              not noise of the machine.",
        how: "sched_rt_runtime_us and the fair server's settings. The warning appears if the policy is real-time.",
        next: "Measure with --prio other, or move ordinary threads off the CPU.",
    },
    code! { "W305" "trace incomplete",
        what: "The kernel's trace lost events, so unexplained gaps cannot be attributed to a cause outside the kernel.",
        why: "An event that is missing from the trace may have happened.",
        how: "Overrun counters of the private trace buffers.",
        next: "Measure for a shorter time, or fewer CPUs.",
    },
    code! { "W306" "causes not named",
        what: "This run could not observe which thread or interrupt caused a gap.",
        why: "The names need the kernel's trace events, which require root or CAP_PERFMON.",
        how: "Opening the tracing file system, then per-thread context-switch records, failed or was denied. The text gives the reason.",
        next: "Run as root for the names: sudo machmeter noise. The figures are valid without them.",
    },
    code! { "W307" "stopped early",
        what: "The recording ended before its plan.",
        why: "Intervals are wider, and rare events are less likely to appear.",
        how: "Windows completed against windows planned.",
        next: "Run again without interruption.",
    },
    code! { "W308" "imported file incomplete",
        what: "The imported file lacks data that noise analysis needs.",
        why: "Data that the other tool did not store cannot be analyzed.",
        how: "Columns and time stamps of the file.",
        next: "Measure again with machmeter noise.",
    },
    code! { "W309" "migrated",
        what: "A measuring thread was not on its own CPU at the end of the recording.",
        why: "Its figures mix several CPUs.",
        how: "The CPU number after the loop against the requested one.",
        next: "Find the program that changes affinities (cgroup cpuset, cpusets of a container) and run again.",
    },
    code! { "W320" "meter stopped",
        what: "A signal, a debugger or Ctrl-Z stopped a measuring thread during the recording.",
        why: "The stop counts as stolen time within the windows of the recording, but is not noise of the machine.",
        how: "The loop never gives up its CPU. The kernel counts the stops of a thread as voluntary switches.",
        next: "Run again without stopping the program.",
    },
    code! { "W321" "time without a name",
        what: "More than a tenth of the time taken from a CPU has no source, although the kernel's trace was complete.",
        why: "The sources on the page explain only a part of the noise.",
        how: "Time of gaps that are too short for the list and contain no event of the trace, and of gaps with unknown causes.",
        next: "Record a complete list: machmeter noise --gap-capacity 3000000.",
    },
];

machmeter_data::rows! { ROWS:
    "NOISE" {
        row "CPU time taken": ["" "noise.stolen_fraction{cpu=all}"];
        detail "gaps over 1 ms a second": ["" "noise.long_gap_rate"];
        detail "rank time taken": ["" "noise.stolen_fraction{rank=all}"];
        detail "rank time taken, at most": ["rank {rank}" "noise.stolen_fraction{rank=*,!rank=all}" greatest];
        row "longest gap": [
            "CPU {cpu}" "noise.detour_duration{cpu=*}" max greatest,
            "rank {rank}" "noise.detour_duration{rank=*}" max greatest,
        ];
        row "gaps a second": [
            "CPU {cpu}" "noise.detour_rate{cpu=*}" greatest,
            "rank {rank}" "noise.detour_rate{rank=*}" greatest,
        ];
        detail "{operation} of {ranks} ranks" each "operation": [
            "" "noise.collective",
            "quietest tenth" "noise.collective_quiet",
        ];
        detail "waiting for a rank, {operation}" each "operation": [
            "rank {rank}" "noise.late_fraction" greatest,
        ];
        detail "time lost, taken or slowed down": ["" "noise.lost_fraction{cpu=all}"];
        detail "slowed down": ["" "noise.slowdown_fraction{cpu=all}"];
        detail "stalls too short for a gap": ["CPU {cpu}" "noise.microstall_fraction{cpu=*}" greatest];
        detail "CPU {cpu}, time taken" each "cpu": ["" "noise.stolen_fraction{cpu=*,!cpu=all}"];
        detail "CPU {cpu}, gaps" each "cpu": [
            "p50" "noise.detour_duration" quantile("0.5"),
            "p99" "noise.detour_duration" quantile("0.99"),
            "p99.9" "noise.detour_duration" quantile("0.999"),
            "longest" "noise.detour_duration" max,
        ];
        detail "regular, {source} (CPU {cpu})" each "source": ["" "noise.period{cpu=*}"];
    }
    "TAKEN" {
        row "{source}" each "source": ["" "noise.source_fraction{cpu=all}"];
    }
}

pub const INFO: Info = Info {
    name: "noise",
    question: "Threads and interrupts that take CPU time, when, and how much",
    method: "One loop per CPU repeats a small work unit and reads the counter after each. The turns per window give the fixed-time-quantum \
             counts, and turns that take too long give the list of gaps; both come from the same loop. Stolen time (gaps) is separate from \
             slowdown (the loop runs, but slower). As root, the kernel's own events, recorded in a private trace instance with the same \
             clock, name the cause of each gap.",
    references: &[
        "M. Sottile, R. Minnich: Analysis of microbenchmarks for performance tuning of clusters, IEEE Cluster 2004 (FTQ)",
        "P. Beckman et al.: Benchmarking the effects of operating system interference on extreme-scale parallel machines, \
         Cluster Computing 11, 2008 (selfish detour)",
        "T. Hoefler, T. Schneider, A. Lumsdaine: Characterizing the influence of system noise on large-scale applications by \
         simulation, SC 2010",
    ],
    metrics: &[METRICS],
    rows: ROWS,
    lasting: |_| false,
    codes: &[CODES],
    example_job: "noise.toml",
};
