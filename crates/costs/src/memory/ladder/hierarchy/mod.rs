//! From a latency curve over working sets to the levels of the hierarchy and the sizes at which one passes into the next.
//! Knows nothing of what the system claims.
//!
//! Method: Saavedra-Barrera & Smith (1995) read plateaus off such curves; here they are stretches of at least 0.75 octave on
//! which the log-log slope of the isotonic fit stays below 0.22, those nearer than a factor of 1.35 being one. The capacity
//! lies where the curve crosses the geometric mean of two levels.

use machmeter_stats::Interval;
use machmeter_stats::plateau::{PlateauOptions, crossing, plateaus};
use machmeter_stats::quantile::{quantile, sorted};
use machmeter_stats::random::Random;

/// Shortest plateau, octaves.
const LEAST_OCTAVES: f64 = 0.75;
/// Steepest slope of ln cost over ln size on a plateau.
const MOST_SLOPE: f64 = 0.22;
/// Least ratio of the costs of two levels.
const LEAST_RATIO: f64 = 1.35;
/// Ratio of costs beyond which a cache may hide between two levels.
const STEEP_RATIO: f64 = 8.0;
/// Ratio of costs at which a cache is full.
const KNEE_RATIO: f64 = 1.5;
/// Ratio of sizes from there to the next level beyond which there is another cache between.
const SMEARED_RATIO: f64 = 1.7;
/// Caches before this one are a core's own.
const FIRST_SHARED: usize = 2;
/// Ratio of the sizes at which a cache of the core's own ends in two rounds, at most.
const MOVES_RATIO: f64 = 1.3;
/// The last cache ends at more than so many times the size of the one before it, in every round.
const NEXT_RATIO: f64 = 2.0;
/// Rounds that must have seen where a cache ends before and behind which there are others. Those beside many busy programs show nothing.
const LEAST_ROUNDS: usize = 3;
/// Resamples of the bootstrap.
const RESAMPLES: usize = 200;
/// Fractions of an octave that capacities of caches have (sets are a power of two, ways are not always), each with what
/// speaks against it: whole powers of two are by far the most frequent.
const FORMS: [(f64, f64); 4] = [(1.0, 0.0), (1.25, 0.06), (1.5, 0.04), (1.75, 0.1)];
/// Between these no processor is known whose caches are not whole powers of two, bytes: smaller ones are first caches of 12 ways
/// (48 and 192 KiB), larger ones are second caches of 10 or 12 (1.25 and 3 MiB) and shared ones.
const PLAIN_BYTES: std::ops::Range<f64> = 262_144.0..1_048_576.0;

/// A working set with what a load cost in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    /// Working set, bytes (or any other size that grows along the curve).
    pub(super) size: f64,
    /// Round and cost, ns, of each undisturbed pair.
    pub(super) costs_ns: Vec<(usize, f64)>,
}

/// A level: the working sets that mostly live in one cache, or in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Level {
    /// Smallest size on its plateau.
    pub(super) first: f64,
    /// Largest size on its plateau.
    pub(super) last: f64,
    /// Cost on the curve, ns.
    pub(super) cost_ns: f64,
}

/// Where one level passes into the next.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Boundary {
    /// Size at which the curve crosses the geometric mean of both.
    pub(super) size: f64,
    /// From the bootstrap over pairs, no narrower than the two measured sizes on either side.
    pub(super) interval: Interval,
    /// The same by each round alone, in order.
    pub(super) by_round: Vec<f64>,
    /// Cost that was crossed, ns.
    pub(super) threshold_ns: f64,
}

impl Boundary {
    /// Whether it was not at the same size in all rounds.
    fn moves(&self) -> bool {
        let most = self.by_round.iter().copied().fold(0.0, f64::max);
        self.by_round.iter().any(|size| MOVES_RATIO * size < most)
    }
}

/// Levels, and one boundary less.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Hierarchy {
    /// Nearest first.
    pub(super) levels: Vec<Level>,
    /// `boundaries[i]` lies between `levels[i]` and `levels[i + 1]`.
    pub(super) boundaries: Vec<Boundary>,
}

