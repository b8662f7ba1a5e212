//! FTQ as of 2009: a pair of files per thread, one number per line, times in raw clock ticks.
//!
//! Facts from the program's source and from recorded runs:
//! - Times are the *starts* of windows, although its documents call them ends.
//! - A window ends at the next multiple of its length (2^bits ticks), so windows of all threads share boundaries.
//! - A window that an interruption covers completely is not written (W701); this reader adds it with a count of zero.
//! - Threaded runs are written with half the stride of the recording (W702). With an odd number of samples, times and counts
//!   even change places in every second file.

use super::codes::{self, warn};
use super::columns::{self, Samples, WINDOWS, least, list, number_after, samples};
use super::{Imported, Input, Reader, Result, SourceFile, sure};

mod stride;
mod windows;

pub(super) const READER: Reader = Reader {
    name: "ftq-2009",
    description: "FTQ 2009 (also LLNL's copy): PREFIX_THREAD_counts.dat with PREFIX_THREAD_times.dat, or PREFIX_counts.dat",
    sniff: |input| input.files.iter().any(|f| f.name().ends_with("_counts.dat")),
    fill: fill_pairs,
};

pub(super) const STDOUT_READER: Reader = Reader {
    name: "ftq-2009-stdout",
    description: "FTQ 2009 with -s: lines of start time in ticks and count, without a header",
    sniff: |input| {
        columns::all(input, |f| {
            let first = f.text.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
            let words: Vec<&str> = first.split_whitespace().collect();
            words.len() == 2 && words.iter().all(|w| w.bytes().all(|b| b.is_ascii_digit()))
        })
    },
    fill: fill_stdout,
};

/// The samples of one thread, as in the file.
#[derive(Debug, Clone, PartialEq)]
struct Thread {
    number: i32,
    times: Vec<i64>,
    counts: Vec<i64>,
}

fn fill_pairs(input: &Input, out: &mut Imported) -> Result<()> {
    let mut threads: Vec<Thread> = Vec::new();
    let mut run: Option<String> = None;
    for file in &input.files {
        let Some(stem) = file.name().strip_suffix("_counts.dat") else {
            let counts = partner(input, file, "_times.dat", "_counts.dat");
            sure(counts.is_some(), || file.fault("its partner _counts.dat is missing"))?;
            continue;
        };
        let (prefix, number) = number_after(stem, '_').unwrap_or((stem, 0));
        let prefix = file.path.with_file_name(prefix).to_string_lossy().into_owned();
        let is_new = run.as_ref().is_none_or(|r| *r == prefix) && threads.iter().all(|t| t.number != number);
        let other = "belongs to another run than the previous files; read one run at a time";
        sure(is_new, || file.fault(other))?;
        run = Some(prefix);
        let times = partner(input, file, "_counts.dat", "_times.dat").ok_or_else(|| {
            file.fault(format!("its partner {stem}_times.dat is missing; counts need their times"))
        })?;
        threads.push(read_pair(number, times, file, out)?);
    }
    threads.sort_by_key(|t| t.number);
    let threads = stride::repair(threads, out);
    finish(&threads, input, out)
}

fn partner<'a>(input: &'a Input, file: &SourceFile, from: &str, to: &str) -> Option<&'a SourceFile> {
    let name = format!("{}{to}", file.name().strip_suffix(from)?);
    input.files.iter().find(|f| f.path == file.path.with_file_name(&name))
}

fn read_pair(number: i32, times: &SourceFile, counts: &SourceFile, out: &mut Imported) -> Result<Thread> {
    let expected = "one whole number per line, as FTQ 2009 writes";
    let (t, c) = (samples::<i64, 1>(times, expected, out)?, samples::<i64, 1>(counts, expected, out)?);
    let (n, of_counts) = (t.cells.len(), c.cells.len());
    if n != of_counts {
        let text = format!("{} has {n} samples, {} has {of_counts}", times.name(), counts.name());
        warn(out, codes::CUT_FILE, text);
    }
    let (times, counts) = t.column(0).into_iter().zip(c.column(0)).unzip();
    Ok(Thread { number, times, counts })
}

fn fill_stdout(input: &Input, out: &mut Imported) -> Result<()> {
    let mut threads = Vec::new();
    for (number, file) in (0..).zip(&input.files) {
        let r = samples::<i64, 2>(file, "two whole numbers per line, start time in ticks and count", out)?;
        threads.push(Thread { number, times: r.column(0), counts: r.column(1) });
    }
    finish(&threads, input, out)
}

fn finish(threads: &[Thread], input: &Input, out: &mut Imported) -> Result<()> {
    let known = &input.known;
    let length = known.window_ticks.or_else(|| windows::length_ticks(threads));
    let mut all = Samples::default();
    let mut cpus = Vec::new();
    let mut uniform = length.is_some();
    for thread in threads {
        let lines: Vec<usize> = (1..=thread.counts.len()).collect();
        let counts = columns::counts(&thread.counts, &lines, input.first()?)?;
        let full = windows::complete(thread, &counts, length, known.tick_hz, out);
        uniform &= full.uniform;
        let number = known.cpu_of(thread.number);
        cpus.push(number);
        all.add(number, full.starts, full.counts);
    }
    describe(out, length, known.tick_hz);
    let first = least(&all.first);
    let notes = [
        ("tick_hz", known.tick_hz_note()),
        ("t0_ticks", length.map_or(first, |w| first / w * w).to_string()),
        ("window_ticks", length.map_or_else(|| "unknown".to_owned(), |w| w.to_string())),
        ("axis", if uniform { "uniform" } else { "observed" }.to_owned()),
        ("cpu_is", if known.cpus.is_empty() { "thread" } else { "cpu" }.to_owned()),
        ("cpus", list(&cpus)),
    ];
    all.into_table(out, "noise_windows", WINDOWS, &notes);
    Ok(())
}

fn describe(out: &mut Imported, length: Option<i64>, tick_hz: Option<f64>) {
    out.assume(
        "times are starts of windows (the program stores starts, although its documentation names ends)",
    );
    match length {
        Some(w) if w & (w - 1) == 0 => {
            let bits = w.trailing_zeros();
            out.note("interval_bits", bits.to_string());
            out.assume(format!("windows end at multiples of {w} ticks (2^{bits}), found from their spacing"));
        }
        Some(w) => out.assume(format!("windows are {w} ticks long, from a side file or an option")),
        None => out.assume("the length of windows is unknown: their spacing fits no power of two"),
    }
    out.assume("the work quantum (1, 15, 31 or 63 operations per count) is not in the files");
    if tick_hz.is_none() {
        warn(out, codes::TICK_RATE, "times are in clock ticks of unknown length");
    }
}
