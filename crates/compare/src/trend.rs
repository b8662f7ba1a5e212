//! Finds change points of a figure over the runs of a machine.
//!
//! Successive runs are correlated: a neighbor stays for hours, and a virtual machine keeps its place for several runs. Two halves of a history therefore
//! differ by more than independent runs would. The reference are simulated series without a change and with the correlation of the history. A change point
//! counts if its ranks differ by more than in 99 of 100 of them.

use machmeter_stats::quantile::{median_of, quantile};
use machmeter_stats::random::Random;

/// Least number of runs on either side of a change point.
const LEAST: usize = 5;
/// Bound on the probability of a false change point in each searched part.
const ERROR: f64 = 0.01;
/// Number of simulated series. Some hundreds of them have the correlation of the history, and only these count.
const MADE: usize = 2_000;
/// Difference of correlations up to which a simulated series counts as similar to the history.
const ALIKE: f64 = 0.1;
/// Distances between runs over which a short correlation has decayed to half or less. A level adds few such pairs, so steps do not count as correlation.
const APART: [usize; 3] = [3, 4, 5];
/// Largest correlation between adjacent runs that can be distinguished from a step.
const MOST_CORRELATED: f64 = 0.97;

/// A part of the history in which a figure did not change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Index of its first run.
    pub from: usize,
    /// Median of its runs, in the unit of the values.
    pub median: f64,
}

/// The levels of finite `values` in order of time. Each part is split at the largest rank difference between its halves, until no split is significant
/// (binary segmentation: Scott, Knott, Biometrics 30, 1974).
pub fn levels(values: &[f64]) -> Vec<Level> {
    levels_beside(values, &made(values.len()))
}

fn levels_beside(values: &[f64], made: &[Made]) -> Vec<Level> {
    let correlated = memory(values);
    let alike: Vec<&Made> = made.iter().filter(|m| (m.correlation - correlated).abs() <= ALIKE).collect();
    let mut ends = vec![0, values.len()];
    let mut open = Vec::from([(0, values.len())]);
    while let Some((start, end)) = open.pop() {
        if let Some(found) = split(&values[start..end])
            && is_change(&found, end - start, &alike)
        {
            let at = start + found.at;
            ends.push(at);
            open.extend([(start, at), (at, end)]);
        }
    }
    ends.sort_unstable();
    let level = |w: &[usize]| Some(Level { from: w[0], median: median_of(&values[w[0]..w[1]])? });
    ends.windows(2).filter_map(level).collect()
}

/// A simulated series without a change.
struct Made {
    /// Estimate by [`correlation`]; the parameter of the simulation can differ from it.
    correlation: f64,
    values: Vec<f64>,
}

/// Simulates series of `n` runs. The correlation of adjacent runs is uniform from 0 to [`MOST_CORRELATED`].
fn made(n: usize) -> Vec<Made> {
    let mut random = Random::new(n as u64);
    let mut one = |_| {
        let by = MOST_CORRELATED * random.unit();
        let mut at = random.normal();
        let mut next = || {
            at = by * at + (1.0 - by * by).sqrt() * random.normal();
            at
        };
        let values: Vec<f64> = (0..n).map(|_| next()).collect();
        Made { correlation: memory(&values), values }
    };
    (0..if n < 2 * LEAST { 0 } else { MADE }).map(&mut one).collect()
}

/// Ranks of the values, relative to the middle rank; equal values share theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; n];
    let mut before = 0;
    for alike in order.chunk_by(|a, b| values[*a] == values[*b]) {
        for at in alike {
            ranks[*at] = before as f64 + (alike.len() as f64 - 1.0) / 2.0 - (n as f64 - 1.0) / 2.0;
        }
        before += alike.len();
    }
    ranks
}

/// The split with the largest difference of mean ranks, in standard deviations of independent runs.
fn split(values: &[f64]) -> Option<Split> {
    let n = values.len();
    let ranks = ranks(values);
    let variance = ranks.iter().map(|r| r * r).sum::<f64>() / (n as f64 - 1.0);
    let mut sum = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (i, rank) in ranks.iter().enumerate() {
        sum += rank;
        let (left, right) = (i + 1, n - i - 1);
        if left < LEAST || right < LEAST || variance <= 0.0 {
            continue;
        }
        // The sum of all ranks is zero.
        let distance = sum.abs() / (variance * left as f64 * right as f64 / n as f64).sqrt();
        if best.is_none_or(|(_, most)| distance > most) {
            best = Some((left, distance));
        }
    }
    best.map(|(at, distance)| Split { at, distance, step: step(values, at) })
}

/// Difference of the levels before and after `at`, relative to the median deviation of runs from their level. Ranks alone do not distinguish a large step
/// from one that just separates the runs.
fn step(values: &[f64], at: usize) -> f64 {
    let [before, after] = [&values[..at], &values[at..]].map(|part| median_of(part).unwrap_or_default());
    let off: Vec<f64> = about_levels(values, at).into_iter().map(f64::abs).collect();
    (after - before).abs() / median_of(&off).unwrap_or_default()
}

/// Deviations of the runs before and after `at` from their levels.
fn about_levels(values: &[f64], at: usize) -> Vec<f64> {
    let about = |part: &[f64]| {
        let level = median_of(part).unwrap_or_default();
        part.iter().map(|v| v - level).collect::<Vec<_>>()
    };
    [&values[..at], &values[at..]].into_iter().flat_map(about).collect()
}

