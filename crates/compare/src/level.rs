//! Where the blocks of one run lie, and how they spread, on the scale on which they are compared.

use machmeter_stats::{quantile, spread};

/// Blocks farther from the median than this many robust standard deviations are pulled back to that distance: a burst in
/// one block of twenty moves the location by a tenth of a standard deviation and no more, however large it was.
const CLIP_SD: f64 = 2.5;
/// Part of the blocks, the farthest from the median, that does not count for the spread that stands for the machine's
/// restlessness: one burst in twenty blocks does not make a run worthless, but bursts that keep coming do count.
const SPREAD_TRIM: f64 = 0.05;
/// 90th percentile of the absolute deviation in standard deviations, for the normal law.
const Q90_SD: f64 = 1.645;
/// Longer series are averaged in groups down to at most this many blocks: the variance of a run's location hangs on the
/// slow part of the series, which that keeps.
pub(crate) const MAX_BLOCKS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Natural logarithm: a difference is a ratio. For values that are all positive.
    Log,
    /// As recorded: for values that include zero or negative ones.
    Linear,
}

impl Scale {
    /// The logarithm if every value allows it.
    pub(crate) fn of<'a>(values: impl IntoIterator<Item = &'a f64>) -> Self {
        if values.into_iter().all(|v| *v > 0.0) { Self::Log } else { Self::Linear }
    }

    /// `value` on this scale.
    pub(crate) fn apply(self, value: f64) -> f64 {
        match self {
            Self::Log => value.ln(),
            Self::Linear => value,
        }
    }

    /// A value on this scale back in the metric's unit.
    pub(crate) fn invert(self, value: f64) -> f64 {
        match self {
            Self::Log => value.exp(),
            Self::Linear => value,
        }
    }
}

/// One run's blocks on the scale of comparison.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    pub(crate) location: f64,
    /// Standard deviation of the blocks as they are, apart from the farthest twentieth of them.
    pub(crate) block_sd: f64,
    /// The clipped blocks in time order, at most [`MAX_BLOCKS`].
    pub(crate) series: Vec<f64>,
    pub(crate) clipped: usize,
}

/// Location and spread of `blocks` (at least two finite values, all positive if `scale` is logarithmic).
pub(crate) fn level(blocks: &[f64], scale: Scale) -> Option<Level> {
    let y: Vec<f64> = blocks.iter().map(|b| scale.apply(*b)).collect();
    if y.len() < 2 || y.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let center = quantile::median_of(&y)?;
    let reach = CLIP_SD * robust_sd(&y, center)?;
    let pulled: Vec<f64> = y.iter().map(|v| v.clamp(center - reach, center + reach)).collect();
    let clipped = y.iter().zip(&pulled).filter(|(v, p)| v != p).count();
    let series = grouped(&pulled)?;
    let mut by_distance = grouped(&y)?;
    by_distance.sort_by(|p, q| (p - center).abs().total_cmp(&(q - center).abs()));
    let kept = by_distance.len() - (by_distance.len() as f64 * SPREAD_TRIM) as usize;
    let block_sd = spread::stddev(&by_distance[..kept])?;
    Some(Level { location: spread::mean(&pulled)?, block_sd, series, clipped })
}

/// Spread that a few bursts cannot inflate and a few equal (quantized) blocks cannot make zero. Zero only if more than nine
/// in ten blocks are equal; the others are then bursts.
fn robust_sd(y: &[f64], center: f64) -> Option<f64> {
    let sd = spread::mad(y)?;
    if sd > 0.0 {
        return Some(sd);
    }
    let mut deviations: Vec<f64> = y.iter().map(|v| (v - center).abs()).collect();
    deviations.sort_by(f64::total_cmp);
    Some(quantile::quantile(&deviations, 0.9)? / Q90_SD)
}

fn grouped(y: &[f64]) -> Option<Vec<f64>> {
    let size = y.len().div_ceil(MAX_BLOCKS);
    y.chunks(size).map(spread::mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_moves_the_location_little() {
        let mut blocks: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i % 5)).collect();
        let quiet = level(&blocks, Scale::Log).unwrap();
        blocks[7] = 1e6;
        let burst = level(&blocks, Scale::Log).unwrap();
        assert!((burst.location - quiet.location).abs() < 0.01, "{} {}", burst.location, quiet.location);
        assert_eq!((quiet.clipped, burst.clipped), (0, 1));
        assert!(burst.block_sd < 1.5 * quiet.block_sd);
    }

    #[test]
    fn quantized_blocks_keep_a_spread() {
        let blocks: Vec<f64> = (0..20).map(|i| if i % 5 == 0 { 250.0 } else { 240.0 }).collect();
        let l = level(&blocks, Scale::Log).unwrap();
        assert_eq!(l.clipped, 0);
        assert!(l.block_sd > 0.01);
    }

    #[test]
    fn long_series_are_averaged_down() {
        let blocks: Vec<f64> = (0..1000).map(|i| 1.0 + f64::from(i % 7)).collect();
        let l = level(&blocks, Scale::Linear).unwrap();
        assert!(l.series.len() <= MAX_BLOCKS);
    }

    #[test]
    fn the_scale_is_linear_as_soon_as_one_value_is_zero() {
        assert_eq!(Scale::of(&[1.0, 2.0]), Scale::Log);
        assert_eq!(Scale::of(&[1.0, 0.0]), Scale::Linear);
    }
}
