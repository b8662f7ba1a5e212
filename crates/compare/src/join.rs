//! Compares two sides: joins figures by key and population, weighs each pair, and judges the pairs by family.

use std::collections::{BTreeMap, BTreeSet};

use machmeter_data::{Metric, Record};
use machmeter_stats::quantile::median_of;

use crate::advice::advice;
use crate::assumed;
use crate::comparison::{Comparison, Counts, Group, Row, RunName, Scale, Side, SpreadFrom, Verdict};
use crate::environment::difference;
use crate::evidence::weigh;
use crate::figures::{Figures, Sides, metrics};
use crate::judge::{judge, unclear};
use crate::options::Options;
use crate::pair::Pair;
use crate::plan::is_alike;
use crate::variation::{Variation, lend};

/// Compares the runs of `b` with those of `a`. It never fails: a figure that cannot be compared is a row with the reason.
pub fn compare(a: &[Record], b: &[Record], options: &Options<'_>) -> Comparison {
    let [of_a, of_b] = [a, b].map(|side| side.iter().collect::<Vec<_>>());
    let past: Vec<&Record> = before(a, b, options.history).collect();
    let sides = Sides::new(&of_a, &of_b, &past);
    let (mut rows, pairs): (Vec<Row>, Vec<_>) = joined(&sides, &of_a, &of_b, options).into_iter().unzip();
    let found: Vec<_> =
        rows.iter().zip(&pairs).filter_map(|(r, p)| Some((r.id.as_str(), p.as_ref()?))).collect();
    // Rows outside the selection also contribute to the common spread.
    let mut variations: Vec<_> = found.iter().map(|(_, p)| Variation::of_runs(p)).collect();
    lend(&found, &mut variations);
    let mut variations = variations.into_iter();
    let mut evidence: Vec<_> =
        pairs.iter().map(|p| weigh(p.as_ref()?, variations.next().flatten())).collect();
    for ((row, pair), e) in rows.iter_mut().zip(&pairs).zip(&evidence) {
        if pair.is_some() && e.is_none() {
            row.verdict = without_spread(row);
        }
    }
    let mut wanted = rows.iter().map(|r| options.wants(&r.key, &r.id)).collect::<Vec<_>>().into_iter();
    evidence.retain(|_| wanted.next().unwrap_or_default());
    rows.retain(|r| options.wants(&r.key, &r.id));
    let families = judge(&mut rows, &evidence, options);
    let advice = advice(a, &rows, &evidence, options);
    let is_assumed = |r: &&Row| r.spread.as_ref().is_some_and(|s| s.from == SpreadFrom::Assumed);
    let assumed = rows.iter().filter(is_assumed).count();
    let mut found = Comparison { families, assumed, advice, ..around(&of_a, &of_b, &sides, rows, options) };
    found.notes.extend(by_clock(&found.rows));
    found
}

/// A comparison from judged rows: all fields except families and advice.
pub(crate) fn around(
    a: &[&Record],
    b: &[&Record],
    sides: &Sides<'_>,
    rows: Vec<Row>,
    options: &Options<'_>,
) -> Comparison {
    let lone = |of: &Figures<'_>, other: &Figures<'_>| -> Vec<String> {
        let is_lone = |key: &str, m: &Metric| !other.contains_key(key) && options.wants(key, &m.id);
        of.iter().filter(|(key, of)| is_lone(key, &of[0].metric)).map(|(key, _)| key.clone()).collect()
    };
    let repeated = sides.repeated.iter().filter(|(key, _)| rows.iter().any(|r| r.key == *key));
    let once = |(key, run): &(String, String)| {
        format!("{key} occurs more than once in run {run}; its first figure is used")
    };
    let mut notes: Vec<String> = repeated.map(once).collect();
    notes.extend(remarks(a, b, &rows));
    Comparison {
        a: group(a, "A"),
        b: group(b, "B"),
        only_a: lone(&sides.a, &sides.b),
        only_b: lone(&sides.b, &sides.a),
        counts: Counts::of(&rows),
        assumed: 0,
        advice: None,
        calibration: None,
        rows,
        families: Vec::new(),
        environment: a.last().zip(b.first()).map(|(a, b)| difference(a, b)).unwrap_or_default(),
        at_least: options.at_least,
        error: options.error,
        notes,
    }
}

