//! Stable codes of what readers find.

use machmeter_data::Code;

use super::Imported;

machmeter_data::code! { pub MISSING_WINDOWS = "W701" "missing windows",
    what: "FTQ 2009 writes no line for a window that an interruption swallowed whole.",
    why: "The longest interruptions vanish from its counts, so they show less noise than there was, and the time axis has holes.",
    how: "Windows end at multiples of their length; consecutive starts that lie several multiples apart have windows missing between them.",
    next: "Missing windows were put back with a count of zero; measure anew with machmeter noise, which keeps them.",
}
machmeter_data::code! { pub THREAD_STRIDE = "W702" "thread stride",
    what: "Threaded FTQ 2009 writes its files with half the stride it recorded with.",
    why: "The file of thread 1 begins with the second half of thread 0, and the last samples were never written.",
    how: "The second half of each file equals the first half of the next, value by value.",
    next: "Samples were put back under their threads; those never written are lost. Measure anew with machmeter noise.",
}
machmeter_data::code! { pub TICK_RATE = "W703" "tick rate",
    what: "The file counts time in clock ticks and does not say how long one is.",
    why: "Shares of time are right, but nothing can be given in seconds or hertz.",
    how: "Neither the file nor a side file NAME.machmeter.json holds a rate.",
    next: "Give the rate of that machine's clock with --tick-hz (tsc frequency in its kernel log).",
}
machmeter_data::code! { pub THRESHOLD = "W704" "threshold",
    what: "Almost every turn of the loop was recorded as a detour.",
    why: "Where the clock advances in steps, Netgauge can calibrate its shortest turn to one tick or less; the threshold then lies below an ordinary turn and the printed noise is near 100 %.",
    how: "Detours add up to more than 90 % of the time, more than half of the turns are detours, or the shortest turn is below 1 ns.",
    next: "Do not use the noise share of this file; measure anew with machmeter noise.",
}
machmeter_data::code! { pub OVERFLOW = "W705" "overflow bucket",
    what: "The last bucket of the histogram holds everything beyond it.",
    why: "The tail's shape is unknown; only its count and the largest value are.",
    how: "The largest value lies beyond the last bucket.",
    next: "Read quantiles in the last bucket as bounds; record with more buckets for the tail.",
}
machmeter_data::code! { pub OTHER_QUANTITY = "W706" "wake-up latency",
    what: "The file holds how late a sleeping thread woke up, not how much time a running one lost.",
    why: "A wake-up samples instants: most detours of a busy loop are never seen, and timer and scheduler costs are added.",
    how: "The format belongs to a timer latency tool.",
    next: "Do not compare with noise; use machmeter interactive for lateness, machmeter noise for stolen time.",
}
machmeter_data::code! { pub BACKWARD_TIME = "W707" "backward time",
    what: "Times in the file go backwards.",
    why: "The file was put together from several runs, is damaged, or its clock differed between CPUs.",
    how: "A start lies before the one above it.",
    next: "Look at the named line; read each run's files by themselves.",
}
machmeter_data::code! { pub ROUGH_RATE = "W708" "rough rate",
    what: "The clock rate in the file is rounded to whole megahertz.",
    why: "Durations in nanoseconds are off by up to 500 ppm, and frequencies with them.",
    how: "The format stores an integer.",
    next: "Give the exact rate with --tick-hz if frequencies matter.",
}
machmeter_data::code! { pub NO_TIMES = "W709" "no times",
    what: "The file numbers its samples but does not say when they were taken.",
    why: "Overruns delay all later samples, so no period can be found in it.",
    how: "The format has no time column.",
    next: "Use its distribution only, not its spectrum.",
}
machmeter_data::code! { pub WRONG_EXTREMES = "W710" "wrong extremes",
    what: "The printed quantiles are not in order.",
    why: "sysjitter sorts by 32-bit differences; a detour above about 0.8 s is sorted to the wrong end and the printed maximum is too small.",
    how: "A lower quantile is larger than a higher one.",
    next: "Use the raw files (--raw), which are right.",
}
machmeter_data::code! { pub CUT_FILE = "W711" "cut file",
    what: "The file ends in the middle of a line, or a pair of files differs in length.",
    why: "The writing program was stopped or its disk was full; the last number cannot be trusted.",
    how: "The last line has no line end, or one file has more lines than its partner.",
    next: "The incomplete end was left out.",
}
machmeter_data::code! { pub SEVERAL_RUNS = "W712" "several runs",
    what: "The log holds several runs: interbench appends to it.",
    why: "Figures of different runs have the same names, so only one run can be shown.",
    how: "Several lines that begin a run, or several tables of one task.",
    next: "To see an earlier run, copy its lines (from \"Using ... loops per ms\") to a file of its own.",
}
machmeter_data::code! { pub HIDDEN_LATENESS = "W713" "hidden lateness",
    what: "interbench subtracts the delay of its own timing thread from every wait, and books a late job as whole periods.",
    why: "What delays both threads (interrupts, a hypervisor, real-time tasks, any load without real-time rights) is missing from the wait; a wait of a little over a deadline counts as a whole period.",
    how: "The program's source, versions 0.21 to 0.31 and the fork by aeolio.",
    next: "Compare such logs only with each other; measure with machmeter interactive, which starts at the scheduled release.",
}
machmeter_data::code! { pub IMPOSSIBLE_NUMBERS = "W714" "impossible numbers",
    what: "The file has parameters of links that are no numbers, below zero, or there twice.",
    why: "Netgauge subtracts medians that err by more than what is left, and fits a line through two points; what follows from such a parameter is nonsense.",
    how: "NaN or a value below zero in a column of a time, a size that a line before it has.",
    next: "Its round trips and trains were fitted anew; use those figures, not the columns.",
}
machmeter_data::code! { pub WRONG_UNIT = "W715" "wrong unit",
    what: "Netgauge prints a rate as GiB/s that is not one.",
    why: "It is 8/1024 of the bytes per microsecond, about the Gbit/s: who takes it for bytes has a link eight times too fast.",
    how: "The program's source, version 2.4.6.",
    next: "Take the time per byte, which is right, or the GB/s of this page.",
}

/// Every code of this module, for `machmeter explain`.
pub const CODES: &[Code] = &[
    MISSING_WINDOWS,
    THREAD_STRIDE,
    TICK_RATE,
    THRESHOLD,
    OVERFLOW,
    OTHER_QUANTITY,
    BACKWARD_TIME,
    ROUGH_RATE,
    NO_TIMES,
    WRONG_EXTREMES,
    CUT_FILE,
    SEVERAL_RUNS,
    HIDDEN_LATENESS,
    IMPOSSIBLE_NUMBERS,
    WRONG_UNIT,
];

/// Adds a warning of `code` with `text`, once.
pub(super) fn warn(to: &mut Imported, code: Code, text: impl Into<String>) {
    let warning = code.warning(text);
    if !to.warnings.contains(&warning) {
        to.warnings.push(warning);
    }
}
