//! Sums over the calls of all ranks, and the figures derived from them.

use std::collections::BTreeMap;

use machmeter_data::metric::params;
use machmeter_data::trace::{Kind, OPERATIONS};
use machmeter_data::{Interval, Metric, Params};
use machmeter_stats::quantile::{quantile, quantile_interval};

use super::Rank;
use super::collectives::{AllMatched, Matched};
use super::info::{BYTES, CALLS, DURATION, LAST, ON_CPU, RANKS, SHARE, WAITING, WALL};

/// Number of equal spans of the run with separate shares, for comparisons.
const BLOCKS: usize = 20;
/// Confidence of intervals.
const LEVEL: f64 = 0.95;
/// Probabilities of quantiles of durations.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Sums over the calls of one operation, or of all.
#[derive(Debug, Default)]
pub(super) struct Sum {
    pub(super) time_ns: f64,
    pub(super) bytes: u64,
    pub(super) open: u64,
    /// Durations of returned calls, ns; ascending after the summation.
    pub(super) durations_ns: Vec<f64>,
    blocks_ns: [f64; BLOCKS],
}

impl Sum {
    pub(super) fn calls(&self) -> u64 {
        self.durations_ns.len() as u64 + self.open
    }
}

/// Sums over all calls.
pub(super) struct Figures<'m> {
    pub(super) all: Sum,
    /// By operation, the one with the most time first.
    pub(super) operations: Vec<(usize, Sum)>,
    /// Bytes of messages by sender and receiver.
    pub(super) sent: BTreeMap<(u32, u32), u64>,
    /// Time in calls per rank, ns.
    pub(super) rank_ns: Vec<f64>,
    pub(super) matched: &'m AllMatched,
    ranks: u64,
    wall_ns: u64,
    threads_ns: f64,
    on_cpu: Option<f64>,
}

/// Name of an operation in lower case, as in rows and parameters.
pub(super) fn name(operation: usize) -> String {
    OPERATIONS[operation].name.to_lowercase()
}

/// True if the operation sends when it is called.
fn sends(operation: usize) -> bool {
    let o = &OPERATIONS[operation];
    o.kind == Kind::Message && o.name.to_lowercase().contains("send") && !o.name.ends_with("_init")
}

