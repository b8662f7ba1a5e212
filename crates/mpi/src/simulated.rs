//! Ranks on virtual clocks, with planted costs of every step: the scripts, cells, sampler and analysis are the real ones. What waits
//! for what is played out, so that a script whose ranks wait for each other for ever is an error.

use std::collections::VecDeque;

use machmeter_engine::sampling::Mark;
use machmeter_stats::random::Random;

use crate::operations::{Collective, Operation, Phase, Shmem, Step, numbered};
use crate::stage::{Play, Stage, Window, Windows};

/// Planted times, ns.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_field_names, reason = "units")]
pub(crate) struct Planted {
    pub(crate) send_ns: f64,
    pub(crate) recv_ns: f64,
    pub(crate) post_ns: f64,
    pub(crate) wait_ns: f64,
    pub(crate) latency_ns: f64,
    pub(crate) put_ns: f64,
    pub(crate) flush_ns: f64,
    /// Of a send, a receive, a put and on the way.
    pub(crate) per_byte_ns: f64,
    /// Messages longer than this wait for their receive.
    pub(crate) inline_bytes: u64,
    pub(crate) eager_bytes: u64,
    /// A collective operation: ns by ranks and bytes.
    pub(crate) collective: fn(Collective, f64, f64) -> f64,
}

/// What disturbs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise {
    /// Relative, of every batch.
    pub(crate) base: f64,
    /// Share of the batches and windows that take up to as long again.
    pub(crate) spikes: f64,
    /// Share of the batches in which a rank loses its CPU for 4 ms, and of the windows to which it comes late.
    pub(crate) preempted: f64,
    /// Share of every half second in which the ranks are apart: everything takes twice as long.
    pub(crate) apart: f64,
}

const PREEMPTED_NS: f64 = 4e6;
/// The ranks move together and apart with this period, ns.
const MOVE_NS: f64 = 5e8;
/// Step of the clock, ns.
pub(crate) const STEP_NS: u64 = 10;
/// An order takes this, ns.
const ORDER_NS: f64 = 700.0;

pub(crate) struct Simulated {
    planted: Planted,
    noise: Noise,
    ranks: usize,
    now_ns: f64,
    random: Random,
    switches: u64,
    others_disturbed: bool,
}

impl Simulated {
    pub(crate) fn new(planted: Planted, noise: Noise, ranks: usize, seed: u64) -> Self {
        let random = Random::new(seed);
        Self { planted, noise, ranks, now_ns: 1.0, random, switches: 0, others_disturbed: false }
    }

    fn factor(&mut self) -> f64 {
        let spike = if self.random.unit() < self.noise.spikes { self.random.unit() } else { 0.0 };
        let apart = if (self.now_ns / MOVE_NS).fract() < self.noise.apart { 2.0 } else { 1.0 };
        (1.0 + self.noise.base * self.random.normal()).max(0.5) * (1.0 + spike) * apart
    }

    fn played(&self, play: &Play, turns: u64, is_isolated: bool) -> Result<Vec<Rank>, String> {
        let operation = numbered(play.operation).ok_or("no such operation")?;
        if play.ranks < 2 || play.ranks > self.ranks {
            return Err(format!("{} of {} ranks", play.ranks, self.ranks));
        }
        Cast::new(&self.planted, operation, play, is_isolated).play(turns)
    }
}

impl Stage for Simulated {
    fn back_to_back(&mut self, play: &Play, turns: u64) -> Result<u64, String> {
        let root = self.played(play, turns, false)?.swap_remove(0);
        let mut took_ns = (root.end_ns - root.begin_ns - root.beside_ns) * self.factor();
        if self.random.unit() < self.noise.preempted {
            took_ns += PREEMPTED_NS;
            if self.random.unit() < 0.5 { self.switches += 1 } else { self.others_disturbed = true }
        }
        self.now_ns += ORDER_NS + root.now_ns.max(took_ns);
        Ok((took_ns / STEP_NS as f64).round() as u64 * STEP_NS)
    }

