//! Collects a figure over the stored runs of a machine.

use machmeter_data::{Metric, Record};
use machmeter_stats::regimes::LEVEL_RATIO;

use crate::figures::Sides;
use crate::options::Options;
use crate::plan::is_alike;

/// A figure over runs of one state and plan.
#[derive(Debug, Clone)]
pub struct Series {
    /// Key of the metric, with population and placement.
    pub name: String,
    /// Start of each run (RFC 3339 UTC), and its figure.
    pub points: Vec<(String, Metric)>,
}

/// Figures over runs, and the number of runs left out.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// One series per metric, population and placement.
    pub series: Vec<Series>,
    /// Number of runs with a matching figure that differ in state or plan from the latest such run.
    pub left_out: usize,
}

/// The figures that match `glob`, over `runs` (the oldest first) with the state and plan of the latest run that has one.
pub fn history(runs: &[Record], glob: &str) -> History {
    let options = Options { metric_glob: Some(glob.to_owned()), ..Options::default() };
    let has = |r: &&Record| {
        let matches = |m: &Metric| m.value.is_some_and(f64::is_finite) && options.wants(&m.key(), &m.id);
        r.metrics.iter().any(matches)
    };
    let all: Vec<&Record> = runs.iter().filter(has).collect();
    let Some(latest) = all.last() else { return History::default() };
    let alike: Vec<&Record> = all.iter().copied().filter(|r| is_alike(r, latest)).collect();
    let mut series: Vec<(Series, Option<f64>)> = Vec::new();
    for (key, figures) in Sides::new(&alike, &[], &[]).a {
        let wanted = figures
            .into_iter()
            .filter(|f| options.wants(&key, &f.metric.id) && f.metric.value.is_some_and(f64::is_finite));
        for f in wanted {
            let population = f.metric.population.map_or(String::new(), |p| format!(", {}", p.name()));
            let name = format!("{key}{population}");
            let apart_ns = f.metric.apart_ns;
            let is_near = |ns: Option<f64>| match (ns, apart_ns) {
                (Some(a), Some(b)) => (a / b).max(b / a) < LEVEL_RATIO,
                (a, b) => a.is_none() && b.is_none(),
            };
            let point = (alike[f.run].run.started.clone(), f.metric.into_owned());
            match series.iter_mut().find(|(s, ns)| s.name == name && is_near(*ns)) {
                Some((s, _)) => s.points.push(point),
                None => {
                    series.push((Series { name, points: vec![point] }, apart_ns));
                }
            }
        }
    }
    let placed = |(mut s, ns): (Series, Option<f64>)| {
        s.name.extend(ns.map(|ns| format!(", CPUs {ns:.0} ns apart")));
        s
    };
    History { series: series.into_iter().map(placed).collect(), left_out: all.len() - alike.len() }
}
