//! From pairs of batches to a cost with an interval, or to a bound, or to the reason why there is neither.

use machmeter_data::metric::{FollowsClock, Params, Population};
use machmeter_data::quantity::{Unit, human};
use machmeter_data::visits::Visits;
use machmeter_data::{Interval, Metric, MetricInfo};
use machmeter_stats::follows::Follows;
use machmeter_stats::quantile::{median_of, quantile, sorted};
use machmeter_stats::visits::{FEWEST_VALUES, quantile_interval_of_visits};

use super::leak::{most_leaked, surely_own};
use super::{Estimator, Pair, Row};
use crate::disturbance::{core_clock, sibling};

/// Estimator of a metric without a value.
const NONE: &str = "lower quartile";
pub const LEVEL: f64 = 0.95;
/// Fewest clean pairs of a figure.
pub const FEWEST: usize = FEWEST_VALUES;
/// Fewest visits of undisturbed pairs that make a figure of their own, or all visits where the row had fewer: one or two of many may all
/// be a neighbor's.
const VISITS_FEWEST: usize = 3;
/// Visits below which the interval says how few there were: the error of fewer has a t of 2.4 and more.
const VISITS_ENOUGH: usize = 8;
/// Undisturbed pairs, beside those that only pass, whose least is below their lower quartile at 95 %: 1 - 0.75^11 is 96 %.
const LEAST_OF: usize = 11;
/// Least share of a shared figure that an undisturbed one is: each hardware thread has half of the slots or more
/// (Intel 64 and IA-32 Optimization Reference Manual, Hyper-Threading). Evictions from caches are not bounded by it.
pub const LEAST_SHARE: f64 = 0.5;
/// What stands behind a name or value where the core was shared.
pub const MARK: &str = " (core shared)";
/// Values over time that a metric carries.
const BLOCKS: usize = 20;

/// Operations that a value is of.
fn operations(row: &Row) -> f64 {
    let turns = if row.estimator.is_difference() {
        row.long_turns.saturating_sub(row.short_turns)
    } else {
        row.long_turns.saturating_add(row.short_turns)
    };
    turns.max(1) as f64 * row.per_turn
}

/// Cost of an operation by each pair, ns, as its row is estimated; a difference may be negative where the short batch was disturbed.
pub fn values_ns(row: &Row, pairs: &[Pair], ns_per_tick: f64) -> Vec<f64> {
    let operations = operations(row);
    let is_sum = !row.estimator.is_difference() && row.short_turns > 0;
    let ticks = |p: &Pair| {
        let (short, long) = (p.short_ticks as f64, p.long_ticks as f64);
        if is_sum { long + short } else { long - short }
    };
    pairs.iter().map(|p| ticks(p) * ns_per_tick / operations).collect()
}

/// The same of which none is less than what the operations took, as long as most pairs show what both batches have in common.
fn upper_ns(row: &Row, pairs: &[Pair], ns_per_tick: f64) -> Vec<f64> {
    if row.estimator.is_difference() {
        long_batches_ns(row, pairs, ns_per_tick)
    } else {
        values_ns(row, pairs, ns_per_tick)
    }
}

/// How the pairs of a row are spread, disturbed or not, ns: the quantiles 0.05, 0.5 and 0.95 and the greatest.
pub(super) fn spread(row: &Row, pairs: &[Pair], ns_per_tick: f64) -> Option<[f64; 4]> {
    let batches = sorted(&upper_ns(row, pairs, ns_per_tick)).ok()?;
    let at = |p: f64| quantile(&batches, p);
    Some([at(0.05)?, at(0.5)?, at(0.95)?, at(1.0)?])
}

/// The clock of the core at which a cost is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) hz: f64,
    pub(super) follows: Follows,
    /// What the cost may be off by because it is not known how far it follows the clock, as a fraction, at 95 %.
    pub(super) error: f64,
}

/// Values of pairs by visit, in order of time.
fn by_visit(pairs: &[Pair], values: &[f64]) -> Vec<Vec<f64>> {
    let mut rest = values.iter().copied();
    pairs.chunk_by(|a, b| a.visit == b.visit).map(|v| rest.by_ref().take(v.len()).collect()).collect()
}

