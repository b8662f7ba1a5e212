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

    fn price_all(&self, ready: &mut [Ready]) {
        for r in ready {
            r.op = self.op(r.rank, r.id);
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

    /// Calculations are ps, or the number of a cost.
    fn op(&self, rank: u32, op: u32) -> Op {
        let mut op = self.schedule.written(rank, op);
        if op.verb == Verb::Calculate && op.tag == COLLECTIVE {
            let place = usize::try_from(op.amount).ok();
            op.amount = place.and_then(|i| self.prices_ps.get(i)).copied().unwrap_or(0);
        }
        op
    }

    fn started(&mut self, rank: u32, op: u32, ready: &mut Vec<Ready>) {
        let before = ready.len();
        self.schedule.started(rank, op, ready);
        self.price_all(&mut ready[before..]);
    }

    fn finished(&mut self, rank: u32, op: u32, ready: &mut Vec<Ready>) {
        let before = ready.len();
        self.schedule.finished(rank, op, ready);
        let over = self.schedule.written(rank, op);
        if over.verb == Verb::Calculate && over.tag >= ENTER {
            let gate = (over.tag - ENTER) as usize;
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
