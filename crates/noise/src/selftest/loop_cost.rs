//! What a turn of the loop costs, against the smallest loop that could do its work, in the same moments.

use std::sync::atomic::AtomicBool;

use machmeter_stats::histogram::LogHistogram;
use machmeter_stats::quantile::{median_of, quantile, sorted};
use machmeter_sys::Refused;
use machmeter_sys::clock::{self, SourceId};

use super::lab::Lab;
use super::{Options, SelfCheck, State};
use machmeter_loops::noise::kernel::Quantum1;
#[cfg(target_arch = "x86_64")]
use machmeter_loops::noise::kernel::bare_loop;
use machmeter_loops::noise::measure::{Buffers, Gap, Schedule, Sums, threshold_ticks};
use machmeter_loops::noise::{Unit, bursts, record_unit};

/// Windows of one burst of the loop; as many bursts of the bare loop follow.
const WINDOWS: usize = 20;
/// Length of a window, ns: short enough that several lie between two ticks of the kernel.
const WINDOW_NS: f64 = 200_000.0;
/// A turn may cost this where one read costs [`READ_NS`] or less (two take 15 ns), ns.
const TURN_NS: f64 = 10.5;
const READ_NS: f64 = 7.5;
/// Elsewhere the turn may cost this many times the bare loop's.
const RATIO: f64 = 1.1;
/// Spread of undisturbed windows: distance from p50 to p90 over p50.
const SPREAD: f64 = 0.0002;
/// Undisturbed windows of a burst, and bursts with so many, needed to speak of a spread.
const MIN_WINDOWS: usize = 6;
const MIN_BURSTS: usize = 10;

/// What the bursts gave: ticks per turn of whole windows, of whole bare bursts, and of the gap-free windows of each burst.
struct Costs {
    ours: Vec<f64>,
    bare: Vec<f64>,
    quiet: Vec<Vec<f64>>,
}

struct Alternate {
    window_ticks: u64,
    step_ticks: u64,
    rounds: usize,
}

impl Alternate {
    /// On the calling thread.
    fn run(self, source: SourceId) -> Result<Costs, Refused> {
        let mut unit = Unit::One(Quantum1::default());
        let calibrated = bursts(source, &mut unit)?;
        let threshold_ticks =
            threshold_ticks(&calibrated, self.step_ticks, u64::MAX).unwrap_or(self.step_ticks * 5);
        let mut costs = Costs { ours: Vec::new(), bare: Vec::new(), quiet: Vec::new() };
        let (mut counts, mut sums) = ([0_u32; WINDOWS], [Sums::default(); WINDOWS]);
        let mut gaps = vec![Gap::default(); 4096];
        let mut histogram = LogHistogram::new();
        for _ in 0..self.rounds {
            let t0_ticks = clock::now(source)? + self.window_ticks / 100;
            let schedule = Schedule::all_listed(t0_ticks, self.window_ticks, WINDOWS, threshold_ticks);
            let mut buffers = Buffers::new(&schedule, &mut counts, &mut sums, &mut gaps, &mut histogram);
            record_unit(source, &mut unit, &schedule, &mut buffers, &AtomicBool::new(false))?;
            let listed = buffers.listed();
            let listed = &gaps[..listed];
            let mut quiet = Vec::new();
            for (k, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
                let cost = self.window_ticks as f64 / f64::from(*n);
                costs.ours.push(cost);
                let (a, b) =
                    (t0_ticks + k as u64 * self.window_ticks, t0_ticks + (k as u64 + 1) * self.window_ticks);
                if !listed.iter().any(|g| g.end_ticks >= a && g.start_ticks <= b) {
                    quiet.push(cost);
                }
            }
            costs.quiet.push(quiet);
            #[cfg(target_arch = "x86_64")]
            for _ in 0..WINDOWS {
                let (turns, ticks) = bare_loop(self.window_ticks, threshold_ticks);
                costs.bare.push(ticks as f64 / turns.max(1) as f64);
            }
        }
        Ok(costs)
    }
}

