//! Figures against recordings whose truth is known.

use machmeter_data::shape::Cell as TableCell;
use machmeter_data::{Dataset, Metric, Shape};
use machmeter_engine::stream::{Demand, Fate, Job, Stream};
use machmeter_stats::random::Random;

use super::*;
use crate::samples::{Cell, LoadNote, Segment, Setup};
use crate::tasks::{Choices, find, periodic};

mod pages;

const MS: u64 = 1_000_000;

fn task(name: &str) -> Stream {
    let choices = Choices { audio_buffers: 2, segment_ns: 10_000 * MS, ..Choices::default() };
    find(name).and_then(|t| t.stream(&choices)).unwrap()
}

/// A job that waited, was kept from the CPU, and worked for what it asked for.
fn job(stream: &Stream, number: u64, wake_ns: u64, preempt_ns: u64) -> Job {
    let release_ns = number * stream.period_ns().unwrap_or(10 * MS);
    let cpu_ns = stream.cpu_ns(number).unwrap_or(0);
    Job { number, release_ns, wake_ns, response_ns: wake_ns + preempt_ns + cpu_ns, cpu_ns, fate: Fate::Ran }
}

fn dropped(stream: &Stream, number: u64, wait_ns: u64) -> Job {
    Job {
        wake_ns: wait_ns,
        response_ns: wait_ns,
        cpu_ns: 0,
        fate: Fate::Dropped,
        ..job(stream, number, wait_ns, 0)
    }
}

fn segment(stream: &Stream, jobs: Vec<Job>) -> Segment {
    let length_ns = jobs.len() as u64 * stream.period_ns().unwrap_or(10 * MS);
    Segment { length_ns, scheduled: jobs.len() as u64, jobs, ..Segment::default() }
}

fn cell(name: &str, load: &str, segments: Vec<Segment>) -> Cell {
    Cell { task: name.to_owned(), load: load.to_owned(), stream: task(name), segments }
}

fn of(cells: Vec<Cell>) -> Analysis {
    let setup = Setup { task_policy: "other".to_owned(), cpus: 2, ..Setup::default() };
    analyze(&Samples { setup, cells, loads: Vec::new() })
}

fn get<'a>(a: &'a Analysis, id: &str, wanted: &[(&str, &str)]) -> &'a Metric {
    let fits =
        |m: &&Metric| wanted.iter().all(|(k, v)| m.params.get(*k).is_some_and(|p| p.to_string() == *v));
    a.metrics.iter().filter(|m| m.id == format!("interactive.{id}")).find(fits).unwrap()
}

/// Video jobs: 50 us late, every twentieth a full period (kept from the CPU) so that it misses.
fn some_late(n: u64) -> Vec<Job> {
    let s = task("video");
    (0..n).map(|k| job(&s, k, 50_000, if k % 20 == 19 { 12 * MS } else { 0 })).collect()
}

#[test]
fn lateness_deadlines_and_counts_are_what_was_planted() {
    let s = task("video");
    let mut jobs = some_late(400);
    for k in [100, 101, 102] {
        jobs[k] = dropped(&s, k as u64, 20 * MS);
    }
    let a = of(vec![cell("video", "burn", vec![segment(&s, jobs)])]);
    let value = |id: &str| get(&a, id, &[]).value.unwrap();
    let mean = (397.0 * 50_000.0 + 3.0 * 20e6) / 400.0;
    assert!((value("lateness") - mean).abs() < 1.0);
    let variance = (397.0 * (50_000.0 - mean).powi(2) + 3.0 * (20e6 - mean).powi(2)) / 399.0;
    assert!((value("jitter") / variance.sqrt() - 1.0).abs() < 1e-9);
    assert!((value("deadlines_met") - (400.0 - 20.0 - 3.0) / 400.0).abs() < 1e-12);
    assert!((value("desired_cpu") - 397.0 / 400.0).abs() < 1e-12);
    assert_eq!((value("scheduled"), value("recorded"), value("dropped")), (400.0, 397.0, 3.0));
    // 99 misses by 12 ms of preemption, 100 to 102 are dropped.
    assert_eq!(value("longest_miss_run"), 4.0);
    let late = get(&a, "lateness", &[]);
    assert_eq!((late.max, late.quantiles["0.5"], late.blocks.len()), (Some(20e6), 50_000.0, 20));
    assert_eq!((late.n, late.block_ns), (400, Some(s.period_ns().unwrap() as f64 * 20.0)));
    let met = get(&a, "deadlines_met", &[]);
    let ci = met.ci.as_ref().unwrap();
    assert!(ci.low > 0.85 && ci.low < met.value.unwrap() && ci.high > met.value.unwrap() && ci.high <= 1.0);
    assert_eq!(ci.method, "correlated-share");
    assert!(a.warnings.iter().any(|w| w.code == "W310" && w.text.contains("burn 5.75 % of 400")));
}

