//! Ranks that go from step to step: all messages of a step are under way together, the next step begins when they are done.

use crate::program::{Op, Program};

/// The other rank of a message, and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Rank.
    pub rank: u32,
    /// Bytes.
    pub bytes: u64,
}

/// Messages of each rank, step by step. A message of step k is received in a step k of its receiver.
pub trait Pattern: Send + Sync {
    /// Number of ranks.
    fn ranks(&self) -> u32;
    /// Steps of a rank.
    fn steps(&self, rank: u32) -> u32;
    /// Messages of a step in each direction, at most.
    fn lanes(&self) -> u32 {
        1
    }
    /// What a rank sends.
    fn send(&self, rank: u32, step: u32, lane: u32) -> Option<Peer>;
    /// What a rank receives.
    fn receive(&self, rank: u32, step: u32, lane: u32) -> Option<Peer>;
    /// Tag of the messages of a step, the same on both sides.
    fn tag(&self, _rank: u32, step: u32, _lane: u32, _sends: bool) -> u32 {
        step
    }
    /// Messages of all ranks.
    fn messages(&self) -> u64;
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
    state: Vec<State>,
}

impl<'a> Stepped<'a> {
    /// So many rounds, each of a calculation (none if 0) and the pattern.
    pub fn new(pattern: &'a dyn Pattern, rounds: u32, calculation_ps: u64) -> Self {
        let state = vec![State::default(); pattern.ranks() as usize];
        Self { pattern, rounds: rounds.max(1), calculation_ps, lanes: pattern.lanes(), state }
    }

    /// Operations and messages of a run.
    pub fn events(&self) -> u64 {
        self.operations() + self.pattern.messages() * u64::from(self.rounds)
    }

    /// The step within a round. A calculation is step 0 of a round where there is one.
    fn place(&self, rank: u32, step: u32) -> Place {
        let own = u32::from(self.calculation_ps > 0);
        let steps = self.pattern.steps(rank) + own;
        let in_round = if self.rounds > 1 { step % steps.max(1) } else { step };
        match in_round.checked_sub(own) {
            Some(step) => Place::Messages(step),
            None => Place::Calculation,
        }
    }

    fn steps(&self, rank: u32) -> u32 {
        (self.pattern.steps(rank) + u32::from(self.calculation_ps > 0)).saturating_mul(self.rounds)
    }

    /// Begins the step of a rank, or the next one that has operations.
    fn begin_step(&mut self, rank: u32, ready: &mut Vec<u32>) {
        let steps = self.steps(rank);
        let mut step = self.state[rank as usize].step;
        while step < steps {
            let before = ready.len();
            let first = step * 2 * self.lanes;
            match self.place(rank, step) {
                Place::Calculation => ready.push(first),
                Place::Messages(k) => {
                    for lane in 0..self.lanes {
                        if self.pattern.send(rank, k, lane).is_some() {
                            ready.push(first + 2 * lane);
                        }
                        if self.pattern.receive(rank, k, lane).is_some() {
                            ready.push(first + 2 * lane + 1);
                        }
                    }
                }
            }
            if ready.len() > before {
                self.state[rank as usize] = State { step, open: (ready.len() - before) as u32 };
                return;
            }
            step += 1;
        }
        self.state[rank as usize] = State { step, open: 0 };
    }
}

enum Place {
    Calculation,
    Messages(u32),
}

impl Program for Stepped<'_> {
    fn ranks(&self) -> u32 {
        self.pattern.ranks()
    }

    fn operations(&self) -> u64 {
        let calculations = if self.calculation_ps > 0 { u64::from(self.ranks()) } else { 0 };
        (2 * self.pattern.messages() + calculations) * u64::from(self.rounds)
    }

    fn begin(&mut self, rank: u32, ready: &mut Vec<u32>) {
        self.state[rank as usize] = State::default();
        self.begin_step(rank, ready);
    }

    fn op(&self, rank: u32, op: u32) -> Op {
        let (step, within) =
            if self.lanes == 1 { (op / 2, op % 2) } else { (op / (2 * self.lanes), op % (2 * self.lanes)) };
        let Place::Messages(k) = self.place(rank, step) else { return Op::calculate(self.calculation_ps) };
        let (lane, sends) = (within / 2, within.is_multiple_of(2));
        let peer = if sends { self.pattern.send(rank, k, lane) } else { self.pattern.receive(rank, k, lane) };
        let tag = self.pattern.tag(rank, k, lane, sends);
        // The engine names operations that `begin` or `finished` named; each has a peer.
        let Peer { rank, bytes } = peer.unwrap_or(Peer { rank: 0, bytes: 0 });
        if sends { Op::send(rank, bytes, tag) } else { Op::receive(rank, bytes, tag) }
    }

    fn finished(&mut self, rank: u32, _op: u32, ready: &mut Vec<u32>) {
        let state = &mut self.state[rank as usize];
        state.open -= 1;
        if state.open == 0 {
            state.step += 1;
            self.begin_step(rank, ready);
        }
    }
}
