//! Levels of a memory hierarchy from a curve: the price of a load over the size of its working set.
//!
//! Model: a store of capacity C that a working set W outgrows misses `1 - C / W` of the loads where a part of a larger set stays
//! (random replacement), `1 / (1 + (C / W)^4)` where the least recently used line goes (colors of 8 ways). Capacities are searched
//! on a grid, prices by least squares, steps by description length (Schwarz 1978). Curves: Saavedra-Barrera & Smith (1995).
//!
//! Constants marked "fixtures" were chosen on one half of `fixtures/ladders` and are judged on the other half.

use crate::error::{StatsError, check, out_of_range};
use crate::quantile::median_of;

/// Exponent of the law of colors: shares of a Poisson number of pages, of which 8 fit, within 0.05.
const COLORS_EXPONENT: f64 = 4.0;
/// Capacities per octave that are tried.
const GRID_PER_OCTAVE: f64 = 4.0;
/// Relative error of the model against real curves (fixtures: 0.09 to 0.11 serve alike).
const MODEL_ERROR: f64 = 0.1;
/// Independent values of that error per octave: a dense curve is hardly more evidence than a sparse one.
const ERRORS_PER_OCTAVE: f64 = 2.0;
/// Free values of a step: capacity, law, price.
const STEP_PARAMETERS: f64 = 3.0;
/// Most steps: four caches, two translation buffers, and one to spare.
const MAX_STEPS: usize = 7;
/// Least ratio of the prices of two levels. Missed translations add up to half of a cache's price (fixtures: to 1.5 times).
const MIN_PRICE_RATIO: f64 = 1.55;
/// Least ratio of capacities: steps nearer than that are one transition.
const MIN_SIZE_RATIO: f64 = 2.0;
/// Steps of a price by less are no part of a transition.
const MIN_STEP_RATIO: f64 = 1.15;
/// Passes over all steps in search of a better capacity for one of them.
const MAX_PASSES: usize = 4;
/// Share of the loads that miss a cache, above which a working set is larger than the cache. By both laws a set of the cache's size
/// misses at most half (0 or 1/2), and one twice as large misses at least half (1/2 or 16/17).
const HALF: f64 = 0.5;
/// Caches from the core on that give up the least recently used line. Later ones are sliced, shared, and filled by victims: a part
/// of a larger set stays in them, too.
const RECENT: usize = 2;

/// A working set and the price of a load in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    pub bytes: f64,
    pub ns: f64,
}

/// A level: what serves a range of working sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Median price of the working sets clearly inside it, ns.
    pub price_ns: f64,
    /// Where it passes into the next level; `None` for the last one.
    pub end: Option<LevelEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelEnd {
    /// Price that is crossed: the geometric mean of both levels, ns.
    pub threshold_ns: f64,
    /// Working set at which the curve crosses it, bytes.
    pub bytes: f64,
    /// Largest measured working set that does not cross it, bytes.
    pub from_bytes: f64,
    /// Smallest measured one that does, bytes.
    pub to_bytes: f64,
    /// What the level holds.
    pub capacity: Capacity,
}

/// What a level holds, bytes.
///
/// The largest measured working set of which at most half of the loads miss fits. In caches after the second a part of a larger set
/// may stay, so that this set may be larger than the cache: there the capacity is the geometric mean of the least and the most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    pub bytes: f64,
    /// The least that the curve allows: the working set whose price is still that of the level, or what stays of one that misses.
    pub low_bytes: f64,
    /// Smallest measured working set of which more than half of the loads miss.
    pub high_bytes: f64,
}

/// Levels of a curve in ascending order of size, the nearest first. One level where nothing ends.
///
/// Working sets are nested, so that none costs more than a larger one: what was seen to cost more was disturbed and is lowered.
/// Errors: fewer than 3 points, sizes or prices that are not positive and finite, sizes that do not ascend.
pub fn levels(points: &[CurvePoint]) -> Result<Vec<Level>, StatsError> {
    let curve = Curve::of(points)?;
    let fit = Fit::of(&curve);
    let ends: Vec<LevelEnd> = fit
        .transitions()
        .iter()
        .filter_map(|(before_ns, after_ns)| curve.end((before_ns * after_ns).sqrt()))
        .collect();
    let mut out = Vec::with_capacity(ends.len() + 1);
    let mut from: Option<LevelEnd> = None;
    for end in ends.into_iter().map(Some).chain([None]) {
        out.push(Level { price_ns: curve.price_ns(from, end), end });
        from = end;
    }
    for number in 1..out.len() {
        let prices_ns = [out[number - 1].price_ns, out[number].price_ns];
        let end = out[number - 1].end.as_mut();
        if let Some((end, capacity)) = end.zip(curve.capacity(prices_ns, number - 1)) {
            end.capacity = capacity;
        }
    }
    Ok(out)
}

