//! Levels of each couple of CPUs, and the cost of each kind of transfer on each level.

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, digits, human};
use machmeter_data::record::{Finding, Warning};
use machmeter_data::{Interval, Metric};
use machmeter_engine::Analysis;
use machmeter_engine::cost::estimate::{FEWEST, LEVEL};
use machmeter_engine::cost::{Cost, Pair, Row, Rows};
use machmeter_loops::sync::transfer::Kind;
use machmeter_stats::regimes::{LEVEL_RATIO, Regime, Regimes, level_name, regimes};

use super::{ASYMMETRY, CLASSES, CORE_TO_CORE, COUPLES, PART, REGIME_SHARE, SAMPLED, show};
use crate::sync::Params;
use crate::sync::cost::one_cpu;
use machmeter_engine::disturbance::placement::{MOVED, MOVES};

/// Ratio of two directions from which on they differ.
const ASYMMETRIC: f64 = 1.25;
/// Couples whose figures become metrics at most; the matrices hold those of up to 32 CPUs, and both say so.
pub(super) const COUPLES_MAX: usize = 64;
/// Placements of a couple that are reported at most.
const PLACEMENTS_MAX: usize = 4;

/// Where the host has put two CPUs, as the cost of a line shows it.
pub(super) struct Placement<'v> {
    /// `near`, `far`, or `level 2 of 3`.
    pub(super) name: String,
    pub(super) level: usize,
    pub(super) regime: &'v Regime,
    /// The one with the largest share of the time.
    pub(super) is_main: bool,
}

/// Two CPUs and the levels between them.
pub(super) struct View<'r> {
    pub(super) low: usize,
    pub(super) high: usize,
    pub(super) class: String,
    /// Moments (ns) and one-way latencies (ns) of all laps, in order of time.
    pub(super) times_ns: Vec<f64>,
    pub(super) values_ns: Vec<f64>,
    /// Levels of the cost, ascending: the placements.
    pub(super) levels: Regimes,
    rows: Vec<&'r Row>,
}

impl View<'_> {
    fn direction(&self, from: usize) -> impl Iterator<Item = &Row> {
        self.rows.iter().copied().filter(move |r| r.int("from") == Some(from as i64))
    }

    /// Samples of a row on one level (from 0).
    fn on(&self, row: &Row, level: usize) -> Vec<Pair> {
        let tag = |p: &Pair| {
            let i = self.times_ns.partition_point(|t| *t < p.at_ns);
            self.levels.tags.get(i).copied()
        };
        row.pairs.iter().filter(|p| tag(p) == Some(level)).copied().collect()
    }

    /// Cost of a kind from one CPU to the other on one level (from 0); `None` for a kind that has no row.
    pub(super) fn cost(&self, rows: &Rows, from: usize, kind: Kind, level: usize) -> Option<Cost> {
        let row = self.direction(from).find(|r| r.operation == kind.name())?;
        Some(rows.cost_of(row, &self.on(row, level)))
    }

    /// Placements to report, by rising cost: the most frequent one, and others with samples enough for a figure, at most
    /// [`PLACEMENTS_MAX`], those with the largest shares.
    pub(super) fn placements(&self) -> Vec<Placement<'_>> {
        let main = self.levels.main();
        let mut kept: Vec<(usize, &Regime)> =
            self.levels.regimes.iter().enumerate().filter(|(i, r)| *i == main || r.n >= FEWEST).collect();
        kept.sort_by(|a, b| b.1.share.total_cmp(&a.1.share));
        kept.truncate(PLACEMENTS_MAX);
        kept.sort_by_key(|(level, _)| *level);
        let n = kept.len();
        let placement = |(i, (level, regime))| Placement {
            name: level_name(i, n),
            level,
            regime,
            is_main: level == main,
        };
        kept.into_iter().enumerate().map(placement).collect()
    }

    pub(super) fn other(&self, cpu: usize) -> usize {
        if cpu == self.low { self.high } else { self.low }
    }
}

/// All couples with at least one lap, in the order in which they were visited.
pub(super) fn views(rows: &Rows) -> Vec<View<'_>> {
    let listed = rows.facts.get(&CLASSES).unwrap_or_default();
    listed
        .into_iter()
        .filter_map(|(low, high, class)| {
            let ends = [low as i64, high as i64];
            let own: Vec<&Row> = rows
                .part(PART.name)
                .filter(|r| {
                    r.int("from") != r.int("to")
                        && [r.int("from"), r.int("to")].iter().all(|e| e.is_some_and(|e| ends.contains(&e)))
                })
                .collect();
            let mut laps: Vec<(f64, f64)> = own
                .iter()
                .filter(|r| r.operation == Kind::Cas.name())
                .flat_map(|r| r.pairs.iter().map(|p| (p.at_ns, p.regime_ns)))
                .collect();
            laps.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (times_ns, values_ns): (Vec<f64>, Vec<f64>) = laps.into_iter().unzip();
            let levels = regimes(&times_ns, &values_ns, LEVEL_RATIO, LEVEL).ok()?;
            Some(View { low, high, class, times_ns, values_ns, levels, rows: own })
        })
        .collect()
}

pub(super) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let views = views(rows);
    let mut out = Analysis::default();
    if views.is_empty() {
        refuse(rows, &mut out);
        return out;
    }
    for v in views.iter().take(COUPLES_MAX) {
        out.metrics.extend(costs(v, rows));
        out.metrics.extend(shares(v));
        if let Some((finding, warning)) = asymmetry(v, rows) {
            out.findings.push(finding);
            out.warnings.push(warning);
        }
    }
    out.warnings.extend(moves(&views));
    let couples = rows.facts.get(&COUPLES).unwrap_or(0);
    if views.len() < couples {
        let text = format!("only {} of {couples} pairs of CPUs were measured", views.len());
        out.warnings.push(SAMPLED.warning(text));
    }
    out.datasets = show::datasets(&views, rows);
    out
}

