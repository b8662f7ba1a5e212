//! What runs of a graph say of each box and queue: cost by load, firings one by one, levels over time.

use std::rc::Rc;

use machmeter_engine::cost::{Kind, Pair, Row};
use machmeter_flow::profile::{Load, Look, Profile};
use machmeter_flow::topology::{Link, Node, Topology};
use machmeter_flow::{Choice, Graph, Program, Sampling, Watch};
use machmeter_stats::quantile::median_of;
use serde::{Deserialize, Serialize};

use crate::graphs::PART;

/// Firings that are kept one by one of the first run of a graph.
const MOST_FIRINGS: usize = 4_000;

/// A box with what its applies took, medians over runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BoxCost {
    pub(crate) name: String,
    pub(crate) schedule: String,
    pub(crate) loads: Vec<Load>,
}

impl BoxCost {
    pub(crate) fn calls(&self) -> u64 {
        self.loads.iter().map(|l| l.calls).sum()
    }
    pub(crate) fn total_ns(&self) -> f64 {
        self.loads.iter().map(|l| l.calls as f64 * l.mean_ns).sum()
    }
    /// Firings, or tokens moved by boxes with dynamic ports.
    pub(crate) fn loaded(&self) -> u64 {
        self.loads.iter().map(|l| l.calls * l.load).sum()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Levels {
    /// After the first firing.
    pub(crate) at_ns: Vec<f64>,
    /// Tokens, by queue.
    pub(crate) tokens: Vec<Vec<u64>>,
}

impl Levels {
    /// Of looks that each hold until the next.
    pub(crate) fn mean(&self, queue: usize) -> Option<f64> {
        let (at, tokens) = (&self.at_ns, self.tokens.get(queue)?);
        let whole_ns = at.last()? - at.first()?;
        let weighted: f64 = at.windows(2).zip(tokens).map(|(w, t)| (w[1] - w[0]) * *t as f64).sum();
        (whole_ns > 0.0).then(|| weighted / whole_ns)
    }
}

/// All that is known of the boxes and queues of a graph.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Profiled {
    pub(crate) boxes: Vec<BoxCost>,
    pub(crate) edges: Vec<Link>,
    /// Of queues, tokens.
    pub(crate) capacities: Vec<u64>,
    /// Written to them in a run, tokens.
    pub(crate) passed: Vec<u64>,
    pub(crate) levels: Levels,
}

#[derive(Default)]
pub(crate) struct Profiles {
    first: Option<(Topology, Profiled)>,
    runs: Vec<Vec<Vec<Load>>>,
    /// Firings of the first run, a row a box.
    pub(crate) firings: Vec<Row>,
}

impl Profiles {
    /// Runs the graph once more, watched. `at_ns` is when, after the start of all.
    pub(crate) fn once(
        &mut self,
        graph: Graph,
        choice: Choice,
        ns_per_tick: f64,
        at_ns: f64,
        seed: u64,
    ) -> Result<(), String> {
        let is_first = self.first.is_none();
        let (topology, name) = (Topology::of(&graph), graph.name().to_owned());
        let profile = Rc::new(Profile::new(&graph, if is_first { MOST_FIRINGS } else { 0 }));
        let watch = Rc::clone(&profile) as Rc<dyn Watch>;
        let mut program = Program::watched(graph, choice, &watch).map_err(|e| e.to_string())?;
        program.run(Sampling::Never, u64::MAX, seed);
        self.runs.push(profile.loads(ns_per_tick));
        if is_first {
            self.firings = firings(&profile, &topology, &name, ns_per_tick, at_ns);
            let profiled = Profiled {
                boxes: Vec::new(),
                edges: topology.edges.clone(),
                capacities: program.capacities().map(|q| q.0).collect(),
                passed: program.capacities().map(|q| q.1).collect(),
                levels: levels(&profile.looks(), ns_per_tick),
            };
            self.first = Some((topology, profiled));
        }
        Ok(())
    }

    pub(crate) fn together(&self) -> Profiled {
        let Some((topology, profiled)) = &self.first else { return Profiled::default() };
        let boxes = topology.boxes.iter().enumerate().map(|(i, b)| BoxCost {
            name: b.name.clone(),
            schedule: topology.schedules[b.schedule].clone(),
            loads: self.loads(i),
        });
        Profiled { boxes: boxes.collect(), ..profiled.clone() }
    }

    /// Loads of a box: counts are the same in each run, means are not.
    fn loads(&self, number: usize) -> Vec<Load> {
        let of_run = |loads: &Vec<Load>, load: u64| loads.iter().find(|l| l.load == load).map(|l| l.mean_ns);
        let Some(first) = self.runs.first() else { return Vec::new() };
        let middle = |l: &Load| {
            let means: Vec<f64> = self.runs.iter().filter_map(|r| of_run(&r[number], l.load)).collect();
            Load { mean_ns: median_of(&means).unwrap_or(l.mean_ns), ..*l }
        };
        first[number].iter().map(middle).collect()
    }
}

fn levels(looks: &[Look], ns_per_tick: f64) -> Levels {
    let queues = looks.first().map_or(0, |l| l.levels.len());
    Levels {
        at_ns: looks.iter().map(|l| l.at_ticks as f64 * ns_per_tick).collect(),
        tokens: (0..queues).map(|q| looks.iter().map(|l| l.levels[q]).collect()).collect(),
    }
}

pub(crate) const FIRING: &str = "firing of a box";

fn firings(profile: &Profile, topology: &Topology, graph: &str, ns_per_tick: f64, at_ns: f64) -> Vec<Row> {
    let row = |b: &Node| {
        let mut row = Row::new(PART, FIRING, Kind::Latency)
            .of_batches()
            .with("graph", graph)
            .with("schedule", topology.schedules[b.schedule].as_str())
            .with("box", b.name.as_str());
        row.long_turns = 1;
        row
    };
    let mut rows: Vec<Row> = topology.boxes.iter().map(row).collect();
    for f in profile.firings() {
        let at_ns = at_ns + f.begin_ticks as f64 * ns_per_tick;
        rows[f.number].pairs.push(Pair { at_ns, long_ticks: f.ticks, ..Pair::default() });
    }
    rows.retain(|r| !r.pairs.is_empty());
    rows
}