/// Capacity of the level `number` (0 is the nearest) on a curve, by its price and that of the next level, ns. `None` if the curve
/// is not usable, misses the level from the start, or does not leave it.
pub fn capacity(points: &[CurvePoint], prices_ns: [f64; 2], number: usize) -> Option<Capacity> {
    Curve::of(points).ok()?.capacity(prices_ns, number)
}

/// The sizes that caches have: powers of two, and these times 1.25, 1.5 and 1.75. The one between two sizes (bytes, both included);
/// `None` if there is none, or several.
pub fn only_size_between(low_bytes: f64, high_bytes: f64) -> Option<f64> {
    let octave = low_bytes.max(1.0).log2().floor().exp2();
    let forms = [1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0];
    let mut inside = forms.iter().map(|f| f * octave).filter(|b| (low_bytes..=high_bytes).contains(b));
    inside.next().filter(|_| inside.next().is_none())
}

/// A curve that does not descend.
struct Curve {
    bytes: Vec<f64>,
    octaves: Vec<f64>,
    ns: Vec<f64>,
    /// Independent errors of the model that each point stands for.
    weights: Vec<f64>,
}

impl Curve {
    fn of(points: &[CurvePoint]) -> Result<Self, StatsError> {
        let sizes: Vec<f64> = points.iter().map(|p| p.bytes).collect();
        let mut ns: Vec<f64> = points.iter().map(|p| p.ns).collect();
        check("sizes", &sizes, 3)?;
        check("prices", &ns, 3)?;
        if let Some(value) = sizes.iter().chain(&ns).copied().find(|v| *v <= 0.0) {
            return Err(out_of_range("size or price", value, "positive"));
        }
        if let Some(w) = sizes.windows(2).find(|w| w[0] >= w[1]) {
            return Err(out_of_range("size", w[1], "ascending"));
        }
        for i in (1..ns.len()).rev() {
            ns[i - 1] = ns[i - 1].min(ns[i]);
        }
        let octaves: Vec<f64> = sizes.iter().map(|s| s.log2()).collect();
        let gaps: Vec<f64> = octaves.windows(2).map(|w| w[1] - w[0]).collect();
        let gap = |i: usize| gaps[i.min(gaps.len() - 1)];
        let errors = |i: usize| ERRORS_PER_OCTAVE * f64::midpoint(gap(i.saturating_sub(1)), gap(i));
        let weights = (0..octaves.len()).map(|i| errors(i).min(1.0)).collect();
        Ok(Self { bytes: sizes, octaves, ns, weights })
    }

    fn end(&self, threshold_ns: f64) -> Option<LevelEnd> {
        let above = self.ns.iter().position(|ns| *ns > threshold_ns)?;
        let below = above.checked_sub(1)?;
        let share = (threshold_ns / self.ns[below]).ln() / (self.ns[above] / self.ns[below]).ln();
        let octave = self.octaves[below] + share * (self.octaves[above] - self.octaves[below]);
        let (from_bytes, to_bytes) = (self.bytes[below], self.bytes[above]);
        let capacity = Capacity { bytes: from_bytes, low_bytes: from_bytes, high_bytes: to_bytes };
        Some(LevelEnd { threshold_ns, bytes: octave.exp2(), from_bytes, to_bytes, capacity })
    }

    fn capacity(&self, [price_ns, next_ns]: [f64; 2], number: usize) -> Option<Capacity> {
        let missed = |ns: f64| (ns - price_ns) / (next_ns - price_ns);
        let above = self.ns.iter().position(|ns| missed(*ns) > HALF)?;
        let fits = above.checked_sub(1)?;
        let stays_bytes = self.bytes[fits] * (1.0 - missed(self.ns[fits]).max(0.0));
        let alike = self.ns[..above].iter().rposition(|ns| *ns <= MIN_STEP_RATIO * price_ns);
        let low_bytes = alike.map_or(stays_bytes, |i| stays_bytes.max(self.bytes[i]));
        let most_bytes = self.bytes[fits];
        let bytes = if number < RECENT { most_bytes } else { (low_bytes * most_bytes).sqrt() };
        Some(Capacity { bytes, low_bytes, high_bytes: self.bytes[above] })
    }