impl<'m> Figures<'m> {
    pub(super) fn of(ranks: &[Rank<'_>], matched: &'m AllMatched) -> Self {
        let wall_ns = ranks.iter().map(|r| r.after_start_ns(r.trace.end_ns)).max().unwrap_or(0).max(0) as u64;
        let mut sums: BTreeMap<usize, Sum> = BTreeMap::new();
        let mut all = Sum::default();
        let (mut sent, mut rank_ns) = (BTreeMap::new(), Vec::new());
        for r in ranks {
            let mut own_ns = 0.0;
            for call in r.trace.calls() {
                let sum = sums.entry(call.operation).or_default();
                sum.bytes = sum.bytes.saturating_add(call.bytes);
                all.bytes = all.bytes.saturating_add(call.bytes);
                if sends(call.operation) && call.peer >= 0 {
                    let bytes: &mut u64 = sent.entry((r.trace.rank, call.peer as u32)).or_default();
                    *bytes = bytes.saturating_add(call.bytes);
                }
                let Some(took_ns) = call.duration_ns else {
                    sum.open += 1;
                    all.open += 1;
                    continue;
                };
                own_ns += took_ns as f64;
                let begin_ns = r.after_start_ns(call.start_ns) as f64;
                for s in [sum, &mut all] {
                    s.time_ns += took_ns as f64;
                    s.durations_ns.push(took_ns as f64);
                    spread(&mut s.blocks_ns, begin_ns, took_ns as f64, wall_ns as f64);
                }
            }
            rank_ns.push(own_ns);
        }
        let mut operations: Vec<(usize, Sum)> = sums.into_iter().collect();
        operations.sort_by(|a, b| b.1.time_ns.total_cmp(&a.1.time_ns));
        for (_, sum) in &mut operations {
            sum.durations_ns.sort_by(f64::total_cmp);
        }
        let threads = ranks.iter().flat_map(|r| &r.trace.threads).filter(|t| t.wall_ns > 0);
        let (cpu, wall) = threads.fold((0.0, 0.0), |(c, w), t| (c + t.cpu_ns as f64, w + t.wall_ns as f64));
        Self {
            all,
            operations,
            sent,
            rank_ns,
            matched,
            ranks: ranks.first().map_or(0, |r| u64::from(r.trace.size)),
            wall_ns,
            threads_ns: ranks.iter().map(|r| r.threads_ns() as f64).sum(),
            // Clamped, because the two clocks are read one after the other.
            on_cpu: (wall > 0.0).then(|| (cpu / wall).min(1.0)),
        }
    }

    /// Share of the time of all threads.
    pub(super) fn share(&self, sum: &Sum) -> Option<f64> {
        (self.threads_ns > 0.0).then(|| sum.time_ns / self.threads_ns)
    }

    pub(super) fn matched(&self, operation: usize) -> Option<&Matched> {
        self.matched.operations.get(&operation)
    }

    pub(super) fn metrics(&self) -> Vec<Metric> {
        let calls = self.all.calls();
        let mut out = vec![
            Metric::new(&RANKS, Params::new(), self.ranks as f64, "count", self.ranks),
            Metric::new(&WALL, Params::new(), self.wall_ns as f64, "difference", 1),
        ];
        out.extend(self.on_cpu.map(|share| Metric::new(&ON_CPU, Params::new(), share, "time-share", calls)));
        self.add(&mut out, "all".to_owned(), &self.all, None);
        for (operation, sum) in &self.operations {
            self.add(&mut out, name(*operation), sum, self.matched(*operation));
        }
        out
    }

    fn add(&self, out: &mut Vec<Metric>, operation: String, sum: &Sum, matched: Option<&Matched>) {
        let of = || params([("operation", operation.clone().into())]);
        let calls = sum.calls();
        out.push(Metric::new(&CALLS, of(), calls as f64, "count", calls));
        if sum.bytes > 0 {
            out.push(Metric::new(&BYTES, of(), sum.bytes as f64, "sum", calls));
        }
        if let Some(share) = self.share(sum) {
            let block_ns = self.wall_ns as f64 / BLOCKS as f64;
            let all_ns = self.threads_ns / BLOCKS as f64;
            let blocks = sum.blocks_ns.iter().map(|ns| ns / all_ns).collect();
            out.push(Metric::new(&SHARE, of(), share, "time-share", calls).with_blocks(blocks, block_ns));
        }
        if operation == "all" {
            return;
        }
        if let Some(median) = quantile(&sum.durations_ns, 0.5) {
            let quantiles: Vec<(f64, f64)> =
                QUANTILES.iter().filter_map(|p| Some((*p, quantile(&sum.durations_ns, *p)?))).collect();
            let ci = quantile_interval(&sum.durations_ns, 0.5, LEVEL);
            let ci = ci.and_then(|ci| Interval::new(LEVEL, ci.low, ci.high, "rank"));
            let longest = sum.durations_ns.last().copied().unwrap_or(median);
            let metric = Metric::new(&DURATION, of(), median, "median", sum.durations_ns.len() as u64);
            out.push(metric.with_ci(ci).with_quantiles(&quantiles).with_max(longest));
        }
        let Some(m) = matched else { return };
        if m.time_ns > 0.0 {
            out.push(Metric::new(&WAITING, of(), m.waiting_ns / m.time_ns, "time-share", m.calls));
        }
        if let Some((rank, times)) = m.last.iter().max_by_key(|(_, times)| **times) {
            let params = params([("operation", operation.into()), ("rank", i64::from(*rank).into())]);
            out.push(Metric::new(&LAST, params, *times as f64 / m.calls as f64, "count", m.calls));
        }
    }
}

/// Adds a call to the spans of the run that it covers.
fn spread(blocks: &mut [f64; BLOCKS], begin_ns: f64, took_ns: f64, wall_ns: f64) {
    let span_ns = wall_ns / BLOCKS as f64;
    if span_ns <= 0.0 {
        return;
    }
    let end_ns = begin_ns + took_ns;
    let first = (begin_ns / span_ns).max(0.0) as usize;
    let last = ((end_ns / span_ns) as usize).min(BLOCKS - 1);
    for (i, block) in blocks.iter_mut().enumerate().take(last + 1).skip(first) {
        let from_ns = i as f64 * span_ns;
        *block += (end_ns.min(from_ns + span_ns) - begin_ns.max(from_ns)).max(0.0);
    }
}
