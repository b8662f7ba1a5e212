//! What the flow probe says about itself: metrics, warnings, method, sources.

use machmeter_data::{Better, Hazard, MetricInfo, Unit};
use machmeter_engine::Info;

machmeter_data::metrics! {
    ["operation", "kernel", "size_bytes", "tokens"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        COST = "flow.cost"
            "Cost of a primitive of the dataflow kernel, without any timer in it: a firing, an activation of a schedule, a block through a queue.";
    }
    ["graph", "kernel", "granularity", "processor"] One Higher weakened by [Frequency, Preemption, SharedCore, Clock] {
        EFFICIENCY = "flow.efficiency"
            "Share of the time that a graph's boxes work, of all that its run takes without the timer's own part.";
    }
    ["graph", "kernel", "granularity", "processor"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        OVERHEAD = "flow.overhead" "Time of the kernel, all that is not apply, by calls of apply.";
    }
    ["graph", "kernel", "granularity", "processor", "timer"] One Neither weakened by [Frequency, Preemption, SharedCore, Clock] {
        SHARE = "flow.share" "Share of the kernel's time that one of its timers has.";
    }
    ["graph", "kernel", "granularity", "processor"] Hertz Higher weakened by [Frequency, Preemption, SharedCore] {
        THROUGHPUT = "flow.apply_rate" "Calls of apply per second of a run without timers.";
    }
    ["graph", "kernel", "granularity"] Hertz Higher weakened by [Frequency, Preemption, SharedCore] {
        RATE = "flow.rate" "Firings of a graph's first box, its source, per second of a run without timers.";
    }
    ["graph", "kernel", "granularity"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore] {
        LATENCY = "flow.latency"
            "Time that a token stays in a graph: iterations fired at once over the rate, and what lies in queues over what passes them (Little's law).";
    }
    ["graph", "granularity"] One Neither weakened by [Frequency, Preemption, SharedCore] {
        RATIO = "flow.published_ratio"
            "Time of the published kernel over that of the fast one for the same work, boxes left out.";
    }
    ["graph", "kernel", "granularity"] One Neither weakened by [Frequency, Preemption, SharedCore] {
        PREDICTION = "flow.prediction"
            "Wall time that virtual time predicts from a stored run, over the wall time measured now.";
    }
}
/// An idea may cost more than it saves.
pub(crate) const WORTH: MetricInfo = MetricInfo {
    id: "flow.worth",
    params: &["graph", "granularity", "idea"],
    unit: Unit::One,
    better: Better::Neither,
    weakened_by: &[Hazard::Frequency, Hazard::Preemption, Hazard::SharedCore],
    description: "Share of the published kernel's excess over the fast one that an idea takes away: mean over the orders in which the three could be introduced.",
    may_be_negative: true,
};

machmeter_data::code! { pub(crate) NOT_MEASURED = "W470" "graphs not measured",
    what: "Graphs or prices could not be measured; the reason is in the text.",
    why: "Their figures are missing, not zero.",
    how: "The graph was refused when it was built, or memory for its queues could not be had.",
    next: "Read the reason: it names box, port and rate, or what the system refused.",
}

machmeter_data::code! { pub(crate) BROKEN = "W471" "counts contradict each other",
    what: "Counts of the kernel's events break a law that holds for every graph.",
    why: "Events were lost or invented; shares and overheads of that table are not to be trusted.",
    how: "Laws such as: passes are applies and runs; an update on consume for each consume. `flow::laws` has them all.",
    next: "This is a mistake of the program: report it with the record.",
}

machmeter_data::code! { pub(crate) BY_DIFFERENCES = "W472" "shorter than its timer",
    what: "More than half of what was stamped for these names is the timer's own part, which was taken off.",
    why: "Their single calls are shorter than a stamp: means hold as far as the calibration does, quantiles below a step of the clock do not.",
    how: "The timer's own part of a slice, measured by empty events, times the slices of a name.",
    next: "Read the prices (flow.cost), which are taken without any timer.",
}

machmeter_data::code! { pub(crate) CONTRADICTS = "W473" "a published table contradicts itself",
    what: "Figures that follow from a published table's own rows are not the ones printed, or its counts break a law.",
    why: "Whoever cites the printed figure cites a mistake; counts that break a law have lost or invented events.",
    how: "Means, percentages and times a firing from totals and calls, shares by group, and the laws of counts.",
    next: "Use the figures of this page, which follow from the rows.",
}

machmeter_data::code! { pub(crate) TAIL = "W474" "rare calls have much of the time",
    what: "Calls of more than ten times the mean have at least this share of a name's time, by what its columns allow.",
    why: "Means and efficiencies of such a table are those of its disturbances as well.",
    how: "The sum of squares that mean, deviation and number of calls give cannot come from calls below ten means alone.",
    next: "Ask for quantiles or histograms; compare such tables only where their tails are alike.",
}

machmeter_data::code! { pub(crate) OVER_FILE = "W476" "graph ran over a file",
    what: "A graph ran over the samples of a file and not over its own signal.",
    why: "Its figures are those of this file: other samples take other branches, and other numbers of frames.",
    how: "The file that --in names was read before the run, and several channels were averaged.",
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
    question: "What does a dataflow runtime cost beside its work?",
    method: "Prices by pairs of batches of a kernel without timers. Benchmark graphs by the published kernel and by one with mirrored queues, a \
             bitmap of ready schedules and fused boxes: once without timers, once with a fenced stamp at each transition, so that all \
             time belongs to one of 43 names. The timer's own part, measured by empty events, is taken off; counts keep laws.",
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
