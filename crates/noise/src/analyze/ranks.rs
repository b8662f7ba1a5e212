//! Across ranks: which are slow, what collective operations cost beside their quietest tenth, and who keeps the others waiting.

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Finding;
use machmeter_data::{Metric, MetricInfo};
use machmeter_stats::StatsError;
use machmeter_stats::lateness::{Lateness, by_rank};
use machmeter_stats::quantile::median_of;
use machmeter_stats::serial::{Estimate, mean_interval, quantile_interval, ratio_interval};

use super::figures::{LEVEL, MEAN, RANK, STRETCHES, block_sums, with_estimate};
use super::finding;
use crate::info;
use crate::ranks::CollectiveSamples;
use crate::samples::{Samples, Setup};

/// Ranks that are named of an operation.
const MOST_NAMED: usize = 16;
/// The median of the quietest tenth.
const QUIET: f64 = 0.05;
const QUIET_ESTIMATOR: &str = "quantile 0.05";

/// Ranks stand in the place of CPUs: their figures say so.
pub(super) fn rename(metrics: &mut [Metric]) {
    for m in metrics {
        if let Some(value) = m.params.remove("cpu") {
            m.params.insert("rank".to_owned(), value);
        }
    }
}

/// Costs of the operations, and the shares of ranks in what they wait.
pub(super) fn metrics(samples: &Samples) -> Vec<Metric> {
    samples.collectives.iter().flat_map(|c| of_operation(c, &samples.setup)).collect()
}

fn of_operation(c: &CollectiveSamples, setup: &Setup) -> Vec<Metric> {
    let ns = setup.ns_per_tick();
    let costs: Vec<f64> = c.turns.iter().map(|t| t.cost * ns).collect();
    let n = costs.len() as u64;
    let named = || {
        params([
            ("operation", c.collective.name().into()),
            ("ranks", i64::try_from(setup.ranks.len()).unwrap_or(0).into()),
        ])
    };
    let figure = |info: &MetricInfo, estimator: &str, found: Result<Estimate, StatsError>, value, method| {
        let m = Metric::new(info, named(), value, estimator, n);
        with_estimate(m, found, method, 0.0)
    };
    let mean = costs.iter().sum::<f64>() / costs.len().max(1) as f64;
    let segments = [costs.len()];
    let mut out =
        vec![figure(&info::COLLECTIVE, "mean", mean_interval(&costs, &segments, LEVEL), mean, MEAN)];
    out.push(match quantile_interval(&costs, QUIET, &segments, LEVEL) {
        Ok(quiet) => figure(&info::COLLECTIVE_QUIET, QUIET_ESTIMATOR, Ok(quiet), quiet.value, RANK),
        Err(why) => Metric::rejected(&info::COLLECTIVE_QUIET, named(), QUIET_ESTIMATOR, &why.to_string()),
    });
    let all: Vec<f64> = c.turns.iter().map(|t| t.delay).collect();
    let all = block_sums(&all, STRETCHES);
    for late in by_rank(&c.turns, setup.ranks.len()).iter().filter(|l| l.times > 0).take(MOST_NAMED) {
        let own: Vec<f64> = c.turns.iter().map(|t| if t.last == late.rank { t.delay } else { 0.0 }).collect();
        let own = block_sums(&own, STRETCHES);
        let estimate = ratio_interval(&own, &all, &[own.len()], LEVEL);
        let p = params([("operation", c.collective.name().into()), ("rank", late.rank.into())]);
        let m = Metric::new(&info::LATE, p, late.share, "share of delays", late.times as u64);
        out.push(with_estimate(m, estimate, MEAN, 0.0));
    }
    out
}

/// Ranks whose loss is certainly above that of the median rank, and who keeps the others waiting.
pub(super) fn findings(samples: &Samples, metrics: &[Metric]) -> Vec<Finding> {
    let setup = &samples.setup;
    let late = samples.collectives.iter().filter_map(|c| late(c, setup));
    slow(setup, metrics).into_iter().chain(late).collect()
}

