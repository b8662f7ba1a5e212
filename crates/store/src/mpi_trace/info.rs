//! What a trace reports: metrics, rows of the page, codes.

use machmeter_data::{Code, MetricInfo, code, metric, rows};

metric!(RANKS, "mpi.ranks", [], Count, Neither, weakened by [], "Ranks of the program.");
metric!(
    CALLS, "mpi.calls", ["operation"], Count, Neither, weakened by [],
    "Calls of an operation by all ranks, those inside other calls not counted."
);
metric!(
    BYTES, "mpi.bytes", ["operation"], Bytes, Neither, weakened by [],
    "Bytes that the calls move for their ranks: what is sent, what a receive has room for, a rank's own part of a collective."
);
metric!(
    WALL, "mpi.wall", [], Nanoseconds, Lower, weakened by [Frequency, Preemption, SharedCore],
    "From the first return of MPI_Init to the last call of MPI_Finalize."
);
metric!(
    SHARE, "mpi.share", ["operation"], One, Lower, weakened by [Frequency, Preemption, SharedCore],
    "Share of the time of all threads that call MPI that they spend in an operation."
);
metric!(
    WAITING, "mpi.waiting", ["operation"], One, Lower, weakened by [Preemption, SharedCore],
    "Share of the time in a blocking collective that passes before its last rank enters, over matched calls."
);
metric!(
    LAST, "mpi.last", ["operation", "rank"], One, Neither, weakened by [Preemption, SharedCore],
    "Share of the matched calls of a collective that a rank enters last, of the rank that does so most often."
);
metric!(
    DURATION, "mpi.duration", ["operation"], Nanoseconds, Lower, weakened by [Frequency, Preemption, SharedCore],
    "Time of a call as its rank sees it, waiting included: the median."
);
metric!(
    ON_CPU, "mpi.on_cpu", [], One, Higher, weakened by [Preemption],
    "Share of the time of threads that call MPI that they have a CPU: less than all where they sleep or share it."
);

/// All metrics.
pub const METRICS: &[MetricInfo] = &[RANKS, CALLS, BYTES, WALL, SHARE, WAITING, LAST, DURATION, ON_CPU];

rows! { pub ROWS: "MPI" {
    row "program": ["ranks" "mpi.ranks", "calls" "mpi.calls{operation=all}", "time" "mpi.wall", "in MPI" "mpi.share{operation=all}"];
    row "{operation}" each "operation":
        ["calls" "mpi.calls{!operation=all}", "time" "mpi.share", "wait" "mpi.waiting", "last: {rank}" "mpi.last"];
} }

code! { pub(super) MISSING_RANKS = "W720" "traces missing",
    what: "Ranks of the program left no trace.",
    why: "Sums are over the others, and no collective of a communicator with a missing rank is matched.",
    how: "Each trace says how many ranks the program has.",
    next: "Name a directory that all machines share with --dir; run machmeter trace --collect DIR where all files are.",
}
code! { pub(super) STOPPED = "W721" "recording ended early",
    what: "The recording of a rank ended before the program: its limit was reached, or the disk had no space for more.",
    why: "What the program did later is in no figure.",
    how: "A rank allocates its file in pieces before it writes to them, and stops when one cannot be had.",
    next: "Give a directory with more space (--dir), or a greater --limit.",
}
code! { pub(super) UNFINISHED = "W722" "no MPI_Finalize",
    what: "A rank did not call MPI_Finalize: it crashed, was killed, or left without.",
    why: "Its time ends with its last call or block of calls.",
    how: "The trace of such a rank is whole up to its last call, but nobody closed it.",
    next: "See what ended the program; calls that did not return are named by W723.",
}
code! { pub(super) OPEN_CALL = "W723" "call did not return",
    what: "A rank was inside an MPI call when its trace ended.",
    why: "In a program that hung or was killed this is what it waited for. Its time is in no figure.",
    how: "A call is written when it begins; its time is added when it returns.",
    next: "Look at what the named peer did last: export --to perfetto shows all ranks on one axis.",
}
code! { pub(super) SEVERAL_CLOCKS = "W724" "several clocks",
    what: "Ranks ran on several machines, whose clocks differ by more than calls take.",
    why: "Who entered a collective last is not known then; shares, counts and times of calls are.",
    how: "Ranks of one boot of one machine share its monotonic clock. Others are placed by their wall clocks.",
    next: "Trace on one machine to see who waits for whom.",
}
code! { pub(super) NOT_MATCHED = "W725" "collectives do not match",
    what: "From some call on, ranks called different collectives over one communicator.",
    why: "Later calls of this communicator are in no figure about waiting.",
    how: "The n-th collective call over a communicator must be the same operation for all members.",
    next: "Threads that use one communicator at once can look so; else the program is wrong.",
}

/// All codes.
pub const CODES: &[Code] = &[MISSING_RANKS, STOPPED, UNFINISHED, OPEN_CALL, SEVERAL_CLOCKS, NOT_MATCHED];
