//! Netgauge's noise pattern: `#` headers, then columns by method.
//!
//! - selfish: start of a detour in ns after the first one, and its length minus the shortest turn, in ns.
//! - ftq: index and work units of a window; no times, and an overrun delays all later windows.
//! - fwq: index and duration in whole microseconds.

use machmeter_data::Unit;
use machmeter_data::quantity::human;

use super::codes::{self, warn};
use super::columns::{self, Samples, WINDOWS, WORK, add_gaps, all, least, list, number_after, samples};
use super::{Imported, Input, Reader, Result, SourceFile, sure};

pub(super) const READER: Reader = Reader {
    name: "netgauge-noise",
    description: "Netgauge -x noise with -e selfish, ftq or fwq: ng.out, or ng.out.RANK",
    sniff: |input| all(input, |f| f.header("# Benchmark Method: ").is_some()),
    fill,
};

fn fill(input: &Input, out: &mut Imported) -> Result<()> {
    let first = input.first()?;
    let method_of = |f: &SourceFile| f.header("# Benchmark Method: ").unwrap_or("").to_owned();
    let method = method_of(first);
    let is_one = input.files.iter().all(|f| method_of(f) == method);
    sure(is_one, || first.fault("the files contain different methods; read one run at a time"))?;
    let rank = |f: &SourceFile| input.known.cpu_of(number_after(f.name(), '.').map_or(0, |(_, n)| n));
    let ranks: Vec<i32> = input.files.iter().map(rank).collect();
    let differ = (1..ranks.len()).all(|i| !ranks[..i].contains(&ranks[i]));
    sure(differ, || first.fault("two files of the same rank; read one run at a time"))?;
    out.note("method", method.as_str());
    out.assume("rank r ran on CPU r, to which the program pins it");
    match method.as_str() {
        "selfish" => selfish(input, &ranks, out),
        "ftq" => ftq(input, &ranks, out),
        "fwq" => fwq(input, &ranks, out),
        other => Err(first.fault(format!("method {other:?}, expected selfish, ftq or fwq"))),
    }
}

fn selfish(input: &Input, ranks: &[i32], out: &mut Imported) -> Result<()> {
    let mut gaps = Vec::new();
    let (mut shortest_turn_ns, mut wall_ns) = (0.0_f64, 0.0_f64);
    let mut threshold_percent = None;
    for (file, rank) in input.files.iter().zip(ranks) {
        let r = samples::<f64, 2>(file, "time and duration in ns", out)?;
        let turn_ns = number(file, "# Minimal cycle length [ns]:");
        let turns = number(file, "# Number of iterations (recorded+unrecorded):");
        check_threshold(file, &r.cells, turn_ns, turns, out);
        threshold_percent = threshold_percent.or(number(file, "# Threshold: [% minimal cycle length]:"));
        shortest_turn_ns = shortest_turn_ns.max(turn_ns.unwrap_or(0.0));
        for [start, duration] in r.cells {
            wall_ns = wall_ns.max(start + duration);
            gaps.push((*rank, start.round() as i64, (start + duration).round() as i64));
        }
    }
    out.assume("times are rounded to 1 ns; each rank's time starts at its first detour");
    out.assume(
        "durations exclude one shortest turn, which the program subtracts; the run ends with its last detour",
    );
    let mut notes = vec![
        ("tick_hz", "1000000000".to_owned()),
        ("t0_ticks", "0".to_owned()),
        ("wall_ticks", (wall_ns.round() as i64).to_string()),
        ("turn_ns", shortest_turn_ns.to_string()),
        ("cpu_is", "cpu".to_owned()),
        ("cpus", list(ranks)),
    ];
    let threshold_ns = threshold_percent.map(|percent| shortest_turn_ns * percent / 100.0);
    notes.extend(threshold_ns.map(|ns| ("threshold_ns", ns.to_string())));
    add_gaps(out, gaps, &notes);
    Ok(())
}

