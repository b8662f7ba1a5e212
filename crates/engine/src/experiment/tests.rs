//! The pool on simulated time, with a neighbor on the core that comes and goes.

use std::cell::Cell as Shared;
use std::rc::Rc;

use machmeter_sys::clock::TickRate;

use super::*;
use crate::cost::{Kind, Rows};
use crate::deadline::Deadline;
use crate::disturbance::sibling::CoreLook;
use crate::host::Silent;
use crate::sampling::{Bench, Mark, Pace, Subject, Timing};

/// A machine on whose core somebody else works from 100 to 400 ms of every half second.
#[derive(Clone, Default)]
struct Machine(Rc<Shared<u64>>);

impl Machine {
    fn is_shared(&self) -> bool {
        (100_000_000..400_000_000).contains(&(self.0.get() % 500_000_000))
    }

    fn passes(&self, ns: f64) {
        let ns = if self.is_shared() { 1.4 * ns } else { ns };
        self.0.set(self.0.get() + ns as u64);
    }

    fn bench(&self, part: &str, name: &str, each_ns: f64) -> Bench<'static> {
        Bench::new(Row::new(part, name, Kind::Latency), Planted { machine: self.clone(), each_ns })
    }

    fn sampler(&self) -> Sampler {
        Sampler::new(self.clone(), TickRate::NANOSECONDS, 5)
    }
}

impl Timing for Machine {
    fn ticks(&mut self) -> u64 {
        self.0.get()
    }
    fn mark(&mut self) -> Mark {
        Mark::default()
    }
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
    fn look_at_core(&mut self) -> CoreLook {
        CoreLook { width: if self.is_shared() { 2.1 } else { 3.9 }, addition_ticks: 0.0 }
    }
}

struct Planted {
    machine: Machine,
    each_ns: f64,
}

impl Subject for Planted {
    fn run(&mut self, turns: u64) -> bool {
        self.machine.passes(60.0 + turns as f64 * self.each_ns);
        true
    }
}

fn run(machine: &Machine, experiment: Experiment<'_>, until_ns: u64) -> Vec<Finished> {
    experiment.run(&mut machine.sampler(), &Deadline::until(until_ns), Enough::QUICK, 9, &Silent)
}

#[test]
fn every_row_has_its_undisturbed_samples_and_then_the_run_ends() {
    let machine = Machine::default();
    let planted: Vec<f64> = (0..40).map(|i| 3.0 * 1.2_f64.powi(i)).collect();
    let mut experiment = Experiment::new(None);
    for (part, half) in ["first", "second"].into_iter().zip(planted.chunks(20)) {
        let benches =
            half.iter().enumerate().map(|(i, ns)| machine.bench(part, &i.to_string(), *ns)).collect();
        let cells = CellList::of_benches(benches, Pace::of(Pace::BATCH_NS, 4));
        experiment.add(Box::new(cells), 1.0);
    }
    let until_ns = 20_000_000_000;
    let found = run(&machine, experiment, until_ns);
    assert!(machine.0.get() < until_ns / 2, "{} ns were used", machine.0.get());
    let rows: Vec<Row> = found.into_iter().flat_map(|f| f.rows).collect();
    let mut all = Rows::in_nanoseconds(rows);
    all.store_core();
    for (row, truth) in all.rows.iter().zip(planted) {
        let cost = all.cost(row);
        let k = cost.known().unwrap_or_else(|| panic!("{cost:?}"));
        assert!((k.value_ns / truth - 1.0).abs() < 0.01, "{truth}: {k:?}");
        assert!(k.low_ns <= truth * 1.002 && truth * 0.998 <= k.high_ns, "{truth}: {k:?}");
    }
}

#[test]
fn parts_share_the_time_by_weight_and_all_of_the_time() {
    let machine = Machine::default();
    let mut experiment = Experiment::new(Some(9.9));
    for (part, weight) in [("light", 1.0), ("heavy", 3.0)] {
        // Widths are never those of a whole core: rows never have enough.
        let benches = (0..10).map(|i| machine.bench(part, &i.to_string(), 50.0)).collect();
        experiment.add(Box::new(CellList::of_benches(benches, Pace::of(Pace::BATCH_NS, 4))), weight);
    }
    let until_ns = 400_000_000;
    let found = run(&machine, experiment, until_ns);
    let pairs = |f: &Finished| f.rows.iter().map(|r| r.pairs.len()).sum::<usize>() as f64;
    let ratio = pairs(&found[1]) / pairs(&found[0]);
    assert!((2.5..3.5).contains(&ratio), "{ratio}");
    let used_ns = machine.0.get();
    assert!((until_ns - 10_000_000..until_ns + 10_000_000).contains(&used_ns), "{used_ns}");
    for row in found.iter().flat_map(|f| &f.rows) {
        let each = pairs(&found[usize::from(row.part == "heavy")]) / 10.0;
        assert!((row.pairs.len() as f64 - each).abs() <= 4.0, "a round cut short leaves no holes");
    }
}

#[test]
fn every_row_has_its_first_visit_before_any_has_its_second() {
    let machine = Machine::default();
    let mut experiment = Experiment::new(None);
    for (part, weight, count) in [("light", 1.0, 20), ("heavy", 100.0, 3)] {
        let benches = (0..count).map(|i| machine.bench(part, &i.to_string(), 50.0)).collect();
        experiment.add(Box::new(CellList::of_benches(benches, Pace::of(Pace::BATCH_NS, 2))), weight);
    }
    let found = run(&machine, experiment, 5_000_000_000);
    let at = |visit: u32| {
        let pairs = found.iter().flat_map(|f| &f.rows).flat_map(|r| &r.pairs);
        pairs.filter(move |p| p.visit == visit).map(|p| p.at_ns)
    };
    assert_eq!(at(1).count(), 2 * 23);
    assert!(at(1).fold(0.0, f64::max) < at(2).fold(f64::INFINITY, f64::min));
}

/// Proposes a second cell once the first has been visited, and a third that costs more than there is time for.
struct Proposes {
    machine: Machine,
    cells: CellList<'static>,
}

impl Set for Proposes {
    fn count(&self) -> usize {
        self.cells.count()
    }

    fn cell(&mut self, index: usize) -> &mut (dyn Cell + '_) {
        self.cells.cell(index)
    }

    fn propose(&mut self, outlook: &Outlook) {
        assert!(outlook.left_ns > 0);
        if self.cells.count() == 1 {
            for (name, batch_ns) in [("second", Pace::BATCH_NS), ("third", 1e12)] {
                let bench = self.machine.bench("p", name, 7.0);
                self.cells.push(BenchCell { bench, pace: Pace::of(batch_ns, 4) });
            }
        }
    }

    fn finish(self: Box<Self>) -> Finished {
        Box::new(self.cells).finish()
    }
}

#[test]
fn what_is_proposed_is_visited_as_far_as_there_is_time() {
    let machine = Machine::default();
    let first = vec![machine.bench("p", "first", 5.0)];
    let cells = CellList::of_benches(first, Pace::of(Pace::BATCH_NS, 4));
    let mut experiment = Experiment::new(None);
    experiment.add(Box::new(Proposes { machine: machine.clone(), cells }), 1.0);
    let found = run(&machine, experiment, 5_000_000_000);
    let pairs: Vec<usize> = found[0].rows.iter().map(|r| r.pairs.len()).collect();
    assert!(pairs[0] >= 24 && pairs[1] >= 24 && pairs[2] == 0, "{pairs:?}");
}
