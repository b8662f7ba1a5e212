//! The comparison of two records: join by key, weigh each pair, judge them together.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use machmeter_data::{Better, Metric, Quality, Record};

use crate::comparison::{ChangeScale, Comparison, Counts, Row, RunName, Side, Verdict};
use crate::drift::DriftModels;
use crate::environment::{Difference, difference};
use crate::evidence::{Evidence, Pair, Refusal, places_differ, population, weigh};
use crate::judge::judge;
use crate::options::{Options, glob_matches};

/// Compares `b` with `a`. Never fails: what cannot be compared is a row with the reason.
pub fn compare(a: &Record, b: &Record, options: &Options<'_>) -> Comparison {
    let around = difference(a, b);
    let mut notes = Vec::new();
    let of_a = by_key(a, options, "the first run", &mut notes);
    let of_b = by_key(b, options, "the second run", &mut notes);
    let history = past(a, b, options);
    let history: Vec<BTreeMap<String, &Metric>> =
        history.iter().map(|r| by_key(r, options, "an earlier run", &mut Vec::new())).collect();

    let mut models = DriftModels::default();
    let (mut rows, mut evidence) = (Vec::new(), Vec::new());
    for (key, ma) in ordered(a, &of_a) {
        let Some(mb) = of_b.get(&key) else { continue };
        let mut row = blank(&key, ma, mb);
        let doubts = doubts(a, b, ma, mb, &around);
        let pair = Pair {
            a: ma,
            b: mb,
            history: history.iter().filter_map(|h| h.get(&key).copied()).filter(|m| usable(m, ma)).collect(),
            declared_sd: options.run_to_run.filter(|sd| sd.is_finite() && *sd >= 0.0),
            weakened: !doubts.is_empty(),
        };
        evidence.push(settle(weigh(&pair, &mut models), &mut row));
        row.reasons.extend(doubts);
        rows.push(row);
    }
    judge(&mut rows, &evidence, options);

    notes.extend(remarks(a, b, &rows));
    let (geomean, geomean_rows) = geomean(&rows);
    Comparison {
        a: name(a, "A"),
        b: name(b, "B"),
        only_a: ordered(a, &of_a).map(|(k, _)| k).filter(|k| !of_b.contains_key(k)).collect(),
        only_b: ordered(b, &of_b).map(|(k, _)| k).filter(|k| !of_a.contains_key(k)).collect(),
        counts: count(&rows),
        rows,
        environment: around.lines,
        geomean,
        geomean_rows,
        min_effect: options.min_effect,
        family_error: options.family_error,
        notes,
    }
}

/// Takes over the reasons of the evidence, or the reason why there is none as the verdict.
fn settle(found: Result<Evidence, Refusal>, row: &mut Row) -> Option<Evidence> {
    match found {
        Ok(mut e) => {
            row.reasons.append(&mut e.reasons);
            return Some(e);
        }
        // Two equal figures need no spread to be the same.
        Err(Refusal::NoSpread(_)) if row.a.value.is_some() && row.a.value == row.b.value => {}
        Err(Refusal::NoSpread(why) | Refusal::Incomparable(why)) => {
            row.verdict = Verdict::Inconclusive { why }
        }
    }
    None
}

fn by_key<'a>(
    r: &'a Record,
    options: &Options<'_>,
    which: &str,
    notes: &mut Vec<String>,
) -> BTreeMap<String, &'a Metric> {
    let mut out = BTreeMap::new();
    for m in &r.metrics {
        let key = m.key();
        let wanted =
            options.metric_glob.as_ref().is_none_or(|g| glob_matches(g, &key) || glob_matches(g, &m.id));
        if !wanted {
            continue;
        }
        match out.entry(key) {
            Entry::Occupied(e) => {
                notes.push(format!("{} occurs more than once in {which}; its first figure is used", e.key()));
            }
            Entry::Vacant(e) => {
                e.insert(m);
            }
        }
    }
    out
}

/// The metrics in `map`, those of one id together, otherwise in the order of the record.
fn ordered<'a>(
    r: &'a Record,
    map: &BTreeMap<String, &'a Metric>,
) -> impl Iterator<Item = (String, &'a Metric)> {
    let mut place: BTreeMap<&str, usize> = BTreeMap::new();
    for m in &r.metrics {
        let next = place.len();
        place.entry(&m.id).or_insert(next);
    }
    let mut metrics: Vec<&Metric> = r.metrics.iter().collect();
    metrics.sort_by_key(|m| place.get(m.id.as_str()));
    metrics
        .into_iter()
        .map(|m| (m.key(), m))
        .filter(|(k, m)| map.get(k).is_some_and(|first| std::ptr::eq(*first, *m)))
}

/// Earlier runs apart from the two themselves and their copies.
fn past<'a>(a: &'a Record, b: &'a Record, options: &Options<'a>) -> Vec<&'a Record> {
    let mut seen = BTreeSet::from([&a.id, &b.id]);
    options.history.iter().copied().filter(|r| seen.insert(&r.id)).collect()
}

