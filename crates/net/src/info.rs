//! What the net probe says about itself: metrics, warnings, method, sources.

use machmeter_engine::Info;
use machmeter_engine::disturbance::placement::MOVES;

machmeter_data::metrics! {
    ["transport", "direction", "from_bytes", "peer"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        LATENCY = "net.latency"
            "L of LogGPS: time of the first byte on its way, without the overheads of either end, for messages from a size on.";
        OVERHEAD_SEND = "net.overhead_send"
            "o_s of LogGPS: time that the sender's CPU is busy with a message, after a pause as long as a message takes or longer.";
        OVERHEAD_RECV = "net.overhead_recv"
            "o_r of LogGPS: time that the receiver's CPU is busy with a message that is there already.";
        GAP = "net.gap"
            "g of LogGPS: least time from one message to the next, of the smallest message of a range of sizes; not known where the CPUs set the pace.";
        MESSAGE_TIME = "net.message_time"
            "Time per message of a train of 16, of the smallest message of a range of sizes, whoever sets the pace.";
        ONE_WAY = "net.one_way"
            "Half of a round trip of one message there and one back, both ends polling, of the smallest message of a range of sizes: L, o_s, o_r and its bytes together.";
    }
    ["transport", "direction", "from_bytes", "peer"] NanosecondsPerByte Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        GAP_PER_BYTE = "net.gap_per_byte"
            "G of LogGPS: time per further byte of a train of messages, for messages from a size on.";
        ONE_WAY_PER_BYTE = "net.one_way_per_byte"
            "Time per further byte of one message alone, one way, for messages from a size on: above G where ends move bytes one after the other.";
    }
    ["transport"] Bytes Neither weakened by [Preemption] {
        THRESHOLD = "net.sync_threshold"
            "S of LogGPS: largest message that a send hands to a fresh link while nobody receives; the sender of a larger one waits.";
    }
    ["transport", "wait", "load", "peer"] Nanoseconds Lower weakened by [Frequency, Preemption, WakeUp, SharedCore, Clock] {
        ROUND_TRIP = "net.round_trip"
            "Round trip of one byte, each timed by itself: median and quantiles, with ends that poll or that sleep.";
    }
    ["transport", "direction", "peer"] One Lower weakened by [Preemption, SharedCore] {
        PREDICTION_ERROR = "net.prediction_error"
            "Median distance between trains that were kept back from the fit and what net.one_way and net.message_time with their times per byte predict for them, relative.";
    }
}

machmeter_data::code! { pub(crate) NOT_MEASURED = "W460" "links not measured",
    what: "Links could not be measured; the reason is in the text.",
    why: "Their figures are missing, not zero.",
    how: "The probe ended with an error before its first sample, or the far end of a link failed.",
    next: "Give it what it lacks: two CPUs, rights to open sockets.",
}

machmeter_data::code! { pub(crate) LEFT_OUT = "W461" "sizes left out",
    what: "The largest messages have no figure: their trains would have taken the time of all others, or got too few samples.",
    why: "The gap per byte of the last range comes from smaller messages, and is marked: larger ones may take another.",
    how: "A first look at round trips of up to four sizes, times the visits that the fit needs; sizes of the plan that have no figure.",
    next: "Measure longer (-t), or fewer transports (--transports).",
}

machmeter_data::code! { pub(crate) UNPREDICTED = "W462" "parameters do not predict",
    what: "Trains that were kept back from the fit took another time than its parameters say.",
    why: "Predictions for programs will be off by as much, or more.",
    how: "Trains of 4 messages at sizes between those of the fit; the median of their distances is above 10 %.",
    next: "Repeat it in a quiet hour; look at the picture of the time per message for sizes that follow no line.",
}

machmeter_data::code! { pub(crate) LOAD_WEAKENED = "W463" "load of round trips",
    what: "The load beside which round trips were timed says something of itself.",
    why: "Round trips beside it are those of a weaker or another load.",
    how: "Each load tells at its end what it could not do here and what it did to the machine.",
    next: "`machmeter list loads` tells what each needs; another load is --load NAME.",
}

