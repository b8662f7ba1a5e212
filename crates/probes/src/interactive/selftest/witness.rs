//! A third party on the task's CPU: a thread below everything else that reads the clock whenever nothing else runs. The gaps in
//! its readings are when the CPU was taken, whoever took it. They come from no recording, so that they can tell where the
//! machine did what neither the disturber's log nor the simulation knows of: a hypervisor, an interrupt, another thread.
//!
//! What something else did to a release lasts until the CPU is free again. So the releases of one busy stretch are judged
//! or left out together, by comparing how long the CPU was taken with how long it should have been.

use std::sync::atomic::{AtomicBool, Ordering};

use machmeter_engine::stream::Job;
use machmeter_sys::thread::{monotonic_ns, thread_cpu_ns};

use crate::interactive::oracle::Away;

/// Shortest gap that is written down, ns: below it are ticks and other interrupts (on virtual machines tens of us), which
/// each delay a release by less than matters.
const LEAST_GAP_NS: u64 = 150_000;
const MOST_GAPS: usize = 65_536;
/// A stretch is left out when the CPU was taken for so much longer than it should have been: what counts as a release that is
/// off, ns, and the share that ticks may take.
const TOLERANCE_NS: f64 = 200_000.0;
const TOLERANCE: f64 = 0.02;
/// So long after the end of a stretch the CPU is still looked at, ns: what was taken in it makes it longer.
const AFTER_NS: u64 = 1_000_000;

/// When the CPU was taken from the third party, ascending.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    pub(super) gaps: Vec<Away>,
    /// CPU time that watching took, ns.
    pub(super) cpu_ns: u64,
}

impl Gaps {
    /// Whether there was room for all of them.
    pub(super) fn whole(&self) -> bool {
        self.gaps.len() < MOST_GAPS
    }
}

/// Watches the CPU of the calling thread until `stop`.
pub(super) fn watch(stop: &AtomicBool) -> Gaps {
    let mut gaps = Vec::with_capacity(MOST_GAPS);
    let mut before_ns = monotonic_ns();
    while !stop.load(Ordering::Relaxed) {
        let now_ns = monotonic_ns();
        if now_ns - before_ns > LEAST_GAP_NS && gaps.len() < MOST_GAPS {
            gaps.push((before_ns, now_ns));
        }
        before_ns = now_ns;
    }
    Gaps { gaps, cpu_ns: thread_cpu_ns() }
}

/// A stretch in which the task has something to do or is kept from it, by the simulation: before and after it the CPU is free.
struct Stretch {
    from_ns: u64,
    to_ns: u64,
    /// For how long the CPU is taken in it, ns.
    taken_ns: u64,
    left_out: bool,
}

/// Which of the simulated jobs fell into stretches in which the CPU was taken for as long as it should have been, and in which
/// the disturber's log is sure. `takes_cpu`: the disturber has the CPU itself while the task is kept from it.
pub(super) fn undisturbed(
    jobs: &[Job],
    away: &[Away],
    unsure: &[Away],
    takes_cpu: bool,
    gaps: &[Away],
) -> Vec<bool> {
    let mut stretches = stretches(jobs, away, takes_cpu);
    let next: Vec<u64> = stretches.iter().skip(1).map(|s| s.from_ns).chain([u64::MAX]).collect();
    let mut left_out_until_ns = None;
    for (stretch, next_ns) in stretches.iter_mut().zip(next) {
        let until_ns = next_ns.min(stretch.to_ns + AFTER_NS);
        let taken_ns = within(gaps, stretch.from_ns, until_ns);
        let most_ns = stretch.taken_ns as f64 * (1.0 + TOLERANCE) + TOLERANCE_NS;
        let logged = within(unsure, stretch.from_ns, until_ns) == 0;
        // What made the one before longer reaches into this one.
        let reached = at(gaps, stretch.from_ns).zip(left_out_until_ns).is_some_and(|(g, until)| g.0 <= until);
        stretch.left_out = taken_ns as f64 > most_ns || !logged || reached;
        left_out_until_ns = stretch.left_out.then_some(stretch.to_ns);
    }
    let stretch_of = |job: &Job| stretches.partition_point(|s| s.from_ns <= job.release_ns).checked_sub(1);
    jobs.iter().map(|job| stretch_of(job).is_some_and(|i| !stretches[i].left_out)).collect()
}

fn stretches(jobs: &[Job], away: &[Away], takes_cpu: bool) -> Vec<Stretch> {
    let stretch = |from_ns, to_ns, taken_ns| Stretch { from_ns, to_ns, taken_ns, left_out: false };
    let of_job = |j: &Job| stretch(j.release_ns, j.release_ns + j.response_ns, j.cpu_ns);
    let of_away = |a: &Away| stretch(a.0, a.1, if takes_cpu { a.1 - a.0 } else { 0 });
    let mut all: Vec<Stretch> =
        jobs.iter().map(of_job).chain(away.iter().filter(|a| a.0 < a.1).map(of_away)).collect();
    all.sort_unstable_by_key(|s| s.from_ns);
    let mut merged: Vec<Stretch> = Vec::with_capacity(all.len());
    for s in all {
        match merged.last_mut() {
            Some(last) if s.from_ns <= last.to_ns => {
                last.to_ns = last.to_ns.max(s.to_ns);
                last.taken_ns += s.taken_ns;
            }
            _ => merged.push(s),
        }
    }
    merged
}

