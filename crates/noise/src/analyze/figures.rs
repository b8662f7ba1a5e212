//! Metrics of one CPU and of all CPUs together.

use machmeter_data::metric::{ParamValue, params};
use machmeter_data::quantity::Unit;
use machmeter_data::{Interval, Metric, MetricInfo};
use machmeter_stats::StatsError;
use machmeter_stats::quantile::{median_of, quantile, sorted};
use machmeter_stats::serial::{Estimate, mean_interval, quantile_interval, ratio_interval};

use super::split::Split;
use crate::info;
use crate::samples::{CpuSamples, Setup};
use machmeter_loops::noise::measure::{Gap, Sums};

/// Blocks into which a run is cut for later comparison.
pub const BLOCKS: usize = 20;
pub const LEVEL: f64 = 0.95;
/// Stretches of a run at most from which the interval of a share is taken: the method is tested up to 20,000.
pub(super) const STRETCHES: usize = 2_000;
/// How intervals of means and of quantiles are made: by `stats::serial`.
pub(super) const MEAN: &str = "correlated-mean";
pub(super) const RANK: &str = "correlated-rank";
const QUANTILES: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];
pub struct CpuView<'a> {
    pub setup: &'a Setup,
    pub cpu: &'a CpuSamples,
    pub split: &'a Split,
}

impl CpuView<'_> {
    /// Duration of each listed detour, ns, in order of time.
    pub fn durations_ns(&self) -> Vec<f64> {
        self.cpu.gaps.iter().map(|g| self.duration_ns(g.ticks() as f64)).collect()
    }

    fn duration_ns(&self, ticks: f64) -> f64 {
        (ticks - self.split.reference_ticks).max(0.0) * self.setup.ns_per_tick()
    }

    /// Time after the start of the recording, s.
    pub fn since_start_s(&self, ticks: u64) -> f64 {
        ticks.saturating_sub(self.setup.schedule.t0_ticks) as f64 * self.setup.ns_per_tick() / 1e9
    }

    /// Start of each listed detour after the start of the recording, s.
    pub fn starts_s(&self) -> Vec<f64> {
        self.cpu.gaps.iter().map(|g| self.since_start_s(g.start_ticks)).collect()
    }

    /// Wall time of the recording, s.
    pub fn wall_s(&self) -> f64 {
        self.split.wall_ticks * self.setup.ns_per_tick() / 1e9
    }
    pub fn all_durations(&self) -> Durations {
        let listed = self.cpu.gaps.len() as u64;
        if listed >= self.cpu.lengths.count.saturating_sub(self.split.stalls.count) {
            let mut ns = self.durations_ns();
            ns.sort_unstable_by(f64::total_cmp);
            return Durations { n: listed, lots: ns.into_iter().map(|d| (d, d, 1)).collect() };
        }
        // Micro-stalls are the shortest of all gaps.
        let mut stalls = self.split.stalls.count;
        let mut lots = Vec::new();
        for b in &self.cpu.lengths.buckets {
            let of_stalls = stalls.min(b.count);
            stalls -= of_stalls;
            if b.count > of_stalls {
                let high = (b.high + 1).min(self.cpu.lengths.longest_ticks) as f64;
                let low = b.low.max(self.setup.schedule.stall_ticks) as f64;
                lots.push((self.duration_ns(low), self.duration_ns(high.max(low)), b.count - of_stalls));
            }
        }
        Durations { n: lots.iter().map(|l| l.2).sum(), lots }
    }

    /// `CPU 3`, or the rank that stands in its place.
    pub fn name(&self) -> String {
        self.setup.name(self.cpu.cpu)
    }

    fn param(&self) -> (&'static str, ParamValue) {
        ("cpu", self.cpu.cpu.into())
    }
}

/// Durations in ascending order: (from, to, how many), ns.
#[derive(Debug, Clone)]
pub struct Durations {
    pub n: u64,
    /// Single ones where each is known, else buckets.
    pub lots: Vec<(f64, f64, u64)>,
}

