//! The simulated machine of the noise probe: the real loop in fake time, with planted detours and slow phases.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use machmeter_data::Metric;
use machmeter_data::quantity::Unit;
use machmeter_engine::{Clock, SimulatedClock};
use machmeter_stats::histogram::LogHistogram;
use machmeter_stats::random::Random;

use super::analyze::{analyze, derive, figures::CpuView, split::split};
use super::attribute::matching::attribute;
use super::attribute::testimony::{Sight, Source, SourceKind, Span, Testimony};
use super::measure::{Buffers, Gap, Notes, Raise, Schedule, Sums, WorkUnit, record};
use super::samples::{CpuSamples, Lengths, References, Samples, Setup, SpeedPhase, SpeedSample, ThreadFacts};
use super::tables::{from_tables, to_tables};

/// Ticks per second of the simulated counter.
const HZ: f64 = 1e9;

/// Time shared by clock and work unit.
#[derive(Clone)]
struct Machine(Rc<RefCell<SimulatedClock>>);

impl Clock for Machine {
    fn now(&mut self) -> u64 {
        self.0.borrow_mut().now()
    }
}

/// Work that takes `ticks`, and more during slow phases.
struct Work {
    machine: Machine,
    ticks: u64,
    /// (start, end, factor in percent), ascending.
    slow: Vec<(u64, u64, u64)>,
}

impl WorkUnit for Work {
    fn unit(&mut self) {
        let mut clock = self.machine.0.borrow_mut();
        let now = clock.exact();
        let factor = self.slow.iter().find(|s| now >= s.0 && now < s.1).map_or(100, |s| s.2);
        clock.run(self.ticks * factor / 100);
    }
}

/// The notes of the loop, which take time on this machine as on a real one.
struct CostlyNotes<'a> {
    machine: Machine,
    ticks: u64,
    notes: Buffers<'a>,
}

impl CostlyNotes<'_> {
    fn spend(&self) {
        self.machine.0.borrow_mut().run(self.ticks);
    }
}

impl Notes for CostlyNotes<'_> {
    fn gap(&mut self, gap: Gap, window: usize) {
        self.spend();
        self.notes.gap(gap, window);
    }

    fn close(&mut self, window: usize, turns: u32, end_ticks: u64) {
        self.spend();
        self.notes.close(window, turns, end_ticks);
    }

    fn rest(&mut self, now: u64) {
        self.notes.rest(now);
    }

    fn own(&mut self, ticks: u64) {
        self.notes.own(ticks);
    }
}

struct Planted {
    window_ticks: u64,
    windows: usize,
    unit_ticks: u64,
    step_ticks: u64,
    note_ticks: u64,
    stall_ticks: u64,
    pause_ticks: u64,
    stolen: Vec<(u64, u64)>,
    slow: Vec<(u64, u64, u64)>,
    capacity: usize,
}

impl Planted {
    fn new(window_ticks: u64, windows: usize) -> Self {
        Self {
            window_ticks,
            windows,
            unit_ticks: 10,
            step_ticks: 1,
            note_ticks: 90,
            stall_ticks: 0,
            pause_ticks: 20_000,
            stolen: vec![],
            slow: vec![],
            capacity: 1 << 20,
        }
    }

    /// Runs the real loop on the simulated machine.
    fn record(&self) -> CpuSamples {
        let machine =
            Machine(Rc::new(RefCell::new(SimulatedClock::new(0, 2, self.step_ticks, self.stolen.clone()))));
        let mut work = Work { machine: machine.clone(), ticks: self.unit_ticks - 2, slow: self.slow.clone() };
        let schedule = self.schedule();
        let mut counts = vec![0; self.windows];
        let mut sums = vec![Sums::default(); self.windows];
        let mut gaps = vec![Gap::default(); self.capacity];
        let mut histogram = LogHistogram::new();
        let notes = Buffers::new(&schedule, &mut counts, &mut sums, &mut gaps, &mut histogram);
        let mut notes = CostlyNotes { machine: machine.clone(), ticks: self.note_ticks, notes };
        let stop = AtomicBool::new(false);
        let ended = record(&mut machine.clone(), &mut work, &schedule, &mut notes, &stop);
        assert_eq!(ended.windows_closed, self.windows, "none lost");
        let (listed, raises) = (notes.notes.listed(), notes.notes.raises().to_vec());
        gaps.truncate(listed);
        let lengths = Lengths::of(&histogram);
        CpuSamples { counts, sums, gaps, lengths, raises, ..CpuSamples::default() }
    }

