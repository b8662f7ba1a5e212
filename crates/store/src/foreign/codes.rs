//! Stable codes for findings of the readers.

use machmeter_data::Code;

use super::Imported;

machmeter_data::code! { pub MISSING_WINDOWS = "W701" "missing windows",
    what: "FTQ 2009 writes no line for a window that an interruption covered completely.",
    why: "The longest interruptions vanish from its counts, so the counts show too little noise, and the time axis has holes.",
    how: "Windows end at multiples of their length. Two consecutive starts several multiples apart have missing windows between them.",
    next: "The missing windows were added with a count of zero. Measure again with machmeter noise, which keeps them.",
}
machmeter_data::code! { pub THREAD_STRIDE = "W702" "thread stride",
    what: "Threaded FTQ 2009 writes its files with half the stride of its recording.",
    why: "The file of thread 1 begins with the second half of thread 0, and the last samples were never written.",
    how: "The second half of each file equals the first half of the next, value by value.",
    next: "Samples were moved back to their threads; samples that were never written are lost. Measure again with machmeter noise.",
}
machmeter_data::code! { pub TICK_RATE = "W703" "tick rate",
    what: "The file counts time in clock ticks, and their length is unknown.",
    why: "Shares of time are right, but no figure can be given in seconds or hertz.",
    how: "Neither the file nor a side file NAME.machmeter.json contains a rate.",
    next: "Give the clock rate of that machine with --tick-hz (tsc frequency in its kernel log).",
}
machmeter_data::code! { pub THRESHOLD = "W704" "threshold",
    what: "The file records almost every turn of the loop as a detour.",
    why: "If the clock advances in steps, Netgauge can calibrate its shortest turn to one tick or less. The threshold is then below an ordinary turn, \
          and the printed noise is near 100 %.",
    how: "Detours take more than 90 % of the time, more than half of the turns are detours, or the shortest turn is below 1 ns.",
    next: "Do not use the noise share of this file. Measure again with machmeter noise.",
}
machmeter_data::code! { pub OVERFLOW = "W705" "overflow bucket",
    what: "The last bucket of the histogram contains all values beyond it.",
    why: "The shape of the tail is unknown; only its count and the largest value are known.",
    how: "The largest value is beyond the last bucket.",
    next: "Read quantiles in the last bucket as bounds. Record with more buckets to get the tail.",
}
machmeter_data::code! { pub OTHER_QUANTITY = "W706" "wake-up latency",
    what: "The file contains wake-up latencies of a sleeping thread, not time lost by a running one.",
    why: "Wake-ups sample single moments: they miss most detours of a busy loop and add the costs of timer and scheduler.",
    how: "The format belongs to a timer latency tool.",
    next: "Do not compare with noise. Use machmeter interactive for lateness, machmeter noise for stolen time.",
}
machmeter_data::code! { pub BACKWARD_TIME = "W707" "backward time",
    what: "Times in the file go backward.",
    why: "The file was joined from several runs, is damaged, or its clock differed between CPUs.",
    how: "A start lies before the start in the line above it.",
    next: "Check the named line. Read the files of each run separately.",
}
machmeter_data::code! { pub ROUGH_RATE = "W708" "rough rate",
    what: "The clock rate in the file is rounded to whole megahertz.",
    why: "Durations in nanoseconds and frequencies are off by up to 500 ppm.",
    how: "The format stores an integer.",
    next: "Give the exact rate with --tick-hz if frequencies matter.",
}
machmeter_data::code! { pub NO_TIMES = "W709" "no times",
    what: "The file numbers its samples but contains no times.",
    why: "Overruns delay all later samples, so no period can be found.",
    how: "The format has no time column.",
    next: "Use its distribution only, not its spectrum.",
}
machmeter_data::code! { pub WRONG_EXTREMES = "W710" "wrong extremes",
    what: "The printed quantiles are not in order.",
    why: "sysjitter sorts by 32-bit differences. It sorts a detour above about 0.8 s to the wrong end, and the printed maximum is too small.",
    how: "A lower quantile is larger than a higher one.",
    next: "Use the raw files (--raw), which are right.",
}
machmeter_data::code! { pub CUT_FILE = "W711" "cut file",
    what: "The file ends in the middle of a line, or the two files of a pair differ in length.",
    why: "The writing program was stopped or its disk was full. The last number is not reliable.",
    how: "The last line has no line end, or one file has more lines than its partner.",
    next: "The incomplete end was left out.",
}
machmeter_data::code! { pub SEVERAL_RUNS = "W712" "several runs",
    what: "The log contains several runs: interbench appends to it.",
    why: "Figures of different runs have the same names, so only one run can be shown.",
    how: "Several lines that begin a run, or several tables of one task.",
    next: "To read an earlier run, copy its lines (from \"Using ... loops per ms\") to a separate file.",
}
machmeter_data::code! { pub HIDDEN_LATENESS = "W713" "hidden lateness",
    what: "interbench subtracts the delay of its own timing thread from every wait, and counts a late job as whole periods.",
    why: "A delay of both threads (interrupts, a hypervisor, real-time tasks, any load without real-time rights) is missing from the wait. A wait \
          slightly longer than a deadline counts as a whole period.",
    how: "The source code of versions 0.21 to 0.31 and of the fork by aeolio.",
    next: "Compare such logs only with each other. Measure with machmeter interactive, which starts at the scheduled release.",
}
machmeter_data::code! { pub IMPOSSIBLE_NUMBERS = "W714" "impossible numbers",
    what: "The file has link parameters that are not numbers, negative, or present twice.",
    why: "Netgauge subtracts medians with errors larger than the difference, and fits a line through two points. Results from such a parameter are meaningless.",
    how: "NaN or a negative value in a time column, or a size that an earlier line already has.",
    next: "The round trips and trains were fitted again. Use those figures, not the columns.",
}
machmeter_data::code! { pub WRONG_UNIT = "W715" "wrong unit",
    what: "Netgauge prints a wrong rate as GiB/s.",
    why: "The number is 8/1024 of the bytes per microsecond, about the rate in Gbit/s. Read as bytes, the link looks eight times too fast.",
    how: "The source code of version 2.4.6.",
    next: "Use the time per byte, which is right, or the GB/s of this page.",
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
