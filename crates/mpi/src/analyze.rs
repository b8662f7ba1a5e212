//! From rows of several launches to costs and laws. Pure.

use std::collections::BTreeMap;

use machmeter_data::metric::{Params as Keys, params};
use machmeter_data::{Interval, Metric, MetricInfo};
use machmeter_engine::Analysis;
use machmeter_engine::cost::estimate::{Known, LEVEL};
use machmeter_engine::cost::{Cost, Estimator, Row, Rows};
use machmeter_engine::disturbance::placement;
use machmeter_model::laws::table::{At, Costs, Found};
use machmeter_model::laws::{self, Point};
use machmeter_stats::between::variance_between;
use machmeter_stats::distribution::deviations;
use machmeter_stats::regimes::Regimes;

use crate::cells::{BACK_TO_BACK, FOUND, ISOLATED, PART};
use crate::info;
use crate::operations::{OPERATIONS, Operation, POLLING, SLEEPING, Sized, TRAINS};
use crate::run::{ENDED_EARLY, LAUNCHES, OVERSUBSCRIBED};
use crate::worker::About;
use crate::{Params, guidelines, loggps, pairs, show};

/// How often something is named in a run where nothing is: who looks every day is misled once in three years.
pub(crate) const FALSE_ALARMS: f64 = 0.001;

pub(crate) struct Whole {
    pub(crate) launches: Vec<About>,
    /// Windows played, and those left out.
    pub(crate) windows: [u64; 2],
    pub(crate) thresholds: Vec<Metric>,
}

pub(crate) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let mut out = Analysis::default();
    let launches = rows.facts.get(&LAUNCHES).unwrap_or_default();
    let library = launches.first().map_or_else(|| "unknown".to_owned(), |l| l.library.clone());
    let levels = placement::levels(rows, PART);
    let levels = levels.as_ref();
    out.warnings.extend(placement::moved("ranks", levels));
    let mut found: Vec<Found> = OPERATIONS.iter().filter_map(|o| of_operation(rows, o, levels)).collect();
    let thresholds: Vec<Metric> =
        [&SLEEPING, &POLLING].into_iter().filter_map(|o| threshold(rows, o, &library)).collect();
    let (parameters, table) = loggps::analyze(&found, &library);
    // Trains are no calls of their own.
    found.retain(|f| !TRAINS.contains(&f.name));
    for f in &found {
        out.metrics.extend(metrics(f, &library));
    }
    out.metrics.extend(parameters);
    out.metrics.extend(thresholds.iter().cloned());
    let pairs = pairs::analyze(rows, &launches, &library);
    let (of_pairs, lines) = pairs.unwrap_or_default();
    out.metrics.extend(of_pairs.metrics);
    out.findings.extend(of_pairs.findings);
    out.warnings.extend(of_pairs.warnings);
    if rows.facts.get(&OVERSUBSCRIBED) == Some(true) {
        out.metrics.iter_mut().for_each(|m| m.flag(info::OVERSUBSCRIBED.id));
        out.warnings.push(
            info::OVERSUBSCRIBED.note(
                "ranks shared CPUs: the times are those of the scheduler, start at most one rank per CPU",
            ),
        );
    }
    if let Some(why) = rows.facts.get(&ENDED_EARLY) {
        out.warnings.push(info::ENDED_EARLY.note(why.join("; ")));
    }
    let clocks_off_ns = launches.iter().map(|l| l.clocks_off_ns).fold(0.0, f64::max);
    for (finding, warning) in guidelines::broken(&found, clocks_off_ns) {
        out.findings.push(finding);
        machmeter_engine::part::warn(&mut out.warnings, warning);
    }
    let whole = Whole { launches, windows: windows(rows), thresholds };
    out.summary.lines.extend(show::page(&found, &whole, lines));
    out.datasets = show::datasets(&found, &whole);
    out.datasets.extend(table);
    out.datasets.extend(of_pairs.datasets);
    out
}

/// Windows played and left out.
fn windows(rows: &Rows) -> [u64; 2] {
    let isolated = rows.part(PART).filter(|r| r.text("mode") == ISOLATED);
    isolated.fold([0, 0], |[all, out], r| {
        [all + r.pairs.len() as u64 + r.rejected.total(), out + r.rejected.total()]
    })
}

/// Costs of single launches by ranks and bytes.
pub(crate) type ByLaunch = BTreeMap<(u32, u64), Vec<(u32, Known)>>;

