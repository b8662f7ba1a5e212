//! Turns evidence into verdicts: first equivalence, then a change within its family.

use std::collections::BTreeMap;

use machmeter_data::Interval;
use machmeter_stats::rank::benjamini_hochberg;

use crate::comparison::{Family, Row, Scale, SpreadFrom, Verdict};
use crate::evidence::{Evidence, Quantiles};
use crate::options::Options;

const LEVEL: f64 = 0.95;
pub(crate) const NOT_EXCLUDED: &str = "no change found, and one that matters is not excluded";
const BY_CLOCK: &str = "the clock of the core explains the difference: none is found at equal clocks";
/// Bound on a false "same".
const ALPHA: f64 = 0.05;
/// A share that changes by one point counts as much as a cost that changes by 10 %.
const POINTS_PER_RATIO: f64 = 0.1;

/// Smallest change that matters on a scale, from one given as a fraction.
pub(crate) fn margin(scale: Scale, at_least: f64) -> f64 {
    if scale == Scale::Relative { at_least.ln_1p() } else { POINTS_PER_RATIO * at_least }
}

/// Completes `rows` from their evidence; a row without evidence already has its verdict.
pub(crate) fn judge(rows: &mut [Row], evidence: &[Option<Evidence>], options: &Options<'_>) -> Vec<Family> {
    let mut of_family: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for i in (0..rows.len()).filter(|i| evidence[*i].is_some()) {
        of_family.entry(rows[i].family.clone()).or_default().push(i);
    }
    let error = options.error / of_family.len().max(1) as f64;
    let mut quantiles = Quantiles::default();
    for members in of_family.values() {
        let p: Vec<f64> = members.iter().map(|i| evidence[*i].as_ref().map_or(1.0, Evidence::p)).collect();
        for ((i, p), adjusted) in members.iter().zip(&p).zip(benjamini_hochberg(&p)) {
            let (row, Some(e)) = (&mut rows[*i], &evidence[*i]) else { continue };
            describe(row, e, &mut quantiles);
            (row.p, row.p_adjusted, row.p_rank) = (Some(*p), Some(adjusted), e.p_rank);
            row.detectable = e.detectable(error / members.len() as f64, &mut quantiles);
            row.verdict = verdict(row, e, [adjusted, error], options.at_least);
            row.by_clock = (e.by_clock != 0.0).then(|| e.scale.change(e.by_clock));
        }
    }
    let family = |(name, members): (String, Vec<usize>)| Family { name, rows: members.len(), error };
    of_family.into_iter().map(family).collect()
}

fn describe(row: &mut Row, e: &Evidence, quantiles: &mut Quantiles) {
    row.change = Some(e.scale.change(e.difference)).filter(|c| c.is_finite());
    let method = match e.spread.from {
        SpreadFrom::Sides => "t, spread within the sides",
        SpreadFrom::Earlier => "t, spread of earlier runs",
        SpreadFrom::Assumed => "t, spread between runs assumed",
    };
    row.change_ci = e.distance(1.0 - LEVEL, quantiles).and_then(|half| change_ci(e, half, method));
    row.spread = Some(e.spread.clone());
}

/// The interval that extends by `half` beyond the difference on both sides, both as measured and at equal clocks.
pub(crate) fn change_ci(e: &Evidence, half: f64, method: &str) -> Option<Interval> {
    let (as_is, equal) = (e.difference, e.at_equal_clocks());
    let ends = [as_is.min(equal) - half, as_is.max(equal) + half].map(|d| e.scale.change(d));
    Interval::new(LEVEL, ends[0], ends[1], method)
}

fn verdict(row: &Row, e: &Evidence, [adjusted, error]: [f64; 2], at_least: f64) -> Verdict {
    if e.p_outside(margin(e.scale, at_least)) <= ALPHA {
        return Verdict::Same;
    }
    if adjusted <= error {
        return Verdict::of(row.better, e.at_equal_clocks());
    }
    let is_by_clock = e.p() > error && e.p_of(e.difference) <= error;
    unclear(if is_by_clock { BY_CLOCK } else { NOT_EXCLUDED })
}

pub(crate) fn unclear(why: &str) -> Verdict {
    Verdict::Unclear { why: why.to_owned() }
}
