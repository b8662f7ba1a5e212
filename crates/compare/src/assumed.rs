//! What single runs are assumed to differ by where no earlier ones tell: what records of one machine differed by (`bench/spread`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use machmeter_data::Metric;
use machmeter_data::metric::Population;

/// Metric, operation or level, population, standard deviation of the logarithm, of a share itself.
const TABLE: &str = include_str!("assumed.txt");
/// Of a kind that the table does not have: the median of its undisturbed kinds, and of the others.
const UNDISTURBED: f64 = 0.0078;
const OTHER: f64 = 0.1335;

/// Standard deviation of the logarithm from run to run that is assumed of a metric.
pub(crate) fn sd(metric: &Metric, population: Option<Population>) -> f64 {
    let other = if population == Some(Population::Undisturbed) { UNDISTURBED } else { OTHER };
    listed(metric, population).unwrap_or(other)
}

/// Standard deviation from run to run that is listed for a metric: of a share itself, else of the logarithm.
pub(crate) fn listed(metric: &Metric, population: Option<Population>) -> Option<f64> {
    static KINDS: OnceLock<BTreeMap<[&str; 3], f64>> = OnceLock::new();
    let kinds =
        KINDS.get_or_init(|| TABLE.lines().filter(|l| !l.starts_with('#')).filter_map(kind).collect());
    let of = metric.params.get("operation").or_else(|| metric.params.get("level")).map(ToString::to_string);
    let population_name = match population {
        Some(Population::Undisturbed) => "undisturbed",
        Some(Population::CoreShared) => "core_shared",
        None => "-",
    };
    kinds.get(&[metric.id.as_str(), of.as_deref().unwrap_or("-"), population_name]).copied()
}

fn kind(line: &str) -> Option<([&str; 3], f64)> {
    let mut words = line.split(' ');
    let [id, of, population] = [words.next()?, words.next()?, words.next()?];
    Some(([id, of, population], words.next()?.parse().ok()?))
}
