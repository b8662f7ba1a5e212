//! Virtual time: the same scheduler over boxes that take `a + b load` and do nothing else, after Gedae's GSIM.
//!
//! Boxes with dynamic ports do their work; values that they decide by come from the tape of a real run. So counts are exact.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::Outcome;
use crate::check::wrong;
use crate::graph::{FlowError, Graph};
use crate::kernel::{Call, Watch};
use crate::names::Name;
use crate::profile::{Load, Profile};
use crate::program::{Choice, Program};
use crate::scheduler::Sampling;
use crate::topology::Topology;

/// What something takes by its load: lines from one measured load to the next, since caches end. Never below zero.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cost {
    /// Load and ns, ascending.
    points: Vec<(f64, f64)>,
}

impl Cost {
    /// Through means of different loads; equal ones together, each with the weight of its calls.
    pub fn through(loads: &[Load]) -> Self {
        let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for l in loads.iter().filter(|l| l.calls > 0) {
            let sum = sums.entry(l.load).or_default();
            *sum = (sum.0 + l.calls as f64 * l.mean_ns, sum.1 + l.calls as f64);
        }
        Self { points: sums.into_iter().map(|(load, (ns, calls))| (load as f64, ns / calls)).collect() }
    }

    /// The same for every load.
    pub fn level(ns: f64) -> Self {
        Self { points: vec![(0.0, ns)] }
    }

    /// Beyond the measured loads by the line through the least and the greatest; of a single one proportional to it.
    pub fn at(&self, load: u64) -> f64 {
        let x = load as f64;
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else { return 0.0 };
        if self.points.len() == 1 {
            return if first.0 > 0.0 { first.1 * x / first.0 } else { first.1 };
        }
        let on = |a: &(f64, f64), b: &(f64, f64), from: &(f64, f64)| {
            (from.1 + (b.1 - a.1) / (b.0 - a.0) * (x - from.0)).max(0.0)
        };
        match self.points.partition_point(|p| p.0 < x) {
            0 => on(first, last, first),
            n if n == self.points.len() => on(first, last, last),
            n => on(&self.points[n - 1], &self.points[n], &self.points[n]),
        }
    }
}

/// What boxes take by load, and names of the kernel a call by granularity.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Costs {
    pub boxes: Vec<Cost>,
    /// In the order of [`Name::ALL`]; that of apply is not used.
    pub names: Vec<Cost>,
}

/// Values that boxes decide by, of each box that gives such.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tape(Vec<Vec<u8>>);

impl Tape {
    /// Of a run of this graph.
    /// Errors: the graph cannot be run, or a box without dynamic ports is not always done: then it decides by more than counts.
    pub fn of(graph: Graph) -> Result<Self, FlowError> {
        let topology = Topology::of(&graph);
        if let Some(s) = graph.schedules.iter().find(|s| s.period_ns.is_some()) {
            return wrong(format!(
                "{}: schedule {} runs once a period, and virtual time has no such clock",
                graph.name, s.name
            ));
        }
        let name = graph.name.clone();
        let profile = Rc::new(Profile::new(&graph, 0));
        let watch = Rc::clone(&profile) as Rc<dyn Watch>;
        Program::watched(graph, Choice::FAST, &watch)?.run(Sampling::Never, u64::MAX, 1);
        match profile.left_early() {
            Some(number) => wrong(format!(
                "{name}: box {} is not always done, so that virtual time cannot stand for it: let `iterations` end its schedule",
                topology.boxes[number].name
            )),
            None => Ok(Self(profile.controls())),
        }
    }
}

struct Seeming {
    costs: Vec<Cost>,
    is_dynamic: Vec<bool>,
    tape: Tape,
    at: RefCell<Vec<usize>>,
    is_short: Cell<bool>,
    ns: Cell<f64>,
}

impl Watch for Seeming {
    fn fire(&self, call: &mut Call<'_>) -> Outcome {
        let number = call.number();
        let (load, outcome) = if self.is_dynamic[number] {
            let before = call.moved();
            let outcome = call.apply();
            (call.moved() - before, outcome)
        } else {
            if let Some(bytes) = call.control() {
                let at = &mut self.at.borrow_mut()[number];
                match self.tape.0[number].get(*at..*at + bytes.len()) {
                    Some(values) => bytes.copy_from_slice(values),
                    None => self.is_short.set(true),
                }
                *at += bytes.len();
            }
            (u64::from(call.times()), Outcome::Done)
        };
        self.ns.set(self.ns.get() + self.costs[number].at(load));
        outcome
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    pub boxes_ns: f64,
    pub kernel_ns: f64,
    /// In the order of [`Name::ALL`].
    pub called: Vec<u64>,
    /// Of each queue: name, most tokens in it, tokens left in it, tokens discarded.
    pub queues: Vec<(String, u64, u64, u64)>,
    pub copied_bytes: u64,
}

impl Forecast {
    pub fn wall_ns(&self) -> f64 {
        self.boxes_ns + self.kernel_ns
    }
}

/// Runs a graph in virtual time.
/// Errors: the graph cannot be run, it has another number of boxes than there are costs, or it needs more values than the tape has.
pub fn forecast(graph: Graph, choice: Choice, costs: &Costs, tape: &Tape) -> Result<Forecast, FlowError> {
    let topology = Topology::of(&graph);
    let (name, n) = (graph.name.clone(), topology.boxes.len());
    if costs.boxes.len() != n || tape.0.len() != n || costs.names.len() != Name::ALL.len() {
        let costs = costs.boxes.len();
        return wrong(format!("{name}: {n} boxes, and costs of {costs}: they are of another graph"));
    }
    let seeming = Rc::new(Seeming {
        costs: costs.boxes.clone(),
        is_dynamic: topology.boxes.iter().map(|b| b.is_dynamic).collect(),
        tape: tape.clone(),
        at: RefCell::new(vec![0; n]),
        is_short: Cell::new(false),
        ns: Cell::new(0.0),
    });
    let mut program = Program::watched(graph, choice, &(Rc::clone(&seeming) as Rc<dyn Watch>))?;
    // Timers count; the time that they see is that of this simulation, and not used.
    program.run(Sampling::Always, u64::MAX, 1);
    if seeming.is_short.get() {
        return wrong(format!("{name}: it needs more values than its tape has"));
    }
    let sums = program.log().sums();
    let called: Vec<u64> = sums.all().iter().map(|s| s.called).collect();
    let of_name = |(i, name): (usize, &Name)| {
        let each_ns = costs.names[i].at(u64::from(choice.granularity));
        if *name == Name::Apply { 0.0 } else { called[i] as f64 * each_ns }
    };
    Ok(Forecast {
        boxes_ns: seeming.ns.get(),
        kernel_ns: Name::ALL.iter().enumerate().map(of_name).sum(),
        queues: program.queues().map(|(name, a, b, c)| (name.to_owned(), a, b, c)).collect(),
        copied_bytes: program.copied_bytes(),
        called,
    })
}

#[cfg(test)]
#[path = "virtual_time_tests.rs"]
mod tests;
