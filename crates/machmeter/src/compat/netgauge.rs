//! Netgauge's noise pattern as a program: `selfish`, and its other methods with `-e`.
//!
//! Formats and options follow `ptrn_noise.c` of Netgauge. A run ends after the requested number of detours, or after its time.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use machmeter_noise::Quantum;
use machmeter_noise::samples::{CpuSamples, Samples};
use machmeter_noise::windows::Turn;
use machmeter_store::atomic;
use machmeter_store::foreign::write::{self, NetgaugeHeader, SelfishFacts};
use machmeter_sys::facts;
use machmeter_sys::guard::signals;

use super::bench::{Bench, uname};
use super::ftq::LEAST_TURNS;
use super::{SAMPLES, THREADS, file, flag, fwq, number, print_filled, target, tell_more, time, value_of};
use crate::{Exit, Failure, Result, output};

/// Length of the first recording, which gives the rate of detours, ns.
const FIRST_NS: u64 = 1_000_000_000;
/// Length of a base window, ns; a signal takes effect after at most this time.
const WINDOW_NS: f64 = 1e6;

const LENGTH: &str = "Length of a window (ftq) or of an undisturbed piece of work (fwq), us";
const RANKS: &str = "Threads in place of MPI ranks, each pinned to its own CPU";
const THRESHOLD: &str = "Shortest detour, in percent of an undisturbed turn (selfish)";

pub(super) fn define(name: &'static str) -> Command {
    Command::new(name)
        .about("Netgauge's noise benchmark: start and length of each detour, or -e ftq, -e fwq")
        .arg(
            Arg::new("method")
                .short('e')
                .long("method")
                .value_parser(["selfish", "ftq", "fwq"])
                .default_value("selfish")
                .help("Method"),
        )
        .arg(
            number('s', "samples", SAMPLES, "N", "Detours (at most), windows or pieces to record")
                .default_value("100000"),
        )
        .arg(number('d', "duration", 1..=1_000_000, "US", LENGTH).default_value("1000"))
        .arg(number('t', "threshold", 101..=1_000_000_000, "PERCENT", THRESHOLD).default_value("900"))
        .arg(number('p', "ranks", THREADS, "RANKS", RANKS).default_value("1"))
        .arg(flag('w', "write-all", "Write FILE.RANK for each rank, not only FILE for rank 0"))
        .arg(file("output", "FILE", "File to write, - for stdout").default_value("ng.out"))
        .arg(time("Longest run of the selfish method (the original never ends on a quiet machine)"))
}

struct Task<'a> {
    name: &'a str,
    bench: Bench,
    turn: Turn,
    header: NetgaugeHeader,
    /// `None` for stdout.
    file: Option<PathBuf>,
    all_ranks: bool,
}

pub(super) fn run(name: &str, matches: &ArgMatches) -> Result<Exit> {
    let ranks = value_of(matches, "ranks") as usize;
    let file = match matches.get_one::<OsString>("output") {
        Some(given) if given != "-" => Some(target::prefix(name, given)?),
        _ => None,
    };
    let all_ranks = matches.get_flag("write-all");
    if file.is_none() && all_ranks && ranks > 1 {
        let what = format!("{name}: -w writes one file per rank, not to stdout");
        return Err(Failure::usage(what).help("name a file with -o"));
    }
    let bench = Bench::of_threads("-p", ranks, None)?;
    let turn = bench.turn(Quantum::One)?;
    let header = NetgaugeHeader {
        duration_us: value_of(matches, "duration"),
        samples: value_of(matches, "samples"),
        system: system_lines(),
    };
    let task = Task { name, bench, turn, header, file, all_ranks };
    match matches.get_one::<String>("method").map(String::as_str) {
        Some("ftq") => task.ftq(),
        Some("fwq") => task.fwq(),
        _ => {
            let longest_ns = matches.get_one::<u64>("time").copied().unwrap_or(0);
            if longest_ns < 10_000_000 {
                let what = format!("{name}: --time is too short for detours: use 10ms or more");
                return Err(Failure::usage(what));
            }
            task.selfish(value_of(matches, "threshold") as u32, longest_ns)
        }
    }
}

