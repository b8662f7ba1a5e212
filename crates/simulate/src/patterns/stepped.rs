//! Ranks that go from step to step: all messages of a step are under way together, the next step begins when they are done.

use crate::program::{Op, Program, Ready};

/// The other rank of a message, its size, and its tag, the same on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    pub rank: u32,
    pub bytes: u64,
    /// Tag.
    pub tag: u32,
}

/// Messages of each rank, step by step.
pub trait Pattern: Send + Sync {
    fn steps(&self, _rank: u32) -> u32 {
        1
    }
    /// Steps at the beginning in which the rank does nothing.
    fn idle_steps(&self, _rank: u32) -> u32 {
        0
    }
    /// Messages of a step in each direction, at most.
    fn lanes(&self) -> u32 {
        1
    }
    fn send(&self, rank: u32, step: u32, lane: u32) -> Option<Peer>;
    fn receive(&self, rank: u32, step: u32, lane: u32) -> Option<Peer>;
    /// Messages of all ranks.
    fn messages(&self) -> u64;
    /// What a rank sends and receives in a step.
    fn operations(&self, rank: u32, step: u32) -> Vec<Op> {
        let send = |to: Peer| Op::send(to.rank, to.bytes, to.tag);
        let receive = |from: Peer| Op::receive(from.rank, from.bytes, from.tag);
        let of = |lane| [self.send(rank, step, lane).map(send), self.receive(rank, step, lane).map(receive)];
        (0..self.lanes()).flat_map(of).flatten().collect()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Step over all rounds.
    step: u32,
    /// Operations of the step that are not over.
    open: u32,
}

/// A pattern as a program: rounds of a calculation and the pattern.
pub struct Stepped<'a> {
    pattern: &'a dyn Pattern,
    rounds: u32,
    calculation_ps: u64,
    lanes: u32,
    /// One round without a calculation.
    is_plain: bool,
    state: Vec<State>,
}

impl<'a> Stepped<'a> {
    /// A pattern of so many ranks in rounds, each of a calculation (none if 0) and the pattern.
    pub fn new(pattern: &'a dyn Pattern, ranks: u32, rounds: u32, calculation_ps: u64) -> Self {
        let state = vec![State::default(); ranks as usize];
        let is_plain = rounds <= 1 && calculation_ps == 0;
        Self { pattern, rounds: rounds.max(1), calculation_ps, lanes: pattern.lanes(), is_plain, state }
    }

    /// The step of the pattern; `None` of the calculation, which is step 0 of a round where there is one.
    fn step_of_pattern(&self, rank: u32, step: u32) -> Option<u32> {
        if self.is_plain {
            return Some(step);
        }
        let own = u32::from(self.calculation_ps > 0);
        let in_round = if self.rounds > 1 { step % (self.pattern.steps(rank) + own).max(1) } else { step };
        in_round.checked_sub(own)
    }

    fn steps(&self, rank: u32) -> u32 {
        if self.is_plain {
            return self.pattern.steps(rank);
        }
        (self.pattern.steps(rank) + u32::from(self.calculation_ps > 0)).saturating_mul(self.rounds)
    }

    /// Begins the step of a rank, or the next one that has operations.
    #[inline]
    fn begin_step(&mut self, rank: u32, ready: &mut Vec<Ready>) {
        let steps = self.steps(rank);
        let mut step = self.state[rank as usize].step;
        let mut open = 0;
        while step < steps {
            let lanes = self.lanes;
            let first = step * 2 * lanes;
            match self.step_of_pattern(rank, step) {
                None => {
                    ready.push(Ready { rank, id: first, op: Op::calculate(self.calculation_ps) });
                    open = 1;
                }
                Some(k) => {
                    for lane in 0..lanes {
                        if let Some(to) = self.pattern.send(rank, k, lane) {
                            let op = Op::send(to.rank, to.bytes, to.tag);
                            ready.push(Ready { rank, id: first + 2 * lane, op });
                            open += 1;
                        }
                        if let Some(from) = self.pattern.receive(rank, k, lane) {
                            let op = Op::receive(from.rank, from.bytes, from.tag);
                            ready.push(Ready { rank, id: first + 2 * lane + 1, op });
                            open += 1;
                        }
                    }
                }
            }
            if open > 0 {
                break;
            }
            step += 1;
        }
        self.state[rank as usize] = State { step, open };
    }
}

impl Program for Stepped<'_> {
    fn ranks(&self) -> u32 {
        self.state.len() as u32
    }

    fn operations(&self) -> u64 {
        let calculations = if self.calculation_ps > 0 { u64::from(self.ranks()) } else { 0 };
        (2 * self.pattern.messages() + calculations) * u64::from(self.rounds)
    }

    fn begin(&mut self, rank: u32, ready: &mut Vec<Ready>) {
        let step = if self.is_plain { self.pattern.idle_steps(rank) } else { 0 };
        self.state[rank as usize] = State { step, open: 0 };
        self.begin_step(rank, ready);
    }

    fn op(&self, rank: u32, op: u32) -> Op {
        let (step, within) = match self.lanes {
            1 => (op / 2, op % 2),
            lanes => (op / (2 * lanes), op % (2 * lanes)),
        };
        let Some(k) = self.step_of_pattern(rank, step) else { return Op::calculate(self.calculation_ps) };
        let (lane, sends) = (within / 2, within.is_multiple_of(2));
        let peer = if sends { self.pattern.send(rank, k, lane) } else { self.pattern.receive(rank, k, lane) };
        // The engine names operations that `begin` or `finished` named; each has a peer.
        let Some(Peer { rank, bytes, tag }) = peer else { return Op::calculate(0) };
        if sends { Op::send(rank, bytes, tag) } else { Op::receive(rank, bytes, tag) }
    }

    fn finished(&mut self, rank: u32, _op: u32, ready: &mut Vec<Ready>) {
        let state = &mut self.state[rank as usize];
        state.open -= 1;
        if state.open == 0 {
            state.step += 1;
            self.begin_step(rank, ready);
        }
    }
}