impl Durations {
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let at = q * self.n.checked_sub(1)? as f64;
        let (below, above) = (self.rank(at.floor() as u64)?, self.rank(at.ceil() as u64)?);
        Some(below + (at - at.floor()) * (above - below))
    }

    /// The one of that rank, from 0; those of a bucket are taken to lie evenly in it.
    fn rank(&self, rank: u64) -> Option<f64> {
        let mut before = 0;
        self.lots.iter().find_map(|(low, high, count)| {
            let at = (rank - before) as f64 + 0.5;
            before += count;
            (rank < before).then(|| low + (high - low) * at / *count as f64)
        })
    }
}

/// Sums of consecutive, nearly equal blocks of `xs`.
pub fn block_sums(xs: &[f64], blocks: usize) -> Vec<f64> {
    let blocks = blocks.min(xs.len()).max(1);
    (0..blocks).map(|b| xs[b * xs.len() / blocks..(b + 1) * xs.len() / blocks].iter().sum()).collect()
}

fn block_ns(view: &CpuView<'_>) -> f64 {
    view.split.wall_ticks * view.setup.ns_per_tick() / BLOCKS.min(view.split.turn_ticks.len()).max(1) as f64
}

/// An estimate's interval on a metric whose value may lie beside it: both are shifted. None where too few carry it.
pub(super) fn with_estimate(
    mut m: Metric,
    estimate: Result<Estimate, StatsError>,
    method: &str,
    beside: f64,
) -> Metric {
    let (Ok(e), Some(value)) = (estimate, m.value) else { return m };
    let shift = value - e.value;
    let (low, high) = (e.interval.low + shift - beside, e.interval.high + shift + beside);
    m.n_eff = Some(e.n_eff);
    let most = if m.unit == Unit::One { 1.0 } else { f64::INFINITY };
    // All values there can be say nothing.
    let told = Interval::new(LEVEL, low.max(0.0), high.min(most), method);
    m.with_ci(told.filter(|i| i.low > 0.0 || i.high < most))
}

/// `value` = sum(part) per `each` window, known to `beside` apart from chance, with its interval and blocks.
fn per_time(
    info: &MetricInfo,
    view: &CpuView<'_>,
    part: &[f64],
    (each, beside): (f64, f64),
    value: f64,
) -> Metric {
    let m = Metric::new(info, params([view.param()]), value, "time-share", part.len() as u64);
    let stretches = block_sums(part, STRETCHES);
    let lengths = block_sums(&vec![each; part.len()], STRETCHES);
    let estimate = ratio_interval(&stretches, &lengths, &[stretches.len()], LEVEL);
    let blocks = block_sums(part, BLOCKS);
    let block_lengths = block_sums(&vec![each; part.len()], BLOCKS);
    let blocks = blocks.iter().zip(block_lengths).map(|(p, w)| p / w).collect();
    with_estimate(m, estimate, MEAN, beside).with_blocks(blocks, block_ns(view))
}

fn share(info: &MetricInfo, view: &CpuView<'_>, part: &[f64], value: f64) -> Metric {
    // Each end of a gap is known to a step of the clock.
    let step = 2.0 * view.setup.step_ticks as f64 * view.split.gaps() as f64 / view.split.wall_ticks;
    per_time(info, view, part, (view.setup.schedule.window_ticks as f64, step), value)
}

/// Share of each block of a stretched series of one source, with the interval that the series gives and `beside` it.
pub(super) fn of_source(m: Metric, slices: &[f64], (slice, beside): (f64, f64), ns: f64) -> Metric {
    let shares: Vec<f64> = slices.iter().map(|s| s / slice).collect();
    let n = shares.len();
    let mean = |b: usize| {
        let part = &shares[b * n / BLOCKS..(b + 1) * n / BLOCKS];
        part.iter().sum::<f64>() / part.len().max(1) as f64
    };
    let blocks = (0..BLOCKS).map(mean).collect();
    with_estimate(m, mean_interval(&shares, &[n], LEVEL), MEAN, beside)
        .with_blocks(blocks, slice * ns * n as f64 / BLOCKS as f64)
}

