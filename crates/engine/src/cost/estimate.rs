//! From pairs of batches to a cost with an interval, or to a bound, or to the reason why there is neither.

use machmeter_data::metric::Params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::{Interval, Metric, MetricInfo};
use machmeter_stats::quantile::{median, quantile, sorted};
use machmeter_stats::visits::median_interval;

use super::{Pair, Row};
use crate::disturbance::sibling;

pub const LEVEL: f64 = 0.95;
/// Fewest clean pairs: with fewer there is no rank interval of a median at 95 %.
pub const FEWEST: usize = 6;
/// Fewest pairs alone on the core that stand for all, and of how many of all they have to be one.
const ALONE_FEWEST: usize = 2 * FEWEST;
const ALONE_ONE_IN: usize = 10;
/// Values over time that a metric carries.
const BLOCKS: usize = 20;

#[derive(Debug, Clone, PartialEq)]
pub enum Cost {
    /// Known, ns per operation.
    Known(Known),
    /// Smaller than can be told from nothing: at most `bound_ns` per operation (upper end of the interval, and no less than
    /// one clock step over the batch).
    Below {
        /// Upper bound, ns per operation.
        bound_ns: f64,
        n: usize,
    },
    /// Not known.
    Unknown { why: String },
}

/// A known cost, ns per operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    pub value_ns: f64,
    /// Rank interval of the median, by visits, and on either side as much more as the clock's steps leave open.
    pub low_ns: f64,
    pub high_ns: f64,
    /// Median of the long batches of all clean pairs, neighbours or not; so are the quantiles.
    pub usual_ns: f64,
    /// 5 % quantile: hardly anything was in the way.
    pub fast_ns: f64,
    /// 95 % quantile.
    pub slow_ns: f64,
    pub max_ns: f64,
    pub n: usize,
    /// Whether these were only those during which nobody else used the core; quantiles and maximum are of all.
    pub alone: bool,
    /// Medians of up to 20 stretches of time.
    pub blocks_ns: Vec<f64>,
}

impl Cost {
    pub fn of(row: &Row, ns_per_tick: f64, step_ticks: u64) -> Self {
        Self::of_pairs(row, &row.pairs, ns_per_tick, step_ticks)
    }

    /// Of some of its pairs (those of one regime).
    pub fn of_pairs(row: &Row, pairs: &[Pair], ns_per_tick: f64, step_ticks: u64) -> Self {
        if let Some(why) = &row.refused {
            return Self::Unknown { why: why.clone() };
        }
        if let Some(p) = row.proof.as_ref().filter(|p| p.seen < p.expected) {
            return Self::Unknown { why: format!("{}: {} seen, {} expected", p.what, p.seen, p.expected) };
        }
        let values = values_ns(row, pairs, ns_per_tick);
        let tried = values.len() as u64 + row.rejected.total();
        let unknown = || Self::Unknown { why: format!("{} undisturbed samples of {tried}", values.len()) };
        let Ok(s) = sorted(&values) else { return unknown() };
        let times: Vec<f64> = pairs.iter().map(|p| p.at_ns).collect();
        let (Some(value), Some(ci)) = (median(&s), median_interval(&times, &values, LEVEL)) else {
            return unknown();
        };
        if values.len() < FEWEST {
            return unknown();
        }
        let operations = operations(row);
        // Where hardly anything disturbs, all pairs show the same value of the clock: equal, and all off by as much. A duration is known
        // up to a step, the difference of two up to two.
        let durations = if row.short_turns > 0 { 2.0 } else { 1.0 };
        let step_ns = durations * step_ticks.max(1) as f64 * ns_per_tick / operations;
        let (low_ns, high_ns) = (ci.low - step_ns, ci.high + step_ns);
        if low_ns <= 0.0 || value <= 0.0 {
            return Self::Below { bound_ns: high_ns.max(step_ns), n: values.len() };
        }
        let batches = sorted(&batches_ns(row, pairs, ns_per_tick)).unwrap_or_else(|_| s.clone());
        let at = |p: f64| quantile(&batches, p).unwrap_or(value);
        let per_block = values.len().div_ceil(BLOCKS).max(1);
        let blocks = values.chunks(per_block).filter_map(|c| median(&sorted(c).ok()?)).filter(|m| *m >= 0.0);
        Self::Known(Known {
            value_ns: value,
            low_ns,
            high_ns,
            usual_ns: at(0.5),
            fast_ns: at(0.05),
            slow_ns: at(0.95),
            max_ns: at(1.0),
            n: values.len(),
            alone: false,
            blocks_ns: blocks.collect(),
        })
    }

