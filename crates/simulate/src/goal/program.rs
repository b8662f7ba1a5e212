//! A schedule as a program.

use crate::program::{COLLECTIVE, ENTER, Op, Program, Ready, Verb};

use super::{Goal, Node};

/// Operations that go on when ranks have entered a collective.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Gate {
    /// Ranks that have not entered.
    pub(crate) open: u32,
    /// What they hold back: rank and operation.
    pub(crate) exits: Vec<(u32, u32)>,
}

/// A schedule that runs.
#[derive(Debug, Clone)]
pub struct Schedule<'a> {
    goal: &'a Goal,
    /// Unit of calculations, ps.
    unit_ps: u64,
    gates: &'a [Gate],
    prices_ps: &'a [u64],
    /// Requirements of each operation that are not met yet.
    open: Vec<u32>,
    /// Ranks that have not entered each gate.
    entering: Vec<u32>,
}

impl<'a> Schedule<'a> {
    /// Ready to run; a run can be repeated.
    pub fn new(goal: &'a Goal) -> Self {
        Self::with_gates(goal, 1000, &[], &[])
    }

    /// The same with gates, and with costs of those calculations that are collectives; a missing one is 0.
    pub(crate) fn with_gates(goal: &'a Goal, unit_ps: u64, gates: &'a [Gate], prices_ps: &'a [u64]) -> Self {
        let open = goal.nodes.iter().map(|n| n.requires).collect();
        Self { goal, unit_ps, gates, prices_ps, open, entering: Vec::new() }
    }

    /// Something that held an operation back is over.
    fn release(&mut self, rank: u32, op: u32, ready: &mut Vec<Ready>) {
        let at = self.goal.first_node[rank as usize] + op as usize;
        self.open[at] -= 1;
        if self.open[at] == 0 {
            ready.push(Ready { rank, id: op, op: self.timed(&self.goal.nodes[at]) });
        }
    }

    fn timed(&self, node: &Node) -> Op {
        let mut op = node.op;
        if op.verb == Verb::Calculate {
            let price = |place: u64| usize::try_from(place).ok().and_then(|i| self.prices_ps.get(i)).copied();
            op.amount = match op.tag {
                COLLECTIVE => price(op.amount).unwrap_or(0),
                _ => op.amount.saturating_mul(self.unit_ps),
            };
        }
        op
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
        if rank == 0 {
            self.entering = self.gates.iter().map(|g| g.open).collect();
        }
        let first = self.goal.first_node[rank as usize];
        for (op, node) in self.goal.nodes(rank).iter().enumerate() {
            self.open[first + op] = node.requires;
            if node.requires == 0 {
                ready.push(Ready { rank, id: op as u32, op: self.timed(node) });
            }
        }
    }

    fn op(&self, rank: u32, op: u32) -> Op {
        self.timed(&self.goal.nodes[self.goal.first_node[rank as usize] + op as usize])
    }

    fn started(&mut self, rank: u32, op: u32, ready: &mut Vec<Ready>) {
        let node = self.goal.nodes(rank)[op as usize];
        self.meet(rank, (node.start_edges, node.last_edge), ready);
    }

    fn finished(&mut self, rank: u32, op: u32, ready: &mut Vec<Ready>) {
        let node = self.goal.nodes(rank)[op as usize];
        self.meet(rank, (node.end_edges, node.start_edges), ready);
        let gate = (node.op.tag as usize).wrapping_sub(ENTER as usize);
        if node.op.verb != Verb::Calculate || gate >= self.entering.len() {
            return;
        }
        self.entering[gate] -= 1;
        if self.entering[gate] == 0 {
            for (rank, exit) in &self.gates[gate].exits {
                self.release(*rank, *exit, ready);
            }
        }
    }
}