pub fn of_cpu(view: &CpuView<'_>) -> Vec<Metric> {
    let mut out = Vec::new();
    let gaps_missing = "the file has counts only, which do not separate stolen time from slowdown";
    let rate_missing = "the file does not contain the length of a tick: give --tick-hz";
    let refuse = |info: &MetricInfo, why: &str| Metric::rejected(info, params([view.param()]), "none", why);
    if view.split.wall_ticks > 0.0 {
        if view.setup.has_gaps {
            let stolen = view.split.stolen_total() / view.split.wall_ticks;
            out.push(share(&info::STOLEN, view, &view.split.stolen_ticks(), stolen));
            out.push(slowdown(view));
        } else {
            out.extend([&info::STOLEN, &info::SLOWDOWN].map(|i| refuse(i, gaps_missing)));
        }
        out.extend(lost(view));
    }
    if view.setup.tick_hz <= 0.0 {
        out.extend([&info::TURN, &info::RATE, &info::DURATION].map(|i| refuse(i, rate_missing)));
    } else {
        if !view.cpu.counts.is_empty() {
            out.push(turn(view));
        }
        if view.setup.has_gaps && view.split.wall_ticks > 0.0 {
            let sums = |of: fn(&Sums) -> u32| -> Vec<f64> {
                view.cpu.sums.iter().map(|s| f64::from(of(s))).collect()
            };
            out.push(rate(&info::RATE, view, &sums(|s| s.detours)));
            out.push(duration(view));
            if view.setup.schedule.stall_ticks > 0 {
                out.push(rate(&info::MICROSTALL_RATE, view, &sums(|s| s.clusters)));
                let stalled = view.split.stalls.stolen(view.split.reference_ticks) / view.split.wall_ticks;
                out.push(share(&info::MICROSTALL, view, &view.split.stall_ticks, stalled));
                let own = view.split.own_ticks / view.split.wall_ticks;
                out.push(share(&info::OWN, view, &sums(|s| s.own_ticks), own));
            }
        }
    }
    out
}

fn turn(view: &CpuView<'_>) -> Metric {
    let ns = view.setup.ns_per_tick();
    let turns: Vec<f64> = view.split.turn_ticks.iter().flatten().map(|t| t * ns).collect();
    let p = params([view.param(), ("quantum", view.setup.quantum.as_str().into())]);
    let Some(s) = sorted(&turns).ok().filter(|s| !s.is_empty()) else {
        let why = "no window was free enough of gaps to time a turn";
        return Metric::rejected(&info::TURN, p, "median", why);
    };
    let value = quantile(&s, 0.5).unwrap_or(f64::NAN);
    let n = BLOCKS.min(turns.len());
    let blocks = (0..n).filter_map(|b| median_of(&turns[b * turns.len() / n..(b + 1) * turns.len() / n]));
    // Windows beside each other are alike: every so many-th tells as much of the median as all.
    let spread: Vec<f64> = turns.iter().step_by(turns.len().div_ceil(STRETCHES)).copied().collect();
    // A window ends with a whole turn, and its two ends are known to a step of the clock.
    let step = (value + view.setup.step_ticks as f64 * ns) * value / view.setup.window_ns();
    let m = Metric::new(&info::TURN, p, value, "median", s.len() as u64)
        .with_quantiles(&[0.01, 0.5, 0.9, 0.99].map(|q| (q, quantile(&s, q).unwrap_or(f64::NAN))))
        .with_max(s.last().copied().unwrap_or(f64::NAN))
        .with_blocks(blocks.collect(), block_ns(view));
    with_estimate(m, quantile_interval(&spread, 0.5, &[spread.len()], LEVEL), RANK, step)
}

/// The share lost to anything, where there are counts to tell it from.
fn lost(view: &CpuView<'_>) -> Option<Metric> {
    if view.cpu.counts.is_empty() || view.split.reference_ticks <= 0.0 {
        return None;
    }
    let window = view.setup.schedule.window_ticks as f64;
    let parts: Vec<f64> = super::datasets::lost(view).iter().map(|l| l * window).collect();
    let value = parts.iter().sum::<f64>() / (window * parts.len() as f64);
    Some(share(&info::LOST, view, &parts, value))
}

