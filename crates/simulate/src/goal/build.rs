//! Schedules put together operation by operation.

use crate::engine::ANY;
use crate::program::Verb;

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

/// Without ranks.
impl Default for Goal {
    fn default() -> Self {
        Self {
            max_cpu: 0,
            max_nic: 0,
            first_node: vec![0],
            nodes: Vec::new(),
            first_edge: vec![0],
            edges: Vec::new(),
            takes_any: Vec::new(),
        }
    }
}

impl Builder {
    fn first(&self) -> usize {
        self.goal.first_node[self.goal.first_node.len() - 1]
    }

    /// Adds a message that is sent; its number in the rank.
    pub fn send(&mut self, to: u32, bytes: u64, tag: u32) -> u32 {
        self.add(Verb::Send, to, bytes, tag)
    }

    /// Adds a message that is received; [`ANY`] for any sender or tag.
    pub fn receive(&mut self, from: u32, bytes: u64, tag: u32) -> u32 {
        self.add(Verb::Receive, from, bytes, tag)
    }

    /// Adds a calculation.
    pub fn calculate(&mut self, ns: u64) -> u32 {
        self.add(Verb::Calculate, 0, ns, 0)
    }

    /// Adds a calculation whose size and tag have a meaning for the program that runs the schedule.
    pub(crate) fn calculate_tagged(&mut self, size: u64, tag: u32) -> u32 {
        self.add(Verb::Calculate, 0, size, tag)
    }

    /// Something outside of the schedule holds the operation added last back, too.
    pub(crate) fn hold(&mut self) {
        if let Some(node) = self.goal.nodes.last_mut() {
            node.requires += 1;
        }
    }

    pub(crate) fn add(&mut self, verb: Verb, peer: u32, size: u64, tag: u32) -> u32 {
        let node = Node {
            size,
            peer,
            tag,
            requires: 0,
            end_edges: 0,
            start_edges: 0,
            last_edge: 0,
            verb,
            cpu: 0,
            nic: 0,
        };
        self.goal.nodes.push(node);
        (self.goal.nodes.len() - 1 - self.first()) as u32
    }

    /// Places the operation added last on a CPU and a network interface of its rank.
    pub fn place(&mut self, cpu: u8, nic: u8) {
        if let Some(node) = self.goal.nodes.last_mut() {
            (node.cpu, node.nic) = (cpu, nic);
            self.goal.max_cpu = self.goal.max_cpu.max(cpu);
            self.goal.max_nic = self.goal.max_nic.max(nic);
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
        let any = nodes.iter().any(|n| n.verb != Verb::Calculate && (n.peer == ANY || n.tag == ANY));
        self.goal.takes_any.push(any);
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
    let forward = |(at, n): (usize, &Node)| {
        edges[n.end_edges as usize..n.last_edge as usize].iter().all(|to| *to as usize > at)
    };
    if nodes.iter().enumerate().all(forward) {
        return Ok(());
    }
    let mut open: Vec<u32> = nodes.iter().map(|n| n.requires).collect();
    let mut ready: Vec<u32> = (0..nodes.len() as u32).filter(|at| open[*at as usize] == 0).collect();
    let mut reached = 0;
    while let Some(at) = ready.pop() {
        reached += 1;
        let node = &nodes[at as usize];
        for to in &edges[node.end_edges as usize..node.last_edge as usize] {
            open[*to as usize] -= 1;
            if open[*to as usize] == 0 {
                ready.push(*to);
            }
        }
    }
    if reached == nodes.len() {
        return Ok(());
    }
    // From an operation that is never ready, backward through others like it: that comes to one of a cycle.
    let mut required = vec![u32::MAX; nodes.len()];
    for (at, node) in nodes.iter().enumerate().filter(|(at, _)| open[*at] > 0) {
        for to in &edges[node.end_edges as usize..node.last_edge as usize] {
            required[*to as usize] = at as u32;
        }
    }
    let mut at = open.iter().position(|o| *o > 0).unwrap_or(0) as u32;
    for _ in 0..nodes.len() {
        at = required[at as usize];
    }
    Err(at)
}
