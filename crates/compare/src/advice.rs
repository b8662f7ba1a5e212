//! Advises on the next step for unclear rows: the command, the number of runs per side, and the change that they would detect.

use machmeter_data::Record;
use machmeter_data::quantity::digits;
use machmeter_stats::distribution::t_quantile;
use machmeter_stats::quantile::median_of;

use crate::comparison::{Row, Scale, SpreadFrom, Verdict};
use crate::evidence::{Evidence, MISS, most_dof};
use crate::options::Options;
use crate::plan;

/// Least change that advice aims at: 5 % of a cost.
const WORTH_SEEING: f64 = 0.05;
/// Runs per side to measure the spread between runs, if it is only assumed.
const FIRST: usize = 3;
/// Most runs per side that are advised; beyond, longer runs or a quieter machine help more.
const MOST_RUNS: usize = 40;

/// The number of runs per side that would detect a change of 5 % in the typical unclear row. It follows from the law of the judge and the spread of this
/// machine's runs. If the spread is only assumed, the advice is to measure it first, because any number of runs would describe another machine.
pub(crate) fn advice(
    a: &[Record],
    rows: &[Row],
    evidence: &[Option<Evidence>],
    options: &Options<'_>,
) -> Option<String> {
    let is_unclear =
        |row: &Row| matches!(row.verdict, Verdict::Unclear { .. }) && row.scale == Scale::Relative;
    let unclear = rows.iter().zip(evidence).filter(|(row, _)| is_unclear(row));
    let spreads: Vec<_> = unclear.filter_map(|(_, e)| Some(e.as_ref()?.spread.clone())).collect();
    let command = plan::command(a.first()?);
    let of = |n: usize| format!("{command} -n {n} --tag side=a, then side=b; machmeter compare --by side");
    let measured: Vec<f64> = spreads.iter().filter(|s| s.from != SpreadFrom::Assumed).map(|s| s.sd).collect();
    if measured.is_empty() {
        let step = format!("Several runs a side measure what runs of this machine differ by: {}", of(FIRST));
        return (!spreads.is_empty()).then_some(step);
    }
    let sd = median_of(&measured)?;
    let aim = options.at_least.max(WORTH_SEEING);
    // For a single change among all judged rows.
    let p = options.error / evidence.iter().flatten().count().max(1) as f64;
    let detectable = |n: usize| {
        let dof = most_dof(n as f64);
        Some((t_quantile(1.0 - p / 2.0, dof)? + t_quantile(1.0 - MISS, dof)?) * sd * (2.0 / n as f64).sqrt())
    };
    let is_enough = |n: &usize| detectable(*n).is_some_and(|d| d <= aim.ln_1p());
    let (aim, sd) = (digits(100.0 * aim), digits(100.0 * sd));
    let basis = format!("Runs of the typical unclear row differ by {sd} % ({} rows)", measured.len());
    Some((FIRST..=MOST_RUNS).find(is_enough).map_or_else(
        || format!("{basis}: {MOST_RUNS} runs a side would not show {aim} %. Give longer runs, or a quieter machine (machmeter doctor)"),
        |n| format!("{basis}: {n} runs a side show a change of {aim} % in 9 of 10 comparisons: {}", of(n)),
    ))
}
