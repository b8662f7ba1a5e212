//! Folding events at a period: the tooth of a comb, its events, and the weights that take it out of the log.

use crate::distribution::beta_regularized;
use crate::regression::{Weighting, line};

/// The densest stretch of phase.
pub(super) struct Tooth {
    /// Middle of the stretch in cycles, in `[0, 1)`.
    pub(super) center: f64,
    /// Width in cycles.
    pub(super) width: f64,
    /// Weighted events in it beyond the background.
    pub(super) excess: f64,
    /// Weighted events per cycle of phase outside it.
    pub(super) background: f64,
}

impl Tooth {
    /// Chance that events without rhythm gather like this at any of `cycles` independent frequencies, phases and widths
    /// (Bonferroni over the binomial tail); holds for a handful of events, too.
    pub(super) fn chance(&self, cycles: f64) -> f64 {
        let inside = self.excess + self.background * self.width;
        let n = inside + self.background * (1.0 - self.width);
        let tail =
            beta_regularized((inside - 1.0).max(0.5), (n - inside + 1.0).max(0.5), self.width).unwrap_or(1.0);
        let widths = (WIDEST / NARROWEST).ln() / GROWTH.ln();
        (tail * n * widths * 2.0 * cycles / self.width).clamp(f64::MIN_POSITIVE, 1.0)
    }
}

/// Widths tried, as shares of the period.
const NARROWEST: f64 = 1e-4;
const WIDEST: f64 = 0.3;
const GROWTH: f64 = 1.25;

pub(super) fn phase(t_s: f64, freq_hz: f64) -> f64 {
    let cycles = t_s * freq_hz;
    cycles - cycles.floor()
}

/// Signed distance from `center` in cycles, in `[-0.5, 0.5)`.
pub(super) fn offset(phase: f64, center: f64) -> f64 {
    (phase - center + 0.5).rem_euclid(1.0) - 0.5
}

/// The stretch of phase with the largest likelihood ratio against a uniform phase (Kulldorff's scan).
pub(super) fn find_tooth(times_s: &[f64], weights: &[f64], freq_hz: f64) -> Tooth {
    let mut folded: Vec<(f64, f64)> =
        times_s.iter().zip(weights).map(|(t, w)| (phase(*t, freq_hz), *w)).collect();
    folded.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let n = folded.len();
    let total: f64 = weights.iter().sum();
    let mut best =
        (f64::NEG_INFINITY, Tooth { center: 0.0, width: NARROWEST, excess: 0.0, background: total });
    let mut width = NARROWEST;
    while width <= WIDEST {
        let (mut end, mut inside) = (0, 0.0);
        for start in 0..n {
            let reach = folded[start].0 + width;
            while end < start + n && folded[end % n].0 + f64::from(u8::from(end >= n)) <= reach {
                inside += folded[end % n].1;
                end += 1;
            }
            let expected = total * width;
            if inside > expected {
                let ratio = inside * (inside / expected).ln() - (inside - expected);
                if ratio > best.0 {
                    let background = (total - inside).max(0.0) / (1.0 - width);
                    let center = (folded[start].0 + width / 2.0).rem_euclid(1.0);
                    best = (ratio, Tooth { center, width, excess: inside - background * width, background });
                }
            }
            inside -= folded[start].1;
        }
        width *= GROWTH;
    }
    best.1
}

/// Least squares on the cycle numbers of the events in the tooth: a better frequency, the phase at time
/// zero, and the standard deviation of the phases.
pub(super) fn polish(times_s: &[f64], tooth: &Tooth, freq_hz: f64) -> Option<(f64, f64, f64)> {
    let (times, offsets): (Vec<f64>, Vec<f64>) = times_s
        .iter()
        .map(|t| (*t, offset(phase(*t, freq_hz), tooth.center)))
        .filter(|(_, d)| d.abs() <= tooth.width / 2.0)
        .unzip();
    if times.len() < 5 {
        return None;
    }
    let fit = line(&times, &offsets, Weighting::Relative(&vec![1.0; times.len()])).ok()?;
    let [offset, drift] = fit.coefficients;
    // A positive drift of the phase means that the assumed frequency runs ahead of the events.
    Some((freq_hz - drift, (tooth.center + offset).rem_euclid(1.0), (fit.chi2 / fit.dof as f64).sqrt()))
}

/// Lowers the weights of the events around the tooth until their phases are as thin as the background.
///
/// Deleting them instead would leave a periodic gap in the background, which is a comb again.
pub(super) fn thin(times_s: &[f64], weights: &mut [f64], freq_hz: f64, tooth: &Tooth) {
    let reach = (1.5 * tooth.width).min(0.5);
    let cells = 24_usize;
    let cell_of = |t: f64| {
        let position = (offset(phase(t, freq_hz), tooth.center) + reach) / (2.0 * reach);
        (0.0..1.0).contains(&position).then(|| ((position * cells as f64) as usize).min(cells - 1))
    };
    let mut content = vec![0.0; cells];
    for (t, w) in times_s.iter().zip(weights.iter()) {
        if let Some(cell) = cell_of(*t) {
            content[cell] += w;
        }
    }
    let expected = tooth.background * 2.0 * reach / cells as f64;
    let limit = expected + 2.0 * expected.sqrt();
    for (t, w) in times_s.iter().zip(weights.iter_mut()) {
        if let Some(cell) = cell_of(*t).filter(|c| content[*c] > limit) {
            *w *= expected / content[cell];
        }
    }
}