    fn isolated(&mut self, play: &Play, windows: Windows) -> Result<Vec<Window>, String> {
        let ranks = self.played(play, 1, true)?;
        let operation = numbered(play.operation).ok_or("no such operation")?;
        let of_cost = || ranks.iter().take(if operation.is_collective { play.ranks } else { 1 });
        let begin_ns = of_cost().map(|r| r.begin_ns).fold(0.0, f64::max);
        let took_ns = of_cost().map(|r| r.end_ns - r.beside_ns).fold(0.0, f64::max) - begin_ns;
        let mut late_ns = 0.0_f64;
        let mut played = Vec::new();
        for _ in 0..windows.count {
            late_ns = (late_ns - windows.period_ns as f64).max(0.0);
            if self.random.unit() < self.noise.preempted {
                late_ns = PREEMPTED_NS;
            }
            let took_ns = took_ns * self.factor();
            let end = late_ns as i64 + (took_ns / STEP_NS as f64).round() as i64 * STEP_NS as i64;
            let fits = took_ns + ORDER_NS < windows.period_ns as f64;
            played.push(Window { begin: late_ns as i64, end, is_valid: late_ns == 0.0 && fits });
        }
        self.now_ns += windows.period_ns as f64 * f64::from(windows.count) + ORDER_NS;
        Ok(played)
    }

    fn others_disturbed(&mut self) -> Result<bool, String> {
        Ok(std::mem::take(&mut self.others_disturbed))
    }

    fn mark(&self) -> Mark {
        Mark { involuntary_switches: self.switches, ..Mark::default() }
    }

    fn now_ns(&self) -> u64 {
        self.now_ns as u64
    }

    fn ticks(&self) -> u64 {
        self.now_ns as u64
    }
}

#[derive(Debug, Clone, Default)]
struct Rank {
    now_ns: f64,
    begin_ns: f64,
    end_ns: f64,
    /// Work beside, which is not counted.
    beside_ns: f64,
    /// Arrivals of messages and of empty ones, by the partner's sends.
    messages: VecDeque<f64>,
    asked: VecDeque<f64>,
    /// What has no Wait yet.
    started: VecDeque<Request>,
    collectives: usize,
    is_receiving: bool,
}

#[derive(Debug, Clone, Copy)]
enum Request {
    Receive,
    Done,
    Collective(usize),
}

/// Ranks at one play.
struct Cast<'p> {
    planted: &'p Planted,
    operation: &'static Operation,
    bytes: f64,
    ranks: usize,
    beside_ns: f64,
    is_isolated: bool,
    /// What a send waits for a receiver that sleeps or polls, ns.
    waits_ns: f64,
    /// When each rank entered each collective operation, and what that is.
    entered: Vec<Vec<f64>>,
}

impl<'p> Cast<'p> {
    fn new(planted: &'p Planted, operation: &'static Operation, play: &Play, is_isolated: bool) -> Self {
        let (bytes, beside_ns) = (play.bytes as f64, play.beside_ns as f64);
        let limit = match operation.name {
            "inline" => planted.inline_bytes,
            "eager" => planted.eager_bytes,
            _ => u64::MAX,
        };
        let waits_ns = if play.bytes > limit { beside_ns } else { 0.0 };
        let (ranks, entered) = (play.ranks, Vec::new());
        Self { planted, operation, bytes, ranks, beside_ns, is_isolated, waits_ns, entered }
    }

