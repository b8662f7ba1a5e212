//! What the interactive probe says about itself: metrics, warnings, method, sources.

use machmeter_data::{Code, MetricInfo, code};
use machmeter_engine::Info;

machmeter_data::metrics! {
    ["task", "load"] Nanoseconds Lower weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        LATENESS = "interactive.lateness"
            "Wait from the scheduled release of a job until it began (dropped ones: until given up): mean, quantiles, maximum. Of gaming: time by which a frame took longer than its CPU time.";
        JITTER = "interactive.jitter"
            "Standard deviation of the lateness (the true one; interbench prints a root mean square under that name).";
        WAKE = "interactive.wake"
            "Wait for a wake-up per executed job that slept, over all threads of a chain: median, quantiles, maximum.";
        PREEMPT = "interactive.preempt"
            "Time per executed job in which it had begun and did not have the CPU: mean, quantiles, maximum.";
        RESPONSE = "interactive.response" "Time from release to done of executed jobs: median, quantiles, maximum.";
        FRAME_TIME = "interactive.frame_time"
            "Time between the ends of consecutive executed frames: median, quantiles, maximum.";
    }
    ["task", "load", "p"] Nanoseconds Lower weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        LATENESS_QUANTILE = "interactive.lateness_quantile"
            "Lateness that p percent of all scheduled releases do not exceed (p is 95, 99 or 99.9), with an interval where there are samples enough.";
    }
    ["task", "load"] One Higher weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        MET = "interactive.deadlines_met"
            "Share of all scheduled releases that were executed and done by their deadline.";
        DESIRED_CPU = "interactive.desired_cpu"
            "CPU time got over CPU time asked for, of all scheduled releases; what a job took beyond its request does not count. Of gaming: over wall time.";
    }
    ["task", "load"] Count Neither weakened by [] {
        SCHEDULED = "interactive.scheduled" "Releases by schedule; equals recorded + dropped.";
    }
    ["task", "load"] Count Neither weakened by [Preemption] {
        RECORDED = "interactive.recorded" "Releases that were executed.";
    }
    ["task", "load"] Count Lower weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        DROPPED = "interactive.dropped" "Releases that were given up.";
        MISS_RUN = "interactive.longest_miss_run" "Longest run of consecutive releases that missed their deadline.";
        SAFE_BUFFER = "interactive.safe_buffer"
            "Fewest periods of buffer without an xrun in this recording; none when even the largest that the task tells of ran dry.";
    }
    ["task", "load"] Nanoseconds Neither weakened by [Frequency, SharedCore, Clock] {
        CPU = "interactive.cpu" "CPU time per executed job by the thread's clock: median and quantiles.";
    }
    ["task", "load"] One Neither weakened by [Preemption, Clock] {
        KERNEL_WAIT = "interactive.kernel_wait_ratio"
            "Waits as recorded (wake-ups and preemption, less the undisturbed cost of a wake-up) over the kernel's run delay of the same threads: 1 when both accounts agree.";
    }
    ["task", "load", "buffers"] Count Lower weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        XRUNS = "interactive.xruns"
            "Times an audio buffer of so many periods ran dry; refused of buffers longer than what the task gives up.";
    }
    ["task", "load", "definition"] Hertz Higher weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        LOW_RATE = "interactive.low_rate"
            "1 % low of the frame rate: `percentile` is the rate at the 99th percentile of frame times, `tail-mean` that of the mean of the slowest 1 %.";
    }
    ["task", "load"] Hertz Lower weakened by [Frequency, Preemption, WakeUp, Clock, ClockOffset] {
        STUTTERS = "interactive.stutters" "Frames that took more than 1.5 times the task's own frame time (its period, or what a frame costs by itself), per second.";
    }
    ["load", "task"] Hertz Higher weakened by [Frequency, Preemption, SharedCore] {
        LOAD_WORK = "interactive.load_work"
            "Units of work per second that the load got done beside the task: the price of its latency.";
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
        what: "A task with deadlines missed more than 1 % of them under some load, and more than chance makes of 1 %.",
        why: "What runs like this task will be heard or seen to stutter under that load.",
        how: "Counted over all scheduled releases, dropped ones included.",
        next: "Give the task a real-time policy or a shorter slice, the load a nice value or a control group; larger buffers.",
    },
    code! { "W311" "segment not whole",
        what: "A recording of a cell ended early or its process died.",
        why: "The cell's figures rest on what was recorded until then.",
        how: "The process of the task ended, was killed, had no room for more jobs, or could not be read in time.",
        next: "See the text for the cause; repeat the run.",
    },
    code! { "W312" "load not at work",
        what: "A load could not be started, or died while a task was measured.",
        why: "The cells of that load are missing or were measured without it.",
        how: "The load's process tree told so, or ended.",
        next: "See the text for the cause.",
    },
    code! { "W313" "load weakened here",
        what: "A load runs, but not as it would elsewhere: no swap, no memory group, no direct I/O, a small budget.",
        why: "Its figures compare only with runs under the same condition.",
        how: "The load says so when it starts.",
        next: "See the text.",
    },
    code! { "W314" "few samples",
        what: "A figure has no interval: too few of its samples are independent, or too few disturbed stretches were seen.",
        why: "Neighbors in time are alike, so that many releases can say as little as a few; p99.9 of less than 1000 samples is \
              one of the largest, no estimate; a mean that one disturbed stretch makes can be anything in the next run.",
        how: "Independent samples by the memory of the stream, at least 13 (more beyond a quantile), and clusters by the third \
              moment of sums over blocks.",
        next: "Measure longer: -t or -l.",
    },
    code! { "W315" "accounts disagree",
        what: "The kernel's run delay of a cell cannot be the waits that were recorded, by more than 10 % and 1 ms per second.",
        why: "The split into waiting and working cannot be trusted in that cell.",
        how: "schedstat holds all preemption (less steal and looks at clocks, the median of the jobs), and of the waits to be woken the part on a run queue: less or more than that is wrong.",
        next: "Look for steal (E110), real-time throttling (E306), another user's real-time threads.",
    },
    code! { "W316" "CPU demand missed",
        what: "The CPU time of the median job differs from the request by more than 1 %.",
        why: "The task is another one than asked for.",
        how: "Thread clock of every job.",
        next: "Very short jobs cannot be dosed to 1 %; look for steal (E110).",
    },
    code! { "W317" "steal during the run",
        what: "The hypervisor took more than 0.5 % of the CPUs during some segments.",
        why: "Lateness of those segments is not the scheduler's doing alone.",
        how: "Steal time of the measured CPUs in /proc/stat around each segment.",
        next: "A dedicated instance, or a quieter time.",
    },
    code! { "W318" "policy held back",
        what: "The kernel takes time from real-time threads on purpose (throttling, fair server), and a cell shows the gaps.",
        why: "Maxima of about that length are the kernel's protection, not its scheduling.",
        how: "The limits as read, and waits of 80 to 120 % of their length.",
        next: "See E306.",
    },
    code! { "W319" "prediction outside of what was recorded",
        what: "A prediction rests on a recording too short for the task, or on gaps that may be the meter's own.",
        why: "Rare long gaps rule the misses.",
        how: "Length of the recording against the period; policy of the meter, and whether its culprits have names.",
        next: "Record noise for longer (machmeter noise -t 2m); under a real-time policy as root, so that it is seen when the kernel holds the meter back.",
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
    question: "How late do audio, video, games and my tasks run under load?",
    method: "Runs tasks (job streams with a release law, a demand of CPU time and a deadline) under loads, each in processes of \
             its own, and records every release: how long it waited to begin, how long it was kept from the CPU, when it was \
             done. Measurement starts at the scheduled release; there is no helper thread whose delay could hide the task's, \
             and what is dropped is counted. Wake-up, preemption and CPU time close to the response of every job and are \
             checked against the kernel's own account. Intervals come from blocks of time, since neighbors are alike. The load \
             tells how much work it got done: the price of latency.",
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