fn slow(setup: &Setup, metrics: &[Metric]) -> Option<Finding> {
    let of = |id: &str| -> Vec<(usize, &Metric)> {
        let number = |m: &Metric| m.params.get("rank")?.to_string().parse().ok();
        metrics.iter().filter(|m| m.id == id).filter_map(|m| Some((number(m)?, m))).collect()
    };
    let lost = of(info::LOST.id);
    let values: Vec<f64> = lost.iter().filter_map(|(_, m)| m.value).collect();
    let median = median_of(&values)?;
    let percent = |v: f64| human(v, Unit::One);
    // Without an interval nothing is certain.
    let low = |m: &Metric| m.ci.as_ref().map_or(f64::NEG_INFINITY, |ci| ci.low);
    let mut ranked: Vec<(usize, f64, f64)> =
        lost.iter().filter_map(|(r, m)| Some((*r, m.value?, low(m)))).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    // The upper bound of the rank in the middle: what lies above it is no chance.
    let middle = lost.iter().filter(|(_, m)| m.value.is_some_and(|v| v <= median));
    let bound = middle.filter_map(|(_, m)| Some(m.ci.as_ref()?.high)).fold(median, f64::max);
    let slow: Vec<&(usize, f64, f64)> = ranked.iter().filter(|r| r.2 > bound).collect();
    let turns: Vec<(usize, f64)> =
        of(info::TURN.id).iter().filter_map(|(r, m)| Some((*r, m.value?))).collect();
    let turn = median_of(&turns.iter().map(|t| t.1).collect::<Vec<_>>());
    let slowest = turns.iter().max_by(|a, b| a.1.total_cmp(&b.1)).zip(turn);
    let mut evidence: Vec<String> = ranked
        .iter()
        .take(MOST_NAMED)
        .map(|(r, v, _)| format!("{}: {} of its time lost", setup.name(*r), percent(*v)))
        .collect();
    evidence.extend(slowest.map(|((rank, ns), median)| {
        format!("slowest loop: {}, {ns:.3} ns a turn, {:.3} times the median", setup.name(*rank), ns / median)
    }));
    let text = match slow.first() {
        Some((rank, value, _)) => format!(
            "{} of {} ranks lose more than the median rank ({}), most of all {}: {}.",
            slow.len(),
            ranked.len(),
            percent(median),
            setup.name(*rank),
            percent(*value)
        ),
        None => format!("No rank certainly loses more than the median rank ({}).", percent(median)),
    };
    let verdict = if slow.is_empty() { "none_seen" } else { "present" };
    Some(finding("noise.slow_ranks", verdict, text, evidence))
}

fn late(c: &CollectiveSamples, setup: &Setup) -> Option<Finding> {
    let (name, ns) = (c.collective.name(), setup.ns_per_tick());
    let all = by_rank(&c.turns, setup.ranks.len());
    let first = all.first()?;
    let each = |ticks: f64| human(ticks * ns, Unit::Nanoseconds);
    let delay: f64 = all.iter().map(|l| l.delay).sum();
    let line = |l: &Lateness| {
        format!(
            "{}: last in {:.1} % of {}, {} of the waiting, {} each time",
            setup.name(l.rank),
            100.0 * l.times as f64 / c.turns.len() as f64,
            c.turns.len(),
            human(l.share, Unit::One),
            each(l.delay / l.times.max(1) as f64)
        )
    };
    let text = format!(
        "Before the {name}, after 50 us of work, ranks wait {} for the last one on average; {} of that is for {}.",
        each(delay / c.turns.len() as f64),
        human(first.share, Unit::One),
        setup.name(first.rank)
    );
    let evidence = all.iter().filter(|l| l.times > 0).take(MOST_NAMED).map(line).collect();
    Some(finding(&format!("noise.late_ranks.{name}"), "seen", text, evidence))
}

#[cfg(test)]
mod tests {
    use machmeter_stats::lateness::Turn;
    use machmeter_stats::random::Random;

    use super::*;
    use crate::analyze::analyze;
    use crate::ranks::{Collective, Place};
    use crate::samples::{CpuSamples, Lengths};
    use crate::tables::{from_tables, to_tables};
    use machmeter_loops::noise::measure::{Gap, Schedule, Sums};

    const WINDOW_NS: u64 = 1_000_000;
    const WINDOWS: usize = 2_000;

