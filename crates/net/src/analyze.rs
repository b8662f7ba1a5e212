//! From rows to parameters, round trips and what they predict. Pure.

use machmeter_data::metric::{Params as Keys, params};
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Warning;
use machmeter_data::{Interval, Metric, MetricInfo};
use machmeter_engine::Analysis;
use machmeter_engine::cost::estimate::{LEVEL, values_ns};
use machmeter_engine::cost::{Row, Rows};
use machmeter_engine::disturbance::placement;
use machmeter_model::loggps::{Latency, Line, Measured, Pace, SizePoint, TRAIN, Table, fit};
use machmeter_stats::distribution::deviations;
use machmeter_stats::quantile::{quantile, sorted};
use machmeter_stats::regimes::Regimes;

use crate::cells::{FAILED_LATER, REFUSES};
use crate::info::{
    GAP, GAP_PER_BYTE, LATENCY, LEFT_OUT, LOAD_WEAKENED, MESSAGE_TIME, NOT_MEASURED, NOT_REACHED, ONE_WAY,
    ONE_WAY_PER_BYTE, OVERHEAD_RECV, OVERHEAD_SEND, PREDICTION_ERROR, ROUND_TRIP, THRESHOLD, UNPREDICTED,
};
use crate::measure::{NOTES, WORK};
use crate::plan::{KEPT_BACK, Operation, PART, THRESHOLD as SEARCHED, Way, train_of};
use crate::points::{located, points};
use crate::{Params, show};

const QUANTILES: [f64; 6] = [0.05, 0.5, 0.9, 0.95, 0.99, 0.999];
/// Above this the parameters do not predict.
const FAR_OFF: f64 = 0.1;

/// What is known of the trains of one link in one direction.
pub(crate) struct Found {
    pub(crate) transport: String,
    pub(crate) direction: String,
    /// Smallest size that was asked for, bytes.
    pub(crate) smallest: u64,
    /// Smallest of the sizes above the last that has a figure, bytes; `None` where the last has one.
    pub(crate) left_out: Option<u64>,
    pub(crate) points: Vec<SizePoint>,
    /// False where only round trips are known: half of one stands for a message.
    pub(crate) has_trains: bool,
    pub(crate) table: Table,
    /// Trains kept back: size, measured and predicted, ns.
    pub(crate) kept_back: Vec<(u64, f64, f64)>,
}

/// Single round trips of one link.
pub(crate) struct Trips {
    pub(crate) transport: String,
    pub(crate) wait: String,
    /// What else ran.
    pub(crate) load: Option<String>,
    /// Ascending, ns.
    pub(crate) ns: Vec<f64>,
}

pub(crate) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let mut out = Analysis::default();
    let levels = placement::levels(rows, PART);
    let trips: Vec<Trips> = rows.part(PART).filter_map(|r| of_trips(rows, r, levels.as_ref())).collect();
    let found = links(rows, levels.as_ref(), &mut out);
    for f in &found {
        out.metrics.extend(f.metrics());
        out.warnings.extend(f.unpredicted());
    }
    out.metrics.extend(rows.part(PART).filter_map(|r| trip(rows, r, levels.as_ref())));
    out.metrics.extend(rows.part(PART).filter_map(threshold));
    out.warnings.extend(left_out(&found));
    out.warnings.extend(failed(rows));
    out.warnings.extend(not_reached(&out.metrics));
    out.warnings.extend(placement::moved("links", levels.as_ref()));
    // Figures of a link to another machine are not those of the same transport within one.
    if let Some(peer) = rows.facts.get(&crate::PEER) {
        for m in &mut out.metrics {
            m.params.insert("peer".to_owned(), peer.as_str().into());
        }
    }
    let notes = rows.facts.get(&NOTES).filter(|n| !n.is_empty());
    out.warnings.extend(notes.map(|notes| LOAD_WEAKENED.note(notes.join("; "))));
    let described = rows.facts.get(&crate::LINKS).unwrap_or_default();
    let work = rows.facts.get(&WORK).unwrap_or_default();
    out.datasets = show::datasets(&found, &trips, &out.metrics, &described, &work);
    out
}

