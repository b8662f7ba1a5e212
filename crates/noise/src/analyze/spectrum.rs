//! Spectra of windows, memory of the series, and whether CPUs stop together.

use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Finding;
use machmeter_data::shape::{Axis, Curve, CurveRow, Mark};
use machmeter_data::{Dataset, Shape};
use machmeter_stats::coincidence::{Event, coincidence};
use machmeter_stats::spectrum::{autocorrelation, clip_robust, welch};

use super::datasets::lost;
use super::figures::CpuView;
use super::finding;
use super::rhythm::Periodic;

/// Points kept of a spectrum, spaced evenly on a logarithmic axis.
const SPECTRUM_POINTS: usize = 280;
/// CPUs whose pairs are compared at most.
const MAX_PAIRED: usize = 8;

/// Events of one CPU that are compared with another's in a recording of `wall_s`: what keeps the analysis within its time.
fn compared(wall_s: f64) -> usize {
    ((wall_s * 150.0) as usize).clamp(1_500, 20_000)
}

/// Welch spectra of time lost per window, clipped so that rare long holes do not rule, with the rhythms found.
pub(super) fn spectrum(views: &[CpuView<'_>], found: &[Periodic]) -> Option<Dataset> {
    let setup = views.first()?.setup;
    let rate = 1e9 / setup.window_ns();
    let of = |series: &[f64]| {
        let segment = (series.len() / 8).next_power_of_two().clamp(64, 16_384).min(series.len());
        let s = welch(series, rate, segment, segment / 2).ok()?;
        Some(thin(&s.freq_hz, &s.power))
    };
    let top = rate / 2.0;
    let marks: Vec<Mark> = found
        .iter()
        .filter(|f| f.hz < top && !f.at_tick)
        .take(8)
        .map(|f| Mark {
            x: f.hz,
            label: format!("{:.1} Hz {}", f.hz, f.what()),
            detail: format!("{}: {} events, p = {:.0e}", setup.name(f.cpu), f.events, f.p),
            ..Mark::default()
        })
        .collect();
    let texts = [
        "noise.spectrum",
        "Spectrum of lost time",
        "Power of the share of time lost per window by frequency (Welch, values clipped at 8 median deviations). Named \
         lines are rhythms found in the event times, which resolve them far better than windows can.",
    ];
    let axes = [Axis::log("frequency", Unit::Hertz), Axis::log("power", Unit::PerHertz)];
    curves(texts, axes, marks, views, of)
}

type Points = (Vec<f64>, Vec<f64>);

/// Curves `of` the share of time lost on each CPU, clipped, where there are any.
fn curves(
    [id, title, caption]: [&str; 3],
    [x, y]: [Axis; 2],
    marks: Vec<Mark>,
    views: &[CpuView<'_>],
    of: impl Fn(&[f64]) -> Option<Points>,
) -> Option<Dataset> {
    let row = |v: &CpuView<'_>| {
        let (x, y) = of(&clip_robust(&lost(v), 8.0)?)?;
        (!x.is_empty()).then(|| CurveRow { name: v.name(), x, y })
    };
    let curve = Curve { x, y, rows: views.iter().filter_map(row).collect(), marks };
    (!curve.rows.is_empty()).then(|| Dataset::new(id, title, caption, Shape::Curve(curve)))
}

/// Keeps the largest power of each logarithmic bucket, so that lines survive thinning.
fn thin(freq_hz: &[f64], power: &[f64]) -> Points {
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
pub(super) fn memory(views: &[CpuView<'_>]) -> Option<Dataset> {
    let window_ns = views.first()?.setup.window_ns();
    let of = |series: &[f64]| {
        let lags = (series.len() / 5).min(20_000);
        let r = autocorrelation(series, lags)?;
        let next = |lag: &usize| Some((lag + 1).max((*lag as f64 * 1.05) as usize));
        let told = std::iter::successors(Some(1), next).take_while(|lag| *lag < r.len());
        Some(told.map(|lag| (lag as f64 * window_ns, (r[lag] * 1e4).round() / 1e4)).unzip())
    };
    let texts = [
        "noise.autocorrelation",
        "Memory of the noise",
        "Autocorrelation of the share of time lost. Noise with memory comes in spells; a sharp peak is a rhythm.",
    ];
    let axes = [Axis::log("lag", Unit::Nanoseconds), Axis::linear("correlation", Unit::One)];
    curves(texts, axes, Vec::new(), views, of)
}

/// Whether detours of at least 1 us come together on pairs of CPUs more often than chance has it.
pub(super) fn together(views: &[CpuView<'_>], seed: u64) -> Vec<Finding> {
    let mut lists: Vec<(String, Vec<Event>, f64)> = views
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
            (v.name(), events, span)
        })
        .collect();
    // All lists are cut at the same time, or those of busy CPUs would seem to avoid the end of the others'.
    let until_s = lists
        .iter()
        .filter_map(|(_, events, span)| Some(events.get(compared(*span))?.start_s))
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
            let Some(c) = coincidence(a, b, *span, 299, seed) else { continue };
            let more = c.p < 0.01 && c.ratio.is_none_or(|r| r > 1.2);
            let (verdict, are) = if more { ("present", "are") } else { ("none_seen", "are not") };
            let text = format!("{cpu_a} and {cpu_b} {are} disturbed together more often than chance has it.");
            let evidence = format!(
                "{} gaps over 1 us of {cpu_a} overlap one of {cpu_b}; {:.1} expected by chance; p = {:.3}; both \
                 away for {} in all",
                c.observed,
                c.expected,
                c.p,
                human(c.overlap_s * 1e9, Unit::Nanoseconds)
            );
            out.push(finding("noise.coincidence", verdict, text, vec![evidence]));
        }
    }
    out
}
