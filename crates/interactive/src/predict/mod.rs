//! Prediction: how late a task would be beside the noise that a noise run recorded (`interactive --predict-from RECORD`).
//!
//! The task is simulated exactly (`oracle`) at up to [`MOST_PHASES`] phases, evenly over its period: one would be chance.
//!
//! Sixteen simulations of one recording are not sixteen recordings. So its first piece at every phase comes first, then its
//! second, and so on: pieces are the units of the analysis. At seams a run of misses can be cut in two.
//!
//! The recorded loop never slept: what runs because a CPU is idle, deep sleep, and what the task pushes aside are unknown.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use machmeter_data::gaps::{GAPS, Gaps, GapsError, HELD_BACK};
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Warning;
use machmeter_engine::stream::{Demand, Job, Release, Stream};
use machmeter_engine::{ProbeError, Stored};
use machmeter_stats::random::Random;
use machmeter_sys::topology::CpuSet;

use super::info;
use super::oracle::{self, Away};
use super::samples::{Cell, LoadNote, Samples, Segment, Setup};

pub const RECORDED_NOISE: &str = "recorded-noise";

/// Phases at most, and jobs over all phases, and steps through gaps: what keeps a prediction within seconds.
pub const MOST_PHASES: u64 = 16;
const MOST_JOBS: u64 = 200_000;
const MOST_GAPS: u64 = 20_000_000;

/// Pieces of the recording at most, and periods in a piece at least.
const MOST_PIECES: u64 = 128;
const LEAST_PERIODS: u64 = 10;

/// A recording of fewer periods says little about a task.
const FEW_PERIODS: u64 = 100;

/// Predicts each of `streams` (by name) beside the noise of the worst of `cpus` in `stored`, which is called `name`.
/// Errors: no noise run with its samples, no such CPUs, no stream that can be simulated.
pub fn predict(
    stored: &Stored,
    streams: &[(String, Stream)],
    cpus: &CpuSet,
    name: &str,
) -> Result<Samples, ProbeError> {
    let recording = recording(stored, cpus, name)?;
    let mut caveats = Vec::new();
    if recording.may_be_held_back {
        caveats.push(format!(
            "CPU {} was recorded with policy {}, but not when the kernel throttled the loop: a sleeping task is not throttled",
            recording.cpu, recording.policy
        ));
    }
    let wake_cost_ns = recording.wake_cost_ns.unwrap_or(0);
    let mut cells = Vec::new();
    let mut refused = Vec::new();
    for (task, stream) in streams {
        match jobs(stream, &recording.away, recording.length_ns, wake_cost_ns) {
            Ok(swept) => {
                if swept.periods < FEW_PERIODS {
                    caveats.push(format!(
                        "{task}: the recording has {} of its periods, fewer than {FEW_PERIODS}",
                        swept.periods
                    ));
                }
                let (length_ns, scheduled) = (swept.length_ns, swept.jobs.len() as u64);
                let segment = Segment { length_ns, scheduled, jobs: swept.jobs, ..Segment::default() };
                let (task, load) = (task.clone(), RECORDED_NOISE.to_owned());
                cells.push(Cell { task, load, stream: stream.clone(), segments: vec![segment] });
            }
            Err(why) => refused.push(format!("{task} is left out: {why}")),
        }
    }
    if cells.is_empty() {
        return Err(ProbeError::Usage(format!("{name}: nothing can be predicted: {}", refused.join("; "))));
    }
    let wake = match recording.wake_cost_ns {
        Some(ns) => {
            format!("a wake-up takes {}, as by the record without load", human(ns as f64, Unit::Nanoseconds))
        }
        None => "the record has no cost of a wake-up: the lateness excludes it".to_owned(),
    };
    let mut conditions = vec![recording.describe(), wake];
    conditions.extend(refused);
    let setup = Setup {
        task_policy: recording.policy.clone(),
        cpus: 1,
        conditions,
        predicted_from: Some(format!("{name} ({})", recording.describe())),
        ..Setup::default()
    };
    let note = LoadNote { name: RECORDED_NOISE.to_owned(), caveats, ..LoadNote::default() };
    Ok(Samples { setup, cells, loads: vec![note] })
}

pub fn warnings(samples: &Samples) -> Vec<Warning> {
    let Some(code) = info::CODES.iter().find(|c| c.id == "W319") else { return Vec::new() };
    let notes = samples.loads.iter().filter(|l| l.name == RECORDED_NOISE);
    notes.flat_map(|l| &l.caveats).map(|text| code.warning(text.clone())).collect()
}

