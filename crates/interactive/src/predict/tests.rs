//! Planted gaps: predicted figures against theory and the oracle, which its own tests hold against the runner.

use machmeter_data::gaps::HELD_BACK;
use machmeter_data::record::{Record, Run, Tool};
use machmeter_data::{Column, Table, Values};
use machmeter_engine::stream::{Deadline, Overload};
use machmeter_stats::serial;

use super::*;
use crate::oracle::{Summary, hog, joined};
use crate::tasks::periodic;

const MS: u64 = 1_000_000;

fn stream(period_ns: u64, cpu_ns: u64, deadline: Deadline, overload: Overload) -> Stream {
    Stream { deadline, overload, ..periodic(period_ns, cpu_ns) }
}

fn summary(stream: &Stream, away: &[Away], length_ns: u64) -> Summary {
    Summary::of(stream, &jobs(stream, away, length_ns, 0).unwrap().jobs)
}

/// Gaps as a machine has them: a tick, and rare long ones.
fn noise(length_ns: u64, seed: u64) -> Vec<Away> {
    let mut random = Random::new(seed);
    let mut out: Vec<Away> = hog(4 * MS, 20_000, 0, length_ns);
    let mut at_ns = 0.0;
    loop {
        at_ns += 150e6 * random.exponential();
        if at_ns as u64 >= length_ns {
            break;
        }
        let burst_ns = (4e6 * random.exponential()).min(40e6);
        out.push((at_ns as u64, (at_ns + burst_ns) as u64));
        at_ns += burst_ns;
    }
    joined(out)
}

#[test]
fn a_rhythm_in_step_with_the_task_is_met_at_every_phase() {
    // Away for 2 of each 10 ms, and a task of 10 ms: one phase alone says 0 or 2 ms late, all phases say how likely.
    let s = stream(10 * MS, MS, Deadline::After { ns: 5 * MS / 2 }, Overload::Drop);
    let length_ns = 20_000 * MS;
    let got = summary(&s, &hog(10 * MS, 2 * MS, 0, length_ns), length_ns);
    let mean_ns = 2.0 * 2.0 / (2.0 * 10.0) * 1e6;
    assert!((got.mean_late_ns.unwrap() / mean_ns - 1.0).abs() < 0.35, "{got:?}");
    // Missed when released in the burst's first 0.5 ms, or in the last 1 ms before it (it falls into the work): 15 %.
    assert!((got.miss_share.unwrap() - 0.15).abs() <= 1.0 / 16.0, "{got:?}");
}

#[test]
fn ten_shapes_agree_with_phases_held_out_within_a_point() {
    let length_ns = 120_000 * MS;
    let away = noise(length_ns, 7);
    let shapes = [
        (16_666_666, 6_666_666, Deadline::Next, Overload::Drop),
        (6_944_444, 2_777_777, Deadline::Next, Overload::Drop),
        (41_666_666, 16_666_666, Deadline::Next, Overload::Drop),
        (50 * MS, 5 * MS / 2, Deadline::Next, Overload::Drop),
        (2_666_666, 800_000, Deadline::Periods { count: 2 }, Overload::Queue { most_periods: 8 }),
        (2_666_666, 800_000, Deadline::Periods { count: 4 }, Overload::Queue { most_periods: 8 }),
        (21_333_333, 1_066_666, Deadline::Periods { count: 1 }, Overload::Queue { most_periods: 0 }),
        (10 * MS, 5 * MS, Deadline::After { ns: 7 * MS }, Overload::Skip),
        (33 * MS, 29 * MS, Deadline::Next, Overload::Drop),
        (5 * MS, MS, Deadline::After { ns: 3 * MS / 2 }, Overload::Skip),
    ];
    let mut missing = 0;
    for (period_ns, cpu_ns, deadline, overload) in shapes {
        let s = stream(period_ns, cpu_ns, deadline, overload);
        let predicted = summary(&s, &away, length_ns);
        // Phases that are none of the sweep's.
        let (mut missed, mut all) = (0, 0);
        for phase_ns in [period_ns / 7, period_ns * 3 / 7, period_ns * 5 / 7, period_ns * 13 / 14] {
            let jobs = simulate(&s, &away, phase_ns, length_ns - 2 * period_ns, 0, 1).unwrap();
            missed += jobs.iter().filter(|j| j.met(&s) == Some(false)).count();
            all += jobs.len();
        }
        let truth = missed as f64 / all as f64;
        let said = predicted.miss_share.unwrap();
        println!(
            "T {period_ns} C {cpu_ns} {deadline:?} {overload:?}: predicted {said:.4}, simulated {truth:.4}"
        );
        assert!((said - truth).abs() < 0.01, "T {period_ns} C {cpu_ns}: {said} {truth}");
        missing += usize::from(truth > 0.01);
    }
    assert!(missing >= 6, "shapes that miss nothing show nothing");
}

