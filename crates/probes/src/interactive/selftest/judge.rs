//! Recorded against simulated: the bars of a point.

use machmeter_engine::stream::Job;

use super::lab::Trial;
use super::point::Point;
use super::{Next, Outcome};
use crate::interactive::oracle::{Summary, simulate};
use crate::selftest::{SelfCheck, State, percent};

pub(super) const BAR: &str = "misses within 0.5 points (or one release), mean lateness within 3 % + 60 us";
const MISSES: f64 = 0.005;
const RELATIVE: f64 = 0.03;
const ABSOLUTE_NS: f64 = 60_000.0;
/// Share of the planned bursts that there must be for a point to show anything.
const BURSTS: f64 = 0.8;
/// A release is off when its lateness differs by more than this, ns.
const OFF_NS: u64 = 200_000;
/// The machine is not quiet enough when others had the task wait for more than this, ms per second, or when the log does not
/// know what was true for as long.
const UNREST_MS_PER_S: f64 = 2.0;
/// Nor when a wake-up alone costs more than this, ns (a host that lets an idle virtual CPU wait): the bar has room for 60 us of
/// what the simulation does not know, and wake-ups vary by as much as they cost.
const SLOW_WAKE_NS: f64 = 30_000.0;

/// What the kernel's run delay of the task should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Witness {
    /// All waits: the disturber is a thread in the way.
    RunDelay,
    /// None of the waits: a stopped thread does not wait for a CPU.
    Stopped,
}

/// What came of recording a point.
pub(super) fn judged(
    id: &str,
    what: &str,
    point: &Point,
    trial: Result<&Trial, String>,
    witness: Witness,
) -> Outcome {
    match trial {
        Ok(trial) => {
            let check = judge(id, point, trial, witness);
            let next = if check.state == State::NotShown { Next::Again } else { Next::Nothing };
            Outcome { check, next }
        }
        Err(why) => Outcome { check: SelfCheck::not_shown(id, what, BAR, why), next: Next::GiveUp },
    }
}

fn judge(id: &str, point: &Point, trial: &Trial, witness: Witness) -> SelfCheck {
    let (stream, segment) = (&trial.stream, &trial.segment);
    let expected = match simulate(stream, &trial.log.away, segment.length_ns, 0) {
        Ok(jobs) => jobs,
        Err(e) => return SelfCheck::not_shown(id, &trial.what, BAR, e),
    };
    let (truth, found) = (Summary::of(stream, &expected), Summary::of(stream, &segment.jobs));
    let of = |s: &Summary| s.miss_share.zip(s.mean_late_ns);
    let (Some((missed, mean_ns)), Some((found_missed, found_ns))) = (of(&truth), of(&found)) else {
        return SelfCheck::not_shown(id, &trial.what, BAR, "nothing was recorded");
    };
    let bursts = bursts(trial);
    let planned = segment.length_ns as f64 / (point.period_us as f64 * 1e3);
    if (bursts as f64) < BURSTS * planned {
        let why =
            format!("the disturber was at work only {bursts} of {planned:.0} times: it was kept from it");
        return SelfCheck::not_shown(id, &trial.what, BAR, why);
    }
    let n = truth.scheduled as f64;
    let bound = MISSES.max((point.misses_at_once() + 0.01) / n);
    let met = segment.trouble.is_none()
        && truth.scheduled == found.scheduled
        && (found_missed - missed).abs() <= bound
        && (found_ns - mean_ns).abs() <= RELATIVE * mean_ns + ABSOLUTE_NS;
    let unrest = unrest(trial, &expected, witness);
    let off = off(&expected, &segment.jobs);
    let ms = |ns: f64| ns / 1e6;
    let text = format!(
        "misses {} ({:+.2} points), mean {:.3} ms ({:+.0} us), {off} releases off by more than 0.2 ms",
        percent(found_missed),
        (found_missed - missed) * 100.0,
        ms(found_ns),
        (found_ns - mean_ns) / 1e3
    );
    // Whatever came out: were a bar that is met in noise a pass, repeats would favor passes.
    let state = if unrest.is_some() { State::NotShown } else { State::of(met) };
    let in_noise =
        unrest.map(|why| format!("{why}; the bar was {} meanwhile", if met { "met" } else { "missed" }));
    let words: Vec<String> = segment.trouble.clone().into_iter().chain(in_noise).chain([text]).collect();
    SelfCheck {
        id: id.to_owned(),
        what: trial.what.clone(),
        truth: format!(
            "misses {}, mean {:.3} ms by the simulation on the log of {bursts} bursts, {} releases",
            percent(missed),
            ms(mean_ns),
            truth.scheduled
        ),
        found: words.join("; "),
        bar: BAR.to_owned(),
        state,
    }
}

