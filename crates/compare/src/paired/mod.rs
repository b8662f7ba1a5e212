//! Compares two settings that were measured in turn, in rounds ABBA or BAAB at random.
//!
//! The effect of a round is the mean of its two runs under B minus the mean of its two runs under A, of logarithms or of shares. Figures are used as they
//! are, not at equal clocks, because a setting may change the clock of the core, and rounds cancel its drift.
//!
//! Student's t tests the effect. The variance of a round's difference has two sources: the differences between rounds, and the difference between the two
//! runs of a round under one setting. The second counts for at most four degrees of freedom, because drift within a round enlarges it; its weight falls as
//! rounds accumulate. Metrics of one kind share their variances. A few interim looks spend the bound (`looks`), and Holm's procedure over all rows bounds
//! the probability of any false change. Equivalence is tested by two one-sided tests.

mod looks;
mod order;

use machmeter_data::{Metric, Record};
use machmeter_stats::moderate::{Variance, moderated};
use machmeter_stats::rank::holm;
use machmeter_stats::spread;

use crate::comparison::{Comparison, Counts, Row, Scale, Spread, SpreadFrom, Verdict};
use crate::evidence::{Evidence, Quantiles};
use crate::figures::Sides;
use crate::join::{around, joined};
use crate::judge::{NOT_EXCLUDED, change_ci, margin, unclear};
use crate::options::Options;
use crate::pair::Pair;
use looks::InterimLooks;
pub use looks::LEAST_ROUNDS;
pub use order::{RUNS_PER_ROUND, order};

/// Bound on the probability of any false change, and of a false "same" of a row.
pub const ERROR: f64 = 0.05;
/// Least standard deviation of differences of logarithms. A smaller one (below half a percent) comes from clocks that count in steps.
const LEAST_LOG_SD: f64 = 0.005;
/// Most degrees of freedom of the difference between runs of one round and setting: those of two rounds.
const WITHIN_DOF: f64 = 4.0;

/// Runs of a round: under A, under B.
pub type Round = [Vec<Record>; 2];

/// Compares `rounds` of `planned` for the matching metrics, else for those of the page. A run that ended before its plan by its time may spend the complete
/// rest of the bound in its last look. If every row is decided at a planned look, it may not.
pub fn compare(rounds: &[Round], planned: usize, options: &Options<'_>) -> Comparison {
    let looks = InterimLooks::new(planned, rounds.len());
    let found = at(rounds, &looks, options);
    if looks.is_planned_look() && !all_decided(&found) {
        return at(rounds, &looks.ended(), options);
    }
    found
}

/// True if a run of `planned` rounds may end now because every row is decided. Only planned looks count.
pub fn may_stop(rounds: &[Round], planned: usize, options: &Options<'_>) -> bool {
    if rounds.len() >= planned {
        return true;
    }
    let looks = InterimLooks::new(planned, rounds.len());
    looks.is_planned_look() && rounds.len() >= LEAST_ROUNDS && all_decided(&at(rounds, &looks, options))
}

/// True if runs under both settings share a row that can be judged; the first two runs are sufficient.
pub fn has_rows(round: &Round, options: &Options<'_>) -> bool {
    let [a, b] = round.each_ref().map(|runs| runs.iter().collect::<Vec<&Record>>());
    let sides = Sides::new(&a, &b, &[]);
    joined(&sides, &a, &b, options).iter().any(|(row, pair)| pair.is_some() && is_judged(row, options))
}

/// True for the matching rows, or without a pattern for those of the page.
fn is_judged(row: &Row, options: &Options<'_>) -> bool {
    options.wants(&row.key, &row.id) && (options.metric_glob.is_some() || row.family == "page")
}

fn all_decided(c: &Comparison) -> bool {
    c.counts.rows > c.counts.not_comparable && c.counts.unclear == 0
}

/// Figures of one row by round, for the rounds that have them under both settings.
struct Series {
    scale: Scale,
    /// B minus A.
    differences: Vec<f64>,
    /// Variance of a difference from the runs of a round under one setting, with its degrees of freedom.
    within: Vec<Variance>,
    /// Least standard deviation of a difference, from the intervals of its runs.
    own_sd: f64,
}

