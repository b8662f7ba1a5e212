//! Rhythms: which sources come back in step, how often, and how well that is known.
//!
//! A comb is searched in a stretch of the first half of a series. It is then followed event by event through the whole run, so
//! that a source whose phase or frequency wanders stays one source, and it must hold in the second half on its own. How
//! far the frequency wanders within the run is in its interval.

use std::collections::BTreeMap;

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Finding;
use machmeter_data::{Interval, Metric};
use machmeter_stats::distribution::{binomial_cdf, t_quantile};
use machmeter_stats::events::{FALSE_ALARM, comb_search};
use machmeter_stats::quantile::median_of;

use super::classes::{CLASSES, class_of};
use super::figures::CpuView;
use crate::attribute::testimony::{Sight, SourceKind, Testimony};
use crate::info;

/// Fewer events than this are not searched for a rhythm, and half as many must lie in each half of the run.
const MIN_EVENTS: usize = 20;
/// Events of the first half that are searched: the search costs time in proportion, and a rhythm shows in some hundreds.
const SEARCHED: usize = 1_500;
/// Fastest rhythm searched, Hz.
const MAX_HZ: f64 = 5_000.0;
/// A rhythm that has an event in fewer than one of so many of its cycles is not searched for: the fastest rhythm searched
/// is this many times the rate of the events.
const CYCLES_PER_EVENT: f64 = 4.0;
/// Rhythms listed at most.
const MAX_LISTED: usize = 10;
/// Stretches of the run, at most, whose own frequencies tell how far it wanders.
const STRETCHES: usize = 8;
/// Rates at which kernels tick (`Kconfig.hz`), Hz.
const TICKS_HZ: [f64; 4] = [100.0, 250.0, 300.0, 1000.0];

/// A rhythm followed through a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Rhythm {
    /// Frequency over the run.
    pub hz: f64,
    /// Half of its 95 % interval, without the clock's own error; `None` where too few stretches tell it.
    pub half_hz: Option<f64>,
    /// Events that belong to it.
    pub times_s: Vec<f64>,
    /// Chance of as much in events without rhythm, all frequencies tried counted.
    pub p: f64,
}

/// A periodic source found on one CPU.
#[derive(Debug, Clone)]
pub struct Periodic {
    /// The CPU.
    pub cpu: usize,
    /// Class of durations (`10-100 us`) or `source`.
    pub class: String,
    /// Name of the source, or `unknown`.
    pub source: String,
    /// Frequency.
    pub hz: f64,
    /// Half of its 95 % interval.
    pub half_hz: Option<f64>,
    /// Events that belong to it.
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
}

type AllSeries = BTreeMap<(String, String), Series>;

/// Events by source where there is one, else by class of durations. A thread has its own start, whatever else was in its gap.
fn series(view: &CpuView<'_>, testimony: &Testimony) -> AllSeries {
    let mut out = AllSeries::new();
    let from_ticks = view.cpu.complete_from_ticks(&view.setup.schedule).unwrap_or(u64::MAX);
    let ns = view.setup.ns_per_tick();
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
            let Some(source) = testimony.sources.get(p.source as usize) else { continue };
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
    out
}

/// Rhythms of one CPU: per named source, and per class of durations for what has no name.
pub fn periodic(view: &CpuView<'_>, testimony: &Testimony) -> Vec<Periodic> {
    let wall_s = view.wall_s();
    let found: Vec<((String, String), Series, Vec<Rhythm>)> = series(view, testimony)
        .into_iter()
        .map(|(key, s)| {
            let rhythms = rhythms(&s.times_s, wall_s);
            (key, s, rhythms)
        })
        .collect();
    let leaders: Vec<Leader<'_>> =
        found.iter().flat_map(|(_, s, r)| r.iter().map(|r| Leader::of(s, r))).collect();
    let mut out = Vec::new();
    for ((class, source), series, rhythms) in &found {
        for r in rhythms {
            let of = Leader::of(series, r);
            if leaders.iter().any(|l| l.brings(&of)) {
                continue;
            }
            let thread = series.kind == Some(SourceKind::Thread);
            // Without the kernel's trace nobody sees the tick.
            let blind = testimony.sight == Sight::Switches && is_tick_rate(r.hz);
            let ticks =
                !of.is_tick() && leaders.iter().any(|l| l.is_tick() && follows(&r.times_s, l.rhythm, 0.0));
            out.push(Periodic {
                cpu: view.cpu.cpu,
                class: class.clone(),
                source: source.clone(),
                hz: r.hz,
                half_hz: r.half_hz.map(|h| h + r.hz * view.setup.rate_error),
                events: r.times_s.len(),
                p: r.p,
                median_ns: of.median_ns,
                at_tick: ticks || (thread && blind),
            });
        }
    }
    out.sort_by(|a, b| b.cost_ns().total_cmp(&a.cost_ns()));
    out
}

