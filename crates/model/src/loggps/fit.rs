//! The fit, in sequence and never jointly: ranges of sizes by the time per message, then the lines within them, then L.

use machmeter_stats::StatsError;
use machmeter_stats::regression::{Weighting, line};
use machmeter_stats::segmented::{Curve, breaks};

use crate::breaks::{APART, At, JUMP, MAX_BREAKS, Verdict, prune, ranges, scatter};

use super::observed::{Measured, SizePoint};
use super::segments::{Begins, Latency, Line, Pace, Segment, Table};

/// Fewest sizes of a segment: a line and one size that can contradict it.
pub const LEAST_POINTS: usize = 3;
/// Why there is no table.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum FitError {
    #[error("{0} message sizes were measured; a line needs {LEAST_POINTS}")]
    TooFew(usize),
    #[error("{size_bytes} B: a time, its error or the size itself is not positive and finite")]
    Impossible { size_bytes: u64 },
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// The table of these points, one a size, in any order. Errors: fewer than [`LEAST_POINTS`] sizes, or times that are not positive and finite.
pub fn fit(points: &[SizePoint]) -> Result<Table, FitError> {
    let mut points = points.to_vec();
    points.sort_by_key(|p| p.size_bytes);
    points.dedup_by_key(|p| p.size_bytes);
    if points.len() < LEAST_POINTS {
        return Err(FitError::TooFew(points.len()));
    }
    let possible =
        |m: &Measured| m.ns > 0.0 && m.ns.is_finite() && m.sigma_ns > 0.0 && m.sigma_ns.is_finite();
    let wrong = |p: &&SizePoint| p.size_bytes == 0 || !possible(&p.gap) || !possible(&p.round_trip);
    if let Some(p) = points.iter().find(wrong) {
        return Err(FitError::Impossible { size_bytes: p.size_bytes });
    }
    let at = |p: &SizePoint| At { x: p.further_bytes(), y: p.gap.ns, sigma: p.gap.sigma_ns };
    let scatter = scatter(&points.iter().map(at).collect::<Vec<_>>());
    for p in &mut points {
        p.gap.sigma_ns = p.gap.sigma_ns.hypot(scatter * p.gap.ns);
    }
    let cuts = cuts(&points)?;
    let mut segments = Vec::new();
    // A kink is no other protocol: overheads and one-way times go on as before.
    let protocols = cuts.iter().filter(|c| c.begins != Begins::Kink).map(|c| c.at);
    for protocol in ranges(points.len(), protocols) {
        let own = &points[protocol.clone()];
        let one_way = straight(own, |p| Some(p.round_trip.over(2.0)))?;
        let overhead_send = straight(own, |p| p.overhead_send)?;
        let overhead_recv = straight(own, |p| p.overhead_recv)?;
        let Some(one_way) = one_way else { continue };
        let latency = latency(&one_way, overhead_send.as_ref(), overhead_recv.as_ref());
        for part in ranges(points.len(), cuts.iter().map(|c| c.at)) {
            if !protocol.contains(&part.start) {
                continue;
            }
            let Some(gap) = straight(&points[part.clone()], |p| Some(p.gap))? else { continue };
            // A line says nothing above the sizes at which it was measured.
            let above = &points[part.start..protocol.end];
            let overhead_send = overhead_send.filter(|_| above.iter().any(|p| p.overhead_send.is_some()));
            let overhead_recv = overhead_recv.filter(|_| above.iter().any(|p| p.overhead_recv.is_some()));
            let begins = cuts.iter().find(|c| c.at == part.start).map_or(Begins::First, |c| c.begins);
            segments.push(Segment {
                first_bytes: points[part.start].size_bytes,
                last_bytes: points.get(part.end).map_or(u64::MAX, |p| p.size_bytes) - 1,
                begins,
                gap,
                one_way,
                overhead_send,
                overhead_recv,
                pace: pace(&points[part], &gap, overhead_send.as_ref(), overhead_recv.as_ref()),
                latency,
            });
        }
    }
    if let (Some(last), Some(p)) = (segments.last_mut(), points.last()) {
        last.last_bytes = p.size_bytes;
    }
    Ok(Table { segments })
}

/// A break: the place of the first point behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cut {
    at: usize,
    begins: Begins,
}

/// The breaks that are jumps or kinks. What is neither is taken out, the one that costs the fit least first.
fn cuts(points: &[SizePoint]) -> Result<Vec<Cut>, FitError> {
    let x: Vec<f64> = points.iter().map(SizePoint::further_bytes).collect();
    let y: Vec<f64> = points.iter().map(|p| p.gap.ns).collect();
    let weights: Vec<f64> = points.iter().map(|p| p.gap.sigma_ns.powi(-2)).collect();
    let starts = breaks(&x, &[Curve { y: &y, weights: &weights }], MAX_BREAKS, LEAST_POINTS)?;
    let judge = |from: usize, at: usize, to: usize| {
        let (before, behind) = (gap_line(&points[from..at])?, gap_line(&points[at..to])?);
        let both = gap_line(&points[from..to])?;
        if let Some(begins) = begins(points, at, &before.0, &behind.0) {
            return Ok(Verdict::Counts(begins));
        }
        if points[from..to].iter().any(|p| is_missed(p, &both.0)) {
            return Ok(Verdict::Counts(Begins::Bend));
        }
        Ok::<_, FitError>(Verdict::Costs(both.1 - before.1 - behind.1))
    };
    let counted = prune(starts, points.len(), judge)?;
    Ok(counted.into_iter().map(|(at, begins)| Cut { at, begins }).collect())
}

