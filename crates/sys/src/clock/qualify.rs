//! The examination of the clock before a run: which source, how fast, how fine, how costly, how far apart.

use std::time::Duration;

use super::cost::{backward_steps, read_cost_ticks};
use super::exchange::exchange;
use super::kernel_rate::{KernelRate, kernel_rate};
use super::offset::{OffsetEstimate, offset_from_exchanges};
use super::rate::{Bracket, RateEstimate, TickRate, rate_from_brackets};
use super::step::{StepEstimate, step_from_deltas};
use super::survey::{Deltas, survey};
use super::trust::{Verdict, choose_unmeasured, kernel_clocksource, made_from_counter};
use super::{Counter, MonotonicRaw, OrderedCounter, SourceId, TickSource};
use crate::Refused;

/// Time between the ends of the rate measurement; leaves room within 50 ms for waking late.
const RATE_SPAN_NS: u64 = 40_000_000;
/// Brackets per end. Their narrowest decides, and most are narrow.
const BRACKETS: usize = 96;
/// Longest wait for a CPU to read its clocks; about 1 ms suffices on an idle one.
const SURVEY_LIMIT_NS: u64 = 7_000_000;
/// Longest exchange between two CPUs; about 0.3 ms suffices on idle ones.
const EXCHANGE_LIMIT_NS: u64 = 10_000_000;
const EXCHANGES: usize = 1000;
/// Counters certainly further apart than this make stamps of different CPUs useless for attributing detours.
const LARGEST_OFFSET_NS: f64 = 1000.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SourceQuality {
    pub source: SourceId,
    /// Mean cost of one read, in ticks of the source.
    pub cost_ticks: f64,
    /// Its step; `None` if it did not advance at all.
    pub step: Option<StepEstimate>,
    /// Reads that gave less than the read before.
    pub backward_steps: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CpuQuality {
    pub cpu: usize,
    /// Every available source, or why the CPU could not be used.
    pub sources: Result<Vec<SourceQuality>, String>,
}

/// How far the counter of `to` is from that of `from`.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossCpu {
    /// The reference: the first CPU that was asked for.
    pub from: usize,
    pub to: usize,
    /// Where the offset lies, or why the two could not exchange stamps.
    pub offset: Result<OffsetEstimate, String>,
}

/// What is known about the clock of this machine; by default nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Qualification {
    pub verdict: Verdict,
    /// The rate of the counter against `CLOCK_MONOTONIC_RAW`; `None` if it has none (see the verdict).
    pub rate: Option<RateEstimate>,
    /// The rate the kernel publishes, where it does.
    pub kernel_rate: Option<KernelRate>,
    /// Measured rate against the published one, parts per million.
    pub deviation_ppm: Option<f64>,
    pub cpus: Vec<CpuQuality>,
    /// Per further CPU: offset against the first one.
    pub cross_cpu: Vec<CrossCpu>,
}

impl Qualification {
    pub fn source(&self) -> SourceId {
        self.verdict.source
    }

    pub fn tick_rate(&self) -> TickRate {
        match (self.verdict.source, &self.rate) {
            (SourceId::MonotonicRaw, _) | (_, None) => TickRate::NANOSECONDS,
            (_, Some(rate)) => TickRate::from_hz(rate.rate_hz).unwrap_or(TickRate::NANOSECONDS),
        }
    }

    fn sources(&self) -> impl Iterator<Item = &SourceQuality> {
        self.cpus.iter().flat_map(|c| c.sources.iter().flatten())
    }

    /// A source as seen on the first CPU that could be used.
    pub fn quality(&self, source: SourceId) -> Option<SourceQuality> {
        self.sources().find(|s| s.source == source).copied()
    }

    /// Step of the source to measure with; ticks.
    pub fn step(&self) -> Option<StepEstimate> {
        self.quality(self.verdict.source)?.step
    }

    /// Distance of its neighboring values, ticks (rounded up; 1 if not seen): differences are known no better.
    pub fn step_ticks(&self) -> u64 {
        self.step().map_or(1, |s| s.granularity_ticks.ceil().max(1.0) as u64)
    }