fn is_tick_rate(hz: f64) -> bool {
    TICKS_HZ.iter().any(|t| (hz / t - 1.0).abs() < 1e-3)
}

/// A rhythm that may give others theirs.
struct Leader<'a> {
    kind: Option<SourceKind>,
    rhythm: &'a Rhythm,
    median_ns: f64,
}

impl<'a> Leader<'a> {
    fn of(series: &Series, rhythm: &'a Rhythm) -> Self {
        Self { kind: series.kind, rhythm, median_ns: median_of(&series.durations_ns).unwrap_or(0.0) }
    }

    fn is_tick(&self) -> bool {
        self.kind == Some(SourceKind::Tick) && is_tick_rate(self.rhythm.hz)
    }

    /// Whether the other has its rhythm from this thread: it is the interrupt that wakes it, what the
    /// hypervisor does about that, or a thread that gets what is left of the gap when this one is done.
    fn brings(&self, other: &Self) -> bool {
        let same =
            (self.rhythm.hz / other.rhythm.hz - 1.0).abs() < SAME && !std::ptr::eq(self.rhythm, other.rhythm);
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

/// Whether nearly all events begin right after those of a leader that keeps the CPU for the share `busy` of its period. The
/// scheduler acts when a handler returns, tens of microseconds after it began: a twentieth of the period of the fastest tick.
fn follows(times_s: &[f64], leader: &Rhythm, busy: f64) -> bool {
    const SOON: f64 = 0.05;
    const NEARLY: f64 = 0.8;
    let soon = |t: &&f64| {
        let before = leader.times_s.partition_point(|at| at < *t);
        before > 0 && (*t - leader.times_s[before - 1]) * leader.hz < busy + SOON
    };
    times_s.iter().filter(soon).count() as f64 >= NEARLY * times_s.len() as f64
}

/// The rhythms in ascending event times of a recording of `wall_s`, strongest evidence first.
pub fn rhythms(times_s: &[f64], wall_s: f64) -> Vec<Rhythm> {
    let middle = times_s.partition_point(|t| *t < wall_s / 2.0);
    if wall_s <= 0.0 || middle.min(times_s.len() - middle) < MIN_EVENTS / 2 {
        return Vec::new();
    }
    let from = (middle - middle.min(SEARCHED)) / 2;
    let stretch = &times_s[from..from + middle.min(SEARCHED)];
    let mut left = times_s.to_vec();
    let mut out: Vec<Rhythm> = Vec::new();
    for trial in trials(stretch, wall_s) {
        let Some(rhythm) = hold(&left, &trial, wall_s) else { continue };
        left.retain(|t| rhythm.times_s.binary_search_by(|x| x.total_cmp(t)).is_err());
        // Several events per cycle are one rhythm.
        match out.iter_mut().find(|r| (r.hz / rhythm.hz - 1.0).abs() < SAME) {
            Some(same) => {
                same.times_s.extend(rhythm.times_s);
                same.times_s.sort_by(f64::total_cmp);
            }
            None => out.push(rhythm),
        }
    }
    out
}

/// Frequencies nearer to each other than this are one, and are not told from each other by a wandering source.
const SAME: f64 = 1e-3;

/// A frequency to follow, where a tooth lies, how far its events scatter about it in cycles, and its p.
struct Trial {
    hz: f64,
    tooth_s: f64,
    jitter: f64,
    p: f64,
}

/// What may be a rhythm in a stretch: combs, and the usual time from event to event where most have that.
fn trials(stretch: &[f64], wall_s: f64) -> Vec<Trial> {
    let fastest_hz = fastest_hz(stretch).min(MAX_HZ);
    let near = stretch[stretch.len() / 2];
    let comb = |c: machmeter_stats::events::Comb| Trial {
        hz: c.fundamental_hz,
        tooth_s: (c.phase + (near * c.fundamental_hz - c.phase).round()) / c.fundamental_hz,
        jitter: c.jitter_s * c.fundamental_hz,
        p: c.p,
    };
    let mut out: Vec<Trial> = Vec::new();
    let mut between: Vec<f64> = stretch.windows(2).map(|w| w[1] - w[0]).collect();
    between.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| between.get((between.len() as f64 * share) as usize).copied().unwrap_or(0.0);
    let usual_s = at(0.5);
    // A source that sleeps from one time to the next has no comb, but hardly differing pauses.
    if usual_s > 0.0
        && at(0.75) - at(0.25) < REGULAR * usual_s
        && (2.0 / wall_s..MAX_HZ).contains(&(1.0 / usual_s))
    {
        out.push(Trial {
            hz: 1.0 / usual_s,
            tooth_s: near,
            jitter: 0.5 * (at(0.75) - at(0.25)) / usual_s,
            p: FALSE_ALARM,
        });
    }
    out.extend(comb_search(stretch, 2.0 / wall_s, fastest_hz).unwrap_or_default().into_iter().map(comb));
    out
}

/// Interquartile range of the pauses of a regular source in units of their median; that of independent events is 1.6.
const REGULAR: f64 = 0.3;

/// The fastest rhythm worth searching in events at these times, Hz. The events of a rhythm may come in bursts with long
/// holes between, so the rate is that between neighbors: of the quarter of the events that follow soonest.
fn fastest_hz(times_s: &[f64]) -> f64 {
    let mut between: Vec<f64> = times_s.windows(2).map(|w| w[1] - w[0]).collect();
    if between.is_empty() {
        return 0.0;
    }
    let quarter = between.len() / 4;
    let soon_s = *between.select_nth_unstable_by(quarter, f64::total_cmp).1;
    if soon_s > 0.0 { CYCLES_PER_EVENT / soon_s } else { MAX_HZ }
}

/// Follows a trial through all events and keeps it if it holds in both halves of the run.
fn hold(times_s: &[f64], trial: &Trial, wall_s: f64) -> Option<Rhythm> {
    // Four standard deviations about the tooth; a quarter of a cycle leaves as much to chance as to the rhythm.
    let gate = (4.0 * trial.jitter).clamp(0.03, 0.25);
    let mut hz = trial.hz;
    let mut followed = follow(times_s, hz, trial.tooth_s, gate);
    for _ in 0..2 {
        hz = frequency(&followed)?;
        followed = follow(times_s, hz, trial.tooth_s, gate);
    }
    let chance = [0.0, wall_s / 2.0].map(|from_s| {
        let half = |t: &f64| (from_s..from_s + wall_s / 2.0).contains(t);
        by_chance(times_s.iter().copied().filter(half), &followed, hz, gate)
    });
    let holds = followed.len() >= MIN_EVENTS && chance.iter().all(|p| *p < FALSE_ALARM);
    let hz = frequency(&followed)?;
    holds.then(|| Rhythm {
        hz,
        half_hz: half_width(&followed, wall_s),
        times_s: followed.iter().map(|f| f.1).collect(),
        p: trial.p.min(chance[0]).max(f64::MIN_POSITIVE),
    })
}

/// Events within `gate` cycles of where one is due, with their cycle numbers, ascending. After each the next is due a little
/// later or earlier: half of what the event was off, which follows a phase that walks and halves what jitter does.
fn follow(times_s: &[f64], hz: f64, tooth_s: f64, gate: f64) -> Vec<(f64, f64)> {
    const GAIN: f64 = 0.5;
    let start = times_s.partition_point(|t| *t < tooth_s);
    let walk = |times: &mut dyn Iterator<Item = &f64>| {
        let (mut due_s, mut cycle) = (tooth_s, 0.0);
        let mut out = Vec::new();
        for t in times {
            let since = (t - due_s) * hz;
            let off = since - since.round();
            // One event per cycle: the next one in the same cycle is another's.
            if off.abs() <= gate && (since.round().abs() > 0.0 || out.is_empty()) {
                cycle += since.round();
                due_s += (since.round() + GAIN * off) / hz;
                out.push((cycle, *t));
            }
        }
        out
    };
    let mut out = walk(&mut times_s[..start].iter().rev());
    out.reverse();
    let later = walk(&mut times_s[start..].iter());
    let again = out.last().zip(later.first()).is_some_and(|(a, b)| a.0 >= b.0);
    out.extend(later.into_iter().skip(usize::from(again)));
    out
}

/// Frequency of events with cycle numbers: least squares.
fn frequency(followed: &[(f64, f64)]) -> Option<f64> {
    let n = followed.len() as f64;
    if followed.len() < 3 {
        return None;
    }
    let (mean_k, mean_t) =
        (followed.iter().map(|f| f.0).sum::<f64>() / n, followed.iter().map(|f| f.1).sum::<f64>() / n);
    let spread: f64 = followed.iter().map(|f| (f.0 - mean_k).powi(2)).sum();
    let period_s = followed.iter().map(|f| (f.0 - mean_k) * (f.1 - mean_t)).sum::<f64>() / spread;
    (period_s > 0.0 && period_s.is_finite()).then(|| 1.0 / period_s)
}

/// Half of the 95 % interval of the frequency, by the frequencies of separate stretches of the run: what the phase walks and
/// the source drifts shows in how they differ, as jitter does.
fn half_width(followed: &[(f64, f64)], wall_s: f64) -> Option<f64> {
    let stretches = (followed.len() / 6).clamp(4, STRETCHES);
    let own: Vec<f64> = (0..stretches)
        .filter_map(|s| {
            let edge = |k: usize| wall_s * k as f64 / stretches as f64;
            let from = followed.partition_point(|f| f.1 < edge(s));
            let to = followed.partition_point(|f| f.1 < edge(s + 1));
            if to - from < 4 { None } else { frequency(&followed[from..to]) }
        })
        .collect();
    if own.len() < 4 {
        return None;
    }
    let n = own.len() as f64;
    let mean = own.iter().sum::<f64>() / n;
    let variance = own.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(t_quantile(0.975, n - 1.0)? * (variance / n).sqrt())
}

/// Chance that as many of these events fall where one is due, if they came at any time. Events of one burst are one.
fn by_chance(times_s: impl Iterator<Item = f64>, followed: &[(f64, f64)], hz: f64, gate: f64) -> f64 {
    let (mut tried, mut met, mut last_s) = (0_u64, 0_u64, f64::NEG_INFINITY);
    for t in times_s {
        let belongs = followed.binary_search_by(|f| f.1.total_cmp(&t)).is_ok();
        if (t - last_s) * hz < 0.5 && !belongs {
            continue;
        }
        (tried, met, last_s) = (tried + 1, met + u64::from(belongs), t);
    }
    if tried < MIN_EVENTS as u64 / 2 || met == 0 {
        return 1.0;
    }
    // What was followed draws the next due time towards events, by a tenth more than chance at most.
    1.0 - binomial_cdf(met - 1, tried, (2.0 * gate * 1.1).min(0.99)).unwrap_or(0.0)
}

/// Metrics `noise.period`. A figure is that of a source; of what has no name, and of a source's further rhythms, the
/// frequency to two digits is part of the name, so that no comparison takes one for another.
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
pub fn finding(found: &[Periodic]) -> Option<Finding> {
    let mut ranked: Vec<&Periodic> = found.iter().collect();
    ranked.sort_by(|a, b| b.cost_ns().total_cmp(&a.cost_ns()));
    let own = || ranked.iter().filter(|f| !f.at_tick);
    let what = |f: &Periodic| {
        if f.source == UNKNOWN { format!("detours of {}", f.class) } else { f.source.clone() }
    };
    let mut evidence: Vec<String> = own()
        .take(MAX_LISTED)
        .map(|f| {
            let half = f.half_hz.map_or(String::new(), |h| format!(" +- {}", human(h, Unit::Hertz)));
            format!(
                "CPU {}: {} at {:.3} Hz{half}, {} each (median), {} events, p = {:.0e}",
                f.cpu,
                what(f),
                f.hz,
                human(f.median_ns, Unit::Nanoseconds),
                f.events,
                f.p
            )
        })
        .collect();
    let at_tick = ranked.iter().filter(|f| f.at_tick).take(MAX_LISTED);
    evidence
        .extend(at_tick.map(|f| {
            format!("CPU {}: {} comes at the scheduler's tick, {} times", f.cpu, what(f), f.events)
        }));
    let text = match own().next() {
        Some(first) => format!(
            "{} periodic sources; the one that takes most time: {} on CPU {} at {:.3} Hz. Each holds in both halves of the run; \
             each p is corrected for the frequencies tried.",
            own().count(),
            what(first),
            first.cpu,
            first.hz
        ),
        None => "No source has a rhythm of its own; some threads come at the scheduler's tick.".to_owned(),
    };
    let verdict = if own().next().is_some() { "present" } else { "none_seen" };
    (!evidence.is_empty()).then(|| Finding {
        id: "noise.periodic".to_owned(),
        verdict: verdict.to_owned(),
        text,
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_stats::random::Random;

    /// A planted source: `jitter` about a rigid grid, phase that walks, both in cycles, and a frequency that rises by `drift`.
    #[derive(Debug, Clone, Copy)]
    struct Planted {
        hz: f64,
        jitter: f64,
        walk: f64,
        drift: f64,
    }

    const WALL_S: f64 = 10.0;

    fn events(p: Planted, random: &mut Random) -> Vec<f64> {
        let (mut out, mut phase) = (Vec::new(), random.unit());
        let cycles = (WALL_S * p.hz) as u64;
        for k in 0..cycles {
            phase += p.walk * random.normal();
            let at = (k as f64 + phase + p.jitter * random.normal()) / p.hz;
            out.push(at * (1.0 - p.drift * (at / WALL_S - 0.5)));
        }
        out.retain(|t| (0.0..WALL_S).contains(t));
        out.sort_by(f64::total_cmp);
        out
    }

    const RIGID: Planted = Planted { hz: 73.0, jitter: 0.005, walk: 0.0, drift: 0.0 };

    fn strongest(mut found: Vec<Rhythm>) -> Option<Rhythm> {
        found.sort_by_key(|r| std::cmp::Reverse(r.times_s.len()));
        found.into_iter().next()
    }

    #[test]
    fn a_source_that_jitters_walks_or_drifts_is_one_rhythm_with_the_truth_in_its_interval() {
        let mut random = Random::new(1);
        let kinds = [
            Planted { jitter: 0.005, ..RIGID },
            Planted { jitter: 0.03, hz: 701.0, ..RIGID },
            Planted { walk: 0.001, hz: 250.0, ..RIGID },
            Planted { walk: 0.01, hz: 100.0, ..RIGID },
            Planted { walk: 0.05, hz: 100.0, ..RIGID },
            Planted { drift: 1e-4, hz: 333.0, ..RIGID },
            Planted { drift: 1e-4, walk: 0.01, ..RIGID },
        ];
        for kind in kinds {
            let (mut held, mut alone) = (0, 0);
            for _ in 0..40 {
                // The frequency of a drifting source is that of the middle of the run; events of no rhythm beside it.
                let mut times = events(kind, &mut random);
                times.extend((0..200).map(|_| random.unit() * WALL_S));
                times.sort_by(f64::total_cmp);
                let found = rhythms(&times, WALL_S);
                alone += usize::from(found.len() == 1);
                let Some(r) = strongest(found) else { continue };
                // A walking phase ends elsewhere: what the run had is its own frequency, which the interval is to hold too.
                held += usize::from(r.half_hz.is_some_and(|h| (r.hz - kind.hz).abs() <= h));
                assert!(kind.walk > 0.002 || (r.hz / kind.hz - 1.0).abs() < 5e-4, "{kind:?}: {}", r.hz);
            }
            assert!(held >= 36, "{kind:?}: {held} of 40 intervals hold the truth");
            assert!(alone >= 36, "{kind:?}: {alone} of 40 are one rhythm");
        }
    }

    #[test]
    fn events_without_a_rhythm_have_none() {
        let mut random = Random::new(2);
        let (mut plain, mut bursts) = (0, 0);
        for _ in 0..60 {
            let mut times: Vec<f64> = (0..1_000).map(|_| random.unit() * WALL_S).collect();
            times.sort_by(f64::total_cmp);
            plain += rhythms(&times, WALL_S).len();
            let mut times = Vec::new();
            for _ in 0..60 {
                let at = random.unit() * WALL_S;
                times.extend((0..20).map(|_| at + random.unit() * 1e-3));
            }
            times.retain(|t| *t < WALL_S);
            times.sort_by(f64::total_cmp);
            bursts += rhythms(&times, WALL_S).len();
        }
        assert!(plain <= 1 && bursts <= 1, "{plain} and {bursts} of 60");
    }

    #[test]
    fn two_sources_are_two_rhythms_and_one_that_ends_is_none() {
        let mut random = Random::new(3);
        let mut both = events(Planted { hz: 97.0, ..RIGID }, &mut random);
        both.extend(events(Planted { hz: 101.0, ..RIGID }, &mut random));
        both.sort_by(f64::total_cmp);
        let mut found: Vec<f64> = rhythms(&both, WALL_S).iter().map(|r| r.hz).collect();
        found.sort_by(f64::total_cmp);
        assert!(
            found.len() == 2 && (found[0] - 97.0).abs() < 0.01 && (found[1] - 101.0).abs() < 0.01,
            "{found:?}"
        );
        let mut ends = events(RIGID, &mut random);
        ends.retain(|t| *t < 4.0);
        ends.extend((0..300).map(|_| 4.0 + random.unit() * 6.0));
        ends.sort_by(f64::total_cmp);
        assert!(rhythms(&ends, WALL_S).is_empty());
    }

    #[test]
    fn a_rhythm_in_bursts_is_followed_over_the_holes() {
        let mut random = Random::new(4);
        let mut times = events(Planted { hz: 211.0, ..RIGID }, &mut random);
        times.retain(|t| t.fract() < 0.25);
        let r = strongest(rhythms(&times, WALL_S)).unwrap();
        assert!((r.hz / 211.0 - 1.0).abs() < 5e-5 && r.half_hz.unwrap() < 0.1, "{r:?}");
    }

    #[test]
    fn a_thread_that_the_tick_lets_in_has_no_rhythm_of_its_own() {
        let tick = Rhythm {
            hz: 250.0,
            half_hz: None,
            times_s: (0..2_500).map(|k| f64::from(k) / 250.0).collect(),
            p: 0.0,
        };
        let let_in: Vec<f64> = tick.times_s.iter().step_by(3).map(|t| t + 9e-6).collect();
        assert!(follows(&let_in, &tick, 0.0));
        let series = |kind| Series { kind: Some(kind), times_s: vec![], durations_ns: vec![3e5] };
        let at = |late_s: f64| Rhythm {
            hz: 73.0,
            half_hz: None,
            times_s: (0..730).map(|k| f64::from(k) / 73.0 + late_s).collect(),
            p: 0.0,
        };
        let (timer, first, then) = (at(0.0), at(5e-6), at(4e-4));
        let thread = Leader::of(&series(SourceKind::Thread), &first);
        assert!(thread.brings(&Leader::of(&series(SourceKind::Tick), &timer)), "its timer");
        assert!(thread.brings(&Leader::of(&series(SourceKind::Thread), &then)), "who gets the rest");
        assert!(!Leader::of(&series(SourceKind::Thread), &then).brings(&thread));
        let own: Vec<f64> = (0..730).map(|k| f64::from(k) / 73.0).collect();
        assert!(!follows(&own, &tick, 0.0));
    }
}
