//! Self-test: boxes that wait and log how long, books that have to close, the loop over boxes beside a bare one.

use std::cell::Cell;
use std::rc::Rc;

use machmeter_engine::cost::{Kind, Row, Rows};
use machmeter_engine::experiment::{Enough, sample_benches};
use machmeter_engine::sampling::{Bench, Pace};
use machmeter_engine::selftest::machine::{Machine, Steal};
use machmeter_engine::selftest::{Options, SelfCheck, State, percent};
use machmeter_flow::graphs::primitives::idle;
use machmeter_flow::table::Table;
use machmeter_flow::{Graph, Name, Outcome, Primitive, Program, Sampling};
use machmeter_stats::quantile::median_of;
use machmeter_sys::clock::{OrderedCounter, TickSource};
use machmeter_sys::thread::monotonic_ns;

use crate::files::Over;
use crate::graphs::GRAPHS;
use crate::kernels::Kernel;
use crate::prices::{BOXES, BareCalls, PART, Turns};

/// Runs of which the median counts, quick and full.
const RUNS: [usize; 2] = [3, 5];

fn repeated<T>(options: &Options, once: impl Fn() -> Result<T, String>) -> Result<Vec<T>, String> {
    (0..RUNS[usize::from(!options.quick)]).map(|_| once()).collect()
}