/// What the trains of each link say; reasons go out as metrics where they say nothing.
pub(crate) fn links(rows: &Rows, levels: Option<&Regimes>, out: &mut Analysis) -> Vec<Found> {
    ways(rows).into_iter().filter_map(|way| of_way(rows, &way, levels, out)).collect()
}

/// Links with trains, each direction once.
fn ways(rows: &Rows) -> Vec<[String; 3]> {
    let mut all: Vec<[String; 3]> = Vec::new();
    for row in rows.part(PART).filter(|r| train_of(r).is_some()) {
        let way = ["transport", "wait", "direction"].map(|name| row.text(name));
        if !all.contains(&way) {
            all.push(way);
        }
    }
    all
}

fn of_way(rows: &Rows, names: &[String; 3], levels: Option<&Regimes>, out: &mut Analysis) -> Option<Found> {
    let [transport, wait, direction] = names;
    let way = Way { transport, wait, direction };
    let located = |row: &Row| located(rows, row, levels);
    let trains = || rows.rows.iter().filter(|r| way.owns(r, Operation::TRAIN));
    let points = points(&rows.rows, &way, &located);
    let table = match fit(&points) {
        Ok(table) => table,
        Err(why) => {
            let keys = keys(transport, direction, Some(1));
            let mut refused = trains().filter_map(|r| r.refused.clone());
            let why = refused.next().unwrap_or_else(|| why.to_string());
            out.metrics.push(Metric::rejected(&MESSAGE_TIME, keys, "fit of trains", &why));
            return None;
        }
    };
    let mut kept_back = Vec::new();
    for row in trains() {
        if let Some((size_bytes, KEPT_BACK, 0)) = train_of(row)
            && let Some(measured) = located(row)
        {
            kept_back.push((size_bytes, measured.ns, table.train_ns(KEPT_BACK, size_bytes)));
        }
    }
    kept_back.sort_by_key(|k| k.0);
    let asked: Vec<u64> = trains().filter_map(|r| Some(train_of(r)?.0)).collect();
    let smallest = asked.iter().copied().min().unwrap_or(1);
    let last = points.iter().map(|p| p.size_bytes).max().unwrap_or(0);
    let left_out = asked.into_iter().filter(|bytes| *bytes > last).min();
    let has_trains = trains().any(|r| train_of(r).is_some_and(|(_, messages, _)| messages == TRAIN));
    let (transport, direction) = (transport.clone(), direction.clone());
    Some(Found { transport, direction, smallest, left_out, points, has_trains, table, kept_back })
}

fn keys(transport: &str, direction: &str, from_bytes: Option<u64>) -> Keys {
    let mut keys = params([("transport", transport.into()), ("direction", direction.into())]);
    keys.extend(from_bytes.map(|bytes| ("from_bytes".to_owned(), bytes.into())));
    keys
}

/// A figure with its interval, which never reaches below zero; a slope that was held at zero has none.
fn metric(info: &MetricInfo, keys: &Keys, found: Measured, n: usize) -> Metric {
    let reach = deviations(LEVEL) * found.sigma_ns;
    let (low, high) = ((found.ns - reach).max(0.0), found.ns + reach);
    let interval = Interval::new(LEVEL, low, high, "propagated errors of visits");
    let interval = interval.filter(|_| found.sigma_ns > 0.0);
    Metric::new(info, keys.clone(), found.ns, "weighted line", n as u64).with_ci(interval)
}

/// Time per byte; a slope that was held at zero is none.
fn per_byte(keys: &Keys, found: Measured, n: usize) -> Metric {
    if found.ns > 0.0 {
        return metric(&GAP_PER_BYTE, keys, found, n);
    }
    let why = "below resolution: larger messages of this range took no longer";
    Metric::rejected(&GAP_PER_BYTE, keys.clone(), "weighted line", why)
}