    fn schedule(&self) -> Schedule {
        let threshold_ticks = (self.unit_ticks * 5 / 2).max(3 * self.step_ticks);
        Schedule {
            stall_ticks: self.stall_ticks,
            pause_ticks: self.pause_ticks,
            listing_ticks: threshold_ticks.max(self.stall_ticks),
            note_ticks: 1_000,
            ..Schedule::all_listed(1000, self.window_ticks, self.windows, threshold_ticks)
        }
    }

    fn samples(&self) -> Samples {
        let mut cpu = self.record();
        let mut testimony = Testimony::none();
        cpu.attributed = attribute(&mut testimony, 0, &cpu.gaps);
        Samples {
            setup: Setup {
                quantum: "1".to_owned(),
                schedule: self.schedule(),
                tick_hz: HZ,
                rate_error: 1e-7,
                step_ticks: self.step_ticks,
                policy: "other".to_owned(),
                real_time_share: vec![],
                has_gaps: true,
            },
            cpus: vec![cpu],
            testimony,
            speed: vec![],
            references: References::default(),
            imported: vec![],
        }
    }
}

/// Sum of the shares of sources, and the stolen share.
fn balance(samples: &Samples) -> (f64, f64) {
    let metrics = analyze(samples, 1).metrics;
    let of = |id: &str| {
        let own = metrics.iter().filter(|m| m.id == id && m.params["cpu"].to_string() == "0");
        own.filter_map(|m| m.value).inspect(|v| assert!((0.0..=1.0).contains(v), "{id}: {v}")).sum::<f64>()
    };
    (of("noise.source_fraction"), of("noise.stolen_fraction"))
}

fn value(samples: &Samples, id: &str) -> f64 {
    let a = analyze(samples, 1);
    let m = a.metrics.iter().find(|m| m.id == id && m.params["cpu"].to_string() == "0");
    m.and_then(|m| m.value).unwrap_or_else(|| panic!("no value for {id}: {m:?}"))
}

#[test]
fn every_planted_detour_is_found_exactly() {
    let mut random = Random::new(7);
    let mut plan = Planted::new(100_000, 20_000);
    // What falls into a note is the note's.
    plan.note_ticks = 0;
    let mut at = 5_000;
    while at < 1_990_000_000 {
        let duration = 50 + random.below(20_000) as u64;
        plan.stolen.push((at, duration));
        at += duration + 200 + random.below(400_000) as u64;
    }
    let cpu = plan.record();
    assert_eq!(cpu.gaps.len(), plan.stolen.len());
    for (gap, (start, duration)) in cpu.gaps.iter().zip(&plan.stolen) {
        // One turn of 10 and the detour, and a read of 2 where it began in that of a note.
        assert!((duration + 10..=duration + 12).contains(&gap.ticks()), "{gap:?} for {duration}");
        assert!(gap.start_ticks <= *start && start + duration <= gap.end_ticks);
    }
}

#[test]
fn fifty_millisecond_holes_in_100_us_windows_lose_no_window_and_the_balance_closes() {
    let mut plan = Planted::new(100_000, 1_000_000);
    plan.unit_ticks = 200;
    // Ten holes of 50 ms, and a tick of 5 us at 250 Hz.
    let holes = (0..10).map(|i| (3_000_000_000 + i * 9_000_000_000, 50_000_000));
    let ticks = (0..24_000_u64).map(|i| (7_000_000 + i * 4_000_000, 5_000));
    let mut all: Vec<(u64, u64)> = holes.clone().chain(ticks).collect();
    all.retain(|&(s, d)| d > 5_000 || !holes.clone().any(|(h, l)| s + d >= h && s <= h + l));
    all.sort_unstable();
    plan.stolen = all;
    let truth = plan.stolen.iter().map(|s| s.1 as f64).sum::<f64>() / (100_000.0 * 1e6);
    let samples = plan.samples();
    assert_eq!(samples.cpus[0].counts.len(), 1_000_000);
    assert_eq!(
        samples.cpus[0].counts.iter().filter(|c| **c == 0).count(),
        10 * 499,
        "swallowed windows are kept as zeros"
    );
    let split = split(&samples.cpus[0], &samples.setup.schedule);
    assert!(split.closure(split.reference_ticks).abs() < 1e-3);
    let stolen = split.stolen_total() / split.wall_ticks;
    assert!((stolen / truth - 1.0).abs() < 0.002, "{stolen} for {truth}");
}

