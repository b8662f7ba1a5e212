//! Writes the formats of programs that machmeter replaces: same names, same lines, same columns.
//!
//! Each function takes any writer, so the same lines go to a file (through [`atomic::replace`], in one step) or to standard output.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use super::side::with_suffix;
use super::side::{self, SideFacts};
use crate::error::Result;
use crate::{atomic, best};

/// One decimal number per line, as in FTQ 2009 and FWQ.
pub fn numbers<T: std::fmt::Display>(out: &mut dyn Write, values: &[T]) -> io::Result<()> {
    values.iter().try_for_each(|v| writeln!(out, "{v}"))
}

/// Files of FTQ 2009 for one thread, `PREFIX_THREAD_times.dat` (window starts in ticks) and `PREFIX_THREAD_counts.dat`.
pub fn ftq_2009(prefix: &Path, thread: usize, start_ticks: &[i64], counts: &[i32]) -> Result<[PathBuf; 2]> {
    let times = with_suffix(prefix, &format!("_{thread}_times.dat"));
    let counted = with_suffix(prefix, &format!("_{thread}_counts.dat"));
    atomic::replace(&times, |out| numbers(out, start_ticks))?;
    atomic::replace(&counted, |out| numbers(out, counts))?;
    Ok([times, counted])
}

/// The output of FTQ 2009 under `-s`: start time in ticks and count on each line.
pub fn ftq_2009_lines(out: &mut dyn Write, start_ticks: &[i64], counts: &[i32]) -> io::Result<()> {
    start_ticks.iter().zip(counts).try_for_each(|(t, c)| writeln!(out, "{t} {c}"))
}

/// Header of an FTQ 2025 file.
#[derive(Debug, Clone, PartialEq)]
pub struct Ftq2025Header {
    /// Windows per second.
    pub frequency_hz: f64,
    /// Clock ticks per nanosecond.
    pub ticks_per_ns: f64,
    pub thread: usize,
    /// CPU of the thread; `None` is written as -1, as the original always does on Linux.
    pub cpu: Option<i32>,
    /// Wait before the start, ms.
    pub start_delay_ms: u64,
    pub total_count: u64,
    /// Best window of all threads times windows times threads.
    pub max_work: u64,
    /// False adds the original's warning that the thread was not pinned.
    pub pinned: bool,
    /// Lines about the system (name, release, CPU), without `#`.
    pub system: Vec<String>,
}

/// Lines of an FTQ 2025 file: header, then nanoseconds since the first window and count.
pub fn ftq_2025(
    out: &mut dyn Write,
    header: &Ftq2025Header,
    start_ns: &[i64],
    counts: &[i32],
) -> io::Result<()> {
    let h = header;
    let fraction = if h.max_work == 0 { 0.0 } else { h.total_count as f64 / h.max_work as f64 };
    writeln!(out, "# Frequency {:.6}", h.frequency_hz)?;
    writeln!(out, "# Ticks per ns: {}", six_digits(h.ticks_per_ns))?;
    writeln!(out, "# octave: pkg load signal")?;
    writeln!(out, "# x = load(<file name>)")?;
    writeln!(out, "# pwelch(x(:,2),[],[],[],{:.6})", h.frequency_hz)?;
    writeln!(out, "# thread {}, core {}", h.thread, h.cpu.unwrap_or(-1))?;
    writeln!(out, "# start delay {} msec", h.start_delay_ms)?;
    writeln!(out, "# Total count is {}", h.total_count)?;
    writeln!(out, "# Max possible work is {}", h.max_work)?;
    writeln!(out, "# Fraction is {}", six_digits(fraction))?;
    if !h.pinned {
        writeln!(out, "# Warning: not wired to this core; results may be flaky")?;
    }
    h.system.iter().try_for_each(|line| writeln!(out, "# {line}"))?;
    start_ns.iter().zip(counts).try_for_each(|(t, c)| writeln!(out, "{t} {c}"))
}

/// The file of a thread of FTQ 2025.
pub fn ftq_2025_path(prefix: &Path, thread: usize) -> PathBuf {
    with_suffix(prefix, &format!("_{thread}.dat"))
}

/// The file of a thread of LLNL FWQ, one duration in ticks per line.
pub fn fwq(prefix: &Path, thread: usize, duration_ticks: &[i64]) -> Result<PathBuf> {
    let path = with_suffix(prefix, &format!("_{thread}_times.dat"));
    atomic::replace(&path, |out| numbers(out, duration_ticks))?;
    Ok(path)
}

