//! The disturbance of one CPU as a noise run recorded it.

use std::collections::HashSet;

use machmeter_data::gaps::{GAPS, Gaps, GapsError, HELD_BACK};
use machmeter_data::quantity::{Unit, human};
use machmeter_engine::{ProbeError, Stored};
use machmeter_sys::topology::CpuSet;

use crate::oracle::Away;

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
