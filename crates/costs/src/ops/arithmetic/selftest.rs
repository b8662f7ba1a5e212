//! Self-test: operations of known time, additions of known cycles, and many that cost next to nothing beside busy neighbors.

use machmeter_engine::cost::{Cost, Kind, Row};
use machmeter_engine::deadline;
use machmeter_engine::experiment::{Enough, sample_benches};
use machmeter_engine::sampling::{Bench, Pace, Subject};
use machmeter_engine::selftest::machine::{Busy, Machine, Steal};
use machmeter_engine::selftest::{Options, SelfCheck, Shown, State, check};
use machmeter_stats::quantile::median_of;
use machmeter_sys::kernel;

use machmeter_sys::thread::monotonic_ns;

use super::{CHAINS, PART};
use crate::ops::cost::COST;
use crate::ops::processes::selftest::measured;
use machmeter_loops::ops::passes::Passes;

/// Waits by the clock, and writes down how long each wait was.
struct Stall {
    length_ns: u64,
    log_ns: Vec<f64>,
}

impl Subject for &mut Stall {
    fn run(&mut self, turns: u64) -> bool {
        let mut begin_ns = monotonic_ns();
        for _ in 0..turns {
            let mut now_ns = begin_ns;
            while now_ns - begin_ns < self.length_ns {
                now_ns = monotonic_ns();
            }
            if self.log_ns.len() < self.log_ns.capacity() {
                self.log_ns.push((now_ns - begin_ns) as f64);
            }
            // Each wait begins where the one before ended, so that the log leaves nothing out.
            begin_ns = now_ns;
        }
        true
    }
}

/// Error that a cost may have beside its own interval.
const WRONG: f64 = 0.01;
/// Steps of the clock on both ends, ns.
const STEPS_NS: f64 = 40.0;

pub(super) fn planted(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    let what = "waits by the clock, priced like any operation";
    let bar = "1 % and 40 ns";
    let slice_ns = if options.quick { 200_000_000 } else { 1_000_000_000 };
    let shown = |length_ns| -> Shown {
        let (row, log_ns) = machine.sample(|sampler| {
            let mut stall = Stall { length_ns, log_ns: Vec::with_capacity(1 << 20) };
            let bench = Bench::new(Row::new("selftest", "stall", Kind::Latency), &mut stall);
            let (pace, until_ns) = (Pace::of(Pace::BATCH_NS, 5), monotonic_ns() + slice_ns);
            let mut rows = sample_benches(sampler, vec![bench], pace, Enough::ENDLESS, until_ns);
            (rows.remove(0), stall.log_ns)
        })?;
        let (ns_per_tick, step) = machine.tick();
        let cost = Cost::of(&row, ns_per_tick, step);
        let Cost::Known(k) = cost else { return Err(format!("{cost:?}")) };
        let truth_ns = median_of(&log_ns).ok_or("no wait")?;
        let truth = format!("{truth_ns:.0} ns, median of {} waits", log_ns.len());
        let found = format!("{:.0} ns [{:.0}, {:.0}], n {}", k.value_ns, k.low_ns, k.high_ns, k.n);
        let right = truth_ns * (1.0 - WRONG)..=truth_ns * (1.0 + WRONG) + STEPS_NS;
        Ok((truth, found, State::of(right.contains(&k.value_ns))))
    };
    let checked = |ns: u64| check(&format!("planted.{}us", ns / 1_000), what, bar, shown(ns));
    [1_000, 10_000, 100_000, 2_000_000].map(checked).into()
}

pub(super) fn known(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    const TRIES: usize = 3;
    let (id, what) = ("known.additions", "chains of dependent additions, 1 to 64 a turn");
    let bar =
        "slope within 1 % of the longest chain's, intercept within 0.1 cycles, no chain 1 % off the line";
    let budget_ns = if options.quick { 2_000_000_000 } else { 6_000_000_000 };
    let steal = Steal::watch();
    let one = || {
        let (_, analysis) = measured(machine, budget_ns, &serde_json::json!({"parts": [PART.name]}))?;
        let finding = analysis.findings.into_iter().find(|f| f.id == "ops.known_costs");
        finding.map(|f| (f.verdict == "holds", f.text)).ok_or_else(|| "no finding".to_owned())
    };
    let mut found = one();
    for _ in 1..TRIES {
        if matches!(found, Ok((false, _))) && !deadline::stop_requested() {
            found = one();
        }
    }
    let shown = found.map(|(holds, told)| {
        let stolen = steal.told(&machine.here()).filter(|_| !holds);
        let state = State::if_sure(holds, stolen.is_none());
        let found = stolen.map_or_else(|| told.clone(), |why| format!("{told} {why}"));
        ("as many cycles as additions".to_owned(), found, state)
    });
    vec![check(id, what, bar, shown)]
}

const ROWS: usize = 1_000;
const NEIGHBORS: usize = 4;

pub(super) fn nothing(machine: &Machine, _: &Options) -> Vec<SelfCheck> {
    let id = "nothing.never_negative";
    let what = format!(
        "{ROWS} rows of 0 to 64 additions in batches of 2 us, beside {NEIGHBORS} threads that want the CPUs"
    );
    let bar = "no figure that is negative, nothing or not a number; a bound or a reason instead";

    let names: Vec<String> = CHAINS.iter().map(|n| format!("adds.{n}")).chain(["empty".to_owned()]).collect();
    let busy = Busy::start(NEIGHBORS);
    let sampled = machine.sample(|sampler| {
        let bench = |i: usize| {
            let ready = kernel::named(&names[i % names.len()])?.of_registers(1)?;
            Some(Bench::new(Row::new("selftest", "few", Kind::Latency).with("row", i), Passes(ready)))
        };
        let benches: Vec<Bench<'_>> = (0..ROWS).filter_map(bench).collect();
        let until_ns = monotonic_ns() + 20_000_000_000;
        sample_benches(sampler, benches, Pace::of(2_000.0, 8), Enough::visits(1), until_ns)
    });
    drop(busy);
    let shown = sampled.map(|rows| judged(&rows, machine.tick()));
    vec![check(id, &what, bar, shown)]
}

/// What is true, what was found, and whether all costs of these rows are possible.
fn judged(rows: &[Row], (ns_per_tick, step): (f64, u64)) -> (String, String, State) {
    let (mut known, mut below, mut unknown, mut wrong) = (0, 0, 0, Vec::new());
    for row in rows {
        let cost = Cost::of(row, ns_per_tick, step);
        let value = cost.metric(&COST, row.params.clone()).value;
        let sound = |v: f64| v > 0.0 && v.is_finite();
        let (count, sane) = match &cost {
            Cost::Known(k) => (&mut known, sound(k.value_ns) && (k.low_ns..=k.high_ns).contains(&k.value_ns)),
            Cost::Below { bound_ns, .. } => (&mut below, sound(*bound_ns)),
            Cost::Unknown { why } => (&mut unknown, !why.is_empty() && value.is_none()),
        };
        *count += 1;
        if !sane || value.is_some_and(|v| !(v >= 0.0 && v.is_finite())) {
            wrong.push(format!("{cost:?}"));
        }
    }
    let first = wrong.first().map_or_else(String::new, |w| format!("; {w}"));
    let truth = format!("{} rows, none of which takes less than no time", rows.len());
    let found = format!(
        "{known} known, {below} below what the clock can tell, {unknown} unknown with a reason, {} impossible{first}",
        wrong.len()
    );
    (truth, found, State::of(wrong.is_empty() && rows.len() == ROWS))
}
