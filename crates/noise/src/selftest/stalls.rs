//! Stalls inside the loop: the work unit itself spins now and then, with its own stamps.

use machmeter_stats::histogram::LogHistogram;
use machmeter_stats::random::Random;
use machmeter_sys::Refused;
use machmeter_sys::clock::{self, SourceId};
use machmeter_sys::memory::{LockedBuf, MemoryError};

use super::lab::Lab;
use super::score::{Recall, cover, duration_error, excess_ticks};
use super::{Options, SelfCheck, State, percent};
use machmeter_loops::noise::kernel::Quantum1;
use machmeter_loops::noise::measure::{Buffers, Gap, Schedule, Sums, threshold_ticks};
use machmeter_loops::noise::{Stall, Unit, bursts, record_stalling};

/// A class of stalls: length, how often among 1000, and the share of them that must be found.
struct Class {
    ns: u64,
    per_mille: usize,
    recall: f64,
}

const CLASSES: [Class; 8] = [
    Class { ns: 30, per_mille: 150, recall: 0.0 },
    Class { ns: 50, per_mille: 200, recall: 0.95 },
    Class { ns: 100, per_mille: 250, recall: 0.999 },
    Class { ns: 300, per_mille: 150, recall: 0.999 },
    Class { ns: 1_000, per_mille: 120, recall: 0.999 },
    Class { ns: 10_000, per_mille: 100, recall: 0.999 },
    Class { ns: 100_000, per_mille: 25, recall: 0.999 },
    Class { ns: 1_000_000, per_mille: 5, recall: 0.999 },
];
/// Mean number of turns from one stall to the next: about 50 us.
const MEAN_TURNS: f64 = 5_000.0;
/// Error of the duration after bias removal, 95 % quantile, ns.
const P95_NS: f64 = 30.0;
/// Stalls of a class needed to speak of a recall of 99.9 %.
const MIN_STALLS: usize = 1_000;
/// An excess this far beyond the bias means that another detour fell into the same turn, ns.
const MERGED_NS: f64 = 200.0;

struct Logged {
    stalls: Vec<(usize, Gap)>,
    gaps: Vec<Gap>,
    dropped: bool,
    threshold_ticks: u64,
}

struct Run {
    plan: Vec<Stall>,
    window_ticks: u64,
    windows: usize,
    step_ticks: u64,
}

impl Run {
    /// On the calling thread.
    fn record(self, source: SourceId) -> Result<Logged, String> {
        let said = |e: MemoryError| e.to_string();
        let refused = |e: Refused| e.to_string();
        let calibrated = bursts(source, &mut Unit::One(Quantum1::default())).map_err(refused)?;
        let threshold_ticks =
            threshold_ticks(&calibrated, self.step_ticks, u64::MAX).unwrap_or(self.step_ticks * 5);
        let mut plan = LockedBuf::<Stall>::new(self.plan.len()).map_err(said)?;
        plan.as_mut_slice().copy_from_slice(&self.plan);
        let mut counts = LockedBuf::<u32>::new(self.windows).map_err(said)?;
        let mut sums = LockedBuf::<Sums>::new(self.windows).map_err(said)?;
        let mut gaps = LockedBuf::<Gap>::new(self.plan.len() * 2 + self.windows * 10).map_err(said)?;
        let mut histogram = LogHistogram::new();
        let t0_ticks = clock::now(source).map_err(refused)? + self.window_ticks;
        let schedule = Schedule::all_listed(t0_ticks, self.window_ticks, self.windows, threshold_ticks);
        let places = (counts.as_mut_slice(), sums.as_mut_slice(), gaps.as_mut_slice());
        let mut buffers = Buffers::new(&schedule, places.0, places.1, places.2, &mut histogram);
        let stop = machmeter_sys::guard::stop_flag();
        let done =
            record_stalling(source, plan.as_mut_slice(), &schedule, &mut buffers, stop).map_err(refused)?;
        let (listed, dropped) = (buffers.listed(), !buffers.raises().is_empty());
        Ok(Logged {
            stalls: plan.as_slice()[..done].iter().map(|s| (s.class, s.done)).collect(),
            gaps: gaps.as_slice()[..listed].to_vec(),
            dropped,
            threshold_ticks,
        })
    }
}

fn plan(lab: &Lab, stalls: usize) -> Vec<Stall> {
    let mut random = Random::new(lab.machine.seed);
    (0..stalls)
        .map(|_| {
            let draw = random.below(1000);
            let mut up_to = 0;
            let drawn = |c: &Class| {
                up_to += c.per_mille;
                draw < up_to
            };
            let class = CLASSES.iter().position(drawn).unwrap_or(0);
            Stall {
                turns: 20 + (random.exponential() * MEAN_TURNS) as u64,
                length_ticks: lab.machine.rate.ticks(CLASSES[class].ns as f64),
                class,
                done: Gap::default(),
            }
        })
        .collect()
}

fn inject(lab: &Lab, duration_ns: f64) -> Result<Logged, String> {
    let run = Run {
        plan: plan(lab, (duration_ns / 30_000.0) as usize),
        window_ticks: lab.machine.rate.ticks(100_000.0),
        windows: (duration_ns / 100_000.0) as usize,
        step_ticks: lab.machine.clock.step_ticks(),
    };
    lab.alone("mm-stalls", |source| run.record(source))
}

