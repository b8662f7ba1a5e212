//! Virtual time: the same scheduler over boxes that take `a + b load` and do nothing else, after Gedae's GSIM.
//!
//! Boxes with dynamic ports do their work, for what they read and write is theirs to decide; values that they decide by come from a
//! tape that a real run made. So counts and levels of queues are exact, whatever granularity, queue sizes or kernel are asked for,
//! and time is as good as the lines are.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use machmeter_stats::regression::{Weighting, line};

use crate::Outcome;
use crate::graph::{FlowError, Graph};
use crate::kernel::{Call, Watch};
use crate::names::Name;
use crate::profile::{Load, Profile};
use crate::program::{Choice, Program};
use crate::scheduler::Sampling;
use crate::topology::Topology;

/// What something takes, ns: `fixed + per_load load`. Neither is below zero.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Line {
    pub fixed_ns: f64,
    pub per_load_ns: f64,
}

impl Line {
    /// Through means of different loads, each with the weight of its calls. Of a single load it is proportional to it:
    /// boxes work on tokens.
    pub fn through(loads: &[Load]) -> Self {
        let known: Vec<&Load> = loads.iter().filter(|l| l.calls > 0).collect();
        let (x, y, weights): (Vec<f64>, Vec<f64>, Vec<f64>) = (
            known.iter().map(|l| l.load as f64).collect(),
            known.iter().map(|l| l.mean_ns).collect(),
            known.iter().map(|l| l.calls as f64).collect(),
        );
        let calls: f64 = weights.iter().sum();
        let sum = |of: &dyn Fn(usize) -> f64| (0..x.len()).map(|i| weights[i] * of(i)).sum::<f64>();
        let mean_ns = sum(&|i| y[i]) / calls.max(f64::MIN_POSITIVE);
        let xx = sum(&|i| x[i] * x[i]);
        let proportional = Self { fixed_ns: 0.0, per_load_ns: sum(&|i| x[i] * y[i]) / xx };
        let is_one = x.windows(2).all(|w| w[0].to_bits() == w[1].to_bits());
        if is_one || xx <= 0.0 {
            return if xx > 0.0 { proportional } else { Self { fixed_ns: mean_ns, per_load_ns: 0.0 } };
        }
        let (fixed_ns, per_load_ns) = if let Ok(found) = line(&x, &y, Weighting::Relative(&weights)) {
            (found.coefficients[0], found.coefficients[1])
        } else {
            // Two points.
            let slope = (y[1] - y[0]) / (x[1] - x[0]);
            (y[0] - slope * x[0], slope)
        };
        if per_load_ns < 0.0 {
            Self { fixed_ns: mean_ns, per_load_ns: 0.0 }
        } else if fixed_ns < 0.0 {
            proportional
        } else {
            Self { fixed_ns, per_load_ns }
        }
    }

    pub fn at(&self, load: u64) -> f64 {
        self.fixed_ns + self.per_load_ns * load as f64
    }
}

/// What boxes take by load, and names of the kernel a call by granularity.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Costs {
    pub boxes: Vec<Line>,
    /// In the order of [`Name::ALL`]; that of apply is not used.
    pub names: Vec<Line>,
}

/// Values that boxes decide by, of each box that gives such.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tape(Vec<Vec<u8>>);

impl Tape {
    /// Of a run of this graph.
    ///
    /// # Errors
    /// The graph cannot be run, or a box without dynamic ports is not always done: then it decides by more than counts.
    pub fn of(graph: Graph) -> Result<Self, FlowError> {
        let topology = Topology::of(&graph);
        if let Some(s) = graph.schedules.iter().find(|s| s.period_ns.is_some()) {
            return Err(FlowError::Wrong(format!(
                "{}: schedule {} runs once a period, and virtual time has no such clock",
                graph.name, s.name
            )));
        }
        let name = graph.name.clone();
        let profile = Rc::new(Profile::new(&graph, 0));
        let watch: Rc<dyn Watch> = Rc::clone(&profile) as Rc<dyn Watch>;
        Program::watched(graph, Choice::FAST, &watch)?.run(Sampling::Never, u64::MAX, 1);
        match profile.left_early() {
            Some(number) => Err(FlowError::Wrong(format!(
                "{name}: box {} is not always done, so that virtual time cannot stand for it: let `iterations` end its schedule",
                topology.boxes[number].name
            ))),
            None => Ok(Self(profile.controls())),
        }
    }
}

/// Boxes that only seem to work.
struct Seeming {
    costs: Vec<Line>,
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

/// What a run would be.
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
///
/// # Errors
/// The graph cannot be run, it has another number of boxes than there are costs, or it needs more values than the tape has.
pub fn forecast(graph: Graph, choice: Choice, costs: &Costs, tape: &Tape) -> Result<Forecast, FlowError> {
    let topology = Topology::of(&graph);
    let (name, n) = (graph.name.clone(), topology.boxes.len());
    if costs.boxes.len() != n || tape.0.len() != n || costs.names.len() != Name::ALL.len() {
        return Err(FlowError::Wrong(format!(
            "{name}: {n} boxes, and costs of {}: they are of another graph",
            costs.boxes.len()
        )));
    }
    let seeming = Rc::new(Seeming {
        costs: costs.boxes.clone(),
        is_dynamic: topology.boxes.iter().map(|b| b.is_dynamic).collect(),
        tape: tape.clone(),
        at: RefCell::new(vec![0; n]),
        is_short: Cell::new(false),
        ns: Cell::new(0.0),
    });
    let watch: Rc<dyn Watch> = Rc::clone(&seeming) as Rc<dyn Watch>;
    let mut program = Program::watched(graph, choice, &watch)?;
    // Timers count; the time that they see is that of this simulation, and not used.
    program.run(Sampling::Always, u64::MAX, 1);
    if seeming.is_short.get() {
        return Err(FlowError::Wrong(format!("{name}: it needs more values than its tape has")));
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
        called: called.clone(),
    })
}

#[cfg(test)]
#[path = "virtual_time_tests.rs"]
mod tests;
