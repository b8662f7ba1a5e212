//! Metrics of one CPU and of all CPUs together.

use machmeter_data::metric::{ParamValue, params};
use machmeter_data::{Interval, Metric, MetricInfo};
use machmeter_stats::bootstrap::{BootstrapOptions, ratio_block_bootstrap};
use machmeter_stats::quantile::{quantile, quantile_interval, sorted};
use machmeter_stats::tail::{TailOptions, return_level};

use super::split::Split;
use crate::info;
use crate::samples::{CpuSamples, Setup};

/// Blocks into which a run is cut for later comparison.
pub const BLOCKS: usize = 20;
/// Confidence level of all intervals.
pub const LEVEL: f64 = 0.95;
/// Horizon of the extreme-value figure, seconds.
const HORIZON_S: f64 = 3600.0;
/// Quantiles that every duration metric carries.
const QUANTILES: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

/// What the figures of one CPU are computed from.
pub struct CpuView<'a> {
    /// How it was taken.
    pub setup: &'a Setup,
    /// Its samples.
    pub cpu: &'a CpuSamples,
    /// Its windows, separated.
    pub split: &'a Split,
}

impl CpuView<'_> {
    /// Duration of each listed detour, ns, in order of time.
    pub fn durations_ns(&self) -> Vec<f64> {
        let (ns, unit) = (self.setup.ns_per_tick(), self.split.reference_ticks);
        self.cpu.gaps.iter().map(|g| (g.ticks() as f64 - unit).max(0.0) * ns).collect()
    }

    /// Start of each listed detour after the start of the recording, s.
    pub fn starts_s(&self) -> Vec<f64> {
        let (t0, ns) = (self.setup.schedule.t0_ticks, self.setup.ns_per_tick());
        self.cpu.gaps.iter().map(|g| g.start_ticks.saturating_sub(t0) as f64 * ns / 1e9).collect()
    }

    /// Wall time of the recording, s.
    pub fn wall_s(&self) -> f64 {
        self.split.wall_ticks * self.setup.ns_per_tick() / 1e9
    }

    fn param(&self) -> (&'static str, ParamValue) {
        ("cpu", self.cpu.cpu.into())
    }
}

/// Interval in the record's form.
fn interval(i: Option<machmeter_stats::Interval>, method: &str) -> Option<Interval> {
    i.and_then(|i| Interval::new(i.level, i.low, i.high, method))
}

/// Sums of consecutive, nearly equal blocks of `xs`.
pub fn block_sums(xs: &[f64], blocks: usize) -> Vec<f64> {
    let blocks = blocks.min(xs.len()).max(1);
    (0..blocks).map(|b| xs[b * xs.len() / blocks..(b + 1) * xs.len() / blocks].iter().sum()).collect()
}

/// Blocks of a share: the sum of `part` over each block as a share of the block's time.
fn share_blocks(part: &[f64], window: f64) -> Vec<f64> {
    let ones = vec![window; part.len()];
    block_sums(part, BLOCKS).iter().zip(block_sums(&ones, BLOCKS)).map(|(p, w)| p / w).collect()
}

fn block_ns(view: &CpuView<'_>) -> f64 {
    view.split.wall_ticks * view.setup.ns_per_tick() / BLOCKS.min(view.split.stolen_ticks.len()).max(1) as f64
}

/// Share `sum(part) / sum(window)` with its block-bootstrap interval, blocks and effective sample size.
fn share(info: &MetricInfo, view: &CpuView<'_>, part: &[f64], value: f64, seed: u64) -> Metric {
    let window = view.setup.schedule.window_ticks as f64;
    let den = vec![window; part.len()];
    let options = BootstrapOptions { level: LEVEL, seed, ..BootstrapOptions::default() };
    let mut ci = interval(ratio_block_bootstrap(part, &den, &options), "block-bootstrap");
    // Time known only in sum shifts the interval as it shifts the value.
    let seen: f64 = part.iter().sum::<f64>() / (window * part.len().max(1) as f64);
    if let Some(i) = &mut ci {
        let shift = value - seen;
        (i.low, i.high) = ((i.low + shift).max(0.0), (i.high + shift).max(0.0));
    }
    let blocks = share_blocks(part, window);
    let mut m = Metric::new(info, params([view.param()]), value, "time-share", part.len() as u64)
        .with_ci(ci)
        .with_blocks(blocks, block_ns(view));
    m.n_eff = machmeter_stats::bootstrap::effective_sample_size(part);
    m
}