#[test]
fn stolen_share_and_slowdown_are_told_apart() {
    let mut plan = Planted::new(100_000, 20_000);
    plan.unit_ticks = 20;
    // A fifth of the run 25 % slower; 2 % stolen.
    plan.slow = vec![(400_000_000, 800_000_000, 128)];
    plan.stolen = (0..2000).map(|i| (500_000 + i * 1_000_000, 20_000)).collect();
    let samples = plan.samples();
    let stolen = value(&samples, "noise.stolen_fraction");
    assert!((stolen - 0.02).abs() < 2e-4, "{stolen}");
    // Work is 18 of 20 ticks: 128 % of it makes turns of 25, so the slow fifth loses a fifth of what gaps leave of it.
    let slow = value(&samples, "noise.slowdown_fraction");
    assert!((slow - 0.2 * 0.2 * 0.98).abs() < 1e-3, "{slow}");
}

#[test]
fn slow_phases_are_timed_to_a_window() {
    let mut plan = Planted::new(100_000, 3_000);
    plan.unit_ticks = 100;
    plan.slow = vec![(51_000_000, 151_000_000, 104)];
    let samples = plan.samples();
    let split = split(&samples.cpus[0], &samples.setup.schedule);
    let turns: Vec<f64> = split.turn_ticks.iter().map(|t| t.unwrap()).collect();
    let slow = |w: usize| turns[w] > 102.0;
    let starts: Vec<usize> = (1..turns.len()).filter(|w| slow(*w) != slow(w - 1)).collect();
    let near = |w: usize| starts.len() == 2 && starts.iter().any(|s| s.abs_diff(w) <= 1);
    assert!(near(510) && near(1510), "{starts:?}");
}

#[test]
fn a_stepped_clock_measures_durations_to_two_steps() {
    let mut plan = Planted::new(260_000, 4_000);
    plan.step_ticks = 26;
    plan.note_ticks = 0;
    plan.unit_ticks = 39;
    plan.stolen = (0..900).map(|i| (100_000 + i * 1_000_003, 260)).collect();
    let samples = plan.samples();
    assert_eq!(samples.cpus[0].gaps.len(), 900, "100 ns at 2.6 GHz is seen every time");
    let a = analyze(&samples, 1);
    let d = a.metrics.iter().find(|m| m.id == "noise.detour_duration").unwrap();
    assert!((d.value.unwrap() - 260.0).abs() <= 52.0, "{d:?}");
}

#[test]
fn a_list_that_fills_takes_longer_detours_and_sums_stay_whole() {
    let mut plan = Planted::new(100_000, 2_000);
    plan.capacity = 64;
    plan.stall_ticks = 500;
    // Detours of 600 to 900, of 2,000, and some of 50,000: those of 50,000 must all be listed.
    plan.stolen = (0..1_900)
        .map(|i| {
            let length = if i % 100 == 7 {
                50_000
            } else if i % 5 == 0 {
                2_000
            } else {
                600 + i % 300
            };
            (30_000 + i * 100_003, length)
        })
        .collect();
    let truth = plan.stolen.iter().map(|s| s.1 as f64).sum::<f64>() / 2e8;
    let samples = plan.samples();
    let cpu = &samples.cpus[0];
    assert!(cpu.gaps.len() < 64 && !cpu.raises.is_empty(), "{:?}", cpu.raises);
    assert_eq!(cpu.gaps.iter().filter(|g| g.ticks() > 40_000).count(), 19, "{:?}", cpu.raises);
    assert!(cpu.raises.windows(2).all(|w| w[0].listing_ticks * 10 == w[1].listing_ticks));
    let (sources, stolen) = balance(&samples);
    assert!((stolen / truth - 1.0).abs() < 1e-3, "{stolen} for {truth}");
    assert!((sources / stolen - 1.0).abs() < 0.01, "{sources} of {stolen}");
    assert_eq!(value(&samples, "noise.detour_rate"), 1_900.0 / 0.2);
    let duration = value(&samples, "noise.detour_duration");
    assert!((duration / 750.0 - 1.0).abs() < 0.1, "median from the histogram: {duration}");
}

