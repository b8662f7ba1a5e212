//! What the sync probe says about itself: method, sources, parts.

use machmeter_engine::Info;
use machmeter_engine::disturbance::core_clock::SLOW_CLOCK;
use machmeter_engine::part::SHARED_CORE;

use super::cost::{COST, NOT_MEASURED, ONE_CPU};
use super::{contention, locks, models, transfer, trips, wakeups};
use machmeter_engine::disturbance::placement::MOVES;

machmeter_data::rows! { ROWS:
    "SYNC" {
        row "line": [
            "CPU {from} to {to}" "memory.core_to_core{kind=cas,placement=near}" least,
            "{from} to {to}" "memory.core_to_core{kind=cas,placement=near}" greatest,
            "placed far" "memory.core_to_core{kind=cas,placement=far}" greatest,
        ];
        row "mutex": [
            "free" "sync.cost{operation=mutex_pthread,model=threads,cpus=1}",
            "wanted" "sync.cost{operation=mutex_pthread,model=threads}" most("cpus"),
        ];
        row "wake-up by futex": [
            "idle CPU" "sync.cost{operation=wake_futex,model=threads,wake=idle}",
            "busy" "sync.cost{operation=wake_futex,model=threads,wake=busy}",
        ];
        detail "line, CPU {from} to {to}": [
            "store and load" "memory.core_to_core{kind=store_load_1,placement=near}",
            "of two" "memory.core_to_core{kind=store_load_2,placement=near}",
            "read" "memory.core_to_core{kind=read_dirty,placement=near}",
        ];
        detail "line placed {placement}" each "placement": [
            "one way" "memory.core_to_core{kind=cas}",
            "of the time" "sync.regime_share",
        ];
        detail "add to a word": [
            "alone" "sync.cost{operation=fetch_add,cpus=1,distance_bytes=0}",
            "{cpus} CPUs" "sync.cost{operation=fetch_add,distance_bytes=0}" most("cpus"),
        ];
        detail "words disturb each other below": ["" "sync.false_sharing{operation=fetch_add}"];
        detail "lock handed on": [
            "spinning" "sync.handoff{lock=spin_ttas}",
            "sleeping" "sync.handoff{lock=mutex_pthread}",
        ];
        detail "barrier": [
            "spinning" "sync.cost{operation=barrier_spin,model=threads}",
            "sleeping" "sync.cost{operation=barrier_pthread,model=threads}",
        ];
        detail "wake-up by futex on the same CPU": [
            "" "sync.cost{operation=wake_futex,model=threads,wake=same_cpu}",
        ];
        detail "switch to another on one CPU": [
            "process" "sync.cost{operation=hand_over,model=processes,cpus=1}",
            "user thread" "sync.cost{operation=hand_over,model=user-threads,cpus=1}",
        ];
    }
}

pub const INFO: Info = Info {
    name: "sync",
    question: "The cost of sharing a cache line, a lock or a wake-up",
    method: "Spinning members are timed in pairs of batches of n and 2n turns of one operation; constant costs cancel in their difference. \
             Members that may sleep are timed turn by turn, with a count of their sleeps. Transfers and contention use single batches that \
             are long against a read of the clock. Batches are rejected and counted if a thread was switched out, was moved, or waited for a \
             stopped partner. All rows are visited several times in random order.",
    references: &[
        "T. E. Anderson: The performance of spin lock alternatives for shared-memory multiprocessors, IEEE TPDS 1, 1990",
        "J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization on shared-memory multiprocessors, ACM TOCS 9, 1991 (MCS)",
        "T. David, R. Guerraoui, V. Trigonakis: Everything you always wanted to know about synchronization but were afraid to ask, SOSP 2013",
        "R. Jain, D. Chiu, W. Hawe: A quantitative measure of fairness and discrimination, DEC TR-301, 1984",
    ],
    metrics: &[
        &[COST, trips::SLEEPS, trips::MODE, trips::MODE_SHARE],
        transfer::PART.metrics,
        contention::PART.metrics,
        locks::PART.metrics,
    ],
    rows: ROWS,
    // What several CPUs pay depends on the placement of the hour, which the figure names: runs of other hours say nothing of it.
    lasting: |m| m.unit.is_price() && m.params.get("cpus") == Some(&1_i64.into()),
    codes: &[
        &[NOT_MEASURED, SHARED_CORE, SLOW_CLOCK, MOVES, ONE_CPU],
        transfer::PART.codes,
        contention::PART.codes,
        locks::PART.codes,
        wakeups::PART.codes,
        models::PART.codes,
    ],
    example_job: "sync.toml",
};
