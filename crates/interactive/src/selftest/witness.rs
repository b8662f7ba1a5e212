//! A third party on the task's CPU: a thread below everything else that reads the clock. Gaps in its readings are when the
//! CPU was taken, by whomever: also by what neither the disturber's log nor the simulation knows of.
//!
//! What else was at work lasts until the CPU is free: the releases of one busy stretch are judged or left out together.

use std::sync::atomic::{AtomicBool, Ordering};

use machmeter_engine::stream::Job;
use machmeter_stats::quantile::median_of;
use machmeter_sys::thread::{monotonic_ns, thread_cpu_ns};

use super::lab::Log;
use crate::oracle::Away;

/// Shortest gap written down, ns: ticks and other interrupts below it delay a release by less than matters.
const LEAST_GAP_NS: u64 = 150_000;
/// As many gaps are not all that there were.
pub(super) const MOST_GAPS: usize = 65_536;
/// A stretch is left out when the CPU was taken for so much longer, ns, and the share that ticks may take.
const TOLERANCE_NS: f64 = 200_000.0;
const TOLERANCE: f64 = 0.02;
/// Also when it was free for longer while the task should have had it, ns: the timer came late, or the call.
const IDLE_NS: u64 = 100_000;
/// So long after the end of a stretch the CPU is still looked at, ns: what was taken in it makes it longer.
const AFTER_NS: u64 = 1_000_000;

/// When the CPU was taken from the third party, ascending.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    pub(super) gaps: Vec<Away>,
    /// CPU time that watching took, ns.
    pub(super) cpu_ns: u64,
}

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
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Seen {
    /// Which of the simulated jobs fell into stretches taken as they should be, and in which the log is sure.
    pub(super) undisturbed: Vec<bool>,
    /// What waking up and going to sleep cost, ns: median of undisturbed jobs that nobody delayed; `None` without any.
    pub(super) around_job_ns: Option<f64>,
}

/// A stretch in which the task has something to do or is kept from it, by the simulation: before and after it the CPU is free.
struct Stretch {
    from_ns: u64,
    to_ns: u64,
    jobs: usize,
    delayed: bool,
}

/// Compares `gaps` with when the CPU should have been taken. `takes_cpu`: the disturber has the CPU itself.
pub(super) fn compare(jobs: &[Job], log: &Log, takes_cpu: bool, gaps: &[Away]) -> Seen {
    let (stretches, due) = (stretches(jobs, &log.away), due(jobs, &log.away, takes_cpu));
    let (mut left_out, mut costs_ns) = (vec![false; stretches.len()], Vec::new());
    for (i, stretch) in stretches.iter().enumerate() {
        let (from_ns, next_ns) = (stretch.from_ns, stretches.get(i + 1).map_or(u64::MAX, |s| s.from_ns));
        let until_ns = next_ns.min(stretch.to_ns + AFTER_NS);
        let taken_ns = within(gaps, from_ns, until_ns) as f64;
        let spans =
            due.iter().skip(due.partition_point(|d| d.1 <= from_ns)).take_while(|d| d.0 < stretch.to_ns);
        let (mut due_ns, mut idle_ns) = (0, 0);
        for span in spans {
            due_ns += span.1 - span.0;
            idle_ns += (span.1 - span.0).saturating_sub(within(gaps, span.0, span.1));
        }
        let sure = within(&log.unsure, from_ns, until_ns) == 0;
        // What made the one before longer reaches into this one.
        let reached =
            i > 0 && left_out[i - 1] && at(gaps, from_ns).is_some_and(|g| g.0 <= stretches[i - 1].to_ns);
        let longer = taken_ns > due_ns as f64 * (1.0 + TOLERANCE) + TOLERANCE_NS;
        left_out[i] = longer || idle_ns > IDLE_NS || !sure || reached;
        if !left_out[i] && stretch.jobs == 1 && !stretch.delayed {
            costs_ns.push((taken_ns - due_ns as f64).max(0.0));
        }
    }
    let stretch_of = |job: &Job| stretches.partition_point(|s| s.from_ns <= job.release_ns).checked_sub(1);
    Seen {
        undisturbed: jobs.iter().map(|job| stretch_of(job).is_some_and(|i| !left_out[i])).collect(),
        around_job_ns: median_of(&costs_ns),
    }
}

fn stretches(jobs: &[Job], away: &[Away]) -> Vec<Stretch> {
    let stretch = |from_ns, to_ns, jobs| Stretch { from_ns, to_ns, jobs, delayed: jobs == 0 };
    let of_jobs = jobs.iter().map(|j| stretch(j.release_ns, j.release_ns + j.response_ns, 1));
    let of_away = away.iter().filter(|a| a.0 < a.1).map(|a| stretch(a.0, a.1, 0));
    let mut all: Vec<Stretch> = of_jobs.chain(of_away).collect();
    all.sort_by_key(|s| s.from_ns);
    let mut merged: Vec<Stretch> = Vec::with_capacity(all.len());
    for s in all {
        match merged.last_mut() {
            Some(last) if s.from_ns <= last.to_ns => {
                last.to_ns = last.to_ns.max(s.to_ns);
                last.jobs += s.jobs;
                last.delayed |= s.delayed;
            }
            _ => merged.push(s),
        }
    }
    merged
}