/// The best split of a series.
#[derive(Debug, Clone, Copy)]
struct Split {
    at: usize,
    /// Difference of the mean ranks, in standard deviations of independent runs.
    distance: f64,
    step: f64,
}

impl Split {
    fn is_beyond(&self, other: &Self) -> bool {
        self.distance > other.distance || (self.distance == other.distance && self.step >= other.step)
    }
}

/// True if a split this large is rare in the first `n` runs of simulated series with the correlation of the history.
fn is_change(found: &Split, n: usize, alike: &[&Made]) -> bool {
    let is_larger = |m: &&&Made| split(&m.values[..n]).is_some_and(|s| s.is_beyond(found));
    let larger = alike.iter().filter(is_larger).count();
    (larger + 1) as f64 <= ERROR * (alike.len() + 1) as f64
}

/// Correlation of adjacent runs about the levels of the best split, so that a step does not count as correlation.
fn memory(values: &[f64]) -> f64 {
    let Some(Split { at, .. }) = split(values) else { return correlation(values) };
    correlation(&about_levels(values, at))
}

/// Correlation of adjacent runs: the relation of their differences to those of runs some places apart; 0 if both are equal. It uses upper quartiles of the
/// differences, because few pairs span a step.
fn correlation(values: &[f64]) -> f64 {
    let apart = |lag: usize| values.iter().zip(values.iter().skip(lag)).map(|(a, b)| (a - b).abs());
    let square = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        quantile(&all, 0.75).map(|q| q * q)
    };
    let (near, far) =
        (square(apart(1).collect()), square(APART.iter().flat_map(|lag| apart(*lag)).collect()));
    let (Some(near), Some(far)) = (near, far.filter(|f| *f > 0.0)) else { return 0.0 };
    // First-order model: runs k apart differ by 1 - r^k of their variance, twice.
    let expected = |r: f64| {
        let lost = APART.iter().map(|lag| 1.0 - r.powi(*lag as i32)).sum::<f64>() / APART.len() as f64;
        (1.0 - r) / lost
    };
    let (mut low, mut high) = (0.0, MOST_CORRELATED);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if expected(middle) > near / far { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_changes_are_found_where_they_are() {
        let mut r = Random::new(5);
        let mut bad = 0;
        // Runs per level, the levels, and the least number of 50 series without an error.
        let planted =
            [(10, &[100.0, 110.0][..], 45), (20, &[100.0, 104.0], 43), (30, &[100.0, 110.0, 104.0], 35)];
        for (each, steps, least) in planted {
            let (made, mut found) = (made(each * steps.len()), 0);
            for _ in 0..50 {
                let one = |i: usize| steps[i / each] * (1.0 + 0.01 * r.normal());
                let values: Vec<f64> = (0..each * steps.len()).map(one).collect();
                let starts: Vec<usize> =
                    levels_beside(&values, &made).iter().skip(1).map(|l| l.from).collect();
                let is_near = |(i, at): (usize, &usize)| at.abs_diff((i + 1) * each) <= 1;
                let is_all = starts.len() + 1 == steps.len();
                found += usize::from(is_all && starts.iter().enumerate().all(is_near));
            }
            println!("{} levels of {each} runs: {found} of 50", steps.len());
            bad += usize::from(found < least);
        }
        assert_eq!(bad, 0);
        assert_eq!(levels(&[]).len(), 0);
        assert_eq!(levels(&[1.0; 4]), [Level { from: 0, median: 1.0 }]);
        assert_eq!(levels(&[1.0; 40]).len(), 1);
    }

    /// Flat series with a change point, for each kind of correlation.
    #[test]
    fn series_that_do_not_change_have_no_change_points() {
        // At a rate of 1 %, 95 of 100 such tests have three or fewer; at 5 %, 14 of 100.
        const SERIES: usize = 120;
        const MOST: usize = 3;
        let mut r = Random::new(7);
        let mut bad = false;
        for n in [20_usize, 40, 100] {
            let (made, mut wrong) = (made(n), [0; 7]);
            for _ in 0..SERIES {
                let mut correlated = |by: f64| -> Vec<f64> {
                    let mut at = r.normal();
                    let mut next = || {
                        at = by * at + (1.0 - by * by).sqrt() * r.normal();
                        100.0 + at
                    };
                    (0..n).map(|_| next()).collect()
                };
                let mut all = [0.0, 0.3, 0.5, 0.8].map(&mut correlated).to_vec();
                let mut heavy = || r.normal() / (0..3).map(|_| r.normal().powi(2)).sum::<f64>().sqrt();
                all.push((0..n).map(|_| heavy()).collect());
                // Two placements with five runs each, at random and alternating.
                let coins: Vec<usize> = (0..n.div_ceil(5)).map(|_| r.below(2)).collect();
                let turns: Vec<usize> = (0..n.div_ceil(5)).map(|i| i % 2).collect();
                // Four random blocks are often a single step.
                for places in if n > 20 { [coins, turns] } else { [turns.clone(), turns] } {
                    all.push((0..n).map(|i| 27.0 + 80.0 * places[i / 5] as f64 + 0.3 * r.normal()).collect());
                }
                for (wrong, values) in wrong.iter_mut().zip(&all) {
                    *wrong += usize::from(levels_beside(values, &made).len() > 1);
                }
            }
            println!("{n} runs: {wrong:?} of {SERIES}");
            bad |= wrong.into_iter().any(|w| w > MOST);
        }
        assert!(!bad);
    }
}
