//! Without any right: a controller stops and continues the task's process, and logs when the kernel called it stopped.

use machmeter_sys::process::{continue_process, state_of, stop_process};
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

use super::Outcome;
use super::judge::judged;
use super::lab::{Disturber, Lab, Log, OTHER, Scene};
use super::point::Point;

/// What is known of a moment no better than this is not known, ns.
const UNSURE_NS: u64 = 100_000;
/// A process that is not stopped so long after it was told to is let be, ns.
const GIVE_UP_NS: u64 = 50_000_000;

pub(super) fn record(lab: &mut Lab<'_>, point: &Point) -> Outcome {
    let (bursts, task) = point.words();
    let what = format!("stopped for {bursts}, a task {OTHER}, {task}");
    let id = format!("stops.{}", point.id());
    let phase_ns = lab.phase_ns(point.period_us * 1_000);
    let (beside, length_ns) = (lab.beside, lab.length_ns());
    let work = |scene: &Scene<'_>| disturb(scene, point, phase_ns);
    let disturber = Disturber { name: "mm-stops", cpu: beside, policy: OTHER, logs: true, work: &work };
    let trial = lab.record(&what, &point.stream(), OTHER, length_ns, Some(&disturber));
    judged(&id, &what, point, trial)
}

fn disturb(scene: &Scene<'_>, point: &Point, phase_ns: u64) -> Log {
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
