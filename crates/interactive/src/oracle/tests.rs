//! The oracle against the runner on a machine stepped by nanoseconds, against theory, and against figures once measured.

use machmeter_engine::stream::{Deadline, Machine, Spent, Stop, run};
use proptest::prelude::*;

use super::*;
use crate::tasks;

/// Share of the releases that were late by more than `over_ns`; `None` without releases.
fn share_later_than(stream: &Stream, jobs: &[Job], over_ns: u64) -> Option<f64> {
    let later = jobs.iter().filter(|j| j.lateness_ns(stream) > over_ns).count();
    (!jobs.is_empty()).then(|| later as f64 / jobs.len() as f64)
}

const MS: u64 = 1_000_000;
const T0_NS: u64 = 5_000;

/// One CPU, away in given intervals; every step of 1 ns asks whether it is there.
struct Stepped<'a> {
    now_ns: u64,
    away: &'a [Away],
    wake_cost_ns: u64,
}

impl Stepped<'_> {
    fn wait(&mut self) {
        while self.away.iter().any(|(from, to)| (T0_NS + from..T0_NS + to).contains(&self.now_ns)) {
            self.now_ns += 1;
        }
    }

    fn work(&mut self, demand: Demand) -> u64 {
        let Demand::Cpu { ns } = demand else { panic!("not simulated: {demand:?}") };
        for _ in 0..ns {
            self.wait();
            self.now_ns += 1;
        }
        self.wait();
        ns
    }
}

impl Machine for Stepped<'_> {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }
    fn sleep_until(&mut self, at_ns: u64) {
        self.now_ns = self.now_ns.max(at_ns) + self.wake_cost_ns;
        self.wait();
    }
    fn execute(&mut self, demand: Demand, stages: &[Demand], job: u64) -> Spent {
        self.wait();
        let mut cpu_ns = self.work(demand);
        let mut wake_ns = 0;
        for stage in stages {
            let sent_ns = self.now_ns;
            self.now_ns += self.wake_cost_ns;
            self.wait();
            wake_ns += self.now_ns - sent_ns;
            cpu_ns += self.work(stage.of_job(job));
        }
        Spent { cpu_ns, wake_ns, ended_ns: self.now_ns }
    }
    fn stopped(&self) -> bool {
        false
    }
}

fn stepped(stream: &Stream, away: &[Away], length_ns: u64, wake_cost_ns: u64, seed: u64) -> Vec<Job> {
    let mut jobs = Vec::with_capacity(100_000);
    let mut machine = Stepped { now_ns: T0_NS - 100, away, wake_cost_ns };
    assert_eq!(run(&mut machine, stream, T0_NS, length_ns, seed, &mut jobs), Stop::Time);
    jobs
}

fn any_stream() -> impl Strategy<Value = Stream> {
    let demand = prop_oneof![
        (0_u64..150).prop_map(|ns| Demand::Cpu { ns }),
        (1_u64..150, 2_u32..9).prop_map(|(most_ns, steps)| Demand::Ramp { most_ns, steps }),
    ];
    let deadline = prop_oneof![
        Just(Deadline::Next),
        (1_u64..300).prop_map(|ns| Deadline::After { ns }),
        (1_u32..5).prop_map(|count| Deadline::Periods { count }),
        Just(Deadline::None),
    ];
    let overload = prop_oneof![
        Just(Overload::Drop),
        (0_u32..5).prop_map(|most_periods| Overload::Queue { most_periods }),
        Just(Overload::Skip),
    ];
    let stages = prop::collection::vec((0_u64..30).prop_map(|ns| Demand::Cpu { ns }), 0..3);
    (demand, deadline, overload, stages, 20_u64..200).prop_map(
        |(demand, deadline, overload, stages, period_ns)| Stream {
            release: Release::Periodic { period_ns },
            demand,
            deadline,
            overload,
            stages,
        },
    )
}

fn any_away() -> impl Strategy<Value = Vec<Away>> {
    prop::collection::vec((0_u64..4_000, 0_u64..400).prop_map(|(from, long)| (from, from + long)), 0..14)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn every_job_of_a_periodic_stream_is_as_the_runner_has_it(
        stream in any_stream(), away in any_away(), wake_cost_ns in 0_u64..25, length_ns in 1_u64..4_000,
    ) {
        let jobs = simulate(&stream, &away, length_ns, wake_cost_ns).unwrap();
        prop_assert_eq!(jobs, stepped(&stream, &away, length_ns, wake_cost_ns, 1));
    }

    #[test]
    fn every_job_of_an_open_loop_is_as_the_runner_has_it(
        stream in any_stream(), away in any_away(), wake_cost_ns in 0_u64..25, length_ns in 1_u64..4_000, seed: u64,
        mean_ns in 20_u64..300,
    ) {
        let stream = Stream { release: Release::Poisson { mean_ns }, ..stream };
        // The same seed releases the same jobs, whatever becomes of them.
        let idle = Stream { demand: Demand::Cpu { ns: 0 }, stages: Vec::new(), ..stream.clone() };
        let releases: Vec<u64> = stepped(&idle, &[], 8_000, 0, seed).iter().map(|j| j.release_ns).collect();
        prop_assume!(releases.last().is_some_and(|r| *r > length_ns));
        let jobs = simulate_released(&stream, &releases, &away, length_ns, wake_cost_ns).unwrap();
        prop_assert_eq!(jobs, stepped(&stream, &away, length_ns, wake_cost_ns, seed));
    }

    #[test]
    fn every_job_of_a_closed_loop_is_as_the_runner_has_it(
        stream in any_stream(), away in any_away(), wake_cost_ns in 0_u64..25, length_ns in 1_u64..4_000,
        think_ns in 0_u64..100, most_ns in 5_u64..150,
    ) {
        let demand = Demand::Cpu { ns: most_ns };
        let deadline = if stream.overload == Overload::Skip { Deadline::None } else { stream.deadline };
        let stream = Stream { release: Release::Closed { think_ns }, demand, deadline, ..stream };
        let jobs = simulate(&stream, &away, length_ns, wake_cost_ns).unwrap();
        prop_assert_eq!(jobs, stepped(&stream, &away, length_ns, wake_cost_ns, 1));
    }
}

