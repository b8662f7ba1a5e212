//! Calibrates the judge on this machine: it compares the machine's stored runs with each other.
//!
//! It draws two sides from the runs of one state and plan. Unchanged sides show how often a comparison reports a false change. Then it
//! raises all costs of one side by 1, 3 or 5 % and counts the rows in which the comparison finds the change. A seed fixes the draws.

use machmeter_data::{Metric, Record, Unit};
use machmeter_stats::random::Random;
use schemars::JsonSchema;
use serde::Serialize;

use crate::comparison::Scale;
use crate::join::compare;
use crate::options::Options;

/// Planted changes, as fractions.
const PLANTED: [f64; 3] = [0.01, 0.03, 0.05];
/// Numbers of runs per side, as far as the stored runs allow.
const SIDES: [usize; 6] = [1, 2, 3, 4, 6, 8];
/// Draws per number of runs per side. If one comparison in twenty has a false change, 95 of 100 calibrations show one.
const DRAWS: usize = 60;
/// Draws in the footer of a comparison, which must not take longer than the comparison. For 80 rows they give a share within some percent.
const DRAWS_OF_FOOTER: usize = 12;
/// Least number of stored runs for a calibration in the footer.
const LEAST_RUNS: usize = 8;

/// False changes and power of comparisons between stored runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Calibration {
    /// Stored runs of one state and plan.
    pub runs: usize,
    /// Results by number of runs per side.
    pub sides: Vec<Found>,
}

/// False changes and power for one number of runs per side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Found {
    /// Runs per side.
    pub runs: usize,
    /// Comparisons of unchanged runs.
    pub comparisons: usize,
    /// Comparisons that report a false change.
    pub with_false_change: usize,
    /// Rows of costs and rates per comparison, on average.
    pub rows: f64,
    /// Share of these rows in which a change of all rows is found, for each planted change.
    pub found: Vec<Planted>,
}

/// A planted change, and the share of rows that show it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Planted {
    /// The change, as a fraction.
    pub change: f64,
    /// Share of the rows in which it is found.
    pub found: f64,
}

/// Compares stored `runs` of one state and plan with each other, for every possible number of runs per side.
pub fn calibrate(runs: &[Record]) -> Calibration {
    let runs: Vec<Record> = runs.iter().map(costs).collect();
    let sides = SIDES.into_iter().filter(|n| 2 * n <= runs.len());
    Calibration { runs: runs.len(), sides: sides.map(|n| found(&runs, n, &PLANTED, DRAWS)).collect() }
}

/// The same for a change of 3 % and one number of runs per side, with fewer draws. `None` if the stored runs are too few, or fewer than eight.
pub fn calibrate_one(runs: &[Record], side: usize) -> Option<Calibration> {
    let is_enough = runs.len() >= LEAST_RUNS && side > 0 && 2 * side <= runs.len();
    let sides = || {
        let runs: Vec<Record> = runs.iter().map(costs).collect();
        vec![found(&runs, side, &[0.03], DRAWS_OF_FOOTER)]
    };
    is_enough.then(|| Calibration { runs: runs.len(), sides: sides() })
}

fn found(runs: &[Record], side: usize, planted: &[f64], draws: usize) -> Found {
    let mut random = Random::new(side as u64);
    let mut order: Vec<usize> = (0..runs.len()).collect();
    let (mut wrong, mut rows, mut hits) = (0, 0, vec![0; planted.len()]);
    let options = Options::default();
    for _ in 0..draws {
        random.shuffle(&mut order);
        let of = |drawn: &[usize], change: f64| -> Vec<Record> {
            drawn.iter().map(|i| dearer(&runs[*i], 1.0 + change)).collect()
        };
        let a = of(&order[..side], 0.0);
        let mut costs = 0;
        let mut changed = |change: f64| {
            let c = compare(&a, &of(&order[side..2 * side], change), &options);
            let is_cost = |r: &&crate::Row| r.scale == Scale::Relative && r.spread.is_some();
            costs = c.rows.iter().filter(is_cost).count();
            c.rows.iter().filter(is_cost).filter(|r| r.verdict.is_change()).count()
        };
        wrong += usize::from(changed(0.0) > 0);
        for (hits, change) in hits.iter_mut().zip(planted) {
            *hits += changed(*change);
        }
        rows += costs;
    }
    let share = |hits: usize| hits as f64 / rows.max(1) as f64;
    let found =
        planted.iter().zip(hits).map(|(change, hits)| Planted { change: *change, found: share(hits) });
    Found {
        runs: side,
        comparisons: draws,
        with_false_change: wrong,
        rows: rows as f64 / draws as f64,
        found: found.collect(),
    }
}

/// A copy of a run with only its costs and rates, and the summary, which decides their families.
fn costs(run: &Record) -> Record {
    let is_cost = |m: &&Metric| {
        m.unit != Unit::One
            && m.value.is_some_and(|v| v > 0.0)
            && m.own_interval().is_none_or(|ci| ci.low > 0.0)
    };
    let metrics = run.metrics.iter().filter(is_cost).cloned().map(|m| Metric { visits: None, ..m }).collect();
    Record { id: run.id.clone(), summary: run.summary.clone(), metrics, ..Record::default() }
}

/// A run with all figures multiplied by `factor`.
fn dearer(run: &Record, factor: f64) -> Record {
    let mut run = run.clone();
    for m in &mut run.metrics {
        let scale = |v: &mut f64| *v *= factor;
        m.value.iter_mut().chain(&mut m.blocks).for_each(scale);
        for ci in m.ci.iter_mut().chain(m.earlier.iter_mut().map(|e| &mut e.own_ci)) {
            scale(&mut ci.low);
            scale(&mut ci.high);
        }
    }
    run
}
