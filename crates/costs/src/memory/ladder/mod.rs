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
            "Latency of a dependent load: its address is the result of the previous load. order=global: random over the whole working set, \
             including address translation; page_local: random within one page after another, almost without translation; one_per_page: one \
             line of each page; strided: ascending lines, which prefetchers follow. level: the working set fits into this detected level.";
    }
    ["level", "order", "pages", "stride_bytes"] Count Lower weakened by [SharedCore, MemoryPlacement] {
        LATENCY_CYCLES = "memory.latency_cycles"
            "The same latency in cycles of the core. Dependent additions of one cycle each give the clock.";
    }
    [] Hertz Higher weakened by [Frequency, SharedCore, Clock] {
        CORE_CLOCK = "memory.core_clock"
            "Quick clock of the core, to which costs refer: dependent additions per second.";
    }
    ["level"] Bytes Higher weakened by [SharedCore, MemoryPlacement] {
        CACHE_SIZE = "memory.cache_size"
            "Largest working set with the latency of the level: at most half of its loads miss. Measured, not read from the system. LLC: the \
             share of the last cache available to this run. It lies between the part that a larger working set keeps and the largest set that \
             fits. The interval spans resampled rounds.";
    }
    ["level"] Bytes Neither weakened by [SharedCore] {
        LINE_SIZE = "memory.line_size"
            "Smallest distance at which a second access to the same memory block misses although the first access fetched its line.";
    }
    ["level"] Count Neither weakened by [SharedCore, MemoryPlacement] {
        ASSOCIATIVITY = "memory.associativity"
            "Number of lines one cache size apart that the first cache holds at the same time.";
    }
    ["level"] Count Higher weakened by [SharedCore, MemoryPlacement] {
        TRANSLATIONS = "memory.tlb_entries"
            "Number of 4 KiB pages that the TLB holds at the same time. The interval spans the page counts on both sides of the step. The \
             step of the second level is gradual.";
    }
    [] One Higher weakened by [MemoryPlacement] {
        HUGE_GRANTED = "memory.huge_pages_granted"
            "Share of the memory requested in huge pages that the system provided in huge pages.";
    }
    ["level", "order", "working_set_bytes"] One Higher weakened by [SharedCore, MemoryPlacement] {
        HUGE_SAVING = "memory.huge_pages_saving"
            "Share of the small-page latency that huge pages save at a working set. order=one_per_page shows address translation; \
             order=global at the largest working set shows memory latency. 0 if huge pages are not faster.";
    }
    ["chains"] One Higher weakened by [SharedCore, MemoryPlacement] {
        PARALLELISM = "memory.parallelism"
            "Loads from memory per latency of one load, with several independent chains: the number of misses that the core handles at the same time.";
    }
}

machmeter_data::code! { pub NO_HUGE = "W401" "ladder without huge pages",
    what: "The system gave no huge pages, or gave them for a part of the memory only.",
    why: "The curves for huge pages are missing. Memory latency includes address translations that huge pages would save.",
    how: "AnonHugePages of the mapping in /proc/self/smaps against the amount requested with madvise.",
    next: "Set /sys/kernel/mm/transparent_hugepage/enabled to madvise or always, and free memory.",
    undo: "Write the old value back.",
}
machmeter_data::code! { pub HUGE_NOT_EFFECTIVE = "W402" "huge pages not effective",
    what: "Huge pages were granted, but reduce memory latency by less than 10 %.",
    why: "Either address translation costs little here, or a hypervisor that backs the guest with small pages splits the huge ones.",
    how: "Latency in random order over the largest working set, on small and on huge pages. The finding lists smaller working sets.",
    next: "In a guest, ask the operator of the host for huge pages behind it. On bare metal, compare with hugetlbfs pages.",
}
machmeter_data::code! { pub CLOCK_MOVED = "W403" "core clock moved",
    what: "The clock of the core changed by more than 1 % between rounds.",
    why: "Cache latencies follow the clock of the core, so rounds at different clocks differ by the same ratio.",
    how: "Dependent additions, timed in every round of the ladder.",
    next: "On hardware, fix the frequency (performance governor, no turbo) and let the machine cool down. In a guest, the host sets the clock.",
    undo: "Set the governor back.",
}
machmeter_data::code! { pub LAST_DRIFTS = "W404" "last cache shared",
    what: "The effective size of the last cache changed between rounds, or is far below the size that the system claims.",
    why: "Other programs or guests use the same cache. Latencies between the second cache and memory depend on them.",
    how: "The size at which the latency rises toward that of memory, round by round.",
    next: "Read the figure as a range. Measure on a quiet machine, or on one without other guests.",
}
machmeter_data::code! { pub SHORT_LADDER = "W405" "ladder too short",
    what: "Working sets did not reach memory, or there was no time to find the levels.",
    why: "The last level found may be a cache and not memory. Sizes and latencies beyond it are missing.",
    how: "The largest working set against its limit: --max-bytes, a quarter of the available memory, or the time.",
    next: "Give more time (-t) or a larger --max-bytes, or free memory.",
}