/// Nothing was measured: the reasons, as metrics without a value.
fn refuse(rows: &Rows, out: &mut Analysis) {
    for row in rows.part(PART.name).filter(|r| r.operation != "part") {
        let why = row.refused.as_deref().unwrap_or("the two CPUs never ran at once for long enough");
        let end = |name: &str| row.int(name).map_or_else(|| "any".into(), Into::into);
        let p = params([
            ("from", end("from")),
            ("to", end("to")),
            ("kind", row.operation.as_str().into()),
            ("placement", level_name(0, 1).into()),
        ]);
        out.metrics.push(Metric::rejected(&CORE_TO_CORE, p, "lower quartile of laps' lower batches", why));
    }
    let text = |_| "core to core was not measured: it needs two CPUs, has 1".to_owned();
    out.warnings.extend(one_cpu(rows.part(PART.name), text));
}

fn costs(v: &View<'_>, rows: &Rows) -> Vec<Metric> {
    let mut out = Vec::new();
    for placement in v.placements() {
        for from in [v.low, v.high] {
            for kind in Kind::ALL {
                let Some(cost) = v.cost(rows, from, *kind, placement.level) else { continue };
                if !placement.is_main && cost.known().is_none() {
                    continue;
                }
                let p = params([
                    ("from", from.into()),
                    ("to", v.other(from).into()),
                    ("kind", kind.name().into()),
                    ("placement", placement.name.as_str().into()),
                ]);
                let mut m = cost.metric(&CORE_TO_CORE, p).with_apart(Some(placement.regime.center));
                "lower quartile of laps' lower batches".clone_into(&mut m.estimator);
                out.push(m);
            }
        }
    }
    out
}

fn shares(v: &View<'_>) -> Vec<Metric> {
    let metric = |placement: Placement<'_>| {
        let r = placement.regime;
        let p = params([
            ("from", v.low.into()),
            ("to", v.high.into()),
            ("placement", placement.name.as_str().into()),
        ]);
        let method = "share of a correlated series";
        let ci = r.share_interval.and_then(|c| Interval::new(c.level, c.low, c.high, method));
        let m = Metric::new(&REGIME_SHARE, p, r.share, "time-share", v.values_ns.len() as u64);
        m.with_ci(ci).with_apart(Some(r.center))
    };
    v.placements().into_iter().map(metric).collect()
}

/// A share of time in whole percent, unless it is less than one.
pub(super) fn percent(share: f64) -> String {
    if share < 0.01 { human(share, Unit::One) } else { format!("{:.0} %", share * 100.0) }
}

/// Placements in words: `24.1 ns one way (92 % of the time), 105 ns (8 %)`.
pub(super) fn levels_text(v: &View<'_>) -> String {
    let one = |(i, p): (usize, Placement<'_>)| {
        let share = percent(p.regime.share);
        let (way, time) = if i == 0 { (" one way", " of the time") } else { ("", "") };
        format!("{}{way} ({share}{time})", human(p.regime.center, Unit::Nanoseconds))
    };
    v.placements().into_iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}

fn moves(views: &[View<'_>]) -> Option<Warning> {
    let moving: Vec<&View<'_>> = views.iter().filter(|v| v.placements().len() > 1).collect();
    let first = moving.first()?;
    let (low, high, levels) = (first.low, first.high, levels_text(first));
    let more =
        if moving.len() > 1 { format!(", and {} other pairs", moving.len() - 1) } else { String::new() };
    Some(MOVES.note(format!("{MOVED}: a cache line from CPU {low} to {high} took {levels}{more}")))
}

/// Both directions of the most frequent placement compared, kind by kind; the largest ratio is printed.
fn asymmetry(v: &View<'_>, rows: &Rows) -> Option<(Finding, Warning)> {
    let mut evidence = Vec::new();
    let mut largest: Option<(f64, String)> = None;
    for kind in Kind::ALL {
        let both = [v.low, v.high].map(|from| v.cost(rows, from, *kind, v.levels.main()));
        let [Some(Cost::Known(there)), Some(Cost::Known(back))] = both else { continue };
        let (cheap, dear, from) =
            if there.value_ns < back.value_ns { (&there, &back, v.high) } else { (&back, &there, v.low) };
        let ratio = dear.value_ns / cheap.value_ns;
        if cheap.high_ns >= dear.low_ns || ratio <= ASYMMETRIC {
            continue;
        }
        let [dear, cheap] = [dear, cheap].map(|k| human(k.value_ns, Unit::Nanoseconds));
        let (name, to) = (kind.name(), v.other(from));
        let text = format!("{name}: {dear} from CPU {from} to {to}, {cheap} the other way");
        if largest.as_ref().is_none_or(|l| ratio > l.0) {
            largest = Some((ratio, text.clone()));
        }
        evidence.push(text);
    }
    let (ratio, text) = largest?;
    let (low, high, times) = (v.low, v.high, digits(ratio));
    let told = format!("CPU {low} and {high}: one direction costs up to {times} times as much as the other");
    let id = format!("sync.asymmetry.{low}-{high}");
    let finding = crate::show::finding(&id, "asymmetric", told, evidence);
    Some((finding, ASYMMETRY.warning(text)))
}
