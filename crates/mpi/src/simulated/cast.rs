//! The ranks of a play, each as far as it can get.

use std::collections::VecDeque;

use super::Planted;
use crate::operations::{Collective, Operation, Phase, Shmem, Step};
use crate::stage::Play;

const DATA: usize = 0;
const EMPTY: usize = 1;

#[derive(Debug, Clone, Default)]
pub(super) struct Rank {
    pub(super) now_ns: f64,
    pub(super) begin_ns: f64,
    pub(super) end_ns: f64,
    /// Work beside, which is not counted.
    pub(super) beside_ns: f64,
    /// Arrivals of messages ([`DATA`]) and of empty ones ([`EMPTY`]), by the partner's sends.
    arrivals: [VecDeque<f64>; 2],
    /// What has no Wait yet.
    started: VecDeque<Request>,
    collectives: usize,
    is_receiving: bool,
}

#[derive(Debug, Clone, Copy)]
enum Request {
    Receive,
    Done,
    Collective(usize, Collective),
}

pub(super) struct Cast<'p> {
    planted: &'p Planted,
    operation: &'static Operation,
    bytes: f64,
    ranks: usize,
    /// Which ranks those of the script are.
    of: [usize; 2],
    beside_ns: f64,
    is_isolated: bool,
    /// What a send waits for a receiver that sleeps or polls, ns.
    waits_ns: f64,
    /// When each rank entered each collective operation, and what that is.
    entered: Vec<Vec<f64>>,
}

impl<'p> Cast<'p> {
    pub(super) fn new(planted: &'p Planted, play: &Play, of: [usize; 2], is_isolated: bool) -> Self {
        let (operation, bytes, beside_ns) = (play.operation, play.bytes as f64, play.beside_ns as f64);
        let limit = match operation.name {
            "inline" => planted.inline_bytes,
            "eager" => planted.eager_bytes,
            _ => u64::MAX,
        };
        let waits_ns = if play.bytes > limit { beside_ns } else { 0.0 };
        let (ranks, entered) = (play.ranks, Vec::new());
        Self { planted, operation, bytes, ranks, of, beside_ns, is_isolated, waits_ns, entered }
    }

    /// Each rank goes on as far as it can; round after round until all are through.
    pub(super) fn play(mut self, turns: u64) -> Result<Vec<Rank>, String> {
        let steps: Vec<Vec<Action>> =
            (0..self.ranks).map(|r| actions(self.operation.script(r), turns, self.is_isolated)).collect();
        let mut ranks = vec![Rank::default(); self.ranks];
        let mut at = vec![0; self.ranks];
        loop {
            let mut moved = false;
            for rank in 0..self.ranks {
                while at[rank] < steps[rank].len() && self.act(&mut ranks, rank, steps[rank][at[rank]]) {
                    at[rank] += 1;
                    moved = true;
                }
            }
            if at.iter().zip(&steps).all(|(at, steps)| *at == steps.len()) {
                let rest =
                    ranks.iter().any(|r| !r.arrivals.iter().all(VecDeque::is_empty) || !r.started.is_empty());
                return if rest { Err("messages or requests are left".to_owned()) } else { Ok(ranks) };
            }
            if !moved {
                return Err(format!("{}: the ranks wait for each other at {at:?}", self.operation.name));
            }
        }
    }

