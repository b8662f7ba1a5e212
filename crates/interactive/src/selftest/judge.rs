//! Recorded against simulated: the bars of a point.

use machmeter_engine::stream::Job;

use super::lab::Trial;
use super::point::Point;
use crate::analyze::waits;
use crate::oracle::Summary;
use machmeter_engine::selftest::{SelfCheck, State, percent};

pub(super) const BAR: &str = "misses within 0.5 points (or one release), mean lateness within 3 % + 60 us";
const MISSES: f64 = 0.005;
const RELATIVE: f64 = 0.03;
const ABSOLUTE_NS: f64 = 60_000.0;
/// Share of the planned bursts that there must be for a point to show anything.
const BURSTS: f64 = 0.8;
/// A release is off when its lateness differs by more than this, ns.
const OFF_NS: u64 = 200_000;
/// The machine is not quiet enough when a wake-up costs more than this, ns: the simulation knows what it costs, but that varies.
const SLOW_WAKE_NS: f64 = 100_000.0;

pub(super) fn judge(id: &str, point: &Point, trial: &Trial) -> SelfCheck {
    let (stream, segment) = (&trial.stream, &trial.segment);
    let not_shown = |why: String| SelfCheck::not_shown(id, &trial.what, BAR, why);
    let bursts = bursts(trial);
    let planned = segment.length_ns as f64 / (point.period_us as f64 * 1e3);
    if (bursts as f64) < BURSTS * planned {
        return not_shown(format!(
            "the disturber was at work only {bursts} of {planned:.0} times: it was kept from it"
        ));
    }
    if let Some(why) = unrest(trial) {
        return not_shown(why);
    }
    let (Some(expected), Some(jobs)) = (trial.judged(&trial.expected), trial.judged(&segment.jobs)) else {
        return not_shown("it is not known which releases nothing else touched".to_owned());
    };
    let (truth, found) = (Summary::of(stream, &expected), Summary::of(stream, &jobs));
    let of = |s: &Summary| s.miss_share.zip(s.mean_late_ns);
    let (Some((missed, mean_ns)), Some((found_missed, found_ns))) = (of(&truth), of(&found)) else {
        return not_shown("nothing was recorded".to_owned());
    };
    let bound = MISSES.max((point.misses_at_once() + 0.01) / expected.len() as f64);
    let met = segment.trouble.is_none()
        && trial.expected.len() == segment.jobs.len()
        && (found_missed - missed).abs() <= bound
        && (found_ns - mean_ns).abs() <= RELATIVE * mean_ns + ABSOLUTE_NS;
    let text = format!(
        "misses {} ({:+.2} points), mean {:.3} ms ({:+.0} us), {} releases off by more than 0.2 ms; a wake-up cost {:.0} us",
        percent(found_missed),
        (found_missed - missed) * 100.0,
        found_ns / 1e6,
        (found_ns - mean_ns) / 1e3,
        off(&expected, &jobs),
        trial.around.wake_cost_ns / 1e3
    );
    let truth = format!(
        "misses {}, mean {:.3} ms by the simulation on the log of {bursts} bursts; {} releases, {} more left out because \
         something else had the CPU",
        percent(missed),
        mean_ns / 1e6,
        expected.len(),
        trial.expected.len() - expected.len()
    );
    let found = segment.trouble.iter().cloned().chain([text]).collect::<Vec<_>>().join("; ");
    SelfCheck::new(id, &trial.what, BAR, truth, found, State::of(met))
}

fn bursts(trial: &Trial) -> usize {
    trial.log.away.iter().filter(|a| a.0 < a.1 && a.0 < trial.segment.length_ns).count()
}

/// Releases whose lateness or fate is not as simulated.
fn off(expected: &[Job], found: &[Job]) -> usize {
    let differ = |(e, f): &(&Job, &Job)| e.ran() != f.ran() || e.wake_ns.abs_diff(f.wake_ns) > OFF_NS;
    expected.iter().zip(found).filter(differ).count() + expected.len().abs_diff(found.len())
}

/// Time that a task waited for the CPU by its jobs, preemption included, ns. Releases that passed meanwhile are one wait.
pub(super) fn waited_ns(jobs: &[Job]) -> i64 {
    let preempted_ns: i64 = jobs.iter().filter(|j| j.ran()).map(Job::preempt_ns).sum();
    waits(jobs).0 as i64 + preempted_ns
}

/// Why the machine was not quiet enough for the bars, if so. The third party is the witness, not the recording.
fn unrest(trial: &Trial) -> Option<String> {
    let wake_cost_ns = trial.around.wake_cost_ns;
    if wake_cost_ns.is_infinite() {
        return Some("it is not known what a wake-up costs here: something else had the CPU".to_owned());
    }
    if wake_cost_ns > SLOW_WAKE_NS {
        let (cost, bound) = (wake_cost_ns / 1e3, SLOW_WAKE_NS / 1e3);
        return Some(format!("a wake-up costs {cost:.0} us here (bound {bound:.0} us)"));
    }
    let undisturbed = &trial.seen.as_ref()?.undisturbed;
    let (mut touched, mut known) = (0, 0);
    for (job, undisturbed) in trial.expected.iter().zip(undisturbed) {
        if job.response_ns > job.cpu_ns + wake_cost_ns as u64 {
            touched += 1;
            known += usize::from(*undisturbed);
        }
    }
    // Those that the disturber touched last longer, so that they meet more of what else there is.
    (2 * known < touched).then(|| {
        format!(
            "something else had the CPU, or the log is not sure, at {} of the {touched} releases that the disturber delayed; the \
             hypervisor took {}",
            touched - known,
            percent(trial.around.steal)
        )
    })
}

