//! Periodicity: spectra of windows, combs of event times per class and source, memory of the series, and whether CPUs
//! stop together.

use std::collections::BTreeMap;

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Finding;
use machmeter_data::shape::{Axis, Curve, CurveRow, Mark};
use machmeter_data::{Dataset, Interval, Metric, Params, Shape};
use machmeter_stats::autocorr::autocorrelation;
use machmeter_stats::coincidence::{CoincidenceOptions, Event, coincidence};
use machmeter_stats::events::{Comb, comb_search};
use machmeter_stats::spectrum::{clip_robust, welch};

use super::classes::{CLASSES, class_of};
use super::datasets::lost;
use super::figures::CpuView;
use super::sources::group;
use crate::attribute::matching::Attributed;
use crate::attribute::testimony::{SourceKind, Testimony};
use crate::info;

/// Fewer events than this are not searched for a rhythm.
const MIN_EVENTS: usize = 20;
/// More than this are not needed: the first so many are searched.
const MAX_EVENTS: usize = 20_000;
/// Events searched per second of recording, and at least: the search costs a time in proportion to them, and a run has to
/// end soon after its recording. A rhythm shows in some hundred events.
const EVENTS_PER_SECOND: f64 = 150.0;
const ALWAYS_SEARCHED: usize = 1_500;
/// Fastest rhythm searched, Hz.
const MAX_HZ: f64 = 5_000.0;
/// A rhythm that has an event in fewer than one of so many of its cycles is not searched for: the fastest rhythm searched
/// is this many times the rate of the events.
const CYCLES_PER_EVENT: f64 = 4.0;
/// Points kept of a spectrum, spaced evenly on a logarithmic axis.
const SPECTRUM_POINTS: usize = 280;
/// Rhythms listed at most.
const MAX_LISTED: usize = 10;
/// CPUs whose pairs are compared at most.
const MAX_PAIRED: usize = 8;

/// A periodic source found on one CPU.
#[derive(Debug, Clone)]
pub struct Periodic {
    /// The CPU.
    pub cpu: usize,
    /// Class of durations (`10-100 us`) or `source`.
    pub class: String,
    /// Name of the source, or `unknown`.
    pub source: String,
    /// What was found.
    pub comb: Comb,
    /// Median duration of the events searched, ns.
    pub median_ns: f64,
}

/// Rhythms of one CPU: per named source, and per class of durations for what has no name.
pub fn periodic(view: &CpuView<'_>, attributed: &[Attributed], testimony: &Testimony) -> Vec<Periodic> {
    let mut series: BTreeMap<(String, String), Vec<(f64, f64)>> = BTreeMap::new();
    let named = |a: &Attributed| {
        testimony
            .sources
            .get(a.main as usize)
            .filter(|s| !matches!(s.kind, SourceKind::Unknown | SourceKind::Outside))
            .map(|s| group(s).0)
    };
    for (i, (t, d)) in view.starts_s().into_iter().zip(view.durations_ns()).enumerate() {
        let key = match attributed.get(i).and_then(named) {
            Some(source) => ("source".to_owned(), source),
            None => (CLASSES[class_of(d)].0.to_owned(), "unknown".to_owned()),
        };
        series.entry(key).or_default().push((t, d));
    }
    let wall = view.wall_s();
    let mut out = Vec::new();
    for ((class, source), mut events) in series {
        if events.len() < MIN_EVENTS || wall <= 0.0 {
            continue;
        }
        events.truncate(searched(wall));
        let times: Vec<f64> = events.iter().map(|e| e.0).collect();
        let durations: Vec<f64> = events.iter().map(|e| e.1).collect();
        let median_ns = machmeter_stats::quantile::median_of(&durations).unwrap_or(0.0);
        let fastest_hz = fastest_hz(&times).min(MAX_HZ);
        for comb in comb_search(&times, 2.0 / wall, fastest_hz).unwrap_or_default() {
            out.push(Periodic {
                cpu: view.cpu.cpu,
                class: class.clone(),
                source: source.clone(),
                comb,
                median_ns,
            });
        }
    }
    out
}

/// Events of one series that are searched in a recording of `wall_s`.
fn searched(wall_s: f64) -> usize {
    ((wall_s * EVENTS_PER_SECOND) as usize).clamp(ALWAYS_SEARCHED, MAX_EVENTS)
}

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

