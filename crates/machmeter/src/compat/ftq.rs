//! FTQ as of 2009: `ftq`, `ftq15`, `ftq31`, `ftq63` and their threaded forms `t_ftq*`.
//!
//! FTQ (fixed time quantum) counts the work done in each of many windows of equal length. Formats and rules follow ftq.c of 2009 and its README. Windows
//! end at multiples of 2^bits ticks, as there. A window that an interruption covers completely is kept with a count of zero; the original drops it, and
//! with it its time axis.

use std::path::Path;

use clap::{ArgMatches, Command};
use machmeter_loops::noise::measure::Schedule;
use machmeter_noise::Quantum;
use machmeter_store::foreign::write;
use machmeter_sys::guard::signals;

use super::bench::{Bench, counts_of};
use super::{
    nothing_written, number, print_filled, samples, target, tell_more, threads, value_of, with_output,
};
use crate::{Exit, Failure, Result, output};

/// Least turns of the loop in a window. With fewer, a count has no information.
pub(super) const LEAST_TURNS: f64 = 4.0;

/// Names end in the quantum; those with threads begin with `t_`.
pub(super) const NAMES: &[&str] =
    &["ftq", "ftq15", "ftq31", "ftq63", "t_ftq", "t_ftq15", "t_ftq31", "t_ftq63"];

fn is_threaded(name: &str) -> bool {
    name.starts_with("t_")
}

fn quantum(name: &str) -> Quantum {
    match name.trim_start_matches("t_") {
        "ftq15" => Quantum::Fifteen,
        "ftq31" => Quantum::ThirtyOne,
        "ftq63" => Quantum::SixtyThree,
        _ => Quantum::One,
    }
}

pub(super) fn define(name: &'static str) -> Command {
    let command = Command::new(name)
        .about("Fixed time quantum benchmark as of 2009: counts of work in windows of 2^BITS clock ticks")
        .arg(number('i', "interval", 3..=30, "BITS", "Windows of 2^BITS ticks (3 to 30)").default_value("20"))
        .arg(samples("524288", "Windows to record (at most 2000000)"));
    // The form without threads knows the option only to reject it with a reason.
    let threads = if is_threaded(name) { threads().default_value("1") } else { threads().hide(true) };
    with_output(command, "ftq").arg(threads)
}

pub(super) fn run(name: &str, matches: &ArgMatches) -> Result<Exit> {
    let quantum = quantum(name);
    let threads = value_of(matches, "threads").max(1) as usize;
    if !is_threaded(name) && matches.contains_id("threads") {
        return Err(Failure::usage(format!("{name}: only the threaded form takes -t"))
            .help(format!("t_{name} -t {threads}")));
    }
    let prefix = target::asked(name, matches, threads)?;
    let (bits, windows) = (value_of(matches, "interval"), value_of(matches, "numsamples") as usize);
    let window_ticks = 1_u64 << bits;
    let bench = Bench::of_threads("-t", threads, None)?;
    let turn = bench.turn(quantum)?;
    long_enough(name, bits, turn.mean_ticks, &bench)?;
    bench.announce(name, window_ticks, windows);
    let samples = bench.record(quantum, window_ticks, windows, true, turn.threshold_ticks)?;
    let counts = counts_of(&samples);
    let closed = counts.first().map_or(0, Vec::len);
    if closed == 0 {
        return Ok(nothing_written(name, "the first window ended"));
    }
    let view = put(&bench, prefix.as_deref(), &samples.setup.schedule, &counts)?;
    tell(name, &counts, windows, &view);
    Ok(signals::stop_requested().map_or(Exit::Fine, Exit::from))
}

/// Writes the pair of files of each thread, or the only thread to stdout; returns the arguments for `report`.
fn put(bench: &Bench, prefix: Option<&Path>, schedule: &Schedule, counts: &[Vec<i32>]) -> Result<String> {
    let closed = counts.first().map_or(0, Vec::len) as u64;
    let starts: Vec<i64> =
        (0..closed).map(|k| (schedule.t0_ticks + k * schedule.window_ticks) as i64).collect();
    let Some(prefix) = prefix else {
        print_filled(|out| write::ftq_2009_lines(out, &starts, &counts[0]))?;
        return Ok(format!("FILE --tick-hz {:.0}", bench.rate().hz()));
    };
    for (thread, counts) in counts.iter().enumerate() {
        write::ftq_2009(prefix, thread, &starts, counts).map_err(Failure::cannot)?;
    }
    if counts.len() == 1 {
        target::documented_names(prefix)?;
    }
    target::side_facts(prefix, bench, Some(schedule.window_ticks), None)?;
    Ok(prefix.display().to_string())
}

/// Rejects windows with too few turns of the loop.
fn long_enough(name: &str, bits: u64, turn_ticks: f64, bench: &Bench) -> Result<()> {
    let least = least_bits(turn_ticks);
    if bits >= least {
        return Ok(());
    }
    let (ticks, turn) = (1_u64 << bits, bench.span(turn_ticks));
    let what = format!(
        "a window of {ticks} ticks is shorter than {LEAST_TURNS} turns of the loop ({turn} each here)"
    );
    Err(Failure::usage(format!("{name}: -i {bits}: {what}"))
        .help(format!("the minimum on this machine is -i {least}")))
}

/// The least bits whose window holds [`LEAST_TURNS`] turns.
fn least_bits(turn_ticks: f64) -> u64 {
    (LEAST_TURNS * turn_ticks).max(8.0).log2().ceil() as u64
}

/// Prints facts that the files do not contain: the windows that the original would lose, an early end, and how to see more.
fn tell(name: &str, counts: &[Vec<i32>], asked: usize, view: &str) {
    let closed = counts.first().map_or(0, Vec::len);
    let swallowed: usize = counts.iter().map(|c| c.iter().filter(|n| **n == 0).count()).sum();
    if closed < asked {
        output::say(&format!("{name}: stopped; {closed} of {asked} windows were written"));
    }
    let kept = "were fully interrupted and are written as 0; FTQ of 2009 would omit them";
    output::say(&format!("{name}: {swallowed} of {} windows {kept}", closed * counts.len()));
    tell_more(name, view);
}

#[cfg(test)]
mod tests {
    use super::least_bits;

    #[test]
    fn the_least_window_holds_four_turns() {
        assert_eq!([24.6, 32.0, 33.0, 0.1].map(least_bits), [7, 7, 8, 3]);
    }
}