/// The jobs of a stream at all phases, in the order of the recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Swept {
    /// Renumbered, their releases one after the other.
    pub jobs: Vec<Job>,
    pub length_ns: u64,
    pub phases: u64,
    /// Periods (mean intervals, undisturbed turns of a closed loop) in the recording.
    pub periods: u64,
}

/// Simulates `stream` over a recording of `length_ns` in which the CPU is away as given and a wake-up takes `wake_cost_ns`.
/// Errors: a demand that is no CPU time, a recording shorter than two periods.
pub fn jobs(stream: &Stream, away: &[Away], length_ns: u64, wake_cost_ns: u64) -> Result<Swept, String> {
    let period_ns = pace_ns(stream)?;
    // A ramp is simulated in whole, so that each piece asks for the same.
    let whole = match stream.demand {
        Demand::Ramp { steps, .. } => u64::from(steps.max(2)),
        _ => 1,
    };
    // One period is kept for the phases, and one so that the last job's deadline lies within what is known.
    let periods = (length_ns / period_ns).saturating_sub(1 + later_periods(stream)) / whole * whole;
    if periods == 0 {
        return Err(format!(
            "the recording of {} is shorter than {}",
            human(length_ns as f64, Unit::Nanoseconds),
            human((period_ns * (whole + 1 + later_periods(stream))) as f64, Unit::Nanoseconds)
        ));
    }
    let by_gaps = MOST_GAPS / (away.len() as u64).max(1);
    let phases = (MOST_JOBS / periods).min(by_gaps).clamp(1, MOST_PHASES);
    let piece = (periods / MOST_PIECES).max(LEAST_PERIODS).next_multiple_of(whole);
    let pieces = (periods / piece).max(1);
    let mut at_phase = Vec::new();
    for phase in 0..phases {
        let jobs =
            simulate(stream, away, phase * period_ns / phases, periods * period_ns, wake_cost_ns, phase)?;
        at_phase.push(jobs.into_iter().peekable());
    }
    let mut swept = Swept { jobs: Vec::new(), length_ns: 0, phases, periods };
    for k in 0..pieces {
        let from_ns = k * piece * period_ns;
        let to_ns = if k + 1 == pieces { periods } else { (k + 1) * piece } * period_ns;
        for jobs in &mut at_phase {
            while let Some(job) = jobs.next_if(|j| j.release_ns < to_ns) {
                let number = swept.jobs.len() as u64;
                let release_ns = swept.length_ns + (job.release_ns - from_ns);
                swept.jobs.push(Job { number, release_ns, ..job });
            }
            swept.length_ns += to_ns - from_ns;
        }
    }
    Ok(swept)
}

/// Period, mean interval, or the time that an undisturbed turn of a closed loop takes; ns.
fn pace_ns(stream: &Stream) -> Result<u64, String> {
    let unknown = || "its CPU time is not known in advance".to_owned();
    let cpu_ns = stream.cpu_ns(1).ok_or_else(unknown)?;
    let pace_ns = match stream.release {
        Release::Closed { think_ns } => cpu_ns + think_ns,
        _ => stream.period_ns().unwrap_or(0),
    };
    if pace_ns == 0 { Err("its period is 0".to_owned()) } else { Ok(pace_ns) }
}

/// Periods after the last release in which its deadline may still lie.
fn later_periods(stream: &Stream) -> u64 {
    let pace_ns = stream.period_ns().unwrap_or(0);
    stream.deadline_ns().map_or(1, |d| d.div_ceil(pace_ns.max(1))).saturating_sub(1)
}

fn simulate(
    stream: &Stream,
    away: &[Away],
    phase_ns: u64,
    length_ns: u64,
    wake_cost_ns: u64,
    seed: u64,
) -> Result<Vec<Job>, String> {
    let shifted: Vec<Away> = away
        .iter()
        .filter(|a| a.1 > phase_ns)
        .map(|a| (a.0.saturating_sub(phase_ns), a.1 - phase_ns))
        .collect();
    match stream.release {
        Release::Poisson { mean_ns } => {
            let mut random = Random::new(seed);
            let mut at_ns = 0.0;
            let mut releases = Vec::new();
            while at_ns < length_ns as f64 {
                at_ns += random.exponential() * mean_ns as f64;
                releases.push(at_ns as u64);
            }
            oracle::simulate_released(stream, &releases, &shifted, length_ns, wake_cost_ns)
        }
        _ => oracle::simulate(stream, &shifted, length_ns, wake_cost_ns),
    }
}

/// What a CPU did to a loop that wanted all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    pub cpu: usize,
    /// Times at which it was not available, ns after the start, ascending.
    pub away: Vec<Away>,
    pub length_ns: u64,
    /// Policy of the loop: what it suffered, a task of the same policy suffers.
    pub policy: String,
    /// The loop was real-time and nobody saw when the kernel held it back: such gaps are no task's.
    pub may_be_held_back: bool,
    /// What an undisturbed wake-up takes by the same record, ns, if it says.
    pub wake_cost_ns: Option<u64>,
}