    /// Four ranks on two machines: each loses 2 us of each ms, rank 2 150 us of every third and is late by 12 us.
    fn samples() -> Samples {
        let schedule = Schedule::all_listed(0, WINDOW_NS, WINDOWS, 100);
        let place = |cpu| Place { node: format!("c0{}", cpu / 2), cpu };
        let setup = Setup {
            quantum: "1".to_owned(),
            schedule,
            tick_hz: 1e9,
            step_ticks: 1,
            has_gaps: true,
            ranks: (0..4).map(place).collect(),
            ..Setup::default()
        };
        let mut random = Random::new(5);
        let cpus = (0..4).map(|cpu| {
            let gap = |k: usize| {
                let long = cpu == 2 && k.is_multiple_of(3);
                let start_ticks = k as u64 * WINDOW_NS + (random.unit() * 5e5) as u64;
                Gap { start_ticks, end_ticks: start_ticks + if long { 152_000 } else { 2_000 } }
            };
            let gaps: Vec<Gap> = (0..WINDOWS).map(gap).collect();
            let sums =
                gaps.iter().map(|g| Sums { detours: 1, detour_ticks: g.ticks() as u32, ..Sums::default() });
            CpuSamples {
                cpu,
                counts: gaps.iter().map(|g| ((WINDOW_NS - g.ticks()) / 10) as u32).collect(),
                sums: sums.collect(),
                lengths: Lengths::of_gaps(&gaps),
                gaps,
                ..CpuSamples::default()
            }
        });
        let cpus = cpus.collect();
        let turn = |i: usize| {
            let (last, delay) = if i.is_multiple_of(10) { (0, 2_000.0) } else { (2, 12_000.0) };
            Turn { cost: delay + 1_000.0 + (i % 7) as f64, delay, last }
        };
        let turns = (0..3_000).map(turn).collect();
        let collectives = vec![CollectiveSamples { collective: Collective::Allreduce, turns }];
        Samples { setup, cpus, collectives, ..Samples::default() }
    }

    #[test]
    fn the_slow_rank_and_what_it_costs_the_others_are_named() {
        let samples = samples();
        let found = analyze(&samples, 1);
        let value = |id: &str, param: &str, of: &str| {
            let is = |m: &&Metric| m.id == id && m.params.get(param).is_some_and(|v| v.to_string() == of);
            found.metrics.iter().find(is).unwrap().value.unwrap()
        };
        let stolen = |rank| value("noise.stolen_fraction", "rank", rank);
        assert!((stolen("2") - 0.052).abs() < 0.001 && (stolen("1") - 0.002).abs() < 2e-4, "{}", stolen("2"));
        assert!(found.metrics.iter().all(|m| !m.params.contains_key("cpu")), "ranks are no CPUs");
        let finding = |id: &str| found.findings.iter().find(|f| f.id == id).unwrap();
        let slow = finding("noise.slow_ranks");
        assert_eq!(slow.verdict, "present");
        assert!(
            slow.text.starts_with("1 of 4 ranks") && slow.text.contains("rank 2 (c01, CPU 2)"),
            "{}",
            slow.text
        );
        let late = finding("noise.late_ranks.allreduce");
        assert!(late.text.contains("98.2 % of that is for rank 2 (c01"), "{}", late.text);
        assert!((value("noise.late_fraction", "rank", "2") - 0.982).abs() < 0.001);
        let (all, quiet) = (
            value("noise.collective", "operation", "allreduce"),
            value("noise.collective_quiet", "operation", "allreduce"),
        );
        assert!((all - 12_003.0).abs() < 1.0 && (quiet - 3_003.0).abs() < 5.0, "{all} {quiet}");
        let pairs = found.findings.iter().filter(|f| f.id == "noise.coincidence");
        assert!(pairs.clone().all(|f| f.text.starts_with("rank ")) && pairs.count() == 6);
    }

    #[test]
    fn samples_of_ranks_come_back_from_their_tables() {
        let samples = samples();
        let again = from_tables(&to_tables(&samples)).unwrap();
        assert_eq!(again.collectives, samples.collectives);
        assert_eq!(again.setup.ranks, samples.setup.ranks);
    }
}
