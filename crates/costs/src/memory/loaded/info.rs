//! What the part tells: metrics and warnings.

use machmeter_data::code::Code;

machmeter_data::metric!(
    LATENCY,
    "memory.loaded_latency",
    ["load", "load_cpus", "pause_ns", "working_set_bytes", "stride_bytes", "pages"],
    Nanoseconds, Lower, weakened by [Frequency, SharedCore, MemoryPlacement, Clock],
    "Latency of a dependent load in memory on one CPU while other CPUs run the load, with a pause after each 16 KiB."
);
machmeter_data::metric!(
    TRAFFIC,
    "memory.loaded_bandwidth",
    ["load", "load_cpus", "pause_ns", "working_set_bytes", "stride_bytes", "pages"],
    BytesPerSecond, Neither, weakened by [Frequency, SharedCore, MemoryPlacement, Clock],
    "Bytes that the load requested per second in the windows in which the latency beside it was taken."
);

pub const SMALL_CHAIN: Code = Code {
    id: "W412",
    name: "chain of the loaded latency small",
    what: "The chain of dependent loads has fewer lines than twice the last cache that the system claims.",
    why: "Some loads hit that cache while the machine is idle and miss it under load: the latency rises by more than memory's.",
    how: "Lines of the chain, which time and free memory bound, against the claimed capacity.",
    next: "Give more time (-t), or measure this part alone (--parts loaded).",
    undo: None,
};
pub const LOAD_STOOD: Code = Code {
    id: "W413",
    name: "load seldom undisturbed",
    what: "Most samples of the loaded latency were thrown away, because a thread was switched out meanwhile.",
    why: "What is left are moments at which nothing else ran; there may be too few of them for a figure.",
    how: "Samples kept against samples tried.",
    next: "Stop what else runs on these CPUs.",
    undo: None,
};
