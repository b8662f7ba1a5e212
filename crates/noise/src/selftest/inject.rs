//! An injector outside of the meter: a real-time thread on the same CPU by an absolute schedule, for a known time.

use std::sync::atomic::{AtomicBool, Ordering};

use machmeter_data::Metric;
use machmeter_engine::selftest::machine;
use machmeter_sys::clock::{TickSource, WithSource};
use machmeter_sys::memory::LockedBuf;
use machmeter_sys::sched::Policy;
use machmeter_sys::thread;

use super::lab::{Lab, OTHER};
use super::score::{Recall, cover, duration_error, excess_ticks};
use super::{Options, SelfCheck, State, percent};
use crate::analyze::analyze;
use crate::attribute::Attribution;
use crate::attribute::activity_log::{Sight, SourceKind};
use crate::attribute::matching::{Attributed, Part};
use crate::samples::Samples;
use machmeter_loops::noise::measure::Gap;

pub(super) const NAME: &str = "mm-inject";
/// Its priority: above the meter's 45 and the main thread's 46.
const PRIORITY: u8 = 60;
const RECALL: f64 = 0.99;
const NAMED: f64 = 0.98;
const FREQUENCY: f64 = 0.0005;
/// Bursts needed to speak of a rhythm.
const MIN_RHYTHM: usize = 30;

#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) hz: f64,
    pub(super) burst_us: f64,
    /// Blocks of this length with and without bursts by turns, ns; without, all the time.
    pub(super) block_ns: Option<u64>,
}

pub(super) struct Log {
    pub(super) bursts: Vec<Gap>,
    /// When block 0 began, ticks.
    pub(super) origin_ticks: u64,
}

struct Injecting<'a> {
    setting: Setting,
    burst_ticks: u64,
    log: LockedBuf<Gap>,
    stop: &'a AtomicBool,
}

impl WithSource for Injecting<'_> {
    type Output = Log;

    fn run<S: TickSource>(mut self) -> Log {
        let period_ns = 1e9 / self.setting.hz;
        let origin_ns = thread::monotonic_ns();
        let origin_ticks = S::now();
        let (mut done, mut beat) = (0, 1_u64);
        let log = self.log.as_mut_slice();
        while !self.stop.load(Ordering::Relaxed) && done < log.len() {
            let since_ns = (beat as f64 * period_ns) as u64;
            if self.setting.block_ns.is_none_or(|b| (since_ns / b).is_multiple_of(2)) {
                thread::nanosleep_until(origin_ns + since_ns);
                let start_ticks = S::now();
                let mut end_ticks = start_ticks;
                while end_ticks.saturating_sub(start_ticks) < self.burst_ticks {
                    end_ticks = S::now();
                }
                log[done] = Gap { start_ticks, end_ticks };
                done += 1;
            }
            // Beats that are over already are left out, so that no two bursts follow without a pause.
            let past = (thread::monotonic_ns().saturating_sub(origin_ns) as f64 / period_ns) as u64;
            beat = (beat + 1).max(past + 1);
        }
        Log { bursts: self.log.as_slice()[..done].to_vec(), origin_ticks }
    }
}

/// Runs `order` while the injector works; the log holds the bursts that lie wholly within the recording.
pub(super) fn with_injector(
    lab: &Lab,
    setting: Setting,
    what: &str,
    order: machine::Order,
) -> Result<(Samples, Log), String> {
    let seconds = order.budget_ns as f64 / 1e9 + 5.0;
    let log = LockedBuf::new((seconds * setting.hz) as usize + 16).map_err(|e| e.to_string())?;
    let stop = AtomicBool::new(false);
    let burst_ticks = lab.machine.rate.ticks(setting.burst_us * 1e3);
    let work = Injecting { setting, burst_ticks, log, stop: &stop };
    let (mut log, samples) = lab.beside(NAME, Policy::Fifo(PRIORITY), work, || {
        let samples = lab.noise(what, order, Attribution::Auto);
        stop.store(true, Ordering::Relaxed);
        samples
    })?;
    let samples = samples?;
    let schedule = samples.setup.schedule;
    log.bursts.retain(|b| b.start_ticks >= schedule.t0_ticks && b.end_ticks < schedule.end_ticks());
    Ok((samples, log))
}

const fn steady(hz: f64, burst_us: f64) -> Setting {
    Setting { hz, burst_us, block_ns: None }
}

pub(super) fn checks(lab: &Lab, options: &Options) -> Vec<SelfCheck> {
    let quick = [(steady(700.0, 20.0), 2), (steady(90.0, 500.0), 2)];
    let all = [
        (steady(2000.0, 5.0), 2),
        (steady(700.0, 20.0), 3),
        (steady(333.0, 50.0), 3),
        (steady(110.0, 200.0), 3),
        (steady(90.0, 500.0), 3),
        (steady(11.0, 500.0), 6),
        (steady(1.0, 500.0), 4),
    ];
    let settings: &[(Setting, u64)] = if options.quick { &quick } else { &all };
    settings.iter().flat_map(|(s, seconds)| one(lab, *s, *seconds)).collect()
}

