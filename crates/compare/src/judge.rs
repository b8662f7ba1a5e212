//! From evidence to verdict: Holm over the rows, the rank test as a second witness, the smallest effect that matters.

use machmeter_data::{Better, Interval};
use machmeter_stats::rank::holm;

use crate::comparison::{ChangeScale, Row, Verdict};
use crate::evidence::Evidence;
use crate::options::Options;

const LEVEL: f64 = 0.95;
/// Probability of missing a change of the size printed as detectable.
const MISS: f64 = 0.1;
/// Verdicts are given at this part of the error bound. The laws are estimates: over the simulated machines of
/// `tests/honesty.rs` the nominal 1 % came out as up to 1.3 %.
const MARGIN: f64 = 0.5;
/// A pair that would have missed a doubling has nothing to say.
const TOO_WIDE: f64 = 1.0;
/// Laws narrower than this come from runs in which nothing varied at all.
const NO_VARIATION: f64 = 1e-100;

/// Completes `rows` from their evidence; a row without evidence already has its verdict.
pub(crate) fn judge(rows: &mut [Row], evidence: &[Option<Evidence>], options: &Options<'_>) {
    let mut tested = Vec::new();
    for (i, (row, e)) in rows.iter_mut().zip(evidence).enumerate() {
        if let Some(e) = e {
            describe(row, e);
            row.p_rank = e.p_rank;
            row.p = e.guard.as_ref().map(|law| (law.two_sided(e.difference()) / MARGIN).min(1.0));
            tested.extend(row.p.map(|p| (i, p)));
        }
    }
    let adjusted = holm(&tested.iter().map(|(_, p)| *p).collect::<Vec<_>>());
    for ((i, _), p) in tested.iter().zip(&adjusted) {
        rows[*i].p_adjusted = Some(*p);
    }
    // Holm's first step is the hardest one: what passes it is found whatever the other rows say.
    let first_step = MARGIN * options.family_error / tested.len().max(1) as f64;
    for (row, e) in rows.iter_mut().zip(evidence) {
        if let Some(e) = e {
            row.detectable = detectable(e, first_step, options.min_effect);
            row.verdict = verdict(row, e, options);
            remark(row, e, options);
        }
    }
}

fn describe(row: &mut Row, e: &Evidence) {
    let difference = e.difference();
    row.scale = if e.relative { ChangeScale::Relative } else { ChangeScale::Absolute };
    row.change = Some(e.as_change(difference)).filter(|c| c.is_finite());
    row.a.location = Some(e.scale.invert(e.locations[0]));
    row.b.location = Some(e.scale.invert(e.locations[1]));
    let half = e.printed.as_ref().map(|law| law.distance(1.0 - LEVEL)).filter(|h| *h > NO_VARIATION);
    row.half_width = half.map(|h| e.as_change(h)).filter(|h| h.is_finite());
    row.change_ci = half.and_then(|h| {
        Interval::new(LEVEL, e.as_change(difference - h), e.as_change(difference + h), "run-to-run")
    });
}

fn detectable(e: &Evidence, error: f64, min_effect: f64) -> Option<f64> {
    let (printed, guard) = (e.printed.as_ref()?, e.guard.as_ref()?);
    // One-sided: only the tail that would hide the change counts.
    let hidden = printed.distance(2.0 * MISS);
    let distance = guard.distance(error) + hidden;
    let change = e.as_change(distance);
    let found = if e.relative { change.max(min_effect + e.as_change(hidden)) } else { change };
    (distance > NO_VARIATION && found.is_finite()).then_some(found)
}

fn verdict(row: &Row, e: &Evidence, options: &Options<'_>) -> Verdict {
    let (Some(change), Some(p)) = (row.change, row.p_adjusted) else {
        return inconclusive("the difference could not be computed");
    };
    let large_enough = !e.relative || magnitude(change) >= options.min_effect;
    if p <= options.family_error && large_enough {
        return match e.p_rank {
            Some(p_rank) if p_rank > options.family_error => {
                inconclusive(&format!("levels differ but the blocks overlap (rank test p {p_rank:.2})"))
            }
            _ => direction(row.better, e.difference()),
        };
    }
    match row.detectable {
        Some(d) if e.relative && d > TOO_WIDE => {
            inconclusive(&format!("too noisy: only changes of {} or more would show", percent(d)))
        }
        None if e.difference() != 0.0 => {
            inconclusive("neither run varied, so nothing tells how far they could differ")
        }
        _ => Verdict::Same,
    }
}

/// Size of a relative change, the same for a rise and for the fall that undoes it.
fn magnitude(change: f64) -> f64 {
    if change < 0.0 && change > -1.0 { 1.0 / (1.0 + change) - 1.0 } else { change.abs() }
}

fn direction(better: Better, difference: f64) -> Verdict {
    match better {
        Better::Neither => Verdict::Changed,
        Better::Lower if difference < 0.0 => Verdict::Better,
        Better::Higher if difference > 0.0 => Verdict::Better,
        _ => Verdict::Worse,
    }
}

fn inconclusive(why: &str) -> Verdict {
    Verdict::Inconclusive { why: why.to_owned() }
}

/// Reasons that only the finished row shows.
fn remark(row: &mut Row, e: &Evidence, options: &Options<'_>) {
    if row.verdict == Verdict::Same {
        let said = match (row.p, row.p_adjusted, row.change) {
            (_, Some(adjusted), Some(change)) if adjusted <= options.family_error => Some(format!(
                "a change of {} is real but below the smallest effect that matters, {}",
                percent(change),
                percent(options.min_effect)
            )),
            (Some(p), Some(adjusted), _) if p <= options.family_error => Some(format!(
                "p {p:.4} by itself, {adjusted:.2} among the metrics of this comparison: repeat to decide"
            )),
            _ => None,
        };
        row.reasons.extend(said);
    }
    if let (Some(a), Some(b), Some(half)) = (row.a.value, row.b.value, row.half_width)
        && row.scale == ChangeScale::Relative
        && a > 0.0
        && (b / a - 1.0 - row.change.unwrap_or_default()).abs() > 2.0 * half.max(options.min_effect)
        && e.p_rank.is_some()
    {
        row.reasons.push(format!(
            "the recorded values differ by {}: a few blocks carry that, most do not",
            percent(b / a - 1.0)
        ));
    }
}

pub(crate) fn percent(change: f64) -> String {
    format!("{} %", machmeter_data::quantity::digits(change * 100.0))
}
