//! What the mpi probe says about itself: metrics, warnings, method, sources.

use machmeter_engine::Info;
use machmeter_engine::disturbance::placement::MOVES;

machmeter_data::metrics! {
    ["operation", "size_bytes", "ranks", "library"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        COST = "mpi.cost"
            "Time of an operation in a loop, one after the other. size_bytes: bytes of one rank.";
        ISOLATED = "mpi.isolated"
            "Time of a single operation. The ranks start at an agreed moment of one clock. A collective ends when its last rank finishes.";
    }
    ["operation", "term", "from_bytes", "ranks", "library"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        COEFFICIENT = "mpi.coefficient"
            "Factor of a term (1, d, p, log(p), ...) in the law of an operation's cost, in ns per unit of the term, for sizes from from_bytes on.";
    }
    ["operation", "from_bytes", "ranks", "library"] One Neither weakened by [Frequency, Preemption, SharedCore, Clock] {
        FIT = "mpi.fit"
            "Goodness of fit Q: the probability that known errors alone scatter the points this far from their law. Below 0.001 the law is wrong.";
    }
    ["operation", "from_bytes", "ranks", "library"] One Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        MISFIT = "mpi.misfit"
            "Largest relative distance of a measured cost from the law: the possible error of using the law instead of the points.";
    }
    ["receiver", "library"] Bytes Neither weakened by [Preemption] {
        THRESHOLD = "mpi.threshold"
            "Largest message that a blocking send completes while the receiver sleeps (inline limit), or polls for another message (eager limit).";
    }
    ["receive", "from_bytes", "library"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        LATENCY = "mpi.latency"
            "L of LogGPS between two ranks: transit time of the first byte, without the overheads of the ranks.";
        OVERHEAD_SEND = "mpi.overhead_send"
            "o_s of LogGPS between two ranks: time in the send of a message after a pause, for the smallest message of a size range.";
        OVERHEAD_RECV = "mpi.overhead_recv"
            "o_r of LogGPS between two ranks: time in the calls that receive a message that has arrived. The receive was posted before it \
             arrived, or after (unexpected).";
        GAP = "mpi.gap"
            "g of LogGPS between two ranks: shortest time between messages. Unknown if the CPUs limit the rate.";
        MESSAGE_TIME = "mpi.message_time"
            "Time per message in a train of 16, for the smallest message of a size range, whether link or CPUs limit the rate.";
    }
    ["receive", "from_bytes", "library"] NanosecondsPerByte Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        GAP_PER_BYTE = "mpi.gap_per_byte"
            "G of LogGPS between two ranks: time per additional byte in a train of messages, for sizes from from_bytes on.";
    }
    ["ranks", "library"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        LINK_LATENCY = "mpi.link_latency"
            "Half a round trip of a small message between two ranks while all ranks communicate: the median of all pairs.";
    }
    ["pairs", "size_bytes", "ranks", "library"] Nanoseconds Lower weakened by [Frequency, Preemption, SharedCore, Clock] {
        PAIR_LATENCY = "mpi.pair_latency"
            "Half a round trip between two ranks while the given number of random pairs does the same: mean of the pairs.";
    }
    ["pairs", "size_bytes", "ranks", "library"] BytesPerSecond Higher weakened by [Frequency, Preemption, SharedCore, Clock] {
        PAIR_BANDWIDTH = "mpi.pair_bandwidth"
            "Bandwidth of the given number of random pairs together, streams of 16 messages and an answer. With all ranks in pairs, it is the bisection bandwidth.";
    }
}

machmeter_data::code! { pub(crate) NOT_MEASURED = "W510" "MPI not measured",
    what: "MPI was not measured; the text gives the reason.",
    why: "Its figures are missing, not zero.",
    how: "The ranks did not start, or ended before their first sample.",
    next: "`machmeter doctor` lists the installed MPI libraries. `-n P` starts ranks; or start machmeter under the library's own mpirun.",
}

machmeter_data::code! { pub(crate) ENDED_EARLY = "W511" "ranks ended early",
    what: "A launch of ranks ended before its time.",
    why: "The figures use the samples until then. Intervals are wider, and the variation between launches may be unknown.",
    how: "Rank 0 delivers its samples after each round. Rounds before the end count.",
    next: "Read the launcher's messages on stderr. dmesg shows whether memory ran out.",
}

machmeter_data::code! { pub(crate) OVERSUBSCRIBED = "W512" "more ranks than CPUs",
    what: "Ranks shared CPUs.",
    why: "A waiting rank keeps its CPU busy, so the rank it waits for cannot run. The times are those of the scheduler, up to milliseconds.",
    how: "Ranks of this machine against the available CPUs.",
    next: "Start no more ranks than CPUs. For laws over many ranks, measure on several machines.",
}

machmeter_data::code! { pub(crate) GUIDELINE = "W513" "call slower than alternatives",
    what: "A collective call costs more than a combination of other calls with the same result.",
    why: "The library's algorithm is not the best for this size and number of ranks. Programs pay the difference.",
    how: "Isolated costs at the worst size. The difference exceeds the variation of samples and launches: chance alone causes it once in a thousand \
          runs, over all sizes.",
    next: "Try the library's other algorithms: OMPI_MCA_coll_tuned_use_dynamic_rules and coll_tuned_CALL_algorithm of Open MPI, MPIR_CVAR_CALL_INTRA_ALGORITHM of MPICH.",
}

machmeter_data::code! { pub(crate) SLOW_PAIRS = "W514" "slow ranks or links",
    what: "Messages of some ranks, or between two ranks, take longer than those of the other ranks.",
    why: "A collective call waits for the slowest rank, so every rank pays the delay.",
    how: "Half a round trip of every pair of ranks against the median of pairs on one machine, or between machines. A named pair or rank is farther off \
          than chance makes any pair or rank once in a thousand runs, by the robust spread of all. Time stamps of both ends give the direction.",
    next: "Run again: a slow CPU or cable stays slow, a disturbance moves. Check the named machine with `machmeter noise` and `machmeter doctor`.",
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
    question: "The cost of every MPI call, as a law over bytes and ranks",
    method: "Ranks execute scripts of calls: back to back in batches of two lengths, whose own control messages cancel, and isolated in windows \
             that start at agreed times of one clock. There are several launches, because launches differ by more than the samples of one launch \
             show. A law with the fewest terms fits the costs over ranks and bytes, with intervals of its coefficients and goodness of fit Q. A \
             law breaks where the protocol changes. The two sizes at which a send starts to wait are bisected to the byte. Pairs of ranks \
             communicate in rounds of a tournament, and at random.",
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
