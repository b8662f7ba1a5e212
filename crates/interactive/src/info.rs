//! What the interactive probe says about itself: metrics, warnings, method, sources.

use machmeter_data::{Code, MetricInfo, code};
use machmeter_engine::Info;

machmeter_data::metrics! {
    ["task", "load"] Nanoseconds Lower weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        LATENESS = "interactive.lateness"
            "Time from the scheduled release of a job to its start; for dropped jobs, until they were given up: mean, quantiles, maximum. \
             gaming: time by which a frame exceeded its CPU time.";
        JITTER = "interactive.jitter"
            "Standard deviation of the lateness. interbench prints a root mean square under this name.";
        WAKE = "interactive.wake"
            "Wake-up latency per executed job that slept, over all threads of a chain: median, quantiles, maximum.";
        PREEMPT = "interactive.preempt"
            "Time per executed job without the CPU after its start: mean, quantiles, maximum.";
        RESPONSE = "interactive.response"
            "Time from release to completion of executed jobs: median, quantiles, maximum.";
        FRAME_TIME = "interactive.frame_time"
            "Time between the ends of consecutive executed frames: median, quantiles, maximum.";
    }
    ["task", "load", "p"] Nanoseconds Lower weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        LATENESS_QUANTILE = "interactive.lateness_quantile"
            "Lateness that p percent of all scheduled releases do not exceed (p is 95, 99 or 99.9). With an interval if there are enough samples.";
    }
    ["task", "load"] One Higher weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        MET = "interactive.deadlines_met"
            "Share of all scheduled releases that were executed and finished by their deadline.";
        DESIRED_CPU = "interactive.desired_cpu"
            "CPU time received over CPU time requested, over all scheduled releases. CPU time beyond a job's request does not count. gaming: over wall time.";
    }
    ["task", "load"] Count Neither weakened by [] {
        SCHEDULED = "interactive.scheduled" "Scheduled releases: recorded + dropped.";
    }
    ["task", "load"] Count Neither weakened by [Preemption] {
        RECORDED = "interactive.recorded" "Releases that were executed.";
    }
    ["task", "load"] Count Lower weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        DROPPED = "interactive.dropped" "Releases that were given up.";
        MISS_RUN = "interactive.longest_miss_run"
            "Longest run of consecutive releases that missed their deadline.";
        SAFE_BUFFER = "interactive.safe_buffer"
            "Smallest audio buffer, in periods, without an xrun in this recording. No value if the largest buffer of the task ran dry, too.";
    }
    ["task", "load"] Nanoseconds Neither weakened by [Frequency, SharedCore, Clock] {
        CPU = "interactive.cpu"
            "CPU time per executed job, from the thread's CPU clock: median and quantiles.";
    }
    ["task", "load"] One Neither weakened by [Preemption, Clock] {
        KERNEL_WAIT = "interactive.kernel_wait_ratio"
            "Recorded waits over the kernel's run delay of the same threads: 1 if both agree. Recorded waits are wake-ups and preemption, \
             without the undisturbed cost of a wake-up.";
    }
    ["task", "load", "buffers"] Count Lower weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        XRUNS = "interactive.xruns"
            "How often an audio buffer of this many periods ran dry. No value for buffers longer than the lateness at which the task gives up a job.";
    }
    ["task", "load", "definition"] Hertz Higher weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        LOW_RATE = "interactive.low_rate"
            "1 % low of the frame rate. `percentile`: the rate at the 99th percentile of frame times; `tail-mean`: the rate of the mean of the slowest 1 %.";
    }
    ["task", "load"] Hertz Lower weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        STUTTERS = "interactive.stutters"
            "Frames per second that took more than 1.5 times the task's own frame time (its period, or the cost of a frame by itself).";
    }
    ["load", "task"] Hertz Higher weakened by [Frequency, Preemption, SharedCore] {
        LOAD_WORK = "interactive.load_work"
            "Work of the load per second while the task ran: the price of the task's latency.";
    }
}

pub const METRICS: &[MetricInfo] = &[
    LATENESS,
    LATENESS_QUANTILE,
    JITTER,
    MET,
    DESIRED_CPU,
    SCHEDULED,
    RECORDED,
    DROPPED,
    MISS_RUN,
    WAKE,
    PREEMPT,
    CPU,
    RESPONSE,
    KERNEL_WAIT,
    XRUNS,
    SAFE_BUFFER,
    FRAME_TIME,
    LOW_RATE,
    STUTTERS,
    LOAD_WORK,
];