    /// Each rank goes on as far as it can; round after round until all are through.
    fn play(mut self, turns: u64) -> Result<Vec<Rank>, String> {
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
                let rest = ranks
                    .iter()
                    .any(|r| !r.messages.is_empty() || !r.asked.is_empty() || !r.started.is_empty());
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
        let me = &mut ranks[rank];
        match action {
            Action::Begin => me.begin_ns = me.now_ns,
            Action::End => me.end_ns = me.now_ns,
            Action::Do(step) => match step {
                Step::Send | Step::Ssend | Step::Rsend | Step::Isend => {
                    me.now_ns += p.send_ns + further_ns + self.waits_ns;
                    if step == Step::Isend {
                        me.started.push_back(Request::Done);
                    }
                    let arrives_ns = me.now_ns + p.latency_ns;
                    ranks[partner].messages.push_back(arrives_ns);
                }
                Step::Recv => return me.receive(p.recv_ns + further_ns),
                Step::Sendrecv => {
                    if !std::mem::replace(&mut me.is_receiving, true) {
                        me.now_ns += p.send_ns + further_ns;
                        let arrives_ns = me.now_ns + p.latency_ns;
                        ranks[partner].messages.push_back(arrives_ns);
                    }
                    let done = ranks[rank].receive(p.recv_ns + further_ns);
                    ranks[rank].is_receiving = !done;
                    return done;
                }
                Step::Irecv => {
                    me.now_ns += p.post_ns;
                    me.started.push_back(Request::Receive);
                }
                Step::Wait => return self.wait(ranks, rank),
                Step::Ask => {
                    me.now_ns += p.send_ns;
                    let arrives_ns = me.now_ns + p.latency_ns;
                    ranks[partner].asked.push_back(arrives_ns);
                }
                Step::Hear => {
                    let Some(arrives_ns) = me.asked.pop_front() else { return false };
                    me.now_ns = me.now_ns.max(arrives_ns) + p.recv_ns;
                }
                Step::All(collective) => {
                    let number = self.enter(&mut ranks[rank], rank);
                    let Some(through_ns) = self.through_ns(number, collective) else { return false };
                    ranks[rank].now_ns = through_ns;
                    ranks[rank].is_receiving = false;
                }
                Step::Start(_) => {
                    let number = self.enter(me, rank);
                    me.is_receiving = false;
                    me.now_ns += p.post_ns;
                    me.started.push_back(Request::Collective(number));
                }
                Step::Compute => {
                    me.now_ns += self.beside_ns;
                    me.beside_ns += self.beside_ns;
                }
                Step::Put | Step::Get | Step::FetchAndOp | Step::Shmem(Shmem::Put | Shmem::Get) => {
                    me.now_ns += p.put_ns + further_ns;
                }
                Step::Flush | Step::Shmem(Shmem::Quiet) => me.now_ns += p.flush_ns,
                Step::Shmem(Shmem::Signal) => {
                    me.now_ns += p.put_ns;
                    let arrives_ns = me.now_ns + p.latency_ns;
                    ranks[partner].asked.push_back(arrives_ns);
                }
                Step::Shmem(Shmem::Await) => {
                    let Some(arrives_ns) = me.asked.pop_front() else { return false };
                    me.now_ns = me.now_ns.max(arrives_ns) + p.flush_ns;
                }
                Step::Shmem(Shmem::Barrier) => {
                    return self.act(ranks, rank, Action::Do(Step::All(Collective::Barrier)));
                }
                Step::Shmem(_) => me.now_ns += p.put_ns,
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
    fn through_ns(&self, number: usize, collective: Collective) -> Option<f64> {
        let entered = &self.entered[number];
        let last_ns = entered.iter().copied().fold(0.0, f64::max);
        let takes_ns = (self.planted.collective)(collective, self.ranks as f64, self.bytes);
        entered.iter().all(|ns| ns.is_finite()).then_some(last_ns + takes_ns)
    }

    fn wait(&mut self, ranks: &mut [Rank], rank: usize) -> bool {
        let (p, further_ns) = (self.planted, self.planted.per_byte_ns * self.bytes);
        let me = &mut ranks[rank];
        match me.started.front().copied() {
            None => return false,
            Some(Request::Done) => me.now_ns += p.wait_ns,
            Some(Request::Receive) => {
                if !me.receive(p.wait_ns + further_ns) {
                    return false;
                }
            }
            // Half of it goes on beside work, half is left for the wait.
            Some(Request::Collective(number)) => {
                let Some(Step::Start(collective)) = started(self.operation) else { return false };
                let takes_ns = (p.collective)(collective, self.ranks as f64, self.bytes);
                let Some(_) = self.through_ns(number, collective) else { return false };
                let last_ns = self.entered[number].iter().copied().fold(0.0, f64::max);
                me.now_ns = me.now_ns.max(last_ns) + takes_ns / 2.0;
            }
        }
        ranks[rank].started.pop_front();
        true
    }
}

fn started(operation: &Operation) -> Option<Step> {
    operation.root.iter().find_map(|p| match p {
        Phase::Each(steps) => steps.iter().find(|s| matches!(s, Step::Start(_))).copied(),
        _ => None,
    })
}

impl Rank {
    fn receive(&mut self, takes_ns: f64) -> bool {
        let Some(arrives_ns) = self.messages.pop_front() else { return false };
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

/// A script with its turns played out.
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