    /// Median price between two ends, an octave away from both where there are such working sets.
    fn price_ns(&self, from: Option<LevelEnd>, to: Option<LevelEnd>) -> f64 {
        let (beyond, first) = from.map_or((0.0, 0.0), |e| (2.0 * e.bytes, e.to_bytes));
        let last = to.map_or(f64::INFINITY, |e| e.from_bytes);
        let between = |low: f64, high: f64| {
            // Rounding of logarithms must not leave a point out.
            let inside = |octave: &f64| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(&octave.exp2());
            let of = self.octaves.iter().zip(&self.ns).filter(|(octave, _)| inside(octave));
            median_of(&of.map(|(_, ns)| *ns).collect::<Vec<_>>())
        };
        between(beyond, last / 2.0)
            .or_else(|| between(first, last / 2.0))
            .or_else(|| between(beyond, last))
            .or_else(|| between(first, last))
            .unwrap_or(0.0)
    }
}

/// A store that working sets outgrow: the share of the loads it no longer serves, at each point.
struct Step {
    octave: f64,
    missed: Vec<f64>,
}

/// Steps of the model with the least description length.
struct Fit {
    /// Price of the first level, ns.
    first_ns: f64,
    /// Octave and rise in ns of each step, ascending.
    steps: Vec<(f64, f64)>,
}

impl Fit {
    fn of(curve: &Curve) -> Self {
        let steps = candidates(curve);
        let system = System::of(curve, &steps);
        let n = curve.weights.iter().sum::<f64>().max(2.0);
        let mut chosen: Vec<usize> = Vec::new();
        let (mut least, mut best) = (system.solve(&chosen).0 / MODEL_ERROR.powi(2), chosen.clone());
        for k in 1..=MAX_STEPS {
            let free =
                |chosen: &[usize], i: usize| chosen.iter().all(|c| steps[*c].octave != steps[i].octave);
            let with = |chosen: &[usize]| {
                let tried = (0..steps.len()).filter(|i| free(chosen, *i)).map(|i| {
                    let all: Vec<usize> = chosen.iter().copied().chain([i]).collect();
                    (system.solve(&all).0, all)
                });
                tried.min_by(|a, b| a.0.total_cmp(&b.0))
            };
            let Some((mut residual, mut found)) = with(&chosen) else { break };
            for _ in 0..MAX_PASSES {
                let before = residual;
                for i in 0..k {
                    let mut rest = found.clone();
                    rest.remove(i);
                    if let Some(better) = with(&rest).filter(|b| b.0 < residual) {
                        (residual, found) = better;
                    }
                }
                if residual >= before {
                    break;
                }
            }
            chosen = found;
            let length = residual / MODEL_ERROR.powi(2) + STEP_PARAMETERS * k as f64 * n.ln();
            if length < least {
                (least, best) = (length, chosen.clone());
            } else if k > best.len() + 1 {
                break;
            }
        }
        let (_, prices) = system.solve(&best);
        let rises = best.iter().zip(&prices[1..]).map(|(i, ns)| (steps[*i].octave, *ns));
        let mut steps: Vec<(f64, f64)> = rises.filter(|r| r.1 > 0.0).collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { first_ns: prices[0], steps }
    }

    /// Prices before and after each transition from one level to the next.
    fn transitions(&self) -> Vec<(f64, f64)> {
        let mut price_ns = self.first_ns;
        // Octave of the last step, prices before the first and after the last one.
        let mut joined: Vec<(f64, f64, f64)> = Vec::new();
        for (octave, rise_ns) in &self.steps {
            let after_ns = price_ns + rise_ns;
            let near = |last: &&mut (f64, f64, f64)| *octave < last.0 + MIN_SIZE_RATIO.log2() - 1e-9;
            match joined.last_mut().filter(near).filter(|_| after_ns >= MIN_STEP_RATIO * price_ns) {
                Some(last) => (last.0, last.2) = (*octave, after_ns),
                None => joined.push((*octave, price_ns, after_ns)),
            }
            price_ns = after_ns;
        }
        joined.iter().filter(|t| t.2 >= MIN_PRICE_RATIO * t.1).map(|t| (t.1, t.2)).collect()
    }
}

/// Share of the loads missed so many octaves beyond the capacity, where a part of the working set stays.
fn kept_part(octaves: f64) -> f64 {
    (1.0 - (-octaves).exp2()).max(0.0)
}

