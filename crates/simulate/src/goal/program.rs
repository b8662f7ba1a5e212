//! A schedule as a program.

use crate::program::{Op, Program, Verb};

use super::Goal;

/// A schedule that runs.
#[derive(Debug, Clone)]
pub struct Schedule<'a> {
    goal: &'a Goal,
    /// Requirements of each operation that are not met yet.
    open: Vec<u32>,
}

impl<'a> Schedule<'a> {
    /// Ready to run; a run can be repeated.
    pub fn new(goal: &'a Goal) -> Self {
        Self { goal, open: goal.nodes.iter().map(|n| n.requires).collect() }
    }

    fn meet(&mut self, rank: u32, edges: (u32, u32), ready: &mut Vec<u32>) {
        let first = self.goal.first_node[rank as usize];
        for op in &self.goal.edges(rank)[edges.0 as usize..edges.1 as usize] {
            let open = &mut self.open[first + *op as usize];
            *open -= 1;
            if *open == 0 {
                ready.push(*op);
            }
        }
    }
}

impl Program for Schedule<'_> {
    fn ranks(&self) -> u32 {
        self.goal.ranks()
    }

    fn cpus(&self) -> u8 {
        self.goal.max_cpu.saturating_add(1)
    }

    fn nics(&self) -> u8 {
        self.goal.max_nic.saturating_add(1)
    }

    fn operations(&self) -> u64 {
        self.goal.operations()
    }

    fn takes_any(&self, rank: u32) -> bool {
        self.goal.takes_any[rank as usize]
    }

    fn begin(&mut self, rank: u32, ready: &mut Vec<u32>) {
        let first = self.goal.first_node[rank as usize];
        for (op, node) in self.goal.nodes(rank).iter().enumerate() {
            self.open[first + op] = node.requires;
            if node.requires == 0 {
                ready.push(op as u32);
            }
        }
    }

    fn op(&self, rank: u32, op: u32) -> Op {
        let node = &self.goal.nodes[self.goal.first_node[rank as usize] + op as usize];
        let amount = if node.verb == Verb::Calculate { node.size.saturating_mul(1000) } else { node.size };
        Op { verb: node.verb, peer: node.peer, amount, tag: node.tag, cpu: node.cpu, nic: node.nic }
    }

    fn started(&mut self, rank: u32, op: u32, ready: &mut Vec<u32>) {
        let node = self.goal.nodes(rank)[op as usize];
        self.meet(rank, (node.start_edges, node.last_edge), ready);
    }

    fn finished(&mut self, rank: u32, op: u32, ready: &mut Vec<u32>) {
        let node = self.goal.nodes(rank)[op as usize];
        self.meet(rank, (node.end_edges, node.start_edges), ready);
    }
}
