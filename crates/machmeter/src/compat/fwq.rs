//! LLNL's FWQ (fixed work quantum): the time taken by each of many equal pieces of work.
//!
//! The format follows fwq.c. A piece is 2^bits turns of this program's loop (one count and one clock read each). Its duration is derived from the
//! recorded windows and gaps, so it is known to about two turns.

use std::path::Path;

use clap::{ArgMatches, Command};
use machmeter_noise::Quantum;
use machmeter_noise::analyze::derive;
use machmeter_noise::windows::Turn;
use machmeter_store::foreign::write;
use machmeter_sys::guard::signals;

use super::bench::{Bench, level_off};
use super::{
    nothing_written, number, print_filled, samples, target, tell_more, threads, value_of, with_output,
};
use crate::{Exit, Failure, Result, output};

/// With fewer bits, an uncertainty of two turns exceeds 1 % of a piece.
const LEAST_BITS: u64 = 8;
/// The run ends early once it has taken this many times the time of undisturbed work.
const PATIENCE: f64 = 4.0;
/// Most base windows of one recording.
const WINDOWS_MOST: f64 = 4e6;

pub(super) fn define(name: &'static str) -> Command {
    let command = Command::new(name)
        .about("Fixed work quantum benchmark: clock ticks of equal pieces of work")
        .arg(
            number('w', "work", 3..=30, "BITS", "Pieces of 2^BITS turns of the loop (8 to 30)")
                .default_value("20"),
        )
        .arg(samples("10000", "Pieces to time (at most 2000000)"))
        .arg(threads().default_value("1"));
    with_output(command, "fwq")
}

pub(super) fn run(name: &str, matches: &ArgMatches) -> Result<Exit> {
    let threads = value_of(matches, "threads") as usize;
    let bits = value_of(matches, "work");
    if bits < LEAST_BITS {
        let what =
            format!("{name}: -w {bits}: a piece of {} turns is too short to time it to 1 %", 1_u64 << bits);
        return Err(Failure::usage(what).help(format!("the minimum is -w {LEAST_BITS}")));
    }
    let prefix = target::asked(name, matches, threads)?;
    let wanted = value_of(matches, "numsamples") as usize;
    let bench = Bench::of_threads("-t", threads, None)?;
    let turn = bench.turn(Quantum::One)?;
    let piece_ticks = turn.mean_ticks * (1_u64 << bits) as f64;
    let [each, all] = [1.0, wanted as f64].map(|n| bench.span(piece_ticks * n));
    let pieces = format!("{wanted} pieces of 2^{bits} turns ({each} undisturbed)");
    output::say(&format!("{name}: {pieces} on CPU {}: at least {all}", bench.cpus));
    let pieces = take(&bench, turn, 1 << bits, wanted)?;
    finish(name, &bench, prefix.as_deref(), &pieces, wanted)
}

/// Durations of pieces, ticks, per thread, and the losses on the way.
pub(super) struct Pieces {
    /// The same number for every thread.
    pub(super) ticks: Vec<Vec<i64>>,
    /// Number of gaps without a recorded position, because the list was full. Pieces around them are less exact.
    pub(super) gaps_dropped: u64,
}

/// Records until every thread has finished its pieces, a signal stops it, or [`PATIENCE`] ends. Pieces have no position in time, so several recordings may
/// follow each other.
pub(super) fn take(bench: &Bench, turn: Turn, turns: u64, wanted: usize) -> Result<Pieces> {
    let piece_ticks = turn.mean_ticks * turns as f64;
    let mut out = Pieces { ticks: vec![Vec::new(); bench.cpus.len()], gaps_dropped: 0 };
    let mut left_ticks = PATIENCE * piece_ticks * wanted as f64 + bench.rate().hz();
    loop {
        let done = out.ticks.iter().map(Vec::len).min().unwrap_or(0);
        if done >= wanted || left_ticks < piece_ticks || signals::stop_requested().is_some() {
            break;
        }
        let needed_ticks = ((wanted - done) as f64 * piece_ticks * 1.02 + 4.0 * piece_ticks).min(left_ticks);
        let window_ticks = (piece_ticks / 4.0)
            .clamp(32.0 * turn.mean_ticks, 131_072.0_f64.max(32.0 * turn.mean_ticks))
            .max(needed_ticks / WINDOWS_MOST) as u64;
        let windows = (needed_ticks / window_ticks as f64).ceil() as usize + 1;
        let samples = bench.record(Quantum::One, window_ticks, windows, false, turn.threshold_ticks)?;
        left_ticks -= windows as f64 * window_ticks as f64;
        for (list, cpu) in out.ticks.iter_mut().zip(&samples.cpus) {
            out.gaps_dropped += cpu.unlisted_gaps();
            let durations = derive::fwq(cpu, &samples.setup.schedule, turns);
            list.extend(durations.into_iter().filter_map(|d| i64::try_from(d).ok()));
            list.truncate(wanted);
        }
    }
    level_off(&mut out.ticks);
    Ok(out)
}

fn finish(name: &str, bench: &Bench, prefix: Option<&Path>, pieces: &Pieces, wanted: usize) -> Result<Exit> {
    let done = pieces.ticks.first().map_or(0, Vec::len);
    let stopped = signals::stop_requested();
    if done == 0 {
        return Ok(nothing_written(name, "the first piece was done"));
    }
    let view = if let Some(prefix) = prefix {
        for (thread, ticks) in pieces.ticks.iter().enumerate() {
            write::fwq(prefix, thread, ticks).map_err(Failure::cannot)?;
        }
        let lost = (pieces.gaps_dropped > 0).then_some(pieces.gaps_dropped);
        target::side_facts(prefix, bench, None, lost)?;
        prefix.display().to_string()
    } else {
        print_filled(|out| write::numbers(out, &pieces.ticks[0]))?;
        "FILE".to_owned()
    };
    if done < wanted {
        let disturbed = "too disturbed: stopped after 4 times the undisturbed time";
        let why = if stopped.is_some() { "stopped" } else { disturbed };
        output::say(&format!("{name}: {why}; {done} of {wanted} pieces were written"));
    }
    summary(name, bench, pieces);
    tell_more(name, &view);
    Ok(stopped.map_or(if done < wanted { Exit::Partial } else { Exit::Fine }, Exit::from))
}

/// Prints the original's total and average, in their true unit.
fn summary(name: &str, bench: &Bench, pieces: &Pieces) {
    let all = pieces.ticks.iter().flatten();
    let (n, total) = all.clone().fold((0_u64, 0.0), |(n, t), ticks| (n + 1, t + *ticks as f64));
    let least = all.min().copied().unwrap_or(0);
    let [total, mean, least] = [total, total / n.max(1) as f64, least as f64].map(|t| bench.span(t));
    output::say(&format!("{name}: total {total}, average {mean} per piece, shortest {least} (n = {n})"));
    if pieces.gaps_dropped > 0 {
        let why = "interruptions did not fit into the list; the pieces around them are less exact";
        output::say(&format!("{name}: {} {why}", pieces.gaps_dropped));
    }
}
