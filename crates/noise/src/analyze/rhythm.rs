//! Rhythms: which sources come back in step, how often, and how well that is known.
//!
//! A comb found in the first half of a series is followed event by event, so that a source that wanders stays one, and must
//! hold in the second half on its own. How far the frequency wanders is in its interval.

mod events;

use std::collections::BTreeMap;

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Finding;
use machmeter_data::{Interval, Metric};
use machmeter_stats::quantile::median_of;

pub use events::{Rhythm, rhythms};
use events::{SAME, alike};

use super::classes::{CLASSES, class_of};
use super::figures::CpuView;
use crate::attribute::activity_log::{ActivityLog, Sight, SourceKind};
use crate::attribute::unlisted::MOST_TURNS;
use crate::info;
use crate::samples::Setup;

const MAX_LISTED: usize = 10;
/// Rates at which kernels tick (`Kconfig.hz`), Hz: for recordings that do not say theirs.
const TICKS_HZ: [f64; 4] = [100.0, 250.0, 300.0, 1000.0];
#[derive(Debug, Clone)]
pub struct Periodic {
    pub cpu: usize,
    /// Class of durations (`10-100 us`) or `source`.
    pub class: String,
    /// Name of the source, or `unknown`.
    pub source: String,
    pub hz: f64,
    /// Half of its 95 % interval.
    pub half_hz: Option<f64>,
    pub events: usize,
    /// Chance of as much without a rhythm.
    pub p: f64,
    /// Median duration of the events searched, ns.
    pub median_ns: f64,
    /// It is not the source that has the rhythm: the scheduler's tick gives it the CPU.
    pub at_tick: bool,
}

impl Periodic {
    /// Name of the source, or else of the class.
    pub fn what(&self) -> &str {
        if self.source == UNKNOWN { &self.class } else { &self.source }
    }

    fn cost_ns(&self) -> f64 {
        self.events as f64 * self.median_ns
    }
}

const UNKNOWN: &str = "unknown";

/// Events of one source or class: when each began, how long it took.
#[derive(Default)]
struct Series {
    kind: Option<SourceKind>,
    times_s: Vec<f64>,
    durations_ns: Vec<f64>,
    /// Where the series ends, if it does not reach the end of the run, s.
    until_s: Option<f64>,
}

type AllSeries = BTreeMap<(String, String), Series>;

/// Events by source where there is one, else by class of durations. A thread has its own start, whatever else was in its gap.
fn series(view: &CpuView<'_>, activity_log: &ActivityLog) -> AllSeries {
    let mut out = AllSeries::new();
    let from_ticks = view.cpu.complete_from_ticks(&view.setup.schedule).unwrap_or(u64::MAX);
    let ns = view.setup.ns_per_tick();
    // The list is no sample of the times of these: they have their turns from the trace.
    let by_turns = turns(view, activity_log);
    let durations = view.durations_ns();
    for (i, g) in view.cpu.gaps.iter().enumerate().filter(|(_, g)| g.ticks() >= from_ticks) {
        let mut add = |key: (String, String), kind: Option<SourceKind>, start_ticks: u64, took_ns: f64| {
            let s = out.entry(key).or_default();
            s.kind = kind;
            s.times_s.push(view.since_start_s(start_ticks));
            s.durations_ns.push(took_ns);
        };
        let mut named = false;
        for p in view.cpu.attributed.get(i).map_or(&[][..], |a| &a.parts) {
            let Some(source) = activity_log.sources.get(p.source as usize) else { continue };
            if by_turns.contains_key(&("source".to_owned(), source.full_name())) {
                named = true;
                continue;
            }
            named |= !matches!(source.kind, SourceKind::Unknown | SourceKind::Outside);
            let took_ns =
                if view.cpu.attributed[i].main == p.source { durations[i] } else { p.ticks as f64 * ns };
            add(("source".to_owned(), source.full_name()), Some(source.kind), p.start_ticks, took_ns);
        }
        if !named {
            let class = CLASSES[class_of(durations[i])].0;
            add((class.to_owned(), UNKNOWN.to_owned()), None, g.start_ticks, durations[i]);
        }
    }
    out.extend(by_turns);
    out
}

