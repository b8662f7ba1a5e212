//! Two settings that were measured in turn, in rounds ABBA or BAAB by a coin.
//!
//! The unit is the round: mean of its two runs under B less that of its two runs under A, of logarithms or of shares. Student's t over
//! rounds tests it; standard errors of alike metrics lend to each other. Interim looks are few and spend the bound (`looks`), and Holm's
//! procedure over all rows bounds the probability of any false change. Equivalence is two one-sided tests.

mod looks;
mod order;

use machmeter_data::{Metric, Record};
use machmeter_stats::moderate::{Variance, moderated};
use machmeter_stats::rank::holm;
use machmeter_stats::spread;

use crate::comparison::{Comparison, Counts, Row, Scale, Spread, SpreadFrom, Verdict};
use crate::evidence::Evidence;
use crate::judge::{NOT_EXCLUDED, change_ci, margin, unclear};
use crate::options::Options;
use crate::pair::Pair;
use looks::InterimLooks;
pub use looks::LEAST_ROUNDS;
pub use order::{RUNS_PER_ROUND, order};

/// Bound on the probability of any false change, and of a false "same" of a row.
pub const ERROR: f64 = 0.05;
/// Differences of logarithms that vary less than this (half a percent) come from clocks that count in steps.
const LEAST_LOG_SD: f64 = 0.005;

/// Runs of a round: under A, under B.
pub type Round = [Vec<Record>; 2];

/// What `rounds` of `planned` say about the metrics that match, else those of the page. A run that ended before its plan, by its time,
/// may spend all of the bound that is left in its last look; where every row is decided at a look of the plan, it may not.
pub fn compare(rounds: &[Round], planned: usize, options: &Options<'_>) -> Comparison {
    let looks = InterimLooks::new(planned, rounds.len());
    let found = at(rounds, &looks, options);
    if looks.is_planned_look() && !all_decided(&found) {
        return at(rounds, &looks.ended(), options);
    }
    found
}

/// Whether a run of `planned` rounds may end now, since every row is decided. Only looks of the plan can say so.
pub fn may_stop(rounds: &[Round], planned: usize, options: &Options<'_>) -> bool {
    if rounds.len() >= planned {
        return true;
    }
    let looks = InterimLooks::new(planned, rounds.len());
    looks.is_planned_look() && rounds.len() >= LEAST_ROUNDS && all_decided(&at(rounds, &looks, options))
}

fn all_decided(c: &Comparison) -> bool {
    c.counts.rows > c.counts.not_comparable && c.counts.unclear == 0
}

/// The differences of one row by round, those that both settings have.
struct Series {
    scale: Scale,
    differences: Vec<f64>,
    /// Standard deviation of a difference by the intervals of its runs, at least.
    own_sd: f64,
}

impl Series {
    /// Of the figures that can be compared; `rounds` has those of each round and setting.
    fn new(pair: &Pair<'_>, rounds: &[[Vec<&Metric>; 2]]) -> Self {
        let level = |runs: &[&Metric], kept: &[&Metric]| {
            let of_pair = |m: &&&Metric| kept.iter().any(|k| std::ptr::eq(*k, **m));
            let runs: Vec<&Metric> = runs.iter().filter(of_pair).copied().collect();
            spread::mean(&pair.values(&runs))
        };
        let difference = |[a, b]: &[Vec<&Metric>; 2]| Some(level(b, &pair.b)? - level(a, &pair.a)?);
        Self {
            scale: pair.scale,
            differences: rounds.iter().filter_map(difference).collect(),
            own_sd: pair.own_sd_of_all(),
        }
    }

    /// Mean, variance of a difference with its degrees of freedom, and rounds, of the first `rounds`.
    fn first(&self, rounds: usize) -> Option<(f64, Variance, usize)> {
        let used = &self.differences[..rounds.min(self.differences.len())];
        let least = if self.scale == Scale::Relative { LEAST_LOG_SD } else { self.own_sd };
        let value = spread::variance(used)?.max(least.powi(2));
        Some((spread::mean(used)?, Variance { value, dof: (used.len() - 1) as f64 }, used.len()))
    }
}

