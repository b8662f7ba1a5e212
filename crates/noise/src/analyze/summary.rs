//! What a person should read first.

use machmeter_data::Metric;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Finding, Summary};
use machmeter_data::summary::{Fit, Fitness, PURPOSES};

use super::figures::CpuView;
use super::finding;
use crate::samples::Samples;

/// Stolen share under which a CPU is fit for work that synchronizes often; gap that tail-sensitive work bears, ns.
const FIT_SHARE: f64 = 0.01;
const FIT_LONGEST_NS: f64 = 1e6;

/// What the machine is fit for. Imported series of counts tell too little for that.
pub(super) fn write(views: &[CpuView<'_>], metrics: &[Metric]) -> Summary {
    let stolen = |m: &&Metric| m.id == "noise.stolen_fraction" && m.params.get("cpu") == Some(&"all".into());
    let Some(all) = metrics.iter().find(stolen).filter(|m| m.value.is_some()) else {
        return Summary::default();
    };
    let durations = metrics.iter().filter(|m| m.id == "noise.detour_duration");
    let longest_ns = durations.filter_map(|m| m.max).fold(0.0, f64::max);
    let wall_s = views.iter().map(CpuView::wall_s).fold(f64::INFINITY, f64::min);
    Summary { fitness: fitness(all, longest_ns, wall_s), ..Summary::default() }
}

/// Praise needs an interval; blame of single delays needs one delay.
fn fitness(stolen: &Metric, longest_ns: f64, wall_s: f64) -> Vec<Fitness> {
    let share = human(stolen.value.unwrap_or(0.0), Unit::One);
    let (longest, wall) = (human(longest_ns, Unit::Nanoseconds), human(wall_s * 1e9, Unit::Nanoseconds));
    let taken = format!("others take {share} of the CPUs, up to {longest} at a stretch");
    let short = format!("{taken}, in {wall}");
    let unsure = format!("others take {share} of the CPUs; too little was seen to be sure: measure longer");
    let is_long = longest_ns > FIT_LONGEST_NS;
    let few = stolen.value.is_some_and(|v| v <= FIT_SHARE);
    let high = stolen.ci.as_ref().map(|c| c.high);
    let (calm, reason) = match high {
        Some(high) if high <= FIT_SHARE => (Fit::Yes, short.clone()),
        _ if few => (Fit::Unknown, unsure.clone()),
        _ => (Fit::Partly, taken.clone()),
    };
    let each = format!("gaps of one CPU delay all: {share} taken of each, up to {longest}");
    let latency = match calm {
        _ if is_long => (Fit::No, taken),
        Fit::Yes => (Fit::Yes, short),
        _ => (Fit::Unknown, unsure.clone()),
    };
    let messages = match calm {
        Fit::Unknown => (Fit::Unknown, unsure),
        Fit::Yes if !is_long => (Fit::Yes, reason.clone()),
        Fit::Yes => (Fit::Partly, each),
        _ => (Fit::No, each),
    };
    [(PURPOSES[0], latency), (PURPOSES[2], (calm, reason)), (PURPOSES[3], messages)]
        .into_iter()
        .map(|(purpose, (fit, reason))| Fitness { purpose: purpose.to_owned(), fit, reason })
        .collect()
}

/// What counters say beside the loops: interrupts by name and steal.
pub(super) fn counters(samples: &Samples) -> Option<Finding> {
    let t = &samples.activity_log;
    let mut evidence: Vec<String> = samples
        .cpus
        .iter()
        .zip(&t.steal_ns)
        .filter_map(|(c, s)| {
            let stolen = human((*s)? as f64, Unit::Nanoseconds);
            Some(format!("{}: steal {stolen}", samples.setup.name(c.cpu)))
        })
        .collect();
    let mut counts = t.counters.clone();
    counts.sort_by_key(|c| std::cmp::Reverse(c.2));
    evidence.extend(counts.iter().take(12).map(|(cpu, name, n)| format!("CPU {cpu}: {n} times {name}")));
    for c in &samples.cpus {
        if let Some(thread) = c.thread {
            let delay =
                thread.run_delay_ns.map_or("not told".to_owned(), |ns| human(ns as f64, Unit::Nanoseconds));
            evidence.push(format!(
                "{}: the meter waited {delay} for the CPU, {} involuntary switches",
                samples.setup.name(c.cpu),
                thread.preemptions
            ));
        }
    }
    let text = "What the kernel's counters gained during the recording.".to_owned();
    (!evidence.is_empty()).then(|| finding("noise.counters", "seen", text, evidence))
}
