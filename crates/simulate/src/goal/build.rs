//! Schedules put together operation by operation.

use crate::engine::ANY;
use crate::program::{Op, Verb};

use super::{Goal, Node};

/// What of an operation another one requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Require {
    End,
    Start,
}

/// Builds a [`Goal`] rank by rank.
#[derive(Debug, Default)]
pub struct Builder {
    goal: Goal,
    /// Requirements of the rank at hand in order: (required, requiring, what).
    requirements: Vec<(u32, u32, Require)>,
}

impl Builder {
    fn first(&self) -> usize {
        self.goal.first_node.last().copied().unwrap_or(0)
    }

    /// Adds an operation, a calculation with its length in ns; its number in the rank.
    pub fn add(&mut self, op: Op) -> u32 {
        self.goal.max_cpu = self.goal.max_cpu.max(op.cpu);
        self.goal.max_nic = self.goal.max_nic.max(op.nic);
        self.goal.nodes.push(Node { op, requires: 0, end_edges: 0, start_edges: 0, last_edge: 0 });
        (self.goal.nodes.len() - 1 - self.first()) as u32
    }

    /// Something outside of the schedule holds the operation added last back, too.
    pub(crate) fn hold(&mut self) {
        if let Some(node) = self.goal.nodes.last_mut() {
            node.requires += 1;
        }
    }

    /// Operation `op` requires the start or the end of `required`; both are numbers that were given for this rank.
    pub fn require(&mut self, op: u32, required: u32, what: Require) {
        self.requirements.push((required, op, what));
    }

    /// Closes the rank; the next operations belong to the next one. Or names an operation that requires itself, by way of others.
    pub fn end_rank(&mut self) -> Result<(), u32> {
        let first = self.first();
        let nodes = &mut self.goal.nodes[first..];
        for (required, op, what) in &self.requirements {
            nodes[*op as usize].requires += 1;
            let node = &mut nodes[*required as usize];
            match what {
                Require::End => node.end_edges += 1,
                Require::Start => node.start_edges += 1,
            }
        }
        // Counts become places; the places advance to the end of each list while it is filled.
        let mut place = 0;
        for node in nodes.iter_mut() {
            let (ends, starts) = (node.end_edges, node.start_edges);
            (node.end_edges, node.start_edges) = (place, place + ends);
            place += ends + starts;
            node.last_edge = place;
        }
        let edges_before = self.goal.edges.len();
        self.goal.edges.resize(edges_before + place as usize, 0);
        let edges = &mut self.goal.edges[edges_before..];
        for (required, op, what) in &self.requirements {
            let node = &mut nodes[*required as usize];
            let at = match what {
                Require::End => &mut node.end_edges,
                Require::Start => &mut node.start_edges,
            };
            edges[*at as usize] = *op;
            *at += 1;
        }
        // Filled places are those of the next list: one back.
        let mut place = 0;
        for node in nodes.iter_mut() {
            (node.end_edges, node.start_edges, place) = (place, node.end_edges, node.last_edge);
        }
        self.requirements.clear();
        acyclic(nodes, edges)?;
        let takes_any = |op: Op| op.verb != Verb::Calculate && (op.peer == ANY || op.tag == ANY);
        self.goal.takes_any.push(nodes.iter().any(|n| takes_any(n.op)));
        if self.goal.first_node.is_empty() {
            self.goal.first_node.push(0);
            self.goal.first_edge.push(0);
        }
        self.goal.first_node.push(self.goal.nodes.len());
        self.goal.first_edge.push(self.goal.edges.len());
        Ok(())
    }

    /// Number of requirements of each operation of the rank that was closed last.
    pub(super) fn last_requires(&self) -> impl Iterator<Item = u32> {
        let rank = self.goal.ranks() - 1;
        self.goal.nodes(rank).iter().map(|n| n.requires)
    }

    /// The schedule of all ranks that were closed.
    pub fn build(self) -> Goal {
        self.goal
    }
}

/// Whether all operations can be put in an order (Kahn 1962); one of a cycle otherwise.
fn acyclic(nodes: &[Node], edges: &[u32]) -> Result<(), u32> {
    // Requirements that go back to earlier operations alone, as most schedules have them, need no search.
    let after = |n: &Node| &edges[n.end_edges as usize..n.last_edge as usize];
    if nodes.iter().enumerate().all(|(at, n)| after(n).iter().all(|to| *to as usize > at)) {
        return Ok(());
    }
    let mut open: Vec<u32> = nodes.iter().map(|n| n.requires).collect();
    let mut ready: Vec<u32> = (0..nodes.len() as u32).filter(|at| open[*at as usize] == 0).collect();
    while let Some(at) = ready.pop() {
        for to in after(&nodes[at as usize]) {
            open[*to as usize] -= 1;
            if open[*to as usize] == 0 {
                ready.push(*to);
            }
        }
    }
    let Some(first) = open.iter().position(|o| *o > 0) else { return Ok(()) };
    // From an operation that is never ready, backward through others like it: that comes to one of a cycle.
    let mut required = vec![u32::MAX; nodes.len()];
    for (at, node) in nodes.iter().enumerate().filter(|(at, _)| open[*at] > 0) {
        for to in after(node) {
            required[*to as usize] = at as u32;
        }
    }
    let mut at = first as u32;
    for _ in 0..nodes.len() {
        at = required[at as usize];
    }
    Err(at)
}
