//! What the net probe says about itself: metrics, warnings, method, sources.

use machmeter_engine::Info;
use machmeter_engine::disturbance::placement::MOVES;

machmeter_data::metrics! {
    ["transport", "direction", "from_bytes", "peer"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        LATENCY = "net.latency"
            "L of LogGPS: transit time of the first byte, without the overheads of the two ends, for sizes from from_bytes on.";
        OVERHEAD_SEND = "net.overhead_send"
            "o_s of LogGPS: time that a message occupies the sender's CPU, after a pause of at least one message time.";
        OVERHEAD_RECV = "net.overhead_recv"
            "o_r of LogGPS: time that a message which has arrived occupies the receiver's CPU.";
        GAP = "net.gap"
            "g of LogGPS: shortest time between messages, for the smallest message of a size range. Unknown if the CPUs limit the rate.";
        MESSAGE_TIME = "net.message_time"
            "Time per message in a train of 16, for the smallest message of a size range, whether link or CPUs limit the rate.";
        ONE_WAY = "net.one_way"
            "Half of a round trip of one message each way with both ends polling, for the smallest message of a size range: the sum of L, \
             o_s, o_r and the time of its bytes.";
    }
    ["transport", "direction", "from_bytes", "peer"] NanosecondsPerByte Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        GAP_PER_BYTE = "net.gap_per_byte"
            "G of LogGPS: time per additional byte in a train of messages, for sizes from from_bytes on.";
        ONE_WAY_PER_BYTE = "net.one_way_per_byte"
            "Time per additional byte of a single message, one way, for sizes from from_bytes on. It is above G if the two ends move bytes one after the other.";
    }
    ["transport"] Bytes Neither weakened by [Preemption] {
        THRESHOLD = "net.sync_threshold"
            "S of LogGPS: largest message that a send completes on a fresh link while no process receives. The sender of a larger message waits.";
    }
    ["transport", "wait", "load", "peer"] Nanoseconds Lower weakened by [Frequency, Preemption, WakeUp, SharedCore, Clock] {
        ROUND_TRIP = "net.round_trip"
            "Round trip of one byte, each timed separately: median and quantiles, with polling or sleeping ends.";
    }
    ["transport", "direction", "peer"] One Lower weakened by [Preemption, SharedCore] {
        PREDICTION_ERROR = "net.prediction_error"
            "Median relative error of the prediction for trains that were kept back from the fit. The prediction uses net.one_way, \
             net.message_time and their times per byte.";
    }
}

machmeter_data::code! { pub(crate) NOT_MEASURED = "W460" "links not measured",
    what: "Links were not measured; the text gives the reason.",
    why: "Their figures are missing, not zero.",
    how: "The probe ended with an error before its first sample, or the far end of a link failed.",
    next: "Remove the cause: the probe needs two CPUs and permission to open sockets.",
}

machmeter_data::code! { pub(crate) LEFT_OUT = "W461" "sizes left out",
    what: "The largest messages have no figure: their trains would have used the time of all others, or got too few samples.",
    why: "The gap per byte of the last range comes from smaller messages, and is marked. Larger messages may differ.",
    how: "A first look at round trips of up to four sizes, times the visits that the fit needs; and sizes of the plan without a figure.",
    next: "Measure longer (-t), or fewer transports (--transports).",
}

machmeter_data::code! { pub(crate) UNPREDICTED = "W462" "parameters do not predict",
    what: "The fitted parameters do not predict the trains that were kept back from the fit.",
    why: "Predictions for programs will be off by the same amount, or more.",
    how: "Trains of 4 messages at sizes between those of the fit: the median error is above 10 %.",
    next: "Repeat at a quieter time. The chart of the time per message shows sizes that do not lie on a line.",
}

machmeter_data::code! { pub(crate) LOAD_WEAKENED = "W463" "load of round trips restricted",
    what: "The load during the round trips reported a restriction or a side effect.",
    why: "The round trips under this load are those of a weaker or different load.",
    how: "Each load reports at its end what it could not do here, and what it changed on the machine.",
    next: "`machmeter list loads` describes the loads. Choose another one with --load NAME.",
}

machmeter_data::code! { pub(crate) NOT_REACHED = "W464" "out of time",
    what: "Figures are missing: the time was over before they had enough samples.",
    why: "These figures are unknown, and no line of the page shows them.",
    how: "Each figure needs several visits of its link. Other links and other load on the CPUs use part of the time.",
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
    question: "The cost of a message between two processes or machines",
    method: "Parametrized round trips: a train of messages one way and one message back, timed by the sender's clock alone. Sizes are in equal \
             ratios, refined around breaks, and bisected to the byte where the time per message jumps. Work between messages gives the \
             overhead of a send. A receiver that starts after the messages have arrived gives the overhead of a receive. The fit uses polling \
             ends only; sleeping ends get round trips. A parameter that cannot be determined is a bound with a reason.",
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
