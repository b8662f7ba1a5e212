//! The latency ladder: what a dependent load costs over working sets; what is claimed is compared afterwards.
//! Saavedra-Barrera and Smith (1995), lmbench (`McVoy` and Staelin 1996), multichase, X-Ray (Yotov and others 2005).

pub(super) mod chase;
mod curves;
pub(super) mod detect;
mod figures;
mod measure;
mod plan;
mod refine;
mod report;
#[cfg(test)]
mod tests;

use machmeter_engine::Analysis;
use machmeter_engine::cost::Rows;

use super::Params;
use curves::Curves;
use detect::Detection;
use machmeter_engine::part::Part;

const NAME: &str = "ladder";

pub(super) const PART: Part<Params> = Part {
    metrics: &[
        LATENCY,
        LATENCY_CYCLES,
        CORE_CLOCK,
        CACHE_SIZE,
        LINE_SIZE,
        ASSOCIATIVITY,
        TRANSLATIONS,
        HUGE_GRANTED,
        HUGE_SAVING,
        PARALLELISM,
    ],
    codes: &[NO_HUGE, HUGE_NOT_EFFECTIVE, CLOCK_MOVED, LAST_DRIFTS, SHORT_LADDER],
    selftest: &[
        ("chains of pointers", chase::selftest::chains),
        ("caches beside busy neighbors", chase::selftest::caches),
    ],
    ..Part::of(NAME, 40, measure::measure, analyze)
};

fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let curves = Curves::of(rows);
    if curves.rows().all(|r| r.pairs.is_empty()) {
        return Analysis::default();
    }
    let found = Detection::of(&curves);
    let warnings = report::warnings(&curves, &found);
    let mut metrics = figures::metrics(&curves, &found);
    report::flag(&mut metrics, &warnings);
    Analysis {
        datasets: figures::datasets(&curves, &found),
        findings: report::findings(&curves, &found),
        warnings,
        metrics,
        ..Analysis::default()
    }
}

machmeter_data::metrics! {
    ["level", "order", "pages", "stride_bytes", "working_set_bytes"]
    Nanoseconds Lower weakened by [Frequency, SharedCore, MemoryPlacement, Clock] {
        LATENCY = "memory.latency"
            "Latency of a load whose address is the result of the load before, in an order over the lines of a working set. \
             order=global: random over all of it, translation of addresses included; page_local: random page by page, so that \
             translation hardly counts; one_per_page: one line of each page; strided: line after line upwards, which prefetchers \
             follow. level stands for a working set inside what was found to be that level.";
    }
    ["level", "order", "pages", "stride_bytes"] Count Lower weakened by [SharedCore, MemoryPlacement] {
        LATENCY_CYCLES = "memory.latency_cycles"
            "The same latency in cycles of the core, whose clock is told by dependent additions of one cycle each.";
    }
    [] Hertz Higher weakened by [Frequency, SharedCore, Clock] {
        CORE_CLOCK = "memory.core_clock"
            "Quick clock of the core, at which costs are told: dependent additions per second.";
    }
    ["level"] Bytes Higher weakened by [SharedCore, MemoryPlacement] {
        CACHE_SIZE = "memory.cache_size"
            "Largest working set that still has the latency of the level: at most half of its loads miss. Found without asking the \
             system. LLC: the share of the last cache that this run had, which lies between what stays of a larger working set and \
             the largest that fits. The interval spans resampled rounds.";
    }
    ["level"] Bytes Neither weakened by [SharedCore] {
        LINE_SIZE = "memory.line_size"
            "Distance from which a second access in the same block of memory misses although the first was fetched.";
    }
    ["level"] Count Neither weakened by [SharedCore, MemoryPlacement] {
        ASSOCIATIVITY = "memory.associativity"
            "Lines one cache size apart that the first cache keeps at a time.";
    }
    ["level"] Count Higher weakened by [SharedCore, MemoryPlacement] {
        TRANSLATIONS = "memory.tlb_entries"
            "Pages of 4 KiB that the buffer of address translations keeps at a time; the interval spans the page counts on either \
             side of the step, which is soft for the second level.";
    }
    [] One Higher weakened by [MemoryPlacement] {
        HUGE_GRANTED = "memory.huge_pages_granted"
            "Share of the memory asked for in huge pages that the system gave in huge pages.";
    }
    ["level", "order", "working_set_bytes"] One Higher weakened by [SharedCore, MemoryPlacement] {
        HUGE_SAVING = "memory.huge_pages_saving"
            "Share of the latency over small pages that huge pages take away at a working set: one line per page shows translation, \
             the global order at the largest working set is memory latency. 0 where huge pages cost as much or more.";
    }
    ["chains"] One Higher weakened by [SharedCore, MemoryPlacement] {
        PARALLELISM = "memory.parallelism"
            "Loads from memory per latency of one load, with so many independent chains: misses that the core keeps under way.";
    }
}

machmeter_data::code! { pub NO_HUGE = "W401" "ladder without huge pages",
    what: "The system did not give huge pages, or only for a part of the memory.",
    why: "The curves for huge pages are missing: latency in memory includes translations that huge pages would save.",
    how: "AnonHugePages of the mapping in /proc/self/smaps, against what was asked for with madvise.",
    next: "Set /sys/kernel/mm/transparent_hugepage/enabled to madvise or always, and free memory.",
    undo: "Write the old value back.",
}
machmeter_data::code! { pub HUGE_NOT_EFFECTIVE = "W402" "huge pages not effective",
    what: "Huge pages were granted, and take less than 10 % off memory latency.",
    why: "Either translation costs little here, or a hypervisor that backs the guest with small pages splits huge ones again.",
    how: "Latency in random order over the largest working set, on small and on huge pages; the finding lists smaller ones.",
    next: "In a guest, ask the operator of the host for huge pages behind it; on bare metal compare with hugetlbfs pages.",
}
machmeter_data::code! { pub CLOCK_MOVED = "W403" "core clock moved",
    what: "The clock of the core changed by more than 1 % between rounds.",
    why: "Latencies of caches follow the clock of the core: rounds at different clocks differ by as much.",
    how: "Dependent additions, timed in every round beside the ladder.",
    next: "On hardware fix the frequency (performance governor, no turbo) and let the machine cool. A guest cannot: its host sets the clock.",
    undo: "Set the governor back.",
}
machmeter_data::code! { pub LAST_DRIFTS = "W404" "last cache not ours alone",
    what: "The effective size of the last cache changed between rounds, or is far below what the system claims.",
    why: "Others use the same cache (neighbors on the host, other programs); latencies between the second cache and memory \
          depend on what they do.",
    how: "The size at which latency rises towards that of memory, round by round.",
    next: "Take the range as the figure. Measure on a quiet machine, or on one of your own.",
}
machmeter_data::code! { pub SHORT_LADDER = "W405" "ladder too short",
    what: "Working sets did not reach memory, or there was no time to find the levels.",
    why: "The last level may be a cache and not memory; sizes and latencies of what lies beyond are missing.",
    how: "The largest working set against what limits it: --max-bytes, a quarter of the available memory, or the time.",
    next: "Give more time (-t) or a larger --max-bytes, or free memory.",
}