#[test]
fn a_recording_in_one_phase_is_what_the_oracle_says_job_by_job() {
    let s = stream(50 * MS, 10 * MS, Deadline::Next, Overload::Drop);
    let length_ns = 30_000 * MS;
    let away = noise(length_ns, 3);
    let swept = jobs(&s, &away, length_ns, 40_000).unwrap();
    assert_eq!((swept.phases, swept.periods), (16, 599));
    let first = oracle::simulate(&s, &away, 599 * 50 * MS, 40_000).unwrap();
    // The first piece at the first phase.
    assert_eq!(swept.jobs[..10], first[..10]);
    assert_eq!(swept.jobs.len() as u64, 16 * 599);
    assert!(swept.jobs.iter().zip(0..).all(|(j, i)| j.number == i && j.release_ns == i * 50 * MS));
    let sum = |jobs: &[Job]| jobs.iter().map(|j| j.response_ns).sum::<u64>();
    let phases = (0..16).map(|p| simulate(&s, &away, p * 50 * MS / 16, 599 * 50 * MS, 40_000, p).unwrap());
    assert_eq!(sum(&swept.jobs), phases.map(|j| sum(&j)).sum::<u64>(), "every job of every phase is there");
}

#[test]
fn ramps_keep_their_steps_and_open_and_closed_loops_work() {
    let mut x = stream(100 * MS, 0, Deadline::Next, Overload::Drop);
    x.demand = Demand::Ramp { most_ns: 100 * MS, steps: 11 };
    let swept = jobs(&x, &[], 20_000 * MS, 0).unwrap();
    assert_eq!(swept.periods % 11, 0);
    for job in swept.jobs.iter().filter(|j| j.ran()) {
        assert_eq!(Some(job.cpu_ns), x.cpu_ns(job.number), "{job:?}");
    }
    let typing = Stream {
        release: Release::Poisson { mean_ns: 125 * MS },
        ..stream(1, MS, Deadline::After { ns: 50 * MS }, Overload::Queue { most_periods: 0 })
    };
    let swept = jobs(&typing, &[], 100_000 * MS, 0).unwrap();
    let expected = swept.length_ns as f64 / 125e6;
    assert!((swept.jobs.len() as f64 / expected - 1.0).abs() < 0.05);
    assert!(swept.jobs.windows(2).all(|w| w[0].release_ns <= w[1].release_ns));
    let back_to_back = Release::Closed { think_ns: 0 };
    let game = Stream { release: back_to_back, ..stream(1, 10 * MS, Deadline::None, Overload::Drop) };
    let away = hog(100 * MS, 25 * MS, 5 * MS, 60_000 * MS);
    let swept = jobs(&game, &away, 60_000 * MS, 0).unwrap();
    let late_ns: u64 = swept.jobs.iter().map(|j| j.lateness_ns(&game)).sum();
    let share = late_ns as f64 / swept.length_ns as f64;
    assert!((share - 0.25).abs() < 0.01, "{share}");
    let launch = Stream { demand: Demand::Launch, ..x };
    assert!(jobs(&launch, &[], 1_000_000 * MS, 0).unwrap_err().contains("not known in advance"));
}

