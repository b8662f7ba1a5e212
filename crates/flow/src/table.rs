//! The table of a characterized run, in the columns of the published one: exclusive times, the timer's own part taken off.

use machmeter_stats::histogram::LogHistogram;
use serde::{Deserialize, Serialize};

use crate::names::{Group, Name};
use crate::timer::{Sum, Sums};

/// An event belongs to the tail when it takes so many times the mean.
const TAIL: f64 = 10.0;

/// Times of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    pub called: u64,
    /// Of all calls.
    pub total_ns: f64,
    pub mean_ns: f64,
    /// Of single calls.
    pub deviation_ns: f64,
    pub least_ns: f64,
    pub most_ns: f64,
    /// Total over that of all names, percent.
    pub percent: f64,
    /// Total over the number of applies.
    pub per_firing_ns: f64,
    /// Share of what was stamped that is the timer's own; none in tables that do not tell.
    pub correction: Option<f64>,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    /// Share of its time in calls of more than ten times the mean.
    pub tail: Option<f64>,
}

/// A row of which the timer's own part is more than this is no measurement of single calls.
pub const MOST_CORRECTION: f64 = 0.5;

/// Rows by total, apply first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    pub rows: Vec<Row>,
}

impl Table {
    /// Of names that were called, or of all.
    pub fn new(names: &[&str], sums: &Sums, ns_per_tick: f64, all: bool) -> Self {
        let of = |(name, sum): (&&str, &Sum)| {
            (all || sum.called > 0).then(|| row(name, sum, sums.own_ticks, ns_per_tick))
        };
        let mut rows: Vec<Row> = names.iter().zip(sums.all()).filter_map(of).collect();
        let applies = sums.all().first().map_or(0, |s| s.called);
        let total_ns: f64 = rows.iter().map(|r| r.total_ns).sum();
        for r in &mut rows {
            r.percent = 100.0 * r.total_ns / total_ns.max(f64::MIN_POSITIVE);
            r.per_firing_ns = r.total_ns / applies.max(1) as f64;
        }
        rows[1..].sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
        Self { rows }
    }

    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|r| r.name == name)
    }

    pub fn total_ns(&self) -> f64 {
        self.rows.iter().map(|r| r.total_ns).sum()
    }

    /// Apply's share of the total, 0 to 1.
    pub fn efficiency(&self) -> Option<f64> {
        Some(self.row("apply")?.total_ns / self.total_ns())
    }

    /// Time that is not apply's, by applies.
    pub fn overhead_ns(&self) -> Option<f64> {
        let apply = self.row("apply").filter(|r| r.called > 0)?;
        Some((self.total_ns() - apply.total_ns) / apply.called as f64)
    }

    /// Shares of the overhead by group, 0 to 1, without apply's.
    pub fn shares(&self) -> Vec<(Group, f64)> {
        let in_group = |r: &&Row, group| group_of(&r.name) == group;
        // Time below zero is the timer's own, taken off too often. Plus zero: a sum of nothing is minus zero.
        let of = |group| {
            self.rows.iter().filter(|r| in_group(r, group)).map(|r| r.total_ns.max(0.0)).sum::<f64>() + 0.0
        };
        let overhead_ns: f64 = Group::ALL[1..].iter().map(|g| of(*g)).sum();
        Group::ALL[1..].iter().map(|g| (*g, of(*g) / overhead_ns)).collect()
    }
}

/// The group of a name; suffixes of published tables (`-req`, `-state`, a number apart) do not change it.
pub fn group_of(name: &str) -> Group {
    let is_it = |n: &&Name| Name::TEXTS[**n as usize] == plain(name);
    Name::ALL.iter().find(is_it).map_or(Group::Rest, |n| n.group())
}

/// A name as our call tree spells it.
pub fn plain(name: &str) -> String {
    let name = name.trim().to_lowercase().replace(' ', "");
    let cut = ["-nreq", "-req", "-state"].iter().find_map(|end| name.strip_suffix(end));
    cut.unwrap_or(&name).to_owned()
}

fn row(name: &str, sum: &Sum, own_ticks: f64, ns_per_tick: f64) -> Row {
    let n = sum.called as f64;
    let some = sum.called > 0;
    let histogram = sum.histogram.as_ref().filter(|_| some);
    let at = |p: f64| histogram.map(|h| at_quantile(h, p) * ns_per_tick);
    Row {
        name: name.to_owned(),
        called: sum.called,
        total_ns: sum.total_ticks() * ns_per_tick,
        mean_ns: sum.mean * ns_per_tick,
        deviation_ns: if sum.called > 1 { (sum.squares / (n - 1.0)).sqrt() * ns_per_tick } else { 0.0 },
        least_ns: if some { sum.least * ns_per_tick } else { 0.0 },
        most_ns: if some { sum.most * ns_per_tick } else { 0.0 },
        percent: 0.0,
        per_firing_ns: 0.0,
        correction: some.then(|| own_ticks * sum.slices as f64 / sum.raw_ticks.max(1) as f64),
        p50_ns: at(0.5),
        p99_ns: at(0.99),
        tail: histogram.map(|h| tail(h, TAIL * sum.mean)),
    }
}

/// Of single calls, ticks; `p` from 0 to 1.
pub fn at_quantile(histogram: &LogHistogram, p: f64) -> f64 {
    let wanted = (p * histogram.count() as f64).ceil();
    let mut n = 0;
    for bucket in histogram.iter() {
        n += bucket.count;
        if n as f64 >= wanted {
            return (bucket.low as f64).midpoint(bucket.high as f64);
        }
    }
    histogram.max().unwrap_or(0) as f64
}

/// Share of the sum in values above a limit.
fn tail(histogram: &LogHistogram, above: f64) -> f64 {
    let of = |b: &machmeter_stats::histogram::Bucket| b.count as f64 * (b.low as f64).midpoint(b.high as f64);
    let all: f64 = histogram.iter().map(|b| of(&b)).sum();
    let beyond: f64 = histogram.iter().filter(|b| b.low as f64 > above).map(|b| of(&b)).sum();
    if all > 0.0 { beyond / all } else { 0.0 }
}

/// Least share of the total in calls longer than `limit`: squares sum to at most `limit` times those below and `most` times those above.
pub fn least_tail(called: u64, mean: f64, deviation: f64, most: f64, limit: f64) -> f64 {
    let n = called as f64;
    let (sum, squares) = (n * mean, (n - 1.0).max(0.0) * deviation.powi(2) + n * mean.powi(2));
    if most <= limit || sum <= 0.0 {
        return 0.0;
    }
    ((squares - limit * sum) / ((most - limit) * sum)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_published_tables_are_ours() {
        for (name, group) in [
            ("run-sched-pass", Group::RunSchedPass),
            ("write-dq-copy2", Group::Copies),
            ("enter-ready-state", Group::ScheduleState),
            ("update-on-consume", Group::QueueManagement),
            ("produce 1", Group::Rest),
            ("ready-to-read-nreq", Group::Rest),
        ] {
            assert_eq!(group_of(name), group, "{name}");
        }
        assert!(Name::TEXTS.contains(&plain("exit-pending-state").as_str()));
    }

    /// Figures of read-dq-copy1 of `e_comm`: 102408 calls, mean 3.313, deviation 55.52, most 1294 us.
    #[test]
    fn a_tail_is_bounded_by_mean_deviation_and_greatest() {
        let share = least_tail(102_408, 3.313, 55.52, 1294.0, 33.13);
        assert!((0.70..0.72).contains(&share), "{share}");
        assert_eq!(least_tail(10, 1.0, 0.1, 2.0, 10.0), 0.0);
    }
}