/// Bursts that fell into the segment.
fn bursts(trial: &Trial) -> usize {
    trial.log.away.iter().filter(|a| a.0 < a.1 && a.0 < trial.segment.length_ns).count()
}

/// Releases whose lateness or fate is not as simulated.
fn off(expected: &[Job], found: &[Job]) -> usize {
    let differ = |(e, f): &(&Job, &Job)| e.ran() != f.ran() || e.wake_ns.abs_diff(f.wake_ns) > OFF_NS;
    expected.iter().zip(found).filter(differ).count() + expected.len().abs_diff(found.len())
}

/// Time that a task's thread waited for the CPU, by its jobs: from a release, or from when it was done with the one before,
/// until it began or gave up, and while it was preempted; ns. Waits of releases that passed meanwhile are one wait.
pub(super) fn waited_ns(jobs: &[Job]) -> i64 {
    let (mut sum_ns, mut busy_until_ns) = (0, 0);
    for job in jobs {
        let begun_ns = job.release_ns + job.wake_ns;
        sum_ns += begun_ns.saturating_sub(busy_until_ns.max(job.release_ns)) as i64;
        if job.ran() {
            sum_ns += job.preempt_ns();
        }
        busy_until_ns = busy_until_ns.max(job.release_ns + job.response_ns);
    }
    sum_ns
}

/// Why the machine was not quiet enough for the bars, if so. The kernel's account is the witness, not the recording.
fn unrest(trial: &Trial, expected: &[Job], witness: Witness) -> Option<String> {
    let per_s = |ns: f64| ns / 1e6 / trial.length_s();
    let simulated_ns = if witness == Witness::RunDelay { waited_ns(expected) } else { 0 };
    let unsure = per_s(trial.log.unsure_ns as f64);
    if unsure > UNREST_MS_PER_S {
        return Some(format!(
            "the disturber's own log is unsure for {unsure:.1} ms per second (bound {UNREST_MS_PER_S}): it was kept from its work"
        ));
    }
    if let Some(why) = trial.stolen() {
        return Some(why);
    }
    let wake_cost_ns = trial.around.wake_cost_ns;
    if wake_cost_ns > SLOW_WAKE_NS {
        return Some(format!(
            "a wake-up alone costs {:.0} us here (bound {:.0} us)",
            wake_cost_ns / 1e3,
            SLOW_WAKE_NS / 1e3
        ));
    }
    let Some(delay_ns) = trial.segment.run_delay_ns else {
        return Some(
            "the kernel does not account run delay (schedstat), so quiet cannot be told from noise"
                .to_owned(),
        );
    };
    let excess = per_s(delay_ns as f64 - simulated_ns as f64);
    (excess > UNREST_MS_PER_S).then(|| {
        let pressure = trial.around.pressure.map_or_else(|| "unknown".to_owned(), percent);
        format!(
            "other threads had the task wait {excess:.1} ms per second (bound {UNREST_MS_PER_S}) by the kernel's account; they had \
             {} of its CPU, and some thread waited for a CPU in {pressure} of the time",
            percent(trial.others(witness == Witness::RunDelay))
        )
    })
}

#[cfg(test)]
mod tests {
    use machmeter_engine::stream::Overload;

    use super::super::lab::{Around, Log};
    use super::super::point::{HOG, STOPS, periodic};
    use super::*;
    use crate::interactive::oracle::hog;
    use crate::interactive::samples::Segment;

    const LENGTH_NS: u64 = 8_000_000_000;

    /// What a machine with this wake-up cost would have recorded, under a hog whose log is as given.
    fn trial(point: &Point, wake_cost_ns: u64, log_shift_ns: u64, delay_ns: i64) -> Trial {
        let stream = point.stream();
        let (period_ns, burst_ns) = (point.period_us * 1_000, point.burst_us * 1_000);
        let away = hog(period_ns, burst_ns, 1_000_000, LENGTH_NS + 1_000_000_000);
        let jobs = simulate(&stream, &away, LENGTH_NS, wake_cost_ns).unwrap();
        // What a wake-up costs passes before the kernel counts the thread as waiting.
        let counted = simulate(&stream, &away, LENGTH_NS, 0).unwrap();
        let run_delay_ns = Some((waited_ns(&counted) + delay_ns) as u64);
        let segment = Segment { length_ns: LENGTH_NS, jobs, run_delay_ns, ..Segment::default() };
        let shifted = away.iter().map(|a| (a.0, a.1 - log_shift_ns)).collect();
        let log = Log { away: shifted, unsure_ns: 0 };
        let around = Around::default();
        Trial { what: String::new(), disturber: "mm-hog", stream, segment, log, around, calibration_ns: 0 }
    }

