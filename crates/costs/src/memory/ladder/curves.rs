//! Rows of the ladder as curves, and single steps of short ones: the line, the ways, the reach of a translation buffer.

use machmeter_engine::cost::{Cost, Fact, Pair, Row, Rows};
use machmeter_engine::disturbance::sibling;

use super::NAME;
use super::chase::{ADDITIONS, HUGE, PAGE_LOCAL, SMALL, STRIDE_BYTES};
use super::plan::REPORTED_CACHES;
use crate::memory::reported::ReportedCaches;
use machmeter_stats::levels::{self, CurvePoint, LevelEnd};
use machmeter_stats::quantile::{median_of, sorted};
use machmeter_stats::random::Random;

/// Working set of which the larger part is in memory, bytes: no more is known to be kept by the caches of one chip.
pub(super) const MEMORY_BYTES: f64 = 67_108_864.0;
/// Time of the last pair of each round, on the clock of the pairs.
pub(super) const ROUND_ENDS_NS: Fact<Vec<f64>> = Fact::named("ladder.round_ends_ns");
/// Resamples of the rounds: their least and most are the 1 and 99 % quantiles.
const RESAMPLES: usize = 100;
const RESAMPLE_SEED: u64 = 12;
/// Fewest pairs alone on the core that speak for a size.
const ALONE_LEAST: usize = 4;

/// A working set with what a load cost in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    /// Working set, bytes (or any other size that grows along the curve).
    pub(super) size: f64,
    /// Round and cost, ns, of each undisturbed pair.
    pub(super) costs_ns: Vec<(usize, f64)>,
}

impl Point {
    /// The least cost, ns: what it costs while nobody else uses the cache. No batch is quicker than its loads.
    pub(super) fn lowest_ns(&self) -> Option<f64> {
        self.costs_ns.iter().map(|c| c.1).min_by(f64::total_cmp)
    }

    pub(super) fn median_ns(&self) -> Option<f64> {
        median_of(&self.costs_ns.iter().map(|c| c.1).collect::<Vec<_>>())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct CacheEnd {
    /// On the curve of the least costs of all rounds.
    pub(super) all: LevelEnd,
    /// Capacity by each round alone, in order, bytes.
    pub(super) by_round_bytes: Vec<f64>,
    /// Least and most capacity over resampled rounds, bytes, each with the measured sizes on either side.
    pub(super) bracket_bytes: (f64, f64),
}

impl CacheEnd {
    /// Capacities of all rounds and of each alone, from least to most, bytes.
    pub(super) fn range_bytes(&self) -> (f64, f64) {
        span(self.by_round_bytes.iter().copied().chain([self.all.capacity.bytes]))
    }

    /// What was there all the time of the cache `number` from the core, bytes: others use those after the first two, too.
    pub(super) fn always_bytes(&self, number: usize) -> f64 {
        if number < 2 { self.all.capacity.bytes } else { self.range_bytes().0 }
    }
}

fn span(sizes: impl Iterator<Item = f64>) -> (f64, f64) {
    sizes.fold((f64::INFINITY, 0.0), |(least, most), b| (least.min(b), most.max(b)))
}

/// Ends of the levels of a curve, the nearest first.
pub(super) fn level_ends(points: &[Point]) -> Vec<CacheEnd> {
    let lowest = |of_round: &dyn Fn(usize) -> bool| -> Vec<CurvePoint> {
        let of = |p: &Point| {
            let costs_ns = p.costs_ns.iter().filter(|c| of_round(c.0)).map(|c| c.1);
            costs_ns.min_by(f64::total_cmp).map(|ns| CurvePoint { bytes: p.size, ns })
        };
        points.iter().filter_map(of).collect()
    };
    let found = levels::levels(&lowest(&|_| true)).unwrap_or_default();
    let rounds = points.iter().flat_map(|p| &p.costs_ns).map(|c| c.0 + 1).max().unwrap_or(0);
    let by_round: Vec<Vec<CurvePoint>> = (0..rounds).map(|round| lowest(&|r| r == round)).collect();
    let mut random = Random::new(RESAMPLE_SEED);
    let mut drawn = || {
        let mut is_drawn = vec![false; rounds];
        (0..rounds).for_each(|_| is_drawn[random.below(rounds)] = true);
        // Many rounds visit a part of the sizes only: one that none of these visited keeps the cost of the others.
        let of = |p: &Point| {
            let costs_ns = p.costs_ns.iter().filter(|c| is_drawn[c.0]).map(|c| c.1);
            let ns = costs_ns.min_by(f64::total_cmp).or_else(|| p.lowest_ns())?;
            Some(CurvePoint { bytes: p.size, ns })
        };
        points.iter().filter_map(of).collect()
    };
    let resampled: Vec<Vec<CurvePoint>> = (0..RESAMPLES).map(|_| drawn()).collect();
    let ends = found.iter().zip(found.iter().skip(1)).enumerate();
    ends.filter_map(|(number, (level, next))| {
        let all = level.end?;
        let on = |curve: &Vec<CurvePoint>| levels::capacity(curve, [level.price_ns, next.price_ns], number);
        let capacities = || resampled.iter().filter_map(on).chain([all.capacity]);
        let bracket_bytes =
            (span(capacities().map(|c| c.low_bytes)).0, span(capacities().map(|c| c.high_bytes)).1);
        let by_round_bytes = by_round.iter().filter_map(on).map(|c| c.bytes).collect();
        Some(CacheEnd { all, by_round_bytes, bracket_bytes })
    })
    .collect()
}

/// The rows of the ladder, with what is needed to read them.
pub(super) struct Curves<'r> {
    pub(super) all: &'r Rows,
    /// Time of the last pair of each round.
    pub(super) round_ends_ns: Vec<f64>,
    /// Width of the core without neighbors, where somebody looked.
    pub(super) whole_width: Option<f64>,
}

impl<'r> Curves<'r> {
    pub(super) fn of(rows: &'r Rows) -> Self {
        let round_ends_ns = rows.facts.get(&ROUND_ENDS_NS).unwrap_or_default();
        Self { all: rows, round_ends_ns, whole_width: rows.whole_width() }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &'r Row> {
        self.all.part(NAME)
    }

