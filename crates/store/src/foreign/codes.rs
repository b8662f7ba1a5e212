//! Stable codes of what readers find.

use machmeter_data::Code;
use machmeter_data::record::Warning;

use super::Imported;

pub const MISSING_WINDOWS: &str = "W701";
pub const THREAD_STRIDE: &str = "W702";
/// Times in ticks of unknown length.
pub const TICK_RATE: &str = "W703";
/// A threshold so low that ordinary turns count as detours.
pub const THRESHOLD: &str = "W704";
pub const OVERFLOW: &str = "W705";
pub const OTHER_QUANTITY: &str = "W706";
pub const BACKWARD_TIME: &str = "W707";
/// A clock rate known only roughly.
pub const ROUGH_RATE: &str = "W708";
pub const NO_TIMES: &str = "W709";
pub const WRONG_EXTREMES: &str = "W710";
pub const CUT_FILE: &str = "W711";
pub const SEVERAL_RUNS: &str = "W712";
/// Lateness that the writer could not see.
pub const HIDDEN_LATENESS: &str = "W713";
pub const IMPOSSIBLE_NUMBERS: &str = "W714";
pub const WRONG_UNIT: &str = "W715";

/// Every code of this module, for `machmeter explain`.
pub const CODES: &[Code] = &[
    Code {
        id: MISSING_WINDOWS,
        name: "missing windows",
        what: "FTQ 2009 writes no line for a window that an interruption swallowed whole.",
        why: "The longest interruptions vanish from its counts, so they show less noise than there was, and the time axis has holes.",
        how: "Windows end at multiples of their length; consecutive starts that lie several multiples apart have windows missing between them.",
        next: "Missing windows were put back with a count of zero; measure anew with machmeter noise, which keeps them.",
        undo: None,
    },
    Code {
        id: THREAD_STRIDE,
        name: "thread stride",
        what: "Threaded FTQ 2009 writes its files with half the stride it recorded with.",
        why: "The file of thread 1 begins with the second half of thread 0, and the last samples were never written.",
        how: "The second half of each file equals the first half of the next, value by value.",
        next: "Samples were put back under their threads; those never written are lost. Measure anew with machmeter noise.",
        undo: None,
    },
    Code {
        id: TICK_RATE,
        name: "tick rate",
        what: "The file counts time in clock ticks and does not say how long one is.",
        why: "Shares of time are right, but nothing can be given in seconds or hertz.",
        how: "Neither the file nor a side file NAME.machmeter.json holds a rate.",
        next: "Give the rate of that machine's clock with --tick-hz (tsc frequency in its kernel log).",
        undo: None,
    },
    Code {
        id: THRESHOLD,
        name: "threshold",
        what: "Almost every turn of the loop was recorded as a detour.",
        why: "Where the clock advances in steps, Netgauge can calibrate its shortest turn to one tick or less; the threshold then lies below an ordinary turn and the printed noise is near 100 %.",
        how: "Detours add up to more than 90 % of the time, more than half of the turns are detours, or the shortest turn is below 1 ns.",
        next: "Do not use the noise share of this file; measure anew with machmeter noise.",
        undo: None,
    },
    Code {
        id: OVERFLOW,
        name: "overflow bucket",
        what: "The last bucket of the histogram holds everything beyond it.",
        why: "The tail's shape is unknown; only its count and the largest value are.",
        how: "The largest value lies beyond the last bucket.",
        next: "Read quantiles in the last bucket as bounds; record with more buckets for the tail.",
        undo: None,
    },
    Code {
        id: OTHER_QUANTITY,
        name: "wake-up latency",
        what: "The file holds how late a sleeping thread woke up, not how much time a running one lost.",
        why: "A wake-up samples instants: most detours of a busy loop are never seen, and timer and scheduler costs are added.",
        how: "The format belongs to a timer latency tool.",
        next: "Do not compare with noise; use machmeter interactive for lateness, machmeter noise for stolen time.",
        undo: None,
    },
    Code {
        id: BACKWARD_TIME,
        name: "backward time",
        what: "Times in the file go backwards.",
        why: "The file was put together from several runs, is damaged, or its clock differed between CPUs.",
        how: "A start lies before the one above it.",
        next: "Look at the named line; read each run's files by themselves.",
        undo: None,
    },
    Code {
        id: ROUGH_RATE,
        name: "rough rate",
        what: "The clock rate in the file is rounded to whole megahertz.",
        why: "Durations in nanoseconds are off by up to 500 ppm, and frequencies with them.",
        how: "The format stores an integer.",
        next: "Give the exact rate with --tick-hz if frequencies matter.",
        undo: None,
    },
    Code {
        id: NO_TIMES,
        name: "no times",
        what: "The file numbers its samples but does not say when they were taken.",
        why: "Overruns delay all later samples, so no period can be found in it.",
        how: "The format has no time column.",
        next: "Use its distribution only, not its spectrum.",
        undo: None,
    },
    Code {
        id: WRONG_EXTREMES,
        name: "wrong extremes",
        what: "The printed quantiles are not in order.",
        why: "sysjitter sorts by 32-bit differences; a detour above about 0.8 s is sorted to the wrong end and the printed maximum is too small.",
        how: "A lower quantile is larger than a higher one.",
        next: "Use the raw files (--raw), which are right.",
        undo: None,
    },
    Code {
        id: CUT_FILE,
        name: "cut file",
        what: "The file ends in the middle of a line, or a pair of files differs in length.",
        why: "The writing program was stopped or its disk was full; the last number cannot be trusted.",
        how: "The last line has no line end, or one file has more lines than its partner.",
        next: "The incomplete end was left out.",
        undo: None,
    },
    Code {
        id: SEVERAL_RUNS,
        name: "several runs",
        what: "The log holds several runs: interbench appends to it.",
        why: "Figures of different runs have the same names, so only one run can be shown.",
        how: "Several lines that begin a run, or several tables of one task.",
        next: "To see an earlier run, copy its lines (from \"Using ... loops per ms\") to a file of its own.",
        undo: None,
    },
    Code {
        id: HIDDEN_LATENESS,
        name: "hidden lateness",
        what: "interbench subtracts the delay of its own timing thread from every wait, and books a late job as whole periods.",
        why: "What delays both threads (interrupts, a hypervisor, real-time tasks, any load without real-time rights) is missing from the wait; a wait of a little over a deadline counts as a whole period.",
        how: "The program's source, versions 0.21 to 0.31 and the fork by aeolio.",
        next: "Compare such logs only with each other; measure with machmeter interactive, which starts at the scheduled release.",
        undo: None,
    },
    Code {
        id: IMPOSSIBLE_NUMBERS,
        name: "impossible numbers",
        what: "The file has parameters of links that are no numbers, below zero, or there twice.",
        why: "Netgauge subtracts medians that err by more than what is left, and fits a line through two points; what follows from such a parameter is nonsense.",
        how: "NaN or a value below zero in a column of a time, a size that a line before it has.",
        next: "Its round trips and trains were fitted anew; use those figures, not the columns.",
        undo: None,
    },
    Code {
        id: WRONG_UNIT,
        name: "wrong unit",
        what: "Netgauge prints a rate as GiB/s that is not one.",
        why: "It is 8/1024 of the bytes per microsecond, about the Gbit/s: who takes it for bytes has a link eight times too fast.",
        how: "The program's source, version 2.4.6.",
        next: "Take the time per byte, which is right, or the GB/s of this page.",
        undo: None,
    },
];

/// Adds the warning `code` with `text`; what to do comes from the code.
pub(super) fn warn(to: &mut Imported, code: &str, text: impl Into<String>) {
    let next = CODES.iter().find(|c| c.id == code).map_or("", |c| c.next);
    let warning =
        Warning { code: code.to_owned(), text: text.into(), next: next.to_owned(), ..Warning::default() };
    if !to.warnings.contains(&warning) {
        to.warnings.push(warning);
    }
}