/// Finds levels and boundaries of a curve whose points ascend in size; points without costs are passed over. Empty when
/// there are too few.
pub(super) fn detect(points: &[Point], seed: u64) -> Hierarchy {
    let curve = Curve::of(points, |p| lowest(p.costs_ns.iter().map(|c| c.1)));
    let options = PlateauOptions {
        least_width: LEAST_OCTAVES,
        most_slope: MOST_SLOPE * std::f64::consts::LN_2,
        least_step: LEAST_RATIO.ln(),
    };
    let Ok(found) = plateaus(&curve.octaves, &curve.ln_ns, &options) else { return Hierarchy::default() };
    let mut levels: Vec<Level> = found
        .iter()
        .map(|p| Level {
            first: curve.octaves[p.first].exp2(),
            last: curve.octaves[p.last].exp2(),
            cost_ns: p.level.exp(),
        })
        .collect();
    for upper in (2..levels.len()).rev() {
        if let Some(level) = hidden(&curve, &levels[upper - 1], &levels[upper]) {
            levels.insert(upper, level);
        }
    }
    let between = levels.windows(2).map(|w| boundary(points, &curve, &w[0], &w[1], seed));
    let boundaries: Option<Vec<Boundary>> = between.collect();
    boundaries.map_or_else(Hierarchy::default, |boundaries| Hierarchy { levels, boundaries })
}

/// [`detect`] of a curve of caches, of which the last may belong to others too. What is left of it changes while the curve is
/// measured, so that it can show a plateau for each of two times. A cache before the last one ends at the same size in every
/// round, well before the last one does; where that is not so, both are one.
pub(super) fn caches(points: &[Point], seed: u64) -> Hierarchy {
    let mut found = detect(points, seed);
    let curve = Curve::of(points, |p| lowest(p.costs_ns.iter().map(|c| c.1)));
    while let [.., before, last] = &found.boundaries[..]
        && found.boundaries.len() > FIRST_SHARED + 1
        && (before.moves()
            || before.by_round.len().min(last.by_round.len()) < LEAST_ROUNDS
            || last.by_round.iter().any(|size| *size <= NEXT_RATIO * before.size))
    {
        let upper = found.levels.len() - 1;
        let Some(one) = boundary(points, &curve, &found.levels[upper - 2], &found.levels[upper], seed) else {
            break;
        };
        found.levels[upper - 2].last = found.levels[upper - 1].last;
        found.levels.remove(upper - 1);
        found.boundaries.truncate(upper - 2);
        found.boundaries.push(one);
    }
    found
}

/// The capacity that `bytes` most likely is a measurement of.
pub(super) fn looks_like(bytes: f64) -> f64 {
    let octave = bytes.max(1.0).log2().floor();
    let forms =
        [octave, octave + 1.0].into_iter().flat_map(|o| FORMS.map(|(f, against)| (f * o.exp2(), against)));
    // Whoever shares a cache makes it look smaller, nobody makes it look larger.
    let apart = |form: f64| if form > bytes { 0.7 * (form / bytes).ln() } else { (bytes / form).ln() };
    let far = |form: &(f64, f64)| apart(form.0) + form.1;
    let known = |form: &(f64, f64)| form.1 == 0.0 || !PLAIN_BYTES.contains(&form.0);
    forms.filter(known).min_by(|a, b| far(a).total_cmp(&far(b))).map_or(bytes, |f| f.0)
}

/// Cost above which a size counts as beyond the lower of two levels.
fn threshold_ns(lower: &Level, upper: &Level) -> f64 {
    (lower.cost_ns * upper.cost_ns).sqrt()
}

