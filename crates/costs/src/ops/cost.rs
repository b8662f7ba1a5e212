//! The metric of all operations, and warnings that several parts give.

machmeter_data::metrics! {
    ["operation", "allocator", "buffer", "bytes", "chain", "code", "descriptors", "elements",
     "file_system", "kind", "neighbors", "program", "ready", "scope", "stack", "stride_bytes"] Nanoseconds Lower weakened by [Frequency, SharedCore, Clock] {
        COST = "ops.cost" "Time of one operation; conditions beside its name only where they tell rows apart.";
    }
    ["operation", "allocator", "buffer", "bytes", "chain", "code", "descriptors", "elements",
     "file_system", "kind", "neighbors", "program", "ready", "scope", "stack", "stride_bytes", "mode"] Nanoseconds Lower weakened by [Frequency, SharedCore, Clock] {
        MODE = "ops.mode"
            "Median of the calls of one mode, where those of a row that was timed call by call fall into several; mode 1 is the quickest.";
    }
    ["operation", "allocator", "buffer", "bytes", "chain", "code", "descriptors", "elements",
     "file_system", "kind", "neighbors", "program", "ready", "scope", "stack", "stride_bytes", "mode"] One Neither weakened by [Preemption, SharedCore] {
        MODE_SHARE = "ops.mode_share" "Share of the calls of a row that belong to one mode.";
    }
}
machmeter_data::code! { pub(super) NOT_MEASURED = "W440" "ops part not measured",
    what: "A part of the ops probe could not be measured; the reason is in the text.",
    why: "Its figures are missing, not zero.",
    how: "The part ended with an error before its first sample.",
    next: "The other parts stand; give the part what it lacks and repeat it with --parts.",
}

machmeter_data::code! { pub(super) NO_FILES = "W442" "calls on files not priced",
    what: "Calls on files have no figure: no file could be made or used in the directory.",
    why: "A call that fails is quicker than one that works; its time would be a wrong price.",
    how: "A private directory and a file of a few MiB are made before the first sample; every call's result is compared.",
    next: "Give a directory with room and the right to write (--directory).",
}

machmeter_data::code! { pub(super) NO_FIGURE = "W446" "operations not priced",
    what: "Some operations have no figure; the reason is in the text.",
    why: "They are missing, not free.",
    how: "Refused by the system, not proven by their witness, or too few undisturbed samples.",
    next: "Give more time (-t), a quieter machine, or what the reason names.",
}