#[test]
fn the_split_closes_and_the_kernel_agrees() {
    let s = task("video");
    let quiet: Vec<Job> = (0..200).map(|k| job(&s, k, 60_000, 0)).collect();
    // Under burn each wake-up costs 1 ms more, and each job loses 2 ms.
    let busy: Vec<Job> = (0..200).map(|k| job(&s, k, 1_060_000, 2 * MS)).collect();
    let mut none = segment(&s, quiet);
    none.run_delay_ns = Some(0);
    let mut burn = segment(&s, busy.clone());
    burn.run_delay_ns = Some(200 * 3 * MS);
    let a = of(vec![cell("video", "none", vec![none.clone()]), cell("video", "burn", vec![burn.clone()])]);
    let at = |id: &str| get(&a, id, &[("load", "burn")]).value.unwrap();
    assert_eq!((at("wake"), at("preempt"), at("cpu")), (1_060_000.0, 2e6, 6_666_666.0));
    assert_eq!(at("response"), at("wake") + at("preempt") + at("cpu"));
    assert!((at("kernel_wait_ratio") - 1.0).abs() < 1e-9, "{}", at("kernel_wait_ratio"));
    assert_eq!(get(&a, "kernel_wait_ratio", &[("load", "none")]).value, None);
    assert!(a.warnings.iter().all(|w| w.code != "W315"), "{:?}", a.warnings);
    // The kernel saw twice the wait: said, and the split is marked.
    burn.run_delay_ns = Some(200 * 6 * MS);
    let a = of(vec![cell("video", "none", vec![none]), cell("video", "burn", vec![burn])]);
    assert!((get(&a, "kernel_wait_ratio", &[("load", "burn")]).value.unwrap() - 0.5).abs() < 1e-9);
    assert!(a.warnings.iter().any(|w| w.code == "W315"));
    assert!(get(&a, "wake", &[("load", "burn")]).flags.contains(&"W315".to_owned()));
    assert!(get(&a, "wake", &[("load", "none")]).flags.is_empty());
}

#[test]
fn impossible_splits_are_rejected() {
    let s = task("video");
    let mut jobs = some_late(100);
    for j in &mut jobs[..5] {
        j.cpu_ns = j.response_ns * 2;
    }
    let a = of(vec![cell("video", "none", vec![segment(&s, jobs)])]);
    let m = get(&a, "preempt", &[]);
    let why = "5 of 100 jobs used more CPU time than they took: the clocks disagree";
    assert_eq!((m.value, m.why.as_deref()), (None, Some(why)));
}

