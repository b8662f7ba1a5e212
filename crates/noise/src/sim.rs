//! The simulated machine of the noise probe: the real loop in fake time, with planted detours and slow phases.

mod losses;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use machmeter_loops::clock::{Clock, SimulatedClock};
use machmeter_stats::histogram::LogHistogram;
use machmeter_stats::random::Random;

use super::analyze::{analyze, derive, figures::CpuView, split::split};
use super::attribute::activity_log::ActivityLog;
use super::attribute::matching::attribute;
use super::samples::{CpuSamples, Lengths, Samples, Setup};
use machmeter_loops::noise::measure::{Buffers, Gap, Notes, Schedule, Sums, WorkUnit, record};
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
        CpuSamples { counts, sums, gaps, raises, lengths, ..CpuSamples::default() }
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
        let mut activity_log = ActivityLog::none();
        cpu.attributed = attribute(&mut activity_log, 0, &cpu.gaps);
        Samples {
            setup: Setup {
                quantum: "1".to_owned(),
                schedule: self.schedule(),
                tick_hz: HZ,
                rate_error: 1e-7,
                step_ticks: self.step_ticks,
                policy: "other".to_owned(),
                has_gaps: true,
                ..Setup::default()
            },
            cpus: vec![cpu],
            activity_log,
            ..Samples::default()
        }
    }
}

/// Sum of the shares of sources, and the stolen share.
fn balance(samples: &Samples) -> (f64, f64) {
    let metrics = analyze(samples, 1).metrics;
    let share = |cpu: &str, m: &machmeter_data::Metric| {
        m.id == "noise.source_fraction" && m.params["cpu"].to_string() == cpu
    };
    for all in metrics.iter().filter(|m| share("all", m)) {
        // With one CPU, the share over all CPUs is its own.
        let own = metrics.iter().find(|m| share("0", m) && m.params["source"] == all.params["source"]);
        assert_eq!(own.map(|m| m.value), Some(all.value), "{:?}", all.params);
    }
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
    let duration = value(&samples, "noise.detour_duration");
    assert!((duration - 260.0).abs() <= 52.0, "{duration}");
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
    let hz = value(&plan.samples(), "noise.period");
    assert!((hz / 250.0 - 1.0).abs() < 5e-4, "{hz}");
}

#[test]
fn derived_fwq_agrees_with_a_direct_run() {
    let mut base = Planted::new(10_000, 100_000);
    base.note_ticks = 0;
    base.stolen = (0..500).map(|i| (123_456 + i * 1_900_001, 3_000 + (i % 7) * 9_000)).collect();
    // Directly: time for each 5000 turns in the same fake time.
    let machine = Machine(Rc::new(RefCell::new(SimulatedClock::new(0, 2, 1, base.stolen.clone()))));
    let mut clock = machine.clone();
    let mut work = Work { machine, ticks: 8, slow: vec![] };
    while clock.now() < 1000 {}
    let mut before = 1000;
    let mut derived = derive::fwq(&base.record(), &base.schedule(), 5_000);
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
    for list in [&mut derived, &mut direct] {
        list.sort_unstable();
    }
    for q in [0.01, 0.5, 0.9, 0.99] {
        let at = |list: &[u64]| list[(q * list.len() as f64) as usize] as f64;
        assert!((at(&derived) / at(&direct) - 1.0).abs() < 0.01, "{q}: {} and {}", at(&derived), at(&direct));
    }
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
    let split = split(&samples.cpus[0], &samples.setup.schedule);
    let view = CpuView { setup: &samples.setup, cpu: &samples.cpus[0], split: &split };
    assert!((view.wall_s() - 0.01).abs() < 1e-12);
}