#[test]
fn taking_notes_is_no_detour() {
    let mut random = Random::new(5);
    let mut plan = Planted::new(100_000, 20_000);
    let mut at = 5_000;
    while at < 1_990_000_000 {
        plan.stolen.push((at, 1_000 + random.below(3_000) as u64));
        at += 5_000 + random.below(20_000) as u64;
    }
    for (note_ticks, is_seen) in [(90, false), (400, false), (3_000, true)] {
        plan.note_ticks = note_ticks;
        let samples = plan.samples();
        let gaps = &samples.cpus[0].gaps;
        let soon = gaps.windows(2).filter(|w| w[1].start_ticks - w[0].end_ticks < 60).count();
        // What takes longer than any note was interrupted while noting: that is a detour.
        assert_eq!(soon * 100 > gaps.len(), is_seen, "{soon} of {} with notes of {note_ticks}", gaps.len());
        let noted = samples.cpus[0].lengths.count + 20_000;
        let own = samples.cpus[0].sums.iter().map(|s| f64::from(s.own_ticks)).sum::<f64>() / 2e9;
        assert!(is_seen || (own / (noted as f64 * note_ticks as f64 / 2e9) - 1.0).abs() < 0.1, "{own}");
    }
}

#[test]
fn micro_stalls_are_a_class_of_their_own() {
    let mut random = Random::new(9);
    // 2,000 clusters a second of 5 to 24 stalls of 60 to 300, and 73 bursts a second of 317,000.
    let mut plan = Planted::new(100_000, 50_000);
    plan.stall_ticks = 500;
    let (mut at, mut clusters) = (10_000, 0);
    while at < 4_990_000_000_u64 {
        clusters += 1;
        for _ in 0..5 + random.below(20) {
            plan.stolen.push((at, 60 + random.below(240) as u64));
            at += 1_000 + random.below(3_000) as u64;
        }
        at += 100_000 + (random.exponential() * 400_000.0) as u64;
    }
    let truth_stalls = plan.stolen.iter().map(|s| s.1 as f64).sum::<f64>() / 5e9;
    let bursts: Vec<(u64, u64)> = (0..364).map(|i| (7_000_000 + i * 13_698_630, 317_000)).collect();
    plan.stolen.retain(|s| !bursts.iter().any(|b| s.0 + 500 > b.0 && s.0 < b.0 + b.1 + 500));
    plan.stolen.extend(&bursts);
    plan.stolen.sort_unstable();
    let samples = plan.samples();
    assert_eq!(samples.cpus[0].gaps.len(), 364, "the list holds none of them");
    let rate = value(&samples, "noise.microstall_rate");
    assert!((rate / (f64::from(clusters) / 5.0) - 1.0).abs() < 0.08, "{rate} for {clusters} in 5 s");
    let share = value(&samples, "noise.microstall_fraction");
    assert!((share / truth_stalls - 1.0).abs() < 0.05, "{share} for {truth_stalls}");
    assert_eq!(value(&samples, "noise.detour_rate"), 364.0 / 5.0);
    assert!((value(&samples, "noise.detour_duration") - 317_000.0).abs() < 10.0);
    let (sources, stolen) = balance(&samples);
    assert!((sources / stolen - 1.0).abs() < 0.01, "{sources} of {stolen}");
    let a = analyze(&samples, 1);
    let periods: Vec<&Metric> = a.metrics.iter().filter(|m| m.id == "noise.period").collect();
    assert_eq!(periods.len(), 1, "{periods:?}");
    let ci = periods[0].ci.as_ref().unwrap();
    assert!(ci.low <= 73.0 && 73.0 <= ci.high, "{ci:?}");
}