    #[test]
    fn a_true_recording_passes_and_a_false_one_fails_on_a_quiet_machine() {
        for point in HOG.iter().chain(&STOPS) {
            let of = |t: &Trial| judge("id", point, t, Witness::RunDelay).state;
            let check = judge("id", point, &trial(point, 20_000, 0, 0), Witness::RunDelay);
            assert_eq!(check.state, State::Pass, "{check:?}");
            // The hog had the CPU for longer than it says: the recording cannot be explained.
            let wrong = trial(point, 20_000, point.burst_us * 250, 0);
            let simulated = simulate(&wrong.stream, &wrong.log.away, LENGTH_NS, 0).unwrap();
            let quiet = Segment { run_delay_ns: Some(waited_ns(&simulated) as u64), ..wrong.segment.clone() };
            assert_eq!(of(&Trial { segment: quiet, ..wrong }), State::Fail, "{point:?}");
        }
    }

    #[test]
    fn what_the_kernel_saw_waiting_beyond_the_log_is_not_the_probes_fault() {
        let point = &HOG[2];
        let wrong = trial(point, 20_000, 3_000_000, 30_000_000);
        let check = judge("id", point, &wrong, Witness::RunDelay);
        assert_eq!(check.state, State::NotShown, "{check:?}");
        assert!(check.found.contains("by the kernel's account"), "{check:?}");
        let unsure = Trial { log: Log { unsure_ns: 20_000_000, ..wrong.log }, ..trial(point, 300_000, 0, 0) };
        assert_eq!(judge("id", point, &unsure, Witness::RunDelay).state, State::NotShown);
        let stolen =
            Trial { around: Around { steal: 0.02, ..Around::default() }, ..trial(point, 300_000, 0, 0) };
        assert_eq!(judge("id", point, &stolen, Witness::RunDelay).state, State::NotShown);
        // The kernel saw no waiting, and yet everything was late: the host wakes slowly, or the recording is wrong.
        let waking = |wake_cost_ns| {
            let late = trial(point, 300_000, 0, 0);
            let simulated = simulate(&late.stream, &late.log.away, LENGTH_NS, 0).unwrap();
            let segment =
                Segment { run_delay_ns: Some(waited_ns(&simulated) as u64), ..late.segment.clone() };
            Trial { around: Around { wake_cost_ns, ..Around::default() }, segment, ..late }
        };
        let slow = judge("id", point, &waking(63_000.0), Witness::RunDelay);
        assert!(slow.state == State::NotShown && slow.found.contains("63 us"), "{slow:?}");
        assert_eq!(judge("id", point, &waking(12_000.0), Witness::RunDelay).state, State::Fail);
    }

    #[test]
    fn a_bar_met_in_noise_is_no_pass() {
        let trial = trial(&HOG[2], 20_000, 0, 30_000_000);
        let check = judge("id", &HOG[2], &trial, Witness::RunDelay);
        assert!(check.state == State::NotShown && check.found.contains("the bar was met"), "{check:?}");
    }

    #[test]
    fn a_disturber_that_hardly_disturbed_shows_nothing() {
        let point = &HOG[2];
        let mut idle = trial(point, 20_000, 0, 0);
        idle.log.away.truncate(3);
        idle.segment.jobs = simulate(&idle.stream, &idle.log.away, LENGTH_NS, 20_000).unwrap();
        let check = judge("id", point, &idle, Witness::RunDelay);
        assert!(check.state == State::NotShown && check.found.contains("3 of 113"), "{check:?}");
    }

    #[test]
    fn waits_that_overlap_are_one_wait() {
        // Away 95..128 ms: one long wait from the release at 100 on, whatever the policy does with what passed.
        for overload in [Overload::Drop, Overload::Queue { most_periods: 0 }, Overload::Skip] {
            let stream = periodic(10_000, 1_000, overload);
            let jobs = simulate(&stream, &[(95_000_000, 128_000_000)], 500_000_000, 0).unwrap();
            assert_eq!(waited_ns(&jobs), 28_000_000, "{overload:?}");
        }
        // Preempted in the middle of a job.
        let stream = periodic(10_000, 5_000, Overload::Drop);
        let jobs = simulate(&stream, &[(102_000_000, 104_000_000)], 500_000_000, 0).unwrap();
        assert_eq!(waited_ns(&jobs), 2_000_000);
    }
}
