//! Self-test: boxes that wait, books that have to close, the loop over boxes beside a bare one.

use machmeter_engine::cost::{Kind, Row, Rows};
use machmeter_engine::experiment::{Enough, sample_benches};
use machmeter_engine::sampling::Bench;
use machmeter_engine::selftest::machine::{Machine, Steal};
use machmeter_engine::selftest::{Options, SelfCheck, State, check, percent};
use machmeter_flow::boxes::function;
use machmeter_flow::graphs::primitives::idle;
use machmeter_flow::table::Table;
use machmeter_flow::{Graph, Name, Outcome, Program, Sampling};
use machmeter_stats::quantile::median_of;
use machmeter_sys::clock::{OrderedCounter, TickSource};
use machmeter_sys::thread::monotonic_ns;

use crate::files::Over;
use crate::graphs::GRAPHS;
use crate::kernels::Kernel;
use crate::prices::{BOXES, BareCalls, PACE, PART, Turns};

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

pub(crate) fn firing(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    let what = "boxes that do nothing, fired by the kernel and called by a plain loop over a table";
    let bar = "at most 2 bare calls";
    let (step_ticks, tick_hz) = (machine.clock.step_ticks(), machine.rate.hz());
    let ratio = || -> Result<f64, String> {
        let rows = machine.sample(|sampler| {
            let row = |operation: &str| Row::new(PART, operation, Kind::Latency).per_turn(BOXES as f64);
            let firing = Bench::new(row("firing"), Turns(program(idle(BOXES))?));
            let benches = vec![firing, Bench::new(row("bare call"), BareCalls::new(BOXES))];
            let until_ns = monotonic_ns() + 500_000_000;
            Ok::<_, String>(sample_benches(sampler, benches, PACE, Enough::QUICK, until_ns))
        })??;
        let rows = Rows { tick_hz, step_ticks, rows, ..Rows::default() };
        let ns: Vec<f64> = rows.rows.iter().filter_map(|r| Some(rows.cost(r).known()?.value_ns)).collect();
        if let [firing, bare] = ns[..] { Ok(firing / bare) } else { Err("no figure".to_owned()) }
    };
    let shown = repeated(options, ratio).map(|ratios| {
        let ratio = middle(&ratios, |r| *r);
        let (truth, found) = ("a call through a table".to_owned(), format!("{ratio:.2} bare calls"));
        (truth, found, State::if_sure(ratio <= MOST_FIRING, true))
    });
    vec![check("firing.loop", what, bar, shown)]
}

/// A program of the fast kernel.
fn program(graph: Graph) -> Result<Program, String> {
    Program::new(graph, Kernel::FAST.choice(1)).map_err(|e| e.to_string())
}

/// Runs with timers until the end, or for so many turns; what they said.
fn timed(mut program: Program, turns: u64) -> Program {
    program.log().calibrate();
    program.run(Sampling::Always, turns, 1);
    program
}

/// Wall time of a run without timers, ns.
fn wall_ns(mut program: Program, turns: u64, ns_per_tick: f64) -> f64 {
    let begin = OrderedCounter::now();
    program.run(Sampling::Never, turns, 1);
    (OrderedCounter::now() - begin) as f64 * ns_per_tick
}

/// What boxes wait for, ns.
const WAITS_NS: [f64; 4] = [20.0, 60.0, 150.0, 500.0];
/// Means may be off by this share, or so many ns.
const OFF: f64 = 0.1;
const OFF_NS: f64 = 5.0;
const TURNS: u64 = 10_000;

pub(crate) fn waits(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    let what = "boxes that wait, timed by the kernel and by the wall without any timer";
    let bar = "within 5 ns or 10 %";
    let ns_per_tick = machine.rate.ns_per_tick();
    let steal = Steal::watch();
    let once = |wait_ns: f64| -> Result<(f64, f64, bool), String> {
        let waiting = |boxes: usize| {
            let mut g = Graph::new("waits");
            for i in 0..boxes {
                let ticks = (wait_ns / ns_per_tick) as u64;
                let wait = function::<(), _>(move |()| {
                    let begin = OrderedCounter::now();
                    while OrderedCounter::now() - begin < ticks {}
                    Outcome::Done
                });
                g.add(&format!("wait{i}"), wait, ());
            }
            program(g)
        };
        // The time of a box by differences of wall times: ten boxes and none but one.
        let wall = |boxes| Ok::<f64, String>(wall_ns(waiting(boxes)?, TURNS, ns_per_tick) / TURNS as f64);
        let truth = (wall(11)? - wall(1)?) / 10.0;
        let timed = timed(waiting(10)?, TURNS);
        let sums = timed.log().sums();
        let ticks = sums.of(Name::Apply as u8).mean + sums.of(Name::RunSchedPass as u8).mean;
        Ok((truth, ticks * ns_per_tick, sums.raw_ticks() == sums.wall_ticks))
    };
    let check_wait = |wait_ns: f64| {
        let shown = repeated(options, || once(wait_ns)).map(|seen| {
            let (truth, found) = (middle(&seen, |s| s.0), middle(&seen, |s| s.1));
            let close = seen.iter().all(|s| s.2);
            let met = (found - truth).abs() <= (OFF * truth).max(OFF_NS) && close;
            let books = if close { "books close" } else { "books do not close" };
            let state = State::if_sure(met, steal.told(&machine.allowed).is_none());
            (format!("{truth:.1} ns"), format!("{found:.1} ns; {books}"), state)
        });
        check(&format!("waits.{wait_ns}ns"), what, bar, shown)
    };
    WAITS_NS.map(check_wait).to_vec()
}

/// Times of all names together may be off from the wall without timers by this share.
const SUM_OFF: f64 = 0.1;

pub(crate) fn graphs(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    let what = "a benchmark graph: times of all names beside the wall without timers, books and laws";
    let bar = "within 10 %, books close to the tick, no law broken";
    let ns_per_tick = machine.rate.ns_per_tick();
    let steal = Steal::watch();
    let once = |known: &crate::graphs::Known| -> Result<(f64, String), String> {
        let new = || program((known.build)(Graph::new(known.name).fused(true), &Over::default()));
        let wall_ns = wall_ns(new()?, u64::MAX, ns_per_tick);
        let timed = timed(new()?, u64::MAX);
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
    let check_graph = |known| {
        let shown = repeated(options, || once(known)).map(|seen| {
            let wrong: String = seen.iter().map(|s| s.1.as_str()).collect();
            let off = (middle(&seen, |s| s.0) - 1.0).abs();
            let sure = steal.told(&machine.allowed).is_none() || !wrong.is_empty();
            let state = State::if_sure(off <= SUM_OFF && wrong.is_empty(), sure);
            ("the wall".to_owned(), format!("{} off{wrong}", percent(off)), state)
        });
        check(&format!("graphs.{}", known.name), what, bar, shown)
    };
    GRAPHS.iter().map(check_graph).collect()
}