/// W704: the program's calibration fails on clocks that advance in steps.
fn check_threshold(
    file: &SourceFile,
    rows: &[[f64; 2]],
    turn_ns: Option<f64>,
    turns: Option<f64>,
    out: &mut Imported,
) {
    let lost_ns: f64 = rows.iter().map(|r| r[1]).sum();
    let wall_ns = rows.iter().map(|r| r[0] + r[1]).fold(0.0, f64::max);
    let share = if wall_ns > 0.0 { lost_ns / wall_ns } else { 0.0 };
    let recorded = turns.filter(|t| *t > 0.0).map_or(0.0, |t| rows.len() as f64 / t);
    let turn_ns = turn_ns.unwrap_or(f64::INFINITY);
    if share > 0.9 || recorded > 0.5 || turn_ns < 1.0 {
        let wall = human(wall_ns, Unit::Nanoseconds);
        let mut text = format!("{}: detours are {:.1} % of {wall}", file.name(), share * 100.0);
        if recorded > 0.0 {
            text += &format!(", {:.1} % of all turns were recorded", (recorded * 100.0).min(100.0));
        }
        if turn_ns.is_finite() {
            text += &format!(", shortest turn {turn_ns:.3} ns");
        }
        warn(out, codes::THRESHOLD, text);
    }
}

fn ftq(input: &Input, ranks: &[i32], out: &mut Imported) -> Result<()> {
    let mut windows = Samples::default();
    let mut window_ns = 0_i64;
    for (file, rank) in input.files.iter().zip(ranks) {
        let r = samples::<i64, 2>(file, "index and count", out)?;
        window_ns = duration_us(file)?.saturating_mul(1000);
        let starts = (0..r.cells.len() as i64).map(|i| i.saturating_mul(window_ns));
        windows.add(*rank, starts, columns::counts(&r.column(1), &r.lines, file)?);
    }
    warn(out, codes::NO_TIMES, "windows are numbered, not timed");
    out.assume("window i starts at i times the requested length; in fact the program starts each window at the end of the previous one");
    let notes = [
        ("tick_hz", "1000000000".to_owned()),
        ("t0_ticks", "0".to_owned()),
        ("window_ticks", window_ns.to_string()),
        ("axis", "nominal".to_owned()),
        ("cpu_is", "cpu".to_owned()),
        ("cpus", list(ranks)),
    ];
    windows.into_table(out, "noise_windows", WINDOWS, &notes);
    Ok(())
}

fn fwq(input: &Input, ranks: &[i32], out: &mut Imported) -> Result<()> {
    let mut work = Samples::default();
    for (file, rank) in input.files.iter().zip(ranks) {
        let r = samples::<i64, 2>(file, "index and duration in us", out)?;
        work.add(*rank, r.column(0), r.column(1));
        if let Ok(us) = duration_us(file) {
            out.note("asked_duration_us", us.to_string());
        }
    }
    warn(out, codes::NO_TIMES, "pieces of work are numbered, not timed");
    out.assume("a tick is one microsecond: the program writes whole microseconds, truncated after division by a rounded-up rate");
    let notes = [
        ("tick_hz", "1000000".to_owned()),
        ("min_ticks", least(&work.second).to_string()),
        ("cpu_is", "cpu".to_owned()),
        ("cpus", list(ranks)),
    ];
    work.into_table(out, "noise_work", WORK, &notes);
    Ok(())
}

fn number(file: &SourceFile, key: &str) -> Option<f64> {
    file.header(key)?.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0)
}

fn duration_us(file: &SourceFile) -> Result<i64> {
    file.header("# Compute-Cycle Duration:")
        .and_then(|t| t.strip_suffix("usec")?.trim().parse().ok())
        .filter(|us| *us > 0)
        .ok_or_else(|| file.fault("no \"# Compute-Cycle Duration: N usec\" in its header"))
}
