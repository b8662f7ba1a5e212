//! What a person should read first.

use machmeter_data::Metric;
use machmeter_data::quantity::{Unit, digits, human};
use machmeter_data::record::{Finding, Summary, SummaryLine, Tile};
use machmeter_data::summary::{Fit, Fitness, PURPOSES};

use super::figures::CpuView;
use super::rhythm::Periodic;
use crate::samples::Samples;

/// Stolen share under which a CPU is fit for work that synchronizes often, and detour length that tail-sensitive work
/// bears, ns.
const FIT_SHARE: f64 = 0.01;
const FIT_LONGEST_NS: f64 = 1e6;

pub(super) fn write(
    samples: &Samples,
    views: &[CpuView<'_>],
    metrics: &[Metric],
    found: &[Periodic],
) -> Summary {
    let get = |id: &str, cpu: &str| of_cpu(metrics, id, cpu);
    let Some(all) = get("noise.stolen_fraction", "all").filter(|m| m.value.is_some()) else {
        return of_counts(get("noise.lost_fraction", "all"));
    };
    let largest = |id: &str, of: fn(&Metric) -> Option<f64>| {
        let each = metrics.iter().filter(|m| m.id == id);
        let each = each.filter_map(|m| Some((of(m)?, m.params.get("cpu")?.to_string())));
        each.filter(|(_, cpu)| cpu != "all").max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let longest = largest("noise.detour_duration", |m| m.max);
    let worst = largest("noise.stolen_fraction", |m| m.value);
    let mut first = vec![format!("{} of CPU time stolen{}", with_unit(all), bracket(all))];
    let worst = worst.filter(|_| views.len() > 1);
    first.extend(worst.map(|(v, cpu)| format!("worst CPU {cpu}: {}", human(v, Unit::One))));
    first.extend(
        longest.as_ref().map(|(max, _)| format!("longest detour {}", human(*max, Unit::Nanoseconds))),
    );
    let mut lines = vec![first.join("   ")];
    lines.extend(mostly(metrics, views.len()));
    lines.extend(per_cpu(metrics, views));
    lines.extend(periodic(found));
    lines.extend(stalls(metrics, views.len()));
    let wall_s = views.iter().map(CpuView::wall_s).fold(f64::INFINITY, f64::min);
    lines.extend(longest.as_ref().and_then(|(max, _)| unseen(*max, wall_s)));
    let slowdown = get("noise.slowdown_fraction", "all");
    let mut tiles = vec![tile_of("Time stolen", all)];
    if let Some((max, cpu)) = &longest {
        let note = format!("CPU {cpu}, in {}", human(views[0].wall_s() * 1e9, Unit::Nanoseconds));
        tiles.push(tile("Longest detour", human(*max, Unit::Nanoseconds), note));
    }
    tiles.extend(slowdown.filter(|s| s.value.is_some()).map(|s| tile_of("Slowdown", s)));
    let rate: f64 = metrics.iter().filter(|m| m.id == "noise.detour_rate").filter_map(|m| m.value).sum();
    let note = format!("per CPU, of {} or more", human(shortest_ns(samples), Unit::Nanoseconds));
    tiles.push(tile("Detours", format!("{}/s", digits(rate / views.len() as f64)), note));
    let long = longest.as_ref().map_or(0.0, |l| l.0);
    Summary {
        lines: vec![SummaryLine { section: "NOISE".to_owned(), lines }],
        tiles,
        verdict: verdict(all, long).to_owned(),
        fitness: fitness(all, long, wall_s),
        ..Summary::default()
    }
}

/// What the machine is fit for. Praise needs an interval; blame of single delays needs one delay.
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

/// What the run is fit for. Praise needs an interval; blame of single delays needs one delay.
fn verdict(stolen: &Metric, longest_ns: f64) -> &'static str {
    let (share, high) = (stolen.value.unwrap_or(0.0), stolen.ci.as_ref().map(|c| c.high));
    let short = longest_ns <= FIT_LONGEST_NS;
    match (share > FIT_SHARE, high.map(|h| h <= FIT_SHARE)) {
        (false, Some(true)) if short => {
            "Quiet in this run: fit for throughput work and for work that minds delays of a millisecond."
        }
        (false, Some(true)) => {
            "Fit for throughput work; not for work that minds single delays of a millisecond or more."
        }
        (true, Some(_)) if short => {
            "Others take more than 1 % of the CPUs, in short pieces: throughput suffers, tails little."
        }
        (true, Some(_)) => "Not fit for tail latency, and more than 1 % of the CPUs is taken by others.",
        (false, Some(false)) if short => {
            "Whether others take more than 1 % of the CPUs is not decided by this run."
        }
        (_, None) if short => "Too little was seen to say what share others take: measure longer.",
        _ => {
            "Not for work that minds single delays of a millisecond; too little was seen to judge the share."
        }
    }
}

/// What a recording without longer events says of them: with probability 95 % none is seen in a time `t` of a rate of 3/t,
/// since `exp(-3)` is 0.05.
fn unseen(longest_ns: f64, wall_s: f64) -> Option<String> {
    (wall_s > 0.0).then(|| {
        format!(
            "events longer than {} were not seen; at 95 % their rate is below {} per CPU",
            human(longest_ns, Unit::Nanoseconds),
            human(3.0 / wall_s, Unit::Hertz)
        )
    })
}

fn stalls(metrics: &[Metric], cpus: usize) -> Option<String> {
    let mean = |id: &str| {
        let all = metrics.iter().filter(|m| m.id == id).filter_map(|m| m.value);
        all.sum::<f64>() / cpus.max(1) as f64
    };
    let rate = mean("noise.microstall_rate");
    (rate > 0.0).then(|| {
        format!(
            "micro-stalls: {} clusters/s per CPU, {} of CPU time (gaps under 500 ns, not in the figures of detours)",
            digits(rate),
            human(mean("noise.microstall_fraction"), Unit::One)
        )
    })
}

/// Summary of an imported series of counts.
fn of_counts(lost: Option<&Metric>) -> Summary {
    let Some(lost) = lost.filter(|m| m.value.is_some()) else { return Summary::default() };
    let line = format!("{} of CPU time lost{}, stolen or slowed down", with_unit(lost), bracket(lost));
    Summary {
        lines: vec![SummaryLine { section: "NOISE".to_owned(), lines: vec![line] }],
        tiles: vec![tile_of("Time lost", lost)],
        ..Summary::default()
    }
}

fn of_cpu<'m>(metrics: &'m [Metric], id: &str, cpu: &str) -> Option<&'m Metric> {
    metrics.iter().find(|m| m.id == id && m.params.get("cpu").is_some_and(|p| p.to_string() == cpu))
}