/// The median; there are runs.
fn middle<T>(runs: &[T], of: impl Fn(&T) -> f64) -> f64 {
    median_of(&runs.iter().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// A firing costs at most twice a bare call through a table.
const MOST_FIRING: f64 = 2.0;

pub(crate) fn firing(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    let what = "boxes that do nothing, fired by the kernel and called by a plain loop over a table";
    let bar = "at most 2 bare calls";
    let (step_ticks, tick_hz) = (machine.clock.step_ticks(), machine.rate.hz());
    let ratio = || -> Result<f64, String> {
        let rows = machine.sample(|sampler| {
            let row = |operation: &str| Row::new(PART, operation, Kind::Latency).per_turn(BOXES as f64);
            let program = Program::new(idle(BOXES), Kernel::FAST.choice(1)).map_err(|e| e.to_string())?;
            let benches = vec![
                Bench::new(row("firing"), Turns(program)),
                Bench::new(row("bare call"), BareCalls::new(BOXES)),
            ];
            let until_ns = monotonic_ns() + 500_000_000;
            Ok::<_, String>(sample_benches(
                sampler,
                benches,
                Pace::of(Pace::BATCH_NS, 12),
                Enough::QUICK,
                until_ns,
            ))
        })??;
        let rows = Rows { tick_hz, step_ticks, rows, ..Rows::default() };
        let ns: Vec<f64> = rows.rows.iter().filter_map(|r| Some(rows.cost(r).known()?.value_ns)).collect();
        if let [firing, bare] = ns[..] { Ok(firing / bare) } else { Err("no figure".to_owned()) }
    };
    vec![match repeated(options, ratio) {
        Ok(ratios) => {
            let ratio = middle(&ratios, |r| *r);
            let (truth, found) = ("a call through a table".to_owned(), format!("{ratio:.2} bare calls"));
            let state = State::if_sure(ratio <= MOST_FIRING, true);
            SelfCheck::new("firing.loop", what, bar, truth, found, state)
        }
        Err(why) => SelfCheck::not_shown("firing.loop", what, bar, why),
    }]
}

/// Waits, and logs for how long in all when it is asked to.
struct Wait {
    ticks: u64,
    log: Rc<Cell<u64>>,
}
impl Primitive for Wait {
    type Ports = ();
    fn apply(&mut self, (): ()) -> Outcome {
        let begin = OrderedCounter::now();
        let mut now = begin;
        while now - begin < self.ticks {
            now = OrderedCounter::now();
        }
        self.log.set(self.log.get() + (now - begin));
        Outcome::Done
    }
}

/// What boxes wait for, ns.
const WAITS_NS: [f64; 4] = [20.0, 60.0, 150.0, 500.0];
/// Means may be off by this share, or so many ns.
const OFF: f64 = 0.1;
const OFF_NS: f64 = 5.0;
const TURNS: u64 = 100_000;

pub(crate) fn waits(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    let what = "boxes that wait, timed by the kernel and by the wall without any timer";
    let bar = "within 5 ns or 10 %";
    let ns_per_tick = machine.rate.ns_per_tick();
    let steal = Steal::watch();
    let once = |wait_ns: f64| -> Result<(f64, f64, bool), String> {
        let program = |boxes: usize| {
            let mut g = Graph::new("waits");
            for i in 0..boxes {
                let wait = Wait { ticks: (wait_ns / ns_per_tick) as u64, log: Rc::default() };
                g.add(&format!("wait{i}"), wait, ());
            }
            Program::new(g, Kernel::FAST.choice(1)).map_err(|e| e.to_string())
        };
        let turns = TURNS / 10;
        // The time of a box by differences of wall times: ten boxes and none but one.
        let wall = |boxes: usize| {
            let mut p = program(boxes)?;
            let begin = OrderedCounter::now();
            p.run(Sampling::Never, turns, 1);
            Ok::<f64, String>((OrderedCounter::now() - begin) as f64 * ns_per_tick / turns as f64)
        };
        let truth = (wall(11)? - wall(1)?) / 10.0;
        let mut timed = program(10)?;
        timed.log().calibrate();
        timed.run(Sampling::Always, turns, 1);
        let sums = timed.log().sums();
        let found = sums.of(Name::Apply as u8).mean * ns_per_tick
            + sums.of(Name::RunSchedPass as u8).mean * ns_per_tick;
        Ok((truth, found, sums.raw_ticks() == sums.wall_ticks))
    };
    WAITS_NS
        .iter()
        .map(|wait_ns| {
            let id = format!("waits.{wait_ns}ns");
            let seen = match repeated(options, || once(*wait_ns)) {
                Ok(seen) => seen,
                Err(why) => return SelfCheck::not_shown(&id, what, bar, why),
            };
            let (truth, found) = (middle(&seen, |s| s.0), middle(&seen, |s| s.1));
            let met = (found - truth).abs() <= (OFF * truth).max(OFF_NS) && seen.iter().all(|s| s.2);
            let books = if seen.iter().all(|s| s.2) { "books close" } else { "books do not close" };
            let state = State::if_sure(met, steal.told(&machine.allowed).is_none());
            SelfCheck::new(&id, what, bar, format!("{truth:.1} ns"), format!("{found:.1} ns; {books}"), state)
        })
        .collect()
}

/// Times of all names together may be off from the wall without timers by this share.
const SUM_OFF: f64 = 0.1;

pub(crate) fn graphs(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    let what = "a benchmark graph: times of all names beside the wall without timers, books and laws";
    let bar = "within 10 %, books close to the tick, no law broken";
    let ns_per_tick = machine.rate.ns_per_tick();
    let steal = Steal::watch();
    let once = |known: &crate::graphs::Known| -> Result<(f64, String), String> {
        let program = || {
            let g = (known.build)(Graph::new(known.name).fused(true), &Over::default());
            Program::new(g, Kernel::FAST.choice(1)).map_err(|e| e.to_string())
        };
        let mut plain = program()?;
        let begin = OrderedCounter::now();
        plain.run(Sampling::Never, u64::MAX, 1);
        let wall_ns = (OrderedCounter::now() - begin) as f64 * ns_per_tick;
        let mut timed = program()?;
        timed.log().calibrate();
        timed.run(Sampling::Always, u64::MAX, 1);
        let sums = timed.log().sums();
        let table = Table::new(Name::TEXTS, &sums, ns_per_tick, false);
        let mut wrong = String::new();
        if sums.raw_ticks() != sums.wall_ticks {
            wrong.push_str("; books do not close");
        }
        drop(sums);
        for law in timed.broken_laws() {
            wrong.push_str("; ");
            wrong.push_str(&law);
        }
        Ok((table.total_ns() / wall_ns, wrong))
    };
    GRAPHS
        .iter()
        .map(|known| {
            let id = format!("graphs.{}", known.name);
            let seen = match repeated(options, || once(known)) {
                Ok(seen) => seen,
                Err(why) => return SelfCheck::not_shown(&id, what, bar, why),
            };
            let wrong: String = seen.iter().map(|s| s.1.as_str()).collect();
            let ratio = middle(&seen, |s| s.0);
            let met = (ratio - 1.0).abs() <= SUM_OFF && wrong.is_empty();
            let sure = steal.told(&machine.allowed).is_none() || !wrong.is_empty();
            let found = format!("{} off{wrong}", percent((ratio - 1.0).abs()));
            SelfCheck::new(&id, what, bar, "the wall".to_owned(), found, State::if_sure(met, sure))
        })
        .collect()
}
