//! Without privileges: a competitor takes the CPU, and that must be classed as another thread's. Truth is its own log, and
//! the kernel's account of the meter's waiting.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

use machmeter_engine::role::{self, Role};
use machmeter_sys::clock::{TickSource, WithSource};
use machmeter_sys::guard::signals;
use machmeter_sys::memory::LockedBuf;
use machmeter_sys::process::Spawn;
use machmeter_sys::thread;

use super::lab::{Lab, OTHER};
use super::score::overlap_ticks;
use super::{Options, SelfCheck, Shown, State, UNPRIVILEGED, check, percent};
use crate::analyze::analyze;
use crate::analyze::rhythm::is_tick_rate;
use crate::attribute::Attribution;
use crate::attribute::activity_log::Sight;
use crate::samples::Samples;
use machmeter_loops::noise::measure::Gap;
use machmeter_sys::facts::kernel_hz;

/// The user that owns nothing, by convention.
const NOBODY: u32 = 65_534;
/// The checks take 8 s; a machine that is busy otherwise gets some more.
const CHECKS_WITHIN_NS: u64 = 60_000_000_000;
/// Bar: share of the competitor's time that is classed as another thread's, and agreement with the kernel's account.
const CLASSED: f64 = 0.99;
const ACCOUNT: f64 = 0.01;
/// A pause in the competitor's own loop longer than this ends a stretch of running, ns.
const PAUSE_NS: f64 = 2_000.0;
const STRETCHES: usize = 400_000;

/// Spins and writes down from when to when it ran without a pause.
struct Burning<'a> {
    pause_ticks: u64,
    log: LockedBuf<Gap>,
    stop: &'a AtomicBool,
}

impl WithSource for Burning<'_> {
    type Output = Vec<Gap>;

    fn run<S: TickSource>(mut self) -> Self::Output {
        let log = self.log.as_mut_slice();
        let (mut done, mut turns) = (0, 0_u32);
        let mut start = S::now();
        let mut previous = start;
        while done < log.len() {
            let now = S::now();
            if now.saturating_sub(previous) > self.pause_ticks {
                log[done] = Gap { start_ticks: start, end_ticks: previous };
                done += 1;
                start = now;
            }
            previous = now;
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(1024) && self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        self.log.as_slice()[..done].to_vec()
    }
}

/// As the present user when that is not root; else as nobody, in a process of this program.
pub(super) fn checks(lab: &Lab, options: &Options) -> Vec<SelfCheck> {
    if thread::effective_user() != 0 {
        return as_present_user(lab, options);
    }
    as_nobody(options).unwrap_or_else(|e| {
        let what = format!("this program as user {NOBODY}");
        vec![SelfCheck::not_shown("unprivileged", &what, "-", e)]
    })
}

fn as_nobody(options: &Options) -> Result<Vec<SelfCheck>, String> {
    let spawn = Spawn::worker(UNPRIVILEGED.name).user(NOBODY).die_with_parent();
    let mut role: Role<Options, Result<Vec<SelfCheck>, String>> =
        Role::start(spawn).map_err(|e| e.to_string())?;
    role.ask(options, CHECKS_WITHIN_NS).map_err(|e| format!("it {e}"))?
}

/// The role: the checks as the present user, in silence.
pub(super) fn run(_: &[OsString]) -> u8 {
    if signals::install().is_err() {
        return 1;
    }
    role::answer(|options: Options| {
        let lab = Lab::open(options.cpu, options.seed)?;
        Ok::<_, String>(as_present_user(&lab, &options))
    })
}

pub(super) fn as_present_user(lab: &Lab, options: &Options) -> Vec<SelfCheck> {
    let user = thread::effective_user();
    let mut out = vec![tick(lab, options, user)];
    let what = format!("user {user}: a spinning thread on the meter's CPU, both under {OTHER}");
    match compete(lab, if options.quick { 2_000_000_000 } else { 4_000_000_000 }) {
        Ok((samples, ran)) => out.extend(judge(&what, lab, &samples, &ran)),
        Err(e) => out.push(SelfCheck::not_shown("unprivileged.classed", &what, "at least 99 %", e)),
    }
    out
}

fn compete(lab: &Lab, budget_ns: u64) -> Result<(Samples, Vec<Gap>), String> {
    let stop = AtomicBool::new(false);
    let log = LockedBuf::new(STRETCHES).map_err(|e| e.to_string())?;
    let work = Burning { pause_ticks: lab.machine.rate.ticks(PAUSE_NS), log, stop: &stop };
    let (ran, samples) = lab.beside("mm-burn", OTHER, work, || {
        let what = "unprivileged, with a competitor";
        let samples = lab.noise(what, lab.here(Some(OTHER), budget_ns), Attribution::Switches);
        stop.store(true, Ordering::Relaxed);
        samples
    })?;
    Ok((samples?, ran))
}

