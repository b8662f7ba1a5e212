//! What would tell more than the runs at hand.

use machmeter_data::Record;
use machmeter_data::quantity::digits;
use machmeter_stats::distribution::normal_quantile;
use machmeter_stats::quantile::median_of;

use crate::comparison::{Row, Scale, Verdict};
use crate::evidence::Evidence;
use crate::options::Options;

/// The change that advice aims at where a smaller one matters: 5 % of a cost.
const WORTH_SEEING: f64 = 0.05;
/// Runs a side at least: fewer have no test by ranks.
const LEAST_RUNS: f64 = 6.0;
/// Runs a side beyond which nobody is sent.
const MOST_RUNS: f64 = 40.0;

/// How many runs a side would show a change of 5 %, by what the unclear rows differ by from run to run.
pub(crate) fn advice(
    a: &[Record],
    rows: &[Row],
    evidence: &[Option<Evidence>],
    options: &Options<'_>,
) -> Option<String> {
    let is_unclear =
        |row: &Row| matches!(row.verdict, Verdict::Unclear { .. }) && row.scale == Scale::Relative;
    let unclear = rows.iter().zip(evidence).filter(|(row, _)| is_unclear(row));
    let unclear: Vec<f64> = unclear.filter_map(|(_, e)| Some(e.as_ref()?.spread.sd)).collect();
    let sd = median_of(&unclear)?;
    let aim = options.at_least.max(WORTH_SEEING);
    // Two-sided at the bound of a lone change among so many, and 9 in 10.
    let judged = evidence.iter().flatten().count().max(1) as f64;
    let sure = normal_quantile(1.0 - options.error / (2.0 * judged))? + normal_quantile(0.9)?;
    let runs = (2.0 * (sure * sd / aim.ln_1p()).powi(2)).ceil().max(LEAST_RUNS);
    let basis = format!("{} unclear rows differ by {} % from run to run", unclear.len(), digits(100.0 * sd));
    let (run, aim) = (&a.first()?.run, digits(100.0 * aim));
    if runs > MOST_RUNS {
        let others = "longer ones, or a quieter machine (machmeter doctor), may";
        return Some(format!("{basis}: more runs will hardly show {aim} %; {others}"));
    }
    let verb = if run.verb == "characterize" { String::new() } else { format!("{} ", run.verb) };
    let seconds = (run.wall_ns as f64 / 1e9).round().max(1.0);
    let command = format!("machmeter {verb}-t {seconds} -n {runs} --tag side=a, then side=b");
    Some(format!("{basis}: {runs} runs a side would show {aim} %: {command}; machmeter compare --by side"))
}
