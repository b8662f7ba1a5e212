//! Laws of what an operation of p participants on d bytes costs: sums of at most three terms, as in the tables of Howell
//! ("Approaches to Parallel Performance Prediction", Edinburgh 1996), with intervals, goodness of fit Q and predictions.
//!
//! Values have any unit, the same for all points; coefficients have it, too. d is in bytes.

mod launches;
mod select;
mod shared;
pub mod table;
mod terms;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use machmeter_stats::regression::chi_square_q;
use machmeter_stats::segmented::{Curve, breaks};
use machmeter_stats::{Interval, StatsError};

use crate::breaks::{APART, At, JUMP, MAX_BREAKS, Verdict, prune, ranges, scatter};
use launches::{Pooled, pool};

pub use launches::LEAST_LAUNCHES;
pub use select::Form;
pub use shared::fit_shared;
pub use terms::{LEAST_P, Term};

/// Confidence level of all intervals.
pub const LEVEL: f64 = 0.95;
/// Fewest cells of a law and fewest sizes of a segment: `AICc` compares a line with a level from four points on.
pub const LEAST_CELLS: usize = 4;

/// What one launch measured at one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Participants, at least 1.
    pub p: u32,
    pub d: u64,
    pub launch: u32,
    /// Cost, above 0.
    pub value: f64,
    /// Standard error that the launch knows of, above 0.
    pub standard_error: f64,
}

/// A cost whose error is known; otherwise as [`Point`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    pub p: u32,
    pub d: u64,
    pub value: f64,
    /// Standard deviation of its error, above 0.
    pub sigma: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficient {
    pub term: Term,
    /// Factor, above 0.
    pub value: f64,
    /// Its interval, never below 0.
    pub interval: Interval,
}

/// A cost by the laws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// By the chosen law.
    pub value: f64,
    /// Spans the intervals of all laws within the margin.
    pub interval: Interval,
}

/// Why there is no Q.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoQ {
    #[error(
        "Q needs {LEAST_LAUNCHES} launches, got {0}: errors within a launch do not hold what launches differ by"
    )]
    FewLaunches(usize),
    #[error("Q needs errors of each point by itself: simulated times have those of their parameters")]
    Shared,
    #[error("Q needs more points than terms: {0} points")]
    NoFreedom(usize),
}

/// Why there is no law.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum LawError {
    #[error("{points} points were measured at p = {p}; a law needs {LEAST_CELLS}")]
    TooFew { p: u32, points: usize },
    #[error("no points; a law needs {LEAST_CELLS}")]
    Empty,
    #[error("p = {p}, d = {d} B: p, the value or its error is not positive and finite")]
    Impossible { p: u32, d: u64 },
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// Law of sizes from one to another, both included.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// Smallest size, bytes; a measured one.
    pub from_bytes: u64,
    /// Largest size, bytes: one less than the next segment's first, or the largest measured.
    pub to_bytes: u64,
    /// All laws within the margin, at least one: the chosen one, then the others by `AICc`.
    pub forms: Vec<Form>,
    /// Cells behind it.
    pub n: usize,
    /// Goodness of fit of the chosen law.
    pub q: Result<f64, NoQ>,
    /// How far the cell farthest from the chosen law lies from it, relative to the cell.
    pub misfit: f64,
}