    /// Does it, or says that it has to wait.
    fn act(&mut self, ranks: &mut [Rank], rank: usize, action: Action) -> bool {
        let (p, further_ns) = (self.planted, self.planted.per_byte_ns * self.bytes);
        let partner = 1 - rank.min(1);
        let way_ns = p.latency_ns * (p.link)(self.of[rank.min(1)], self.of[partner]);
        let send = |ranks: &mut [Rank], kind: usize, takes_ns: f64| {
            ranks[rank].now_ns += takes_ns;
            let arrives_ns = ranks[rank].now_ns + way_ns;
            ranks[partner].arrivals[kind].push_back(arrives_ns);
        };
        let me = &mut ranks[rank];
        match action {
            Action::Begin => {
                me.begin_ns = me.now_ns;
                me.now_ns += p.stamp_ns / 2.0;
            }
            Action::End => {
                me.end_ns = me.now_ns + p.stamp_ns / 2.0;
                me.now_ns += p.stamp_ns;
            }
            Action::Do(step) => match step {
                Step::Send | Step::Ssend | Step::Rsend | Step::Isend => {
                    if step == Step::Isend {
                        me.started.push_back(Request::Done);
                    }
                    send(ranks, DATA, p.send_ns + further_ns + self.waits_ns);
                }
                Step::Recv => return me.receive(DATA, p.recv_ns + further_ns),
                Step::Sendrecv => {
                    if !std::mem::replace(&mut me.is_receiving, true) {
                        send(ranks, DATA, p.send_ns + further_ns);
                    }
                    let done = ranks[rank].receive(DATA, p.recv_ns + further_ns);
                    ranks[rank].is_receiving = !done;
                    return done;
                }
                Step::Irecv => {
                    me.now_ns += p.post_ns;
                    me.started.push_back(Request::Receive);
                }
                Step::Wait => return self.wait(ranks, rank),
                Step::Ask => send(ranks, EMPTY, p.send_ns),
                Step::Hear => return me.receive(EMPTY, p.recv_ns),
                Step::All(collective) => {
                    let number = self.enter(&mut ranks[rank], rank);
                    let takes_ns = self.takes_ns(collective);
                    let Some(through_ns) = self.through_ns(number, takes_ns) else { return false };
                    ranks[rank].now_ns = through_ns;
                    ranks[rank].is_receiving = false;
                }
                Step::Start(collective) => {
                    let number = self.enter(me, rank);
                    me.is_receiving = false;
                    me.now_ns += p.post_ns;
                    me.started.push_back(Request::Collective(number, collective));
                }
                Step::Compute => {
                    me.now_ns += self.beside_ns;
                    me.beside_ns += self.beside_ns;
                }
                Step::Put | Step::Get | Step::FetchAndOp | Step::Shmem(Shmem::Put) => {
                    me.now_ns += p.put_ns + further_ns + p.flush_ns;
                }
                Step::Shmem(Shmem::Get) => me.now_ns += p.put_ns + further_ns,
                Step::Shmem(Shmem::Quiet) => me.now_ns += p.flush_ns,
                Step::Shmem(Shmem::Signal) => send(ranks, EMPTY, p.put_ns),
                Step::Shmem(Shmem::Await) => return me.receive(EMPTY, p.flush_ns),
                Step::Shmem(Shmem::Barrier) => {
                    return self.act(ranks, rank, Action::Do(Step::All(Collective::Barrier)));
                }
                Step::Shmem(Shmem::Lock | Shmem::TestLock) => me.now_ns += 2.0 * p.put_ns,
                Step::Shmem(Shmem::Add) => me.now_ns += p.put_ns,
                Step::Sleep | Step::Poll => me.now_ns += self.beside_ns,
            },
        }
        true
    }

    /// The number of the collective operation that this rank is in; entered at the first call.
    fn enter(&mut self, me: &mut Rank, rank: usize) -> usize {
        if !std::mem::replace(&mut me.is_receiving, true) {
            me.collectives += 1;
            self.entered.resize(self.entered.len().max(me.collectives), vec![f64::NAN; self.ranks]);
            self.entered[me.collectives - 1][rank] = me.now_ns;
        }
        me.collectives - 1
    }

    /// When all are through; `None` while one has not entered.
    fn through_ns(&self, number: usize, takes_ns: f64) -> Option<f64> {
        let entered = &self.entered[number];
        let last_ns = entered.iter().copied().fold(0.0, f64::max);
        entered.iter().all(|ns| ns.is_finite()).then_some(last_ns + takes_ns)
    }

    fn takes_ns(&self, collective: Collective) -> f64 {
        (self.planted.collective)(collective, self.ranks as f64, self.bytes)
    }

    fn wait(&mut self, ranks: &mut [Rank], rank: usize) -> bool {
        let (p, further_ns) = (self.planted, self.planted.per_byte_ns * self.bytes);
        let me = &mut ranks[rank];
        match me.started.front().copied() {
            None => return false,
            Some(Request::Done) => me.now_ns += p.wait_ns,
            Some(Request::Receive) => {
                if !me.receive(DATA, p.wait_ns + further_ns) {
                    return false;
                }
            }
            // Half of it goes on beside work, half is left for the wait.
            Some(Request::Collective(number, collective)) => {
                let Some(last_ns) = self.through_ns(number, 0.0) else { return false };
                me.now_ns = me.now_ns.max(last_ns) + self.takes_ns(collective) / 2.0;
            }
        }
        ranks[rank].started.pop_front();
        true
    }
}

impl Rank {
    /// Whether a message of this kind is there; it is taken.
    fn receive(&mut self, kind: usize, takes_ns: f64) -> bool {
        let Some(arrives_ns) = self.arrivals[kind].pop_front() else { return false };
        self.now_ns = self.now_ns.max(arrives_ns) + takes_ns;
        true
    }
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Begin,
    End,
    Do(Step),
}

fn actions(script: &[Phase], turns: u64, is_isolated: bool) -> Vec<Action> {
    let mut all = Vec::new();
    for phase in script {
        match phase {
            Phase::Begin => all.push(Action::Begin),
            Phase::End => all.push(Action::End),
            Phase::Close(_) if is_isolated => {}
            Phase::Once(step) | Phase::Close(step) => all.push(Action::Do(*step)),
            Phase::Each(steps) => {
                (0..turns).for_each(|_| all.extend(steps.iter().map(|s| Action::Do(*s))));
            }
        }
    }
    all
}