/// When the CPU should have been taken, ascending: while a job had it, and the disturber if it takes it.
fn due(jobs: &[Job], away: &[Away], takes_cpu: bool) -> Vec<Away> {
    let mut spans: Vec<Away> = if takes_cpu { away.to_vec() } else { Vec::new() };
    for job in jobs.iter().filter(|j| j.ran()) {
        let (mut from_ns, to_ns) = (job.release_ns + job.wake_ns, job.release_ns + job.response_ns);
        for (off_ns, on_ns) in away.iter().skip(away.partition_point(|a| a.1 <= from_ns)).copied() {
            if off_ns >= to_ns {
                break;
            }
            spans.push((from_ns, off_ns.max(from_ns)));
            from_ns = on_ns;
        }
        spans.push((from_ns, to_ns.max(from_ns)));
    }
    spans.retain(|s| s.0 < s.1);
    spans.sort_unstable();
    spans
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
    use crate::oracle::{joined, simulate};

    const LENGTH_NS: u64 = 1_000_000_000;

    /// What a third party sees where `jobs` ran and something else has the CPU as `taken`; a wake-up takes `wake_ns` more.
    pub(in super::super) fn gaps(
        jobs: &[Job],
        away: &[Away],
        takes_cpu: bool,
        taken: &[Away],
        wake_ns: u64,
    ) -> Vec<Away> {
        let mut all = due(jobs, away, takes_cpu);
        all.extend(taken);
        for span in &mut all {
            span.1 += wake_ns;
        }
        joined(all)
    }

    /// Jobs of 2 ms every 10 ms.
    fn simulated(away: &[Away]) -> Vec<Job> {
        let stream = periodic(10_000, 2_000, Overload::Queue { most_periods: 0 });
        simulate(&stream, away, LENGTH_NS, 0).unwrap()
    }

    fn left_out(seen: &Seen) -> Vec<usize> {
        (0..seen.undisturbed.len()).filter(|i| !seen.undisturbed[*i]).collect()
    }

    fn log(away: &[Away], unsure: &[Away]) -> Log {
        Log { away: away.to_vec(), unsure: unsure.to_vec() }
    }

    #[test]
    fn a_cpu_that_did_as_simulated_is_undisturbed() {
        let away = [(101_000_000, 125_000_000), (503_000_000, 509_000_000)];
        let jobs = simulated(&away);
        for takes_cpu in [true, false] {
            // A wake-up takes the CPU 30 us before the job has it.
            let gaps = gaps(&jobs, &away, takes_cpu, &[], 30_000);
            let seen = compare(&jobs, &log(&away, &[]), takes_cpu, &gaps);
            assert_eq!(left_out(&seen), [] as [usize; 0]);
            assert_eq!(seen.around_job_ns, Some(30_000.0));
        }
    }

    #[test]
    fn what_took_the_cpu_besides_leaves_out_its_stretch_and_no_other() {
        let away = [(101_000_000, 125_000_000)];
        let jobs = simulated(&away);
        // In a job, before a release, in idle time, and just after the disturber while three jobs wait.
        for (from_ns, to_ns, out) in [
            (301_000_000, 301_500_000, 30..31),
            (399_000_000, 400_300_000, 40..41),
            (455_000_000, 456_000_000, 0..0),
            (125_200_000, 126_500_000, 10..14),
        ] {
            let taken = [away[0], (from_ns, to_ns)];
            let truly = simulated(&taken);
            let seen = compare(&jobs, &log(&away, &[]), true, &gaps(&truly, &taken, true, &[], 0));
            assert_eq!(left_out(&seen), out.collect::<Vec<_>>(), "{from_ns}");
        }
    }

    #[test]
    fn where_the_log_is_unsure_or_the_cpu_was_free_nothing_is_said() {
        let away = [(101_000_000, 125_000_000)];
        let jobs = simulated(&away);
        let mut gaps = gaps(&jobs, &away, true, &[], 0);
        let seen = compare(&jobs, &log(&away, &[(101_000_000, 101_300_000)]), true, &gaps);
        assert_eq!(left_out(&seen), [10, 11, 12, 13]);
        // One is woken 150 us late.
        let late = gaps.iter_mut().find(|g| g.0 == 50_000_000).unwrap();
        *late = (late.0 + 150_000, late.1 + 150_000);
        assert_eq!(left_out(&compare(&jobs, &log(&away, &[]), true, &gaps)), [5]);
    }
}