impl Found {
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.transport, self.direction)
    }

    fn metrics(&self) -> Vec<Metric> {
        let mut out = Vec::new();
        for (i, s) in self.table.segments.iter().enumerate() {
            // The smallest size may be one that is not known.
            let from_bytes = if i == 0 { self.smallest } else { s.first_bytes };
            let keys = keys(&self.transport, &self.direction, Some(from_bytes));
            let is_in = |p: &&SizePoint| (s.first_bytes..=s.last_bytes).contains(&p.size_bytes);
            let n = self.points.iter().filter(is_in).count();
            let at_first = |line: &Line| line.measured_at(from_bytes);
            if !self.has_trains {
                let mut per_byte = per_byte(&keys, s.gap.per_byte, n);
                "weighted line of half round trips".clone_into(&mut per_byte.estimator);
                out.push(per_byte);
                if i == 0 {
                    let keys =
                        params([("transport", self.transport.as_str().into()), ("wait", "polling".into())]);
                    out.push(metric(&ROUND_TRIP, &keys, at_first(&s.gap).over(0.5), n));
                }
                continue;
            }
            out.push(metric(&MESSAGE_TIME, &keys, at_first(&s.gap), n));
            out.push(metric(&ONE_WAY, &keys, at_first(&s.one_way), n));
            out.push(metric(&ONE_WAY_PER_BYTE, &keys, s.one_way.per_byte, n));
            let bound = |info, ns, why: &str| {
                let why = format!("at most {}: {why}", human(ns, Unit::Nanoseconds));
                Metric::rejected(info, keys.clone(), "weighted line", &why)
            };
            let g_ns = s.gap.at_first;
            out.push(match s.pace {
                Pace::Link => metric(&GAP, &keys, g_ns, n),
                Pace::Overhead => bound(&GAP, g_ns.at_most_ns(), "the CPUs set the pace, not the link"),
                Pace::Unknown => bound(&GAP, g_ns.at_most_ns(), "the overheads were not measured"),
            });
            let mut per_byte = per_byte(&keys, s.gap.per_byte, n);
            if self.left_out.is_some() && i + 1 == self.table.segments.len() {
                per_byte.flag(LEFT_OUT.id);
            }
            out.push(per_byte);
            for (info, line) in [(&OVERHEAD_SEND, &s.overhead_send), (&OVERHEAD_RECV, &s.overhead_recv)] {
                out.extend(line.as_ref().map(|l| metric(info, &keys, at_first(l), n)));
            }
            out.push(match s.latency {
                Latency::Known(l) => metric(&LATENCY, &keys, l, n),
                Latency::AtMost(ns) if s.overhead_send.is_some() && s.overhead_recv.is_some() => {
                    bound(&LATENCY, ns, "both overheads together take as long as half a round trip")
                }
                Latency::AtMost(ns) => bound(&LATENCY, ns, "the overheads were not measured"),
            });
        }
        out.extend(self.prediction_error().map(|(median, worst)| {
            let (keys, n) = (keys(&self.transport, &self.direction, None), self.kept_back.len() as u64);
            Metric::new(&PREDICTION_ERROR, keys, median, "median of trains kept back", n).with_max(worst)
        }));
        out
    }

    /// Distances of predictions from what was measured: the median and the greatest, relative.
    pub(crate) fn prediction_error(&self) -> Option<(f64, f64)> {
        let off: Vec<f64> =
            self.kept_back.iter().map(|(_, ns, predicted)| (predicted / ns - 1.0).abs()).collect();
        let off = sorted(&off).ok()?;
        Some((quantile(&off, 0.5)?, *off.last()?))
    }

    fn unpredicted(&self) -> Option<Warning> {
        let (median, worst) = self.prediction_error().filter(|(median, _)| *median > FAR_OFF)?;
        Some(UNPREDICTED.warning(format!(
            "{}: predictions for {} trains outside the fit are off by {:.0} % (median), {:.0} % (worst)",
            self.name(),
            self.kept_back.len(),
            100.0 * median,
            100.0 * worst
        )))
    }
}

fn of_trips(rows: &Rows, row: &Row, levels: Option<&Regimes>) -> Option<Trips> {
    if !Operation::TRIP.is_of(row, "there") {
        return None;
    }
    let (transport, wait) = (row.text("transport"), row.text("wait"));
    let pairs = placement::on_main(row, levels);
    let ns = sorted(&values_ns(row, &pairs, rows.ns_per_tick())).unwrap_or_default();
    let load = Some(row.text("load")).filter(|l| !l.is_empty());
    Some(Trips { transport, wait, load, ns })
}