#[derive(Debug, Clone, PartialEq)]
pub enum Cost {
    Known(Known),
    /// Not told from nothing: at most `bound_ns` (upper end of the interval, at least a clock step over the batch).
    Below {
        bound_ns: f64,
        n: usize,
    },
    Unknown {
        why: String,
    },
}

/// A known cost, ns per operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The quantile of the pairs that the estimator names.
    pub value_ns: f64,
    /// Its interval by visits, wider by the clock's steps; down to what undisturbed pairs bound where the core was shared.
    pub low_ns: f64,
    pub high_ns: f64,
    /// Median of all clean pairs, disturbed or not and at whatever clock; so are the quantiles.
    pub usual_ns: f64,
    /// 5 % quantile: hardly anything was in the way.
    pub fast_ns: f64,
    /// 95 % quantile.
    pub slow_ns: f64,
    pub max_ns: f64,
    pub n: usize,
    pub estimator: Estimator,
    /// Which pairs value and interval are of; `None` where nobody looked.
    pub population: Option<Population>,
    /// What the CPUs that took part paid each other one way, ns; `None` where nobody looked.
    pub apart_ns: Option<f64>,
    /// Clock of the core at which the value is told, Hz: the quick one of the run. `None` where nobody looked.
    pub core_hz: Option<f64>,
    /// How far the cost follows that clock; `None` where nobody looked.
    pub follows: Option<Follows>,
    /// Medians of up to 20 stretches of time.
    pub blocks_ns: Vec<f64>,
    /// The values that the figure is of, visit by visit.
    pub visits_ns: Vec<Vec<f64>>,
}

impl Known {
    /// True if it is to be marked wherever it is shown.
    pub fn is_shared(&self) -> bool {
        self.population == Some(Population::CoreShared)
    }

    /// The value in words, marked.
    pub fn words(&self) -> String {
        human(self.value_ns, Unit::Nanoseconds) + self.mark()
    }

    /// [`MARK`] or nothing.
    pub fn mark(&self) -> &'static str {
        if self.is_shared() { MARK } else { "" }
    }
}

impl Cost {
    /// Of CPUs that were so far apart.
    #[must_use]
    pub fn apart(mut self, apart_ns: Option<f64>) -> Self {
        if let Self::Known(k) = &mut self {
            k.apart_ns = apart_ns;
        }
        self
    }

    /// A cost of pairs taken as at this clock; what programs paid at all clocks is in `spread`.
    #[must_use]
    pub(super) fn told_at(mut self, clock: &Clock, spread: Option<[f64; 4]>) -> Self {
        if let Self::Known(k) = &mut self {
            k.core_hz = Some((clock.hz / 1e6).round() * 1e6);
            k.follows = Some(clock.follows);
            (k.low_ns, k.high_ns) =
                (k.low_ns * (1.0 - clock.error).max(0.0), k.high_ns * (1.0 + clock.error));
            if let Some(all) = spread {
                [k.fast_ns, k.usual_ns, k.slow_ns, k.max_ns] = all;
            }
        }
        self
    }

    pub fn of(row: &Row, ns_per_tick: f64, step_ticks: u64) -> Self {
        Self::of_pairs(row, &row.pairs, ns_per_tick, step_ticks)
    }