/// Distance from p50 to p90 of the speed within a burst of 4 ms over p50, median over bursts: how steady the loop is, not
/// the clock over seconds. Interruptions only lengthen: the slower half belongs to them.
fn spread<'a>(bursts: impl Iterator<Item = &'a [f64]>) -> Option<f64> {
    let spreads: Vec<f64> = bursts
        .filter(|b| b.len() >= MIN_WINDOWS)
        .filter_map(|b| {
            let s = sorted(b).ok()?;
            let (median, fast) = (quantile(&s, 0.5)?, quantile(&s, 0.1)?);
            (median > 0.0).then(|| (median - fast) / median)
        })
        .collect();
    if spreads.len() < MIN_BURSTS { None } else { median_of(&spreads) }
}

pub(super) fn checks(lab: &Lab, options: &Options) -> Vec<SelfCheck> {
    let work = Alternate {
        window_ticks: lab.machine.rate.ticks(WINDOW_NS),
        step_ticks: lab.machine.clock.step_ticks(),
        rounds: if options.quick { 60 } else { 250 },
    };
    let (what, bar) = ("turns of the loop at quantum 1, bare loop in between", "at most 10.5 ns");
    match lab.alone("mm-loop", |source| work.run(source).map_err(|e| e.to_string())) {
        Ok(costs) => vec![turn(lab, &costs, what), steady(&costs)],
        Err(e) => vec![SelfCheck::not_shown("loop.turn", what, bar, e)],
    }
}

/// The fastest burst of each loop decides: noise only lengthens.
fn turn(lab: &Lab, costs: &Costs, what: &str) -> SelfCheck {
    let least =
        |xs: &[f64]| xs.iter().copied().min_by(f64::total_cmp).map(|t| t * lab.machine.rate.ns_per_tick());
    let read_ns = lab.machine.clock.read_cost_ns().unwrap_or(f64::INFINITY);
    let (Some(ours), Some(bare)) = (least(&costs.ours), least(&costs.bare)) else {
        return SelfCheck::not_shown("loop.turn", what, "-", "there is no bare loop for this processor");
    };
    let (bar, met) = if read_ns <= READ_NS {
        (format!("at most {TURN_NS} ns per turn"), ours <= TURN_NS)
    } else {
        (
            format!(
                "at most {RATIO} times the bare loop ({TURN_NS} ns where a read costs {READ_NS} ns or less)"
            ),
            ours <= RATIO * bare,
        )
    };
    let median = |xs: &[f64]| median_of(xs).map_or(0.0, |t| t * lab.machine.rate.ns_per_tick());
    let truth = format!(
        "bare loop {bare:.2} ns at best, median {:.2} ns; one tick read {read_ns:.1} ns",
        median(&costs.bare)
    );
    let found = format!(
        "{ours:.2} ns at best, median {:.2} ns, ratio {:.3} ({} windows of 200 us)",
        median(&costs.ours),
        ours / bare,
        costs.ours.len()
    );
    SelfCheck::new("loop.turn", what, &bar, truth, found, State::of(met))
}

fn steady(costs: &Costs) -> SelfCheck {
    let what = "windows of 200 us without a gap, within bursts of 4 ms";
    let bar = "p50 to p90 within 0.02 %, where the bare loop is as steady";
    let windows: usize = costs.quiet.iter().map(Vec::len).sum();
    let bare = spread(costs.bare.chunks(WINDOWS));
    let (Some(ours), Some(bare)) = (spread(costs.quiet.iter().map(Vec::as_slice)), bare) else {
        let why = if costs.bare.is_empty() {
            "there is no bare loop for this processor".to_owned()
        } else {
            format!("only {windows} of {} windows were undisturbed", costs.ours.len())
        };
        return SelfCheck::not_shown("loop.spread", what, bar, why);
    };
    let state = State::if_sure(ours <= SPREAD, bare <= SPREAD);
    let unsteady = if state == State::NotShown { "; the machine's speed itself varied" } else { "" };
    let truth = format!("bare loop {:.4} %", bare * 100.0);
    let found = format!("{:.4} % over {windows} windows{unsteady}", ours * 100.0);
    SelfCheck::new("loop.spread", what, bar, truth, found, state)
}
