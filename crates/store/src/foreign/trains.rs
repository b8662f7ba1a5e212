//! Trains and round trips of messages: `ng.out` of Netgauge's `-x loggp` (also as machmeter exports it), and the file of `NetPIPE`'s `-o`.
//!
//! The readers only parse them into rows of the net probe, whose analysis finds ranges of sizes and parameters.

use std::collections::BTreeMap;

use machmeter_data::{Column, ParamValue, Unit, Values};
use machmeter_stats::quantile::{quantile, sorted};
use serde_json::json;

use super::codes::{IMPOSSIBLE_NUMBERS, WRONG_UNIT, warn};
use super::columns::{add_table, all};
use super::{Imported, Input, Reader, Result, SourceFile, sure};

pub(super) const NETGAUGE_LOGGP: Reader = Reader {
    name: "netgauge-loggp",
    description: "Netgauge -x loggp (ng.out): eleven columns, size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,d,s) L o_s o_r g G lsqu, in us",
    sniff: |input| all(input, |f| f.text.contains("PRTT(1,0,s)") && lines::<11>(f).next().is_some()),
    fill: netgauge,
};

pub(super) const NETPIPE: Reader = Reader {
    name: "netpipe",
    description: "NetPIPE -o (np.out): bytes, Mbit/s and seconds of half a round trip",
    sniff: |input| all(input, looks_like_netpipe),
    fill: netpipe,
};

/// Messages per train, as in the net probe.
const TRAIN: f64 = 16.0;
/// Number of standard deviations that contain nine tenths of a normal distribution.
const NORMAL_90: f64 = 1.644_854;
const ERRORS: &str = "errors are not in the file; they are estimated from the distance of each size to the line through its neighbors";

/// Lines of numbers, each with the last comment before it; NaN is a number here.
fn lines<const N: usize>(file: &SourceFile) -> impl Iterator<Item = (&str, [f64; N])> {
    let mut comment = "";
    file.text.lines().filter_map(move |line| {
        if let Some(text) = line.trim_start().strip_prefix('#') {
            comment = text.trim();
            return None;
        }
        let cells: Option<Vec<f64>> = line.split_whitespace().map(|w| w.parse().ok()).collect();
        Some((comment, cells?.try_into().ok()?))
    })
}

/// Three columns, the third being the time that corresponds to the rate in the second.
fn looks_like_netpipe(file: &SourceFile) -> bool {
    let fits = |[bytes, mbit, s]: [f64; 3]| (mbit * 1e6 * s / (bytes * 8.0) - 1.0).abs() < 0.1;
    let (mut n, mut fit) = (0, 0);
    for (_, cells) in lines::<3>(file) {
        n += 1;
        fit += usize::from(fits(cells));
    }
    // NetPIPE's megabits are 2^20 bits; small sizes have few digits.
    n > 3 && 2 * fit > n && n == file.text.lines().filter(|l| !l.trim().is_empty()).count()
}

#[allow(clippy::struct_field_names, reason = "units")]
#[derive(Debug, Clone, Copy, Default)]
struct Point {
    round_trip_ns: f64,
    /// Time per message of a train; time on the sender's CPU; time on the receiver's CPU.
    gap_ns: Option<f64>,
    send_ns: Option<f64>,
    recv_ns: Option<f64>,
}

type Points = BTreeMap<u64, Point>;
/// By transport and direction.
type Links = BTreeMap<(String, String), Points>;

