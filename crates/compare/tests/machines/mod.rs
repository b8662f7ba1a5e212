//! Simulated machines with known behavior: runs report a value and an interval, and their true error is larger than the interval.
#![allow(dead_code, reason = "shared by the tests of this folder, each of which uses a part")]

use machmeter_data::metric::{Params, Population};
use machmeter_data::{Better, Interval, Metric, MetricInfo, Record, Unit};
use machmeter_stats::random::Random;

/// Parameters of the runs of a machine for one cost.
#[derive(Clone, Copy)]
pub(crate) struct Machine {
    /// Standard deviation of the logarithm that the interval of a run covers.
    pub(crate) own_sd: f64,
    /// The same between runs, which no interval covers.
    pub(crate) between_sd: f64,
    /// Share of the runs in another state, with costs higher by a tenth.
    pub(crate) other_state: f64,
    /// Standard deviation of the logarithm of the core's clock between runs; every second cost follows it.
    pub(crate) clock_sd: f64,
    /// True if runs differ by Student's t with three degrees of freedom instead of normally.
    pub(crate) is_heavy: bool,
    /// Share of the figures marked "core shared", with costs higher by up to half.
    pub(crate) marked: f64,
}

/// Runs differ by 0.4 %.
pub(crate) const QUIET: Machine = Machine {
    own_sd: 0.002,
    between_sd: 0.004,
    other_state: 0.0,
    clock_sd: 0.0,
    is_heavy: false,
    marked: 0.0,
};

impl Machine {
    /// Figure `name` of a run, multiplied by `factor`.
    pub(crate) fn cost(&self, name: &str, factor: f64, r: &mut Random) -> Metric {
        let state = if r.unit() < self.other_state { 0.1 } else { 0.0 };
        let mark = if r.unit() < self.marked { 0.5 * r.unit() } else { 0.0 };
        // Chi with three degrees of freedom. The scale is that of the normal law, the standard deviation larger by the root of 3.
        let chi =
            if self.is_heavy { ((0..3).map(|_| r.normal().powi(2)).sum::<f64>() / 3.0).sqrt() } else { 1.0 };
        let off = self.between_sd * r.normal() / chi + self.own_sd * r.normal();
        let value = factor * 100.0 * (off + state + mark).exp();
        let half = 1.96 * self.own_sd * value;
        let mut m = metric("ops.cost", Unit::Nanoseconds, Better::Lower, value, "median of differences")
            .with_ci(Interval::new(0.95, value - half, value + half, "rank"))
            .with_population(Some(if mark > 0.0 { Population::CoreShared } else { Population::Undisturbed }));
        m.params.insert("operation".to_owned(), name.into());
        m
    }

    /// A run of `rows` figures, of which `changed` are multiplied by `factor`; it starts at second `at`.
    pub(crate) fn run(&self, at: usize, rows: usize, changed: usize, factor: f64, r: &mut Random) -> Record {
        let of = |i: usize| if i < changed { factor } else { 1.0 };
        let cycle = if self.clock_sd > 0.0 { self.clock_sd * r.normal() } else { 0.0 };
        let mut cost = |i: usize| {
            let follows = if i.is_multiple_of(2) { cycle } else { 0.0 };
            let cost = self.cost(&format!("made_{i}"), of(i) * follows.exp(), r);
            cost.with_core_hz((self.clock_sd > 0.0).then(|| 4e9 * (-cycle).exp()))
        };
        let metrics = (0..rows).map(&mut cost).collect();
        let mut record = record(&format!("run {at}"), metrics);
        record.run.started = format!("2026-01-01T00:{:02}:{:02}Z", at / 60, at % 60);
        record.machine.fingerprint = Some("a machine".to_owned());
        record
    }
}

pub(crate) fn metric(id: &'static str, unit: Unit, better: Better, value: f64, estimator: &str) -> Metric {
    let info = MetricInfo { better, may_be_negative: true, ..MetricInfo::of(id, unit) };
    Metric::new(&info, Params::new(), value, estimator, 100)
}

/// A figure with a half-width of 1 %.
pub(crate) fn known(id: &'static str, unit: Unit, better: Better, value: f64) -> Metric {
    let ends = [0.99 * value, 1.01 * value];
    let ci = Interval::new(0.95, ends[0].min(ends[1]), ends[1].max(ends[0]), "rank");
    metric(id, unit, better, value, "median").with_ci(ci)
}

/// The share of CPU 1 taken by a source of noise, with the half-width `known`.
pub(crate) fn share(source: &str, kind: &str, value: f64, known: f64) -> Metric {
    let ci = Interval::new(0.95, value - known, value + known, "correlated-mean");
    let mut m = metric("noise.source_fraction", Unit::One, Better::Lower, value, "time-share").with_ci(ci);
    m.params =
        [("cpu", "1"), ("source", source), ("kind", kind)].map(|(k, v)| (k.to_owned(), v.into())).into();
    m
}

pub(crate) fn record(id: &str, metrics: Vec<Metric>) -> Record {
    Record { id: id.to_owned(), complete: true, metrics, ..Record::default() }
}