impl Segment {
    /// The chosen law: of the fewest terms within the margin.
    pub fn chosen(&self) -> &Form {
        &self.forms[0]
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Law {
    /// It holds at this p alone: fewer than [`LEAST_P`] were measured.
    pub only_p: Option<u32>,
    /// Relative standard deviation between launches at one point, where known.
    pub between: Option<f64>,
    /// At least one, in the order of their sizes, without a hole.
    pub segments: Vec<Segment>,
}

impl Law {
    /// The segment of a size; sizes beyond the last belong to it.
    pub fn segment(&self, d: u64) -> &Segment {
        let found = self.segments.iter().find(|s| d <= s.to_bytes);
        found.unwrap_or(&self.segments[self.segments.len() - 1])
    }

    /// Cost at `p` and `d`, measured or not; `None` for another p than the only one, p of 0, or beyond the range of numbers.
    pub fn predict(&self, p: u32, d: u64) -> Option<Prediction> {
        if p == 0 || self.only_p.is_some_and(|only| only != p) {
            return None;
        }
        let forms = &self.segment(d).forms;
        let first = forms[0].predict(p, d)?;
        let (mut low, mut high) = (first.interval.low, first.interval.high);
        for form in &forms[1..] {
            let other = form.predict(p, d)?.interval;
            (low, high) = (low.min(other.low), high.max(other.high));
        }
        Some(Prediction { value: first.value, interval: Interval::new(LEVEL, low, high)? })
    }
}

/// Laws of the points of one operation, in any order: one for all p from [`LEAST_P`] values of p on, otherwise one for each p.
///
/// From [`LEAST_LAUNCHES`] on, what launches differ by is in the errors, and Q is defined. Errors: too few points, or figures that are not
/// positive and finite.
pub fn fit(points: &[Point]) -> Result<Vec<Law>, LawError> {
    check(points.iter().map(|p| Cell { p: p.p, d: p.d, value: p.value, sigma: p.standard_error }))?;
    laws(&pool(points))
}

/// The same of cells whose errors hold everything there is, as those of simulations do.
pub fn fit_known(cells: &[Cell]) -> Result<Vec<Law>, LawError> {
    check(cells.iter().copied())?;
    let mut cells = cells.to_vec();
    cells.sort_by_key(|c| (c.d, c.p));
    laws(&Pooled { cells, launches: 0, spread: None })
}

fn check(mut cells: impl Iterator<Item = Cell>) -> Result<(), LawError> {
    let possible = |v: f64| v > 0.0 && v.is_finite();
    let wrong = cells.find(|c| c.p == 0 || !possible(c.value) || !possible(c.sigma));
    wrong.map_or(Ok(()), |c| Err(LawError::Impossible { p: c.p, d: c.d }))
}

fn laws(pooled: &Pooled) -> Result<Vec<Law>, LawError> {
    let all_p: BTreeSet<u32> = pooled.cells.iter().map(|c| c.p).collect();
    if all_p.len() >= LEAST_P {
        return Ok(vec![law(&pooled.cells, None, pooled)?]);
    }
    if all_p.is_empty() {
        return Err(LawError::Empty);
    }
    let of = |p: u32| -> Vec<Cell> { pooled.cells.iter().copied().filter(|c| c.p == p).collect() };
    let each: Vec<_> = all_p.into_iter().map(|p| law(&of(p), Some(p), pooled)).collect();
    // A p with too few sizes takes no law from the others.
    if each.iter().all(Result::is_err) {
        each.into_iter().collect()
    } else {
        Ok(each.into_iter().flatten().collect())
    }
}

/// The law of cells in the order of their sizes.
fn law(cells: &[Cell], only_p: Option<u32>, pooled: &Pooled) -> Result<Law, LawError> {
    if cells.len() < LEAST_CELLS {
        return Err(LawError::TooFew { p: cells[0].p, points: cells.len() });
    }
    let by_size: Vec<&[Cell]> = cells.chunk_by(|a, b| a.d == b.d).collect();
    let starts = starts(cells, &by_size)?;
    let spread = pooled.spread.as_ref();
    let mut segments: Vec<Segment> = Vec::new();
    for range in ranges(by_size.len(), starts) {
        let own = by_size[range.clone()].concat();
        let forms = select::forms(&own, spread.map_or(0.0, |s| s.shared_reach));
        let Some(chosen) = forms.first() else { return Err(StatsError::Overflow("law").into()) };
        let q = match pooled.launches {
            launches @ 1..LEAST_LAUNCHES => Err(NoQ::FewLaunches(launches)),
            _ => chi_square_q(chosen.chi2, chosen.dof).ok_or(NoQ::NoFreedom(own.len())),
        };
        let off = |c: &Cell| (chosen.at(c.p, c.d) / c.value - 1.0).abs();
        let misfit = own.iter().map(off).fold(0.0, f64::max);
        let to_bytes = by_size.get(range.end).map_or(by_size[range.end - 1][0].d, |next| next[0].d - 1);
        let from_bytes = by_size[range.start][0].d;
        segments.push(Segment { from_bytes, to_bytes, forms, n: own.len(), q, misfit });
    }
    Ok(Law { only_p, between: spread.map(|s| s.between), segments })
}

/// Where laws of their own begin, as indices of sizes.
///
/// Breaks are found by lines over d, one for each p. Those count whose two laws gain the margin over one law for both, and where
/// that one would miss a cell by as much as a jump: other terms, as the square root of d, may do without a break.
fn starts(cells: &[Cell], by_size: &[&[Cell]]) -> Result<Vec<usize>, LawError> {
    if by_size.len() < 2 * LEAST_CELLS {
        return Ok(Vec::new());
    }
    let mut scatters: BTreeMap<u32, Vec<At>> = BTreeMap::new();
    for c in cells {
        scatters.entry(c.p).or_default().push(At { x: c.d as f64, y: c.value, sigma: c.sigma });
    }
    let scatters: BTreeMap<u32, f64> = scatters.iter().map(|(p, all)| (*p, scatter(all))).collect();
    let wider = |c: &Cell| Cell { sigma: c.sigma.hypot(scatters[&c.p] * c.value), ..*c };
    let by_size: Vec<Vec<Cell>> = by_size.iter().map(|all| all.iter().map(wider).collect()).collect();
    let x: Vec<f64> = by_size.iter().map(|all| all[0].d as f64).collect();
    let curve = |p: &u32| -> (Vec<f64>, Vec<f64>) {
        let of = |all: &Vec<Cell>| all.iter().find(|c| c.p == *p).map(|c| (c.value, c.sigma.powi(-2)));
        by_size.iter().map(|all| of(all).unwrap_or((0.0, 0.0))).unzip()
    };
    let curves: Vec<(Vec<f64>, Vec<f64>)> = scatters.keys().map(curve).collect();
    let curves: Vec<Curve<'_>> = curves.iter().map(|(y, weights)| Curve { y, weights }).collect();
    let found = breaks(&x, &curves, MAX_BREAKS, LEAST_CELLS)?;
    let judge = |from: usize, at: usize, to: usize| {
        let stretch = |from: usize, to: usize| by_size[from..to].concat();
        let (both, law) = select::least_aicc(&stretch(from, to));
        let gain = both - select::least_aicc(&stretch(from, at)).0 - select::least_aicc(&stretch(at, to)).0;
        let is_missed = |c: &Cell| {
            let off = law.as_ref().map_or(f64::INFINITY, |l| (l.at(c.p, c.d) - c.value).abs());
            off >= JUMP * c.value && off > APART * c.sigma
        };
        let counts = gain > select::MARGIN && stretch(from, to).iter().any(is_missed);
        Ok::<_, LawError>(if counts { Verdict::Counts(()) } else { Verdict::Costs(gain) })
    };
    Ok(prune(found, by_size.len(), judge)?.into_iter().map(|(at, ())| at).collect())
}