fn of_operation(rows: &Rows, operation: &'static Operation, levels: Option<&Regimes>) -> Option<Found> {
    let of = |mode: &'static str| {
        rows.part(PART).filter(move |r| r.operation == operation.name && r.text("mode") == mode)
    };
    of(BACK_TO_BACK).next()?;
    let (costs, refused) = by_launch(rows, of(BACK_TO_BACK), "ranks", levels);
    let (isolated, isolated_refused) = by_launch(rows, of(ISOLATED), "ranks", levels);
    // Of nothing to move most calls return at once, whatever they do with one byte.
    let is_message = !operation.is_collective && !operation.others.is_empty();
    let of_law = costs.iter().filter(|(key, _)| is_message || key.1 > 0 || costs.len() == 1);
    let points: Vec<Point> = of_law.flat_map(|(key, of)| of.iter().map(|l| point(*key, l))).collect();
    let laws = laws::fit(&points);
    let between = laws.as_ref().ok().and_then(|l| l.first()?.between);
    let refused = refused.filter(|_| costs.is_empty());
    let isolated_refused = isolated_refused.filter(|_| !costs.is_empty());
    let isolated_between = launches_differ(&isolated);
    Some(Found {
        name: operation.name,
        what: operation.what,
        costs: together(costs, between),
        isolated: together(isolated, isolated_between),
        laws,
        refused,
        isolated_refused,
        has_one_size: matches!(operation.sized, Sized::Only(_)),
    })
}

/// Costs of these rows at the placement of most time, by a number that they have (`ranks`) and bytes; and why the first unknown one is not known.
pub(crate) fn by_launch<'r>(
    rows: &Rows,
    of: impl Iterator<Item = &'r Row>,
    number: &str,
    levels: Option<&Regimes>,
) -> (ByLaunch, Option<String>) {
    let (mut found, mut refused) = (ByLaunch::new(), Vec::new());
    for row in of {
        let int = |name: &str| u64::try_from(row.int(name).unwrap_or(0)).unwrap_or(0);
        let key = (int(number) as u32, int("size_bytes"));
        match placement::cost(rows, row, levels) {
            Cost::Known(known) => found.entry(key).or_default().push((int("launch") as u32, known)),
            Cost::Below { bound_ns, .. } => {
                refused.push((key, format!("below resolution at {} B: at most {bound_ns:.0} ns", key.1)));
            }
            Cost::Unknown { why } => refused.push((key, why)),
        }
    }
    let unknown = refused.into_iter().find(|(key, _)| !found.contains_key(key));
    (found, unknown.map(|(_, why)| why))
}

/// Relative standard deviation between launches, pooled; `None` with fewer than three of them.
pub(crate) fn launches_differ(found: &ByLaunch) -> Option<f64> {
    let group = |of: &Vec<(u32, Known)>| {
        let log =
            |(_, known): &(u32, Known)| [known.value_ns.ln(), (error_ns(known) / known.value_ns).powi(2)];
        of.iter().map(log).collect::<Vec<[f64; 2]>>()
    };
    let groups: Vec<Vec<[f64; 2]>> = found.values().filter(|of| of.len() > 2).map(group).collect();
    let freedom = groups.iter().map(|g| g.len() as f64 - 1.0).sum();
    variance_between(&groups, freedom).map(f64::sqrt)
}

fn error_ns(known: &Known) -> f64 {
    (known.high_ns - known.low_ns) / 2.0 / deviations(LEVEL)
}

/// In us, as the table of the seed.
fn point((p, d): (u32, u64), (launch, known): &(u32, Known)) -> Point {
    let standard_error = (error_ns(known) / 1e3).max(f64::MIN_POSITIVE);
    Point { p, d, launch: *launch, value: known.value_ns / 1e3, standard_error }
}

/// Means over launches. What launches differ by is pooled over all sizes of the operation, so that three tell it.
pub(crate) fn together(by_launch: ByLaunch, between: Option<f64>) -> Costs {
    let freedom: f64 = by_launch.values().map(|of| of.len() as f64 - 1.0).sum();
    let freedom = if between.is_some() { freedom } else { f64::INFINITY };
    let at = |of: Vec<(u32, Known)>| {
        let launches = of.len();
        let k = launches as f64;
        let ns = of.iter().map(|l| l.1.value_ns).sum::<f64>() / k;
        let own = of.iter().map(|l| error_ns(&l.1).powi(2)).sum::<f64>() / (k * k);
        let error_ns = (own + (between.unwrap_or(0.0) * ns).powi(2) / k).sqrt();
        let reach_ns = deviations(LEVEL) * error_ns;
        let n = of.iter().map(|l| l.1.n as u64).sum();
        At { ns, low_ns: (ns - reach_ns).max(0.0), high_ns: ns + reach_ns, error_ns, freedom, n, launches }
    };
    by_launch.into_iter().map(|(key, of)| (key, at(of))).collect()
}

