//! Single steps of short curves: the line, the ways, the reach of a translation buffer.

use machmeter_stats::quantile::sorted;

use super::hierarchy::{Point, lower_from_the_right};

/// Quantile of the pairs taken for the cost of a size. Neighbours on the same core only make it dearer; but beyond the step some pairs
/// cost as little as before it, where the order of the accesses happens to suit the replacement (seen with one page too many for
/// a buffer of 64: one or two pairs of 24), so the least of all would be too low.
pub(super) const LOW: f64 = 0.18;
/// The same of pairs during which nobody else used the core: they have nothing to avoid on either side.
pub(super) const MIDDLE: f64 = 0.5;

/// A step of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    /// Last size before it.
    pub(super) last: f64,
    /// First size after it.
    pub(super) next: f64,
    /// Cost before, ns.
    pub(super) before_ns: f64,
    /// Cost after, ns.
    pub(super) after_ns: f64,
    /// Pairs behind the curve.
    pub(super) n: usize,
}

/// The step of a curve that begins low and ends high: where its ascending lower bound crosses the geometric mean of both ends.
/// `None` unless the end costs at least `least_ratio` times the beginning. A size costs the `of` quantile of its pairs; of two pairs
/// that it lies between, the cheaper: halfway from one side of a step to the other there is nothing.
pub(super) fn step(points: &[Point], least_ratio: f64, of: f64) -> Option<Step> {
    let cost = |p: &Point| {
        let costs_ns: Vec<f64> = p.costs_ns.iter().map(|c| c.1).collect();
        let s = sorted(&costs_ns).ok()?;
        let ns = s.get((of * s.len().checked_sub(1)? as f64) as usize).filter(|ns| **ns > 0.0)?;
        Some((p.size, ns.ln()))
    };
    let (sizes, mut fit): (Vec<f64>, Vec<f64>) = points.iter().filter_map(cost).unzip();
    lower_from_the_right(&mut fit);
    let (first, last) = (*fit.first()?, *fit.last()?);
    if last - first < least_ratio.ln() {
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
    use machmeter_stats::random::Random;

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
            let s = step(&curve(&counts, 72.0, 2.75, seed), 1.4, LOW).unwrap();
            assert_eq!((s.last, s.next), (72.0, 73.0), "seed {seed}");
            for line in [32.0, 64.0, 128.0] {
                let s = step(&curve(&offsets, line - 1.0, 1.3, seed), 1.15, LOW).unwrap();
                assert_eq!(s.next, line, "seed {seed}");
            }
        }
    }

    #[test]
    fn a_level_curve_has_no_step() {
        for seed in 0..20 {
            assert_eq!(step(&curve(&[1.0, 2.0, 3.0, 4.0], 9.0, 2.0, seed), 1.15, LOW), None);
        }
        assert_eq!(step(&[], 1.15, LOW), None);
    }
}