fn shortest_ns(samples: &Samples) -> f64 {
    let s = &samples.setup.schedule;
    s.threshold_ticks.max(s.stall_ticks) as f64 * samples.setup.ns_per_tick()
}

fn tile(label: &str, value: String, note: String) -> Tile {
    Tile { label: label.to_owned(), value, note }
}

fn tile_of(label: &str, m: &Metric) -> Tile {
    tile(label, with_unit(m), bracket(m).trim().to_owned())
}

fn with_unit(m: &Metric) -> String {
    m.value.map_or_else(|| "?".to_owned(), |v| human(v, m.unit))
}

fn bracket(m: &Metric) -> String {
    let none = " (no interval: too few independent spells)".to_owned();
    m.ci.as_ref().map_or(none, |c| format!(" [{}, {}]", human(c.low, m.unit), human(c.high, m.unit)))
}

fn mostly(metrics: &[Metric], cpus: usize) -> Option<String> {
    let mut by_source: Vec<(String, f64)> = Vec::new();
    for m in metrics.iter().filter(|m| m.id == "noise.source_fraction") {
        let (Some(name), Some(value)) = (m.params.get("source"), m.value) else { continue };
        let name = name.to_string();
        match by_source.iter_mut().find(|s| s.0 == name) {
            Some(s) => s.1 += value,
            None => by_source.push((name, value)),
        }
    }
    by_source.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown: Vec<String> = by_source
        .iter()
        .take(4)
        .filter(|s| s.1 > 0.0)
        .map(|(name, v)| format!("{name} {}", human(v / cpus.max(1) as f64, Unit::One)))
        .collect();
    (!shown.is_empty()).then(|| format!("mostly: {}", shown.join(", ")))
}

fn per_cpu(metrics: &[Metric], views: &[CpuView<'_>]) -> Vec<String> {
    let get = |id: &str, cpu: usize| of_cpu(metrics, id, &cpu.to_string());
    views
        .iter()
        .take(16)
        .filter_map(|v| {
            let cpu = v.cpu.cpu;
            let (stolen, duration) = (get("noise.stolen_fraction", cpu)?, get("noise.detour_duration", cpu)?);
            let rate = get("noise.detour_rate", cpu)?.value?;
            let q =
                |p: &str| duration.quantiles.get(p).map_or("-".to_owned(), |v| human(*v, Unit::Nanoseconds));
            Some(format!(
                "CPU {cpu}: {} stolen{}, {}/s, p50 {}, p99 {}, p99.9 {}, max {}",
                with_unit(stolen),
                bracket(stolen),
                digits(rate),
                q("0.5"),
                q("0.99"),
                q("0.999"),
                duration.max.map_or("-".to_owned(), |m| human(m, Unit::Nanoseconds))
            ))
        })
        .collect()
}

fn periodic(found: &[Periodic]) -> Option<String> {
    let mut told: Vec<&Periodic> = Vec::new();
    for f in found.iter().filter(|f| !f.at_tick) {
        // What comes as often as something told, on this CPU or another, is no rhythm of its own for a reader.
        if told.len() < 4 && !told.iter().any(|t| t.is_like(f)) {
            told.push(f);
        }
    }
    let text = |f: &&Periodic| {
        format!("{:.2} Hz ({}, {} each)", f.hz, f.what(), human(f.median_ns, Unit::Nanoseconds))
    };
    let shown: Vec<String> = told.iter().map(text).collect();
    (!shown.is_empty()).then(|| format!("periodic: {}", shown.join(", ")))
}

/// What counters say beside the loops: interrupts by name and steal.
pub(super) fn counters(samples: &Samples) -> Option<Finding> {
    let t = &samples.testimony;
    let mut evidence: Vec<String> = samples
        .cpus
        .iter()
        .zip(&t.steal_ns)
        .filter_map(|(c, s)| {
            s.map(|ns| format!("CPU {}: steal {}", c.cpu, human(ns as f64, Unit::Nanoseconds)))
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
                "CPU {}: the meter waited {delay} for the CPU, {} involuntary switches",
                c.cpu, thread.preemptions
            ));
        }
    }
    (!evidence.is_empty()).then(|| Finding {
        id: "noise.counters".to_owned(),
        verdict: "seen".to_owned(),
        text: "What the kernel's counters gained during the recording.".to_owned(),
        evidence,
    })
}
