//! From rows to points of the fit. Pure.

use std::collections::BTreeMap;

use machmeter_engine::cost::estimate::{LEVEL, values_ns};
use machmeter_engine::cost::{Pair, Row, Rows};
use machmeter_engine::disturbance::placement;
use machmeter_engine::sampling::KEPT_PREEMPTED;
use machmeter_model::loggps::{Measured, SizePoint, TRAIN};
use machmeter_stats::distribution::deviations;
use machmeter_stats::quantile::{quantile, quantile_interval, sorted};
use machmeter_stats::regimes::Regimes;

use crate::plan::{Operation, WORK_TURNS, Way, is_of_fit, train_of};

/// Quantile that stands for a row of which many samples were kept although a thread was switched out: what a program pays that is not.
const UNDISTURBED: f64 = 0.2;
/// Share of such samples from which on the median would be one of them.
const MANY: f64 = 0.25;

/// Quantile a standard deviation below the median of a normal law, and deviations that leave out one value in a thousand of it.
const LOWER_DEVIATION: f64 = 0.158_655;
const DEVIATIONS: f64 = 3.0;

/// What a row of another tool's file says it took, and the error of that, ns.
const GIVEN: [&str; 2] = ["given_ns", "given_sigma_ns"];

/// What a row takes at the main placement, with the standard deviation of its error; `None` where it is not known.
pub(crate) fn located(rows: &Rows, row: &Row, levels: Option<&Regimes>) -> Option<Measured> {
    if let [Some(ns), Some(sigma_ns)] = GIVEN.map(|name| row.extras.get(name).copied()) {
        return (ns > 0.0 && sigma_ns > 0.0).then_some(Measured { ns, sigma_ns });
    }
    let pairs = undelayed(row, placement::on_main(row, levels), rows.ns_per_tick());
    let cost = rows.cost_of(row, &pairs);
    let known = cost.known()?;
    let kept = row.extras.get(KEPT_PREEMPTED).copied().unwrap_or(0.0);
    let (ns, low_ns, high_ns) = if kept > MANY * pairs.len() as f64 {
        let values = sorted(&values_ns(row, &pairs, rows.ns_per_tick())).ok()?;
        let interval = quantile_interval(&values, UNDISTURBED, LEVEL);
        let ns = quantile(&values, UNDISTURBED)?;
        interval.map_or((ns, values[0], known.value_ns), |i| (ns, i.low, i.high))
    } else {
        (known.value_ns, known.low_ns, known.high_ns)
    };
    let sigma_ns = (high_ns - low_ns) / (2.0 * deviations(LEVEL));
    (ns > 0.0 && sigma_ns > 0.0).then_some(Measured { ns, sigma_ns })
}

/// Pairs without those that something delayed: that only lengthens, so that the lower half says how wide values lie by themselves.
fn undelayed(row: &Row, pairs: Vec<Pair>, ns_per_tick: f64) -> Vec<Pair> {
    let values = values_ns(row, &pairs, ns_per_tick);
    let at = |s: &[f64], p| quantile(s, p);
    let bound = sorted(&values).ok().and_then(|s| {
        let (low, middle) = (at(&s, LOWER_DEVIATION)?, at(&s, 0.5)?);
        Some(middle + DEVIATIONS * (middle - low))
    });
    let Some(bound) = bound else { return pairs };
    pairs.into_iter().zip(values).filter(|(_, ns)| *ns <= bound).map(|(p, _)| p).collect()
}

/// Estimates of the overhead of a send at one size, by the length of the work between messages.
fn overhead_send(estimates: &[Measured]) -> Option<Measured> {
    let weight = |m: &Measured| m.sigma_ns.powi(-2);
    let all: f64 = estimates.iter().map(weight).sum();
    let mean_ns = estimates.iter().map(|m| weight(m) * m.ns).sum::<f64>() / all;
    let chi2: f64 = estimates.iter().map(|m| weight(m) * (m.ns - mean_ns).powi(2)).sum();
    // Estimates that differ by more than their errors widen them.
    let wider = (chi2 / estimates.len().saturating_sub(1).max(1) as f64).max(1.0).sqrt();
    (!estimates.is_empty()).then(|| Measured { ns: mean_ns.max(0.0), sigma_ns: wider / all.sqrt() })
}

/// Points of a link by size, those that have both trains; where there are no trains at all, half a round trip stands for a message.
pub(crate) fn points(
    rows: &[Row],
    way: &Way<'_>,
    located: &dyn Fn(&Row) -> Option<Measured>,
) -> Vec<SizePoint> {
    let mut trains: BTreeMap<(u64, u32, u64), Measured> = BTreeMap::new();
    for row in rows.iter().filter(|r| way.owns(r, Operation::TRAIN)) {
        if let (Some(key), Some(found)) = (train_of(row), located(row)) {
            trains.insert(key, found);
        }
    }
    // Files of round trips hold single messages alone.
    let has_trains = trains.keys().any(|k| k.1 == TRAIN);
    let there = Way { direction: "there", ..*way };
    let work = rows.iter().find(|r| there.owns(r, Operation::WORK)).and_then(located);
    let work = work.map(|turns| turns.over(WORK_TURNS as f64));
    let received = |size_bytes: u64| {
        let is_size = |r: &&Row| {
            way.owns(r, Operation::RECEIVE)
                && r.int("size_bytes").and_then(|s| u64::try_from(s).ok()) == Some(size_bytes)
        };
        rows.iter().find(is_size).and_then(located)
    };
    let point = |(&(size_bytes, messages, w), one): (&(u64, u32, u64), &Measured)| {
        if messages != 1 || !is_of_fit(messages, w) {
            return None;
        }
        let mut point = match trains.get(&(size_bytes, TRAIN, 0)) {
            Some(train) => SizePoint::of_trains(size_bytes, *one, *train),
            None if has_trains => return None,
            None => SizePoint { gap: one.over(2.0), ..SizePoint::of_trains(size_bytes, *one, *one) },
        };
        let worked = |each: Measured| -> Vec<Measured> {
            let of = trains.iter().filter(|((s, n, w), _)| *s == size_bytes && *n == TRAIN && *w > 0);
            let estimate = |((_, _, w), train): (&(u64, u32, u64), &Measured)| {
                let work = Measured { ns: each.ns * *w as f64, sigma_ns: each.sigma_ns * *w as f64 };
                train.minus(*one).over(f64::from(TRAIN - 1)).minus(work)
            };
            of.map(estimate).collect()
        };
        point.overhead_send = work.and_then(|each| overhead_send(&worked(each)));
        point.overhead_recv = received(size_bytes);
        (point.gap.ns > 0.0).then_some(point)
    };
    trains.iter().filter_map(point).collect()
}