fn netgauge(input: &Input, out: &mut Imported) -> Result<()> {
    let mut links = Links::new();
    let (mut not_numbers, mut negative, mut repeated) = (0, Vec::new(), 0);
    for file in &input.files {
        for (comment, cells) in lines::<11>(file) {
            let [size, n, one, train, worked, _, o_s, o_r, g, per_byte, lsqu] = cells;
            let link = comment.split_once(' ').filter(|(_, way)| matches!(*way, "there" | "back"));
            let (transport, direction) = link.unwrap_or(("netgauge", "there"));
            not_numbers += usize::from(![g, per_byte, lsqu].into_iter().all(f64::is_finite));
            for (name, value) in [("o_s", o_s), ("o_r", o_r), ("g", g), ("G", per_byte)] {
                if value < 0.0 {
                    negative.push(format!("{name} = {value} at {size} B"));
                }
            }
            if !(size >= 1.0 && n > 1.0 && one > 0.0 && train > one) {
                negative.push(format!("trains of {size} B that are not longer than one message"));
                continue;
            }
            let positive = |us: f64| Some(us * 1e3).filter(|v| *v > 0.0 && v.is_finite());
            let point = Point {
                round_trip_ns: one * 1e3,
                gap_ns: Some((train - one) / (n - 1.0) * 1e3),
                send_ns: positive((worked - one) / (n - 1.0) - one),
                recv_ns: positive(o_r),
            };
            let points = links.entry((transport.to_owned(), direction.to_owned())).or_default();
            repeated += usize::from(points.insert(size as u64, point).is_some());
        }
    }
    let said = [
        (not_numbers > 0).then(|| format!("{not_numbers} lines where g, G or lsqu is not a number")),
        negative.first().map(|first| format!("{} impossible values, such as {first}", negative.len())),
        (repeated > 0)
            .then(|| format!("{repeated} sizes appear twice, with the fit before a protocol change")),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    if !said.is_empty() {
        warn(out, IMPOSSIBLE_NUMBERS, said.join("; "));
    }
    let rate = "the printed GiB/s after G is 8/1024 of the bytes per us: about 8 times too much, and not a rate in GiB/s";
    warn(out, WRONG_UNIT, rate);
    out.assume("trains of 16 messages are computed from trains of n: PRTT(1) and 15 times (PRTT(n) - PRTT(1))/(n - 1)");
    out.assume(ERRORS);
    out.assume("o_r is the printed value; it depends on which rank the program chose as the server");
    finish(out, input, &links)
}

fn netpipe(input: &Input, out: &mut Imported) -> Result<()> {
    let mut links = Links::new();
    for file in &input.files {
        let points = links.entry((file.name().to_owned(), "there".to_owned())).or_default();
        for (_, [size, _, seconds]) in lines::<3>(file) {
            if size >= 1.0 && seconds > 0.0 {
                points.insert(size as u64, Point { round_trip_ns: 2e9 * seconds, ..Point::default() });
            }
        }
    }
    out.assume("times are the minimum of several trials, not typical values");
    out.assume(ERRORS);
    finish(out, input, &links)
}

/// Adds the points as tables of the net probe, whose rows have no samples.
fn finish(out: &mut Imported, input: &Input, links: &Links) -> Result<()> {
    let mut rows: Vec<(&str, String)> = Vec::new();
    for ((transport, direction), points) in links {
        let mut push = |operation: &'static str, ns: f64, relative: f64, more: &[(&str, u64)]| {
            let mut params: BTreeMap<&str, ParamValue> = BTreeMap::from([
                ("transport", transport.as_str().into()),
                ("wait", "polling".into()),
                ("direction", direction.as_str().into()),
            ]);
            params.extend(more.iter().map(|(k, v)| (*k, i64::try_from(*v).unwrap_or(i64::MAX).into())));
            let extras = json!({ "given_ns": ns, "given_sigma_ns": ns * relative });
            let rest = json!({ "params": params, "rejected": [0, 0, 0, 0], "extras": extras });
            rows.push((operation, rest.to_string()));
        };
        let trips: Vec<(f64, f64)> = points.iter().map(|(s, p)| (*s as f64, p.round_trip_ns)).collect();
        let gaps: Vec<(f64, f64)> = points.iter().filter_map(|(s, p)| Some((*s as f64, p.gap_ns?))).collect();
        let (trips, gaps) = (scatter(&trips), scatter(&gaps));
        push("work", 1_000.0, 1e-6, &[]);
        for (size, p) in points {
            let size = ("size_bytes", *size);
            push("train", p.round_trip_ns, trips, &[size, ("messages", 1), ("work", 0)]);
            let train = |each_ns: f64| p.round_trip_ns + (TRAIN - 1.0) * each_ns;
            if let Some(gap_ns) = p.gap_ns {
                push("train", train(gap_ns), gaps, &[size, ("messages", TRAIN as u64), ("work", 0)]);
            }
            if let Some(send_ns) = p.send_ns {
                // Work of the same duration as a round trip.
                let work = p.round_trip_ns.round().max(1.0);
                let key = [size, ("messages", TRAIN as u64), ("work", work as u64)];
                push("train", train(send_ns + work), trips, &key);
            }
            if let Some(recv_ns) = p.recv_ns {
                push("receive", recv_ns, trips, &[size]);
            }
        }
    }
    let has_time = links.values().any(|l| !l.is_empty());
    sure(has_time, || input.fault("no line contains a possible time"))?;
    cost_tables(out, ["net", "links"], rows, &[]);
    Ok(())
}