    /// Of some of its pairs (those of one level of the placement).
    pub fn of_pairs(row: &Row, pairs: &[Pair], ns_per_tick: f64, step_ticks: u64) -> Self {
        if let Some(why) = &row.refused {
            return Self::Unknown { why: why.clone() };
        }
        if let Some(p) = row.proof.as_ref().filter(|p| p.seen < p.expected) {
            return Self::Unknown { why: format!("{}: {} seen, {} expected", p.what, p.seen, p.expected) };
        }
        let values = values_ns(row, pairs, ns_per_tick);
        let tried = values.len() as u64 + row.rejected.total();
        let visits: Vec<u32> = pairs.iter().map(|p| p.visit).collect();
        let enough = sorted(&values).ok().filter(|s| s.len() >= FEWEST);
        let p = row.estimator.quantile();
        let interval = || quantile_interval_of_visits(&visits, &values, p, LEVEL);
        let found = enough.and_then(|s| Some((quantile(&s, p)?, interval()?)));
        let Some((value, ci)) = found else {
            return Self::Unknown { why: format!("{} undisturbed samples of {tried}", values.len()) };
        };
        let step_ns = step_ns(row, pairs, ns_per_tick, step_ticks);
        let (low_ns, high_ns) = (ci.low - step_ns, ci.high + step_ns);
        if low_ns <= 0.0 || value <= 0.0 {
            return Self::Below { bound_ns: high_ns.max(step_ns), n: values.len() };
        }
        let [fast_ns, usual_ns, slow_ns, max_ns] = spread(row, pairs, ns_per_tick).unwrap_or([value; 4]);
        let per_block = values.len().div_ceil(BLOCKS).max(1);
        let blocks = values.chunks(per_block).filter_map(median_of).filter(|m| *m >= 0.0);
        Self::Known(Known {
            value_ns: value,
            low_ns,
            high_ns,
            usual_ns,
            fast_ns,
            slow_ns,
            max_ns,
            n: values.len(),
            estimator: row.estimator,
            population: None,
            apart_ns: None,
            core_hz: core_clock::hz(pairs, ns_per_tick),
            follows: None,
            blocks_ns: blocks.collect(),
            visits_ns: by_visit(pairs, &values),
        })
    }

    /// Of the pairs alone on the core; of all, marked, where these are too few or may only have passed the filter. Quantiles: of all.
    pub fn by_population(
        row: &Row,
        pairs: &[Pair],
        filter: sibling::Filter,
        ns_per_tick: f64,
        step_ticks: u64,
    ) -> Self {
        let is_own = |p: &Pair| row.is_core_clock || filter.alone(p) == Some(true);
        let (own, shared): (Vec<Pair>, Vec<Pair>) = pairs.iter().copied().partition(is_own);
        let all = Self::of_pairs(row, pairs, ns_per_tick, step_ticks);
        let undisturbed = Some(Population::Undisturbed);
        let visits = |of: &[Pair]| of.chunk_by(|a, b| a.visit == b.visit).count();
        let values = |of: &[Pair]| sorted(&values_ns(row, of, ns_per_tick)).unwrap_or_default();
        let leaked = most_leaked(pairs.len(), filter.leak);
        let is_enough = own.len() >= FEWEST
            && visits(&own) >= VISITS_FEWEST.min(visits(pairs))
            && surely_own(&values(&own), &values(&shared), row.estimator.quantile(), leaked);
        let Self::Known(all) = all else {
            return if is_enough { Self::of_pairs(row, &own, ns_per_tick, step_ticks) } else { all };
        };
        if shared.is_empty() {
            return Self::Known(Known { population: undisturbed, ..all });
        }
        if is_enough {
            match Self::of_pairs(row, &own, ns_per_tick, step_ticks) {
                Self::Known(own) => {
                    let Known { usual_ns, fast_ns, slow_ns, max_ns, .. } = all;
                    let population = undisturbed;
                    // A neighbor only lengthens pairs, so that all of them bound the figure from above.
                    let high_ns = own.high_ns.min(all.high_ns).max(own.value_ns);
                    return Self::Known(Known {
                        high_ns,
                        usual_ns,
                        fast_ns,
                        slow_ns,
                        max_ns,
                        population,
                        ..own
                    });
                }
                // They do not deny what all say; they were just too few visits.
                Self::Below { bound_ns, .. } if all.low_ns <= bound_ns => {}
                other => return other,
            }
        }
        let least_ns = upper_ns(row, &own, ns_per_tick).into_iter().fold(f64::INFINITY, f64::min)
            - step_ns(row, pairs, ns_per_tick, step_ticks);
        let is_bound = own.len() >= LEAST_OF + leaked && least_ns > 0.0;
        let reached_ns = if is_bound { least_ns } else { LEAST_SHARE * all.value_ns };
        let low_ns = all.low_ns.min(reached_ns);
        Self::Known(Known { population: Some(Population::CoreShared), low_ns, ..all })
    }

    pub fn known(&self) -> Option<&Known> {
        match self {
            Self::Known(k) => Some(k),
            _ => None,
        }
    }

    pub fn value_ns(&self) -> Option<f64> {
        self.known().map(|k| k.value_ns)
    }

    /// The value in words, marked, where known.
    pub fn words(&self) -> Option<String> {
        self.known().map(Known::words)
    }