fn at<'r>(rounds: &'r [Round], looks: &InterimLooks, options: &Options<'_>) -> Comparison {
    // Settings may be about the clock of the core, and rounds cancel its drift: costs are judged as they are, not at equal clocks.
    let mut sides = [0, 1].map(|s| rounds.iter().flat_map(|r| r[s].clone()).collect::<Vec<Record>>());
    sides.iter_mut().flatten().flat_map(|r| &mut r.metrics).for_each(|m| m.core_hz = None);
    let [a, b] = sides;
    let mut c = crate::join::compare(&a, &b, &Options { history: &[], ..options.clone() });
    if options.metric_glob.is_none() {
        c.rows.retain(|r| r.family == "page");
    }
    let of_row = |row: &Row| {
        let of_runs = |runs: &'r Vec<Record>| -> Vec<&'r Metric> {
            runs.iter().filter_map(|r| r.metrics.iter().find(|m| m.key() == row.key)).collect()
        };
        let by_round: Vec<[Vec<&Metric>; 2]> = rounds.iter().map(|r| r.each_ref().map(of_runs)).collect();
        let [a, b] = [0, 1].map(|s| by_round.iter().flat_map(|r| r[s].clone()).collect::<Vec<_>>());
        Some(Series::new(&Pair::new(&a, &b, &[]).ok()?, &by_round))
    };
    let series: Vec<Option<Series>> = c.rows.iter().map(of_row).collect();
    judge(&mut c, &series, looks, options);
    c
}

fn judge(c: &mut Comparison, series: &[Option<Series>], looks: &InterimLooks, options: &Options<'_>) {
    let last = looks.at.len() - 1;
    let mut sequential = vec![1.0_f64; series.len()];
    let mut same = vec![1.0_f64; series.len()];
    let mut found: Vec<Option<Evidence>> = vec![None; series.len()];
    for (k, rounds) in looks.at.iter().enumerate() {
        found = evidence(c, series, *rounds);
        for (i, e) in found.iter().enumerate() {
            if let Some(e) = e {
                sequential[i] = sequential[i].min(looks.sequential_p(k, e.p()));
                same[i] = same[i].min(looks.sequential_p(k, e.p_outside(margin(e.scale, options.at_least))));
            }
        }
    }
    let adjusted = holm(&sequential);
    let lone = looks.level(last, ERROR / series.len().max(1) as f64);
    let level = looks.level(last, ERROR);
    for (i, row) in c.rows.iter_mut().enumerate() {
        if matches!(row.verdict, Verdict::NotComparable { .. }) {
            continue;
        }
        (row.change, row.change_ci, row.p, row.p_adjusted, row.p_rank, row.detectable) = Default::default();
        let Some(e) = &found[i] else {
            let rounds = series[i].as_ref().map_or(0, |s| s.differences.len());
            row.verdict =
                unclear(&format!("{rounds} rounds with both settings; a verdict needs {LEAST_ROUNDS}"));
            continue;
        };
        row.change = Some(e.scale.change(e.difference));
        row.change_ci = e.distance(level).and_then(|half| change_ci(e, half, "t by round, over all looks"));
        (row.p, row.p_adjusted) = (Some(e.p()), Some(adjusted[i]));
        row.detectable = e.detectable(lone);
        row.spread = Some(e.spread.clone());
        row.verdict = match adjusted[i] {
            _ if same[i] <= ERROR => Verdict::Same,
            p if p > ERROR => unclear(NOT_EXCLUDED),
            _ => Verdict::of(row.better, e.difference),
        };
    }
    (c.counts, c.error, c.advice) = (Counts::of(&c.rows), ERROR, None);
    c.families.clear();
}

/// Evidence of the first `rounds` where they are enough; standard errors of one metric and scale lend to each other.
fn evidence(c: &Comparison, series: &[Option<Series>], rounds: usize) -> Vec<Option<Evidence>> {
    let own: Vec<_> = series.iter().map(|s| s.as_ref()?.first(rounds)).collect();
    let mut out = vec![None; series.len()];
    for (i, row) in c.rows.iter().enumerate() {
        let alike: Vec<usize> = (0..series.len())
            .filter(|j| own[*j].is_some() && c.rows[*j].id == row.id && c.rows[*j].scale == row.scale)
            .collect();
        let variances: Vec<Variance> = alike.iter().filter_map(|j| Some(own[*j]?.1)).collect();
        let (lent, _) = moderated(&variances);
        let lent = alike.iter().position(|j| *j == i).and_then(|at| lent.get(at));
        let Some(((difference, _, n), v)) = own[i].zip(lent).filter(|((.., n), _)| *n >= LEAST_ROUNDS) else {
            continue;
        };
        out[i] = Some(Evidence {
            scale: row.scale,
            difference,
            by_clock: 0.0,
            se: (v.value / n as f64).sqrt(),
            dof: v.dof,
            p_rank: None,
            spread: Spread { sd: v.value.sqrt(), dof: v.dof, from: SpreadFrom::Sides },
        });
    }
    out
}