/// True if an earlier figure says something about the spread of this one.
pub(crate) fn usable(earlier: &Metric, m: &Metric) -> bool {
    let finite = |v: &f64| v.is_finite();
    earlier.quality != Quality::Rejected
        && earlier.value.as_ref().is_some_and(finite)
        && earlier.blocks.iter().all(finite)
        && (earlier.unit, &earlier.estimator) == (m.unit, &m.estimator)
        && population(earlier) == population(m)
        && places_differ(earlier, m).is_none()
}

fn blank(key: &str, a: &Metric, b: &Metric) -> Row {
    let params: Vec<String> = a.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let mut flags = a.flags.clone();
    flags.extend(b.flags.iter().filter(|f| !a.flags.contains(f)).cloned());
    Row {
        key: key.to_owned(),
        id: a.id.clone(),
        params: params.join(" "),
        unit: a.unit,
        better: a.better,
        a: side(a),
        b: side(b),
        scale: ChangeScale::Relative,
        change: None,
        change_ci: None,
        half_width: None,
        p: None,
        p_adjusted: None,
        p_rank: None,
        detectable: None,
        verdict: Verdict::Same,
        reasons: Vec::new(),
        flags,
    }
}

fn side(m: &Metric) -> Side {
    Side {
        value: m.value.filter(|v| v.is_finite()),
        ci: m.own_interval().cloned(),
        population: population(m),
        n: m.n,
        location: None,
        blocks: m.blocks.len(),
        quality: m.quality,
    }
}

/// What puts the conditions of this pair in doubt, in words.
fn doubts(a: &Record, b: &Record, ma: &Metric, mb: &Metric, around: &Difference) -> Vec<String> {
    let mut out = Vec::new();
    for (which, record, metric) in [("first", a, ma), ("second", b, mb)] {
        if metric.quality == Quality::Suspect {
            out.push(format!("suspect in the {which} run ({})", metric.flags.join(", ")));
        }
        if !record.complete {
            out.push(format!("the {which} run ended before its plan ({})", record.stopped_by));
        }
    }
    if let Some(load) = &around.load {
        out.push(format!("load differs, {load}"));
    }
    if let (Some(x), Some(y)) = (ma.block_ns, mb.block_ns)
        && x.max(y) > 1.5 * x.min(y)
    {
        let human = |ns| machmeter_data::quantity::human(ns, machmeter_data::Unit::Nanoseconds);
        out.push(format!("blocks cover {} in the first run and {} in the second", human(x), human(y)));
    }
    out
}

fn count(rows: &[Row]) -> Counts {
    let mut c = Counts { rows: rows.len(), ..Counts::default() };
    for row in rows {
        match row.verdict {
            Verdict::Same => c.same += 1,
            Verdict::Better => c.better += 1,
            Verdict::Worse => c.worse += 1,
            Verdict::Changed => c.changed += 1,
            Verdict::Inconclusive { .. } => c.inconclusive += 1,
        }
    }
    c
}

/// Geometric mean of the cost ratios, minus 1, and how many there are.
fn geomean(rows: &[Row]) -> (Option<f64>, usize) {
    let logs: Vec<f64> = rows
        .iter()
        .filter_map(|r| {
            let (a, b) = (r.a.location?, r.b.location?);
            let sign = match r.better {
                Better::Lower => 1.0,
                Better::Higher => -1.0,
                Better::Neither => return None,
            };
            (a > 0.0 && b > 0.0).then(|| sign * (b / a).ln())
        })
        .collect();
    let mean = machmeter_stats::spread::mean(&logs).map(f64::exp_m1);
    (mean, logs.len())
}

fn name(r: &Record, fallback: &str) -> RunName {
    let label = r.run.tags.get("name").map_or(fallback, String::as_str);
    RunName { label: label.to_owned(), id: r.id.clone(), started: r.run.started.clone() }
}

/// Remarks on the records as a whole.
fn remarks(a: &Record, b: &Record, rows: &[Row]) -> Vec<String> {
    let mut out = Vec::new();
    if a.id == b.id {
        out.push("both are the same run".to_owned());
    }
    if let (Some(x), Some(y)) = (&a.machine.fingerprint, &b.machine.fingerprint)
        && x != y
    {
        out.push("different hardware: this compares two machines".to_owned());
    }
    for (what, x, y) in [
        ("tool version", &a.tool.version, &b.tool.version),
        ("level", &a.run.level, &b.run.level),
        ("scheduling policy", &a.run.policy, &b.run.policy),
    ] {
        if x != y {
            out.push(format!("{what} differs: {x} -> {y}"));
        }
    }
    let probes = a.run.parameters.iter().filter(|(k, v)| b.run.parameters.get(*k).is_some_and(|o| o != *v));
    out.extend(probes.map(|(k, _)| format!("{k} ran with different parameters")));
    if rows.is_empty() {
        out.push("the two records have no metric in common".to_owned());
    }
    if rows.iter().any(|r| r.verdict.is_change()) {
        out.push(
            "a verdict says that these two runs differ; whether the cause lasts, only more runs tell"
                .to_owned(),
        );
    }
    out
}