/// The figures of one CPU.
pub fn of_cpu(view: &CpuView<'_>, seed: u64) -> Vec<Metric> {
    let mut out = Vec::new();
    let gaps_missing = "the file has counts only: stolen time and slowdown cannot be told apart";
    let rate_missing = "the file does not say how long a tick is: give --tick-hz";
    let refuse = |info: &MetricInfo, why: &str| Metric::rejected(info, params([view.param()]), "none", why);
    if view.split.wall_ticks > 0.0 {
        if view.setup.has_gaps {
            let stolen = view.split.stolen_total() / view.split.wall_ticks;
            out.push(share(&info::STOLEN, view, &view.split.stolen_ticks, stolen, seed));
            out.push(slowdown(view, seed));
        } else {
            out.extend([&info::STOLEN, &info::SLOWDOWN].map(|i| refuse(i, gaps_missing)));
        }
        out.extend(lost(view, seed));
    }
    if view.setup.tick_hz <= 0.0 {
        out.extend([&info::TURN, &info::RATE, &info::DURATION].map(|i| refuse(i, rate_missing)));
    } else {
        if !view.cpu.counts.is_empty() {
            out.push(turn(view));
        }
        if view.setup.has_gaps && view.split.wall_ticks > 0.0 {
            out.push(rate(view, seed));
            out.push(duration(view));
            out.push(longest(view, seed));
        }
    }
    out
}

fn turn(view: &CpuView<'_>) -> Metric {
    let ns = view.setup.ns_per_tick();
    let turns: Vec<f64> = view.split.turn_ticks.iter().flatten().map(|t| t * ns).collect();
    let p = params([view.param(), ("quantum", view.setup.quantum.as_str().into())]);
    let Some(s) = sorted(&turns).ok().filter(|s| !s.is_empty()) else {
        return Metric::rejected(
            &info::TURN,
            p,
            "median",
            "no window was free enough of detours to time a turn",
        );
    };
    let value = quantile(&s, 0.5).unwrap_or(f64::NAN);
    let blocks = (0..BLOCKS.min(turns.len()))
        .filter_map(|b| {
            let n = BLOCKS.min(turns.len());
            let part = &turns[b * turns.len() / n..(b + 1) * turns.len() / n];
            machmeter_stats::quantile::median_of(part)
        })
        .collect();
    Metric::new(&info::TURN, p, value, "median", s.len() as u64)
        .with_ci(interval(quantile_interval(&s, 0.5, LEVEL), "rank"))
        .with_quantiles(&[0.01, 0.5, 0.9, 0.99].map(|q| (q, quantile(&s, q).unwrap_or(f64::NAN))))
        .with_max(s.last().copied().unwrap_or(f64::NAN))
        .with_blocks(blocks, block_ns(view))
}

/// The share lost to anything, where there are counts to tell it from.
fn lost(view: &CpuView<'_>, seed: u64) -> Option<Metric> {
    if view.cpu.counts.is_empty() || view.split.reference_ticks <= 0.0 {
        return None;
    }
    let window = view.setup.schedule.window_ticks as f64;
    let parts: Vec<f64> = super::datasets::lost(view).iter().map(|l| l * window).collect();
    let value = parts.iter().sum::<f64>() / (window * parts.len() as f64);
    Some(share(&info::LOST, view, &parts, value, seed ^ 3))
}

fn slowdown(view: &CpuView<'_>, seed: u64) -> Metric {
    let reference = view.split.reference_ticks;
    let Some(value) = view.split.slowdown_fraction() else {
        let p = params([view.param()]);
        return Metric::rejected(&info::SLOWDOWN, p, "time-share", "no counts to tell the loop's speed from");
    };
    let window = view.setup.schedule.window_ticks as f64;
    let lost: Vec<f64> = view
        .split
        .turn_ticks
        .iter()
        .zip(&view.split.stolen_ticks)
        .map(|(turn, stolen)| turn.map_or(0.0, |t| (window - stolen).max(0.0) * (1.0 - reference / t)))
        .collect();
    let mut m = share(&info::SLOWDOWN, view, &lost, value, seed ^ 1);
    m.blocks.iter_mut().for_each(|b| *b = b.max(0.0));
    m
}

fn rate(view: &CpuView<'_>, seed: u64) -> Metric {
    let windows = view.split.stolen_ticks.len();
    let (t0, w) = (view.setup.schedule.t0_ticks, view.setup.schedule.window_ticks);
    let mut events = vec![0.0; windows];
    for g in &view.cpu.gaps {
        if let Some(n) = events.get_mut((g.start_ticks.saturating_sub(t0) / w) as usize) {
            *n += 1.0;
        }
    }
    let per_s = view.setup.window_ns() / 1e9;
    let n = view.split.gaps;
    let value = n as f64 / view.wall_s();
    let options = BootstrapOptions { level: LEVEL, seed: seed ^ 2, ..BootstrapOptions::default() };
    let ci = interval(ratio_block_bootstrap(&events, &vec![per_s; windows], &options), "block-bootstrap");
    let blocks = share_blocks(&events, per_s);
    Metric::new(&info::RATE, params([view.param()]), value, "count per time", n)
        .with_ci(ci)
        .with_blocks(blocks, block_ns(view))
}