/// The rows that both sides have, before judgment, each with its pair of figures if these are comparable.
pub(crate) fn joined<'f>(
    sides: &'f Sides<'_>,
    a: &[&Record],
    b: &[&Record],
    options: &Options<'_>,
) -> Vec<(Row, Option<Pair<'f>>)> {
    let on_page = on_page(&a.iter().chain(b));
    let both = |key: &&String| sides.b.contains_key(*key);
    let row = |key: &String| {
        let [of_a, of_b, earlier] = [&sides.a, &sides.b, &sides.earlier].map(|of| metrics(of, key));
        let pair = Pair::new(&of_a, &of_b, &earlier);
        (blank(key, &of_a, &of_b, &pair, &on_page, options), pair.ok())
    };
    ordered(a.iter().chain(b), &sides.a).into_iter().filter(both).map(row).collect()
}

/// Two equal figures are the same, even without a spread.
fn without_spread(row: &Row) -> Verdict {
    if row.a.value.is_some() && row.a.value == row.b.value {
        return Verdict::Same;
    }
    unclear("one figure a side without interval: nothing tells how far it could be off")
}

/// Median deviation from another run, in assumed standard deviations, from which a run counts as being in another state.
const OTHER_STATE_SD: f64 = 5.0;

/// Runs before the first side and in its state: same machine, program, plan and environment, and similar figures. A run in another state gives no
/// information about the first side.
fn before<'a>(a: &[Record], b: &[Record], history: &'a [Record]) -> impl Iterator<Item = &'a Record> {
    let first = a.iter().min_by(|x, y| x.run.started.cmp(&y.run.started)).cloned();
    let mut seen: BTreeSet<String> = a.iter().chain(b).map(|r| r.id.clone()).collect();
    let is_of_state = move |r: &Record, a: &Record| {
        let is_before = r.complete && r.run.started < a.run.started;
        is_before && is_alike(r, a) && are_figures_alike(r, a)
    };
    history
        .iter()
        .filter(move |r| first.as_ref().is_some_and(|a| is_of_state(r, a)) && seen.insert(r.id.clone()))
}

fn are_figures_alike(r: &Record, a: &Record) -> bool {
    let of_a: BTreeMap<String, &Metric> = a.metrics.iter().map(|m| (m.key(), m)).collect();
    let off = |m: &Metric| {
        let other = *of_a.get(&m.key())?;
        let sd = assumed::sd(m, m.population);
        let ratio = (m.value? / other.value?).ln();
        // A difference that the clock of the core may explain is not another state.
        let cycle = m.core_hz.zip(other.core_hz).map_or(0.0, |(hz, of_other)| (of_other / hz).ln());
        let beyond = ratio - ratio.clamp(cycle.min(0.0), cycle.max(0.0));
        (ratio.is_finite() && m.population == other.population).then(|| beyond.abs() / sd)
    };
    let off: Vec<f64> = r.metrics.iter().filter_map(off).collect();
    median_of(&off).is_none_or(|off| off <= OTHER_STATE_SD)
}

/// Keys of the first side, grouped by id, otherwise in the order of `runs`.
fn ordered<'a, 'r>(runs: impl Iterator<Item = &'r &'r Record>, of: &'a Figures<'_>) -> Vec<&'a String> {
    let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
    let mut places: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for m in runs.flat_map(|r| &r.metrics) {
        let next = ids.len();
        let id = *ids.entry(&m.id).or_insert(next);
        let next = places.len();
        places.entry(m.key()).or_insert((id, next));
    }
    let mut keys: Vec<&String> = of.keys().collect();
    keys.sort_by_key(|k| places.get(*k));
    keys
}

/// Keys of the figures on the page of any run. If a page has only details (one task under one load), the details.
fn on_page<'r>(runs: &(impl Iterator<Item = &'r &'r Record> + Clone)) -> BTreeSet<String> {
    let keys = |details: bool| -> BTreeSet<String> {
        let rows = runs.clone().flat_map(|r| &r.summary.rows).filter(|r| details || !r.detail);
        rows.flat_map(|r| &r.figures).map(|f| machmeter_data::metric::key_of(&f.id, &f.params)).collect()
    };
    let keys_of_page = keys(false);
    if keys_of_page.is_empty() { keys(true) } else { keys_of_page }
}

