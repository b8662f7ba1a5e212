//! What the noise probe says about itself: metrics, warnings, method, sources.

use machmeter_data::{Code, MetricInfo, code};
use machmeter_engine::Info;

machmeter_data::metrics! {
    ["cpu", "rank", "quantum"] Nanoseconds Lower weakened by [Frequency, SharedCore, Clock] {
        TURN = "noise.turn"
            "Cost of one undisturbed turn of the loop: one work unit, one tick read, two comparisons.";
    }
    ["cpu", "rank"] One Lower weakened by [Preemption, Clock] {
        STOLEN = "noise.stolen_fraction"
            "Share of wall time in which the loop did not run (gaps), without the work of the interrupted turns.";
    }
    ["cpu", "rank"] One Lower weakened by [Frequency, SharedCore, Clock] {
        SLOWDOWN = "noise.slowdown_fraction"
            "Share of wall time lost because the loop ran slower than its own best 5 % of windows.";
    }
    ["cpu", "rank"] One Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        LOST = "noise.lost_fraction"
            "Share of wall time lost to anything, by stolen time or by slowdown: what is missing to the count of undisturbed windows.";
    }
    ["cpu", "rank"] Hertz Lower weakened by [Preemption, Clock] {
        RATE = "noise.detour_rate" "Gaps of 500 ns or more per second of wall time.";
    }
    ["cpu", "rank"] Nanoseconds Lower weakened by [Preemption, Clock] {
        DURATION = "noise.detour_duration"
            "Duration of gaps of 500 ns or more, one undisturbed turn subtracted: median, quantiles, maximum.";
    }
    ["cpu", "rank", "source", "kind"] One Lower weakened by [Preemption, Clock, Rights] {
        SOURCE = "noise.source_fraction"
            "Share of wall time taken by one source; together, with micro-stalls and what was too short to be listed, they make the stolen time.";
    }
    ["cpu", "rank", "class", "source"] Hertz Neither weakened by [Preemption, Clock] {
        PERIOD = "noise.period"
            "Frequency of a periodic source of gaps, found in the event times of one class of durations or one source.";
    }
    ["cpu", "rank"] One Lower weakened by [SharedCore, Clock] {
        MICROSTALL = "noise.microstall_fraction"
            "Share of wall time in gaps of less than 500 ns: stalls by the hardware thread next door, too short for a kernel.";
    }
    ["cpu", "rank"] Hertz Lower weakened by [SharedCore, Clock] {
        MICROSTALL_RATE = "noise.microstall_rate"
            "Clusters of gaps of less than 500 ns per second of wall time; single ones are clusters of one.";
    }
    ["cpu", "rank"] One Lower weakened by [Clock] {
        OWN = "noise.own_fraction"
            "Share of wall time that the meter took for its own notes and wake-ups; it is in no other figure.";
    }
    ["operation", "ranks"] Nanoseconds Lower weakened by [Preemption, Clock] {
        COLLECTIVE = "noise.collective"
            "Cost of a collective operation after 50 us of work on each rank: from when half of the ranks have come to the last end. Mean.";
        COLLECTIVE_QUIET = "noise.collective_quiet"
            "The same in the quietest tenth of the turns: its median. What noise adds is the difference.";
    }
    ["operation", "rank"] One Lower weakened by [Preemption, Clock] {
        LATE = "noise.late_fraction"
            "Share of the time in which ranks wait for the last one that is due to this rank.";
    }
}

/// All metrics of the probe, sorted by id.
pub const METRICS: &[MetricInfo] = &[
    COLLECTIVE,
    COLLECTIVE_QUIET,
    DURATION,
    RATE,
    LATE,
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
    code! { "W301" "few gaps rule",
        what: "Most of the stolen time comes from so few gaps that the share of stolen time will not settle in this run.",
        why: "A mean over a heavy tail is ruled by its few largest members: another run of this length may differ by as much as \
              the share of those few.",
        how: "The share of all stolen time in the gaps that make up half of it, when those are fewer than 30.",
        next: "Measure longer (-t), or read percentiles and rates per class instead of the share.",
    },
    code! { "W303" "page faults in the loop",
        what: "The measuring thread took page faults during the recording.",
        why: "The meter disturbed itself: some gaps are its own memory being mapped.",
        how: "Difference of the thread's fault counters around the loop; 0 in a sound recording.",
        next: "Allow memory locking (ulimit -l) and free memory.",
    },
    code! { "W304" "real-time share",
        what: "The kernel takes time from real-time threads on purpose: the fair server or RT throttling.",
        why: "A measuring thread under a real-time policy loses up to 50 ms of each second whenever an ordinary thread wants the \
              CPU; this shows as gaps of that length and is not the machine's noise.",
        how: "Read from sched_rt_runtime_us and the fair server's settings; named when the policy is real-time.",
        next: "Measure with --prio other, or move ordinary threads off the CPU.",
    },
    code! { "W305" "trace incomplete",
        what: "The kernel's trace lost events; unexplained gaps cannot be called outside the kernel.",
        why: "What an incomplete trace does not show may still have happened.",
        how: "Overrun counters of the private trace buffers.",
        next: "Measure shorter or fewer CPUs.",
    },
    code! { "W306" "culprits not named",
        what: "This run could not see which thread or interrupt caused a gap.",
        why: "Names need the kernel's trace events, which only root or CAP_PERFMON may read.",
        how: "Opening the tracing file system, then per-thread context-switch records, failed or were denied; the reason is in the text.",
        next: "Run as root for the names: sudo machmeter noise. The figures hold without them.",
    },
    code! { "W307" "stopped early",
        what: "The recording ended before its plan.",
        why: "Intervals are wider and rare events less likely to have been seen.",
        how: "Windows closed against windows planned.",
        next: "Run again without interruption.",
    },
    code! { "W308" "recording incomplete in an imported file",
        what: "The imported file lacks something that noise analysis needs.",
        why: "What the other tool did not store cannot be analyzed.",
        how: "Columns and time stamps of the file.",
        next: "Measure again with machmeter noise.",
    },
    code! { "W309" "migrated",
        what: "A measuring thread was not on its CPU at the end of the recording.",
        why: "Its figures belong to more than one CPU.",
        how: "The CPU number after the loop against the one asked for.",
        next: "Look for a program that changes affinities (cgroup cpuset, cpusets of a container) and run again.",
    },
    code! { "W320" "meter stopped",
        what: "A measuring thread was stopped by a signal, a debugger or Ctrl-Z while it recorded.",
        why: "The stop counts as stolen time within the windows of the recording, and is no noise of the machine.",
        how: "The loop never asks for a switch; the kernel counts those of a stopped thread as asked for.",
        next: "Run again without stopping it.",
    },
];

machmeter_data::rows! { ROWS:
    "NOISE" {
        row "CPU time taken": ["" "noise.stolen_fraction{cpu=all}"];
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
        row "{source} (CPU {cpu})" each "source": ["" "noise.source_fraction{cpu=*}" greatest];
    }
}

pub const INFO: Info = Info {
    name: "noise",
    question: "Who steals my CPU, when, and how much?",
    method: "One loop per CPU repeats a small work unit and reads the tick counter after each. Turns per window give the \
             fixed-time-quantum counts, turns that take too long give the list of gaps; both come from the same loop. Time \
             stolen (gaps) is told apart from slowdown (the loop runs, but slower). As root the kernel's own events, recorded in \
             a private trace instance with the same clock, name what happened in each gap.",
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
