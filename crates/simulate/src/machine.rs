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
        // What stands for a figure that was not measured: see `of_range`.
        let message = of("message_time");
        relative[Part::Overhead as usize] = overhead.or(message).unwrap_or(0.0);
        relative[Part::Latency as usize] = of("latency").or(of("one_way")).unwrap_or(0.0);
        relative[Part::Gap as usize] = of("gap").or(message).unwrap_or(0.0);
        let bytes = of("gap_per_byte").into_iter().chain(of("one_way_per_byte")).reduce(f64::max);
        relative[Part::GapBytes as usize] = bytes.unwrap_or(0.0);
        relative[Part::OverheadBytes as usize] = bytes.unwrap_or(0.0);
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
        None => "the record has no parameters of links: measure them with machmeter net; next to other load use --prio fifo:5 or a longer -t".to_owned(),
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

/// The costs of a range of sizes, eager. One message alone takes what was measured: its overheads, L and its bytes make that up.
fn of_range(r: &Range, mut assume: impl FnMut(&str)) -> Segment {
    let further = r.from_bytes.saturating_sub(1) as f64;
    let gap_per_byte = r.per_byte.unwrap_or(0.0).max(0.0);
    // Of the smallest message of the range: what a first byte would cost is less by the others.
    let message_ns = r.message_ns.map_or(0.0, |ns| (ns - gap_per_byte * further).max(0.0));
    let latency_ns = r.latency_ns.unwrap_or(0.0);
    let way_per_byte = r.one_way_per_byte.unwrap_or(gap_per_byte);
    // A send that takes as long as half a round trip moves the bytes itself: the link does not move them again.
    let cpu_moves = r.latency_ns.is_none() && r.send_ns.is_some();
    let known_ns = r.send_ns.or(r.recv_ns);
    let send_ns = known_ns.unwrap_or_else(|| {
        assume("the overheads were not measured: the time per message, or half of the one-way time, is used for both");
        message_ns.min(r.one_way_ns.map_or(message_ns, |ns| ns / 2.0))
    });
    let recv_ns = r.recv_ns.unwrap_or(send_ns);
    let bytes_ns = if cpu_moves { 0.0 } else { gap_per_byte * further };
    let way_ns = r.one_way_ns.unwrap_or(send_ns + latency_ns + recv_ns + bytes_ns);
    let busy_ns = (send_ns + recv_ns).min(way_ns);
    if busy_ns < send_ns + recv_ns {
        assume("both overheads together exceed the one-way time: both are reduced to fit");
    }
    if r.latency_ns.is_none() {
        let used = if r.one_way_ns.is_some() { "the one-way time minus the overheads" } else { "0" };
        assume(&format!("L cannot be separated from the overheads: {used} is used"));
    }
    // No more than what one byte leaves of it.
    let latency_ns = latency_ns.min(way_ns - busy_ns).min((way_ns - way_per_byte * further).max(0.0));
    let rest_ns = way_ns - busy_ns - latency_ns;
    // Bytes that the overheads at the smallest size do not hold pass without a CPU.
    let passing_per_byte = match further {
        0.0 if cpu_moves => 0.0,
        0.0 => way_per_byte,
        further => way_per_byte.min(rest_ns / further),
    };
    let by_cpus = way_per_byte - passing_per_byte;
    let line = |ns: f64, per_byte: f64| Line { first_ps: ps(ns), per_byte: ps(per_byte * PER_PS as f64) };
    let end = |ns: f64| {
        let share = if send_ns + recv_ns > 0.0 { ns / (send_ns + recv_ns) } else { 0.5 };
        line(share * (busy_ns - by_cpus * further), share * by_cpus)
    };
    let gap_ns = r.gap_ns.unwrap_or_else(|| {
        assume("the CPUs limit the rate: g is at most the time per message, which is used");
        message_ns
    });
    Segment {
        last_bytes: u64::MAX,
        send: end(send_ns),
        receive: end(recv_ns),
        gap: line(gap_ns, gap_per_byte),
        latency_ps: ps(way_ns - busy_ns - passing_per_byte * further),
        way_per_byte: ps(passing_per_byte * PER_PS as f64),
        protocol: Protocol::Eager,
    }
}