/// Metrics `noise.period`.
pub fn metrics(found: &[Periodic]) -> Vec<Metric> {
    let mut taken: Vec<(String, String)> = Vec::new();
    let mut out = Vec::new();
    for f in found {
        // One figure per class and source: the strongest comes first; further ones stand in the findings.
        if taken.contains(&(f.class.clone(), f.source.clone())) {
            continue;
        }
        taken.push((f.class.clone(), f.source.clone()));
        let p = params([
            ("cpu", f.cpu.into()),
            ("class", f.class.as_str().into()),
            ("source", f.source.as_str().into()),
        ]);
        let half = 1.96 * f.comb.fundamental_error_hz;
        let hz = f.comb.fundamental_hz;
        out.push(
            Metric::new(&info::PERIOD, p, hz, "comb of event times", f.comb.events_in_comb as u64)
                .with_ci(Interval::new(0.95, (hz - half).max(0.0), hz + half, "normal")),
        );
    }
    out
}

/// One finding that lists the rhythms, those that take most time first.
pub fn finding(found: &[Periodic]) -> Option<Finding> {
    let mut ranked: Vec<&Periodic> = found.iter().collect();
    let cost = |f: &Periodic| f.comb.events_in_comb as f64 * f.median_ns;
    ranked.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
    let first = ranked.first()?;
    let what = |f: &Periodic| {
        if f.source == "unknown" { format!("detours of {}", f.class) } else { f.source.clone() }
    };
    let evidence = ranked
        .iter()
        .take(MAX_LISTED)
        .map(|f| {
            format!(
                "CPU {}: {} at {:.2} Hz, {} each (median), {} events in the comb, {} harmonics significant, p = {:.0e}",
                f.cpu,
                what(f),
                f.comb.fundamental_hz,
                human(f.median_ns, Unit::Nanoseconds),
                f.comb.events_in_comb,
                f.comb.harmonics,
                f.comb.p
            )
        })
        .collect();
    Some(Finding {
        id: "noise.periodic".to_owned(),
        verdict: "present".to_owned(),
        text: format!(
            "{} periodic sources; the one that takes most time: {} on CPU {} at {:.2} Hz. Each p is corrected for the \
             frequencies tried.",
            ranked.len(),
            what(first),
            first.cpu,
            first.comb.fundamental_hz
        ),
        evidence,
    })
}