    pub(super) fn of_operation(&self, operation: &str) -> impl Iterator<Item = &'r Row> {
        self.rows().filter(move |r| r.operation == operation)
    }

    pub(super) fn chases(&self, order: &str, pages: &str, stride_bytes: usize) -> Vec<&'r Row> {
        let is = |r: &&Row| {
            r.text("order") == order
                && r.text("pages") == pages
                && r.int("stride_bytes") == Some(stride_bytes as i64)
        };
        self.of_operation("chase").filter(is).collect()
    }

    pub(super) fn reported(&self) -> ReportedCaches {
        self.all.facts.get(&REPORTED_CACHES).unwrap_or_default()
    }

    /// Page size of the rows that sizes are detected on: small where there are any.
    pub(super) fn first_pages(&self) -> &'static str {
        if self.rows().any(|r| r.text("pages") == SMALL) { SMALL } else { HUGE }
    }

    pub(super) fn additions(&self) -> Option<&'r Row> {
        self.of_operation(ADDITIONS).max_by_key(|r| r.pairs.len())
    }

    /// Cost of a row in cycles, by the additions of each visit; `None` where there were none beside it.
    pub(super) fn cycles(&self, row: &Row) -> Option<Cost> {
        let adds = self.of_operation(ADDITIONS).find(|r| r.params == row.params)?;
        let cycle_ns = |visit: u32| {
            let costs_ns = self.costs_ns(adds, &|p| p.visit == visit);
            Point { size: 0.0, costs_ns }.median_ns()
        };
        let scaled = |p: &Pair| {
            let cycles = |ticks: u64, cycle_ns: f64| (ticks as f64 / cycle_ns).round() as u64;
            let cycle_ns = cycle_ns(p.visit)?;
            let (short_ticks, long_ticks) = (cycles(p.short_ticks, cycle_ns), cycles(p.long_ticks, cycle_ns));
            Some(Pair { short_ticks, long_ticks, ..*p })
        };
        Some(self.all.cost(&Row { pairs: row.pairs.iter().filter_map(scaled).collect(), ..row.clone() }))
    }

    /// The curve of an order and page size, by working set in bytes.
    pub(super) fn points(&self, order: &str, pages: &str) -> Vec<Point> {
        self.curve("working_set_bytes", &self.chases(order, pages, STRIDE_BYTES))
    }

    /// Ends of the caches. What is certainly memory has none, whatever others make it cost.
    pub(super) fn cache_ends(&self) -> Vec<CacheEnd> {
        let mut ends = level_ends(&self.points(PAGE_LOCAL, self.first_pages()));
        let last_bytes = self.reported().last_bytes().unwrap_or(0);
        let memory_bytes = MEMORY_BYTES.max(2.0 * last_bytes as f64);
        ends.retain(|e| e.all.from_bytes < memory_bytes);
        ends
    }

    pub(super) fn curve(&self, over: &str, rows: &[&Row]) -> Vec<Point> {
        self.curve_of(over, rows, &|_| true)
    }

    fn curve_of(&self, over: &str, rows: &[&Row], of: &dyn Fn(&Pair) -> bool) -> Vec<Point> {
        let point = |r: &&Row| Some(Point { size: r.int(over)? as f64, costs_ns: self.costs_ns(r, of) });
        let mut points: Vec<Point> = rows.iter().filter_map(point).collect();
        points.retain(|p| !p.costs_ns.is_empty());
        points.sort_by(|a, b| a.size.total_cmp(&b.size));
        points
    }

    /// [`Curves::curve`] by pairs alone on the core, where a point has enough; empty where nobody looked.
    pub(super) fn quiet_curve(&self, over: &str, rows: &[&Row]) -> Vec<Point> {
        let quiet: Vec<&Row> = rows.iter().copied().filter(|r| self.alone(r) >= ALONE_LEAST).collect();
        self.curve_of(over, &quiet, &|p| self.is_alone(p))
    }

    /// Pairs of a row during which nobody else used the core, as far as is known.
    pub(super) fn alone(&self, row: &Row) -> usize {
        row.pairs.iter().filter(|p| self.is_alone(p)).count()
    }

    fn is_alone(&self, pair: &Pair) -> bool {
        self.whole_width.is_some_and(|whole| sibling::alone(pair, whole) == Some(true))
    }

    /// Round and cost of these pairs: the quicker batch, which unlike the difference is never below what loads took.
    pub(super) fn costs_ns(&self, row: &Row, of: &dyn Fn(&Pair) -> bool) -> Vec<(usize, f64)> {
        let ns_per_tick = self.all.ns_per_tick();
        let each = |ticks: u64, turns: u64| ticks as f64 * ns_per_tick / (turns.max(1) as f64 * row.per_turn);
        let cost = |p: &Pair| {
            let long_ns = each(p.long_ticks, row.long_turns);
            if p.short_ticks == 0 { long_ns } else { long_ns.min(each(p.short_ticks, row.short_turns)) }
        };
        let round = |p: &Pair| self.round_ends_ns.partition_point(|end| *end < p.at_ns);
        let costs_ns = row.pairs.iter().filter(|p| of(p)).map(|p| (round(p), cost(p)));
        costs_ns.filter(|(_, ns)| *ns > 0.0 && ns.is_finite()).collect()
    }
}

