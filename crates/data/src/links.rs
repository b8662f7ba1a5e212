//! Links of a record with their `LogGPS` parameters: what exporters write and simulations run on.

use std::collections::BTreeMap;

use crate::metric::Metric;
use crate::record::Record;

/// Parameters of messages from a size on; ns, ns per byte, bytes. What is only bounded or not known is `None`.
#[derive(Debug, Clone, Default)]
pub struct Range {
    /// Smallest size, bytes.
    pub from_bytes: u64,
    /// L, ns.
    pub latency_ns: Option<f64>,
    /// `o_s` of the smallest size, ns.
    pub send_ns: Option<f64>,
    /// `o_r` of the smallest size, ns.
    pub recv_ns: Option<f64>,
    /// g, ns.
    pub gap_ns: Option<f64>,
    /// Time per message of the smallest size, ns.
    pub message_ns: Option<f64>,
    /// G, ns per byte.
    pub per_byte: Option<f64>,
    /// One message of the smallest size alone, there or back, ns.
    pub one_way_ns: Option<f64>,
    /// What a further byte of it takes, ns.
    pub one_way_per_byte: Option<f64>,
    /// Half the intervals of these over their values, by the names that metrics have (`latency`, `gap_per_byte`).
    pub reaches: BTreeMap<String, f64>,
}

/// A link in one direction.
#[derive(Debug, Clone)]
pub struct Link {
    /// `shm`, `tcp`, ...; `mpi` for two ranks.
    pub transport: String,
    /// `there` or `back`; of ranks, whether receives were posted.
    pub direction: String,
    /// By size, at least one.
    pub ranges: Vec<Range>,
    /// The largest message that a send hands over while nobody receives.
    pub threshold_bytes: Option<f64>,
}

impl Link {
    /// `tcp there`.
    pub fn name(&self) -> String {
        format!("{} {}", self.transport, self.direction)
    }

    /// Time per byte of long messages, where one is known.
    pub fn per_byte(&self) -> Option<f64> {
        self.ranges.iter().rev().find_map(|r| r.per_byte).filter(|g| *g > 0.0)
    }
}

/// Links of a record whose trains of messages were measured; none where none was.
pub fn links(record: &Record) -> Vec<Link> {
    let text = |m: &Metric, name: &str| m.params.get(name).map(ToString::to_string).unwrap_or_default();
    let mut all: BTreeMap<(String, String), BTreeMap<u64, Range>> = BTreeMap::new();
    for m in &record.metrics {
        let Ok(from_bytes) = text(m, "from_bytes").parse::<u64>() else { continue };
        // Two ranks of MPI are a link for each kind of receive.
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