/// Turns of the sources with unlisted gaps, from the trace.
fn turns(view: &CpuView<'_>, activity_log: &ActivityLog) -> AllSeries {
    let mut out = AllSeries::new();
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    let ns = view.setup.ns_per_tick();
    for turn in &view.cpu.traced.turns {
        let Some(source) = activity_log.source(turn.source) else { continue };
        let s = out.entry(("source".to_owned(), source.full_name())).or_default();
        s.kind = Some(source.kind);
        s.times_s.push(view.since_start_s(turn.start_ticks));
        s.durations_ns.push(turn.ticks as f64 * ns);
        let count = counts.entry(turn.source).or_default();
        *count += 1;
        if *count == MOST_TURNS {
            s.until_s = s.times_s.last().copied();
        }
    }
    for series in out.values_mut() {
        // Threads of one name are one source: each has turns in order of time.
        let mut order: Vec<usize> = (0..series.times_s.len()).collect();
        order.sort_by(|a, b| series.times_s[*a].total_cmp(&series.times_s[*b]));
        let until = series.until_s.unwrap_or(f64::INFINITY);
        order.retain(|i| series.times_s[*i] <= until);
        series.durations_ns = order.iter().map(|i| series.durations_ns[*i]).collect();
        series.times_s = order.iter().map(|i| series.times_s[*i]).collect();
    }
    out
}

/// Rhythms of one CPU: per named source, and per class of durations for what has no name.
pub fn periodic(view: &CpuView<'_>, activity_log: &ActivityLog) -> Vec<Periodic> {
    let wall_s = view.wall_s();
    let kernel_hz = view.setup.kernel_hz;
    let step_s = view.setup.step_ticks as f64 * view.setup.ns_per_tick() / 1e9;
    let found: Vec<((String, String), Series, Vec<Rhythm>)> = series(view, activity_log)
        .into_iter()
        .map(|(key, s)| {
            let rhythms = rhythms(&s.times_s, s.until_s.unwrap_or(wall_s));
            (key, s, rhythms)
        })
        .collect();
    let leaders: Vec<Leader<'_>> =
        found.iter().flat_map(|(_, s, r)| r.iter().map(|r| Leader::of(s, r, kernel_hz))).collect();
    let mut out = Vec::new();
    for ((class, source), series, rhythms) in &found {
        for r in rhythms {
            let of = Leader::of(series, r, kernel_hz);
            if leaders.iter().any(|l| l.brings(&of)) {
                continue;
            }
            let thread = series.kind == Some(SourceKind::Thread);
            // Without the kernel's trace nobody sees the tick.
            let blind = activity_log.sight == Sight::Switches && is_tick_rate(r.hz, kernel_hz);
            let ticks = !of.is_tick() && leaders.iter().any(|l| l.is_tick() && l.lets_in(&of));
            out.push(Periodic {
                cpu: view.cpu.cpu,
                class: class.clone(),
                source: source.clone(),
                hz: r.hz,
                half_hz: r.half_hz.map(|h| h + r.hz * (view.setup.rate_error + step_s / wall_s)),
                events: r.times_s.len(),
                p: r.p,
                median_ns: of.median_ns,
                at_tick: ticks || (thread && blind),
            });
        }
    }
    out.sort_by(|a, b| b.cost_ns().total_cmp(&a.cost_ns()));
    one_per_source(out)
}

/// Classes of durations divide what has no name: of rhythms in several that are alike, the one that most events are of is told.
fn one_per_source(mut found: Vec<Periodic>) -> Vec<Periodic> {
    let mut out: Vec<Periodic> = Vec::new();
    found.sort_by_key(|f| std::cmp::Reverse(f.events));
    for f in found {
        let like = |o: &Periodic| alike((o.hz, o.half_hz), (f.hz, f.half_hz));
        if f.source != UNKNOWN || !out.iter().any(|o| o.source == UNKNOWN && like(o)) {
            out.push(f);
        }
    }
    out.sort_by(|a, b| b.cost_ns().total_cmp(&a.cost_ns()));
    out
}

/// Whether the scheduler's tick has this rate: that of this kernel, or of any if it is not known.
pub fn is_tick_rate(hz: f64, kernel_hz: Option<u32>) -> bool {
    let is_near = |tick: f64| (hz / tick - 1.0).abs() < 1e-3;
    kernel_hz.map_or_else(|| TICKS_HZ.into_iter().any(is_near), |tick| is_near(f64::from(tick)))
}

struct Leader<'a> {
    kind: Option<SourceKind>,
    rhythm: &'a Rhythm,
    median_ns: f64,
    kernel_hz: Option<u32>,
}

impl<'a> Leader<'a> {
    fn of(series: &Series, rhythm: &'a Rhythm, kernel_hz: Option<u32>) -> Self {
        let median_ns = median_of(&series.durations_ns).unwrap_or(0.0);
        Self { kind: series.kind, rhythm, median_ns, kernel_hz }
    }

    fn is_tick(&self) -> bool {
        self.kind == Some(SourceKind::Tick) && is_tick_rate(self.rhythm.hz, self.kernel_hz)
    }

    /// Whether the other's events begin with this tick, or come exactly as often where both are known better than sources differ.
    fn lets_in(&self, other: &Self) -> bool {
        let known = |r: &Rhythm| r.half_hz.is_some_and(|h| h < SAME * r.hz);
        let exactly = known(self.rhythm) && known(other.rhythm) && self.rhythm.is_like(other.rhythm);
        exactly && other.kind.is_none() || follows(&other.rhythm.times_s, self.rhythm, 0.0)
    }

