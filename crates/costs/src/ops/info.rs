//! What the ops probe says about itself: metrics, warnings, method, sources.

use machmeter_data::MetricInfo;
use machmeter_data::code::Code;
use machmeter_engine::Info;

use machmeter_engine::part::SHARED_CORE;

machmeter_data::metric!(
    COST,
    "ops.cost",
    [
        "operation",
        "bytes",
        "chain",
        "code",
        "descriptors",
        "elements",
        "kind",
        "program",
        "stack",
        "stride_bytes"
    ],
    Nanoseconds,
    Lower,
    "Time of one operation; conditions beside its name only where they tell rows apart."
);
machmeter_data::metric!(
    CYCLE,
    "ops.cycle",
    [],
    Nanoseconds,
    Neither,
    "Length of a processor cycle: slope of the cost of 4 to 64 additions that each need the one before."
);

/// All metrics, part by part.
const METRICS: &[MetricInfo] = &[COST, CYCLE];

/// A part of the probe that could not be measured at all.
pub(super) const NOT_MEASURED: Code = Code {
    id: "W440",
    name: "ops part not measured",
    what: "A part of the ops probe could not be measured; the reason is in the text.",
    why: "Its figures are missing, not zero.",
    how: "The part ended with an error before its first sample.",
    next: "The other parts stand; give the part what it lacks and repeat it with --parts.",
    undo: None,
};

/// Operations whose cost is known beforehand do not cost that.
pub(super) const KNOWN_COSTS: Code = Code {
    id: "W441",
    name: "known costs do not fit",
    what: "Dependent additions did not cost a whole number of cycles: the line through 1 to 64 of them leaves more than 1 %.",
    why: "What the meter says about operations of known cost it says about all others: the processor's speed changed between \
          rows, or something else shared the core.",
    how: "Least squares through the costs of 4, 8, ... 64 additions per turn; residuals of these and of 1 and 2, which may be as \
          slow as the empty loop; intercept.",
    next: "Repeat on a quieter machine, or with a fixed frequency; read small differences between rows with care.",
    undo: None,
};

/// Calls on files that could not be priced.
pub(super) const NO_FILES: Code = Code {
    id: "W442",
    name: "calls on files not priced",
    what: "Calls on files have no figure: no file could be made or used in the directory.",
    why: "A call that fails is quicker than one that works; its time would be a wrong price.",
    how: "A private directory and a file of a few MiB are made before the first sample; every call's result is compared.",
    next: "Give a directory with room and the right to write (--directory).",
    undo: None,
};

/// Huge pages that were not granted.
pub(super) const HUGE_DENIED: Code = Code {
    id: "W443",
    name: "huge pages not granted",
    what: "Memory was not given in huge pages although they were asked for, or not all of it.",
    why: "A fault that gives a small page is no price of a huge one.",
    how: "The second small page of each huge one is touched too: a fault there means that the first was small.",
    next: "Allow transparent huge pages (/sys/kernel/mm/transparent_hugepage/enabled: madvise) and free memory.",
    undo: None,
};

/// First touches that were not one fault each.
pub(super) const FAULT_GROUPS: Code = Code {
    id: "W444",
    name: "faults served in groups",
    what: "First touches and faults are not one to one: the kernel served several pages by one fault, or the reverse.",
    why: "Dividing the time by touches would give the price of something that did not happen that often.",
    how: "The kernel's count of the thread's faults against the touches (getrusage).",
    next: "Look at fault_around_bytes in debugfs and at large folios of the file system.",
    undo: None,
};

/// Programs, processes or threads that could not be started.
pub(super) const NOT_STARTED: Code = Code {
    id: "W445",
    name: "processes not priced",
    what: "Threads or processes could not be started, or did not end as they should; the rows have no figure.",
    why: "A start that fails is quicker than one that works: its time would be a wrong price.",
    how: "Exit codes of all children, and a word that each thread writes.",
    next: "Look at the limits of processes (ulimit -u, pids.max of the control group), and at the program given by --exec-target.",
    undo: None,
};

/// Other operations without a figure.
pub(super) const NO_FIGURE: Code = Code {
    id: "W446",
    name: "operations not priced",
    what: "Some operations have no figure; the reason is in the text.",
    why: "They are missing, not free.",
    how: "Refused by the system, not proven by their witness, or too few undisturbed samples.",
    next: "Give more time (-t), a quieter machine, or what the reason names.",
    undo: None,
};

/// All codes, part by part.
const CODES: &[Code] =
    &[NOT_MEASURED, SHARED_CORE, KNOWN_COSTS, NO_FILES, HUGE_DENIED, FAULT_GROUPS, NOT_STARTED, NO_FIGURE];

/// The probe's description.
pub const INFO: Info = Info {
    name: "ops",
    question: "What does a call cost: system calls, processes, files, memory, arithmetic?",
    method: "Each figure comes from pairs of batches of n and 2n turns of one operation; what is constant cancels in their \
             difference. Batches during which a thread was switched out, moved, or waited for a partner that stood still are \
             counted and left out. All rows are visited in random order, several times.",
    references: &[
        "L. McVoy, C. Staelin: lmbench: portable tools for performance analysis, USENIX 1996",
        "A. Abel, J. Reineke: nanoBench: a low-overhead tool for running microbenchmarks on x86 systems, ISPASS 2020 (two lengths)",
        "A. Baumann et al.: A fork() in the road, HotOS 2019",
    ],
    metrics: METRICS,
    // Sizes and counts are exact or bracketed, shares are of the run.
    lasting: |m| m.unit.is_price(),
    codes: CODES,
    example_job: "ops.toml",
};
