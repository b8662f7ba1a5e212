//! Metrics, rows and codes of a watched program.

use machmeter_data::{Code, MetricInfo, code, metrics, rows};
use machmeter_engine::Info;

metrics! {
    [] Nanoseconds Lower weakened by [] {
        RAN = "beside.ran" "Time that all threads of the program had a CPU.";
        LONGEST = "beside.longest_wait" "Longest time that a thread of the program was runnable without a CPU.";
    }
    [] Count Lower weakened by [] {
        WAITS = "beside.waits" "Times that a thread of the program was runnable without a CPU.";
    }
    ["cause"] One Lower weakened by [] {
        WAIT = "beside.wait_fraction"
            "Share of the time in which threads of the program could run, but waited for a CPU, in all and by cause. The causes add up to all.";
        TAKEN = "beside.taken_fraction"
            "Share of the program's run time that interrupt handlers or the hypervisor took. The program does not wait then; it makes no progress.";
    }
    ["source", "kind"] One Lower weakened by [Rights] {
        SOURCE = "beside.source_fraction"
            "Share of the time in which threads of the program could run, but another program had their CPU.";
    }
    [] One Lower weakened by [] {
        OWN = "beside.own_fraction" "CPU time that the watch itself took, as a share of the run time of one CPU.";
    }
}

/// All metrics.
const METRICS: &[MetricInfo] = &[RAN, LONGEST, WAITS, WAIT, TAKEN, SOURCE, OWN];

rows! { ROWS: "BESIDE" {
    row "program": ["CPU time" "beside.ran", "waited for a CPU" "beside.wait_fraction{cause=all}"];
    row "waited, {cause}" each "cause": ["" "beside.wait_fraction{!cause=all}"];
    row "waited for {source}" each "source": ["" "beside.source_fraction"];
    row "while it ran, {cause}" each "cause": ["" "beside.taken_fraction"];
    row "longest wait": ["" "beside.longest_wait"];
    detail "waits": ["" "beside.waits"];
    detail "cost of the watch": ["" "beside.own_fraction"];
} }

code! { pub(super) NO_NAMES = "W330" "no names",
    what: "The kernel's trace cannot be used, so the waits of the program have amounts and no causes.",
    why: "The scheduler's counters tell how long each thread waited for a CPU, but not who had it. A thread that ends between two readings loses up to 20 ms.",
    how: "The trace needs root and tracefs. The text gives the reason of the kernel.",
    next: "Run as root for causes and names.",
}
code! { pub(super) LOST = "W331" "events lost",
    what: "The kernel's trace lost events while the program ran.",
    why: "Waits and run times between a lost event and the next one are missing or charged to the wrong thread.",
    how: "The kernel counts the events that found no room in its buffers.",
    next: "Watch fewer switches: a part of the program, or a shorter time (-t with --pid).",
}
code! { pub(super) QUOTA = "W332" "held back by a quota",
    what: "The program used up the CPU quota of its control group, and the kernel held it back.",
    why: "No other program took this time; the limit did.",
    how: "cpu.stat of the program's groups counts the periods and the time.",
    next: "Raise the quota (cpu.max, docker --cpus, the CPU limit in Kubernetes), or give the program fewer threads.",
}

/// All codes.
const CODES: &[Code] = &[NO_NAMES, LOST, QUOTA];

/// What `machmeter noise -- CMD` says about itself.
pub const INFO: Info = Info {
    name: "beside",
    question: "How long a program waited for a CPU, and who had it",
    method: "A private trace of the scheduler follows all threads of the program; without root the scheduler's counters give amounts.",
    references: &["Linux Documentation/scheduler/sched-stats.rst: run delay"],
    metrics: &[METRICS],
    rows: ROWS,
    lasting: |_| false,
    codes: &[CODES],
    example_job: "",
};
