//! From timed runs to efficiency, overhead and shares, what the three ideas are worth, and where larger buffers stop to help. Pure.

use machmeter_data::metric::{Params as Keys, params};
use machmeter_data::record::Finding;
use machmeter_data::{Interval, Metric, MetricInfo};
use machmeter_engine::Analysis;
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_engine::cost::{Pair, Row, Rows};
use machmeter_flow::Name;
use machmeter_flow::table::MOST_CORRECTION;
use machmeter_stats::quantile::{quantile, quantile_interval, sorted};

use crate::files::GIVEN;
use crate::graphs::{CALIBRATION, PART, TIMED, Timed};
use crate::info::{
    BROKEN, BY_DIFFERENCES, EFFICIENCY, LATENCY, NOT_MEASURED, OVER_FILE, OVERHEAD, PREDICTION, RATE, RATIO,
    SHARE, THROUGHPUT, WORTH,
};
use crate::kernels::Kernel;
use crate::profile::BoxCost;
use crate::{Params, published, show};

/// Timers with a smaller share of the kernel's time have no metric of their own.
const LEAST_SHARE: f64 = 0.01;

pub(crate) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let mut out = Analysis::default();
    let timed = rows.facts.get(&TIMED).unwrap_or_default();
    for t in timed.iter().filter(|t| !t.total_ns.is_empty()) {
        out.metrics.extend(of_graph(t));
        out.metrics.extend(apply_rate(t, rows));
        out.metrics.extend(pace(t, rows));
        out.metrics.extend(prediction(t, rows));
        if !t.broken.is_empty() {
            out.warnings.push(BROKEN.warning(format!("{}, {}: {}", t.graph, t.kernel, t.broken.join("; "))));
        }
    }
    out.metrics.extend(worth(&timed));
    out.findings = knees(&out.metrics);
    let short = |t: &&Timed| -> Option<String> {
        let is_short = |r: &&machmeter_flow::table::Row| r.correction.is_some_and(|c| c > MOST_CORRECTION);
        let n = t.table.rows.iter().filter(is_short).count();
        (n > 0).then(|| format!("{}, {}: {n} of {} names", t.graph, t.kernel, t.table.rows.len()))
    };
    let short: Vec<String> = timed.iter().filter_map(|t| short(&t)).collect();
    if !short.is_empty() {
        out.warnings.push(
            BY_DIFFERENCES
                .note(format!("single calls are shorter than the timer's own time: {}", short.join("; "))),
        );
    }
    for row in rows.part(PART).filter(|r| r.operation == "run") {
        if let Some(why) = &row.refused {
            out.warnings.push(NOT_MEASURED.warning(format!("{}: {why}", row.text("graph"))));
        }
    }
    out.warnings.extend(rows.facts.get(&GIVEN).map(|given| OVER_FILE.note(given.text())));
    out.datasets = show::datasets(&timed, &out.metrics, rows.facts.get(&CALIBRATION));
    published::analyze(rows, &mut out);
    out
}

pub(crate) fn keys(t: &Timed) -> Keys {
    params([
        ("graph", t.graph.as_str().into()),
        ("kernel", t.kernel.as_str().into()),
        ("granularity", i64::from(t.granularity).into()),
    ])
}

/// The median of runs with its interval; without one the figure is of too few runs to have any.
fn of_runs(info: &MetricInfo, keys: Keys, values: &[f64]) -> Option<Metric> {
    let values = sorted(values).ok()?;
    let m = Metric::new(info, keys, quantile(&values, 0.5)?, "median of runs", values.len() as u64);
    Some(match quantile_interval(&values, 0.5, LEVEL) {
        Some(i) => m.with_ci(Interval::new(LEVEL, i.low, i.high, "order statistics of runs")),
        None => m,
    })
}

/// Of so many runs without (0) or with timers (1), those during which nobody took the CPU from any of `timed`; where there are none, all.
pub(crate) fn undisturbed(timed: &[&Timed], with_timers: usize, runs: usize) -> Vec<usize> {
    let is_alone = |i: &usize| timed.iter().all(|t| t.preempted.get(*i).is_none_or(|n| n[with_timers] == 0));
    let alone: Vec<usize> = (0..runs).filter(is_alone).collect();
    if alone.is_empty() { (0..runs).collect() } else { alone }
}