fn periodic(period_ns: u64, cpu_ns: u64, overload: Overload) -> Stream {
    Stream { overload, ..tasks::periodic(period_ns, cpu_ns) }
}

/// A hog with a period that shares no rhythm with the task, for 1000 s.
fn against_hog(burst_ns: u64, cpu_ns: u64, overload: Overload) -> (Stream, Vec<Job>) {
    let length_ns = 1_000_000 * MS;
    let stream = periodic(16_666_667, cpu_ns, overload);
    let jobs = simulate(&stream, &hog(70_710_678, burst_ns, 0, length_ns), length_ns, 0).unwrap();
    (stream, jobs)
}

#[test]
fn short_jobs_follow_the_simple_theory() {
    for burst_ns in [2 * MS, 5 * MS, 8 * MS] {
        let (stream, jobs) = against_hog(burst_ns, 2 * MS, Overload::Drop);
        let (b, p) = (burst_ns as f64, 70_710_678.0);
        let s = Summary::of(&stream, &jobs);
        let mean_ns = s.mean_late_ns.unwrap();
        assert!((mean_ns / (b * b / (2.0 * p)) - 1.0).abs() < 0.01, "{burst_ns}: {mean_ns}");
        let half = share_later_than(&stream, &jobs, burst_ns / 2).unwrap();
        assert!((half - b / 2.0 / p).abs() < 0.001, "{half}");
        assert_eq!(s.miss_share, Some(0.0));
        assert!(s.max_late_ns <= burst_ns && s.max_late_ns > burst_ns * 95 / 100);
    }
}

/// Per overload policy: P(late > 0.5 ms), mean lateness in ms, share of misses.
fn figures(burst_ms: u64, cpu_ns: u64, overload: Overload) -> [f64; 3] {
    let (stream, jobs) = against_hog(burst_ms * MS, cpu_ns, overload);
    let s = Summary::of(&stream, &jobs);
    let late = share_later_than(&stream, &jobs, 500_000).unwrap();
    [late, s.mean_late_ns.unwrap() / 1e6, s.miss_share.unwrap()]
}

/// As an independent program predicted them; a real machine under a real-time hog was within 0.15 points.
#[test]
fn known_figures_of_a_hog_are_met() {
    let queue = Overload::Queue { most_periods: 0 };
    let table = [
        (8, 2_000_000, [0.1061, 0.453, 0.0]),
        (8, 6_666_667, [0.1061, 0.453, 0.0]),
        (12, 6_666_667, [0.2569, 1.207, 0.1226]),
        (20, 2_000_000, [0.3041, 2.979, 0.1037]),
    ];
    for (burst_ms, cpu_ns, [late, mean_ms, missed]) in table {
        let [l, m, x] = figures(burst_ms, cpu_ns, queue);
        assert!((l - late).abs() < 0.0002 && (m - mean_ms).abs() < 0.002 && (x - missed).abs() < 0.0001);
    }
}

/// A late job that is executed makes the next slot pass, which `Drop` counts; what could not begin is given up earlier.
#[test]
fn policies_differ_in_misses_as_they_should() {
    let queue = Overload::Queue { most_periods: 0 };
    let [_, mean, missed] = figures(12, 6_666_667, Overload::Drop);
    let [_, queued_mean, queued] = figures(12, 6_666_667, queue);
    assert!((missed - 2.0 * queued).abs() < 1e-9 && mean == queued_mean, "{missed} {queued}");
    let [_, skipped_mean, skipped] = figures(20, 2_000_000, Overload::Skip);
    let [_, queued_mean, queued] = figures(20, 2_000_000, queue);
    assert!(skipped == queued && skipped_mean < queued_mean);
    let [_, _, dropped] = figures(20, 2_000_000, Overload::Drop);
    let [_, _, dry] = figures(20, 2_000_000, Overload::Queue { most_periods: 1 });
    assert!(queued < dry && dry < dropped, "{queued} {dry} {dropped}");
}

#[test]
fn a_launch_and_an_open_loop_without_releases_are_refused() {
    let launch = Stream { demand: Demand::Launch, ..periodic(MS, 0, Overload::Drop) };
    let e = simulate(&launch, &[], 10 * MS, 0).unwrap_err();
    assert!(e.contains("give the demand as CPU time"), "{e}");
    let open = Stream { release: Release::Poisson { mean_ns: MS }, ..periodic(MS, 1, Overload::Drop) };
    assert!(simulate(&open, &[], 10 * MS, 0).unwrap_err().contains("of an open loop are random"));
    assert!(simulate(&periodic(0, 1, Overload::Drop), &[], 10 * MS, 0).unwrap_err().contains("period is 0"));
}
