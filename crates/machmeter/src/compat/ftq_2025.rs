//! FTQ as of 2025: windows by frequency, one file per thread with a `#` header.
//!
//! Formats and rules follow ftq.c, ftqcore.c and linux.c of 2025. The windows of all threads share one schedule, unlike in the original. Fully interrupted
//! windows are zero counts in both.

use std::path::Path;

use clap::{Arg, ArgMatches, Command, value_parser};
use machmeter_noise::Quantum;
use machmeter_store::atomic;
use machmeter_store::foreign::write::{self, Ftq2025Header};
use machmeter_sys::facts;
use machmeter_sys::guard::signals;
use machmeter_sys::sched::Policy;

use super::bench::{Bench, counts_of, fact, uname};
use super::ftq::LEAST_TURNS;
use super::{
    flag, nothing_written, number, print_filled, samples, target, tell_more, threads, value_of, with_output,
};
use crate::{Exit, Failure, Result, output};

/// Priority of `-r`. The original takes the highest, which starves the kernel's own threads.
const FIFO_PRIORITY: u8 = machmeter_engine::placement::AUTO_FIFO_PRIORITY;

pub(super) fn define(name: &'static str) -> Command {
    let command = Command::new(name)
        .about("Fixed time quantum benchmark as of 2025: counts of work in windows by frequency")
        .arg(number('f', "frequency", 1..=1_000_000, "HZ", "Windows per second").default_value("10000"))
        .arg(samples("524288", "Windows to record (at most 2000000)"))
        .arg(threads().default_value("1"))
        .arg(number('d', "delay", 0..=3_600_000, "MS", "Wait before the start").default_value("0"))
        .arg(flag('r', "realtime", "Use SCHED_FIFO on all requested CPUs"))
        .arg(
            Arg::new("ticksperns")
                .short('T')
                .long("ticksperns")
                .value_name("RATE")
                .value_parser(value_parser!(f64))
                .help("Clock ticks per ns: only compared with the measured rate"),
        )
        .arg(flag('w', "ignore_wire_failures", "No effect: threads are always pinned"));
    with_output(command, "ftq")
}

pub(super) fn run(name: &str, matches: &ArgMatches) -> Result<Exit> {
    let threads = value_of(matches, "threads") as usize;
    let prefix = target::asked(name, matches, threads)?;
    let policy = matches.get_flag("realtime").then_some(Policy::Fifo(FIFO_PRIORITY));
    let bench = Bench::of_threads("-t", threads, policy)?;
    let turn = bench.turn(Quantum::SixtyThree)?;
    let ticks_per_ns = 1.0 / bench.rate().ns_per_tick();
    // Whole nanoseconds, as in the original.
    let interval_ns = 1_000_000_000 / value_of(matches, "frequency");
    let window_ticks = bench.rate().ticks(interval_ns as f64);
    if (window_ticks as f64) < LEAST_TURNS * turn.mean_ticks {
        let most_hz = bench.rate().hz() / (LEAST_TURNS * turn.mean_ticks);
        let hz = value_of(matches, "frequency");
        let what = format!("{name}: -f {hz}: a window is shorter than {LEAST_TURNS} turns of the loop");
        return Err(Failure::usage(what).help(format!("the maximum on this machine is -f {most_hz:.0}")));
    }
    doubt_rate(name, matches, ticks_per_ns);
    let windows = value_of(matches, "numsamples") as usize;
    bench.announce(name, window_ticks, windows);
    Bench::wait_ms(value_of(matches, "delay"));
    let samples = bench.record(Quantum::SixtyThree, window_ticks, windows, false, turn.threshold_ticks)?;
    let counts = counts_of(&samples);
    let closed = counts.first().map_or(0, Vec::len);
    if closed == 0 {
        return Ok(nothing_written(name, "the first window ended"));
    }
    if closed < windows {
        output::say(&format!("{name}: stopped; {closed} of {windows} windows were written"));
    }
    let all = counts.iter().flatten().map(|n| u64::from(n.unsigned_abs()));
    let best = all.clone().max().unwrap_or(0);
    let header = Ftq2025Header {
        frequency_hz: 1e9 / interval_ns as f64,
        ticks_per_ns,
        thread: 0,
        cpu: None,
        start_delay_ms: value_of(matches, "delay"),
        total_count: all.clone().sum(),
        max_work: best * all.count() as u64,
        pinned: true,
        system: system_lines(),
    };
    let view = put(&bench, prefix.as_deref(), &header, window_ticks, &counts)?;
    tell_more(name, &view);
    Ok(signals::stop_requested().map_or(Exit::Fine, Exit::from))
}

/// Writes the file of each thread, or thread 0 to stdout; returns the arguments for `report`.
fn put(
    bench: &Bench,
    prefix: Option<&Path>,
    header: &Ftq2025Header,
    window_ticks: u64,
    counts: &[Vec<i32>],
) -> Result<String> {
    let closed = counts.first().map_or(0, Vec::len) as u64;
    let start_ns: Vec<i64> = (0..closed).map(|k| bench.rate().ns(k * window_ticks).round() as i64).collect();
    for (thread, (cpu, counts)) in bench.cpus.iter().zip(counts).enumerate() {
        let header = Ftq2025Header { thread, cpu: i32::try_from(cpu).ok(), ..header.clone() };
        if let Some(prefix) = prefix {
            let path = write::ftq_2025_path(prefix, thread);
            let written = atomic::replace(&path, |out| write::ftq_2025(out, &header, &start_ns, counts));
            written.map_err(Failure::cannot)?;
        } else {
            print_filled(|out| write::ftq_2025(out, &header, &start_ns, counts))?;
        }
    }
    let Some(prefix) = prefix else { return Ok("FILE".to_owned()) };
    target::side_facts(prefix, bench, Some(window_ticks), None)?;
    Ok(prefix.display().to_string())
}

/// Warns if the clock rate given by the user differs from the measured one.
fn doubt_rate(name: &str, matches: &ArgMatches, ticks_per_ns: f64) {
    if let Some(given) = matches.get_one::<f64>("ticksperns")
        && (!given.is_finite() || (given / ticks_per_ns - 1.0).abs() > 1e-3)
    {
        let used = format!("ignored, the clock has {ticks_per_ns:.5} ticks per ns");
        output::say(&format!("{name}: -T {given}: {used}"));
    }
}

/// The original's lines about the system, as far as known: name, host, release, version, machine, CPU.
fn system_lines() -> Vec<String> {
    let facts = facts::capture();
    let model = format!("model name\t: {}", fact(&facts, "cpu.model"));
    uname(&facts).into_iter().chain([model]).collect()
}
