//! What the flow probe says about itself: metrics, warnings, method, sources.

use machmeter_data::{Better, Hazard, MetricInfo, Unit};
use machmeter_engine::Info;

machmeter_data::metrics! {
    ["operation", "kernel", "size_bytes", "tokens"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        COST = "flow.cost"
            "Cost of a primitive of the dataflow kernel without a timer: a firing, an activation of a schedule, a block through a queue.";
    }
    ["graph", "kernel", "granularity", "processor"] One Higher weakened by [Frequency, Preemption, SharedCore, Clock] {
        EFFICIENCY = "flow.efficiency"
            "Time of a graph's boxes as a share of the time of the run, without the timer's own time.";
    }
    ["graph", "kernel", "granularity", "processor"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        OVERHEAD = "flow.overhead" "Time of the kernel (everything except apply) per call of apply.";
    }
    ["graph", "kernel", "granularity", "processor", "timer"] One Neither weakened by [Frequency, Preemption, SharedCore, Clock] {
        SHARE = "flow.share" "Share of the kernel's time under one timer.";
    }
    ["graph", "kernel", "granularity", "processor"] Hertz Higher weakened by [Frequency, Preemption, SharedCore] {
        THROUGHPUT = "flow.apply_rate" "Calls of apply per second in a run without timers.";
    }
    ["graph", "kernel", "granularity"] Hertz Higher weakened by [Frequency, Preemption, SharedCore] {
        RATE = "flow.rate" "Firings per second of a graph's first box, its source, in a run without timers.";
    }
    ["graph", "kernel", "granularity"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore] {
        LATENCY = "flow.latency"
            "Time that a token spends in a graph (Little's law): iterations fired at once over the rate, plus tokens in queues over their throughput.";
    }
    ["graph", "granularity"] One Neither weakened by [Frequency, Preemption, SharedCore] {
        RATIO = "flow.published_ratio"
            "Time of the published kernel over that of the fast kernel for the same work, without the boxes.";
    }
    ["graph", "kernel", "granularity"] One Neither weakened by [Frequency, Preemption, SharedCore] {
        PREDICTION = "flow.prediction"
            "Wall time predicted from a stored run with virtual time, over the wall time measured now.";
    }
}
/// An idea may cost more than it saves.
pub(crate) const WORTH: MetricInfo = MetricInfo {
    id: "flow.worth",
    params: &["graph", "granularity", "idea"],
    unit: Unit::One,
    better: Better::Neither,
    weakened_by: &[Hazard::Frequency, Hazard::Preemption, Hazard::SharedCore],
    description: "Share of the published kernel's excess over the fast kernel that one idea removes: mean over all orders of introducing the three ideas.",
    may_be_negative: true,
};

machmeter_data::code! { pub(crate) NOT_MEASURED = "W470" "graphs not measured",
    what: "Graphs or costs of the dataflow kernel were not measured; the text gives the reason.",
    why: "Their figures are missing, not zero.",
    how: "The graph was rejected when it was built, or the memory for its queues was not available.",
    next: "The reason names the box, port and rate, or what the system refused.",
}

machmeter_data::code! { pub(crate) BROKEN = "W471" "counts contradict each other",
    what: "Counts of the kernel's events violate a law that holds for every graph.",
    why: "Events were lost or invented. Do not trust the shares and overheads of that table.",
    how: "Laws such as: passes = applies + runs; one update on consume per consume. `flow::laws` has all of them.",
    next: "This is a bug in the program. Report it with the record.",
}

machmeter_data::code! { pub(crate) BY_DIFFERENCES = "W472" "shorter than its timer",
    what: "More than half of the time under these names was the timer's own time, which was subtracted.",
    why: "Single calls are shorter than a time stamp. Means are as good as the calibration. Quantiles below one step of the clock are not valid.",
    how: "The timer's own part of a slice, measured with empty events, times the number of slices of the name.",
    next: "Use the costs (flow.cost), which are measured without a timer.",
}

