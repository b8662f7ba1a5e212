//! What the sync probe says about itself: metrics, warnings, method, sources.

use machmeter_data::MetricInfo;
use machmeter_data::code::Code;
use machmeter_engine::Info;

use super::{contention, locks, models, transfer, wakeups};
use crate::placement::MOVES;
use machmeter_engine::part::SHARED_CORE;

machmeter_data::metric!(
    COST,
    "sync.cost",
    ["operation", "cpus", "distance_bytes", "model", "kind", "wake"],
    Nanoseconds,
    Lower,
    "Cost of an operation for each CPU that takes part; of a contended lock, time per acquisition, whoever got it. \
     Distance: how far apart the words are (0: the same word). Wake: where the one who is woken is."
);

/// All metrics, part by part.
const METRICS: &[MetricInfo] = &[
    COST,
    transfer::CORE_TO_CORE,
    transfer::REGIME_SHARE,
    contention::FAIRNESS,
    contention::FALSE_SHARING,
    locks::HANDOFF,
    locks::FAIRNESS,
];

/// A part of the probe that could not be measured at all.
pub(super) const NOT_MEASURED: Code = Code {
    id: "W420",
    name: "sync part not measured",
    what: "A part of the sync probe could not be measured; the reason is in the text.",
    why: "Its figures are missing, not zero.",
    how: "The part ended with an error before its first sample.",
    next: "The other parts stand; give the part what it lacks and repeat it with --parts.",
    undo: None,
};

/// One CPU, whichever part needs two.
pub(super) const ONE_CPU: Code = Code {
    id: "W422",
    name: "one CPU only",
    what: "What takes two CPUs was not measured: there is only one CPU to measure on. The text names the parts.",
    why: "On one CPU every lock is free when a thread gets to run, and nobody is woken beside the waker: the figures would be \
          those of the scheduler.",
    how: "The number of selected CPUs.",
    next: "Select more CPUs (--cpus), or widen the affinity mask (taskset) or the cgroup's cpuset.",
    undo: None,
};

/// All codes, part by part.
const CODES: &[Code] = &[
    NOT_MEASURED,
    SHARED_CORE,
    MOVES,
    ONE_CPU,
    transfer::ASYMMETRY,
    transfer::SAMPLED,
    contention::UNFAIR,
    locks::BROKEN,
    locks::UNFAIR,
    wakeups::AWAKE,
    models::DISAGREE,
    models::NO_USER_THREADS,
];

/// The probe's description.
pub const INFO: Info = Info {
    name: "sync",
    question: "What do two CPUs pay to agree: a line, a lock, a wake-up?",
    method: "Locks, wake-ups and models: pairs of batches of n and 2n turns of one operation; what is constant cancels in their \
             difference. Transfers and contention: single batches, long against a reading of the clock. Batches during which a thread was switched out, moved, or waited for a partner that stood still are \
             counted and left out. All rows are visited in random order, several times.",
    references: &[
        "T. E. Anderson: The performance of spin lock alternatives for shared-memory multiprocessors, IEEE TPDS 1, 1990",
        "J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization on shared-memory multiprocessors, ACM TOCS 9, 1991 (MCS)",
        "T. David, R. Guerraoui, V. Trigonakis: Everything you always wanted to know about synchronization but were afraid to ask, SOSP 2013",
        "R. Jain, D. Chiu, W. Hawe: A quantitative measure of fairness and discrimination, DEC TR-301, 1984",
    ],
    metrics: METRICS,
    // What several CPUs pay depends on the placement of the hour, which the figure names: runs of other hours say nothing of it.
    lasting: |m| m.unit.is_price() && m.params.get("cpus") == Some(&1_i64.into()),
    codes: CODES,
    example_job: "sync.toml",
};