pub(super) fn checks(lab: &Lab, options: &Options) -> Vec<SelfCheck> {
    let duration_ns = if options.quick { 2e9 } else { 5e9 };
    match inject(lab, duration_ns) {
        Ok(logged) => {
            CLASSES.iter().map(|class| recall(lab, &logged, class)).chain([durations(lab, &logged)]).collect()
        }
        Err(e) => vec![SelfCheck::not_shown("stalls", "stalls in the work unit", "-", e)],
    }
}

fn recall_of(logged: &Logged, ns: u64) -> Recall {
    let of = |class: usize| CLASSES[class].ns == ns;
    let stalls: Vec<Gap> = logged.stalls.iter().filter(|s| of(s.0)).map(|s| s.1).collect();
    Recall::of_cover(&cover(&stalls, &logged.gaps))
}

fn recall(lab: &Lab, logged: &Logged, class: &Class) -> SelfCheck {
    let Class { ns, recall: bar, .. } = *class;
    let r = recall_of(logged, ns);
    let label = match ns {
        ..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => format!("{}us", ns / 1_000),
        _ => format!("{}ms", ns / 1_000_000),
    };
    let met = r.share() >= bar;
    // Long stalls are few: there a miss counts against the bar only if chance does not explain it.
    let by_chance = r.of < MIN_STALLS && r.compatible_with(bar);
    let (bar, state) = if bar > 0.0 {
        (format!("at least {:.1} %", bar * 100.0), State::of(r.of > 0 && (met || by_chance)))
    } else {
        ("none".to_owned(), State::Info)
    };
    let threshold_ns = lab.machine.rate.ns(logged.threshold_ticks);
    let full = if logged.dropped { "; the list was full" } else { "" };
    let (id, what) =
        (format!("stalls.{label}"), format!("stalls of {label} inside the loop, about every 50 us"));
    let share = r.share() * 100.0;
    let found = format!("{} in a gap: {share:.3} % (threshold {threshold_ns:.0} ns{full})", r.found);
    SelfCheck::new(&id, &what, &bar, format!("{} stalls", r.of), found, state)
}

fn durations(lab: &Lab, logged: &Logged) -> SelfCheck {
    let (id, what) = ("stalls.duration", "durations of all stalls of 100 ns and more");
    let bar = "95 % within 30 ns, the median error taken off";
    let (stalls, excess) = excess_from(logged, 100);
    let errors: Vec<f64> = excess.iter().map(|t| t * lab.machine.rate.ns_per_tick()).collect();
    let Some(e) = duration_error(&errors) else {
        return SelfCheck::not_shown(id, what, bar, "no stall was found");
    };
    let merged = errors.iter().filter(|x| **x - e.bias > MERGED_NS).count();
    let truth = format!("{stalls} stalls by their own stamps");
    let found = format!(
        "median error {:+.0} ns (stamps and turn), 95 % within {:.0} ns of it; {} merged with a real gap ({})",
        e.bias,
        e.p95,
        merged,
        percent(merged as f64 / e.n as f64)
    );
    SelfCheck::new(id, what, bar, truth, found, State::of(e.p95 <= P95_NS))
}

/// Stalls of `least_ns` and more, and what their gaps have beyond them, ticks.
fn excess_from(logged: &Logged, least_ns: u64) -> (usize, Vec<f64>) {
    let long = logged.stalls.iter().filter(|s| CLASSES[s.0].ns >= least_ns);
    let stalls: Vec<Gap> = long.map(|s| s.1).collect();
    (stalls.len(), excess_ticks(&stalls, &logged.gaps, &cover(&stalls, &logged.gaps)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_stalls_are_found_and_timed_on_a_busy_machine_too() {
        let lab = Lab::open(None, 7).unwrap();
        let begin_ns = machmeter_sys::thread::monotonic_ns();
        let logged = inject(&lab, 8e8).unwrap();
        let took_ns = machmeter_sys::thread::monotonic_ns() - begin_ns;
        assert!(took_ns < 10_000_000_000, "took {took_ns} ns for a loop of 0.8 s");
        let r = recall_of(&logged, 10_000);
        assert!(r.of >= 5, "only {} stalls of 10 us were done", r.of);
        assert!(r.share() >= 0.95, "{r:?}");
        let e = duration_error(&excess_from(&logged, 1_000).1).unwrap();
        assert!(e.bias >= 0.0 && lab.machine.rate.ns_per_tick() * e.bias < 1_000.0, "{e:?}");
    }

    #[test]
    fn a_plan_draws_every_class_as_often_as_it_says() {
        assert_eq!(CLASSES.iter().map(|c| c.per_mille).sum::<usize>(), 1000);
        let lab = Lab::open(None, 7).unwrap();
        let plan = plan(&lab, 20_000);
        for (i, c) in CLASSES.iter().enumerate() {
            let n = plan.iter().filter(|s| s.class == i).count();
            assert!(n.abs_diff(c.per_mille * 20) <= 40 + c.per_mille * 3, "{} ns: {n}", c.ns);
        }
    }
}