/// Welch spectra of the share of time lost per window, clipped so that rare long holes do not rule it, with the lines of
/// the rhythms found.
pub fn spectrum(views: &[CpuView<'_>], found: &[Periodic]) -> Option<Dataset> {
    let rate = 1e9 / views.first()?.setup.window_ns();
    let rows: Vec<CurveRow> = views
        .iter()
        .filter_map(|v| {
            let series = clip_robust(&lost(v), 8.0)?;
            let segment = (series.len() / 8).next_power_of_two().clamp(64, 16_384).min(series.len());
            let s = welch(&series, rate, segment, segment / 2).ok()?;
            let (x, y) = thin(&s.freq_hz, &s.power);
            (!x.is_empty()).then(|| CurveRow { name: format!("CPU {}", v.cpu.cpu), x, y })
        })
        .collect();
    let top = rate / 2.0;
    let marks: Vec<Mark> = found
        .iter()
        .filter(|f| f.comb.fundamental_hz < top)
        .take(8)
        .map(|f| Mark {
            x: f.comb.fundamental_hz,
            y: None,
            label: format!(
                "{:.1} Hz {}",
                f.comb.fundamental_hz,
                if f.source == "unknown" { &f.class } else { &f.source }
            ),
            detail: format!("CPU {}: {} events, p = {:.0e}", f.cpu, f.comb.events_in_comb, f.comb.p),
        })
        .collect();
    (!rows.is_empty()).then(|| Dataset {
        id: "noise.spectrum".to_owned(),
        params: Params::new(),
        title: "Spectrum of lost time".to_owned(),
        caption: "Power of the share of time lost per window by frequency (Welch, values clipped at 8 median deviations). Named \
                  lines are rhythms found in the event times, which resolve them far better than windows can."
            .to_owned(),
        shape: Shape::Curve(Curve {
            x: Axis::log("frequency", Unit::Hertz),
            y: Axis::log("power", Unit::PerHertz),
            rows,
            marks,
        }),
    })
}

/// Keeps the largest power of each logarithmic bucket, so that lines survive thinning.
fn thin(freq_hz: &[f64], power: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (mut x, mut y): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let usable = || freq_hz.iter().zip(power).filter(|(f, p)| **f > 0.0 && **p > 0.0);
    let (Some(low), Some(high)) = (usable().map(|p| *p.0).next(), usable().map(|p| *p.0).next_back()) else {
        return (x, y);
    };
    let per_bucket = (high / low).ln() / SPECTRUM_POINTS as f64;
    let mut bucket = -1_i64;
    for (f, p) in usable() {
        let b = if per_bucket > 0.0 { ((f / low).ln() / per_bucket) as i64 } else { 0 };
        if b == bucket {
            if let (Some(last_x), Some(last_y)) = (x.last_mut(), y.last_mut())
                && p > last_y
            {
                (*last_x, *last_y) = (*f, *p);
            }
        } else {
            bucket = b;
            x.push(*f);
            y.push(*p);
        }
    }
    (x, y)
}

/// Autocorrelation of the share of time lost, up to a fifth of the run, thinned logarithmically.
pub fn memory(views: &[CpuView<'_>]) -> Option<Dataset> {
    let window_ns = views.first()?.setup.window_ns();
    let rows: Vec<CurveRow> = views
        .iter()
        .filter_map(|v| {
            let series = clip_robust(&lost(v), 8.0)?;
            let lags = (series.len() / 5).min(20_000);
            let r = autocorrelation(&series, lags)?;
            let mut x = Vec::new();
            let mut y = Vec::new();
            let mut lag = 1_usize;
            while lag < r.len() {
                x.push(lag as f64 * window_ns);
                y.push((r[lag] * 1e4).round() / 1e4);
                lag = (lag + 1).max((lag as f64 * 1.05) as usize);
            }
            (!x.is_empty()).then(|| CurveRow { name: format!("CPU {}", v.cpu.cpu), x, y })
        })
        .collect();
    (!rows.is_empty()).then(|| Dataset {
        id: "noise.autocorrelation".to_owned(),
        params: Params::new(),
        title: "Memory of the noise".to_owned(),
        caption: "Autocorrelation of the share of time lost. Noise with memory comes in spells; a sharp peak is a rhythm."
            .to_owned(),
        shape: Shape::Curve(Curve {
            x: Axis::log("lag", Unit::Nanoseconds),
            y: Axis::linear("correlation", Unit::One),
            rows,
            marks: Vec::new(),
        }),
    })
}

/// Whether detours of at least 1 us come together on pairs of CPUs more often than chance has it.
pub fn together(views: &[CpuView<'_>], seed: u64) -> Vec<Finding> {
    let mut lists: Vec<(usize, Vec<Event>, f64)> = views
        .iter()
        .take(MAX_PAIRED)
        .map(|v| {
            let span = v.wall_s();
            let events: Vec<Event> = v
                .starts_s()
                .into_iter()
                .zip(v.durations_ns())
                .filter(|(_, d)| *d >= 1e3)
                .map(|(start_s, d)| Event { start_s, end_s: (start_s + d / 1e9).min(span) })
                .filter(|e| e.start_s <= e.end_s)
                .collect();
            (v.cpu.cpu, events, span)
        })
        .collect();
    // All lists are cut at the same time, or those of busy CPUs would seem to avoid the end of the others'.
    let until_s = lists
        .iter()
        .filter_map(|(_, events, span)| Some(events.get(searched(*span))?.start_s))
        .min_by(f64::total_cmp);
    if let Some(until_s) = until_s {
        for (_, events, span) in &mut lists {
            events.retain(|e| e.start_s < until_s);
            for e in events.iter_mut() {
                e.end_s = e.end_s.min(until_s);
            }
            *span = span.min(until_s);
        }
    }
    let mut out = Vec::new();
    for (i, (cpu_a, a, span)) in lists.iter().enumerate() {
        for (cpu_b, b, _) in &lists[i + 1..] {
            let options = CoincidenceOptions { seed, shifts: 299, ..CoincidenceOptions::default() };
            let Some(c) = coincidence(a, b, *span, &options) else { continue };
            let more = c.p < 0.01 && c.ratio.is_none_or(|r| r > 1.2);
            out.push(Finding {
                id: "noise.coincidence".to_owned(),
                verdict: if more { "present" } else { "none_seen" }.to_owned(),
                text: if more {
                    format!("CPUs {cpu_a} and {cpu_b} are disturbed together more often than chance has it.")
                } else {
                    format!("CPUs {cpu_a} and {cpu_b} are not disturbed together more often than chance has it.")
                },
                evidence: vec![format!(
                    "{} detours over 1 us of CPU {cpu_a} overlap one of CPU {cpu_b}; {:.1} expected by chance; p = {:.3}; both \
                     away for {} in all",
                    c.observed,
                    c.expected,
                    c.p,
                    human(c.overlap_s * 1e9, Unit::Nanoseconds)
                )],
            });
        }
    }
    out
}
