//! Parameters from the figures of a record: the `LogGPS` segments that `machmeter net` measured.

use machmeter_data::Record;
use machmeter_data::links::{Link, Range, links};
use machmeter_model::laws::LEVEL;
use machmeter_stats::distribution::deviations;

use crate::engine::{PARTS, Part};
use crate::params::{Dialect, Line, PER_PS, Params, Protocol, Segment};

/// Parameters of a link, and what about them is assumed.
#[derive(Debug, Clone, PartialEq)]
pub struct OfLink {
    /// `shm there`.
    pub name: String,
    pub params: Params,
    /// How well those of each segment are known.
    pub errors: Vec<Errors>,
    /// Statements on figures that the record does not hold.
    pub assumptions: Vec<String>,
}

/// Errors of the parameters of a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Range of sizes of the record: segments of one share their errors.
    pub range: usize,
    /// Standard error over value, by [`Part`]; 0 of what has no interval.
    pub relative: [f64; PARTS],
}

impl Errors {
    fn of(range: usize, r: &Range) -> Self {
        let of = |name: &str| r.reaches.get(name).map(|reach| reach / deviations(LEVEL));
        let mut relative = [0.0; PARTS];
        let overhead = of("overhead_send").into_iter().chain(of("overhead_recv")).reduce(f64::max);
        // What stands for a figure that was not measured: see `of_link`.
        let message = of("message_time");
        relative[Part::Overhead as usize] = overhead.or(message).unwrap_or(0.0);
        relative[Part::Latency as usize] = of("latency").unwrap_or(0.0);
        relative[Part::Gap as usize] = of("gap").or(message).unwrap_or(0.0);
        relative[Part::GapBytes as usize] = of("gap_per_byte").unwrap_or(0.0);
        Self { range, relative }
    }
}

/// Parameters of a link of a record: of the one that is named (`tcp`, or `tcp back`), or else of shared memory, or else of the first.
pub fn of_record(record: &Record, link: Option<&str>, dialect: Dialect) -> Result<OfLink, String> {
    let all = links(record);
    let found = match link {
        Some(wanted) => all.iter().find(|l| l.name() == wanted || l.transport == wanted),
        None => all.iter().find(|l| l.transport == "shm").or(all.first()),
    };
    let why = match link.filter(|_| found.is_none() && !all.is_empty()) {
        None => "the record has no parameters of links: machmeter net measures them, beside other load with --prio fifo:5 or a longer -t".to_owned(),
        Some(wanted) => {
            let known = all.iter().map(Link::name).collect::<Vec<_>>().join(", ");
            format!("no link '{wanted}' in the record: {known}")
        }
    };
    found.and_then(|link| of_link(link, dialect)).ok_or(why)
}

fn ps(ns: f64) -> u64 {
    (ns.max(0.0) * 1000.0).round() as u64
}

