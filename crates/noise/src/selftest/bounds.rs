//! Bounds: every run ends in its time, and the witness does not lengthen the detours it watches.

use machmeter_engine::selftest::machine;
use machmeter_stats::quantile::{median_of, quantile_interval, sorted};
use machmeter_sys::sched::Policy;

use super::lab::Lab;
use super::{Options, SelfCheck, Shown, State, check};
use crate::attribute::Attribution;
use crate::samples::Samples;

/// A run may take this much longer than its budget, ns.
const LATE_NS: u64 = 1_000_000_000;
/// Detours of these lengths are compared with and without the witness, ns.
const DETOURS_NS: std::ops::RangeInclusive<f64> = 2_000.0..=200_000.0;
/// Detours needed in a run for its median to say something.
const MIN_DETOURS: usize = 50;

/// The hardest case for ending in time: a real-time meter on every CPU.
pub(super) fn fifo_everywhere(lab: &Lab, options: &Options) -> Vec<SelfCheck> {
    let policy = Policy::Fifo(45);
    let (id, what) = ("bounds.fifo", format!("meters under {policy} on CPU {}", lab.machine.allowed));
    let bar = "ends within its time + 1 s";
    let budget_ns = if options.quick { 1_000_000_000 } else { 2_000_000_000 };
    let order = machine::Order { cpus: lab.machine.allowed.clone(), policy: Some(policy), budget_ns };
    let run = lab.noise(&what, order, Attribution::Auto);
    let took_ns = lab.runs.borrow().last().map_or(0, |r| r.2);
    let shown = run.map(|s| {
        let windows = s.setup.schedule.windows;
        let lost = s.cpus.iter().filter(|c| c.counts.len() != windows).count();
        let (truth, took) = (format!("{:.1} s", budget_ns as f64 / 1e9), took_ns as f64 / 1e9);
        let found = format!("{took:.2} s; {windows} windows on each CPU, {lost} CPUs short of them");
        (truth, found, State::of(took_ns <= budget_ns + LATE_NS && lost == 0))
    });
    vec![check(id, &what, bar, shown)]
}
pub(super) fn in_time(lab: &Lab) -> SelfCheck {
    let runs = lab.runs.borrow();
    let late = |r: &(String, u64, u64)| r.2 as f64 - r.1 as f64;
    let worst = runs.iter().max_by(|a, b| late(a).total_cmp(&late(b)));
    let (id, what, bar) = ("bounds.time", "every run of the probe above", "ends within its time + 1 s");
    let Some(w) = worst else { return SelfCheck::not_shown(id, what, bar, "no run was made") };
    let all_s = runs.iter().map(|r| r.1).sum::<u64>() as f64 / 1e9;
    let truth = format!("{} runs of {all_s:.1} s in all", runs.len());
    let found = format!("the latest ended {:+.2} s after its time ({})", late(w) / 1e9, w.0);
    SelfCheck::new(id, what, bar, truth, found, State::of(late(w) <= LATE_NS as f64))
}

fn median_detour_ns(samples: &Samples) -> Option<f64> {
    let ns_per_tick = samples.setup.ns_per_tick();
    let gaps = samples.cpus.iter().flat_map(|c| &c.gaps).map(|g| g.ticks() as f64 * ns_per_tick);
    let ns: Vec<f64> = gaps.filter(|d| DETOURS_NS.contains(d)).collect();
    if ns.len() < MIN_DETOURS { None } else { median_of(&ns) }
}

/// Pairs of runs with and without the kernel's trace, the order alternating so that a drift falls on both.
pub(super) fn attribution_cost(lab: &Lab, options: &Options) -> Vec<SelfCheck> {
    let (id, what) = ("attribution.cost", "runs with and without the kernel's trace, in pairs");
    let bar = "none (research bar: at most 1.05)";
    vec![check(id, what, bar, cost(lab, options, what))]
}

fn cost(lab: &Lab, options: &Options, what: &str) -> Shown {
    let run = |attribution| {
        let recorded = lab.noise(what, lab.here(None, 600_000_000), attribution);
        recorded.map(|s| median_detour_ns(&s))
    };
    let mut ratios = Vec::new();
    let mut medians = (Vec::new(), Vec::new());
    for pair in 0..if options.quick { 4 } else { 8 } {
        let traced_first = pair % 2 == 0;
        let both = [Attribution::Trace, Attribution::None];
        let [first, second] = if traced_first { both } else { [both[1], both[0]] }.map(&run);
        let (traced, bare) = if traced_first { (first, second) } else { (second, first) };
        if let (Some(t), Some(b)) = (traced?, bare?) {
            ratios.push(t / b);
            medians.0.push(t);
            medians.1.push(b);
        }
    }
    let ratio = median_of(&ratios).ok_or("too few gaps of 2 to 200 us to compare")?;
    let interval = sorted(&ratios).ok().and_then(|s| quantile_interval(&s, 0.5, 0.9));
    let interval = interval.map_or_else(
        || "too few pairs for an interval".to_owned(),
        |i| format!("90 % interval {:.3} to {:.3}", i.low, i.high),
    );
    let us = |v: &[f64]| median_of(v).unwrap_or(0.0) / 1e3;
    let truth = format!("median gap of 2 to 200 us without trace {:.1} us", us(&medians.1));
    let (with, pairs) = (us(&medians.0), ratios.len());
    let found = format!("{with:.1} us with it; ratio {ratio:.3}, {interval}, {pairs} pairs");
    Ok((truth, found, State::Info))
}
