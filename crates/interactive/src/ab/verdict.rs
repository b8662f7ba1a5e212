//! From evidence to verdicts: tests at every look, Holm over the family, equivalence within delta.

use machmeter_stats::Interval;
use machmeter_stats::distribution::{t_cdf, t_quantile};
use machmeter_stats::rank::holm;

use super::evidence::{self, Evidence};
use super::interim_looks::{InterimLooks, LEAST_ROUNDS};
use super::{Scale, Series};

/// Bound on the probability of any false better or worse in the whole run, and of a false equivalence of a figure.
pub const FAMILY_ERROR: f64 = 0.05;

/// Probability of missing a change of the size given as detectable.
const MISS: f64 = 0.1;

/// A change of this many points of a share weighs as much as a change of 1 in a ratio: 3 points of misses are as bad as 1.3
/// times the lateness.
pub const POINTS_PER_RATIO: f64 = 0.1;

/// What a run says about one figure of one cell. "Better" and "worse" are about setting B against setting A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Better,
    Worse,
    /// Whatever the difference is, it is smaller than delta.
    Equivalent,
    /// Nothing can be said; the smallest detectable change says what would have been seen.
    Undecided,
}

impl Verdict {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Equivalent => "equivalent",
            Self::Undecided => "undecided",
        }
    }
}

/// The outcome for one figure of one cell. Effects are on the scale of comparison: natural logarithm of the ratio B over A,
/// or difference of shares.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub verdict: Verdict,
    /// What it rests on; `None` with fewer than two whole rounds.
    pub evidence: Option<Evidence>,
    /// Interval of the effect at 95 % that holds although one looked several times.
    pub interval: Option<Interval>,
    /// Smallest change that would have been found with probability 90 % in a run like this.
    pub detectable: Option<f64>,
    /// Probability of an effect this far from zero in the last look alone, were there none.
    pub p: Option<f64>,
    /// The same over all looks and the whole family: a verdict needs at most [`FAMILY_ERROR`].
    pub p_adjusted: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Judgment {
    pub rows: Vec<Row>,
    pub rounds: usize,
    pub looks: usize,
}

/// The smallest effect that matters on the scale of a figure, for a `delta` given as a fraction.
pub fn margin(scale: Scale, delta: f64) -> f64 {
    match scale {
        Scale::Ratio => delta.ln_1p(),
        Scale::Points => delta * POINTS_PER_RATIO,
    }
}

/// Verdicts of a run that was planned for `planned` rounds. `delta` is the smallest change that matters, as a fraction.
///
/// When not every cell is decided at what the last look may spend, the run must have ended by its time, and the look may
/// spend what is left.
pub fn judge(series: &[Series], planned: usize, delta: f64) -> Judgment {
    let recorded = series.iter().map(|s| s.rounds.len()).max().unwrap_or(0);
    let looks = InterimLooks::new(planned, recorded);
    let judgment = at(series, &looks, delta);
    if looks.is_planned_look() && !all_decided(series, &judgment.rows) {
        return at(series, &looks.ended(), delta);
    }
    judgment
}

/// Whether a run of `planned` rounds may end now, since every cell is decided. Only looks of the plan can say so.
pub fn may_stop(series: &[Series], planned: usize, delta: f64) -> bool {
    let recorded = series.iter().map(|s| s.rounds.len()).max().unwrap_or(0);
    if recorded >= planned {
        return true;
    }
    let looks = InterimLooks::new(planned, recorded);
    looks.is_planned_look() && all_decided(series, &at(series, &looks, delta).rows)
}

/// A cell is decided when one of its figures is better or worse, or all of them are equivalent.
fn all_decided(series: &[Series], rows: &[Row]) -> bool {
    let of_cell = |s: &Series| {
        let same = |o: &&(&Series, &Row)| (&o.0.task, &o.0.load) == (&s.task, &s.load);
        let pairs: Vec<(&Series, &Row)> = series.iter().zip(rows).collect();
        let mine: Vec<Verdict> = pairs.iter().filter(same).map(|p| p.1.verdict).collect();
        mine.iter().any(|v| matches!(v, Verdict::Better | Verdict::Worse))
            || mine.iter().all(|v| *v == Verdict::Equivalent)
    };
    !series.is_empty() && series.iter().all(of_cell)
}

fn at(series: &[Series], looks: &InterimLooks, delta: f64) -> Judgment {
    let last = looks.at().len() - 1;
    let mut sequential = vec![1.0_f64; series.len()];
    let mut equivalence = vec![1.0_f64; series.len()];
    let mut found: Vec<Option<Evidence>> = vec![None; series.len()];
    for (k, rounds) in looks.at().iter().enumerate() {
        found = series.iter().map(|s| evidence::of(s, *rounds)).collect();
        evidence::moderate(series, &mut found);
        for (i, e) in found.iter().enumerate() {
            if let Some(e) = e.as_ref().filter(|e| e.rounds >= LEAST_ROUNDS) {
                let inside = margin(series[i].figure.scale(), delta);
                sequential[i] = sequential[i].min(looks.sequential_p(k, two_sided(e)));
                equivalence[i] = equivalence[i].min(looks.sequential_p(k, outside(e, inside)));
            }
        }
    }
    let adjusted = holm(&sequential);
    let level = looks.level(last, FAMILY_ERROR / series.len().max(1) as f64);
    let rows = (0..series.len()).map(|i| {
        let e = found[i].filter(|e| e.rounds >= LEAST_ROUNDS);
        Row {
            verdict: e.map_or(Verdict::Undecided, |e| decide(&series[i], &e, adjusted[i], equivalence[i])),
            evidence: found[i],
            interval: e.and_then(|e| interval(&e, looks.level(last, FAMILY_ERROR))),
            detectable: e.and_then(|e| detectable(&e, level)),
            p: e.map(|e| two_sided(&e)),
            p_adjusted: e.map(|_| adjusted[i]),
        }
    });
    Judgment { rows: rows.collect(), rounds: looks.at()[last], looks: looks.at().len() }
}

/// A difference that is real and smaller than delta is equivalent: delta is the smallest change that matters.
fn decide(series: &Series, e: &Evidence, p_adjusted: f64, p_equivalence: f64) -> Verdict {
    if p_equivalence <= FAMILY_ERROR {
        return Verdict::Equivalent;
    }
    if p_adjusted > FAMILY_ERROR {
        return Verdict::Undecided;
    }
    if (e.effect < 0.0) == series.figure.lower_is_better() { Verdict::Better } else { Verdict::Worse }
}

fn two_sided(e: &Evidence) -> f64 {
    t_cdf(-e.effect.abs() / e.se, e.dof).map_or(1.0, |p| (2.0 * p).min(1.0))
}

/// Two one-sided tests (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987): the larger probability of
/// the two is that of the nearer margin.
fn outside(e: &Evidence, margin: f64) -> f64 {
    t_cdf((e.effect.abs() - margin) / e.se, e.dof).unwrap_or(1.0)
}

/// The interval of effects that the last look would not reject: at `1 - level`, and 95 % over all looks.
fn interval(e: &Evidence, level: f64) -> Option<Interval> {
    let t = t_quantile(1.0 - level / 2.0, e.dof)?;
    Interval::new(1.0 - FAMILY_ERROR, e.effect - t * e.se, e.effect + t * e.se)
}

fn detectable(e: &Evidence, level: f64) -> Option<f64> {
    let size = (t_quantile(1.0 - level / 2.0, e.dof)? + t_quantile(1.0 - MISS, e.dof)?) * e.se;
    size.is_finite().then_some(size)
}