    /// Of the pairs during which nobody else used the core of this `whole` width; quantiles are of all. `None` unless they are a
    /// tenth of all, and enough for a cost where all are.
    pub fn alone(row: &Row, pairs: &[Pair], whole: f64, ns_per_tick: f64, step_ticks: u64) -> Option<Self> {
        let alone: Vec<Pair> =
            pairs.iter().filter(|p| sibling::alone(p, whole) == Some(true)).copied().collect();
        if alone.len() < ALONE_FEWEST || alone.len() * ALONE_ONE_IN < pairs.len() {
            return None;
        }
        let cost = Self::of_pairs(row, &alone, ns_per_tick, step_ticks);
        let all = Self::of_pairs(row, pairs, ns_per_tick, step_ticks);
        if let (Self::Below { bound_ns, .. }, Self::Known(all)) = (&cost, &all)
            && all.low_ns <= *bound_ns
        {
            // Those alone do not deny what all say; they were just too few visits.
            return None;
        }
        let (Self::Known(quiet), Self::Known(all)) = (&cost, all) else { return Some(cost) };
        let Known { usual_ns, fast_ns, slow_ns, max_ns, .. } = all;
        Some(Self::Known(Known { alone: true, usual_ns, fast_ns, slow_ns, max_ns, ..quiet.clone() }))
    }

    pub fn known(&self) -> Option<&Known> {
        match self {
            Self::Known(k) => Some(k),
            _ => None,
        }
    }

    /// Median, ns per operation, where known.
    pub fn value_ns(&self) -> Option<f64> {
        self.known().map(|k| k.value_ns)
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
                // Of a rate the slow pairs are the low ones.
                let (fast, slow) = (f(k.fast_ns), f(k.slow_ns));
                let mut quantiles = vec![(0.05, fast.min(slow)), (0.95, fast.max(slow))];
                if k.alone {
                    quantiles.insert(1, (0.5, f(k.usual_ns)));
                }
                let method = if k.alone { "rank, alone on the core" } else { "rank" };
                let span_ns = k.blocks_ns.len().max(1) as f64;
                Metric::new(info, params, f(k.value_ns), "median of differences", k.n as u64)
                    .with_ci(Interval::new(LEVEL, a.min(b), a.max(b), method))
                    .with_quantiles(&quantiles)
                    .with_blocks(k.blocks_ns.iter().map(|b| f(*b)).collect(), span_ns)
            }
            Self::Below { bound_ns, n } => {
                let why = format!(
                    "below resolution: at most {} ({n} samples)",
                    human(*bound_ns, Unit::Nanoseconds)
                );
                Metric::rejected(info, params, "median of differences", &why)
            }
            Self::Unknown { why } => Metric::rejected(info, params, "median of differences", why),
        }
    }
}

/// Operations by which the long batch is longer.
fn operations(row: &Row) -> f64 {
    row.long_turns.saturating_sub(row.short_turns).max(1) as f64 * row.per_turn
}

/// Cost of an operation by each pair, ns; may be negative where a short batch was disturbed.
pub fn values_ns(row: &Row, pairs: &[Pair], ns_per_tick: f64) -> Vec<f64> {
    let operations = operations(row);
    pairs.iter().map(|p| (p.long_ticks as f64 - p.short_ticks as f64) * ns_per_tick / operations).collect()
}