fn of_graph(t: &Timed) -> Vec<Metric> {
    let (apply, kernel_ns) = (Name::Apply as usize, kernel_ns(t));
    let runs = undisturbed(&[t], 1, kernel_ns.len());
    let of = |f: &dyn Fn(usize) -> f64| runs.iter().map(|i| f(*i)).collect::<Vec<f64>>();
    let efficiency = of(&|i| t.total_ns[i][apply] / t.total_ns[i].iter().sum::<f64>());
    let mut out: Vec<Metric> = of_runs(&EFFICIENCY, keys(t), &efficiency).into_iter().collect();
    let overheads = of(&|i| kernel_ns[i] / t.called[i][apply].max(1) as f64);
    out.extend(of_runs(&OVERHEAD, keys(t), &overheads));
    for name in Name::ALL.iter().filter(|n| **n != Name::Apply) {
        // What is below zero is the timer's own time, taken off too often: it is no share, and makes others no greater.
        let all = |i: usize| {
            t.total_ns[i].iter().map(|ns| ns.max(0.0)).sum::<f64>() - t.total_ns[i][apply].max(0.0)
        };
        let shares = of(&|i| t.total_ns[i][*name as usize].max(0.0) / all(i));
        let mut keys = keys(t);
        keys.insert("timer".to_owned(), Name::TEXTS[*name as usize].into());
        out.extend(of_runs(&SHARE, keys, &shares).filter(|m| m.value.is_some_and(|v| v >= LEAST_SHARE)));
    }
    out
}

/// Wall times of runs without timers, ns.
fn walls_ns(t: &Timed, rows: &Rows) -> Vec<f64> {
    let is_it = |r: &&Row| r.operation == "run" && r.params == keys(t);
    let wall = |p: &Pair| p.long_ticks.max(1) as f64 * rows.ns_per_tick();
    let Some(row) = rows.part(PART).find(is_it) else { return Vec::new() };
    undisturbed(&[t], 0, row.pairs.len()).into_iter().map(|i| wall(&row.pairs[i])).collect()
}

fn apply_rate(t: &Timed, rows: &Rows) -> Option<Metric> {
    let applies = *t.called.first()?.get(Name::Apply as usize)? as f64;
    let rates: Vec<f64> = walls_ns(t, rows).iter().map(|ns| applies / ns * 1e9).collect();
    of_runs(&THROUGHPUT, keys(t), &rates)
}

/// The three ideas, in the order of the switches of a kernel's name.
const IDEAS: [&str; 3] = ["fused boxes", "mirrored queues", "bitmap"];

fn ideas(kernel: Kernel) -> [bool; 3] {
    let fast = Kernel::FAST;
    [kernel.is_fused, kernel.queues == fast.queues, kernel.ready == fast.ready]
}

/// The kernel's time of each run: all that is not apply, ns.
pub(crate) fn kernel_ns(t: &Timed) -> Vec<f64> {
    let apply = Name::Apply as usize;
    t.total_ns.iter().map(|r| r.iter().sum::<f64>() - r[apply]).collect()
}

/// Time of each of the eight kernels in one round, by bits of the ideas they have.
fn rounds(timed: &[Timed], graph: &str, granularity: u32) -> Option<Vec<[f64; 8]>> {
    let mut by_bits: Vec<Option<&Timed>> = vec![None; 8];
    for kernel in Kernel::all() {
        let is_it =
            |t: &&Timed| t.graph == graph && t.granularity == granularity && t.kernel == kernel.name();
        let bits = ideas(kernel).iter().enumerate().map(|(i, has)| usize::from(*has) << i).sum::<usize>();
        by_bits[bits] = timed.iter().find(is_it);
    }
    let by_bits: Vec<&Timed> = by_bits.into_iter().collect::<Option<_>>()?;
    let ns: Vec<Vec<f64>> = by_bits.iter().map(|t| kernel_ns(t)).collect();
    let runs = undisturbed(&by_bits, 1, ns.iter().map(Vec::len).min()?);
    Some(runs.into_iter().map(|i| std::array::from_fn(|bits| ns[bits][i])).collect())
}