fn of_link(link: &Link, dialect: Dialect) -> Option<OfLink> {
    let mut assumptions: Vec<String> = Vec::new();
    let handshake_ps = link.ranges.first().and_then(|r| r.latency_ns).map_or(0, ps);
    let eager_bytes = link.threshold_bytes.map_or(u64::MAX, |b| b as u64);
    let (mut segments, mut errors) = (Vec::new(), Vec::new());
    for (i, r) in link.ranges.iter().enumerate() {
        let last_bytes = link.ranges.get(i + 1).map_or(u64::MAX, |next| next.from_bytes - 1);
        let eager = of_range(r, |text| {
            if !assumptions.iter().any(|a| a == text) {
                assumptions.push(text.to_owned());
            }
        });
        let eager = Segment { last_bytes, ..eager };
        // L of a rendezvous was measured with its handshake, whose ways take as long as those of the smallest messages.
        let way_ps = handshake_ps.min(eager.latency_ps / 3);
        let rendezvous = Segment {
            latency_ps: eager.latency_ps - 2 * way_ps,
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
    use crate::noise::Quiet;
    use crate::patterns::{Shape, Stepped, find};
    use crate::run;

    fn one_way_ns(params: &Params, bytes: u64) -> f64 {
        let pattern = (find("binomial").unwrap().make)(Shape::of(2, bytes));
        let mut program = Stepped::new(pattern.as_ref(), 2, 1, 0);
        let done = run::<u64, _, _>(&mut program, params, &mut Quiet, &|| false).unwrap();
        done.last().1 as f64 / 1000.0
    }

    #[test]
    fn a_message_alone_takes_one_way_of_the_record() {
        // Whatever is known beside: L, o_s, o_r, g; G above and below what a byte of a message alone takes.
        let range = |from_bytes, one_way_ns, by_byte, latency_ns, send_ns, recv_ns, per_byte| Range {
            from_bytes,
            latency_ns,
            send_ns,
            recv_ns,
            gap_ns: None,
            message_ns: Some(0.6 * one_way_ns),
            per_byte: Some(per_byte),
            one_way_ns: Some(one_way_ns),
            one_way_per_byte: Some(by_byte),
            reaches: [].into(),
        };
        let none = None;
        let ranges = vec![
            range(1, 350.0, 0.2, Some(250.0), Some(40.0), Some(60.0), 0.1),
            range(1_001, 1_000.0, 0.3, none, none, none, 0.1),
            range(4_001, 2_000.0, 0.25, none, Some(900.0), Some(800.0), 0.2),
            range(16_001, 6_000.0, 0.1, none, Some(9_000.0), none, 0.25),
            range(65_001, 12_000.0, 0.05, Some(3_000.0), Some(2_000.0), Some(1_000.0), 0.1),
            range(260_001, 33_000.0, 0.07, none, none, none, 0.12),
        ];
        for threshold_bytes in [None, Some(100_000.0), Some(2_000.0)] {
            let link = Link {
                transport: "unix".to_owned(),
                direction: "there".to_owned(),
                ranges: ranges.clone(),
                threshold_bytes,
            };
            let found = of_link(&link, Dialect::Machmeter).unwrap();
            for (i, r) in ranges.iter().enumerate() {
                let last = ranges.get(i + 1).map_or(1 << 20, |next| next.from_bytes - 1);
                for bytes in [r.from_bytes, r.from_bytes.midpoint(last), last] {
                    let further = (bytes - r.from_bytes) as f64;
                    let truth = r.one_way_ns.unwrap() + r.one_way_per_byte.unwrap() * further;
                    let found = one_way_ns(&found.params, bytes);
                    assert!((found / truth - 1.0).abs() < 1e-3, "{bytes} B: {found} for {truth} ns");
                }
            }
        }
    }

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
            one_way_ns: None,
            one_way_per_byte: None,
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