fn duration(view: &CpuView<'_>) -> Metric {
    let durations = view.durations_ns();
    let p = params([view.param()]);
    let Some(s) = sorted(&durations).ok().filter(|s| !s.is_empty()) else {
        return Metric::rejected(&info::DURATION, p, "median", "no detour was seen");
    };
    let at = |q: f64| quantile(&s, q).unwrap_or(f64::NAN);
    // A quantile that fewer than one sample lies beyond is the maximum in disguise.
    let shown: Vec<(f64, f64)> =
        QUANTILES.iter().filter(|q| (1.0 - **q) * s.len() as f64 >= 1.0).map(|q| (*q, at(*q))).collect();
    let max_ticks = view.cpu.histogram.max().unwrap_or(0) as f64;
    let max = s.last().copied().unwrap_or(0.0);
    let max = max.max((max_ticks - view.split.reference_ticks).max(0.0) * view.setup.ns_per_tick());
    Metric::new(&info::DURATION, p, at(0.5), "median", view.split.gaps)
        .with_ci(interval(quantile_interval(&s, 0.5, LEVEL), "rank"))
        .with_quantiles(&shown)
        .with_max(max)
        .with_blocks(duration_blocks(view, &durations), block_ns(view))
}

fn duration_blocks(view: &CpuView<'_>, durations: &[f64]) -> Vec<f64> {
    let wall = view.split.wall_ticks;
    let t0 = view.setup.schedule.t0_ticks;
    let mut parts: Vec<Vec<f64>> = vec![Vec::new(); BLOCKS];
    for (g, d) in view.cpu.gaps.iter().zip(durations) {
        let b = (g.start_ticks.saturating_sub(t0) as f64 / wall * BLOCKS as f64) as usize;
        parts[b.min(BLOCKS - 1)].push(*d);
    }
    parts.iter().filter_map(|p| machmeter_stats::quantile::median_of(p)).collect()
}

fn longest(view: &CpuView<'_>, seed: u64) -> Metric {
    let durations = view.durations_ns();
    let p = params([view.param(), ("horizon_s", (HORIZON_S as i64).into())]);
    let wall_s = view.wall_s();
    let level = sorted(&durations).ok().and_then(|s| {
        // The tail is what lies above the 100 largest (or the largest tenth of a short list).
        let k = (s.len() / 10).clamp(30, 100);
        let threshold = *s.get(s.len().checked_sub(k + 1)?)?;
        let horizon = HORIZON_S / wall_s * s.len() as f64;
        return_level(&durations, threshold, horizon, &TailOptions { level: LEVEL, resamples: 200, seed })
    });
    match level {
        Some(l) => {
            let mut m = Metric::new(
                &info::LONGEST_EXPECTED,
                p,
                l.level,
                "generalized Pareto tail",
                durations.len() as u64,
            )
            .with_ci(interval(l.interval, "bootstrap"));
            if l.extrapolated || m.ci.is_none() {
                m.flag("W301");
            }
            m
        }
        None => Metric::rejected(
            &info::LONGEST_EXPECTED,
            p,
            "generalized Pareto tail",
            "too few detours to describe the tail",
        ),
    }
}

/// Figures over all CPUs (`cpu=all`): shares are of the sum of the CPUs' times.
pub fn of_all(views: &[CpuView<'_>], per_cpu: &[Vec<Metric>]) -> Vec<Metric> {
    let mut out = Vec::new();
    for info in [&info::STOLEN, &info::SLOWDOWN, &info::LOST] {
        let found: Vec<&Metric> =
            per_cpu.iter().flatten().filter(|m| m.id == info.id && m.value.is_some()).collect();
        if found.is_empty() || found.len() != views.len() {
            continue;
        }
        let n = found.len() as f64;
        let value = found.iter().filter_map(|m| m.value).sum::<f64>() / n;
        // CPUs share causes, so their errors are added as if fully correlated: never too narrow.
        let half = |f: fn(&Interval, f64) -> f64| {
            found.iter().filter_map(|m| Some(f(m.ci.as_ref()?, m.value?))).sum::<f64>() / n
        };
        let ci = Interval::new(
            LEVEL,
            (value - half(|i, v| v - i.low)).max(0.0),
            value + half(|i, v| i.high - v),
            "mean of block-bootstrap",
        );
        let shortest = found.iter().map(|m| m.blocks.len()).min().unwrap_or(0);
        let blocks =
            (0..shortest).map(|b| found.iter().map(|m| m.blocks[b]).sum::<f64>() / n).collect::<Vec<_>>();
        let samples = found.iter().map(|m| m.n).sum();
        out.push(
            Metric::new(info, params([("cpu", "all".into())]), value, "time-share", samples)
                .with_ci(ci)
                .with_blocks(blocks, found[0].block_ns.unwrap_or(0.0)),
        );
    }
    out
}