/// What an idea takes away of the excess: the mean over all orders of introducing the three (Shapley 1953), which adds up.
fn share(ns: &[f64; 8], idea: usize) -> f64 {
    // An idea comes first, second or last in two of six orders each; second behind either of the others.
    const WEIGHTS: [f64; 3] = [1.0 / 3.0, 1.0 / 6.0, 1.0 / 3.0];
    let bit = 1 << idea;
    let gains = (0..8_usize).filter(|bits| bits & bit == 0);
    let gained: f64 =
        gains.map(|bits| WEIGHTS[bits.count_ones() as usize] * (ns[bits] - ns[bits | bit])).sum();
    gained / (ns[0] - ns[7])
}

/// Published over fast, and the shares of the ideas where all eight kernels were measured.
fn worth(timed: &[Timed]) -> Vec<Metric> {
    let mut out = Vec::new();
    let first = |t: &&Timed| t.kernel == Kernel::FAST.name();
    for t in timed.iter().filter(first) {
        let keys =
            || params([("graph", t.graph.as_str().into()), ("granularity", i64::from(t.granularity).into())]);
        let is_classic = |o: &&Timed| {
            o.graph == t.graph && o.granularity == t.granularity && o.kernel == Kernel::CLASSIC.name()
        };
        if let Some(classic) = timed.iter().find(is_classic) {
            let (a, b) = (kernel_ns(classic), kernel_ns(t));
            let ratio = |i: usize| a[i] / b[i];
            let runs = undisturbed(&[classic, t], 1, a.len().min(b.len()));
            out.extend(of_runs(&RATIO, keys(), &runs.into_iter().map(ratio).collect::<Vec<_>>()));
        }
        if let Some(rounds) = rounds(timed, &t.graph, t.granularity) {
            for (i, idea) in IDEAS.iter().enumerate() {
                let shares: Vec<f64> = rounds.iter().map(|r| share(r, i)).filter(|s| s.is_finite()).collect();
                let mut keys = keys();
                keys.insert("idea".to_owned(), (*idea).into());
                out.extend(of_runs(&WORTH, keys, &shares));
            }
        }
    }
    out
}

/// Virtual time over the wall of each run.
fn prediction(t: &Timed, rows: &Rows) -> Option<Metric> {
    let predicted = t.predicted.as_ref()?;
    let ratios: Vec<f64> = walls_ns(t, rows).iter().map(|ns| predicted.wall_ns / ns).collect();
    of_runs(&PREDICTION, keys(t), &ratios)
}

/// How fast a graph takes tokens, by firings of its first box, a source, and how long they stay in it.
fn pace(t: &Timed, rows: &Rows) -> Vec<Metric> {
    let firings = t.profile.boxes.first().map_or(0, BoxCost::loaded);
    if firings == 0 {
        return Vec::new();
    }
    let n = firings as f64;
    let walls_ns = walls_ns(t, rows);
    let of = |info: &MetricInfo, keys: Keys, f: &dyn Fn(f64) -> f64| {
        of_runs(info, keys, &walls_ns.iter().map(|ns| f(*ns)).collect::<Vec<_>>())
    };
    // Iterations that are fired at once, and what lies in queues (Little 1961): levels over what passes in a run.
    let waiting = |queue: usize| {
        let passed = t.profile.passed.get(queue).copied().filter(|n| *n > 0)?;
        Some(t.profile.levels.mean(queue)? / passed as f64)
    };
    let waiting: f64 = (0..t.profile.capacities.len()).filter_map(waiting).sum();
    let granularity = f64::from(t.granularity);
    let mut out: Vec<Metric> = of(&RATE, keys(t), &|ns| n / ns * 1e9).into_iter().collect();
    out.extend(of(&LATENCY, keys(t), &|ns| granularity.min(n) * ns / n + waiting * ns));
    out
}

/// Share of the best rate at which a larger granularity is not worth its latency.
const KNEE: f64 = 0.95;

