//! Modes of single operations: the costs of a row that was timed turn by turn, where they fall into several.

use machmeter_data::quantity::{Unit, human};
use machmeter_data::{Metric, MetricInfo, Params};
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_stats::quantile::quantile;
use machmeter_stats::regimes::{Regime, regimes};
use machmeter_stats::{Interval, serial};

/// Share below which samples of their own are the tail and no mode; the same share of samples is a large level in `regimes`.
const LEAST_SHARE: f64 = 0.05;
const QUANTILES: [f64; 5] = [0.05, 0.5, 0.9, 0.95, 0.99];

/// Modes of samples in the order of time, at least a factor of `gap` apart, each with the share of the samples that are nearest to
/// it; none where all are of one.
pub(crate) fn modes(samples_ns: &[f64], gap: f64) -> Vec<Regime> {
    // By their numbers: each sample counts the same, however long it took.
    let numbers: Vec<f64> = (0..samples_ns.len()).map(|i| i as f64).collect();
    let Ok(found) = regimes(&numbers, samples_ns, gap, LEVEL) else { return Vec::new() };
    // Regimes last, and take a single sample for a disturbance; modes change from sample to sample.
    let shared = |(k, mode): (usize, &Regime)| {
        let hits: Vec<bool> = samples_ns.iter().map(|ns| found.nearest(*ns) == k).collect();
        let share = hits.iter().filter(|hit| **hit).count() as f64 / hits.len() as f64;
        let estimate = serial::share_interval(&hits, samples_ns, &[hits.len()], LEVEL);
        let share_interval = estimate.ok().map(|e| e.interval);
        (share >= LEAST_SHARE).then(|| Regime { share, share_interval, ..mode.clone() })
    };
    let modes: Vec<Regime> = found.regimes.iter().enumerate().filter_map(shared).collect();
    if modes.len() > 1 { modes } else { Vec::new() }
}

/// The modes of `all` samples as metrics of center and share, numbered by the parameter `mode` from 1.
pub(crate) fn metrics(
    modes: &[Regime],
    all: usize,
    [center, share]: [&MetricInfo; 2],
    keys: &Params,
) -> Vec<Metric> {
    let interval =
        |i: Option<Interval>| i.and_then(|i| machmeter_data::Interval::new(i.level, i.low, i.high, "rank"));
    let both = |(i, mode): (usize, &Regime)| {
        let mut keys = keys.clone();
        keys.insert("mode".to_owned(), (i + 1).into());
        let at = Metric::new(center, keys.clone(), mode.center, "median of trips", mode.n as u64);
        let of = Metric::new(share, keys, mode.share, "share of trips", all as u64);
        [at.with_ci(interval(mode.interval)), of.with_ci(interval(mode.share_interval))]
    };
    modes.iter().enumerate().flat_map(both).collect()
}

/// Each mode with its share, where there are several.
pub(crate) fn words(modes: &[Regime]) -> Option<String> {
    let mode = |m: &Regime| format!("{} ({:.0} %)", human(m.center, Unit::Nanoseconds), 100.0 * m.share);
    (!modes.is_empty()).then(|| modes.iter().map(mode).collect::<Vec<String>>().join(" or "))
}

/// A cost with the quantiles and the largest of its samples, which are in ascending order.
pub(crate) fn with_tail(cost: Metric, sorted_ns: &[f64]) -> Metric {
    let Some(max) = sorted_ns.last() else { return cost };
    let at = |p: f64| Some((p, quantile(sorted_ns, p)?));
    let quantiles: Vec<(f64, f64)> = QUANTILES.into_iter().filter_map(at).collect();
    cost.with_quantiles(&quantiles).with_max(*max)
}
