//! What the ops probe says about itself: method, sources, parts.

use machmeter_engine::Info;
use machmeter_engine::disturbance::core_clock::SLOW_CLOCK;
use machmeter_engine::part::SHARED_CORE;

use super::cost::{COST, MODE, MODE_SHARE, NOT_MEASURED};
use super::{arithmetic, calls, decades, processes};

machmeter_data::rows! { ROWS:
    "OPS" {
        row "system call": ["getppid" "ops.cost{operation=getppid,code=libc}"];
        row "page fault": ["4 KiB" "ops.cost{operation=page_fault_4k}"];
        row "start and end": [
            "thread" "ops.cost{operation=thread_create_join,stack=kept}",
            "process" "ops.cost{operation=fork_exit_wait}",
        ];
        detail "addition": ["" "ops.cost{operation=add}"];
        detail "time of day": [
            "rdtsc" "ops.cost{operation=read_clock,code=rdtsc}",
            "clock_gettime" "ops.cost{operation=clock_gettime}",
        ];
        detail "daxpy of 1000": [
            "plain" "ops.cost{operation=daxpy,elements=1000,code=compiled}",
            "{code}" "ops.cost{operation=daxpy,elements=1000,!code=compiled}" least,
        ];
        detail "file in memory": [
            "read 4 KiB" "ops.cost{operation=pread,buffer=page}",
            "16 B behind a page" "ops.cost{operation=pread,buffer=page+16}",
            "open and close" "ops.cost{operation=open_close}",
        ];
        detail "4 KiB through a pipe": [
            "page-aligned" "ops.cost{operation=pipe,buffer=page}",
            "16 B behind a page" "ops.cost{operation=pipe,buffer=page+16}",
        ];
        detail "16 KiB through a Unix socket": ["page-aligned" "ops.cost{operation=unix_socket}"];
        detail "signal caught": ["" "ops.cost{operation=signal_catch}"];
        detail "switch of threads": ["" "ops.cost{operation=yield_two_threads}"];
        detail "start a program": ["{program}" "ops.cost{operation=spawn}" least];
    }
}

/// The probe's description.
pub const INFO: Info = Info {
    name: "ops",
    question: "The cost of system calls, processes, files and arithmetic",
    method: "Each figure comes from pairs of batches of n and 2n turns of one operation; constant costs cancel in their difference. \
             Batches are rejected and counted if a thread was switched out, was moved, or waited for a stopped partner. \
             All rows are visited several times in random order.",
    references: &[
        "L. McVoy, C. Staelin: lmbench: portable tools for performance analysis, USENIX 1996",
        "A. Abel, J. Reineke: nanoBench: a low-overhead tool for running microbenchmarks on x86 systems, ISPASS 2020 (two lengths)",
        "A. Baumann et al.: A fork() in the road, HotOS 2019",
    ],
    metrics: &[&[COST, MODE, MODE_SHARE], arithmetic::PART.metrics],
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
