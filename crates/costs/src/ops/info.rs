//! What the ops probe says about itself: method, sources, parts.

use machmeter_data::summary::{Pick, RowInfo};
use machmeter_engine::Info;
use machmeter_engine::disturbance::core_clock::SLOW_CLOCK;
use machmeter_engine::part::SHARED_CORE;

use super::cost::{COST, NOT_MEASURED};
use super::table::SECTION;
use super::{arithmetic, calls, decades, processes};

const fn row(name: &'static str, picks: &'static [Pick]) -> RowInfo {
    RowInfo::new(SECTION, name, picks)
}

const fn detail(name: &'static str, picks: &'static [Pick]) -> RowInfo {
    RowInfo::detail(SECTION, name, picks)
}

const ROWS: &[RowInfo] = &[
    row("system call", &[Pick::new("getppid", "ops.cost{operation=getppid,code=libc}")]),
    row("page fault", &[Pick::new("4 KiB", "ops.cost{operation=page_fault_4k}")]),
    row(
        "start and end",
        &[
            Pick::new("thread", "ops.cost{operation=thread_create_join,stack=kept}"),
            Pick::new("process", "ops.cost{operation=fork_exit_wait}"),
        ],
    ),
    detail("addition", &[Pick::new("", "ops.cost{operation=add}")]),
    detail(
        "time of day",
        &[
            Pick::new("rdtsc", "ops.cost{operation=read_clock,code=rdtsc}"),
            Pick::new("clock_gettime", "ops.cost{operation=clock_gettime}"),
        ],
    ),
    detail(
        "daxpy of 1000",
        &[
            Pick::new("plain", "ops.cost{operation=daxpy,elements=1000,code=compiled}"),
            Pick::new("{code}", "ops.cost{operation=daxpy,elements=1000,!code=compiled}").least(),
        ],
    ),
    detail(
        "file in memory",
        &[
            Pick::new("read 4 KiB", "ops.cost{operation=pread}"),
            Pick::new("open and close", "ops.cost{operation=open_close}"),
        ],
    ),
    detail("signal caught", &[Pick::new("", "ops.cost{operation=signal_catch}")]),
    detail("switch of threads", &[Pick::new("", "ops.cost{operation=yield_two_threads}")]),
    detail("start a program", &[Pick::new("{program}", "ops.cost{operation=spawn}").least()]),
];

/// The probe's description.
pub const INFO: Info = Info {
    name: "ops",
    question: "What does a call cost: system, processes, files, arithmetic?",
    method: "Each figure comes from pairs of batches of n and 2n turns of one operation; what is constant cancels in their \
             difference. Batches during which a thread was switched out, moved, or waited for a partner that stood still are \
             counted and left out. All rows are visited in random order, several times.",
    references: &[
        "L. McVoy, C. Staelin: lmbench: portable tools for performance analysis, USENIX 1996",
        "A. Abel, J. Reineke: nanoBench: a low-overhead tool for running microbenchmarks on x86 systems, ISPASS 2020 (two lengths)",
        "A. Baumann et al.: A fork() in the road, HotOS 2019",
    ],
    metrics: &[&[COST], arithmetic::PART.metrics],
    rows: ROWS,
    // Sizes and counts are exact or bracketed, shares are of the run.
    lasting: |m| m.unit.is_price(),
    codes: &[
        &[NOT_MEASURED, SHARED_CORE, SLOW_CLOCK],
        arithmetic::PART.codes,
        calls::PART.codes,
        processes::PART.codes,
        decades::PART.codes,
    ],
    example_job: "ops.toml",
};
