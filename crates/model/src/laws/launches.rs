//! What launches of the same program differ by, and one cell from all launches of a point.

use std::collections::BTreeMap;

use machmeter_stats::between::variance_between;
use machmeter_stats::distribution::t_quantile;

use super::{Cell, LEVEL, Point};

/// Launches from which on their spread is known.
pub const LEAST_LAUNCHES: usize = 3;

pub(super) struct Pooled {
    pub(super) cells: Vec<Cell>,
    pub(super) launches: usize,
    pub(super) spread: Option<Spread>,
}

/// How launches differ, relative.
pub(super) struct Spread {
    /// Standard deviation between launches at one point.
    pub(super) between: f64,
    /// Half an interval for what all points of a launch share: no number of points makes it smaller.
    pub(super) shared_reach: f64,
}

/// A value of a launch: logarithm, and variance of that.
struct Seen {
    launch: u32,
    ln: f64,
    variance: f64,
}

/// One cell for each (p, d). Figures are positive and finite.
///
/// Differences are ratios. A launch is off by an effect on all its points, as by the CPUs that it was given, and by others point by
/// point. The latter are pooled over all points into the errors of the cells. The former moves no point against another:
/// it widens the intervals, and not chi-square.
pub(super) fn pool(points: &[Point]) -> Pooled {
    let mut seen: BTreeMap<(u64, u32), Vec<Seen>> = BTreeMap::new();
    let mut effects: BTreeMap<u32, Vec<[f64; 2]>> = BTreeMap::new();
    for p in points {
        let variance = (p.standard_error / p.value).powi(2);
        let one = Seen { launch: p.launch, ln: p.value.ln(), variance };
        seen.entry((p.d, p.p)).or_default().push(one);
        effects.entry(p.launch).or_default();
    }
    let launches = effects.len();
    let known = launches >= LEAST_LAUNCHES;
    let (mut own, mut spread) = (0.0, None);
    let mut offsets: BTreeMap<u32, f64> = BTreeMap::new();
    if known {
        for cell in seen.values() {
            let mean = cell.iter().map(|s| s.ln).sum::<f64>() / cell.len() as f64;
            for s in cell {
                effects.entry(s.launch).or_default().push([s.ln - mean, s.variance]);
            }
        }
        let sum = |of: &[[f64; 2]], k: usize| of.iter().map(|e| e[k]).sum::<f64>();
        offsets = effects.iter().map(|(l, e)| (*l, sum(e, 0) / e.len() as f64)).collect();
        let off = |s: &Seen| [s.ln - offsets[&s.launch], s.variance];
        let groups: Vec<Vec<[f64; 2]>> = seen.values().map(|c| c.iter().map(off).collect()).collect();
        let further = seen.values().map(|c| c.len() - 1).sum::<usize>() as f64;
        let freedom = (launches - 1) as f64;
        own = variance_between(&groups, further - freedom).unwrap_or(0.0);
        let effect = |(l, e): (&u32, &Vec<[f64; 2]>)| {
            let n = e.len() as f64;
            [offsets[l], (sum(e, 1) / n + own) / n]
        };
        let shared = variance_between(&[effects.iter().map(effect).collect()], freedom).unwrap_or(0.0);
        let reach = t_quantile(f64::midpoint(1.0, LEVEL), freedom).unwrap_or(f64::INFINITY);
        spread = Some(Spread {
            between: (own + shared).sqrt(),
            shared_reach: if shared > 0.0 { reach * (shared / launches as f64).sqrt() } else { 0.0 },
        });
    }
    let cell = |((d, p), seen): (&(u64, u32), &Vec<Seen>)| {
        let weight = |s: &Seen| 1.0 / (s.variance + own);
        let weights: f64 = seen.iter().map(weight).sum();
        let ln = |s: &Seen| weight(s) * (s.ln - offsets.get(&s.launch).unwrap_or(&0.0));
        let value = (seen.iter().map(ln).sum::<f64>() / weights).exp();
        Cell { p: *p, d: *d, value, sigma: value / weights.sqrt() }
    };
    Pooled { cells: seen.iter().map(cell).collect(), launches, spread }
}