/// Quantile of pairs that is a size's cost: neighbors make it dearer, luck beyond a step sometimes cheaper.
pub(super) const DISTURBED_QUANTILE: f64 = 0.18;
/// The same of pairs during which nobody else used the core: they have nothing to avoid on either side.
pub(super) const QUIET_QUANTILE: f64 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) last: f64,
    pub(super) next: f64,
    pub(super) before_ns: f64,
    pub(super) after_ns: f64,
    pub(super) n: usize,
}

/// The step of an ascending curve: where its lower bound crosses the geometric mean of both ends.
/// `None` unless the end costs `min_ratio` times the beginning. A size costs the `quantile` of its pairs.
pub(super) fn step_edge(points: &[Point], min_ratio: f64, quantile: f64) -> Option<Step> {
    let cost = |p: &Point| {
        let costs_ns: Vec<f64> = p.costs_ns.iter().map(|c| c.1).collect();
        let s = sorted(&costs_ns).ok()?;
        let ns = s.get((quantile * s.len().checked_sub(1)? as f64) as usize).filter(|ns| **ns > 0.0)?;
        Some((p.size, ns.ln()))
    };
    let (sizes, mut fit): (Vec<f64>, Vec<f64>) = points.iter().filter_map(cost).unzip();
    for i in (1..fit.len()).rev() {
        fit[i - 1] = fit[i - 1].min(fit[i]);
    }
    let (first, last) = (*fit.first()?, *fit.last()?);
    if last - first < min_ratio.ln() {
        return None;
    }
    let above = fit.iter().position(|y| *y > f64::midpoint(first, last))?;
    let below = above.checked_sub(1)?;
    Some(Step {
        last: sizes[below],
        next: sizes[above],
        before_ns: first.exp(),
        after_ns: last.exp(),
        n: points.iter().map(|p| p.costs_ns.len()).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cost 1.3 up to `last`, 1.3 times `ratio` beyond, with noise and outliers on both sides.
    fn curve(sizes: &[f64], last: f64, ratio: f64, seed: u64) -> Vec<Point> {
        let mut random = Random::new(seed);
        let mut cost = |size: f64| {
            let wild = if random.unit() < 0.15 { 5.0 } else { 1.0 };
            let lucky = random.unit() < 0.05;
            wild * (1.0 + 0.01 * random.normal()) * if size > last && !lucky { 1.3 * ratio } else { 1.3 }
        };
        sizes
            .iter()
            .map(|s| Point { size: *s, costs_ns: (0..24).map(|i| (i / 6, cost(*s))).collect() })
            .collect()
    }

    #[test]
    fn planted_steps_are_found_exactly() {
        let counts: Vec<f64> = (56..80).map(f64::from).collect();
        let offsets = [8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
        for seed in 0..20 {
            let s = step_edge(&curve(&counts, 72.0, 2.75, seed), 1.4, DISTURBED_QUANTILE).unwrap();
            assert_eq!((s.last, s.next), (72.0, 73.0), "seed {seed}");
            for line in [32.0, 64.0, 128.0] {
                let s = step_edge(&curve(&offsets, line - 1.0, 1.3, seed), 1.15, DISTURBED_QUANTILE).unwrap();
                assert_eq!(s.next, line, "seed {seed}");
            }
        }
    }

    #[test]
    fn a_level_curve_has_no_step() {
        for seed in 0..20 {
            let level = curve(&[1.0, 2.0, 3.0, 4.0], 9.0, 2.0, seed);
            assert_eq!(step_edge(&level, 1.15, DISTURBED_QUANTILE), None);
        }
        assert_eq!(step_edge(&[], 1.15, DISTURBED_QUANTILE), None);
    }
}
