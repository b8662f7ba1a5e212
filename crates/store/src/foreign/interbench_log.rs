//! Logs of interbench (0.21 to 0.31, the fork by aeolio, and machmeter in its place): one table per task, one row per load, figures only.
//!
//! A log has no samples, so nothing is analyzed again: the printed figures become metrics unchanged. The formats follow the program's readme and its sources
//! (0.31 prints `mean +/- SD`, maximum, percent of CPU, percent of deadlines).

mod figures;
mod parse;

use super::codes::{self, warn};
use super::columns::all;
use super::{Imported, Input, Reader, Result, StoreError};

pub use figures::METRICS;

pub(super) const READER: Reader = Reader {
    name: "interbench-log",
    description: "interbench 0.21 to 0.31 and its fork by aeolio: KERNEL.log, tables of tasks under loads",
    sniff: |input| all(input, |f| parse::has_table(&f.text)),
    fill,
};

/// Beginning of the line with which machmeter marks its own logs.
pub const OUR_MARK: &str = "Measured by machmeter";

fn fill(input: &Input, out: &mut Imported) -> Result<()> {
    let [file] = input.files.as_slice() else {
        return Err(StoreError::new("input".as_ref(), "interbench logs are read one at a time"));
    };
    let runs = parse::parse(file)?;
    let with_rows: Vec<&parse::Run> = runs.iter().filter(|r| r.rows() > 0).collect();
    let Some(run) = with_rows.last() else {
        return Err(file.fault("an interbench log without any row of figures"));
    };
    if with_rows.len() > 1 {
        let which = run.datestamp.as_deref().map_or_else(String::new, |d| format!(", of {d},"));
        let text = format!("{} holds {} runs; the last one{which} was read", file.name(), with_rows.len());
        warn(out, codes::SEVERAL_RUNS, text);
    }
    for (task, load) in &run.unfinished {
        let text = format!("{}: {task} under {load} has no figures: the run was stopped there", file.name());
        warn(out, codes::CUT_FILE, text);
    }
    if !run.by_machmeter {
        let text = "waits exclude the delay of the timing thread, and count whole periods after a deadline";
        warn(out, codes::HIDDEN_LATENESS, text);
    }
    notes(run, out);
    assumptions(run, out);
    figures::fill(run, out);
    Ok(())
}

fn notes(run: &parse::Run, out: &mut Imported) {
    let number = |value: Option<u64>| value.map(|v| v.to_string());
    for (key, value) in [
        ("kernel", run.kernel.clone()),
        ("datestamp", run.datestamp.clone()),
        ("comment", run.comment.clone()),
        ("loops_per_ms", number(run.loops_per_ms)),
        ("seconds_per_cell", number(run.seconds)),
        ("burn_threads", number(run.processors)),
    ] {
        out.notes.extend(value.map(|value| (key.to_owned(), value)));
    }
    for b in &run.blocks {
        let real_time = b.real_time.then(|| "real time".to_owned());
        let nice = b.nice.map(|n| format!("nice {n}"));
        let words: Vec<String> =
            [real_time, nice, b.load_nice.map(|n| format!("load nice {n}"))].into_iter().flatten().collect();
        if !words.is_empty() {
            out.note(&format!("policy.{}", b.task), words.join(", "));
        }
    }
}

fn assumptions(run: &parse::Run, out: &mut Imported) {
    out.assume("each figure is that of one cell, as printed; the number of samples is not in the file");
    if run.by_machmeter {
        out.assume("the printed SD is the standard deviation, as machmeter prints it");
        return;
    }
    if run.blocks.iter().any(parse::Block::spread_is_rms) {
        out.assume(
            "the SD printed by 0.31 and before is the root mean square; the standard deviation is computed as \
             sqrt(rms^2 - mean^2), exact to the printed digits, and unknown if the mean is larger than the root mean square",
        );
    }
    if run.blocks.iter().any(|b| !b.spread_is_rms()) {
        out.assume("the fork by aeolio prints the standard deviation; its median has a resolution of 100 ns and ends at 100 us");
    }
    out.assume(
        "the CPU time of the jobs is unknown: interbench's own calibration can be off by a factor of 2",
    );
}