fn blank(
    key: &str,
    a: &[&Metric],
    b: &[&Metric],
    pair: &Result<Pair<'_>, String>,
    on_page: &BTreeSet<String>,
    options: &Options<'_>,
) -> Row {
    let first = a[0];
    let params: Vec<String> = first.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let probe = first.id.split('.').next().unwrap_or_default();
    let family = match &options.metric_glob {
        Some(glob) => glob.as_str(),
        None if on_page.contains(key) => "page",
        None => probe,
    };
    let (of_a, of_b) = pair.as_ref().map_or((a, b), |p| (p.a.as_slice(), p.b.as_slice()));
    Row {
        key: key.to_owned(),
        id: first.id.clone(),
        params: params.join(" "),
        family: family.to_owned(),
        unit: first.unit,
        better: first.better,
        population: pair.as_ref().ok().and_then(|p| p.population),
        a: side(of_a),
        b: side(of_b),
        scale: pair.as_ref().map_or(Scale::Relative, |p| p.scale),
        change: None,
        change_ci: None,
        by_clock: None,
        p: None,
        p_adjusted: None,
        p_rank: None,
        detectable: None,
        spread: None,
        verdict: pair.as_ref().err().map_or(Verdict::Same, |why| Verdict::NotComparable { why: why.clone() }),
        reasons: pair.as_ref().map(|p| p.reasons.clone()).unwrap_or_default(),
    }
}

fn side(runs: &[&Metric]) -> Side {
    let values: Vec<f64> = runs.iter().filter_map(|m| m.value).filter(|v| v.is_finite()).collect();
    let ci = if let [one] = runs { one.own_interval().cloned() } else { None };
    Side { value: median_of(&values), ci, runs: values.len() }
}

fn group(runs: &[&Record], fallback: &str) -> Group {
    let label = runs.first().and_then(|r| r.run.tags.get("name")).map_or(fallback, String::as_str);
    let name = |r: &&Record| RunName {
        id: r.id.clone(),
        started: r.run.started.clone(),
        cpu: r.machine.before.text("cpu.model").unwrap_or_default().to_owned(),
        command: r.run.command.join(" "),
    };
    Group { label: label.to_owned(), runs: runs.iter().map(name).collect() }
}

fn remarks(a: &[&Record], b: &[&Record], rows: &[Row]) -> Vec<String> {
    let mut out = Vec::new();
    if a.iter().any(|x| b.iter().any(|y| x.id == y.id)) {
        out.push("a run stands on both sides".to_owned());
    }
    let all = || a.iter().chain(b);
    let several = |of: &dyn Fn(&Record) -> String| {
        let values: BTreeSet<String> = all().map(|r| of(r)).collect();
        (values.len() > 1).then(|| values.into_iter().collect::<Vec<_>>().join(", "))
    };
    if several(&|r| r.machine.fingerprint.clone().unwrap_or_default()).is_some() {
        out.push("different hardware: this compares machines".to_owned());
    }
    let mut differs = |what: &str, of: &dyn Fn(&Record) -> String| {
        out.extend(several(of).map(|values| format!("{what} differs: {values}")));
    };
    differs("tool version", &|r| r.tool.version.clone());
    differs("level", &|r| r.run.level.clone());
    differs("scheduling policy", &|r| r.run.policy.clone());
    let probes: BTreeSet<&String> = all().flat_map(|r| r.run.parameters.keys()).collect();
    for probe in probes {
        let given = all().filter_map(|r| r.run.parameters.get(probe)).map(ToString::to_string);
        if given.collect::<BTreeSet<_>>().len() > 1 {
            out.push(format!("{probe} ran with different parameters"));
        }
    }
    if all().any(|r| !r.complete) {
        out.push("a run ended before its plan".to_owned());
    }
    if rows.is_empty() {
        out.push("the two sides have no metric in common".to_owned());
    }
    out
}

/// A line on the part of the changes that the clock of the core explains, if that part is large enough.
fn by_clock(rows: &[Row]) -> Option<String> {
    let by_clock: Vec<f64> = rows.iter().filter_map(|r| r.by_clock).collect();
    // Smaller values round to zero.
    let median = median_of(&by_clock).filter(|m| m.abs() >= 0.0005)?;
    let (n, percent) = (by_clock.len(), 100.0 * median);
    Some(format!(
        "the clock of the core differs: {percent:+.1} % of {n} costs (median), which are judged at equal clocks"
    ))
}