/// Header of a file of Netgauge's noise pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetgaugeHeader {
    /// Requested length of a window or piece of work, us.
    pub duration_us: u64,
    pub samples: u64,
    /// Name and value of the lines about the system (`Sysname`, `Release`, ...).
    pub system: Vec<(String, String)>,
}

fn netgauge_header(out: &mut dyn Write, method: &str, h: &NetgaugeHeader) -> io::Result<()> {
    writeln!(out, "# Benchmark Method: {method}")?;
    writeln!(out, "# Compute-Cycle Duration: {} usec", h.duration_us)?;
    writeln!(out, "# Number of Cycles/Detours: {}", h.samples)?;
    h.system.iter().try_for_each(|(name, value)| writeln!(out, "# {name:<8}: {value}"))
}

/// Facts that the selfish method prints before its rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelfishFacts {
    /// Shortest turn of the loop, ns.
    pub turn_ns: f64,
    pub turns: u64,
    /// Threshold as percent of the shortest turn.
    pub threshold_percent: u32,
}

/// Netgauge selfish: gaps as (start, end) in ns. As in the original, time begins at the first gap, and each length is reduced by one shortest turn.
pub fn netgauge_selfish(
    out: &mut dyn Write,
    header: &NetgaugeHeader,
    facts: &SelfishFacts,
    gaps_ns: &[(f64, f64)],
) -> io::Result<()> {
    netgauge_header(out, "selfish", header)?;
    writeln!(out, "# Selfish Benchmark")?;
    writeln!(out, "# Minimal cycle length [ns]: {:.6} ", facts.turn_ns)?;
    writeln!(out, "# Number of iterations (recorded+unrecorded): {} ", facts.turns)?;
    writeln!(out, "# Threshold: [% minimal cycle length]: {} ", facts.threshold_percent)?;
    writeln!(out, "# ")?;
    writeln!(out, "# Time [ns]\tselfish duration [ns]")?;
    let first = gaps_ns.first().map_or(0.0, |g| g.0);
    let mut lost_ns = 0.0;
    for (start, end) in gaps_ns {
        let duration = (end - start - facts.turn_ns).max(0.0);
        lost_ns += duration;
        writeln!(out, "{:.2}\t{duration:.2}", start - first)?;
    }
    let wall_ns = gaps_ns.last().map_or(0.0, |g| g.1 - first);
    let percent = if wall_ns > 0.0 { 100.0 * lost_ns / wall_ns } else { 0.0 };
    writeln!(out, "# CPU overhead due to noise: {percent:.2}%")?;
    writeln!(out, "# Measurement period: {:.2} s", wall_ns * 1e-9)
}

/// Netgauge ftq: index and work units of each window.
pub fn netgauge_ftq(out: &mut dyn Write, header: &NetgaugeHeader, counts: &[i32]) -> io::Result<()> {
    netgauge_header(out, "ftq", header)?;
    writeln!(out, "# Fixed Time Quantum Benchmark")?;
    writeln!(out, "# cycle number    workload iterations")?;
    counts.iter().enumerate().try_for_each(|(i, c)| writeln!(out, " {i}                {c}"))
}

/// Netgauge fwq: index and duration in whole microseconds, truncated as in the original.
pub fn netgauge_fwq(out: &mut dyn Write, header: &NetgaugeHeader, duration_ns: &[i64]) -> io::Result<()> {
    netgauge_header(out, "fwq", header)?;
    writeln!(out, "# Fixed Work Quantum Benchmark")?;
    writeln!(out, "# cycle number    duration [us]")?;
    duration_ns.iter().enumerate().try_for_each(|(i, ns)| writeln!(out, "{i}             {}", ns / 1000))
}

/// The side file `PREFIX.machmeter.json` with facts that the formats cannot hold; the readers use it.
pub fn side_file(prefix: &Path, facts: &SideFacts) -> Result<PathBuf> {
    let path = side::path_of(prefix);
    facts.check(&path)?;
    best::store(&path, facts)?;
    Ok(path)
}

/// Six significant digits without trailing zeros, like C's `%g` for ordinary magnitudes.
fn six_digits(v: f64) -> String {
    if v == 0.0 || !v.is_finite() {
        return "0".to_owned();
    }
    let decimals = (5 - v.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{v:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