/// A cache between two plateaus that shows none of its own, because others leave too little of it: the cost rises by more
/// than from any cache to the next, and over more sizes than one full cache explains.
fn hidden(curve: &Curve, lower: &Level, upper: &Level) -> Option<Level> {
    if upper.cost_ns < STEEP_RATIO * lower.cost_ns {
        return None;
    }
    // With this cost it begins where the lower cache is full: where a load costs half as much again.
    let cost_ns = lower.cost_ns * KNEE_RATIO * KNEE_RATIO;
    let first = curve.crossing(lower.cost_ns * KNEE_RATIO)?;
    let last = curve.crossing((cost_ns * upper.cost_ns).sqrt())?;
    (last > SMEARED_RATIO * first).then_some(Level { first, last, cost_ns })
}

/// Lowers each value to the least of those after it.
pub(super) fn lower_from_the_right(values: &mut [f64]) {
    for i in (1..values.len()).rev() {
        values[i - 1] = values[i - 1].min(values[i]);
    }
}

/// The least cost: what a working set costs while nobody else uses the cache. Neighbours on the same core only ever make a
/// cache look smaller, and no batch is quicker than its loads.
pub(super) fn lowest(costs_ns: impl Iterator<Item = f64>) -> Option<f64> {
    costs_ns.min_by(f64::total_cmp)
}

fn boundary(points: &[Point], curve: &Curve, lower: &Level, upper: &Level, seed: u64) -> Option<Boundary> {
    let threshold_ns = threshold_ns(lower, upper);
    let size = curve.crossing(threshold_ns)?;
    let mut random = Random::new(seed ^ size.to_bits());
    let resampled: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let draw =
                |p: &Point| lowest(p.costs_ns.iter().map(|_| p.costs_ns[random.below(p.costs_ns.len())].1));
            Curve::of(points, draw).crossing(threshold_ns)
        })
        .collect();
    let resampled = sorted(&resampled).ok()?;
    let (below, above) = curve.neighbours(size);
    let low = quantile(&resampled, 0.025)?.min(below).min(size);
    let high = quantile(&resampled, 0.975)?.max(above).max(size);
    let rounds = points.iter().flat_map(|p| &p.costs_ns).map(|c| c.0 + 1).max().unwrap_or(0);
    let by_round = (0..rounds).filter_map(|round| {
        let of_round = |p: &Point| lowest(p.costs_ns.iter().filter(|c| c.0 == round).map(|c| c.1));
        Curve::of(points, of_round).crossing(threshold_ns)
    });
    Some(Boundary {
        size,
        interval: Interval::new(0.95, low, high)?,
        by_round: by_round.collect(),
        threshold_ns,
    })
}

/// A curve in logarithms.
struct Curve {
    octaves: Vec<f64>,
    ln_ns: Vec<f64>,
}

impl Curve {
    /// Of the points for which there is a cost. Working sets are nested, so that one costs no more than any larger one: what
    /// was seen to cost more was disturbed.
    fn of(points: &[Point], mut cost_ns: impl FnMut(&Point) -> Option<f64>) -> Self {
        let mut curve = Self { octaves: Vec::with_capacity(points.len()), ln_ns: Vec::new() };
        for p in points {
            if let Some(ns) = cost_ns(p).filter(|ns| *ns > 0.0) {
                curve.octaves.push(p.size.log2());
                curve.ln_ns.push(ns.ln());
            }
        }
        lower_from_the_right(&mut curve.ln_ns);
        curve
    }

    /// Size at which the fitted curve crosses a cost.
    fn crossing(&self, ns: f64) -> Option<f64> {
        crossing(&self.octaves, &self.ln_ns, ns.ln()).map(f64::exp2)
    }

    /// Measured sizes on either side of `size`.
    fn neighbours(&self, size: f64) -> (f64, f64) {
        let at = self.octaves.partition_point(|o| o.exp2() <= size * (1.0 + 1e-9));
        let get = |i: Option<usize>| i.and_then(|i| self.octaves.get(i)).map_or(size, |o| o.exp2());
        (get(at.checked_sub(1)), get(Some(at)))
    }
}

#[cfg(test)]
pub(super) mod sim;
#[cfg(test)]
mod tests;