machmeter_data::code! { pub(crate) NOT_REACHED = "W464" "no time",
    what: "Figures are missing because the time was over before they had their samples.",
    why: "They are not known: no line of the page has them.",
    how: "Each figure needs several visits of its link; other links and other load on the CPUs take the time of some.",
    next: "Measure longer (-t), or fewer transports (--transports).",
}

machmeter_data::rows! { ROWS:
    "NET" {
        row "round trip, polling": [
            "{transport}" "net.round_trip{wait=polling,transport=shm}",
            "{transport}" "net.round_trip{wait=polling,transport=unix}",
            "{transport}" "net.round_trip{wait=polling,transport=tcp}",
        ];
        detail "round trip, asleep": [
            "{transport}" "net.round_trip{wait=sleeping,transport=shm}",
            "{transport}" "net.round_trip{wait=sleeping,transport=unix}",
            "{transport}" "net.round_trip{wait=sleeping,transport=tcp}",
        ];
        detail "round trip of {transport}, polling" each "transport": [
            "median" "net.round_trip{wait=polling}",
            "p99" "net.round_trip{wait=polling}" quantile("0.99"),
            "p99.9" "net.round_trip{wait=polling}" quantile("0.999"),
        ];
        detail "round trip of {transport}, asleep" each "transport": [
            "median" "net.round_trip{wait=sleeping}",
            "p99" "net.round_trip{wait=sleeping}" quantile("0.99"),
            "p99.9" "net.round_trip{wait=sleeping}" quantile("0.999"),
        ];
        detail "round trip of {transport} beside {load}, polling" each "transport": [
            "median" "net.round_trip{wait=polling,load=*}",
            "p99" "net.round_trip{wait=polling,load=*}" quantile("0.99"),
        ];
        detail "round trip of {transport} beside {load}, asleep" each "transport": [
            "median" "net.round_trip{wait=sleeping,load=*}",
            "p99" "net.round_trip{wait=sleeping,load=*}" quantile("0.99"),
        ];
        detail "message, {transport}" each "transport": [
            "in a train" "net.message_time{from_bytes=1}",
            "sent" "net.overhead_send{from_bytes=1}",
            "received" "net.overhead_recv{from_bytes=1}",
            "latency" "net.latency{from_bytes=1}",
        ];
        detail "byte more, {transport}" each "transport": ["" "net.gap_per_byte" last("from_bytes")];
        detail "send waits above, {transport}" each "transport": ["" "net.sync_threshold"];
        detail "prediction off by, {transport}" each "transport": ["" "net.prediction_error"];
    }
}

pub(crate) const INFO: Info = Info {
    name: "net",
    question: "What does a message cost between two processes?",
    method: "Parametrized round trips: a train of messages there and one message back, timed by the sender's clock alone, over sizes in \
             equal ratios, refined around breaks and bisected to the byte where the time per message jumps. Work between messages gives \
             the overhead of a send, a far end that waits until messages are there that of a receive. Only ends that poll are \
             fitted; those that sleep get round trips. What cannot be told is a bound with its reason.",
    references: &[
        "D. Culler et al.: LogP: towards a realistic model of parallel computation, PPoPP 1993",
        "A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman: LogGP: incorporating long messages into the LogP model, SPAA 1995",
        "F. Ino, N. Fujimoto, K. Hagihara: LogGPS: a parallel computational model for synchronization analysis, PPoPP 2001",
        "T. Hoefler, A. Lichei, W. Rehm: Low-overhead LogGP parameter assessment for modern interconnection networks, PMEO 2007",
    ],
    metrics: &[&[
        LATENCY,
        OVERHEAD_SEND,
        OVERHEAD_RECV,
        GAP,
        MESSAGE_TIME,
        ONE_WAY,
        GAP_PER_BYTE,
        ONE_WAY_PER_BYTE,
        THRESHOLD,
        ROUND_TRIP,
        PREDICTION_ERROR,
    ]],
    rows: ROWS,
    // What two CPUs pay depends on their placement at the hour, which the figure names.
    lasting: |_| false,
    codes: &[&[NOT_MEASURED, LEFT_OUT, UNPREDICTED, LOAD_WEAKENED, NOT_REACHED, MOVES]],
    example_job: "net.toml",
};