/// Cost of an operation by each long batch alone, ns: less what both lengths have in common. Unlike differences, which a disturbed short
/// batch makes too small, none is less than what the operations took, as long as most pairs show what is in common. It is read pair by
/// pair and not from the median of the short batches: a neighbour or a clock that is the same during both of a pair is no part of it.
fn batches_ns(row: &Row, pairs: &[Pair], ns_per_tick: f64) -> Vec<f64> {
    let (short_turns, long_turns) = (row.short_turns as f64, row.long_turns.max(1) as f64);
    let more = row.long_turns.saturating_sub(row.short_turns).max(1) as f64;
    let common = |p: &Pair| {
        (p.short_ticks as f64 * long_turns - p.long_ticks as f64 * short_turns) / more * ns_per_tick
    };
    let commons: Vec<f64> = pairs.iter().map(common).collect();
    let common_ns = sorted(&commons).ok().and_then(|s| median(&s)).unwrap_or(0.0).max(0.0);
    let operations = long_turns * row.per_turn;
    pairs.iter().map(|p| (p.long_ticks as f64 * ns_per_tick - common_ns).max(0.0) / operations).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Kind, Proof};

    fn row(ticks: impl Iterator<Item = (u64, u64)>) -> Row {
        let mut row = Row::new("ladder", "chase", Kind::Latency).per_turn(16.0);
        (row.short_turns, row.long_turns) = (100, 200);
        row.pairs = ticks
            .enumerate()
            .map(|(i, (short_ticks, long_ticks))| Pair {
                at_ns: i as f64,
                short_ticks,
                long_ticks,
                ..Pair::default()
            })
            .collect();
        row
    }

    #[test]
    fn what_is_constant_cancels_and_what_disturbs_one_pair_in_five_does_not_show() {
        // 500 ticks of call and clock, 3 ticks per operation at 2 ns a tick.
        let pairs = (0..50).map(|i| {
            let disturbed = if i % 5 == 0 { 40_000 } else { 0 };
            (500 + 100 * 48 + i % 3, 500 + 200 * 48 + disturbed + i % 2)
        });
        let cost = Cost::of(&row(pairs), 2.0, 1);
        let k = cost.known().expect("known");
        assert!((k.value_ns - 6.0).abs() < 0.01, "{k:?}");
        assert!(k.low_ns <= 6.0 && 6.0 <= k.high_ns && k.max_ns > 10.0, "{k:?}");
    }

    #[test]
    fn a_neighbour_during_half_of_the_batches_is_not_taken_from_the_quick_ones() {
        // 3 ns and a common part of 500. A neighbour who comes and goes makes it 5, in whole pairs or in one batch of a pair.
        let each = |i: u64, busy: [u64; 2]| if busy.contains(&(i % 10)) || i % 10 > 6 { 80 } else { 48 };
        let pair = |i: u64| (500 + 100 * each(i, [1, 2]) + i % 3, 500 + 200 * each(i, [3, 3]) + i % 2);
        let cost = Cost::of(&row((0..200).map(pair)), 1.0, 1);
        let k = cost.known().expect("known");
        assert!((k.fast_ns - 3.0).abs() < 0.02 && (k.slow_ns - 5.0).abs() < 0.02, "{k:?}");
    }

    #[test]
    fn a_neighbour_on_the_core_shows_in_the_quantiles_alone() {
        // 3 ns while alone; three of four pairs with a neighbour, who makes it cost 4.
        let mut row = row((0..80).map(|i| {
            let each = if i % 4 == 0 { 48 } else { 64 };
            (500 + 100 * each + i % 3, 500 + 200 * each + i % 2)
        }));
        for (i, pair) in row.pairs.iter_mut().enumerate() {
            pair.core_width = if i % 4 == 0 { 3.9 } else { 2.1 };
        }
        let rows = |row: &Row| {
            let mut rows = crate::cost::Rows { tick_hz: 1e9, step_ticks: 1, ..Default::default() };
            rows.rows.push(row.clone());
            rows.tell_width();
            rows
        };
        let all = rows(&row);
        let cost = all.cost(&row);
        let k = cost.known().expect("known");
        assert!(k.alone && k.n == 20 && (k.value_ns - 3.0).abs() < 0.01, "{k:?}");
        assert!(
            k.high_ns < 3.1 && k.slow_ns > 3.9 && k.usual_ns > 3.9 && k.blocks_ns.iter().all(|b| *b < 3.1),
            "{k:?}"
        );
        assert_eq!(all.shared_core(), Some((0.75, 80)));
        // Too few alone, or nobody looked: all of them.
        for (i, pair) in row.pairs.iter_mut().enumerate() {
            pair.core_width = if i < 7 { 3.9 } else { 2.1 };
        }
        for pairs in [
            row.clone(),
            Row { pairs: row.pairs.iter().map(|p| Pair { core_width: 0.0, ..*p }).collect(), ..row },
        ] {
            let all = rows(&pairs);
            let cost = all.cost(&pairs);
            let k = cost.known().expect("known");
            assert!(!k.alone && k.n == 80 && k.value_ns > 3.9, "{k:?}");
        }
    }

    #[test]
    fn few_visits_alone_do_not_take_away_what_all_pairs_say() {
        // Twelve visits, two of them alone; in one of these the short batches were held up.
        let alone = |i: u64| matches!(i / 20, 3 | 9);
        let planted = |each: u64| {
            let mut row = row((0..240).map(|i| {
                let held_up = if i / 20 == 9 { 20_000 } else { 0 };
                let busy = if alone(i) || i / 20 % 2 == 0 { 0 } else { 800 };
                (500 + 100 * each + held_up + i % 3, 500 + 200 * each + busy + i % 2)
            }));
            for (i, pair) in row.pairs.iter_mut().enumerate() {
                pair.at_ns = (i + i / 20 * 1_000) as f64;
                pair.core_width = if alone(i as u64) { 3.9 } else { 2.1 };
            }
            row
        };
        let sure = planted(48);
        let cost = Cost::alone(&sure, &sure.pairs, 3.9, 1.0, 1);
        assert_eq!(cost, None);
        // What costs nothing alone does not cost what a neighbour makes of it.
        let nothing = planted(0);
        let cost = Cost::alone(&nothing, &nothing.pairs, 3.9, 1.0, 1);
        assert!(matches!(cost, Some(Cost::Below { bound_ns, .. }) if bound_ns < 0.1), "{cost:?}");
    }

    #[test]
    fn a_core_that_was_never_whole_is_known_from_before() {
        let rows = |widths: &[f64], before| {
            let mut row = row((0..400).map(|i| (500 + 100 * 48 + i % 3, 500 + 200 * 48 + i % 2)));
            for (pair, width) in row.pairs.iter_mut().zip(widths.iter().cycle()) {
                pair.core_width = *width;
            }
            let mut rows = crate::cost::Rows { tick_hz: 1e9, step_ticks: 1, ..Default::default() };
            rows.rows.push(row);
            rows.remember_width(before);
            rows.tell_width();
            rows
        };
        let whole = rows(&[3.7, 3.7, 2.1], None);
        let narrowness = whole.narrowness().expect("sure");
        assert!((narrowness * 3.7 - 1.0).abs() < 0.01, "{narrowness}");
        let shared = |rows: &crate::cost::Rows| rows.shared_core().expect("looked").0;
        let never = [3.0, 3.0, 2.1];
        assert!(shared(&rows(&never, None)) < 0.4, "taken for whole");
        let known = rows(&never, Some(narrowness));
        assert!((shared(&known) - 1.0).abs() < 1e-9 && known.narrowness().is_none());
        // What was less before, or is no figure, changes nothing.
        for before in [Some(1.0 / 3.0), Some(0.0), Some(f64::NAN), Some(-1.0)] {
            assert!((shared(&rows(&[3.7, 3.7, 2.1], before)) - 1.0 / 3.0).abs() < 0.01, "{before:?}");
        }
        // Four of 400 pairs are no proof.
        let mut rare = vec![2.1; 99];
        rare.push(3.7);
        assert!(rows(&rare, None).narrowness().is_none_or(|n| n * 2.1 > 0.9));
    }

    #[test]
    fn a_disturbed_short_batch_makes_no_quantile_less_than_the_cost() {
        let pairs = (0..60).map(|i| {
            let disturbed = if i % 5 == 0 { 2_400 } else { 0 };
            (500 + 100 * 48 + disturbed, 500 + 200 * 48 + i % 2)
        });
        let cost = Cost::of(&row(pairs), 2.0, 1);
        let k = cost.known().expect("known");
        for ns in [k.value_ns, k.fast_ns, k.usual_ns, k.slow_ns] {
            assert!((ns - 6.0).abs() < 0.01, "{k:?}");
        }
    }

    #[test]
    fn quantiles_of_a_rate_ascend() {
        const RATE: MetricInfo = MetricInfo {
            id: "test.rate",
            params: &[],
            unit: Unit::BytesPerSecond,
            better: machmeter_data::Better::Higher,
            description: "A rate.",
            may_be_negative: false,
        };
        let pairs = (0..60).map(|i| (500 + 100 * 48 + i % 5, 500 + 200 * 48 + (i * 7) % 90));
        let m = Cost::of(&row(pairs), 2.0, 1).metric_as(&RATE, Params::new(), |ns| 1e9 / ns);
        let (low, high) = (m.quantiles["0.05"], m.quantiles["0.95"]);
        assert!(low < high && low < m.value.unwrap() * 1.01 && high > m.value.unwrap() * 0.99, "{m:?}");
    }

    #[test]
    fn an_interval_is_no_narrower_than_the_clock_steps() {
        // All pairs alike, on a clock that steps by 25 ticks: 4,800 ticks may be 4,850.
        let cost = |step| Cost::of(&row((0..40).map(|_| (500 + 100 * 48, 500 + 200 * 48))), 2.0, step);
        let half = |step| cost(step).known().map(|k| (k.high_ns - k.low_ns) / 2.0 / k.value_ns).unwrap();
        assert!((half(25) - 50.0 / 4_800.0).abs() < 1e-9 && half(1) < 0.001, "{} {}", half(25), half(1));
        // Less than a step is nothing.
        assert!(matches!(cost(2_401), Cost::Below { .. }));
    }

    #[test]
    fn nothing_is_a_bound_and_never_negative() {
        let cost = Cost::of(&row((0..40).map(|i| (1000 + i % 7, 1000 + (i * 3) % 7))), 1.0, 1);
        let Cost::Below { bound_ns, .. } = cost else { panic!("{cost:?}") };
        assert!(bound_ns > 0.0 && bound_ns < 0.01, "{bound_ns}");
        let always_less = Cost::of(&row((0..40).map(|_| (1000, 990))), 1.0, 1);
        assert!(matches!(always_less, Cost::Below { bound_ns, .. } if bound_ns > 0.0), "{always_less:?}");
    }

    #[test]
    fn too_few_and_unproven_samples_have_no_cost_but_a_reason() {
        let few = Cost::of(&row((0..5).map(|_| (10, 2000))), 1.0, 1);
        assert!(
            matches!(&few, Cost::Unknown { why } if why.contains("5 undisturbed samples of 5")),
            "{few:?}"
        );
        let mut r = row((0..50).map(|_| (10, 2000)));
        r.proof = Some(Proof { what: "children that exited with 0".to_owned(), expected: 50, seen: 0 });
        assert!(matches!(Cost::of(&r, 1.0, 1), Cost::Unknown { why } if why.contains("0 seen, 50 expected")));
    }
}