#[cfg(test)]
mod tests {
    use machmeter_engine::stream::Overload;

    use super::super::lab::{Around, Log};
    use super::super::point::{HOG, STOPS, periodic};
    use super::super::witness::{compare, tests::gaps};
    use super::*;
    use crate::oracle::{Away, hog, simulate};
    use crate::samples::Segment;

    const LENGTH_NS: u64 = 8_000_000_000;

    /// Points, and whether their disturber has the CPU itself.
    fn points() -> impl Iterator<Item = (&'static Point, bool)> {
        HOG.iter().map(|p| (p, true)).chain(STOPS.iter().map(|p| (p, false)))
    }

    /// What is recorded of `point` where a wake-up costs 20 us and `taken` is unknown; the log's bursts are `lie_ns` shorter.
    fn trial(point: &Point, takes_cpu: bool, taken: &[Away], lie_ns: u64) -> Trial {
        let stream = point.stream();
        let (period_ns, burst_ns) = (point.period_us * 1_000, point.burst_us * 1_000);
        let away = hog(period_ns, burst_ns, 1_000_000, LENGTH_NS + 1_000_000_000);
        let truly: Vec<Away> = away.iter().chain(taken).copied().collect();
        let jobs = simulate(&stream, &truly, LENGTH_NS, 20_000).unwrap();
        // Something else has the CPU from anybody, whether the task is stopped or not.
        let all = gaps(&jobs, &truly, takes_cpu, taken, 20_000);
        let log = Log { away: away.iter().map(|a| (a.0, a.1 - lie_ns)).collect(), unsure: Vec::new() };
        let expected = simulate(&stream, &log.away, LENGTH_NS, 0).unwrap();
        let seen = compare(&expected, &log, takes_cpu, &all);
        let expected = simulate(&stream, &log.away, LENGTH_NS, 20_000).unwrap();
        let around = Around { wake_cost_ns: 20_000.0, ..Around::default() };
        Trial {
            what: String::new(),
            disturber: "mm-hog",
            stream,
            segment: Segment { length_ns: LENGTH_NS, jobs, ..Segment::default() },
            log,
            expected,
            seen: Some(seen),
            around,
            calibration_ns: 0,
        }
    }

    fn of(point: &Point, trial: &Trial) -> SelfCheck {
        judge("id", point, trial)
    }

    /// Also where 1.7 % of the time is taken away in stretches of a few ms, as a busy host does: by what is left.
    #[test]
    fn a_true_recording_passes_and_a_false_one_fails() {
        let busy_host = hog(171_173_000, 3_000_000, 7_000_000, LENGTH_NS);
        let both = |p: (&'static Point, bool)| [(p, &[][..]), (p, &busy_host[..])];
        for ((point, takes_cpu), taken) in points().flat_map(both) {
            let mut trial = trial(point, takes_cpu, taken, 0);
            let check = of(point, &trial);
            assert_eq!(check.state, State::Pass, "{check:?}");
            if taken.is_empty() {
                let undisturbed = &trial.seen.as_ref().unwrap().undisturbed;
                let left_out = undisturbed.iter().filter(|u| !**u).count();
                assert!(100 * left_out < undisturbed.len(), "{check:?}");
            } else {
                assert!(!check.truth.contains(" 0 more left out"), "{check:?}");
                assert!(off(&trial.expected, &trial.segment.jobs) > 0, "{point:?}: nothing was disturbed");
            }
            // A clock that loses a quarter of each wait.
            for job in &mut trial.segment.jobs {
                let lost_ns = job.wake_ns / 4;
                job.wake_ns -= lost_ns;
                job.response_ns -= lost_ns;
            }
            let check = of(point, &trial);
            assert_eq!(check.state, State::Fail, "{check:?}");
        }
    }

    #[test]
    fn what_cannot_be_explained_is_not_shown() {
        let point = &HOG[2];
        // The log is wrong about every burst: the third party sees that the CPU was taken for longer.
        let lied = of(point, &trial(point, true, &[], 3_000_000));
        let says_why = lied.found.contains("something else had the CPU");
        assert!(lied.state == State::NotShown && says_why, "{lied:?}");
        // The same where the whole segment was disturbed, whether a bar was met or not.
        let taken = hog(5_000_000, 400_000, 0, LENGTH_NS);
        assert_eq!(of(point, &trial(point, true, &taken, 0)).state, State::NotShown);
        let waking = |wake_cost_ns| {
            let around = Around { wake_cost_ns, ..Around::default() };
            of(point, &Trial { around, ..trial(point, true, &[], 0) })
        };
        let slow = waking(163_000.0);
        assert!(slow.state == State::NotShown && slow.found.contains("163 us"), "{slow:?}");
        assert_eq!(waking(12_000.0).state, State::Pass);
        let blind = Trial { seen: None, ..trial(point, true, &[], 0) };
        assert_eq!(of(point, &blind).state, State::NotShown);
    }

    #[test]
    fn a_disturber_that_hardly_disturbed_shows_nothing() {
        let point = &HOG[2];
        let mut idle = trial(point, true, &[], 0);
        idle.log.away.truncate(3);
        let check = of(point, &idle);
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