#[test]
fn a_stop_beyond_the_end_is_clipped() {
    let mut plan = Planted::new(100_000, 10_000);
    plan.stolen = vec![(100_000_000, 5_000), (600_000_000, 2_500_000_000)];
    let mut samples = plan.samples();
    samples.cpus[0].thread = Some(ThreadFacts { stops: 1, ..ThreadFacts::default() });
    let (sources, stolen) = balance(&samples);
    assert!((stolen - 0.401).abs() < 0.001 && (sources - stolen).abs() < 1e-3, "{sources}, {stolen}");
    let a = analyze(&samples, 1);
    assert!(a.warnings.iter().any(|w| w.code == "W320" && w.text.contains("2.50 s")), "{:?}", a.warnings);
    assert!(
        a.metrics.iter().filter(|m| m.unit == Unit::One).flat_map(|m| &m.blocks).all(|b| *b <= 1.0 + 1e-9)
    );
}

#[test]
fn too_little_gets_neither_praise_nor_an_interval() {
    for windows in [1, 10, 100, 3_000] {
        let a = analyze(&Planted::new(100_000, windows).samples(), 1);
        assert!(
            !a.summary.verdict.contains("Quiet") && !a.summary.verdict.contains("Fit"),
            "{}",
            a.summary.verdict
        );
        for m in &a.metrics {
            assert!(m.ci.as_ref().is_none_or(|c| c.high > c.low), "{m:?}");
        }
    }
}

#[test]
fn a_periodic_source_is_found_with_its_frequency() {
    let mut random = Random::new(11);
    let mut plan = Planted::new(100_000, 100_000);
    let mut events: Vec<(u64, u64)> =
        (0..2_500_u64).map(|i| (2_000_000 + i * 4_000_000 - i * i % 997, 3_000)).collect();
    events.extend((0..1000).map(|_| (random.below(9_990_000_000) as u64, 2_000)));
    events.sort_unstable();
    events.dedup_by(|b, a| b.0 < a.0 + 10_000);
    plan.stolen = events;
    let a = analyze(&plan.samples(), 1);
    let m = a.metrics.iter().find(|m| m.id == "noise.period").expect("a rhythm");
    assert!((m.value.unwrap() / 250.0 - 1.0).abs() < 5e-4, "{m:?}");
}

#[test]
fn derived_ftq_fwq_and_selfish_agree_with_a_direct_run() {
    let mut base = Planted::new(10_000, 100_000);
    base.note_ticks = 0;
    base.stolen = (0..500).map(|i| (123_456 + i * 1_900_001, 3_000 + (i % 7) * 9_000)).collect();
    let mut direct = Planted::new(1_000_000, 1_000);
    direct.stolen.clone_from(&base.stolen);
    direct.note_ticks = 0;
    let (fine, coarse) = (base.record(), direct.record());
    let derived = derive::ftq(&fine, &base.schedule(), 100);
    for ((_, d), c) in derived.iter().zip(&coarse.counts) {
        let (d, c) = (*d as f64, f64::from(*c));
        assert!((d - c).abs() <= 0.01 * c.max(100.0), "{d} derived, {c} direct");
    }
    // FWQ directly: time for each 5000 turns in the same fake time.
    let machine = Machine(Rc::new(RefCell::new(SimulatedClock::new(0, 2, 1, base.stolen.clone()))));
    let mut clock = machine.clone();
    let mut work = Work { machine, ticks: 8, slow: vec![] };
    while clock.now() < 1000 {}
    let mut before = 1000;
    let derived = derive::fwq(&fine, &base.schedule(), 5_000);
    let mut direct = Vec::new();
    for _ in 1..derived.len() {
        for _ in 0..5_000 {
            work.unit();
            clock.now();
        }
        let now = clock.0.borrow().exact();
        direct.push(now - before);
        before = now;
    }
    // A read after each note makes the loop 0.02 % slower, so that pieces do not stay side by side.
    let mut derived = derived;
    for list in [&mut derived, &mut direct] {
        list.sort_unstable();
    }
    for q in [0.01, 0.5, 0.9, 0.99] {
        let at = |list: &[u64]| list[(q * list.len() as f64) as usize] as f64;
        assert!((at(&derived) / at(&direct) - 1.0).abs() < 0.01, "{q}: {} and {}", at(&derived), at(&direct));
    }
    assert_eq!(derive::selfish(&fine, &base.schedule(), 100).len(), 500);
}