fn judge(what: &str, lab: &Lab, samples: &Samples, ran: &[Gap]) -> Vec<SelfCheck> {
    let (id, bar) = ("unprivileged.classed", "at least 99 %");
    let Some(cpu) = samples.cpus.first().filter(|_| samples.activity_log.sight == Sight::Switches) else {
        return vec![SelfCheck::not_shown(id, what, bar, "context switches could not be recorded")];
    };
    let (activity_log, attributed) = (&samples.activity_log, &cpu.attributed);
    let lost: u64 = activity_log.lost.iter().sum();
    let gaps = cpu.gaps.iter().zip(attributed);
    let charged: Vec<Gap> = gaps.filter(|(_, a)| activity_log.is_thread(a.main)).map(|(g, _)| *g).collect();
    let schedule = samples.setup.schedule;
    let within = |r: &Gap| Gap {
        start_ticks: r.start_ticks.max(schedule.t0_ticks),
        end_ticks: r.end_ticks.min(schedule.end_ticks()),
    };
    let within: Vec<Gap> = ran.iter().map(within).filter(|r| r.ticks() > 0).collect();
    let total: u64 = within.iter().map(Gap::ticks).sum();
    if total == 0 {
        return vec![SelfCheck::not_shown(id, what, bar, "the competitor never ran during the recording")];
    }
    let share = overlap_ticks(&within, &charged) as f64 / total as f64;
    let ms = |ticks: u64| lab.machine.rate.ns(ticks) / 1e6;
    let truth = format!("the competitor ran {:.1} ms by its own log", ms(total));
    let found = format!("{} of that in gaps charged to other threads ({lost} records lost)", percent(share));
    let state = State::if_sure(share >= CLASSED, lost == 0);
    let classed = SelfCheck::new(id, what, bar, truth, found, state);
    let parts = attributed.iter().flat_map(|a| &a.parts).filter(|p| activity_log.is_thread(p.source));
    let away: u64 = parts.map(|p| p.ticks).sum();
    vec![classed, account(what, lab.machine.rate.ns(away), cpu.thread.and_then(|t| t.run_delay_ns), lost)]
}

/// Time classed as other threads' against the time the kernel says that the meter waited for its CPU.
fn account(what: &str, away_ns: f64, waited_ns: Option<u64>, lost: u64) -> SelfCheck {
    let (id, bar) = ("unprivileged.account", "within 1 %");
    let shown = waited_ns.filter(|w| *w > 0).map(|waited| {
        let error = away_ns / waited as f64 - 1.0;
        let truth = format!("the meter waited {:.1} ms for its CPU by schedstat", waited as f64 / 1e6);
        let (away_ms, percent) = (away_ns / 1e6, error * 100.0);
        let found = format!("{away_ms:.1} ms in gaps classed as other threads: {percent:+.2} %");
        (truth, found, State::if_sure(error.abs() <= ACCOUNT, lost == 0))
    });
    let shown = shown.ok_or_else(|| "the kernel does not account run delay (schedstat)".to_owned());
    check(id, what, bar, shown)
}

/// The rhythm of the timer tick as an unprivileged user sees it, for information.
fn tick(lab: &Lab, options: &Options, user: u32) -> SelfCheck {
    let (id, what) =
        ("unprivileged.tick", format!("user {user}: nothing injected, rhythms of gaps without names"));
    check(id, &what, "none", rhythm_of_tick(lab, options))
}

fn rhythm_of_tick(lab: &Lab, options: &Options) -> Shown {
    let order = lab.here(Some(OTHER), if options.quick { 1_500_000_000 } else { 3_000_000_000 });
    let samples = lab.noise("unprivileged, undisturbed", order, Attribution::Switches)?;
    let metrics = analyze(&samples, lab.machine.seed).metrics;
    let rhythms: Vec<(f64, String)> = metrics
        .iter()
        .filter(|m| m.id == "noise.period")
        .filter_map(|m| Some((m.value?, m.params.get("class")?.to_string())))
        .collect();
    let hz = rhythms.iter().find(|r| is_tick_rate(r.0, kernel_hz()));
    let seen: Vec<String> = rhythms.iter().map(|r| format!("{:.2} Hz ({})", r.0, r.1)).collect();
    let found = match hz {
        Some((f, class)) => format!("{f:.3} Hz in the class {class}"),
        None if seen.is_empty() => "no rhythm".to_owned(),
        None => format!("none at such a rate; {}", seen.join(", ")),
    };
    let truth = "the kernel ticks a busy CPU 100, 250, 300 or 1000 times a second".to_owned();
    Ok((truth, found, State::Info))
}