impl Task<'_> {
    fn selfish(&self, threshold_percent: u32, longest_ns: u64) -> Result<Exit> {
        let rate = self.bench.rate();
        let asked = self.turn.mean_ticks * f64::from(threshold_percent) / 100.0;
        let threshold_ticks = (asked.ceil() as u64).max(self.turn.threshold_ticks);
        if threshold_ticks as f64 > asked.ceil() {
            let least = self.bench.span(threshold_ticks as f64);
            let what = format!("ordinary turns take that long; recording detours from {least}");
            output::say(&format!("{}: -t {threshold_percent}: {what}", self.name));
        }
        let most = self.header.samples as usize;
        let window_ticks = rate.ticks(WINDOW_NS).max(1);
        let mut left_ns = longest_ns;
        let mut slice_ns = FIRST_NS.min(longest_ns);
        let samples = loop {
            let windows = (rate.ticks(slice_ns as f64) / window_ticks).max(1) as usize;
            let (name, cpus) = (self.name, &self.bench.cpus);
            let within = self.bench.span(rate.ticks(slice_ns as f64) as f64);
            output::say(&format!("{name}: up to {most} detours on CPU {cpus} within {within}"));
            let samples = self.bench.record(Quantum::One, window_ticks, windows, false, threshold_ticks)?;
            left_ns -= slice_ns;
            let enough = samples.cpus.iter().all(|c| c.gaps.len() >= most);
            // One recording covers the remaining time; a remainder of a few ms would give nothing new.
            if enough || left_ns < slice_ns || signals::stop_requested().is_some() {
                break samples;
            }
            slice_ns = left_ns;
        };
        for (rank, cpu) in self.ranks(&samples).iter().enumerate() {
            let from_t0 = |t: u64| rate.ns(t.saturating_sub(samples.setup.schedule.t0_ticks));
            let gaps = cpu.gaps.iter().take(most);
            let gaps_ns: Vec<(f64, f64)> =
                gaps.map(|g| (from_t0(g.start_ticks), from_t0(g.end_ticks))).collect();
            let facts = SelfishFacts {
                turn_ns: self.turn.mean_ticks * rate.ns_per_tick(),
                turns: cpu.counts.iter().map(|c| u64::from(*c)).sum(),
                threshold_percent,
            };
            self.write(rank, |out| write::netgauge_selfish(out, &self.header, &facts, &gaps_ns))?;
            self.tell_selfish(rank, cpu, gaps_ns.len(), &samples);
        }
        Ok(self.end(Exit::Fine))
    }

    /// Prints the share over the whole run; that of the file covers only the time from the first detour to the last.
    fn tell_selfish(&self, rank: usize, cpu: &CpuSamples, written: usize, samples: &Samples) {
        let wall_ticks = cpu.counts.len() as f64 * samples.setup.schedule.window_ticks as f64;
        let lost_ticks = cpu.lengths.sum_ticks as f64 - cpu.lengths.count as f64 * self.turn.mean_ticks;
        let share = if wall_ticks > 0.0 { (lost_ticks / wall_ticks).clamp(0.0, 1.0) } else { 0.0 };
        let (name, n, wall) = (self.name, cpu.lengths.count, self.bench.span(wall_ticks));
        let more = match (n as usize).saturating_sub(written) {
            0 => String::new(),
            left_out => format!("; the file has only the first {written}, without the last {left_out}"),
        };
        let percent = share * 100.0;
        output::say(&format!("{name}: rank {rank}: {n} detours in {wall}, {percent:.3} % of the time{more}"));
    }

    fn ftq(&self) -> Result<Exit> {
        let window_ticks = self.bench.rate().ticks(self.header.duration_us as f64 * 1e3);
        if (window_ticks as f64) < LEAST_TURNS * self.turn.mean_ticks {
            let (name, us) = (self.name, self.header.duration_us);
            let what = format!("{name}: -d {us}: a window is shorter than {LEAST_TURNS} turns of the loop");
            return Err(Failure::usage(what).help("use a longer -d"));
        }
        let windows = self.header.samples as usize;
        let samples =
            self.bench.record(Quantum::One, window_ticks, windows, false, self.turn.threshold_ticks)?;
        let mut done = windows;
        for (rank, cpu) in self.ranks(&samples).iter().enumerate() {
            done = done.min(cpu.counts.len());
            let counts: Vec<i32> = cpu.counts.iter().map(|n| *n as i32).collect();
            self.write(rank, |out| write::netgauge_ftq(out, &self.header, &counts))?;
        }
        self.short(done);
        Ok(self.end(Exit::Fine))
    }

    fn fwq(&self) -> Result<Exit> {
        let turns = (self.bench.rate().ticks(self.header.duration_us as f64 * 1e3) as f64
            / self.turn.mean_ticks) as u64;
        let wanted = self.header.samples as usize;
        let pieces = fwq::take(&self.bench, self.turn, turns.max(1), wanted)?;
        let ranks = if self.all_ranks { pieces.ticks.len() } else { 1 };
        let mut done = wanted;
        for (rank, ticks) in pieces.ticks.iter().take(ranks).enumerate() {
            done = done.min(ticks.len());
            let ns: Vec<i64> =
                ticks.iter().map(|t| self.bench.rate().ns(t.unsigned_abs()).round() as i64).collect();
            self.write(rank, |out| write::netgauge_fwq(out, &self.header, &ns))?;
        }
        self.short(done);
        Ok(self.end(if done < wanted { Exit::Partial } else { Exit::Fine }))
    }

    fn ranks<'s>(&self, samples: &'s Samples) -> &'s [CpuSamples] {
        let n = if self.all_ranks { samples.cpus.len() } else { 1 };
        samples.cpus.get(..n).unwrap_or(&samples.cpus)
    }

    fn short(&self, done: usize) {
        if (done as u64) < self.header.samples {
            output::say(&format!("{}: {done} of {} were written", self.name, self.header.samples));
        }
    }

    fn path(&self, rank: usize) -> Option<PathBuf> {
        let file = self.file.as_deref()?;
        Some(if self.all_ranks { write::with_suffix(file, &format!(".{rank}")) } else { file.to_owned() })
    }

    fn write(&self, rank: usize, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        match self.path(rank) {
            Some(path) => atomic::replace(&path, |out| fill(out)).map_err(Failure::cannot),
            None => print_filled(|out| fill(out)),
        }
    }

    fn end(&self, exit: Exit) -> Exit {
        let file = self.path(0).unwrap_or_else(|| Path::new("FILE").to_owned());
        tell_more(self.name, &file.display().to_string());
        signals::stop_requested().map_or(exit, Exit::from)
    }
}

/// The original's lines about the system.
fn system_lines() -> Vec<(String, String)> {
    let keys = ["Sysname", "Nodename", "Release", "Version", "Machine"].map(str::to_owned);
    keys.into_iter().zip(uname(&facts::capture())).collect()
}
