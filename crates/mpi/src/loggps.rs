//! `LogGPS` of two ranks: trains of messages without and with work between them, and receives that were posted before and after the message
//! came. Overheads are those of the calls, of which there is one a message.

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::shape::{Axis, Cell, CostTable, Curve, CurveRow, TableColumn, TableRow};
use machmeter_data::{Dataset, Interval, Metric, MetricInfo, Shape};
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_model::laws::table::{At, Found};
use machmeter_model::loggps::{Latency, Line, Measured, Pace, Segment, SizePoint, TRAIN, fit};
use machmeter_stats::distribution::deviations;

use crate::info::{GAP, GAP_PER_BYTE, LATENCY, MESSAGE_TIME, OVERHEAD_RECV, OVERHEAD_SEND};
use crate::operations::TRAINS;

/// When a receive is posted, and the calls that are its overhead.
const RECEIVES: [(&str, &[&str]); 2] = [("posted", &["irecv1", "irecv2"]), ("unexpected", &["recvmin"])];

fn measured(at: &At) -> Measured {
    Measured { ns: at.ns, sigma_ns: ((at.high_ns - at.low_ns) / 2.0 / deviations(LEVEL)).max(1e-3) }
}

fn plus(a: Measured, b: Measured) -> Measured {
    Measured { ns: a.ns + b.ns, sigma_ns: a.sigma_ns.hypot(b.sigma_ns) }
}

/// Points of the fit, with overheads of this kind of receive.
fn points(found: &[Found], receive: &[&str]) -> Vec<SizePoint> {
    let of = |name: &str, bytes: u64| {
        let found = found.iter().find(|f| f.name == name)?;
        found.costs.get(&(2, bytes)).map(measured)
    };
    let trains = found.iter().find(|f| f.name == TRAINS[0]);
    let sizes = trains.into_iter().flat_map(|f| f.costs.keys()).map(|k| k.1).filter(|d| *d > 0);
    let point = |bytes: u64| {
        let (one, train) = (of("pingpong", bytes)?, of(TRAINS[0], bytes)?);
        let mut point = SizePoint::of_trains(bytes, one, train);
        let busy = of(TRAINS[1], bytes).map(|work| work.minus(one).over(f64::from(TRAIN - 1)));
        point.overhead_send = busy.filter(|m| m.ns > 0.0);
        let calls: Option<Vec<Measured>> = receive.iter().map(|name| of(name, bytes)).collect();
        point.overhead_recv = calls.and_then(|calls| calls.into_iter().reduce(plus));
        (point.gap.ns > 0.0).then_some(point)
    };
    sizes.filter_map(point).collect()
}