    pub fn read_cost_ticks(&self) -> Option<f64> {
        Some(self.quality(self.verdict.source)?.cost_ticks)
    }

    pub fn read_cost_ns(&self) -> Option<f64> {
        Some(self.read_cost_ticks()? * self.tick_rate().ns_per_tick())
    }

    pub fn backward_steps(&self) -> usize {
        let source = self.verdict.source;
        let of_source = self.sources().filter(|s| s.source == source);
        of_source.map(|s| s.backward_steps).sum()
    }

    /// The largest amount two CPUs' stamps can be apart, in ns: twice the worst bound against the first CPU if there
    /// are more than two. `None` if a pair could not be bounded.
    pub fn cross_cpu_bound_ns(&self) -> Option<f64> {
        if self.verdict.source == SourceId::MonotonicRaw {
            return Some(0.0);
        }
        let bound = |c: &CrossCpu| c.offset.as_ref().map(OffsetEstimate::bound_ticks).ok();
        let bounds: Vec<u64> = self.cross_cpu.iter().map(bound).collect::<Option<_>>()?;
        let worst_ns = self.tick_rate().ns(bounds.iter().copied().max().unwrap_or(0));
        Some(if bounds.len() > 1 { 2.0 * worst_ns } else { worst_ns })
    }
}

/// Examines the clock on `cpus` (the first is the reference) in about 41 ms on two CPUs, mostly asleep; a CPU that
/// gives no time costs 7 ms alone, 10 ms a pair, and has the reason. Errors: `cpus` is empty.
pub fn qualify(cpus: &[usize]) -> Result<Qualification, Refused> {
    let none = || Refused("no CPU given to qualify the clock on: name at least one".to_owned());
    let first = *cpus.first().ok_or_else(none)?;
    let began_ns = MonotonicRaw::now();
    let start = brackets();
    let from_counter = made_from_counter(kernel_clocksource().as_deref());
    let unmeasured = choose_unmeasured();
    let surveys: Vec<(usize, Result<Vec<Deltas>, Refused>)> =
        cpus.iter().map(|cpu| (*cpu, survey(*cpu, MonotonicRaw::now() + SURVEY_LIMIT_NS))).collect();
    let step_ticks = surveys.iter().filter_map(|(_, s)| counter_step(s.as_ref().ok()?)).min().unwrap_or(1);
    let others = cpus.iter().filter(|to| **to != first);
    let cross_cpu = others.map(|to| cross(first, *to, step_ticks)).collect();
    let published = kernel_rate();
    let elapsed_ns = MonotonicRaw::now().saturating_sub(began_ns);
    std::thread::sleep(Duration::from_nanos(RATE_SPAN_NS.saturating_sub(elapsed_ns)));
    let slack_ticks = if from_counter { 0 } else { step_ticks };
    let rate = rate_from_brackets(&start, &brackets(), slack_ticks);
    let deviation_ppm = match (&rate, published) {
        (Ok(rate), Some(kernel)) => Some((rate.rate_hz / kernel.rate_hz - 1.0) * 1e6),
        _ => None,
    };
    let mut result = Qualification {
        verdict: unmeasured,
        rate: rate.as_ref().ok().copied(),
        kernel_rate: published,
        deviation_ppm,
        cpus: surveys.into_iter().map(|(cpu, s)| summarize(cpu, s)).collect(),
        cross_cpu,
    };
    result.verdict = judge(&result, rate.err());
    Ok(result)
}

fn brackets() -> Vec<Bracket> {
    let mut all = vec![Bracket { before_ticks: 1, kernel_ns: 1, after_ticks: 1 }; BRACKETS];
    for bracket in &mut all {
        let before_ticks = Counter::now();
        let kernel_ns = MonotonicRaw::now();
        let after_ticks = Counter::now();
        *bracket = Bracket { before_ticks, kernel_ns, after_ticks };
    }
    all
}