impl Series {
    /// Collects the comparable figures; `rounds` has those of each round and setting.
    fn new(pair: &Pair<'_>, rounds: &[[Vec<&Metric>; 2]]) -> Self {
        let values = |runs: &[&Metric], kept: &[&Metric]| {
            let of_pair = |m: &&&Metric| kept.iter().any(|k| std::ptr::eq(*k, **m));
            let runs: Vec<&Metric> = runs.iter().filter(of_pair).copied().collect();
            pair.values(&runs)
        };
        let (mut differences, mut within) = (Vec::new(), Vec::new());
        for [a, b] in rounds {
            let sides = [values(a, &pair.a), values(b, &pair.b)];
            let [Some(of_a), Some(of_b)] = sides.each_ref().map(|v| spread::mean(v)) else { continue };
            differences.push(of_b - of_a);
            let dof = |v: &Vec<f64>| (v.len() - 1) as f64;
            let squares = |v: &Vec<f64>| spread::variance(v).unwrap_or_default() * dof(v);
            let freedom: f64 = sides.iter().map(dof).sum();
            let of_run = sides.iter().map(squares).sum::<f64>() / freedom.max(1.0);
            let value = of_run * sides.iter().map(|v| 1.0 / v.len() as f64).sum::<f64>();
            within.push(Variance { value, dof: freedom });
        }
        Self { scale: pair.scale, differences, within, own_sd: pair.own_sd_of_all() }
    }

    /// Mean, variance of a difference with its degrees of freedom, and number of rounds, for the first `rounds`.
    fn first(&self, rounds: usize) -> Option<(f64, Variance, usize)> {
        let n = rounds.min(self.differences.len());
        let (used, within) = (&self.differences[..n], &self.within[..n]);
        let of_runs: f64 = within.iter().map(|v| v.dof).sum();
        let within = within.iter().map(|v| v.value * v.dof).sum::<f64>() / of_runs.max(1.0);
        let (of_rounds, of_runs) = (used.len().checked_sub(1)? as f64, of_runs.min(WITHIN_DOF));
        let dof = of_rounds + of_runs;
        let value = (of_rounds * spread::variance(used)? + of_runs * within) / dof;
        let least = if self.scale == Scale::Relative { LEAST_LOG_SD } else { self.own_sd };
        let variance = Variance { value: value.max(least.powi(2)), dof };
        Some((spread::mean(used)?, variance, used.len()))
    }
}

fn at(rounds: &[Round], looks: &InterimLooks, options: &Options<'_>) -> Comparison {
    let runs = [0, 1].map(|s| rounds.iter().flat_map(|r| &r[s]).collect::<Vec<&Record>>());
    let round_of = [0, 1].map(|s| {
        let of = rounds.iter().enumerate().flat_map(|(i, r)| std::iter::repeat_n(i, r[s].len()));
        of.collect::<Vec<usize>>()
    });
    let [a, b] = &runs;
    let sides = Sides::new(a, b, &[]);
    let of_row = |(row, pair): (Row, Option<Pair<'_>>)| {
        let mut by_round = vec![[const { Vec::new() }; 2]; rounds.len()];
        for (s, of) in [&sides.a, &sides.b].into_iter().enumerate() {
            for f in of.get(&row.key).into_iter().flatten() {
                by_round[round_of[s][f.run]][s].push(f.metric.as_ref());
            }
        }
        let series = pair.map(|pair| Series::new(&pair, &by_round));
        (row, series)
    };
    let judged = joined(&sides, a, b, options).into_iter().filter(|(row, _)| is_judged(row, options));
    let (rows, series): (Vec<Row>, Vec<_>) = judged.map(of_row).unzip();
    let mut c = around(a, b, &sides, rows, options);
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
    let level = ERROR * looks.share(last);
    let mut quantiles = Quantiles::default();
    let lone = level / series.len().max(1) as f64;
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
        row.change_ci = e
            .distance(level, &mut quantiles)
            .and_then(|half| change_ci(e, half, "t by round, over all looks"));
        (row.p, row.p_adjusted) = (Some(e.p()), Some(adjusted[i]));
        row.detectable = e.detectable(lone, &mut quantiles);
        row.spread = Some(e.spread.clone());
        row.verdict = match adjusted[i] {
            _ if same[i] <= ERROR => Verdict::Same,
            p if p > ERROR => unclear(NOT_EXCLUDED),
            _ => Verdict::of(row.better, e.difference),
        };
    }
    (c.counts, c.error) = (Counts::of(&c.rows), ERROR);
}

/// Evidence from the first `rounds`, if they are enough. Metrics with the same id and scale share their standard errors.
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
            least: difference,
            se: (v.value / n as f64).sqrt(),
            dof: v.dof,
            p_rank: None,
            spread: Spread { sd: v.value.sqrt(), dof: v.dof, from: SpreadFrom::Sides },
        });
    }
    out
}