machmeter_data::code! { pub(crate) CONTRADICTS = "W473" "a published table contradicts itself",
    what: "A published table contradicts itself: printed figures do not follow from its own rows, or its counts violate a law.",
    why: "The printed figures are wrong. Counts that violate a law have lost or invented events.",
    how: "Means, percentages and times per firing computed from totals and calls; shares by group; the laws of counts.",
    next: "Use the figures of this page, which follow from the rows.",
}

machmeter_data::code! { pub(crate) TAIL = "W474" "rare calls dominate",
    what: "Calls longer than ten times the mean take at least this share of a name's time.",
    why: "Means and efficiencies of such a table include its disturbances.",
    how: "Mean, deviation and number of calls give a sum of squares that calls below ten means cannot reach.",
    next: "Request quantiles or histograms. Compare such tables only if their tails are alike.",
}

machmeter_data::code! { pub(crate) OVER_FILE = "W476" "graph ran over a file",
    what: "A graph processed the samples of a file, not its own signal.",
    why: "The figures apply to this file: other samples take other branches and give other numbers of frames.",
    how: "The file given with --in was read before the run. Several channels were averaged.",
    next: "Compare only runs over the same file.",
}

machmeter_data::rows! { ROWS:
    "FLOW" {
        row "kernel": [
            "firing" "flow.cost{operation=firing,kernel=fast}",
            "activation" "flow.cost{operation=activation,kernel=fast}",
            "block" "flow.cost{operation=produce and consume,kernel=fast,size_bytes=4096}",
        ];
        detail "published kernel": [
            "bare call" "flow.cost{operation=bare call}",
            "activation" "flow.cost{operation=activation,kernel=classic}",
        ];
        detail "efficiency, {graph}" each "graph": [
            "fast" "flow.efficiency{kernel=fused-mirror-bitmap,granularity=1}",
            "published" "flow.efficiency{kernel=table-copy-heap,granularity=1}",
        ];
        detail "firings of the source a second, {graph}" each "graph": [
            "fast" "flow.rate{kernel=fused-mirror-bitmap,granularity=1}",
            "published" "flow.rate{kernel=table-copy-heap,granularity=1}",
        ];
        detail "kernel's time, published over fast, {graph}" each "graph": [
            "in all" "flow.published_ratio{granularity=1}",
            "by mirrored queues" "flow.worth{granularity=1,idea=mirrored queues}",
            "by the bitmap" "flow.worth{granularity=1,idea=bitmap}",
            "by fused boxes" "flow.worth{granularity=1,idea=fused boxes}",
        ];
        detail "predicted over measured, {graph}" each "graph": [
            "wall" "flow.prediction" last("granularity"),
        ];
    }
}

pub(crate) const INFO: Info = Info {
    name: "flow",
    question: "The cost of a dataflow runtime in addition to its work",
    method: "Costs of primitives come from pairs of batches of a kernel without timers. Benchmark graphs run on the published kernel, and on one \
             with mirrored queues, a bitmap of ready schedules and fused boxes. Each graph runs once without timers, and once with a fenced time \
             stamp at each transition, which assigns all time to one of 43 names. The timer's own time, measured with empty events, is \
             subtracted. The counts of events are checked by laws.",
    references: &[
        "K. B. Barnes: Gedae runtime kernel performance characterization, Gedae Inc.",
        "E. A. Lee, D. G. Messerschmitt: Synchronous data flow, Proceedings of the IEEE 75, 1987",
        "A. D. Malony, S. S. Shende: Overhead compensation in performance profiling, Euro-Par 2004",
    ],
    metrics: &[&[COST, EFFICIENCY, OVERHEAD, SHARE, THROUGHPUT, RATE, LATENCY, RATIO, WORTH, PREDICTION]],
    rows: ROWS,
    lasting: |m| m.id == "flow.cost",
    codes: &[&[NOT_MEASURED, BROKEN, BY_DIFFERENCES, CONTRADICTS, TAIL, OVER_FILE]],
    example_job: "flow.toml",
};