/// Parameters by the kind of receive, as metrics, and their table.
pub(crate) fn analyze(found: &[Found], library: &str) -> (Vec<Metric>, Vec<Dataset>) {
    let (mut metrics, mut rows, mut one_way, mut gaps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (receive, calls) in RECEIVES {
        let points = points(found, calls);
        let Ok(table) = fit(&points) else { continue };
        let curve = |of: fn(&SizePoint) -> Measured| CurveRow {
            name: format!("mpi {receive}"),
            x: points.iter().map(|p| p.size_bytes as f64).collect(),
            y: points.iter().map(|p| of(p).ns).collect(),
        };
        one_way.push(curve(|p| p.round_trip.over(2.0)));
        gaps.push(curve(|p| p.gap));
        for (i, s) in table.segments.iter().enumerate() {
            let n = points.iter().filter(|p| (s.first_bytes..=s.last_bytes).contains(&p.size_bytes)).count();
            metrics.extend(of_segment(s, receive, library, n as u64));
            let name = if i == 0 { receive.to_owned() } else { String::new() };
            rows.push(TableRow { name: format!("{name}  from {} B", s.first_bytes), cells: cells(s) });
        }
    }
    let columns = ["latency", "sent", "received", "gap", "per byte"];
    let columns = columns.map(|label| TableColumn::new(label, None)).to_vec();
    let caption = "LogGPS of two ranks by range of sizes: latency L, overheads o_s and o_r of the calls, gap g, G per byte. Posted: irecv before the message \
                   came, and its completion; unexpected: a receive after it came. Gap <=: the CPUs set the pace. Latency <=: the overheads take as long.";
    let shape = Shape::CostTable(CostTable { columns, rows });
    if metrics.is_empty() {
        return (metrics, Vec::new());
    }
    let table = Dataset::new("mpi.loggps", "LogGPS of two ranks", caption, shape);
    let curve = |id, title, y, caption, rows| {
        let (x, y) = (Axis::log("message", Unit::Bytes), Axis::log(y, Unit::Nanoseconds));
        Dataset::new(id, title, caption, Curve::shape(x, y, rows))
    };
    let half = "Half of a round trip of one message there and one back, back to back.";
    let train = "Cost of one more message of a train of 16.";
    let one_way = curve("mpi.one_way", "One way between ranks", "one way", half, one_way);
    let gaps =
        curve("mpi.time_per_message", "Time per message between ranks", "time per message", train, gaps);
    (metrics, vec![table, one_way, gaps])
}

fn of_segment(s: &Segment, receive: &str, library: &str, n: u64) -> Vec<Metric> {
    let keys = || {
        params([
            ("receive", receive.into()),
            ("from_bytes", s.first_bytes.into()),
            ("library", library.into()),
        ])
    };
    let metric = |info: &MetricInfo, m: Measured| {
        let reach = deviations(LEVEL) * m.sigma_ns;
        let interval = Interval::new(LEVEL, (m.ns - reach).max(0.0), m.ns + reach, "propagated errors");
        Metric::new(info, keys(), m.ns, "weighted line", n).with_ci(interval)
    };
    let bound = |info: &MetricInfo, ns: f64, why: &str| {
        let why = format!("at most {}: {why}", human(ns, Unit::Nanoseconds));
        Metric::rejected(info, keys(), "weighted line", &why)
    };
    let first = |line: &Line| line.measured_at(s.first_bytes);
    let mut all = vec![metric(&MESSAGE_TIME, first(&s.gap)), metric(&GAP_PER_BYTE, s.gap.per_byte)];
    all.extend(s.overhead_send.as_ref().map(|l| metric(&OVERHEAD_SEND, first(l))));
    all.extend(s.overhead_recv.as_ref().map(|l| metric(&OVERHEAD_RECV, first(l))));
    all.push(match s.pace {
        Pace::Link => metric(&GAP, s.gap.at_first),
        Pace::Overhead => bound(&GAP, s.gap.at_first.ns, "the CPUs set the pace, not the link"),
        Pace::Unknown => bound(&GAP, s.gap.at_first.ns, "the overheads were not measured"),
    });
    all.push(match s.latency {
        Latency::Known(l) => metric(&LATENCY, l),
        Latency::AtMost(ns) => bound(&LATENCY, ns, "the overheads take as long as half a round trip"),
    });
    all
}

fn cells(s: &Segment) -> Vec<Cell> {
    let ns = |value: f64| human(value, Unit::Nanoseconds);
    let line = |l: &Option<Line>| l.as_ref().map_or("-".to_owned(), |l| ns(l.at(s.first_bytes)));
    let latency = match s.latency {
        Latency::Known(l) => ns(l.ns),
        Latency::AtMost(most) => format!("<= {}", ns(most)),
    };
    let gap = match s.pace {
        Pace::Link => ns(s.gap.at_first.ns),
        _ => format!("<= {}", ns(s.gap.at_first.ns)),
    };
    let per_byte = format!("{:.4} ns/B", s.gap.per_byte.ns);
    [latency, line(&s.overhead_send), line(&s.overhead_recv), gap, per_byte].map(Cell::Text).into()
}
