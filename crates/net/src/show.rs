//! Tables and pictures of links.

use machmeter_data::quantity::{Unit, human};
use machmeter_data::shape::{
    Axis, Cell, CostTable, Curve, CurveRow, Distribution, DistributionRow, TableColumn, TableRow,
};
use machmeter_data::{Dataset, Metric, Shape};
use machmeter_model::loggps::{Latency, Line, Measured, Pace, SizePoint};
use machmeter_stats::quantile::quantile;

use crate::analyze::{Found, Trips};

const PROBABILITIES: [f64; 12] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0];

pub(crate) fn datasets(
    found: &[Found],
    trips: &[Trips],
    metrics: &[Metric],
    described: &[(String, String)],
    work: &str,
) -> Vec<Dataset> {
    [
        parameters(found, metrics, described),
        logp(found),
        time_per_message(found),
        residuals(found),
        one_way(found),
        overheads(found),
        round_trips(trips, work),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn ns(value: f64) -> Cell {
    Cell::Text(human(value, Unit::Nanoseconds))
}

fn at_most(value: f64) -> Cell {
    Cell::Text(format!("<= {}", human(value, Unit::Nanoseconds)))
}

/// A gap is a bound where the CPUs set the pace, or are not known to.
fn gap(pace: Pace, g: Measured) -> Cell {
    if pace == Pace::Link { ns(g.ns) } else { at_most(g.at_most_ns()) }
}

/// Messages on their way at once, L / g: a bound where one of them is one, nothing where both are.
fn capacity(latency: Latency, pace: Pace, g: Measured) -> Cell {
    let of = |l_ns: f64| (l_ns / g.ns).ceil();
    match (latency, pace) {
        (Latency::Known(l), Pace::Link) => Cell::Number(of(l.ns)),
        (Latency::Known(l), _) => Cell::Text(format!(">= {:.0}", (l.ns / g.at_most_ns()).ceil())),
        (Latency::AtMost(most), Pace::Link) => Cell::Text(format!("<= {:.0}", of(most))),
        (Latency::AtMost(_), _) => Cell::Empty(()),
    }
}

/// The table of `LogGPS`: a row a range of sizes.
fn parameters(found: &[Found], metrics: &[Metric], described: &[(String, String)]) -> Option<Dataset> {
    let mut rows = Vec::new();
    for f in found {
        let of_link = |m: &&Metric| {
            m.id == "net.sync_threshold"
                && m.params.get("transport").is_some_and(|t| t.to_string() == f.transport)
        };
        let threshold = metrics.iter().find(of_link).and_then(|m| m.value);
        for (i, s) in f.table.segments.iter().enumerate() {
            let name = if i == 0 { f.name() } else { format!("  from {} B", s.first_bytes) };
            let line = |l: &Option<Line>| l.as_ref().map_or(Cell::Empty(()), |l| ns(l.at(s.first_bytes)));
            let latency = match s.latency {
                Latency::Known(l) => ns(l.ns),
                Latency::AtMost(most) => at_most(most),
            };
            let gap = gap(s.pace, s.gap.at_first);
            let one_way = human(s.one_way.at(s.first_bytes), Unit::Nanoseconds);
            let per_byte = s.gap.per_byte.ns;
            // Bytes that cost nothing that can be told from it have a bound.
            let most = s.gap.per_byte.at_most_ns();
            let is_bound = per_byte <= most - per_byte;
            let (ns_per_byte, [below, above]) =
                if is_bound { (most, ["<= ", ">= "]) } else { (per_byte, ["", ""]) };
            let rate = if ns_per_byte > 0.0 {
                format!("{above}{:.3} GB/s, {above}{:.1} Gbit/s", 1.0 / ns_per_byte, 8.0 / ns_per_byte)
            } else {
                String::new()
            };
            rows.push(TableRow {
                name,
                cells: vec![
                    latency,
                    line(&s.overhead_send),
                    line(&s.overhead_recv),
                    gap,
                    Cell::Text(if ns_per_byte > 0.0 {
                        format!("{below}{ns_per_byte:.4} ns/B")
                    } else {
                        "-".to_owned()
                    }),
                    Cell::Text(rate),
                    Cell::Text(format!("{one_way} + {:.4} ns/B", s.one_way.per_byte.ns)),
                    if i == 0 { threshold.map_or(Cell::Empty(()), Cell::Number) } else { Cell::Empty(()) },
                ],
            });
        }
    }
    let texts = ["latency", "sent", "received", "gap", "per byte", "rate", "one way"];
    let texts = texts.map(|label| TableColumn::new(label, None));
    let columns = texts.into_iter().chain([TableColumn::new("send waits above", Unit::Bytes)]).collect();
    let links: Vec<String> = described
        .iter()
        .filter(|(_, words)| !words.is_empty())
        .map(|(name, words)| format!("{name}: {words}"))
        .collect();
    let caption = format!(
        "LogGPS by range of sizes, both ends polling: latency L, overheads o_s and o_r (sent, received), gap g, G per byte, S (send waits \
         above); one way: half of a round trip of the smallest message, and per further byte. Gap <=: the CPUs set the pace, not the link. \
         Latency <=: both overheads together take as long as half a round trip. Where sent or received is -, that overhead was not measured \
         in the range, and both are bounds for that reason. {}",
        links.join("; ")
    );
    let shape = Shape::CostTable(CostTable { columns, rows });
    (!found.is_empty())
        .then(|| Dataset::new("net.parameters", "Parameters of links", caption.trim_end(), shape))
}

/// `LogP` (Culler 1993) of the smallest message, for models that know no sizes.
fn logp(found: &[Found]) -> Option<Dataset> {
    let row = |f: &Found| {
        let s = f.table.segments.first().filter(|_| f.has_trains)?;
        let both = s.overhead_send.zip(s.overhead_recv);
        let o = both.map(|(send, recv)| send.at(f.smallest).midpoint(recv.at(f.smallest)));
        let g = s.gap.measured_at(f.smallest);
        let capacity = capacity(s.latency, s.pace, g);
        let latency = match s.latency {
            Latency::Known(l) => ns(l.ns),
            Latency::AtMost(most) => at_most(most),
        };
        let cells = vec![latency, o.map_or(Cell::Empty(()), ns), gap(s.pace, g), Cell::Number(2.0), capacity];
        Some(TableRow { name: f.name(), cells })
    };
    let rows: Vec<TableRow> = found.iter().filter_map(row).collect();
    let columns = ["L", "o", "g", "P", "capacity"].map(|label| TableColumn::new(label, None)).to_vec();
    let caption = "LogP of the smallest message: o is the mean of both overheads, P the ends, capacity the messages on their way at once, L / g; -: both are bounds.";
    let some = !rows.is_empty();
    some.then(|| Dataset::new("net.logp", "LogP", caption, Shape::CostTable(CostTable { columns, rows })))
}

/// A picture over the size of messages; none without curves.
fn over_size(y: Axis, rows: Vec<CurveRow>, [id, title]: [&str; 2], caption: &str) -> Option<Dataset> {
    let some = !rows.is_empty();
    let shape = Curve::shape(Axis::log("message", Unit::Bytes), y, rows);
    some.then(|| Dataset::new(id, title, caption, shape))
}

/// A curve of what is known at each size.
fn curve(f: &Found, name: String, y: impl Fn(&SizePoint) -> Option<f64>) -> CurveRow {
    let (x, y) = f.points.iter().filter_map(|p| Some((p.size_bytes as f64, y(p)?))).unzip();
    CurveRow { name, x, y }
}

fn fitted_ns(f: &Found, p: &SizePoint) -> f64 {
    f.table.segment(p.size_bytes).gap.at(p.size_bytes)
}

fn time_per_message(found: &[Found]) -> Option<Dataset> {
    let of = |f: &Found| {
        let measured = curve(f, f.name(), |p| Some(p.gap.ns));
        [measured, curve(f, format!("{}, fitted", f.name()), |p| Some(fitted_ns(f, p)))]
    };
    let rows = found.iter().flat_map(of).collect();
    let caption = "Cost of one more message of a train, (PRTT(16) - PRTT(1)) / 15. The level and slope of the lines are g and G.";
    let names = ["net.time_per_message", "Time per message"];
    over_size(Axis::log("time per message", Unit::Nanoseconds), rows, names, caption)
}

fn residuals(found: &[Found]) -> Option<Dataset> {
    let row = |f: &Found| {
        let off = |p: &SizePoint| Some(p.gap.ns / Some(fitted_ns(f, p)).filter(|ns| *ns > 0.0)? - 1.0);
        curve(f, f.name(), off)
    };
    let caption = "How far the time per message lies above its line, or below: what no line of a range of sizes explains.";
    let y = Axis::linear("measured above fitted", Unit::One);
    over_size(y, found.iter().map(row).collect(), ["net.residuals", "Residuals"], caption)
}

fn one_way(found: &[Found]) -> Option<Dataset> {
    let row = |f: &Found| curve(f, f.name(), |p| Some(p.round_trip.over(2.0).ns));
    let caption = "Half of a round trip of one message there and one back, both ends polling.";
    let y = Axis::log("one way", Unit::Nanoseconds);
    over_size(y, found.iter().map(row).collect(), ["net.one_way", "One way"], caption)
}

fn overheads(found: &[Found]) -> Option<Dataset> {
    let busy = |m: Option<Measured>| m.filter(|m| m.ns > 0.0).map(|m| m.ns);
    let of = |f: &Found| {
        let sent = curve(f, format!("{}, sent", f.name()), |p| busy(p.overhead_send));
        [sent, curve(f, format!("{}, received", f.name()), |p| busy(p.overhead_recv))]
    };
    let rows = found.iter().flat_map(of).filter(|row| !row.x.is_empty()).collect();
    let caption = "How long the CPU is busy with a message: of the sender after a pause, of the receiver when the message is there.";
    over_size(Axis::log("busy", Unit::Nanoseconds), rows, ["net.overheads", "Overheads of messages"], caption)
}

fn round_trips(trips: &[Trips], work: &str) -> Option<Dataset> {
    let row = |t: &Trips| {
        let at = |p: f64| Some((p, quantile(&t.ns, p)?));
        let quantiles: Vec<(f64, f64)> = PROBABILITIES.into_iter().filter_map(at).collect();
        let beside = t.load.as_ref().map_or(String::new(), |load| format!(", beside {load}"));
        let name = format!("{}, {}{beside}", t.transport, t.wait);
        (!t.ns.is_empty()).then_some(DistributionRow { name, n: t.ns.len() as u64, quantiles })
    };
    let rows: Vec<DistributionRow> = trips.iter().filter_map(row).collect();
    let caption = format!(
        "Round trips of one byte, each timed by itself, also those during which an end lost its CPU. {work}"
    );
    let some = !rows.is_empty();
    let shape = Distribution { value: Axis::log("round trip", Unit::Nanoseconds), rows, limits: Vec::new() };
    some.then(|| {
        Dataset::new("net.round_trips", "Round trips", caption.trim_end(), Shape::Distribution(shape))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_of_bounds_is_a_bound_or_nothing() {
        let of = |ns, sigma_ns| Measured { ns, sigma_ns };
        let (known, bound) = (Latency::Known(of(350.0, 1.0)), Latency::AtMost(350.0));
        let text = |s: &str| Cell::Text(s.to_owned());
        assert_eq!(capacity(known, Pace::Link, of(100.0, 5.0)), Cell::Number(4.0));
        // g is at most 110 ns.
        assert_eq!(capacity(known, Pace::Overhead, of(100.0, 5.0)), text(">= 4"));
        assert_eq!(capacity(bound, Pace::Link, of(100.0, 5.0)), text("<= 4"));
        assert_eq!(capacity(bound, Pace::Unknown, of(100.0, 5.0)), Cell::Empty(()));
        assert_eq!(gap(Pace::Overhead, of(0.0, 5.0)), at_most(10.0));
    }
}