fn counter_step(deltas: &[Deltas]) -> Option<u64> {
    let counter = deltas.iter().find(|d| d.source == Counter::ID)?;
    step_from_deltas(&counter.varied_ticks).map(|s| s.granularity_ticks.ceil() as u64)
}

fn cross(from: usize, to: usize, step_ticks: u64) -> CrossCpu {
    let exchanges = exchange::<OrderedCounter>(from, to, EXCHANGES, EXCHANGE_LIMIT_NS);
    let offset = exchanges.map_err(|e| e.to_string()).and_then(|all| {
        let offset = offset_from_exchanges(&all, step_ticks);
        offset.ok_or_else(|| "the counter of the first CPU ran backward".to_owned())
    });
    CrossCpu { from, to, offset }
}

fn summarize(cpu: usize, survey: Result<Vec<Deltas>, Refused>) -> CpuQuality {
    let quality = |d: Deltas| {
        Some(SourceQuality {
            source: d.source,
            cost_ticks: read_cost_ticks(&d.close_ticks)?,
            step: step_from_deltas(&d.varied_ticks),
            backward_steps: backward_steps(&d.close_ticks) + backward_steps(&d.varied_ticks),
        })
    };
    let sources = survey.map(|deltas| deltas.into_iter().filter_map(quality).collect());
    CpuQuality { cpu, sources: sources.map_err(|e| e.to_string()) }
}

fn judge(q: &Qualification, rate_error: Option<Refused>) -> Verdict {
    let mut verdict = q.verdict.clone();
    if verdict.source == SourceId::MonotonicRaw {
        return verdict;
    }
    let apart_ns = |offset: &OffsetEstimate| {
        let least_ticks = offset.low_ticks.unsigned_abs().min(offset.high_ticks.unsigned_abs());
        q.tick_rate().ns(least_ticks)
    };
    let reason = if let Some(e) = rate_error {
        Some(e.to_string())
    } else if q.backward_steps() > 0 {
        Some(format!("the counter ran backward {} times on one CPU", q.backward_steps()))
    } else {
        q.cross_cpu.iter().find_map(|c| {
            let o = c.offset.as_ref().ok()?;
            let far = o.consistent && o.excludes_zero() && apart_ns(o) > LARGEST_OFFSET_NS;
            let CrossCpu { from, to, .. } = c;
            far.then(|| {
                format!("counters of CPU {to} and CPU {from} are at least {:.0} ns apart", apart_ns(o))
            })
        })
    };
    verdict.notes.extend(notes(q));
    if reason.is_some() {
        verdict.source = SourceId::MonotonicRaw;
        verdict.fallback_reason = reason;
    }
    verdict
}

