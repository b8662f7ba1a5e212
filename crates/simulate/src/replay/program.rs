//! A replay as a program.

use crate::goal::Schedule;
use crate::program::{COLLECTIVE, Op, Program, Ready, Verb};

use super::expand::{ENTER, Replay};

/// A replay that runs, with the cost of each of its collectives.
#[derive(Debug, Clone)]
pub struct Running<'a> {
    replay: &'a Replay,
    prices_ps: &'a [u64],
    schedule: Schedule<'a>,
    /// Ranks that have not entered each gate.
    open: Vec<u32>,
}

impl<'a> Running<'a> {
    /// Ready to run; a run can be repeated. Costs are those of [`Replay::priced`], ps; a missing one is 0.
    pub fn new(replay: &'a Replay, prices_ps: &'a [u64]) -> Self {
        Self { replay, prices_ps, schedule: Schedule::new(&replay.goal), open: Vec::new() }
    }

    /// Sizes are ps, or the number of a cost.
    fn priced(&self, rank: u32, id: u32, mut op: Op) -> Op {
        if op.verb == Verb::Calculate {
            let (size, tag) = self.schedule.size_and_tag(rank, id);
            let price =
                || usize::try_from(size).ok().and_then(|i| self.prices_ps.get(i)).copied().unwrap_or(0);
            op.amount = if tag == COLLECTIVE { price() } else { size };
        }
        op
    }

    fn price_all(&self, ready: &mut [Ready]) {
        for r in ready {
            r.op = self.priced(r.rank, r.id, r.op);
        }
    }
}

impl Program for Running<'_> {
    fn ranks(&self) -> u32 {
        self.schedule.ranks()
    }

    fn cpus(&self) -> u8 {
        self.schedule.cpus()
    }

    fn operations(&self) -> u64 {
        self.schedule.operations()
    }

    fn begin(&mut self, rank: u32, ready: &mut Vec<Ready>) {
        if rank == 0 {
            self.open = self.replay.gates.iter().map(|g| g.open).collect();
        }
        let before = ready.len();
        self.schedule.begin(rank, ready);
        self.price_all(&mut ready[before..]);
    }

    fn op(&self, rank: u32, op: u32) -> Op {
        self.priced(rank, op, self.schedule.op(rank, op))
    }

    fn started(&mut self, rank: u32, op: u32, ready: &mut Vec<Ready>) {
        let before = ready.len();
        self.schedule.started(rank, op, ready);
        self.price_all(&mut ready[before..]);
    }

    fn finished(&mut self, rank: u32, op: u32, ready: &mut Vec<Ready>) {
        let before = ready.len();
        self.schedule.finished(rank, op, ready);
        let (_, tag) = self.schedule.size_and_tag(rank, op);
        if self.schedule.op(rank, op).verb == Verb::Calculate && tag >= ENTER {
            let gate = (tag - ENTER) as usize;
            self.open[gate] -= 1;
            if self.open[gate] == 0 {
                for (rank, exit) in &self.replay.gates[gate].exits {
                    self.schedule.release(*rank, *exit, ready);
                }
            }
        }
        self.price_all(&mut ready[before..]);
    }
}