fn one(lab: &Lab, setting: Setting, seconds: u64) -> Vec<SelfCheck> {
    let id = format!("inject.{}hz", setting.hz);
    let what = format!(
        "thread {NAME}, fifo:{PRIORITY}, {} us at {} Hz, meter under {OTHER}",
        setting.burst_us, setting.hz
    );
    with_injector(lab, setting, &what, lab.here(Some(OTHER), seconds * 1_000_000_000))
        .and_then(|(samples, log)| judge(&id, &what, setting, &samples, &log, lab))
        .unwrap_or_else(|e| vec![SelfCheck::not_shown(&id, &what, "-", e)])
}

fn judge(
    id: &str,
    what: &str,
    setting: Setting,
    samples: &Samples,
    log: &Log,
    lab: &Lab,
) -> Result<Vec<SelfCheck>, String> {
    let cpu = samples.cpus.first().ok_or("the recording holds no CPU")?;
    if log.bursts.is_empty() {
        return Err("no burst fell into the recording".to_owned());
    }
    let (activity_log, attributed) = (&samples.activity_log, &cpu.attributed);
    let covered = cover(&log.bursts, &cpu.gaps);
    let injector: Vec<u32> = (0_u32..)
        .zip(&activity_log.sources)
        .filter(|(_, s)| s.kind == SourceKind::Thread && s.thread.starts_with(NAME))
        .map(|(i, _)| i)
        .collect();
    // What a burst costs beyond its own length can be told only where no other thread ran in the same gap.
    let of_others = |p: &Part| activity_log.is_thread(p.source) && !injector.contains(&p.source);
    let is_alone = |at: &usize| !attributed[*at].parts.iter().any(of_others);
    let alone: Vec<Option<usize>> = covered.iter().map(|at| at.filter(is_alone)).collect();
    let excess = excess_ticks(&log.bursts, &cpu.gaps, &alone);
    let mut out = vec![recall(id, what, &covered, &excess, lab)];
    if activity_log.sight == Sight::Everything {
        let lost: u64 = activity_log.lost.iter().sum();
        out.push(named(id, what, lost, &covered, attributed, &injector));
    } else {
        let why = activity_log.notes.first().map_or("no trace of the kernel", String::as_str).to_owned();
        out.push(SelfCheck::not_shown(&format!("{id}.named"), what, "at least 98 % named", why));
    }
    let in_gaps = attributed.iter().filter(|a| injector.iter().any(|i| a.names(*i))).count();
    if log.bursts.len() >= MIN_RHYTHM && activity_log.sight == Sight::Everything {
        let metrics = analyze(samples, lab.machine.seed).metrics;
        out.push(rhythm(id, what, setting.hz, in_gaps, &metrics));
    }
    Ok(out)
}

fn recall(id: &str, what: &str, covered: &[Option<usize>], excess: &[f64], lab: &Lab) -> SelfCheck {
    let r = Recall::of_cover(covered);
    let overhead = duration_error(excess).map_or_else(String::new, |e| {
        let us = |ticks: f64| ticks * lab.machine.rate.ns_per_tick() / 1e3;
        format!(
            "; gap minus burst: median {:.1} us, 95 % within {:.1} us of it, n = {}",
            us(e.bias),
            us(e.p95),
            e.n
        )
    });
    let truth = format!("{} bursts by the injector's log", r.of);
    let found = format!("{} in a gap: {}{overhead}", r.found, percent(r.share()));
    let state = State::of(r.share() >= RECALL);
    SelfCheck::new(&format!("{id}.recall"), what, "at least 99 %", truth, found, state)
}

fn named(
    id: &str,
    what: &str,
    lost: u64,
    covered: &[Option<usize>],
    attributed: &[Attributed],
    injector: &[u32],
) -> SelfCheck {
    let names_it = |at: &usize| attributed.get(*at).is_some_and(|a| injector.iter().any(|i| a.names(*i)));
    let named = covered.iter().flatten().filter(|at| names_it(at)).count();
    let share = named as f64 / covered.len() as f64;
    let state = State::if_sure(share >= NAMED, lost == 0);
    let losses = if lost > 0 { format!("; the trace lost {lost} events") } else { String::new() };
    let truth = format!("{} bursts of {NAME}", covered.len());
    let found = format!("{named} in a gap that names it: {}{losses}", percent(share));
    SelfCheck::new(&format!("{id}.named"), what, "at least 98 %", truth, found, state)
}

fn rhythm(id: &str, what: &str, hz: f64, named: usize, metrics: &[Metric]) -> SelfCheck {
    let period = metrics.iter().find(|m| {
        m.id == "noise.period" && m.params.get("source").is_some_and(|s| s.to_string().ends_with(NAME))
    });
    let (found, state) = match period.and_then(|m| Some((m.value?, m.n))) {
        Some((f, n)) => {
            let error = f / hz - 1.0;
            let met = error.abs() <= FREQUENCY;
            (format!("{f:.4} Hz, {:+.4} %, {n} gaps in the comb", error * 100.0), State::of(met))
        }
        None => (format!("no rhythm in {named} gaps that name {NAME}"), State::Fail),
    };
    let truth = format!("{hz} Hz by the injector's schedule");
    SelfCheck::new(&format!("{id}.frequency"), what, "within 0.05 %", truth, found, state)
}