pub const CODES: &[Code] = &[
    code! { "W310" "deadlines missed",
        what: "A task missed more than 1 % of its deadlines under some load, and chance does not explain it.",
        why: "Programs like this task will stutter audibly or visibly under that load.",
        how: "Misses over all scheduled releases, dropped ones included.",
        next: "Give the task a real-time policy, a shorter slice or larger buffers. Give the load a nice value or a control group.",
    },
    code! { "W311" "segment incomplete",
        what: "The recording of a cell ended early, or its process died.",
        why: "The figures of the cell cover only the time until then.",
        how: "The process of the task ended, was killed, had no room for more jobs, or could not be read in time.",
        next: "The text names the cause. Repeat the run.",
    },
    code! { "W312" "load not running",
        what: "A load could not be started, or died during the measurement of a task.",
        why: "The cells of that load are missing, or were measured without it.",
        how: "The load's process tree reported a failure, or ended.",
        next: "The text names the cause.",
    },
    code! { "W313" "load restricted",
        what: "A load runs with restrictions: no swap, no memory group, no direct I/O, or a small budget.",
        why: "Its figures are comparable only with runs under the same restriction.",
        how: "The load reports its restrictions when it starts.",
        next: "The text names the restriction.",
    },
    code! { "W314" "few samples",
        what: "A figure has no interval: too few of its samples are independent, or too few disturbances occurred.",
        why: "Releases close in time are alike, so many releases can carry little information. The p99.9 of fewer than 1000 samples is one of the \
              largest samples, not an estimate. A mean that depends on one disturbance can differ widely in the next run.",
        how: "The number of independent samples, from the correlation of the stream: at least 13, and more for a quantile. The number of clusters, from \
              the third moment of block sums.",
        next: "Measure longer: -t or -l.",
    },
    code! { "W315" "accounts disagree",
        what: "The recorded waits of a cell contradict the kernel's run delay by more than 10 % and 1 ms per second.",
        why: "The split of time into waiting and working is not reliable in that cell.",
        how: "schedstat counts all preemption (without steal and the cost of clock reads), and the part of each wake-up that was spent on a run queue. \
              The recorded waits give a lower and an upper bound for this count.",
        next: "Check steal (E110), real-time throttling (E306) and real-time threads of other users.",
    },
    code! { "W316" "CPU demand missed",
        what: "The CPU time of the median job differs from the request by more than 1 %.",
        why: "The task that ran is not the task that was requested.",
        how: "The thread clock of every job.",
        next: "Very short jobs cannot be set to within 1 %. Check steal (E110).",
    },
    code! { "W317" "steal during the run",
        what: "The hypervisor took more than 0.5 % of the CPUs during some segments.",
        why: "The lateness in those segments includes the hypervisor, not only the scheduler.",
        how: "Steal time of the measured CPUs in /proc/stat around each segment.",
        next: "Use a dedicated instance, or measure at a quieter time.",
    },
    code! { "W318" "real-time policy limited",
        what: "The kernel takes time from real-time threads on purpose (throttling, fair server), and a cell shows the gaps.",
        why: "Maxima of about that length come from this protection, not from scheduling.",
        how: "The limits of the kernel, and waits of 80 to 120 % of their length.",
        next: "See E306.",
    },
    code! { "W319" "prediction beyond its recording",
        what: "A prediction rests on a recording too short for the task, or on gaps that machmeter itself may have caused.",
        why: "A few long gaps decide the number of misses.",
        how: "The length of the recording against the period; the policy of the meter; and whether the causes of gaps have names.",
        next: "Record noise for longer (machmeter noise -t 2m). Under a real-time policy, record as root: then the gaps caused by the kernel's own limits have names.",
    },
];

machmeter_data::rows! { ROWS:
    "INTERACTIVE" {
        row "{task} p99" each "task": [
            "idle" "interactive.lateness{load=none}" quantile("0.99"),
            "under {load}" "interactive.lateness{!load=none}" quantile("0.99") worst,
        ];
        detail "{task} longest" each "task": [
            "idle" "interactive.lateness{load=none}" max,
            "under {load}" "interactive.lateness{!load=none}" max worst,
        ];
        detail "{task} deadlines met" each "task": [
            "idle" "interactive.deadlines_met{load=none}",
            "under {load}" "interactive.deadlines_met{!load=none}" worst,
        ];
        detail "{task} buffers that suffice" each "task": [
            "idle" "interactive.safe_buffer{load=none}",
            "under {load}" "interactive.safe_buffer{!load=none}" worst,
        ];
    }
}

pub const INFO: Info = Info {
    name: "interactive",
    question: "Lateness of audio, video, games and your own tasks under load",
    method: "Runs tasks (job streams with a release law, a CPU demand and a deadline) under loads, each in separate processes. Every release \
             is recorded: its wait until the start, its time without the CPU, and its completion. Measurement starts at the scheduled \
             release. There is no helper thread whose delay could hide that of the task, and dropped releases count. Wake-up, preemption and \
             CPU time add up to the response time of every job, and are checked against the kernel's own counters. Intervals come from \
             blocks of time, because releases close in time are alike. Each load reports its completed work: the price of latency.",
    references: &[
        "C. Kolivas, interbench 0.31 (2006): tasks, loads and figures; its readme is this probe's minimum",
        "G. Tene, How NOT to measure latency (2013): coordinated omission",
        "B. Efron, R. Tibshirani, An Introduction to the Bootstrap (1993); H. Kuensch, Annals of Statistics 17 (1989): blocks",
        "Linux: Documentation/scheduler/sched-eevdf.rst, sched-deadline.rst, sched-stats.rst",
    ],
    metrics: &[METRICS],
    rows: ROWS,
    lasting: |_| false,
    codes: &[CODES],
    example_job: "interactive.toml",
};
