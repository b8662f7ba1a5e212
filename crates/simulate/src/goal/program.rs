//! A schedule as a program.

use crate::program::{Op, Program, Ready, Verb};

use super::{Goal, Node};

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

    /// Something that held an operation back is over.
    pub(crate) fn release(&mut self, rank: u32, op: u32, ready: &mut Vec<Ready>) {
        let at = self.goal.first_node[rank as usize] + op as usize;
        self.open[at] -= 1;
        if self.open[at] == 0 {
            ready.push(Ready { rank, id: op, op: self.goal.nodes[at].in_ps() });
        }
    }

    /// As the schedule has it.
    #[inline]
    pub(crate) fn written(&self, rank: u32, op: u32) -> Op {
        self.goal.nodes[self.goal.first_node[rank as usize] + op as usize].op
    }

    fn meet(&mut self, rank: u32, edges: (u32, u32), ready: &mut Vec<Ready>) {
        let goal = self.goal;
        for op in &goal.edges(rank)[edges.0 as usize..edges.1 as usize] {
            self.release(rank, *op, ready);
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

    fn begin(&mut self, rank: u32, ready: &mut Vec<Ready>) {
        let first = self.goal.first_node[rank as usize];
        for (op, node) in self.goal.nodes(rank).iter().enumerate() {
            self.open[first + op] = node.requires;
            if node.requires == 0 {
                ready.push(Ready { rank, id: op as u32, op: node.in_ps() });
            }
        }
    }

    fn op(&self, rank: u32, op: u32) -> Op {
        self.goal.nodes[self.goal.first_node[rank as usize] + op as usize].in_ps()
    }

    fn started(&mut self, rank: u32, op: u32, ready: &mut Vec<Ready>) {
        let node = self.goal.nodes(rank)[op as usize];
        self.meet(rank, (node.start_edges, node.last_edge), ready);
    }

    fn finished(&mut self, rank: u32, op: u32, ready: &mut Vec<Ready>) {
        let node = self.goal.nodes(rank)[op as usize];
        self.meet(rank, (node.end_edges, node.start_edges), ready);
    }
}

impl Node {
    fn in_ps(&self) -> Op {
        let scale = if self.op.verb == Verb::Calculate { 1000 } else { 1 };
        Op { amount: self.op.amount.saturating_mul(scale), ..self.op }
    }
}
