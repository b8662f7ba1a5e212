//! The table of operations of `machmeter mpi` on simulated ranks: what figures of two ranks say about many.
//!
//! An operation runs once: its isolated time, until the last rank is through. It runs in rows of n and 2n: the difference by n is what one takes
//! back to back, as the probe has it. Times are exact; what they are off by comes from the parameters.

mod operations;
mod record;

use machmeter_model::laws::table::{At, Costs, Found};
use machmeter_model::laws::{LEVEL, Law, LawError, fit_shared};
use machmeter_stats::distribution::deviations;

use crate::engine::{PARTS, SimulateError, Time as _, Traced, run};
use crate::machine::{Errors, OfLink};
use crate::noise::Quiet;
use crate::params::Params;
use crate::patterns::Stepped;

pub use operations::{OPERATIONS, Operation};
pub use record::fill;

/// First rounds that a row takes at least where ranks run ahead: what piled up before the slowest rank during the first is gone by then,
/// unless it is slower than the others by less than a third.
const FIRST_ROUNDS: f64 = 4.0;
/// Rounds of the longer row at most.
const MOST_ROUNDS: u32 = 32;
/// Sizes of a segment of parameters: a law needs as many.
const SIZES: u32 = machmeter_model::laws::LEAST_CELLS as u32;

/// A point to simulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Index of the operation in [`OPERATIONS`].
    pub operation: usize,
    pub ranks: u32,
    /// Bytes of a message.
    pub bytes: u64,
}

/// A time and what it is made of, ps.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Spent {
    ps: f64,
    parts: [f64; PARTS],
}

impl Spent {
    fn of(time: &Traced) -> Self {
        Self { ps: time.ps() as f64, parts: time.spent_ps.map(|ps| ps as f64) }
    }

    /// The time of a round more.
    fn per_round(&self, longer: &Self, rounds: u32) -> Self {
        let rounds = f64::from(rounds);
        let parts = std::array::from_fn(|part| (longer.parts[part] - self.parts[part]) / rounds);
        Self { ps: (longer.ps - self.ps) / rounds, parts }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    back_to_back: Spent,
    isolated: Spent,
}

/// Bytes of messages from one to another: in each segment of the parameters the ends and two between, and 8, which the table shows.
pub fn sizes(params: &Params, (from, to): (u64, u64)) -> Vec<u64> {
    let mut all = Vec::new();
    let mut first = 0;
    for s in params.segments() {
        let (low, high) = (first.max(from), s.last_bytes.min(to));
        first = s.last_bytes.saturating_add(1);
        if low > high {
            continue;
        }
        let ratio = (high as f64 / low.max(1) as f64).ln();
        let between =
            |i: u32| (low.max(1) as f64 * (ratio * f64::from(i) / f64::from(SIZES - 1)).exp()).round();
        all.extend((1..SIZES - 1).map(|i| between(i) as u64).chain([low, high]));
    }
    all.extend(Some(8).filter(|d| (from..=to).contains(d)));
    all.sort_unstable();
    all.dedup();
    all
}

/// All points of operations: those of a pair of ranks at two ranks, those without bytes at none.
pub fn points(chosen: &[usize], ranks: &[u32], sizes: &[u64]) -> Vec<Point> {
    let mut all = Vec::new();
    for &operation in chosen {
        let o = &OPERATIONS[operation];
        for &ranks in if o.is_of_pair() { &[2] } else { ranks } {
            let sizes = o.only_bytes.as_ref().map_or(sizes, std::slice::from_ref);
            all.extend(sizes.iter().map(|&bytes| Point { operation, ranks, bytes }));
        }
    }
    all
}

impl Point {
    /// Operations and messages of all its runs, at most.
    pub fn events(&self) -> u64 {
        let operation = &OPERATIONS[self.operation];
        let rounds = if operation.runs_ahead { 2 * MOST_ROUNDS - 1 } else { 3 };
        operation.pattern(self.ranks, self.bytes).messages().saturating_mul(3 * u64::from(rounds))
    }