/// The same where whole colors of pages are missed.
fn colors(octaves: f64) -> f64 {
    1.0 / (1.0 + (-COLORS_EXPONENT * octaves).exp2())
}

fn candidates(curve: &Curve) -> Vec<Step> {
    let (Some(first), Some(last)) = (curve.octaves.first(), curve.octaves.last()) else { return Vec::new() };
    let grid =
        (0..((last - first) * GRID_PER_OCTAVE).ceil() as usize).map(|i| first + i as f64 / GRID_PER_OCTAVE);
    let missed = |octave: f64, law: fn(f64) -> f64| curve.octaves.iter().map(|o| law(o - octave)).collect();
    let all =
        grid.flat_map(|octave| [kept_part, colors].map(|law| Step { octave, missed: missed(octave, law) }));
    // The last level must show an octave of itself.
    all.filter(|s| s.octave <= last - 1.0).collect()
}

/// Normal equations of all candidates for relative errors; the first column is the constant.
struct System {
    products: Vec<Vec<f64>>,
    targets: Vec<f64>,
    total: f64,
}

impl System {
    fn of(curve: &Curve, steps: &[Step]) -> Self {
        let ones = vec![1.0; curve.ns.len()];
        let columns: Vec<&[f64]> =
            std::iter::once(&ones[..]).chain(steps.iter().map(|s| &s.missed[..])).collect();
        let relative =
            |column: &[f64]| -> Vec<f64> { column.iter().zip(&curve.ns).map(|(c, ns)| c / ns).collect() };
        let columns: Vec<Vec<f64>> = columns.into_iter().map(relative).collect();
        let dot = |a: &[f64], b: &[f64]| -> f64 {
            curve.weights.iter().zip(a.iter().zip(b)).map(|(w, (a, b))| w * a * b).sum()
        };
        Self {
            products: columns.iter().map(|a| columns.iter().map(|b| dot(a, b)).collect()).collect(),
            targets: columns.iter().map(|a| dot(a, &ones)).collect(),
            total: curve.weights.iter().sum(),
        }
    }

    /// Sum of squared relative errors with these candidates, and the price of the first level and the rises, none negative.
    fn solve(&self, chosen: &[usize]) -> (f64, Vec<f64>) {
        let columns: Vec<usize> = std::iter::once(0).chain(chosen.iter().map(|i| i + 1)).collect();
        let mut used: Vec<usize> = (0..columns.len()).collect();
        loop {
            let solution = self.unconstrained(&used.iter().map(|i| columns[*i]).collect::<Vec<_>>());
            let least = (0..used.len()).min_by(|a, b| solution[*a].total_cmp(&solution[*b]));
            if let Some(least) = least.filter(|i| solution[*i] < 0.0) {
                used.remove(least);
                continue;
            }
            let explained: f64 = used.iter().zip(&solution).map(|(i, x)| x * self.targets[columns[*i]]).sum();
            let mut prices = vec![0.0; columns.len()];
            used.iter().zip(&solution).for_each(|(i, x)| prices[*i] = *x);
            return ((self.total - explained).max(0.0), prices);
        }
    }

    /// Gaussian elimination of the equations of these columns; 0 for one that depends on others.
    fn unconstrained(&self, columns: &[usize]) -> Vec<f64> {
        let n = columns.len();
        let row = |i: &usize| -> Vec<f64> {
            columns.iter().map(|j| self.products[*i][*j]).chain([self.targets[*i]]).collect()
        };
        let mut a: Vec<Vec<f64>> = columns.iter().map(row).collect();
        for i in 0..n {
            // The matrix is positive definite: no pivoting.
            if a[i][i] < 1e-12 * self.products[columns[i]][columns[i]] {
                a[i].fill(0.0);
                continue;
            }
            let (above, below) = a.split_at_mut(i + 1);
            let pivot = &above[i];
            for row in below {
                let factor = row[i] / pivot[i];
                row.iter_mut().zip(pivot).skip(i).for_each(|(x, p)| *x -= factor * p);
            }
        }
        let mut x = vec![0.0; n];
        for i in (0..n).rev() {
            let rest: f64 = (i + 1..n).map(|j| a[i][j] * x[j]).sum();
            x[i] = if a[i][i] > 0.0 { (a[i][n] - rest) / a[i][i] } else { 0.0 };
        }
        x
    }
}

#[cfg(test)]
mod tests;