/// Adds tables of a cost probe whose rows have no samples: operations, and their further columns as JSON. `notes`: facts for its analysis.
pub(super) fn cost_tables(
    out: &mut Imported,
    [probe, part]: [&str; 2],
    rows: Vec<(&str, String)>,
    notes: &[(&str, String)],
) {
    let n = rows.len();
    let column = |name: &str, values: Values| Column::new(name, Unit::One, values);
    let text = |value: &str| Values::Text(vec![value.to_owned(); n]);
    let of_rows = vec![
        column("part", text(part)),
        column("operation", Values::Text(rows.iter().map(|r| r.0.to_owned()).collect())),
        column("kind", text("latency")),
        column("short_turns", Values::I64(vec![1; n])),
        column("long_turns", Values::I64(vec![1; n])),
        column("per_turn", Values::F64(vec![1.0; n])),
        column("rest", Values::Text(rows.into_iter().map(|r| r.1).collect())),
    ];
    let (i32s, i64s, f64s) = (Values::I32(vec![]), Values::I64(vec![]), Values::F64(vec![]));
    let of_pairs = [
        ("row", &i32s),
        ("at_ns", &f64s),
        ("visit", &i32s),
        ("short_ticks", &i64s),
        ("long_ticks", &i64s),
        ("regime_ns", &f64s),
        ("core_width", &f64s),
        ("addition_ticks", &f64s),
    ];
    let of_pairs = of_pairs.map(|(name, none)| column(name, none.clone())).into();
    // Times are in ns.
    let notes = [&[("tick_hz", "1000000000".to_owned())], notes].concat();
    for (name, columns) in [("rows", of_rows), ("pairs", of_pairs)] {
        add_table(out, &format!("{probe}_{name}"), columns, &notes);
    }
}

/// Relative error of a time: the deviation of each point from the line through its two neighbors. A tenth of the points may be at the end of a segment; the
/// rest bound a normal distribution. At least 1e-4, which printed digits may hide.
fn scatter(points: &[(f64, f64)]) -> f64 {
    let off = |w: &[(f64, f64)]| {
        let [(x0, y0), (x, y), (x1, y1)] = [w[0], w[1], w[2]];
        let part = (x - x0) / (x1 - x0);
        let straight = y0 + part * (y1 - y0);
        // Standard deviation of the difference of three independent values with equal error.
        (y - straight).abs() / y / (1.0 + part.powi(2) + (1.0 - part).powi(2)).sqrt()
    };
    let off: Vec<f64> = points.windows(3).map(off).collect();
    let within = sorted(&off).ok().and_then(|off| quantile(&off, 0.9));
    within.map_or(0.01, |off| (off / NORMAL_90).max(1e-4))
}