    /// Bound of the memory of a run, bytes. Of 1,024 ranks of all to all it took 520 a message, of a ring 900 a rank.
    pub fn memory_bytes(&self) -> u64 {
        let pattern = OPERATIONS[self.operation].pattern(self.ranks, self.bytes);
        u64::from(self.ranks) * (1000 + 600 * u64::from(pattern.lanes()))
    }

    pub fn simulate(&self, params: &Params, stop: &dyn Fn() -> bool) -> Result<Cost, SimulateError> {
        let operation = &OPERATIONS[self.operation];
        let pattern = operation.pattern(self.ranks, self.bytes);
        let time = |rounds| {
            let mut program = Stepped::new(pattern.as_ref(), self.ranks, rounds, 0);
            let done = run::<Traced, _, _>(&mut program, params, &mut Quiet, stop)?;
            Ok::<_, SimulateError>(Spent::of(&done.last().1))
        };
        let isolated = time(1)?;
        let (mut shorter, mut rounds) = (isolated, 1);
        while operation.runs_ahead && shorter.ps < FIRST_ROUNDS * isolated.ps && 2 * rounds < MOST_ROUNDS {
            rounds *= 2;
            shorter = time(rounds)?;
        }
        Ok(Cost { back_to_back: shorter.per_round(&time(2 * rounds)?, rounds), isolated })
    }
}

/// Costs and laws of points that were simulated, by operation.
pub fn analyze(of: &OfLink, done: &[(Point, Cost)]) -> Vec<Found> {
    let segments = of.params.segments();
    let errors = |bytes: u64| {
        let at = segments.iter().position(|s| bytes <= s.last_bytes).unwrap_or(segments.len() - 1);
        &of.errors[at]
    };
    done.chunk_by(|a, b| a.0.operation == b.0.operation)
        .map(|own| {
            let at = |pick: fn(&Cost) -> &Spent| -> Costs {
                let cost = |(p, cost): &(Point, Cost)| ((p.ranks, p.bytes), at(pick(cost), errors(p.bytes)));
                own.iter().map(cost).collect()
            };
            let operation = &OPERATIONS[own[0].0.operation];
            Found {
                name: operation.name,
                what: operation.what,
                costs: at(|c| &c.back_to_back),
                isolated: at(|c| &c.isolated),
                laws: laws(own, &errors),
                refused: None,
                isolated_refused: None,
                has_one_size: operation.only_bytes.is_some(),
            }
        })
        .collect()
}

fn at(spent: &Spent, errors: &Errors) -> At {
    let squares = spent.parts.iter().zip(errors.relative).map(|(ps, e)| (ps * e).powi(2));
    let (ns, error_ns) = (spent.ps / 1e3, squares.sum::<f64>().sqrt() / 1e3);
    let reach_ns = deviations(LEVEL) * error_ns;
    let (low_ns, high_ns) = ((ns - reach_ns).max(0.0), ns + reach_ns);
    At { ns, low_ns, high_ns, error_ns, freedom: f64::INFINITY, n: 1, launches: 0 }
}

/// A cause of error is a parameter of a range of sizes.
fn laws<'e>(own: &[(Point, Cost)], errors: &impl Fn(u64) -> &'e Errors) -> Result<Vec<Law>, LawError> {
    const US: f64 = 1e-6;
    let points: Vec<(u32, u64, f64)> =
        own.iter().map(|(p, c)| (p.ranks, p.bytes, c.back_to_back.ps * US)).collect();
    let mut ranges: Vec<usize> = own.iter().map(|(p, _)| errors(p.bytes).range).collect();
    ranges.sort_unstable();
    ranges.dedup();
    let causes = ranges.into_iter().flat_map(|range| (0..PARTS).map(move |part| (range, part)));
    let moved = |(range, part): (usize, usize)| {
        let by = |(p, c): &(Point, Cost)| {
            let e = errors(p.bytes);
            if e.range == range { c.back_to_back.parts[part] * e.relative[part] * US } else { 0.0 }
        };
        own.iter().map(by).collect::<Vec<f64>>()
    };
    let causes: Vec<Vec<f64>> = causes.map(moved).filter(|c| c.iter().any(|v| *v != 0.0)).collect();
    fit_shared(&points, &causes)
}