#[test]
fn intervals_are_those_of_one_recording_not_of_sixteen() {
    // The truth from a very long recording; 95 % intervals of short ones, as the analysis makes them.
    let s = stream(16_666_666, 6_666_666, Deadline::Next, Overload::Drop);
    let truth = summary(&s, &noise(2_000_000 * MS, 1), 2_000_000 * MS).miss_share.unwrap();
    let length_ns = 60_000 * MS;
    let covers = |seed: u64| {
        let swept = jobs(&s, &noise(length_ns, 100 + seed), length_ns, 0).unwrap();
        let missed: Vec<f64> =
            swept.jobs.iter().map(|j| f64::from(u8::from(j.met(&s) == Some(false)))).collect();
        let mean = serial::mean_interval(&missed, &[missed.len()], 0.95).ok()?;
        Some(mean.interval.contains(truth))
    };
    // A recording whose misses a few clusters make gets no interval.
    let given: Vec<bool> = (0..100).filter_map(covers).collect();
    let covered = given.iter().filter(|c| **c).count();
    println!("truth {truth:.4}, {covered} of {} intervals hold it", given.len());
    assert!(given.len() >= 50 && covered * 100 >= given.len() * 87, "{covered} of {}", given.len());
}

fn table(name: &str, columns: Vec<(&str, Values)>) -> Table {
    let column = |(name, values): (&str, Values)| Column { name: name.to_owned(), unit: Unit::Ticks, values };
    Table::new(name, columns.into_iter().map(column).collect()).unwrap()
}

/// A stored noise run of CPUs 0 and 1, with so many windows of 100 ms on each, CPU 1 with the gaps given.
fn stored(away: &[Away], windows: i32, policy: &str) -> Stored {
    let tick = |ns: u64| 1_000_000 + (ns as f64 * 2.6) as i64;
    let starts = (0..2 * windows).map(|i| 1_000_000 + i64::from(i % windows) * 260_000_000);
    let mut of_windows = table(
        "noise_windows",
        vec![
            ("cpu", Values::I32((0..2 * windows).map(|i| i / windows).collect())),
            ("start_ticks", Values::I64(starts.collect())),
            ("count", Values::I32(vec![1000; 2 * windows as usize])),
        ],
    );
    let mut gaps = table(
        "noise_gaps",
        vec![
            ("cpu", Values::I32(vec![1; away.len()])),
            ("start_ticks", Values::I64(away.iter().map(|a| tick(a.0)).collect())),
            ("end_ticks", Values::I64(away.iter().map(|a| tick(a.1)).collect())),
        ],
    );
    let notes = [
        ("tick_hz", "2600000000"),
        ("t0_ticks", "1000000"),
        ("window_ticks", "260000000"),
        ("policy", policy),
    ];
    gaps.notes = notes.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec();
    of_windows.notes.clone_from(&gaps.notes);
    Stored {
        record: Record::new("run7".to_owned(), Tool::default(), Run::default()),
        tables: vec![of_windows, gaps],
    }
}

/// As [`stored`], for 30 s, which a task of the same policy will suffer.
fn stored_for_30_s(away: &[Away]) -> Stored {
    stored(away, 300, "other")
}

fn video() -> Vec<(String, Stream)> {
    vec![("video".to_owned(), stream(16_666_666, 6_666_666, Deadline::Next, Overload::Drop))]
}

#[test]
fn a_stored_run_becomes_cells() {
    let away = hog(70_711_000, 12 * MS, 0, 30_000 * MS);
    let samples = predict(&stored_for_30_s(&away), &video(), &"0-1".parse().unwrap(), "last").unwrap();
    let cell = &samples.cells[0];
    assert_eq!((cell.task.as_str(), cell.load.as_str(), cell.segments.len()), ("video", RECORDED_NOISE, 1));
    assert_eq!(cell.segments[0].scheduled, cell.segments[0].jobs.len() as u64);
    let from = samples.setup.predicted_from.clone().unwrap();
    let said = "last (noise of CPU 1 over 30.0 s: away 17.0 % of the time in 425 gaps";
    assert!(from.starts_with(said), "{from}");
    let missed = Summary::of(&cell.stream, &cell.segments[0].jobs).miss_share.unwrap();
    assert!((missed - 2.0 * 0.1226).abs() < 0.01, "late ones and the slots they cost: {missed}");
    assert!(warnings(&samples).is_empty());
    // The quiet CPU, asked for by number.
    let quiet = predict(&stored_for_30_s(&away), &video(), &"0".parse().unwrap(), "last").unwrap();
    let in_time = |j: &Job| j.wake_ns == 0 && j.met(&cell.stream) == Some(true);
    assert!(quiet.cells[0].segments[0].jobs.iter().all(in_time));
}