fn slowdown(view: &CpuView<'_>) -> Metric {
    let reference = view.split.reference_ticks;
    let Some(value) = view.split.slowdown_fraction() else {
        let p = params([view.param()]);
        return Metric::rejected(
            &info::SLOWDOWN,
            p,
            "time-share",
            "the file has no counts for the speed of the loop",
        );
    };
    let window = view.setup.schedule.window_ticks as f64;
    let stolen = view.split.stolen_ticks();
    let lost: Vec<f64> = view
        .split
        .turn_ticks
        .iter()
        .zip(&stolen)
        .map(|(turn, stolen)| turn.map_or(0.0, |t| (window - stolen).max(0.0) * (1.0 - reference / t)))
        .collect();
    let mut m = share(&info::SLOWDOWN, view, &lost, value);
    m.blocks.iter_mut().for_each(|b| *b = b.max(0.0));
    m
}

fn rate(info: &MetricInfo, view: &CpuView<'_>, events: &[f64]) -> Metric {
    let n: f64 = events.iter().sum();
    let mut m = per_time(info, view, events, (view.setup.window_ns() / 1e9, 0.0), n / view.wall_s());
    "count per time".clone_into(&mut m.estimator);
    m.n = n as u64;
    m
}

fn duration(view: &CpuView<'_>) -> Metric {
    let all = view.all_durations();
    let p = params([view.param()]);
    let Some(median) = all.quantile(0.5) else {
        return Metric::rejected(&info::DURATION, p, "median", "no gap was seen");
    };
    // A quantile that fewer than one sample lies beyond is the maximum in disguise.
    let beyond = |q: &f64| (1.0 - q) * all.n as f64 >= 1.0;
    let shown: Vec<(f64, f64)> =
        QUANTILES.into_iter().filter(beyond).filter_map(|q| Some((q, all.quantile(q)?))).collect();
    let ns = view.setup.ns_per_tick();
    let m = Metric::new(&info::DURATION, p, median, "median", all.n)
        .with_quantiles(&shown)
        .with_max(view.duration_ns(view.cpu.lengths.longest_ticks as f64));
    let Some(from_ticks) = view.cpu.complete_from_ticks(&view.setup.schedule) else { return m };
    let whole: Vec<&Gap> = view.cpu.gaps.iter().filter(|g| g.ticks() >= from_ticks).collect();
    let durations: Vec<f64> = whole.iter().map(|g| view.duration_ns(g.ticks() as f64)).collect();
    // The median of all is a lower quantile of the longer ones that are listed, while half of all are.
    let below = 1.0 - durations.len() as f64 / all.n as f64;
    let q = (0.5 - below) / (1.0 - below);
    let steps = 2.0 * view.setup.step_ticks as f64 * ns;
    let estimate = quantile_interval(&durations, q, &[durations.len()], LEVEL);
    let m = if q > 0.0 { with_estimate(m, estimate, RANK, steps) } else { m };
    m.with_blocks(duration_blocks(view, &whole, &durations), block_ns(view))
}

fn duration_blocks(view: &CpuView<'_>, gaps: &[&Gap], durations: &[f64]) -> Vec<f64> {
    let mut parts: Vec<Vec<f64>> = vec![Vec::new(); BLOCKS];
    for (g, d) in gaps.iter().zip(durations) {
        let b = (view.since_start_s(g.start_ticks) / view.wall_s() * BLOCKS as f64) as usize;
        parts[b.min(BLOCKS - 1)].push(*d);
    }
    parts.iter().filter_map(|p| median_of(p)).collect()
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
        let known = found.iter().all(|m| m.ci.is_some());
        let ci = Interval::new(
            LEVEL,
            (value - half(|i, v| v - i.low)).max(0.0),
            (value + half(|i, v| i.high - v)).min(1.0),
            "mean of intervals of CPUs",
        );
        let shortest = found.iter().map(|m| m.blocks.len()).min().unwrap_or(0);
        let blocks =
            (0..shortest).map(|b| found.iter().map(|m| m.blocks[b]).sum::<f64>() / n).collect::<Vec<_>>();
        let samples = found.iter().map(|m| m.n).sum();
        out.push(
            Metric::new(info, params([("cpu", "all".into())]), value, "time-share", samples)
                .with_ci(ci.filter(|_| known))
                .with_blocks(blocks, found[0].block_ns.unwrap_or(0.0)),
        );
    }
    out
}
