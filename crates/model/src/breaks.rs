//! Ranges of sizes that behave alike: what sizes scatter by, and which of the breaks found count.

use machmeter_stats::quantile::{quantile, sorted};

/// Least jump that is another protocol, relative.
pub(crate) const JUMP: f64 = 0.05;
/// Standard deviations that tell two figures apart.
pub(crate) const APART: f64 = 2.0;
/// Breaks looked for at most; the libraries known have up to four protocols, and each may have a kink.
pub(crate) const MAX_BREAKS: usize = 8;
/// Median of the square of a standard normal variable.
const NORMAL_MEDIAN: f64 = 0.454_936;

/// A value at a place, and the standard deviation of its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct At {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) sigma: f64,
}

/// How much values differ from size to size beyond their errors, relative: a standard deviation. Points ascend in `x`.
///
/// Allocators and caches make one size dearer than its neighbors by causes that no line has; breaks must gain more than that.
/// Median over sizes of the distance from the line through both neighbors, so that few sizes beside breaks weigh nothing.
pub(crate) fn scatter(points: &[At]) -> f64 {
    let squared = points.windows(3).map(|w| {
        let before = (w[2].x - w[1].x) / (w[2].x - w[0].x);
        let weights = [-before, 1.0, before - 1.0];
        let sum: f64 = weights.iter().zip(w).map(|(k, p)| k * p.y).sum();
        let squares = |of: &dyn Fn(&At) -> f64| -> f64 {
            weights.iter().zip(w).map(|(k, p)| (k * of(p)).powi(2)).sum()
        };
        (sum.powi(2) / NORMAL_MEDIAN - squares(&|p| p.sigma)) / squares(&|p| p.y)
    });
    let squared: Vec<f64> = squared.collect();
    sorted(&squared).ok().and_then(|s| quantile(&s, 0.5)).unwrap_or(0.0).max(0.0).sqrt()
}

pub(crate) enum Verdict<K> {
    Counts(K),
    /// It does not, and the fit is worse by so much without it.
    Costs(f64),
}

/// The breaks at `starts` of `n` points that count. What does not is taken out, the one that costs the fit least first.
///
/// `judge` gets the break between the stretches `from..at` and `at..to`.
pub(crate) fn prune<K, E>(
    mut starts: Vec<usize>,
    n: usize,
    mut judge: impl FnMut(usize, usize, usize) -> Result<Verdict<K>, E>,
) -> Result<Vec<(usize, K)>, E> {
    loop {
        let mut weakest: Option<(f64, usize)> = None;
        let mut counted = Vec::new();
        for (i, at) in starts.iter().copied().enumerate() {
            let from = if i == 0 { 0 } else { starts[i - 1] };
            let to = starts.get(i + 1).copied().unwrap_or(n);
            match judge(from, at, to)? {
                Verdict::Counts(kind) => counted.push((at, kind)),
                Verdict::Costs(cost) if weakest.is_none_or(|(least, _)| cost < least) => {
                    weakest = Some((cost, i));
                }
                Verdict::Costs(_) => {}
            }
        }
        match weakest {
            Some((_, i)) => starts.remove(i),
            None => return Ok(counted),
        };
    }
}

/// Stretches of `n` points between `starts`.
pub(crate) fn ranges(n: usize, starts: impl IntoIterator<Item = usize>) -> Vec<std::ops::Range<usize>> {
    let starts: Vec<usize> = std::iter::once(0).chain(starts).collect();
    let ends = starts[1..].iter().copied().chain([n]);
    starts.iter().copied().zip(ends).map(|(a, b)| a..b).collect()
}