#[test]
fn samples_survive_their_tables_and_so_does_the_analysis() {
    let mut plan = Planted::new(100_000, 2_000);
    plan.stall_ticks = 500;
    plan.capacity = 64;
    plan.stolen = (0..200).map(|i| (500_000 + i * 900_000, 20_000 + i)).collect();
    plan.stolen.extend((0..1_000).map(|i| (560_000 + i * 150_000, if i % 3 == 0 { 700 } else { 100 })));
    plan.stolen.sort_unstable();
    plan.stolen.dedup_by(|b, a| b.0 < a.0 + a.1 + 100);
    let mut samples = plan.samples();
    samples.testimony = Testimony {
        witness: "kernel trace".to_owned(),
        sight: Sight::Everything,
        spans: vec![vec![
            Span { start_ticks: 500_000, end_ticks: 501_000, source: 1, depth: 1 },
            Span { start_ticks: 501_000, end_ticks: 520_000, source: 0, depth: 0 },
        ]],
        lost: vec![3],
        steal_ns: vec![Some(1_234)],
        counters: vec![(0, "LOC".to_owned(), 9)],
        notes: vec!["a remark".to_owned()],
        sources: vec![Source::thread("gcc", "cc1", 7), Source::new("timer tick", SourceKind::Tick)],
    };
    samples.cpus[0].attributed = attribute(&mut samples.testimony, 0, &samples.cpus[0].gaps);
    samples.testimony.spans.clear();
    samples.cpus[0].thread = Some(ThreadFacts {
        run_delay_ns: Some(5),
        preemptions: 2,
        ended_on_cpu: Some(0),
        ..ThreadFacts::default()
    });
    samples.speed = vec![SpeedSample {
        cpu: 0,
        phase: SpeedPhase::Alone,
        best_ns: 0.1 + 0.2,
        median_ns: 1.0 / 3.0,
        n: 4,
    }];
    samples.references.best_ever_add_ns = Some(0.3);
    samples.setup.tick_hz = 2_595_123_456.789_012_3;
    assert!(samples.cpus[0].attributed.iter().any(|a| a.parts.len() == 2));
    assert!(samples.cpus[0].raises.iter().all(|r: &Raise| r.listing_ticks > 500));
    let again = from_tables(&to_tables(&samples)).unwrap();
    assert_eq!(again, samples);
    let json = |s: &Samples| {
        let a = analyze(s, 1);
        serde_json::to_string(&(&a.metrics, &a.datasets, &a.findings, &a.warnings, &a.summary)).unwrap()
    };
    assert_eq!(json(&again), json(&samples));
    // What does not belong together is refused.
    let mut tables = to_tables(&samples);
    tables.retain(|t| t.name != "noise_histogram");
    assert!(from_tables(&tables).is_err());
}

#[test]
fn nothing_at_all_is_no_noise_and_no_nan() {
    let samples = Planted::new(100_000, 100).samples();
    assert_eq!(value(&samples, "noise.stolen_fraction"), 0.0);
    let a = analyze(&samples, 1);
    let text = serde_json::to_string(&a.metrics).unwrap() + &serde_json::to_string(&a.datasets).unwrap();
    assert!(!text.contains("NaN") && !text.contains("inf"));
    let d = a.metrics.iter().find(|m| m.id == "noise.detour_duration").unwrap();
    assert!(d.value.is_none() && d.why.is_some());
}

#[test]
fn views_know_their_wall_time() {
    let samples = Planted::new(100_000, 100).samples();
    let split = split(&samples.cpus[0], &samples.setup.schedule);
    let view = CpuView { setup: &samples.setup, cpu: &samples.cpus[0], split: &split };
    assert!((view.wall_s() - 0.01).abs() < 1e-12);
}
