//! The assumed spread between runs, for comparisons without several runs: measured on records of one machine (`bench/spread`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use machmeter_data::Metric;
use machmeter_data::metric::Population;
use machmeter_stats::quantile::median_of;

use crate::follows::Follows;

/// Columns: metric, operation or level, population, standard deviation (of the logarithm at equal clocks; of a share itself). If known, also the dependence
/// of the metric on the core's clock and its standard deviation.
const TABLE: &str = include_str!("assumed.txt");

/// Assumed standard deviation of the logarithm between runs of a metric. For a kind without an entry, the median of the undisturbed kinds, or of the rest.
pub(crate) fn sd(metric: &Metric, population: Option<Population>) -> f64 {
    static MEDIANS: LazyLock<[f64; 2]> = LazyLock::new(|| {
        [false, true].map(|is_undisturbed| {
            let all = KINDS.iter().filter(|(kind, _)| kind[2].starts_with("undisturbed") == is_undisturbed);
            median_of(&all.map(|(_, kind)| kind.sd).collect::<Vec<_>>()).expect("both are listed")
        })
    });
    let is_undisturbed = population == Some(Population::Undisturbed);
    listed(metric, population).map_or_else(|| MEDIANS[usize::from(is_undisturbed)], |kind| kind.sd)
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// Standard deviation between runs: of a share itself, else of the logarithm at equal clocks.
    pub(crate) sd: f64,
    pub(crate) follows: Follows,
}

static KINDS: LazyLock<BTreeMap<[&str; 3], Kind>> =
    LazyLock::new(|| TABLE.lines().filter(|l| !l.starts_with('#')).filter_map(kind).collect());

pub(crate) fn listed(metric: &Metric, population: Option<Population>) -> Option<Kind> {
    let of = metric.params.get("operation").or_else(|| metric.params.get("level")).map(ToString::to_string);
    // A metric without a clock, of a kind that has clocks, measures the clock itself: it varies as much as the clock.
    let (clock, plain) = match population {
        Some(Population::Undisturbed) => ("undisturbed_clock", "undisturbed"),
        Some(Population::CoreShared) => ("core_shared_clock", "core_shared"),
        None => ("-_clock", "-"),
    };
    let listed = |population| KINDS.get(&[metric.id.as_str(), of.as_deref().unwrap_or("-"), population]);
    let own = if metric.core_hz.is_none() { listed(clock) } else { None };
    own.or_else(|| listed(plain)).copied()
}

fn kind(line: &str) -> Option<([&str; 3], Kind)> {
    let mut words = line.split(' ');
    let [id, of, population] = [words.next()?, words.next()?, words.next()?];
    let mut number = || words.next()?.parse().ok();
    let sd = number()?;
    let follows = number().zip(number()).map(|(share, sd)| Follows { share, variance: sd * sd });
    Some(([id, of, population], Kind { sd, follows: follows.unwrap_or(Follows::ANY) }))
}