fn notes(q: &Qualification) -> Vec<String> {
    let mut notes = Vec::new();
    if let (Some(rate), Some(kernel), Some(deviation)) = (q.rate, q.kernel_rate, q.deviation_ppm) {
        let explained_ppm = rate.error_ppm + kernel.rounding_ppm + 1.0;
        if deviation.abs() > explained_ppm {
            notes.push(format!(
                "the counter runs {deviation:+.1} ppm off the published rate ({explained_ppm:.1} ppm explained)"
            ));
        }
    }
    notes.extend(q.cpus.iter().filter_map(|c| c.sources.as_ref().err().cloned()));
    notes.extend(q.cross_cpu.iter().filter_map(|c| c.offset.as_ref().err().cloned()));
    notes.extend(
        q.cross_cpu
            .iter()
            .filter(|c| c.offset.as_ref().is_ok_and(|o| !o.consistent))
            .map(|c| format!("exchanges between CPU {} and CPU {} contradict each other", c.from, c.to)),
    );
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity;

    /// The examination of this machine if it took 50 ms at most, again if it was too busy: at most 40 times.
    fn until(good: impl Fn(&Qualification) -> bool) -> Qualification {
        let cpus = affinity::mask().unwrap().to_vec();
        let cpus = &cpus[..cpus.len().min(4)];
        let in_time = |_| {
            let began_ns = MonotonicRaw::now();
            let q = qualify(cpus).unwrap();
            (MonotonicRaw::now() - began_ns <= 50_000_000).then_some(q)
        };
        let mut tries = (0..40).filter_map(in_time);
        tries.find(&good).unwrap_or_else(|| panic!("never good: {:?}", qualify(cpus)))
    }

    #[test]
    fn the_clock_of_this_machine_is_examined_in_time_and_agrees_with_the_kernel() {
        if crate::testing::is_emulated() {
            return;
        }
        let complete = |q: &Qualification| {
            q.cpus.iter().all(|c| c.sources.is_ok()) && q.cross_cpu.iter().all(|c| c.offset.is_ok())
        };
        let q = until(|q| complete(q) && q.rate.is_some_and(|r| r.error_ppm < 1.5));
        println!("{q:#?}");
        for c in &q.cpus {
            assert_eq!(c.sources.as_ref().unwrap().len(), SourceId::available().len());
        }
        assert_eq!(q.cross_cpu.len(), q.cpus.len() - 1);
        assert!(q.step().is_some_and(|s| s.step_ticks >= 1));
        assert!(q.read_cost_ticks().is_some_and(|ticks| ticks > 0.0));
        if let (Some(deviation), Some(kernel)) = (q.deviation_ppm, q.kernel_rate) {
            assert!(deviation.abs() <= 1.0 + kernel.rounding_ppm || !q.verdict.notes.is_empty(), "{q:?}");
        }
    }

    #[test]
    fn cpus_that_do_not_exist_are_reported_and_the_rest_examined() {
        assert!(qualify(&[]).unwrap_err().to_string().starts_with("no CPU given"));
        let here = affinity::mask().unwrap().first().unwrap();
        let q = qualify(&[here, 50_000]).unwrap();
        assert!(q.cpus[1].sources.as_ref().is_err_and(|why| why.contains("50000")), "{q:?}");
        assert!(q.cross_cpu[0].offset.is_err());
        assert!(q.verdict.source == SourceId::MonotonicRaw || q.cross_cpu_bound_ns().is_none());
    }

    fn good() -> Qualification {
        let offset = OffsetEstimate { low_ticks: -300, high_ticks: 200, consistent: true };
        Qualification {
            verdict: Verdict { source: Counter::ID, ..Verdict::default() },
            rate: Some(RateEstimate { rate_hz: 2.6e9, error_ppm: 0.5 }),
            cross_cpu: vec![CrossCpu { from: 0, to: 1, offset: Ok(offset) }],
            ..Qualification::default()
        }
    }

    #[test]
    fn a_counter_that_runs_backward_or_apart_is_passed_over() {
        assert_eq!(judge(&good(), None).source, Counter::ID);
        assert!((good().cross_cpu_bound_ns().unwrap() - 300.0 / 2.6).abs() < 1e-9);

        let mut apart = good();
        let offset = apart.cross_cpu[0].offset.as_mut().unwrap();
        (offset.low_ticks, offset.high_ticks) = (26_000, 26_500);
        let verdict = judge(&apart, None);
        assert_eq!(verdict.source, SourceId::MonotonicRaw);
        assert!(verdict.fallback_reason.unwrap().contains("at least 10000 ns apart"));

        let mut backward = good();
        let quality = SourceQuality { source: Counter::ID, cost_ticks: 26.0, step: None, backward_steps: 1 };
        backward.cpus = vec![CpuQuality { cpu: 0, sources: Ok(vec![quality]) }];
        assert!(judge(&backward, None).fallback_reason.unwrap().contains("ran backward 1 times"));

        let no_rate = Refused("the counter did not advance".to_owned());
        assert_eq!(judge(&good(), Some(no_rate)).source, SourceId::MonotonicRaw);
    }

    #[test]
    fn an_unexplained_deviation_is_noted() {
        let mut q = good();
        q.kernel_rate = Some(KernelRate { rate_hz: 2.6e9, rounding_ppm: 0.2 });
        q.deviation_ppm = Some(1.2);
        assert!(notes(&q).is_empty());
        q.deviation_ppm = Some(-40.0);
        assert!(notes(&q)[0].contains("-40.0 ppm"));
    }
}