#[test]
fn xruns_count_dry_spells_per_buffer() {
    let s = task("audio-pro");
    let p = s.period_ns().unwrap();
    let mut jobs: Vec<Job> = (0..1000).map(|k| job(&s, k, 20_000, 0)).collect();
    // Two spells beyond one period, of three and of one release; one beyond two; one beyond four.
    for (k, periods) in [(100, 1), (101, 1), (102, 1), (300, 1), (500, 2), (700, 4)] {
        jobs[k] = job(&s, k as u64, periods * p, 0);
    }
    let a = of(vec![cell("audio-pro", "burn", vec![segment(&s, jobs.clone())])]);
    let xruns = |a: &Analysis| -> Vec<f64> {
        (1..=8).map(|k| get(a, "xruns", &[("buffers", &format!("{k}"))]).value.unwrap()).collect()
    };
    assert_eq!(xruns(&a), [4.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(get(&a, "safe_buffer", &[]).value, Some(5.0));
    let none = get(&a, "xruns", &[("buffers", "5")]).ci.as_ref().unwrap();
    assert!(none.low == 0.0 && none.high > 2.0 && none.method == "bound", "{none:?}");
    // A dropped release is late for every buffer.
    jobs[900] = dropped(&s, 900, 9 * p);
    let a = of(vec![cell("audio-pro", "burn", vec![segment(&s, jobs)])]);
    assert_eq!(xruns(&a), [5.0, 3.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0]);
    let m = get(&a, "safe_buffer", &[]);
    assert_eq!((m.value, m.why.as_deref()), (None, Some("even 8 periods of buffer ran dry")));
}

#[test]
fn a_task_that_drops_tells_of_one_period_only() {
    let s = task("audio");
    let mut jobs: Vec<Job> = (0..400).map(|k| job(&s, k, 20_000, 0)).collect();
    let calm = of(vec![cell("audio", "none", vec![segment(&s, jobs.clone())])]);
    assert_eq!(get(&calm, "safe_buffer", &[]).value, Some(1.0));
    // A buffer of two periods would have played it.
    jobs[100] = dropped(&s, 100, 50 * MS);
    let a = of(vec![cell("audio", "none", vec![segment(&s, jobs)])]);
    let xruns = |k: &str| get(&a, "xruns", &[("buffers", k)]);
    assert_eq!(xruns("1").value, Some(1.0));
    let why = "the task drops jobs later than 1 period, which a longer buffer would have played";
    for k in ["2", "8"] {
        assert_eq!((xruns(k).value, xruns(k).why.as_deref()), (None, Some(why)));
    }
    let safe = get(&a, "safe_buffer", &[]);
    assert_eq!((safe.value, safe.why.as_deref()), (None, Some("even 1 period of buffer ran dry")));
}

#[test]
fn an_overdose_is_no_cpu_that_was_got() {
    let s = task("video");
    let mut jobs: Vec<Job> = (0..100).map(|k| job(&s, k, 10_000, 0)).collect();
    for j in &mut jobs[..50] {
        (j.cpu_ns, j.response_ns) = (j.cpu_ns * 3 / 2, j.response_ns * 3 / 2);
    }
    jobs[99] = dropped(&s, 99, 20 * MS);
    let a = of(vec![cell("video", "burn", vec![segment(&s, jobs)])]);
    let got = get(&a, "desired_cpu", &[]);
    assert!((got.value.unwrap() - 0.99).abs() < 1e-9, "{got:?}");
    assert!(got.ci.as_ref().is_none_or(|ci| ci.high <= 1.0), "{got:?}");
}

#[test]
fn looks_at_the_clocks_are_no_wait_that_the_kernel_missed() {
    let stream = periodic(MS / 5, 100_000);
    let jobs = (0..26_000).map(|k| job(&stream, k, 60_000, 760)).collect();
    let mut short = segment(&stream, jobs);
    short.run_delay_ns = Some(8_200_000);
    let c = |s: Segment| Cell { stream: stream.clone(), ..cell("video", "none", vec![s]) };
    let a = of(vec![c(short.clone())]);
    assert!(a.warnings.iter().all(|w| w.code != "W315"), "{:?}", a.warnings);
    // Every tenth job kept from the CPU for 50 us: the kernel must have seen 130 ms.
    for j in short.jobs.iter_mut().step_by(10) {
        j.response_ns += 50_000;
    }
    let a = of(vec![c(short)]);
    assert!(a.warnings.iter().any(|w| w.code == "W315"), "{:?}", a.warnings);
}

#[test]
fn both_lows_and_stutters_of_frames() {
    let s = task("gaming");
    // Back to back: 10 ms each, of 1001 frames 10 take 20 to 38 ms.
    let mut at = 0;
    let jobs: Vec<Job> = (0..1001)
        .map(|k| {
            let wall = if k > 0 && k % 100 == 0 { 20 * MS + 2 * MS * (k / 100 - 1) } else { 10 * MS };
            at += wall;
            Job { release_ns: at - wall, response_ns: wall, fate: Fate::RanBehind, ..job(&s, k, 0, 0) }
        })
        .collect();
    let a = of(vec![cell("gaming", "burn", vec![Segment { length_ns: at, ..segment(&s, jobs) }])]);
    // 1000 frame times; the slowest hundredth are exactly the ten slow ones: mean 29 ms.
    let low = |d: &str| get(&a, "low_rate", &[("definition", d)]).value.unwrap();
    assert!((low("tail-mean") - 1e3 / 29.0).abs() < 1e-6, "{}", low("tail-mean"));
    // Position 0.99 * 999 = 989.01 lies between the last of the quick and the first of the slow: 10 + 0.01 * 10 ms.
    assert!((low("percentile") - 1e3 / 10.1).abs() < 1e-6, "{}", low("percentile"));
    let total_s = (990.0 * 10.0 + 290.0) / 1e3;
    assert!((get(&a, "stutters", &[]).value.unwrap() - 10.0 / total_s).abs() < 1e-9);
    assert_eq!(get(&a, "frame_time", &[]).value, Some(10e6));
    // No deadlines, CPU over wall time, lateness is what a frame took too long.
    assert!(a.metrics.iter().all(|m| m.id != "interactive.deadlines_met" && m.id != "interactive.wake"));
    let wall_s = total_s + 0.01;
    assert!((get(&a, "desired_cpu", &[]).value.unwrap() - 10.01 / wall_s).abs() < 1e-9);
    assert_eq!(get(&a, "lateness", &[]).max, Some(28e6));
}

#[test]
fn tail_quantiles_have_intervals_or_say_that_they_have_none() {
    let s = task("audio-desktop");
    let mut random = Random::new(5);
    let jobs: Vec<_> = (0..2000).map(|k| job(&s, k, (random.exponential() * 100_000.0) as u64, 0)).collect();
    let a = of(vec![cell("audio-desktop", "none", vec![segment(&s, jobs)])]);
    let p = |p: &str| get(&a, "lateness_quantile", &[("p", p)]);
    for (name, q) in [("95", 0.95_f64), ("99", 0.99)] {
        let truth = -100_000.0 * (1.0 - q).ln();
        let ci = p(name).ci.as_ref().unwrap();
        assert!(ci.low < truth && truth < ci.high && ci.high < 2.0 * truth, "{name}: {truth} {ci:?}");
    }
    assert!(p("99.9").value.is_some() && p("99.9").ci.is_none() && p("99.9").flags == ["W314"]);
    assert!(a.warnings.iter().any(|w| w.code == "W314" && w.text.contains("p99.9 of audio-desktop/none")));
    // Of 100 releases, none is known to lie beyond p99.9.
    let jobs = (0..100).map(|k| job(&s, k, 1000 + k, 0)).collect();
    let a = of(vec![cell("audio-desktop", "none", vec![segment(&s, jobs)])]);
    let given: Vec<String> = a
        .metrics
        .iter()
        .filter(|m| m.id == "interactive.lateness_quantile")
        .map(|m| m.params["p"].to_string())
        .collect();
    assert_eq!(given, ["95", "99"]);
}

#[test]
fn a_segment_with_lost_releases_is_left_out_and_named() {
    let s = task("video");
    let good = segment(&s, some_late(200));
    let mut bad = segment(&s, (0..50).map(|k| job(&s, k, 500 * MS, 0)).collect());
    bad.scheduled = 60;
    bad.trouble = Some("the task's process was killed".to_owned());
    let a = of(vec![cell("video", "burn", vec![good, bad.clone()])]);
    let late = get(&a, "lateness", &[]);
    assert_eq!((late.value, late.n), (Some(50_000.0), 200));
    assert!(late.flags.contains(&"W311".to_owned()));
    let w = a.warnings.iter().find(|w| w.code == "W311").unwrap();
    let said = "1 of 2 segments are incomplete, 1 left out of the figures: the task's process";
    assert!(w.text.contains(said), "{}", w.text);
    assert!(a.findings.iter().any(|f| f.id == "interactive.balance" && f.verdict == "open"));
    // Nothing but lost releases: no figure, with the reason.
    let a = of(vec![cell("video", "burn", vec![bad])]);
    assert_eq!(a.metrics.len(), 1);
    assert_eq!(a.metrics[0].why.as_deref(), Some("no segment was recorded whole"));
}

#[test]
fn x_ramp_and_work_of_the_load() {
    let s = task("x");
    let jobs: Vec<Job> = (0..101).map(|k| job(&s, k, 10_000, 0)).collect();
    let with_work = |rate: u64| {
        let mut g = segment(&s, jobs.clone());
        (g.load_work, g.load_ns) = (rate * 10, 10_000 * MS);
        g
    };
    let three = vec![with_work(100), with_work(110), with_work(120)];
    let cells = vec![cell("x", "burn", three), cell("x", "ring", vec![with_work(50)])];
    let burn = LoadNote {
        name: "burn".to_owned(),
        work: "turns".to_owned(),
        unit: "Hz".to_owned(),
        caveats: vec!["no swap".to_owned()],
        failure: Some("died".to_owned()),
        ..LoadNote::default()
    };
    let ring = LoadNote { name: "ring".to_owned(), unit: "By/s".to_owned(), ..LoadNote::default() };
    let loads = vec![burn, ring];
    let a = analyze(&Samples { setup: Setup::default(), cells, loads });
    assert!((get(&a, "desired_cpu", &[("load", "burn")]).value.unwrap() - 1.0).abs() < 1e-12);
    let work = get(&a, "load_work", &[("load", "burn")]);
    assert_eq!((work.value, work.blocks.as_slice()), (Some(110.0), [100.0, 110.0, 120.0].as_slice()));
    assert!(work.ci.as_ref().is_some_and(|c| c.low < 100.0 && c.high > 120.0));
    assert_eq!(get(&a, "load_work", &[("load", "ring")]).value, Some(50.0));
    let beside = |d: &Dataset| match &d.shape {
        Shape::CostTable(t) => t.rows.iter().map(|r| r.cells[1].clone()).collect(),
        _ => Vec::new(),
    };
    let told = a.datasets.iter().find(|d| d.id == "interactive.load_work").map(beside).unwrap();
    assert_eq!(told, [TableCell::Number(110.0), TableCell::Text("50.0 B/s".to_owned())]);
    let codes: Vec<&str> = a.warnings.iter().map(|w| w.code.as_str()).collect();
    assert!(codes.contains(&"W312") && codes.contains(&"W313"), "{codes:?}");
    let keys: std::collections::BTreeSet<String> = a.metrics.iter().map(Metric::key).collect();
    assert_eq!(keys.len(), a.metrics.len(), "every key is unique");
    assert_eq!(a.summary.lines[0].section, "INTERACTIVE");
}

#[test]
fn dose_steal_and_throttling_are_noticed() {
    let s = task("video");
    let mut jobs: Vec<Job> = (0..300).map(|k| job(&s, k, 10_000, 0)).collect();
    for j in &mut jobs {
        (j.cpu_ns, j.response_ns) = (j.cpu_ns * 11 / 10, j.response_ns * 11 / 10);
    }
    jobs[7] = job(&s, 7, 50 * MS, 0);
    let mut seg = segment(&s, jobs);
    seg.steal_ns = Some(seg.length_ns / 20);
    let setup = Setup {
        cpus: 2,
        conditions: [
            "real-time throttling: real-time threads stop for 50 ms of each second",
            "slack of 1 ns",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Setup::default()
    };
    let a = analyze(&Samples { setup, cells: vec![cell("video", "burn", vec![seg])], loads: Vec::new() });
    let text = |code: &str| a.warnings.iter().find(|w| w.code == code).unwrap().text.clone();
    assert!(text("W316").contains("video/burn +10.0 %"), "{}", text("W316"));
    assert!(text("W317").contains("video/burn 2.50 %"), "{}", text("W317"));
    let held_back =
        "(real-time throttling: real-time threads stop for 50 ms of each second): video/burn 50.0 ms";
    assert!(text("W318").contains(held_back), "{}", text("W318"));
}

#[test]
fn streams_of_every_kind_give_finite_figures() {
    // Whatever comes in: no panic, nothing that is not a number, intervals around their values.
    let mut random = Random::new(8);
    let names = ["audio", "audio-pro", "compositor", "gaming", "launch", "typing", "video", "x"];
    for round in 0..60 {
        let name = names[round % names.len()];
        let s = task(name);
        let n = random.below(60) as u64;
        let jobs = (0..n).map(|k| {
            let wait = (random.exponential() * 1e6 * 10f64.powi(random.below(4) as i32 - 2)) as u64;
            let j = job(&s, k, wait, random.below(1_000_000) as u64);
            if random.below(5) == 0 { dropped(&s, k, wait) } else { j }
        });
        let jobs: Vec<Job> = jobs.collect();
        let parts: Vec<Segment> = jobs.chunks(17).map(|c| segment(&s, c.to_vec())).collect();
        let a = of(vec![cell(name, "burn", parts)]);
        for m in &a.metrics {
            let is_sound = m.value.is_none_or(f64::is_finite) && m.value.is_some() != m.why.is_some();
            assert!(is_sound, "{}", m.key());
        }
    }
}

#[test]
fn demands_in_turns_count_by_calibration() {
    let stream = Stream { demand: Demand::Turns { turns: 3000 }, ..periodic(10 * MS, 0) };
    let jobs: Vec<Job> = (0..50)
        .map(|k| Job { cpu_ns: 3 * MS, response_ns: 3 * MS + 1000, ..job(&stream, k, 1000, 0) })
        .collect();
    let c = Cell { stream: stream.clone(), ..cell("video", "none", vec![segment(&stream, jobs)]) };
    let setup = Setup { turns_per_ms: 1000.0, ..Setup::default() };
    let a = analyze(&Samples { setup, cells: vec![c], loads: Vec::new() });
    assert!((get(&a, "desired_cpu", &[]).value.unwrap() - 1.0).abs() < 1e-12);
}
