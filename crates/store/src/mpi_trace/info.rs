//! Metrics, rows and codes of a trace.

use machmeter_data::{Code, MetricInfo, code, metric, rows};

metric!(RANKS, "mpi.ranks", [], Count, Neither, weakened by [], "Ranks of the program.");
metric!(
    CALLS, "mpi.calls", ["operation"], Count, Neither, weakened by [],
    "Calls of an operation by all ranks, without calls inside other calls."
);
metric!(
    BYTES, "mpi.bytes", ["operation"], Bytes, Neither, weakened by [],
    "Bytes of the calls: sent bytes, the size of receive buffers, a rank's own part of a collective."
);
metric!(
    WALL, "mpi.wall", [], Nanoseconds, Lower, weakened by [Frequency, Preemption, SharedCore],
    "Time from the first return of MPI_Init to the last call of MPI_Finalize."
);
metric!(
    SHARE, "mpi.share", ["operation"], One, Lower, weakened by [Frequency, Preemption, SharedCore],
    "Share of the time that all threads which call MPI spend in an operation."
);
metric!(
    WAITING, "mpi.waiting", ["operation"], One, Lower, weakened by [Preemption, SharedCore],
    "Share of the time in a blocking collective before its last rank enters, over matched calls."
);
metric!(
    LAST, "mpi.last", ["operation", "rank"], One, Neither, weakened by [Preemption, SharedCore],
    "Share of the matched calls of a collective that one rank enters last, for the rank with the largest share."
);
metric!(
    DURATION, "mpi.duration", ["operation"], Nanoseconds, Lower, weakened by [Frequency, Preemption, SharedCore],
    "Median time of a call on its rank, including waiting."
);
metric!(
    ON_CPU, "mpi.on_cpu", [], One, Higher, weakened by [Preemption],
    "Share of their time in which threads that call MPI have a CPU. It is below 100 % if they sleep or share a CPU."
);

/// All metrics.
pub const METRICS: &[MetricInfo] = &[RANKS, CALLS, BYTES, WALL, SHARE, WAITING, LAST, DURATION, ON_CPU];

rows! { pub ROWS: "MPI" {
    row "program": ["ranks" "mpi.ranks", "calls" "mpi.calls{operation=all}", "time" "mpi.wall", "in MPI" "mpi.share{operation=all}"];
    row "{operation}" each "operation":
        ["calls" "mpi.calls{!operation=all}", "time" "mpi.share", "wait" "mpi.waiting", "last: {rank}" "mpi.last"];
} }

code! { pub(super) MISSING_RANKS = "W720" "traces missing",
    what: "Some ranks of the program left no trace.",
    why: "Sums cover only the other ranks. Collectives of a communicator with a missing rank are not matched.",
    how: "Each trace records the number of ranks of the program.",
    next: "Name a directory that all machines share with --dir. Run machmeter trace --collect DIR on a machine that has all files.",
}
code! { pub(super) STOPPED = "W721" "recording ended early",
    what: "The recording of a rank ended before the program: it reached its limit, or the disk was full.",
    why: "No figure includes the program after that moment.",
    how: "A rank allocates its file in pieces before it writes to them, and stops if no piece is available.",
    next: "Give a directory with more space (--dir), or a larger --limit.",
}
code! { pub(super) UNFINISHED = "W722" "no MPI_Finalize",
    what: "A rank did not call MPI_Finalize: it crashed, was killed, or exited early.",
    why: "Its time ends with its last call or block of calls.",
    how: "The trace of such a rank is complete up to its last call, but was not closed.",
    next: "Find the cause of the program's end. W723 names calls that did not return.",
}
code! { pub(super) OPEN_CALL = "W723" "call did not return",
    what: "A rank was inside an MPI call when its trace ended.",
    why: "If the program hung or was killed, it waited in this call. No figure includes the time of the call.",
    how: "The trace records a call when it begins, and adds its duration when it returns.",
    next: "Check the last calls of the named peer: export --to perfetto shows all ranks on one axis.",
}
code! { pub(super) SEVERAL_CLOCKS = "W724" "several clocks",
    what: "Ranks ran on several machines whose clocks differ by more than a call takes.",
    why: "The last rank to enter a collective is unknown. Shares, counts and times of calls are valid.",
    how: "Ranks on one machine, since one boot, share its monotonic clock. Other ranks are placed by their wall clocks.",
    next: "Trace on one machine to find which rank waits for which.",
}
code! { pub(super) NOT_MATCHED = "W725" "collectives do not match",
    what: "From some call on, ranks called different collectives over one communicator.",
    why: "Figures about waiting exclude the later calls of this communicator.",
    how: "The n-th collective call over a communicator must be the same operation on all members.",
    next: "Threads that use one communicator at the same time can cause this. Else the program is wrong.",
}

/// All codes.
pub const CODES: &[Code] = &[MISSING_RANKS, STOPPED, UNFINISHED, OPEN_CALL, SEVERAL_CLOCKS, NOT_MATCHED];