/// The median of round trips with quantiles.
fn trip(rows: &Rows, row: &Row, levels: Option<&Regimes>) -> Option<Metric> {
    let trips = of_trips(rows, row, levels)?;
    let mut keys = params([("transport", trips.transport.into()), ("wait", trips.wait.into())]);
    keys.extend(trips.load.map(|load| ("load".to_owned(), load.into())));
    let mut m = placement::cost(rows, row, levels).metric(&ROUND_TRIP, keys);
    if m.value.is_some() {
        let at = |p: f64| Some((p, quantile(&trips.ns, p)?));
        let quantiles: Vec<(f64, f64)> = QUANTILES.into_iter().filter_map(at).collect();
        m = m.with_quantiles(&quantiles).with_max(*trips.ns.last()?);
    }
    Some(m)
}

/// S; without a figure where searches differ, or where no size waited.
fn threshold(row: &Row) -> Option<Metric> {
    if !Operation::THRESHOLD.is_of(row, "there") {
        return None;
    }
    let keys = params([("transport", row.text("transport").into())]);
    let found = SEARCHED.map(|name| row.extras.get(name).copied());
    let rejected = |why: &str| Some(Metric::rejected(&THRESHOLD, keys.clone(), "bisection", why));
    let [Some(least), Some(most), Some(searches)] = found else {
        return rejected(row.refused.as_deref().unwrap_or("not reached in the time given"));
    };
    let bytes = |b: f64| format!("{b:.0} B");
    if row.extras.get(REFUSES).is_some_and(|r| *r > 0.0) {
        return rejected(&format!("messages above {} are refused, none waits", bytes(most)));
    }
    if least < most {
        return rejected(&format!("{searches} searches differ: {} to {}", bytes(least), bytes(most)));
    }
    let interval = Interval::new(LEVEL, least, most, "range of searches");
    Some(Metric::new(&THRESHOLD, keys, most, "bisection", searches as u64).with_ci(interval))
}

/// Links that failed, each with its reason, and those that failed after some samples.
fn failed(rows: &Rows) -> Option<Warning> {
    let mut told: Vec<String> = Vec::new();
    for row in rows.part(PART).filter(|r| r.operation != "part") {
        let why = match &row.refused {
            Some(why) if !why.starts_with("left out") && !why.starts_with("not reached") => why.as_str(),
            _ if row.extras.contains_key(FAILED_LATER) => "the link failed before all samples were taken",
            _ => continue,
        };
        let text = format!("{}: {why}", row.text("transport"));
        if !told.contains(&text) {
            told.push(text);
        }
    }
    (!told.is_empty()).then(|| NOT_MEASURED.warning(told.join("; ")))
}

/// Figures for which the time was too short, by link.
fn not_reached(metrics: &[Metric]) -> Option<Warning> {
    let is_late = |m: &&Metric| m.why.as_ref().is_some_and(|why| why.starts_with("not reached"));
    let name = |m: &Metric| {
        let text = |key: &str| m.params.get(key).map(|p| format!(" {p}")).unwrap_or_default();
        let figure = m.id.trim_start_matches("net.").replace('_', " ");
        format!("{figure}{}{}", text("transport"), text("wait"))
    };
    let names: Vec<String> = metrics.iter().filter(is_late).map(name).collect();
    (!names.is_empty())
        .then(|| NOT_REACHED.warning(format!("the time was over before these figures: {}", names.join(", "))))
}

fn left_out(found: &[Found]) -> Option<Warning> {
    let from = |f: &Found| {
        let bytes = human(f.left_out? as f64, Unit::Bytes);
        Some(format!("{} from {bytes} on", f.name()))
    };
    let told: Vec<String> = found.iter().filter_map(from).collect();
    (!told.is_empty())
        .then(|| LEFT_OUT.warning(format!("large messages have no figure: {}", told.join(", "))))
}