/// Whether a line is off a size by as much as a jump, and by more than the errors of the size.
fn is_missed(p: &SizePoint, line: &Line) -> bool {
    let off_ns = (line.at(p.size_bytes) - p.gap.ns).abs();
    off_ns >= JUMP * p.gap.ns && off_ns > APART * p.gap.sigma_ns
}

/// Whether the lines before and behind a break jump between its sizes, bend upwards, or neither.
fn begins(points: &[SizePoint], at: usize, before: &Line, behind: &Line) -> Option<Begins> {
    let jump = |p: &SizePoint| behind.at(p.size_bytes) / before.at(p.size_bytes).max(f64::MIN_POSITIVE) - 1.0;
    let (low, high) = (jump(&points[at - 1]), jump(&points[at]));
    if low.abs().min(high.abs()) >= JUMP && low.signum() == high.signum() {
        return Some(Begins::Jump);
    }
    (behind.per_byte.ns > before.per_byte.ns).then_some(Begins::Kink)
}

fn gap_line(points: &[SizePoint]) -> Result<(Line, f64), FitError> {
    weighted(&points.iter().map(|p| (p.further_bytes(), p.gap)).collect::<Vec<_>>())
}

/// The line of what some of the points have; `None` where none has it. Of one or two sizes it is level.
fn straight(
    points: &[SizePoint],
    of: impl Fn(&SizePoint) -> Option<Measured>,
) -> Result<Option<Line>, FitError> {
    let found: Vec<(f64, Measured)> =
        points.iter().filter_map(|p| Some((p.further_bytes(), of(p)?))).collect();
    if found.is_empty() { Ok(None) } else { Ok(Some(weighted(&found)?.0)) }
}

/// Weighted line with neither part below zero, and its chi-square.
fn weighted(points: &[(f64, Measured)]) -> Result<(Line, f64), FitError> {
    let x: Vec<f64> = points.iter().map(|p| p.0).collect();
    let (y, sigma): (Vec<f64>, Vec<f64>) = points.iter().map(|p| (p.1.ns, p.1.sigma_ns)).unzip();
    let weight: f64 = sigma.iter().map(|s| s.powi(-2)).sum();
    let chi2 = |l: &Line| -> f64 {
        points.iter().map(|(x, m)| ((m.ns - l.at_first.ns - l.per_byte.ns * x) / m.sigma_ns).powi(2)).sum()
    };
    if points.len() >= LEAST_POINTS && x[0] < x[x.len() - 1] {
        let found = line(&x, &y, Weighting::Sigma(&sigma))?;
        // Scatter beyond the known errors widens them.
        let wider = (found.chi2 / found.dof as f64).max(1.0).sqrt();
        let part =
            |k: usize| Measured { ns: found.coefficients[k], sigma_ns: found.standard_errors[k] * wider };
        let center = x.iter().zip(&sigma).map(|(x, s)| x / s.powi(2)).sum::<f64>() / weight;
        let line = Line { at_first: part(0), per_byte: part(1), center };
        if line.at_first.ns >= 0.0 && line.per_byte.ns >= 0.0 {
            return Ok((line, found.chi2));
        }
        if line.per_byte.ns > 0.0 {
            // Through nothing at the first byte.
            let w = |m: &Measured| m.sigma_ns.powi(-2);
            let xx: f64 = points.iter().map(|(x, m)| w(m) * x * x).sum();
            let xy: f64 = points.iter().map(|(x, m)| w(m) * x * m.ns).sum();
            let per_byte = Measured { ns: xy / xx, sigma_ns: xx.sqrt().recip() };
            let line = Line { at_first: Measured { ns: 0.0, ..line.at_first }, per_byte, center: 0.0 };
            return Ok((line, chi2(&line)));
        }
    }
    let mean = y.iter().zip(&sigma).map(|(y, s)| y / s.powi(2)).sum::<f64>() / weight;
    let level = Line {
        at_first: Measured { ns: mean, sigma_ns: weight.sqrt().recip() },
        per_byte: Measured { ns: 0.0, sigma_ns: 0.0 },
        center: 0.0,
    };
    Ok((level, chi2(&level)))
}

/// L, where it is told apart from the overheads.
fn latency(one_way: &Line, send: Option<&Line>, recv: Option<&Line>) -> Latency {
    let all_ns = one_way.at_first.at_most_ns();
    let (Some(send), Some(recv)) = (send, recv) else { return Latency::AtMost(all_ns) };
    let rest = one_way.at_first.minus(send.at_first).minus(recv.at_first);
    if rest.ns > APART * rest.sigma_ns {
        Latency::Known(rest)
    } else {
        Latency::AtMost(Measured { ns: rest.ns.max(0.0), ..rest }.at_most_ns().min(all_ns))
    }
}

/// Who sets the pace at most sizes of a segment.
fn pace(points: &[SizePoint], gap: &Line, send: Option<&Line>, recv: Option<&Line>) -> Pace {
    let (Some(send), Some(recv)) = (send, recv) else { return Pace::Unknown };
    let waits = |p: &&SizePoint| {
        let busy_ns = send.at(p.size_bytes).max(recv.at(p.size_bytes));
        let all = [Some(p.gap), p.overhead_send, p.overhead_recv];
        let sigma_ns = all.iter().flatten().map(|m| m.sigma_ns).fold(0.0, f64::hypot);
        gap.at(p.size_bytes) - busy_ns > APART * sigma_ns
    };
    if 2 * points.iter().filter(waits).count() > points.len() { Pace::Link } else { Pace::Overhead }
}