fn of_link(link: &Link, dialect: Dialect) -> Option<OfLink> {
    let mut assumptions = Vec::new();
    let mut assume = |text: &str| {
        if !assumptions.iter().any(|a| a == text) {
            assumptions.push(text.to_owned());
        }
    };
    let handshake_ps = link.ranges.first().and_then(|r| r.latency_ns).map_or(0, ps);
    let eager_bytes = link.threshold_bytes.map_or(u64::MAX, |b| b as u64);
    let (mut segments, mut errors) = (Vec::new(), Vec::new());
    for (i, r) in link.ranges.iter().enumerate() {
        let last_bytes = link.ranges.get(i + 1).map_or(u64::MAX, |next| next.from_bytes - 1);
        let per_byte = r.per_byte.unwrap_or(0.0).max(0.0);
        // Of the smallest message of the range: what a first byte would cost is less by the others.
        let first = |ns: f64| (ns - per_byte * r.from_bytes.saturating_sub(1) as f64).max(0.0);
        let message_ns = r.message_ns.map_or(0.0, first);
        if r.latency_ns.is_none() {
            assume("L cannot be told from the overheads: 0 is used");
        }
        let latency_ps = r.latency_ns.map_or(0, ps);
        // A send that takes as long as half a round trip moves the bytes itself: the link does not move them again.
        let cpu_moves = r.latency_ns.is_none() && r.send_ns.is_some();
        let per_byte = (per_byte * 1000.0 * PER_PS as f64).round() as u64;
        let (send_per_byte, link_per_byte) = if cpu_moves { (per_byte, 0) } else { (0, per_byte) };
        let overhead_ns = r.send_ns.map(|ns| if cpu_moves { first(ns) } else { ns });
        let overhead_ns = overhead_ns.or(r.recv_ns).unwrap_or_else(|| {
            assume("the overheads were not measured: the time per message is used for both");
            message_ns
        });
        let gap_ns = r.gap_ns.or(cpu_moves.then_some(0.0)).unwrap_or_else(|| {
            assume("the CPUs set the pace: g is at most the time per message, which is used");
            message_ns
        });
        let line = |ns: f64, per_byte| Line { first_ps: ps(ns), per_byte };
        let eager = Segment {
            last_bytes,
            send: line(overhead_ns, send_per_byte),
            receive: line(r.recv_ns.unwrap_or(overhead_ns), 0),
            gap: line(gap_ns, link_per_byte),
            latency_ps,
            protocol: Protocol::Eager,
        };
        // L of a rendezvous was measured with its handshake, whose ways take as long as those of the smallest messages.
        let way_ps = handshake_ps.min(latency_ps / 3);
        let rendezvous = Segment {
            latency_ps: latency_ps - 2 * way_ps,
            protocol: Protocol::Rendezvous { handshake_ps: way_ps },
            ..eager
        };
        if last_bytes <= eager_bytes {
            segments.push(eager);
        } else {
            if r.from_bytes <= eager_bytes {
                segments.push(Segment { last_bytes: eager_bytes, ..eager });
            }
            segments.push(rendezvous);
        }
        errors.resize(segments.len(), Errors::of(i, r));
    }
    let params = Params::new(segments, dialect)?;
    Some(OfLink { name: link.name(), params, errors, assumptions })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_gives_its_segments_and_says_what_is_assumed() {
        let first = Range {
            from_bytes: 1,
            latency_ns: Some(100.0),
            send_ns: Some(20.0),
            recv_ns: None,
            gap_ns: None,
            message_ns: Some(40.0),
            per_byte: Some(0.25),
            reaches: [("latency".to_owned(), 0.196)].into(),
        };
        let second =
            Range { from_bytes: 4097, latency_ns: Some(1000.0), gap_ns: Some(60.0), ..first.clone() };
        let link = Link {
            transport: "shm".to_owned(),
            direction: "there".to_owned(),
            ranges: vec![first, second],
            threshold_bytes: Some(8192.0),
        };
        let found = of_link(&link, Dialect::Machmeter).unwrap();
        let sizes: Vec<u64> = found.params.segments().iter().map(|s| s.last_bytes).collect();
        assert_eq!(sizes, [4096, 8192, u64::MAX]);
        let [small, _, large] = found.params.segments() else { panic!("three segments") };
        assert_eq!((small.send.first_ps, small.receive.first_ps), (20_000, 20_000));
        assert_eq!((small.gap.first_ps, small.gap.per_byte), (40_000, 256_000));
        assert_eq!(small.latency_ps, 100_000);
        let Protocol::Rendezvous { handshake_ps } = large.protocol else { panic!("a handshake") };
        assert_eq!(2 * handshake_ps + large.latency_ps, 1_000_000, "a waiting receiver sees L as measured");
        assert_eq!(found.assumptions.len(), 1);
        let known: Vec<(usize, f64)> =
            found.errors.iter().map(|e| (e.range, e.relative[Part::Latency as usize])).collect();
        assert!(known.iter().all(|(_, e)| (e - 0.1).abs() < 1e-3), "{known:?}");
        assert_eq!(known.iter().map(|k| k.0).collect::<Vec<_>>(), [0, 1, 1]);
        let none = of_record(&Record::default(), None, Dialect::Machmeter).unwrap_err();
        assert!(none.starts_with("the record has no parameters of links"));
    }
}
