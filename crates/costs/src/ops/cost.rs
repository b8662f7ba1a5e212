//! The metric of all operations, and warnings that several parts give.

machmeter_data::metrics! {
    ["operation", "allocator", "buffer", "bytes", "chain", "code", "descriptors", "elements",
     "file_system", "kind", "neighbors", "program", "ready", "scope", "stack", "stride_bytes"] Nanoseconds Lower weakened by [Frequency, SharedCore, Clock] {
        COST = "ops.cost" "Time of one operation. Conditions follow its name only if they distinguish rows.";
    }
    ["operation", "allocator", "buffer", "bytes", "chain", "code", "descriptors", "elements",
     "file_system", "kind", "neighbors", "program", "ready", "scope", "stack", "stride_bytes", "mode"] Nanoseconds Lower weakened by [Frequency, SharedCore, Clock] {
        MODE = "ops.mode"
            "Median of the calls of one mode, if the calls of a row form several modes. Only for rows timed call by call. Mode 1 is the fastest.";
    }
    ["operation", "allocator", "buffer", "bytes", "chain", "code", "descriptors", "elements",
     "file_system", "kind", "neighbors", "program", "ready", "scope", "stack", "stride_bytes", "mode"] One Neither weakened by [Preemption, SharedCore] {
        MODE_SHARE = "ops.mode_share" "Share of the calls of a row that belong to one mode.";
    }
}
machmeter_data::code! { pub(super) NOT_MEASURED = "W440" "ops part not measured",
    what: "A part of the ops probe was not measured; the text gives the reason.",
    why: "Its figures are missing, not zero.",
    how: "The part ended with an error before its first sample.",
    next: "The other parts are valid. Remove the cause, then repeat this part with --parts.",
}

machmeter_data::code! { pub(super) NO_FILES = "W442" "calls on files not measured",
    what: "Calls on files have no figure: the directory did not allow a test file to be created or used.",
    why: "A call that fails is faster than one that works, so its time would be a wrong cost.",
    how: "A private directory and a file of a few MiB are created before the first sample. The result of every call is checked.",
    next: "Give a directory with free space and write permission (--directory).",
}

machmeter_data::code! { pub(super) NO_FIGURE = "W446" "operations not measured",
    what: "Some operations have no figure; the text gives the reason.",
    why: "The operations are missing, not free.",
    how: "The system refused them, their witness did not confirm them, or too few samples were undisturbed.",
    next: "Give more time (-t), use a quieter machine, or remove the cause that the text names.",
}
