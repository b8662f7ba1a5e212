//! The disturbance of one CPU as a noise run recorded it.

use machmeter_data::quantity::{Unit, human};
use machmeter_engine::{ProbeError, Stored};
use machmeter_sys::topology::CpuSet;

use crate::interactive::oracle::Away;
use crate::noise::samples::{self as noise, CpuSamples};

/// What a CPU did to a loop that wanted all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// The CPU.
    pub cpu: usize,
    /// Times at which it was not available, ns after the start, ascending.
    pub away: Vec<Away>,
    /// Length of what can be used, ns.
    pub length_ns: u64,
    /// Policy of the loop: what it suffered, a task of the same policy suffers.
    pub policy: String,
    /// Length of the whole recording, ns, when the list of gaps was full before its end.
    pub cut_from_ns: Option<u64>,
    /// What an undisturbed wake-up takes by the same record, ns, if it says.
    pub wake_cost_ns: Option<u64>,
}

impl Recording {
    /// The share of time in which the CPU was away.
    pub fn away_share(&self) -> f64 {
        let away_ns: u64 = self.away.iter().map(|a| a.1 - a.0).sum();
        away_ns as f64 / self.length_ns.max(1) as f64
    }

    /// In a line.
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
///
/// # Errors
/// One line when the record has no gaps, no rate of its clock, or none of these CPUs.
pub fn recording(stored: &Stored, cpus: &CpuSet, name: &str) -> Result<Recording, ProbeError> {
    let usage = |why: String| ProbeError::Usage(format!("{name}: {why}"));
    let again = "record one with `machmeter noise` and keep its samples";
    if !stored.tables.iter().any(|t| t.name == noise::GAPS) {
        return Err(usage(format!("has no list of gaps (table {}) to predict from; {again}", noise::GAPS)));
    }
    let samples = noise::from_tables(&stored.tables).map_err(|e| usage(e.to_string()))?;
    if !samples.setup.tick_hz.is_finite() || samples.setup.tick_hz <= 0.0 {
        return Err(usage(format!("does not say how fast its clock ticks; {again}")));
    }
    let with = |c: &&CpuSamples| cpus.iter().any(|wanted| wanted == c.cpu);
    let mut found: Vec<Recording> =
        samples.cpus.iter().filter(with).filter_map(|c| of_cpu(c, &samples, stored)).collect();
    found.sort_by(|a, b| b.away_share().total_cmp(&a.away_share()));
    let has: Vec<String> = samples.cpus.iter().map(|c| c.cpu.to_string()).collect();
    found.into_iter().next().ok_or_else(|| {
        usage(format!("has the noise of CPU {}, not of {cpus}; choose another with -c", has.join(", ")))
    })
}

fn of_cpu(c: &CpuSamples, samples: &noise::Samples, stored: &Stored) -> Option<Recording> {
    let schedule = &samples.setup.schedule;
    let windows = if c.counts.is_empty() { schedule.windows } else { c.counts.len() };
    let end_ticks = windows as u64 * schedule.window_ticks;
    let ns = |ticks: u64| (ticks as f64 * samples.setup.ns_per_tick()) as u64;
    let after_start = |ticks: u64| ticks.saturating_sub(schedule.t0_ticks).min(end_ticks);
    let away: Vec<Away> = c
        .gaps
        .iter()
        .map(|g| (ns(after_start(g.start_ticks)), ns(after_start(g.end_ticks))))
        .filter(|(from_ns, to_ns)| from_ns < to_ns)
        .collect();
    // The list keeps the first gaps; when it was full, what came after it is not known.
    let is_cut = c.gaps_dropped > 0
        || stored
            .record
            .warnings
            .iter()
            .any(|w| w.code == "W302" && w.text.starts_with(&format!("CPU {}:", c.cpu)));
    let whole_ns = ns(end_ticks);
    let length_ns = if is_cut { away.last().map_or(0, |a| a.1) } else { whole_ns };
    (length_ns > 0).then(|| Recording {
        cpu: c.cpu,
        away,
        length_ns,
        policy: samples.setup.policy.clone(),
        cut_from_ns: is_cut.then_some(whole_ns),
        wake_cost_ns: wake_cost_ns(stored),
    })
}

/// The shortest median wake-up of a task without load.
fn wake_cost_ns(stored: &Stored) -> Option<u64> {
    let without_load = |m: &&machmeter_data::Metric| {
        m.id == "interactive.wake" && m.params.get("load").is_some_and(|l| l.to_string() == "none")
    };
    let medians = stored.record.metrics.iter().filter(without_load).filter_map(|m| m.value);
    medians.min_by(f64::total_cmp).map(|ns| ns as u64)
}
