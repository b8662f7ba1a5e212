//! What the mpi probe says about itself: metrics, warnings, method, sources.

use machmeter_engine::Info;
use machmeter_engine::disturbance::placement::MOVES;

machmeter_data::metrics! {
    ["operation", "size_bytes", "ranks", "library"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        COST = "mpi.cost"
            "Time of an operation, one after the other: what a loop of it takes a turn. Of a rank's bytes.";
        ISOLATED = "mpi.isolated"
            "Time of an operation by itself: ranks begin at an agreed moment of one clock; of a collective one until the last is through.";
    }
    ["operation", "term", "from_bytes", "ranks", "library"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        COEFFICIENT = "mpi.coefficient"
            "Factor of a term (1, d, p, log(p), ...) in the law of an operation's cost, ns per unit of the term; for sizes from one on.";
    }
    ["operation", "from_bytes", "ranks", "library"] One Neither weakened by [Frequency, Preemption, SharedCore, Clock] {
        FIT = "mpi.fit"
            "Q: how often errors as large as those known would scatter points further from their law by chance. Below 0.001 the law is wrong.";
    }
    ["operation", "from_bytes", "ranks", "library"] One Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        MISFIT = "mpi.misfit"
            "How far the measured cost farthest from the law lies from it, relative: what reading the law instead of the points may cost.";
    }
    ["receiver", "library"] Bytes Neither weakened by [Preemption] {
        THRESHOLD = "mpi.threshold"
            "Largest message that a blocking send hands over while the receiver sleeps (inline limit), or polls for another (eager limit).";
    }
    ["receive", "from_bytes", "library"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        LATENCY = "mpi.latency"
            "L of LogGPS of two ranks: time of the first byte on its way, without the overheads of either rank.";
        OVERHEAD_SEND = "mpi.overhead_send"
            "o_s of LogGPS of two ranks: time in the send of a message after a pause, of the smallest message of a range of sizes.";
        OVERHEAD_RECV = "mpi.overhead_recv"
            "o_r of LogGPS of two ranks: time in the calls that receive a message that is there, posted before it came or after (unexpected).";
        GAP = "mpi.gap"
            "g of LogGPS of two ranks: least time from one message to the next; not known where the CPUs set the pace.";
        MESSAGE_TIME = "mpi.message_time"
            "Time per message of a train of 16, of the smallest message of a range of sizes, whoever sets the pace.";
    }
    ["receive", "from_bytes", "library"] NanosecondsPerByte Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        GAP_PER_BYTE = "mpi.gap_per_byte"
            "G of LogGPS of two ranks: time per further byte of a train of messages, for messages from a size on.";
    }
    ["ranks", "library"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        LINK_LATENCY = "mpi.link_latency"
            "Half a round trip of a small message between two ranks: the median of all pairs, in rounds in which all ranks are at work.";
    }
    ["pairs", "size_bytes", "ranks", "library"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        PAIR_LATENCY = "mpi.pair_latency"
            "Half a round trip between two ranks, while so many random pairs of ranks do the same: mean of the pairs.";
    }
    ["pairs", "size_bytes", "ranks", "library"] BytesPerSecond Higher weakened by [Frequency, Preemption, SharedCore, Clock] {
        PAIR_BANDWIDTH = "mpi.pair_bandwidth"
            "Bytes that so many random pairs of ranks stream together, 16 messages and an answer each; of as many pairs as make all ranks that of a bisection.";
    }
}

machmeter_data::code! { pub(crate) NOT_MEASURED = "W510" "MPI not measured",
    what: "MPI could not be measured; the reason is in the text.",
    why: "Its figures are missing, not zero.",
    how: "The ranks did not start, or ended before their first sample.",
    next: "`machmeter doctor` lists the MPI libraries there are; `-n P` starts ranks, or start machmeter under the library's own mpirun.",
}

machmeter_data::code! { pub(crate) ENDED_EARLY = "W511" "ranks ended early",
    what: "A launch of ranks ended before its time.",
    why: "Figures are of the samples until then: intervals are wider, and what launches differ by may not be known.",
    how: "Rank 0 hands its samples on after each round; what came before the end counts.",
    next: "Look at what the launcher said on stderr; dmesg tells whether memory had run out.",
}

