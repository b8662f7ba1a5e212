//! Who keeps a task from its CPU, by an absolute schedule and with a log of when: a real-time hog above a real-time task; and
//! without any right a controller that stops and continues the task's process.

use machmeter_engine::selftest::{SelfCheck, State};
use machmeter_sys::process::{continue_process, state_of, stop_process};
use machmeter_sys::sched::{Policy, RtLimits};
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

use super::judge::{BAR, judge};
use super::lab::{Disturber, Lab, Log, OTHER, Scene};
use super::point::Point;
use super::{Next, Outcome};

/// The task is below the hog; both below what a kernel may have at the top.
const TASK: Policy = Policy::Fifo(50);
const ABOVE: Policy = Policy::Fifo(60);
/// What is known of a moment no better than this is not known, ns.
const UNSURE_NS: u64 = 100_000;
/// A process that is not stopped so long after it was told to is let be, ns.
const GIVE_UP_NS: u64 = 50_000_000;

pub(super) fn hog(lab: &mut Lab<'_>, point: &Point) -> Outcome {
    let (bursts, task) = point.words();
    let what = format!("hog {ABOVE}, {bursts}, above a task {TASK}, {task}");
    let (id, cpu) = (format!("hog.{}", point.id()), lab.cpu);
    if let Some(why) = throttled(point, cpu) {
        return (SelfCheck::not_shown(&id, &what, BAR, why), Next::Nothing);
    }
    record(lab, point, [&id, &what], TASK, ("mm-hog", Some(cpu), ABOVE), have_the_cpu)
}

pub(super) fn stops(lab: &mut Lab<'_>, point: &Point) -> Outcome {
    let (bursts, task) = point.words();
    let what = format!("stopped for {bursts}, a task {OTHER}, {task}");
    let (id, beside) = (format!("stops.{}", point.id()), lab.beside);
    record(lab, point, [&id, &what], OTHER, ("mm-stops", beside, OTHER), stop_and_continue)
}

/// Records a task under a policy beside the thread of a disturber, which has a name, a CPU and a policy.
fn record(
    lab: &mut Lab<'_>,
    point: &Point,
    [id, what]: [&str; 2],
    of_task: Policy,
    (name, cpu, policy): (&'static str, Option<usize>, Policy),
    disturb: fn(&Scene<'_>, &Point, u64) -> Log,
) -> Outcome {
    let (phase_ns, length_ns) = (lab.phase_ns(point.period_us * 1_000), lab.length_ns());
    let work = |scene: &Scene<'_>| disturb(scene, point, phase_ns);
    let disturber = Disturber { name, cpu, policy, logs: true, work: &work };
    match lab.record(what, &point.stream(), of_task, length_ns, Some(&disturber)) {
        Ok(trial) => {
            let check = judge(id, point, trial);
            let next = if check.state == State::NotShown { Next::Again } else { Next::Nothing };
            (check, next)
        }
        Err(why) => (SelfCheck::not_shown(id, what, BAR, why), Next::GiveUp),
    }
}

/// Why the kernel would take time from hog and task on purpose.
fn throttled(point: &Point, cpu: usize) -> Option<String> {
    let limits = RtLimits::read();
    let (loss_ns, mechanism) = limits.loss_ns_per_s(cpu)?;
    // The fair server acts where normal threads have got nothing for most of a second, throttling beyond its share.
    let used = point.share();
    (used > 1.0 - loss_ns / 1e9).then(|| {
        format!(
            "hog and task need {:.0} % of the CPU, more than {mechanism} leaves: {}",
            used * 100.0,
            limits.explain(cpu)
        )
    })
}

fn have_the_cpu(scene: &Scene<'_>, point: &Point, phase_ns: u64) -> Log {
    let (period_ns, burst_ns) = (point.period_us * 1_000, point.burst_us * 1_000);
    let mut log = Log { away: Vec::with_capacity(4_096), unsure: Vec::new() };
    scene.at_beats(phase_ns, period_ns, || {
        let from_ns = monotonic_ns();
        let mut now_ns = from_ns;
        while now_ns - from_ns < burst_ns {
            now_ns = monotonic_ns();
        }
        log.away.push((from_ns, now_ns));
        (log.away.len() < log.away.capacity()).then_some(())
    });
    log
}

fn stop_and_continue(scene: &Scene<'_>, point: &Point, phase_ns: u64) -> Log {
    let (period_ns, burst_ns) = (point.period_us * 1_000, point.burst_us * 1_000);
    let mut log = Log::default();
    scene.at_beats(phase_ns, period_ns, || {
        let begun_ns = monotonic_ns();
        let stopped = stop(scene).ok()?;
        if let Some((from_ns, _)) = stopped {
            nanosleep_until(from_ns + burst_ns);
        }
        let told_ns = monotonic_ns();
        continue_process(scene.pid).ok()?;
        let back_ns = monotonic_ns();
        // Where it did not stop, somebody else had its CPU all the time.
        let sure = stopped.is_some_and(|(_, unsure_ns)| unsure_ns.max(back_ns - told_ns) <= UNSURE_NS);
        if !sure {
            log.unsure.push((begun_ns, back_ns));
        }
        if let Some((from_ns, _)) = stopped {
            log.away.push((from_ns, told_ns.midpoint(back_ns)));
        }
        Some(())
    });
    // Whatever happened, it is not left stopped.
    let _ = continue_process(scene.pid);
    log
}

/// Stops the process: when, and how uncertain (ns), between the last look that saw it going and the first stopped.
fn stop(scene: &Scene<'_>) -> std::io::Result<Option<(u64, u64)>> {
    let mut going_ns = monotonic_ns();
    let give_up_ns = going_ns + GIVE_UP_NS;
    // By the id of the task's thread, so that the kernel has that one begin the stop and not the thread that listens.
    stop_process(scene.tid)?;
    loop {
        let now_ns = monotonic_ns();
        match state_of(scene.tid) {
            Some('T') => return Ok(Some((going_ns.midpoint(now_ns), now_ns - going_ns))),
            Some(_) if now_ns < give_up_ns => going_ns = now_ns,
            Some(_) => return Ok(None),
            None => return Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}