pub(crate) fn metric(at: &At, info: &MetricInfo, keys: Keys) -> Metric {
    let interval = Interval::new(LEVEL, at.low_ns, at.high_ns, method(at));
    Metric::new(info, keys, at.ns, "mean of launches' medians", at.n).with_ci(interval)
}

pub(crate) fn method(at: &At) -> &'static str {
    if at.launches > 1 { "rank, and what launches differ by" } else { "rank, one launch" }
}

fn metrics(f: &Found, library: &str) -> Vec<Metric> {
    let keys = |more: &[(&str, u64)]| {
        let mut keys = params([("operation", f.name.into()), ("library", library.into())]);
        keys.extend(more.iter().map(|(name, n)| ((*name).to_owned(), (*n).into())));
        keys
    };
    let mut all = Vec::new();
    for (info, refused) in [(&info::COST, &f.refused), (&info::ISOLATED, &f.isolated_refused)] {
        let metric =
            |why: &String| Metric::rejected(info, keys(&[]), Estimator::MiddleDifferences.name(), why);
        all.extend(refused.as_ref().map(metric));
    }
    for (info, costs) in [(&info::COST, &f.costs), (&info::ISOLATED, &f.isolated)] {
        for ((ranks, bytes), at) in costs {
            let keys = keys(&[("size_bytes", *bytes), ("ranks", u64::from(*ranks))]);
            all.push(metric(at, info, keys));
        }
    }
    for law in f.laws.iter().flatten() {
        for s in &law.segments {
            let mut more = vec![("from_bytes", s.from_bytes)];
            more.extend(law.only_p.map(|p| ("ranks", u64::from(p))));
            let n = s.n as u64;
            for c in &s.chosen().terms {
                let mut keys = keys(&more);
                keys.insert("term".to_owned(), c.term.name().into());
                let ci = Interval::new(LEVEL, 1e3 * c.interval.low, 1e3 * c.interval.high, "least squares");
                all.push(
                    Metric::new(&info::COEFFICIENT, keys, 1e3 * c.value, "weighted sum of terms", n)
                        .with_ci(ci),
                );
            }
            let keys = keys(&more);
            all.push(Metric::new(&info::MISFIT, keys.clone(), s.misfit, "largest of points", n));
            all.push(match &s.q {
                Ok(q) => Metric::new(&info::FIT, keys, *q, "chi square", n),
                Err(why) => Metric::rejected(&info::FIT, keys, "chi square", &why.to_string()),
            });
        }
    }
    all
}

/// A threshold over all launches; without a figure where searches differ, or where no size waited.
fn threshold(rows: &Rows, operation: &Operation, library: &str) -> Option<Metric> {
    let receiver = if operation.name == SLEEPING.name { "sleeping" } else { "polling" };
    let keys = params([("receiver", receiver.into()), ("library", library.into())]);
    let own: Vec<&Row> = rows.part(PART).filter(|r| r.operation == operation.name).collect();
    let rejected = |why: &str| Some(Metric::rejected(&info::THRESHOLD, keys.clone(), "bisection", why));
    let of = |name: &str| own.iter().filter_map(|r| r.extras.get(name).copied()).collect::<Vec<f64>>();
    let [least, most, searches] = FOUND.map(of);
    let (Some(least), Some(most)) = (least.into_iter().reduce(f64::min), most.into_iter().reduce(f64::max))
    else {
        return rejected(own.first()?.refused.as_deref().unwrap_or("not reached in the time given"));
    };
    let searches = searches.iter().sum::<f64>();
    // Samples hold no number of bytes above this.
    if least > 1e15 {
        return rejected("no size of those measured waits");
    }
    if least < most {
        return rejected(&format!("{searches} searches differ: {least:.0} to {most:.0} B"));
    }
    let interval = Interval::new(LEVEL, least, most, "range of searches");
    Some(Metric::new(&info::THRESHOLD, keys, most, "bisection", searches as u64).with_ci(interval))
}
