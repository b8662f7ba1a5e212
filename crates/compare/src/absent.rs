//! Bounds for sources of noise that a run did not name.
//!
//! A run names the sources that took most of a CPU and sums the rest by kind. An unnamed source therefore counts as zero, with that rest as its upper
//! bound.

use std::collections::{BTreeMap, BTreeSet};

use machmeter_data::metric::{ParamValue, Params};
use machmeter_data::{Interval, Metric, Quality, Record};

const SHARE: &str = "noise.source_fraction";
/// Kinds of stolen time with any possible source: too short to be listed, or of unknown cause.
const OF_ANYBODY: [&str; 2] = ["unlisted", "unknown"];
/// Prefix of the names of sums by kind.
const REST: &str = "other ";
const LEVEL: f64 = 0.95;

/// Figures of `run` for the sources `named` in other runs that it did not name, by key: the value zero with its bound.
pub(crate) fn unnamed(run: &Record, named: &BTreeMap<String, Metric>) -> Vec<(String, Metric)> {
    let own: Vec<&Metric> = run.metrics.iter().filter(|m| m.id == SHARE && m.value.is_some()).collect();
    let keys: BTreeSet<String> = own.iter().map(|m| m.key()).collect();
    let figure = |m: &Metric| {
        let mut of_cpu = own.iter().filter(|o| o.params.get("cpu") == m.params.get("cpu")).peekable();
        of_cpu.peek()?;
        let may_hold = |o: &&&Metric| {
            let kind = word(&o.params, "kind");
            OF_ANYBODY.contains(&kind) || is_rest(o) && kind == word(&m.params, "kind")
        };
        let most = |o: &&Metric| o.own_interval().map_or(o.value.unwrap_or_default(), |ci| ci.high);
        let bound = of_cpu.filter(may_hold).map(most).sum();
        Some(Metric {
            value: Some(0.0),
            ci: Interval::new(LEVEL, 0.0, bound, "bound"),
            earlier: None,
            n: 0,
            n_eff: None,
            quality: Quality::Ok,
            flags: Vec::new(),
            blocks: Vec::new(),
            ..m.clone()
        })
    };
    let missing = named.iter().filter(|(key, _)| !keys.contains(*key));
    missing.filter_map(|(key, m)| Some(((*key).clone(), figure(m)?))).collect()
}

/// True for the figure of one named source.
pub(crate) fn is_named(m: &Metric) -> bool {
    m.id == SHARE && m.value.is_some() && !OF_ANYBODY.contains(&word(&m.params, "kind")) && !is_rest(m)
}

fn is_rest(m: &Metric) -> bool {
    word(&m.params, "source").starts_with(REST)
}

fn word<'a>(params: &'a Params, name: &str) -> &'a str {
    match params.get(name) {
        Some(ParamValue::Text(t)) => t,
        _ => "",
    }
}
