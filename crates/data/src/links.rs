//! Links of a record with their `LogGPS` parameters, which exporters write and simulations use.
//!
//! `LogGPS` describes the cost of messages. Its parameters are the latency L, the overheads `o_s` and `o_r` of sender and receiver, the gap g between
//! messages, and the gap per byte G. Above the size S, a sender waits for its receiver.

use std::collections::BTreeMap;

use crate::metric::Metric;
use crate::record::Record;

/// Parameters of messages from a size on; ns, ns per byte, bytes. A parameter that is only bounded or unknown is `None`.
#[derive(Debug, Clone, Default)]
pub struct Range {
    /// Smallest size, bytes.
    pub from_bytes: u64,
    /// L, ns.
    pub latency_ns: Option<f64>,
    /// `o_s` at the smallest size, ns.
    pub send_ns: Option<f64>,
    /// `o_r` at the smallest size, ns.
    pub recv_ns: Option<f64>,
    /// g, ns.
    pub gap_ns: Option<f64>,
    /// Time per message at the smallest size, ns.
    pub message_ns: Option<f64>,
    /// G, ns per byte.
    pub per_byte: Option<f64>,
    /// Time of a single message of the smallest size in one direction, ns.
    pub one_way_ns: Option<f64>,
    /// Additional time per byte of a single message, ns.
    pub one_way_per_byte: Option<f64>,
    /// Relative half-widths of their intervals, by the names of the metrics (`latency`, `gap_per_byte`).
    pub reaches: BTreeMap<String, f64>,
}

/// A link in one direction.
#[derive(Debug, Clone)]
pub struct Link {
    /// `shm`, `tcp`, ...; `mpi` for two ranks.
    pub transport: String,
    /// `there` or `back`; for ranks, the kind of receive (posted or not).
    pub direction: String,
    /// By size; at least one.
    pub ranges: Vec<Range>,
    /// The largest message that a send completes without a receiver, bytes.
    pub threshold_bytes: Option<f64>,
}

impl Link {
    /// `tcp there`.
    pub fn name(&self) -> String {
        format!("{} {}", self.transport, self.direction)
    }

    /// Time per byte of long messages, ns, if known.
    pub fn per_byte(&self) -> Option<f64> {
        self.ranges.iter().rev().find_map(|r| r.per_byte).filter(|g| *g > 0.0)
    }
}

/// Links with measured message times; empty if the record has none.
pub fn links(record: &Record) -> Vec<Link> {
    let text = |m: &Metric, name: &str| m.params.get(name).map(ToString::to_string).unwrap_or_default();
    let mut all: BTreeMap<(String, String), BTreeMap<u64, Range>> = BTreeMap::new();
    for m in &record.metrics {
        let Ok(from_bytes) = text(m, "from_bytes").parse::<u64>() else { continue };
        // Two MPI ranks form one link for each kind of receive.
        let (name, figure) = match m.id.split_once('.') {
            Some(("net", figure)) => ((text(m, "transport"), text(m, "direction")), figure),
            Some(("mpi", figure)) => (("mpi".to_owned(), text(m, "receive")), figure),
            _ => continue,
        };
        let ranges = all.entry(name).or_default();
        let range = ranges.entry(from_bytes).or_insert_with(|| Range { from_bytes, ..Range::default() });
        let of = match figure {
            "latency" => &mut range.latency_ns,
            "overhead_send" => &mut range.send_ns,
            "overhead_recv" => &mut range.recv_ns,
            "gap" => &mut range.gap_ns,
            "message_time" => &mut range.message_ns,
            "gap_per_byte" => &mut range.per_byte,
            "one_way" => &mut range.one_way_ns,
            "one_way_per_byte" => &mut range.one_way_per_byte,
            _ => continue,
        };
        *of = m.value;
        if let Some((value, ci)) = m.value.zip(m.ci.as_ref()).filter(|(v, _)| *v > 0.0) {
            range.reaches.insert(figure.to_owned(), (ci.high - ci.low) / 2.0 / value);
        }
    }
    let threshold = |transport: &str| {
        let searched = |m: &&Metric| match m.id.as_str() {
            "net.sync_threshold" => text(m, "transport") == transport,
            "mpi.threshold" => transport == "mpi" && text(m, "receiver") == "polling",
            _ => false,
        };
        record.metrics.iter().filter(searched).find_map(|m| m.value)
    };
    all.into_iter()
        .map(|((transport, direction), ranges)| Link {
            threshold_bytes: threshold(&transport),
            ranges: ranges.into_values().collect(),
            transport,
            direction,
        })
        .filter(|l| l.ranges.iter().any(|r| r.message_ns.is_some()))
        .collect()
}
