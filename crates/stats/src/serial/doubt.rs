//! What a stream is too short for: figures that few independent samples or clusters carry are refused. Those that barely are not
//! get wider intervals: streams that pass by luck are those whose variance came out small.
//!
//! Clusters by the third moment of sums over blocks: `(sum s^2)^3 / (sum s^3)^2` is `k` for `k` equal clusters, `n / 4` for `n`
//! exponential values, with the sign of the third moment. A mean that `k` carry is as uncertain as a count of `k` events.

use super::memory::Memory;
use crate::distribution::normal_quantile;
use crate::error::StatsError;

/// What is short where independent samples are.
pub(super) const INDEPENDENT: &str = "an interval (independent samples, neighbors being alike)";
/// What is short where one or a few slow events make the figure.
const CLUSTERS: &str = "an interval (clusters that carry the figure)";

/// Independent samples, by the memory of the stream, at least.
pub(super) const LEAST: usize = 13;
/// By what the variance of a mean grows, in units of itself, with the least number of independent samples; falls with the sixth
/// power of them.
const WIDER_MEAN: f64 = 8.0;
/// The same for shares, whose intervals are wider already.
const WIDER_SHARE: f64 = 5.0;
/// Samples per independent one from which on memory counts as seen.
const MEMORY: f64 = 1.5;
/// Block in units of the samples per independent one.
const BLOCK: f64 = 2.0;
/// Blocks down to which longer blocks are tried as well: the third moment of fewer says little.
const BLOCKS: usize = 24;
/// The same for figures near the middle, where more clusters are asked for.
const BLOCKS_MIDDLE: usize = 48;
/// Clusters that must carry a mean: of fewer, the largest is more than a third of all, and says nothing of the next one.
const CARRIERS: f64 = 3.0;
/// Clusters that must carry what a share is of, at least and where there are many independent samples.
const CLUSTERS_LIKE: (f64, f64) = (5.0, 10.0);
/// Clusters that must carry a share or quantile near the middle: bursts shift these little, so that few of them matter.
const CLUSTERS_MIDDLE: (f64, f64) = (5.0, 40.0);
/// Clusters that must carry the rarer answer where answers come in clusters.
const CLUSTERS_HITS: f64 = 4.0;
/// Independent samples per cluster asked for, between the two limits.
const PER_CLUSTER: f64 = 5.0;
/// Clusters that single values must amount to if each were as long as the memory.
const SINGLE: f64 = 4.0;
/// Shares rarer than this lie where bursts do.
const TAIL: f64 = 0.3;

/// Ends of an interval in units of half of a symmetric one, and the clusters that make them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reach {
    pub(super) low: f64,
    pub(super) high: f64,
    clusters: f64,
}

impl Reach {
    /// Refuses a value that few clusters make: those that shift it by less than half of itself do not carry it.
    pub(super) fn carries(&self, value: f64, half: f64) -> Result<(), StatsError> {
        let shifts = half * self.low.max(self.high);
        if shifts < 0.5 * value.abs() { Ok(()) } else { enough(self.clusters, CARRIERS) }
    }
}

/// Factor on the variance of the mean of a centered stream, at least 1, and how far the ends of its interval lie.
pub(super) fn of_mean(z: &[f64], by_segments: bool, level: f64) -> Result<(f64, Reach), StatsError> {
    let samples = Memory::of(z).samples();
    let factor = independence(z.len(), samples, WIDER_MEAN, by_segments)?;
    let clusters = clusters(z, samples, BLOCKS);
    let reach = poisson(clusters.abs(), level).ok_or(StatsError::Overflow("the interval"))?;
    Ok((factor, if clusters > 0.0 { reach } else { Reach { low: reach.high, high: reach.low, ..reach } }))
}

/// How far the ends of the interval of a number of events lie from it (Garwood, Biometrika 1936), in units of the normal law's.
/// Chi-square quantiles as by Wilson & Hilferty (1931).
fn poisson(events: f64, level: f64) -> Option<Reach> {
    let u = normal_quantile(0.5 + level / 2.0)?;
    let k = events.clamp(1.0, 1e9);
    let quantile = |dof: f64, u: f64| {
        let of = 2.0 / (9.0 * dof);
        dof / 2.0 * (1.0 - of + u * of.sqrt()).powi(3)
    };
    let unit = u * k.sqrt();
    let (low, high) = ((k - quantile(2.0 * k, -u)) / unit, (quantile(2.0 * k + 2.0, u) - k) / unit);
    Some(Reach { low, high, clusters: events })
}