/// That of `spans` (ascending) which `at_ns` lies in.
fn at(spans: &[Away], at_ns: u64) -> Option<&Away> {
    spans.get(spans.partition_point(|s| s.1 <= at_ns)).filter(|s| s.0 <= at_ns)
}

/// How much of `spans` (ascending) lies from `from_ns` to `until_ns`, ns.
fn within(spans: &[Away], from_ns: u64, until_ns: u64) -> u64 {
    let first = spans.partition_point(|s| s.1 <= from_ns);
    let inside = spans[first..].iter().take_while(|s| s.0 < until_ns);
    inside.map(|s| s.1.min(until_ns).saturating_sub(s.0.max(from_ns))).sum()
}

#[cfg(test)]
pub(super) mod tests {
    use machmeter_engine::stream::Overload;

    use super::super::point::periodic;
    use super::*;
    use crate::interactive::oracle::simulate;

    const LENGTH_NS: u64 = 1_000_000_000;

    /// What a third party sees of a CPU on which `jobs` ran while it was taken as `taken` says, and left free, the task being
    /// stopped, as `stopped` says.
    pub(in super::super) fn seen(jobs: &[Job], taken: &[Away], stopped: &[Away]) -> Vec<Away> {
        let mut all: Vec<Away> = taken.to_vec();
        for job in jobs.iter().filter(|j| j.ran()) {
            let (mut from_ns, to_ns) = (job.release_ns + job.wake_ns, job.release_ns + job.response_ns);
            for (off_ns, on_ns) in stopped.iter().copied() {
                if on_ns > from_ns && off_ns < to_ns {
                    all.push((from_ns, off_ns.max(from_ns)));
                    from_ns = on_ns;
                }
            }
            all.push((from_ns, to_ns.max(from_ns)));
        }
        all.sort_unstable();
        let mut merged: Vec<Away> = Vec::new();
        for (from_ns, to_ns) in all {
            match merged.last_mut() {
                Some(last) if from_ns <= last.1 => last.1 = last.1.max(to_ns),
                _ => merged.push((from_ns, to_ns)),
            }
        }
        merged
    }

    #[test]
    fn a_cpu_that_did_as_simulated_is_undisturbed() {
        let stream = periodic(10_000, 2_000, Overload::Queue { most_periods: 0 });
        let away = [(101_000_000, 125_000_000), (503_000_000, 509_000_000)];
        let jobs = simulate(&stream, &away, LENGTH_NS, 0).unwrap();
        let late = simulate(&stream, &away, LENGTH_NS, 30_000).unwrap();
        assert!(undisturbed(&jobs, &away, &[], true, &seen(&late, &away, &[])).iter().all(|u| *u));
    }

    #[test]
    fn what_took_the_cpu_besides_leaves_out_its_stretch_and_no_other() {
        let stream = periodic(10_000, 2_000, Overload::Queue { most_periods: 0 });
        let away = [(101_000_000, 125_000_000)];
        let jobs = simulate(&stream, &away, LENGTH_NS, 0).unwrap();
        // In a job, before a release, in the idle time after one, and just after the disturber while three jobs wait, after which the next one is due.
        for (from_ns, to_ns, out) in [
            (301_000_000, 301_500_000, 30..31),
            (399_000_000, 400_300_000, 40..41),
            (455_000_000, 456_000_000, 0..0),
            (125_200_000, 126_500_000, 10..14),
        ] {
            let taken = [away[0], (from_ns, to_ns)];
            let truly = simulate(&stream, &taken, LENGTH_NS, 0).unwrap();
            let found = undisturbed(&jobs, &away, &[], true, &seen(&truly, &taken, &[]));
            let left_out: Vec<usize> = (0..found.len()).filter(|i| !found[*i]).collect();
            assert_eq!(left_out, out.collect::<Vec<_>>(), "{from_ns}");
        }
        // Nobody knows when it was kept from the CPU.
        let found = undisturbed(&jobs, &away, &[(101_000_000, 101_300_000)], true, &seen(&jobs, &away, &[]));
        assert_eq!((0..found.len()).filter(|i| !found[*i]).collect::<Vec<_>>(), [10, 11, 12, 13]);
    }

    #[test]
    fn a_stopped_task_leaves_the_cpu_to_the_third_party() {
        let stream = periodic(10_000, 2_000, Overload::Drop);
        let away = [(101_000_000, 125_000_000)];
        let jobs = simulate(&stream, &away, LENGTH_NS, 0).unwrap();
        let found = undisturbed(&jobs, &away, &[], false, &seen(&jobs, &[], &away));
        assert!(found.iter().all(|u| *u), "{found:?}");
    }
}