    /// Whether this thread gives the other its rhythm: its wake-up interrupt, the hypervisor, who gets the rest of the gap.
    fn brings(&self, other: &Self) -> bool {
        let same = self.rhythm.is_like(other.rhythm) && !std::ptr::eq(self.rhythm, other.rhythm);
        if !same || self.kind != Some(SourceKind::Thread) || other.is_tick() {
            return false;
        }
        let busy = self.median_ns / 1e9 * self.rhythm.hz;
        match other.kind {
            Some(SourceKind::Thread) => follows(&other.rhythm.times_s, self.rhythm, busy),
            Some(_) | None => true,
        }
    }
}

/// Whether nearly all events begin right after a leader's that keeps the CPU for the share `busy` of its period. The
/// scheduler acts tens of microseconds after a handler began: a twentieth of the fastest tick's period.
fn follows(times_s: &[f64], leader: &Rhythm, busy: f64) -> bool {
    const SOON: f64 = 0.05;
    const NEARLY: f64 = 0.8;
    let soon = |t: &&f64| {
        let before = leader.times_s.partition_point(|at| at < *t);
        // Of the cycles within one long gap, the leader is seen in the first only.
        before > 0 && ((*t - leader.times_s[before - 1]) * leader.hz).fract() < busy + SOON
    };
    times_s.iter().filter(soon).count() as f64 >= NEARLY * times_s.len() as f64
}

/// Metrics `noise.period`. Without a name, and of further rhythms, two digits of the frequency are part of the name.
pub fn metrics(found: &[Periodic]) -> Vec<Metric> {
    let mut taken: Vec<(String, String)> = Vec::new();
    let mut out = Vec::new();
    for f in found.iter().filter(|f| !f.at_tick) {
        let plain = f.source != UNKNOWN && !taken.contains(&(f.class.clone(), f.source.clone()));
        let scale = 10_f64.powf(f.hz.log10().floor() - 1.0);
        let at = format!("{} at {} Hz", f.source, (f.hz / scale).round() * scale);
        let source = if plain { f.source.clone() } else { at };
        if taken.contains(&(f.class.clone(), source.clone())) {
            continue;
        }
        taken.push((f.class.clone(), source.clone()));
        let p = params([
            ("cpu", f.cpu.into()),
            ("class", f.class.as_str().into()),
            ("source", source.as_str().into()),
        ]);
        let half = f
            .half_hz
            .and_then(|h| Interval::new(0.95, (f.hz - h).max(0.0), f.hz + h, "stretches of the run"));
        out.push(Metric::new(&info::PERIOD, p, f.hz, "events followed", f.events as u64).with_ci(half));
    }
    out
}

/// One finding that lists the rhythms, those that take most time first, and who comes at the scheduler's tick.
pub fn finding(found: &[Periodic], setup: &Setup) -> Option<Finding> {
    let mut ranked: Vec<&Periodic> = found.iter().collect();
    ranked.sort_by(|a, b| b.cost_ns().total_cmp(&a.cost_ns()));
    let own = || ranked.iter().filter(|f| !f.at_tick);
    let what = |f: &Periodic| {
        if f.source == UNKNOWN { format!("gaps of {}", f.class) } else { f.source.clone() }
    };
    let mut evidence: Vec<String> = own()
        .take(MAX_LISTED)
        .map(|f| {
            let half = f.half_hz.map_or(String::new(), |h| format!(" +- {}", human(h, Unit::Hertz)));
            format!(
                "{}: {} at {:.3} Hz{half}, {} each (median), {} events, p = {:.0e}",
                setup.name(f.cpu),
                what(f),
                f.hz,
                human(f.median_ns, Unit::Nanoseconds),
                f.events,
                f.p
            )
        })
        .collect();
    let at_tick = ranked.iter().filter(|f| f.at_tick).take(MAX_LISTED);
    evidence.extend(at_tick.map(|f| {
        format!("{}: {} comes at the scheduler's tick, {} times", setup.name(f.cpu), what(f), f.events)
    }));
    let text = match own().next() {
        Some(first) => format!(
            "{} periodic sources; the one that takes most time: {} on {} at {:.3} Hz. Each holds in both halves of the run; \
             each p is corrected for the frequencies tried.",
            own().count(),
            what(first),
            setup.name(first.cpu),
            first.hz
        ),
        None => "No source has a rhythm of its own; some threads come at the scheduler's tick.".to_owned(),
    };
    let verdict = if own().next().is_some() { "present" } else { "none_seen" };
    (!evidence.is_empty()).then(|| super::finding("noise.periodic", verdict, text, evidence))
}

#[cfg(test)]
mod tests;