/// Factor on the variance of the share of `hits` (1 and 0), at least 1; `like` are the figures behind them. Both are centered.
pub(super) fn of_share(hits: &[f64], share: f64, like: &[f64], by_segments: bool) -> Result<f64, StatsError> {
    let rarer = share.min(1.0 - share);
    let behind = Memory::of(like).samples();
    let samples = behind.max(Memory::of(hits).samples());
    let factor = independence(hits.len(), behind, WIDER_SHARE, by_segments)?;
    if samples < MEMORY || rarer <= 0.0 {
        // Answers that do not depend on each other are binomial however rare they are.
        return Ok(factor);
    }
    if rarer < TAIL {
        let clusters = clusters(hits, samples, BLOCKS).abs();
        enough(clusters, CLUSTERS_HITS)?;
        return Ok(factor * carriers(like, samples)? * (1.0 + 0.5 * (CLUSTERS_HITS / clusters).powi(3)));
    }
    let needed = clusters_needed(hits.len(), samples, CLUSTERS_MIDDLE);
    let clusters = clusters(hits, samples, BLOCKS_MIDDLE).abs();
    enough(clusters, needed)?;
    Ok(factor * (1.0 + 0.5 * (needed / clusters).powi(3)))
}

/// Whether neighbors are so much alike that it shows.
pub(super) fn remembers(z: &[f64]) -> bool {
    Memory::of(z).samples() >= MEMORY
}

fn independence(n: usize, samples: f64, wider: f64, by_segments: bool) -> Result<f64, StatsError> {
    if by_segments {
        return Ok(1.0);
    }
    let got = n as f64 / samples;
    if got < LEAST as f64 {
        return Err(StatsError::TooFew { what: INDEPENDENT, needed: LEAST, got: got as usize });
    }
    Ok(1.0 + wider * (LEAST as f64 / got).powi(6))
}

/// Factor on the variance of a share for the clusters that carry what it is of, or why they are too few.
fn carriers(z: &[f64], samples: f64) -> Result<f64, StatsError> {
    let needed = clusters_needed(z.len(), samples, CLUSTERS_LIKE);
    let clusters = clusters(z, samples, BLOCKS).abs();
    enough(clusters, needed)?;
    enough(carried_by(z, 1).abs() / samples, SINGLE)?;
    Ok(1.0 + 12.0 / needed * (needed / clusters).powi(3))
}

fn clusters_needed(n: usize, samples: f64, (least, most): (f64, f64)) -> f64 {
    (n as f64 / samples / PER_CLUSTER).clamp(least, most)
}

fn enough(clusters: f64, needed: f64) -> Result<(), StatsError> {
    if clusters >= needed {
        return Ok(());
    }
    Err(StatsError::TooFew { what: CLUSTERS, needed: needed.ceil() as usize, got: clusters as usize })
}

/// The fewest clusters over blocks from twice the memory up to lengths of which there are `blocks`; negative below the mean.
fn clusters(z: &[f64], samples: f64, blocks: usize) -> f64 {
    if samples < MEMORY {
        return carried_by(z, 1);
    }
    let mut length = (BLOCK * samples).round() as usize;
    let mut fewest = carried_by(z, length);
    while z.len() / (2 * length) >= blocks {
        length *= 2;
        let now = carried_by(z, length);
        fewest = if now.abs() < fewest.abs() { now } else { fewest };
    }
    fewest
}

/// Clusters by the third moment of the sums over blocks of one length, with its sign.
fn carried_by(z: &[f64], length: usize) -> f64 {
    let (mut second, mut third) = (0.0, 0.0);
    for block in z.chunks(length) {
        let s: f64 = block.iter().sum();
        second += s * s;
        third += s * s * s;
    }
    // The cube of the sum of squares may leave the range of f64 where the ratio does not.
    if second > 0.0 { (second.sqrt().powi(3) / third).powi(2).copysign(third) } else { f64::INFINITY }
}
