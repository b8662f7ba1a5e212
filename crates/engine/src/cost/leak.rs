//! How far pairs that only passed the filter for undisturbed ones may explain a figure.
//!
//! A neighbor on the core may be at work between two looks, or leave the core's width just above the edge. [`Filter::leak`] is the share
//! of shared pairs that pass; of a row's pairs no more pass than if all of them had been shared. As long as these are fewer than three
//! quarters of what passed, the lower quartile is of undisturbed pairs, since shared ones cost more. Otherwise the values decide.
//!
//! [`Filter::leak`]: crate::disturbance::sibling::Filter::leak

use machmeter_stats::distribution::binomial_cdf;
use machmeter_stats::quantile::quantile;

use super::estimate::LEVEL;
use crate::disturbance::sibling::ALONE;

/// Deviations of the normal law that 5 % lie beyond.
const DEVIATIONS: f64 = 1.645;
/// Distance of a lower quartile from the least value within which both are of undisturbed pairs: what passes for the whole width of the core
/// may cost as much more.
const APART: f64 = 1.0 - ALONE;

/// Pairs of `pairs` that pass at most, at 95 %, if all of them were shared.
pub(super) fn most_leaked(pairs: usize, leak: f64) -> usize {
    let is_most = |k: &usize| binomial_cdf(*k as u64, pairs as u64, leak).is_none_or(|p| p >= LEVEL);
    (0..pairs).find(is_most).unwrap_or(pairs)
}

/// Whether quantile `p` of the values that passed (`own`) is of undisturbed pairs, although up to `leaked` of them may be shared.
/// Both ascending.
pub(super) fn surely_own(own: &[f64], shared: &[f64], p: f64, leaked: usize) -> bool {
    if (leaked as f64) < (1.0 - p) * own.len() as f64 {
        return true;
    }
    let (Some(figure), Some(least)) = (quantile(own, p), own.first()) else { return false };
    // The lowest that this quantile of as many shared pairs is, at 95 %.
    let error = (p * (1.0 - p) / own.len() as f64).sqrt();
    let lowest = quantile(shared, (p - DEVIATIONS * error).max(0.0));
    figure - least <= APART * least.abs() && lowest.is_none_or(|lowest| figure < lowest)
}