/// The least granularity that has nearly the best rate, by graph and kernel.
fn knees(metrics: &[Metric]) -> Vec<Finding> {
    // By graph and kernel: granularities, as they were measured, and rates.
    let mut by_name: Vec<(String, Vec<(String, f64)>)> = Vec::new();
    for m in metrics.iter().filter(|m| m.id == RATE.id) {
        let of = |name: &str| m.params.get(name).map_or_else(String::new, ToString::to_string);
        let Some(rate) = m.value else { continue };
        let (name, rate) = (format!("{} by {}", of("graph"), of("kernel")), (of("granularity"), rate));
        match by_name.iter_mut().find(|n| n.0 == name) {
            Some((_, rates)) => rates.push(rate),
            None => by_name.push((name, vec![rate])),
        }
    }
    let knee = |(name, rates): (String, Vec<(String, f64)>)| {
        let best = rates.iter().map(|r| r.1).fold(0.0, f64::max);
        let (granularity, rate) = rates.iter().find(|r| r.1 >= KNEE * best).filter(|_| rates.len() > 2)?;
        let shown = |(g, rate): &(String, f64)| {
            format!("granularity {g}: {:.4} M firings of the source per s", rate / 1e6)
        };
        Some(Finding {
            id: "flow.knee".to_owned(),
            verdict: "present".to_owned(),
            text: format!(
                "{name}: a granularity of {granularity} has {:.0} % of the best rate; more adds latency, and little else",
                100.0 * rate / best
            ),
            evidence: rates.iter().map(shown).collect(),
        })
    };
    by_name.into_iter().filter_map(knee).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_from_which_the_cpu_was_taken_tell_only_where_there_are_no_others() {
        let apply = Name::Apply as usize;
        let run = |kernel_ns: f64| {
            let mut r = vec![0.0; Name::ALL.len()];
            (r[apply], r[(apply + 1) % Name::ALL.len()]) = (1000.0, kernel_ns);
            r
        };
        let of = |kernel: Kernel, ns: [f64; 3], preempted: [u64; 3]| Timed {
            graph: "g".to_owned(),
            kernel: kernel.name(),
            granularity: 1,
            called: vec![vec![10; Name::ALL.len()]; 3],
            total_ns: ns.map(run).to_vec(),
            preempted: preempted.map(|n| [0, n]).to_vec(),
            ..Timed::default()
        };
        let value =
            |metrics: &[Metric], id: &str| metrics.iter().find(|m| m.id == id).unwrap().value.unwrap();
        let fast = of(Kernel::FAST, [10.0, 4000.0, 4000.0], [0, 1, 2]);
        assert_eq!(value(&of_graph(&fast), OVERHEAD.id), 1.0);
        let classic = of(Kernel::CLASSIC, [20.0, 30.0, 7000.0], [0, 0, 1]);
        assert_eq!(value(&worth(&[fast, classic]), RATIO.id), 2.0);
        let never_alone = of(Kernel::FAST, [10.0, 20.0, 30.0], [1, 1, 1]);
        assert_eq!(value(&of_graph(&never_alone), OVERHEAD.id), 2.0);
    }

    #[test]
    fn shares_of_ideas_add_up_whatever_they_do_together() {
        // Fusing takes 10 of 100, mirrors 40, the bitmap 5, and mirrors with the bitmap 15 more.
        let ns: [f64; 8] = std::array::from_fn(|bits| {
            let has = |i: usize| if bits >> i & 1 == 1 { 1.0 } else { 0.0 };
            100.0 - 10.0 * has(0) - 40.0 * has(1) - 5.0 * has(2) - 15.0 * has(1) * has(2)
        });
        let shares: Vec<f64> = (0..3).map(|i| share(&ns, i)).collect();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{shares:?}");
        let truth = [10.0, 47.5, 12.5].map(|gain| gain / 70.0);
        assert!(shares.iter().zip(truth).all(|(a, b)| (a - b).abs() < 1e-12), "{shares:?} {truth:?}");
    }

    #[test]
    fn the_knee_is_the_least_granularity_with_nearly_the_best_rate() {
        let metric = |granularity: i64, rate: f64| {
            let keys =
                params([("graph", "g".into()), ("kernel", "k".into()), ("granularity", granularity.into())]);
            Metric::new(&RATE, keys, rate, "median of runs", 3)
        };
        let all = [metric(1, 50.0), metric(4, 90.0), metric(16, 97.0), metric(64, 100.0), metric(256, 99.0)];
        let found = knees(&all);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.starts_with("g by k: a granularity of 16 has 97 %"), "{}", found[0].text);
        assert_eq!(found[0].evidence.len(), 5);
        assert!(knees(&all[..2]).is_empty(), "two say nothing");
    }
}