impl Recording {
    pub fn away_share(&self) -> f64 {
        let away_ns: u64 = self.away.iter().map(|a| a.1 - a.0).sum();
        away_ns as f64 / self.length_ns.max(1) as f64
    }

    pub fn describe(&self) -> String {
        format!(
            "noise of CPU {} over {}: away {} of the time in {} gaps, recorded as {}",
            self.cpu,
            human(self.length_ns as f64, Unit::Nanoseconds),
            human(self.away_share(), Unit::One),
            self.away.len(),
            self.policy
        )
    }
}

/// The disturbance of that CPU of `stored` that was away most, among those of `cpus` that it has.
/// Errors: the record has no gaps, no rate of its clock, or none of these CPUs.
pub fn recording(stored: &Stored, cpus: &CpuSet, name: &str) -> Result<Recording, ProbeError> {
    let usage = |why: String| ProbeError::Usage(format!("{name}: {why}"));
    let again = "record one with `machmeter noise` and keep its samples";
    let gaps = Gaps::find(&stored.tables).map_err(|e| {
        usage(match e {
            GapsError::Missing(needs) => {
                format!("has no list of gaps to predict from (table {GAPS} with {needs}); {again}")
            }
            GapsError::EndsBeforeStart(row) => {
                format!("table {GAPS}, row {row}: the gap ends before it starts")
            }
        })
    })?;
    let recorded: Vec<usize> = gaps.cpus().into_iter().filter_map(|c| usize::try_from(c).ok()).collect();
    let wanted = recorded.iter().filter(|c| cpus.iter().any(|wanted| wanted == **c));
    let mut found: Vec<Recording> = wanted.filter_map(|c| of_cpu(*c, &gaps, stored)).collect();
    found.sort_by(|a, b| b.away_share().total_cmp(&a.away_share()));
    let has: Vec<String> = recorded.iter().map(ToString::to_string).collect();
    found.into_iter().next().ok_or_else(|| {
        usage(format!("has the noise of CPU {}, not of {cpus}; choose another with -c", has.join(", ")))
    })
}

fn of_cpu(cpu: usize, gaps: &Gaps<'_>, stored: &Stored) -> Option<Recording> {
    let end_ns = gaps.recorded_ns(cpu as i32);
    let (named, held_back) = held_back(gaps, stored);
    let mut away: Vec<Away> = (0..gaps.cpu.len())
        .filter(|i| gaps.cpu[*i] == cpu as i32 && !held_back.contains(i))
        .map(|i| (gaps.start_ns(i), gaps.start_ns(i) + gaps.duration_ns(i)))
        .map(|(from_ns, to_ns)| (from_ns.min(end_ns) as u64, to_ns.min(end_ns) as u64))
        .filter(|(from_ns, to_ns)| from_ns < to_ns)
        .collect();
    away.sort_unstable();
    let length_ns = end_ns as u64;
    let policy = gaps.table.note("policy").unwrap_or("unknown");
    let real_time = ["fifo", "rr", "deadline"].iter().any(|p| policy.starts_with(p));
    (length_ns > 0).then(|| Recording {
        cpu,
        away,
        length_ns,
        policy: policy.to_owned(),
        may_be_held_back: real_time && !named,
        wake_cost_ns: wake_cost_ns(stored),
    })
}

/// Whether the record has names, and the gaps in which the kernel held the loop back, which a task that sleeps is spared.
fn held_back(gaps: &Gaps<'_>, stored: &Stored) -> (bool, HashSet<usize>) {
    let sources = stored.tables.iter().find(|t| t.name == "noise_sources");
    let names = sources.and_then(|t| t.texts("name")).unwrap_or_default();
    let named = !names.is_empty() && stored.record.warnings.iter().all(|w| w.code != "W306");
    let of = gaps.table.i32s("source").unwrap_or_default();
    let held_back =
        |source: i32| usize::try_from(source).is_ok_and(|s| names.get(s).is_some_and(|n| n == HELD_BACK));
    (named, (0..of.len()).filter(|i| held_back(of[*i])).collect())
}

/// The shortest median wake-up of a task without load.
fn wake_cost_ns(stored: &Stored) -> Option<u64> {
    let without_load = |m: &&machmeter_data::Metric| {
        m.id == "interactive.wake" && m.params.get("load").is_some_and(|l| l.to_string() == "none")
    };
    let medians = stored.record.metrics.iter().filter(without_load).filter_map(|m| m.value);
    medians.min_by(f64::total_cmp).map(|ns| ns as u64)
}