machmeter_data::code! { pub(crate) OVERSUBSCRIBED = "W512" "more ranks than CPUs",
    what: "Ranks shared CPUs.",
    why: "A rank that waits keeps its CPU busy, so that the one it waits for cannot run: times are those of the scheduler, up to milliseconds.",
    how: "Ranks of this machine against the CPUs that were given.",
    next: "Start no more ranks than CPUs; for laws over many ranks measure on many machines.",
}

machmeter_data::code! { pub(crate) GUIDELINE = "W513" "call dearer than others",
    what: "A collective call costs more than other calls that do the same together.",
    why: "The library chose an algorithm that is not the best for this size and number of ranks; programs pay the difference.",
    how: "Isolated costs: more than samples and launches differ by chance once in a thousand runs, over all sizes; at the size where it is worst.",
    next: "Try the library's other algorithms: OMPI_MCA_coll_tuned_use_dynamic_rules and coll_tuned_CALL_algorithm of Open MPI, \
           MPIR_CVAR_CALL_INTRA_ALGORITHM of MPICH.",
}

machmeter_data::code! { pub(crate) SLOW_PAIRS = "W514" "slow ranks or links",
    what: "Messages of some ranks, or between two, take longer than those of the others.",
    why: "Who waits for all waits for the slowest: collective calls and programs pay it everywhere.",
    how: "Half a round trip of every pair of ranks beside the median of pairs on one machine, or between machines. What is named is further from it than \
          one of all pairs and ranks is by chance once in a thousand runs, by the robust spread of all; direction by stamps of both ends.",
    next: "Run it again: a slow CPU or cable stays slow, a disturbance moves. Look at the machine named with `machmeter noise` and `machmeter doctor`.",
}

machmeter_data::rows! { ROWS:
    "MPI" {
        row "ping-pong of 8 B": [
            "back to back" "mpi.cost{operation=pingpong,size_bytes=8}",
            "isolated" "mpi.isolated{operation=pingpong,size_bytes=8}",
        ];
        row "allreduce of 8 B, {ranks} ranks" each "ranks": [
            "back to back" "mpi.cost{operation=allreduce,size_bytes=8}",
            "isolated" "mpi.isolated{operation=allreduce,size_bytes=8}",
        ];
        detail "pairs of {ranks} ranks" each "ranks": ["half a round trip, median" "mpi.link_latency"];
        row "a send waits above": [
            "receiver asleep" "mpi.threshold{receiver=sleeping}",
            "receiver in MPI" "mpi.threshold{receiver=polling}",
        ];
    }
}

pub(crate) const INFO: Info = Info {
    name: "mpi",
    question: "What does every message-passing call cost?",
    method: "Ranks play scripts: back to back as batches of two lengths, whose order over MPI cancels, and isolated in windows that begin \
             at agreed moments of one clock. Several launches one after the other, since they differ by more than their samples tell. Costs over ranks \
             and bytes get a law of the fewest terms, with intervals of its coefficients and goodness of fit Q; a law breaks where the protocol \
             changes. Two sizes from which a send waits are bisected to the byte. Pairs of ranks meet in rounds of a tournament, and at random.",
    references: &[
        "F. Howell: Approaches to Parallel Performance Prediction, PhD thesis, University of Edinburgh, 1996",
        "S. Hunold, A. Carpen-Amarie: Reproducible MPI benchmarking is still not as easy as you think, TPDS 27, 2016",
        "T. Hoefler, T. Schneider, A. Lumsdaine: Multistage switches are not crossbars: effects of static routing in high-performance networks, 2008",
        "R. Reussner, P. Sanders, J. L. Traeff: SKaMPI: a comprehensive benchmark for public benchmarking of MPI, 2002",
    ],
    metrics: &[
        &[COST, ISOLATED, COEFFICIENT, FIT, MISFIT, THRESHOLD],
        &[LINK_LATENCY, PAIR_LATENCY, PAIR_BANDWIDTH],
        &[LATENCY, OVERHEAD_SEND, OVERHEAD_RECV, GAP, MESSAGE_TIME, GAP_PER_BYTE],
    ],
    rows: ROWS,
    // What two CPUs pay depends on their placement at the hour.
    lasting: |_| false,
    codes: &[&[NOT_MEASURED, ENDED_EARLY, OVERSUBSCRIBED, GUIDELINE, SLOW_PAIRS, MOVES]],
    example_job: "mpi.toml",
};