#[test]
fn recordings_that_are_short_or_may_hold_the_meters_own_gaps_are_said_to_be() {
    let away = hog(70_711_000, 12 * MS, 0, 1_000 * MS);
    let samples = predict(&stored(&away, 10, "fifo:95"), &video(), &"1".parse().unwrap(), "last").unwrap();
    let w = warnings(&samples);
    assert!(w.iter().all(|w| w.code == "W319") && w.len() == 2, "{w:?}");
    assert!(w[0].text.starts_with("CPU 1 was recorded with policy fifo:95, but not when"), "{w:?}");
    assert!(w[1].text.starts_with("video: the recording has"), "{w:?}");
}

#[test]
fn gaps_in_which_the_kernel_held_the_meter_back_are_left_out() {
    let mut away = hog(70_711_000, 12 * MS, 0, 30_000 * MS);
    let noise = predict(&stored_for_30_s(&away), &video(), &"1".parse().unwrap(), "last").unwrap();
    let hog_gaps = away.len();
    away.extend((0..30).map(|s| (s * 1_000 * MS + 15 * MS, s * 1_000 * MS + 65 * MS)));
    let mut held = stored(&away, 300, "fifo:95");
    let source = (0..away.len()).map(|i| i32::from(i >= hog_gaps)).collect();
    held.tables[1].columns.extend(table("", vec![("source", Values::I32(source))]).columns);
    let names = ["hog", HELD_BACK].map(str::to_owned).to_vec();
    held.tables.push(table("noise_sources", vec![("name", Values::Text(names))]));
    let found = predict(&held, &video(), &"1".parse().unwrap(), "last").unwrap();
    assert_eq!(found.cells[0].segments[0].jobs, noise.cells[0].segments[0].jobs);
    assert!(warnings(&found).is_empty());
}

#[test]
fn records_that_cannot_be_used_say_why_in_one_line() {
    let away = hog(70_711_000, 12 * MS, 0, 30_000 * MS);
    let why = |s: &Stored, streams: &[(String, Stream)], cpus: &str| {
        let text = predict(s, streams, &cpus.parse().unwrap(), "run7").unwrap_err().to_string();
        assert!(text.starts_with("run7: ") && !text.contains('\n'), "{text}");
        text
    };
    assert!(why(&stored_for_30_s(&away), &video(), "5").contains("CPU 0, 1, not of 5"));
    let mut none = stored_for_30_s(&away);
    none.tables.retain(|t| t.name != "noise_gaps");
    assert!(why(&none, &video(), "0").contains("no list of gaps"));
    let mut launch = video();
    launch[0].1.demand = Demand::Launch;
    assert!(why(&stored_for_30_s(&away), &launch, "1").contains("video is left out"));
    let mut clockless = stored_for_30_s(&away);
    clockless.tables.iter_mut().for_each(|t| t.notes.retain(|n| n.0 != "tick_hz"));
    assert!(why(&clockless, &video(), "1").contains("tick_hz"));
}

#[test]
fn the_cost_of_a_wake_up_is_taken_from_the_record() {
    let mut with = stored_for_30_s(&[]);
    let params = machmeter_data::metric::params([("task", "audio".into()), ("load", "none".into())]);
    with.record.metrics.push(machmeter_data::Metric::new(&info::WAKE, params, 52_000.0, "median", 100));
    let samples = predict(&with, &video(), &"0".parse().unwrap(), "last").unwrap();
    assert!(samples.cells[0].segments[0].jobs.iter().all(|j| j.wake_ns == 52_000));
    assert!(samples.setup.conditions[1].contains("52.0 us"), "{:?}", samples.setup.conditions);
}