    /// As [`Known::mark`]; nothing where it is not known.
    pub fn mark(&self) -> &'static str {
        self.known().map_or("", Known::mark)
    }

    pub fn population(&self) -> Option<Population> {
        self.known()?.population
    }

    /// As a metric in ns (`info` must have that unit). A bound or an unknown becomes a metric without a value that says why.
    pub fn metric(&self, info: &MetricInfo, params: Params) -> Metric {
        self.metric_as(info, params, |ns| ns)
    }

    /// As a metric of a quantity that follows from the cost by a monotone function (bytes per second: `|ns| 1e9 / ns`).
    pub fn metric_as(&self, info: &MetricInfo, params: Params, f: impl Fn(f64) -> f64) -> Metric {
        match self {
            Self::Known(k) => {
                let (a, b) = (f(k.low_ns), f(k.high_ns));
                // What comes out as nothing or less is no quantile.
                let [fast, slow] = if a <= b { [0.05, 0.95] } else { [0.95, 0.05] };
                let quantiles = [(fast, k.fast_ns), (0.5, k.usual_ns), (slow, k.slow_ns)];
                let quantiles: Vec<(f64, f64)> =
                    quantiles.into_iter().filter(|(_, ns)| *ns > 0.0).map(|(p, ns)| (p, f(ns))).collect();
                let visits = k.visits_ns.len();
                let few = if visits < VISITS_ENOUGH { format!(", {visits} visits") } else { String::new() };
                let down = if k.is_shared() { ", down to undisturbed" } else { "" };
                let method = format!("rank{few}{down}");
                // Of a rate the slow pairs are the low ones.
                let p = k.estimator.quantile();
                let samples = k.visits_ns.iter().map(|v| v.iter().map(|ns| f(*ns)).collect());
                let samples = Visits::new(if a <= b { p } else { 1.0 - p }, samples);
                let span_ns = k.blocks_ns.len().max(1) as f64;
                Metric::new(info, params, f(k.value_ns), k.estimator.name(), k.n as u64)
                    .with_ci(Interval::new(LEVEL, a.min(b), a.max(b), &method))
                    .with_population(k.population)
                    .with_apart(k.apart_ns)
                    .with_core_hz(k.core_hz)
                    .with_follows_clock(
                        k.follows.map(|f| FollowsClock { share: cut(f.share), sd: cut(f.sd) }),
                    )
                    .with_quantiles(&quantiles)
                    .with_visits(samples)
                    .with_blocks(k.blocks_ns.iter().map(|b| f(*b)).collect(), span_ns)
            }
            Self::Below { bound_ns, n } => {
                let most = human(*bound_ns, Unit::Nanoseconds);
                let why = format!("below resolution: at most {most} ({n} samples)");
                Metric::rejected(info, params, NONE, &why)
            }
            Self::Unknown { why } => Metric::rejected(info, params, NONE, why),
        }
    }
}

/// A share with four digits behind the point.
fn cut(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

/// What the clock's steps leave open of a value, ns: a duration is known up to a step, two up to two.
fn step_ns(row: &Row, pairs: &[Pair], ns_per_tick: f64, step_ticks: u64) -> f64 {
    let is_alone = row.short_turns == 0 && pairs.iter().all(|p| p.short_ticks == 0);
    let durations = if is_alone { 1.0 } else { 2.0 };
    durations * step_ticks.max(1) as f64 * ns_per_tick / operations(row)
}

/// Cost by each long batch, ns, less what both lengths have in common, pair by pair: neighbors and clocks are no part.
fn long_batches_ns(row: &Row, pairs: &[Pair], ns_per_tick: f64) -> Vec<f64> {
    let (short_turns, long_turns) = (row.short_turns as f64, row.long_turns.max(1) as f64);
    let more = row.long_turns.saturating_sub(row.short_turns).max(1) as f64;
    let common = |p: &Pair| {
        (p.short_ticks as f64 * long_turns - p.long_ticks as f64 * short_turns) / more * ns_per_tick
    };
    let commons: Vec<f64> = pairs.iter().map(common).collect();
    let common_ns = median_of(&commons).unwrap_or(0.0).max(0.0);
    let operations = long_turns * row.per_turn;
    pairs.iter().map(|p| (p.long_ticks as f64 * ns_per_tick - common_ns) / operations).collect()
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
