//! A real-time hog above a real-time task on the same CPU, by an absolute schedule; it writes down when it had the CPU.

use machmeter_sys::sched::{Policy, RtLimits};
use machmeter_sys::thread;

use super::judge::{BAR, judged};
use super::lab::{Disturber, Lab, Log, Scene};
use super::point::Point;
use super::{Next, Outcome};
use machmeter_engine::selftest::SelfCheck;

/// The task is below the hog; both below what a kernel may have at the top.
const TASK: Policy = Policy::Fifo(50);
const ABOVE: Policy = Policy::Fifo(60);

pub(super) fn record(lab: &mut Lab<'_>, point: &Point) -> Outcome {
    let (bursts, task) = point.words();
    let what = format!("hog {ABOVE}, {bursts}, above a task {TASK}, {task}");
    let id = format!("hog.{}", point.id());
    let phase_ns = lab.phase_ns(point.period_us * 1_000);
    let (cpu, length_ns) = (lab.cpu, lab.length_ns());
    let work = |scene: &Scene<'_>| disturb(scene, point, phase_ns);
    let disturber = Disturber { name: "mm-hog", cpu: Some(cpu), policy: ABOVE, logs: true, work: &work };
    if let Some(why) = throttled(point, cpu) {
        return (SelfCheck::not_shown(&id, &what, BAR, why), Next::Nothing);
    }
    let trial = lab.record(&what, &point.stream(), TASK, length_ns, Some(&disturber));
    judged(&id, &what, point, trial)
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

fn disturb(scene: &Scene<'_>, point: &Point, phase_ns: u64) -> Log {
    let (period_ns, burst_ns) = (point.period_us * 1_000, point.burst_us * 1_000);
    let mut log = Log { away: Vec::with_capacity(4_096), unsure: Vec::new() };
    scene.at_beats(phase_ns, period_ns, || {
        let from_ns = thread::monotonic_ns();
        let mut now_ns = from_ns;
        while now_ns - from_ns < burst_ns {
            now_ns = thread::monotonic_ns();
        }
        log.away.push((from_ns, now_ns));
        (log.away.len() < log.away.capacity()).then_some(())
    });
    log
}
