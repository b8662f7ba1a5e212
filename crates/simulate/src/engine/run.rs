//! The event loop.

use crate::noise::Noise;
use crate::params::{Dialect, Params, Protocol};
use crate::program::{COLLECTIVE, Moment, Op, Program, Ready, Verb, put_in_order};

use super::matching::{Entry, Matching, Met};
use super::outcome::{Finished, SimulateError, deadlock};
use super::queue::{Event, Kind, Pool, Queue};
use super::rendezvous::Handshake;
use super::resources::{Need, Resources};
use super::time::{Part, Time};

/// Events between two looks at whether to stop: about 10 ms.
const EVENTS_PER_LOOK: u64 = 1 << 16;
/// Stamps of operations that are ready at the start lie below all others.
const FIRST_STAMP: u64 = 1 << 40;

/// Runs a program to its end; often looks whether to `stop`.
pub fn run<T: Time, P: Program, N: Noise>(
    program: &mut P,
    params: &Params,
    noise: &mut N,
    stop: &dyn Fn() -> bool,
) -> Result<Finished<T>, SimulateError> {
    let ranks = program.ranks();
    let mut run = Run {
        resources: Resources::<T>::new(ranks, program.cpus(), program.nics()),
        // With one CPU, what gets ready cannot begin before its predecessors end: the CPU is busy with them.
        ends_apart: program.cpus() > 1 && params.dialect == Dialect::Machmeter,
        plain: params.dialect == Dialect::LogGopSim,
        program,
        params,
        noise,
        pool: Pool::new(),
        queue: Queue::new(),
        matching: Matching::new(),
        handshakes: Vec::new(),
        free_handshakes: Vec::new(),
        root_stamp: 0,
        stamp: FIRST_STAMP,
        ready: Vec::new(),
        ends: Vec::new(),
        finished: 0,
        messages: 0,
    };
    let (mut roots, mut looked_at) = (Roots { ranks: 0..ranks, next: 0, ready: Vec::new() }, 0u64);
    while let Some(at) = run.next_root(&mut roots).or_else(|| run.queue.pop(&mut run.pool)) {
        run.process(at);
        looked_at += 1;
        if looked_at.is_multiple_of(EVENTS_PER_LOOK) && stop() {
            return Err(SimulateError::Stopped);
        }
    }
    run.result()
}

/// Operations that are ready at the start, rank by rank.
struct Roots {
    /// Those to come.
    ranks: std::ops::Range<u32>,
    next: usize,
    ready: Vec<Ready>,
}

pub(super) struct Run<'a, T, P, N> {
    pub(super) program: &'a mut P,
    pub(super) params: &'a Params,
    pub(super) noise: &'a mut N,
    pub(super) resources: Resources<T>,
    pub(super) pool: Pool<T>,
    pub(super) queue: Queue,
    pub(super) matching: Matching,
    pub(super) handshakes: Vec<Handshake>,
    pub(super) free_handshakes: Vec<u32>,
    pub(super) root_stamp: u64,
    pub(super) stamp: u64,
    /// What got ready by the event at hand.
    pub(super) ready: Vec<Ready>,
    /// Ends of operations that no CPU was busy with; empty without any.
    pub(super) ends: Vec<T>,
    pub(super) finished: u64,
    pub(super) messages: u64,
    pub(super) ends_apart: bool,
    pub(super) plain: bool,
}

impl<T: Time, P: Program, N: Noise> Run<'_, T, P, N> {
    /// The next operation that is ready at the start, in the order of ranks: all of them precede, by stamp, what they lead to, and
    /// so need no place in the queue.
    #[inline]
    fn next_root(&mut self, roots: &mut Roots) -> Option<u32> {
        while roots.next == roots.ready.len() {
            let rank = roots.ranks.next()?;
            roots.ready.clear();
            self.program.begin(rank, &mut roots.ready);
            put_in_order(&mut roots.ready);
            roots.next = 0;
        }
        let Ready { rank, id, op } = roots.ready[roots.next];
        roots.next += 1;
        self.root_stamp += 1;
        Some(self.pool.add(Event::new(Kind::Ready, T::default(), self.root_stamp, (rank, id), op)))
    }

    fn result(self) -> Result<Finished<T>, SimulateError> {
        let operations = self.program.operations();
        if self.finished < operations {
            return Err(deadlock(operations - self.finished, self.matching.entries()));
        }
        let last = |rank: u32| {
            let cpus = self.resources.last(rank);
            self.ends.get(rank as usize).map_or(cpus, |end| cpus.later(*end))
        };
        let ends: Vec<T> = (0..self.program.ranks()).map(last).collect();
        if ends.iter().any(|e| e.ps() == u64::MAX) {
            return Err(SimulateError::TooLong);
        }
        Ok(Finished { ends, events: self.finished + self.messages })
    }

    #[inline(always)]
    fn process(&mut self, at: u32) {
        let event = *self.pool.get(at);
        let now = event.time;
        match event.kind {
            Kind::Void => self.pool.release(at),
            Kind::Ready => self.begin_op(at, &event),
            Kind::Arrival => self.arrive(at, &event),
            Kind::Delivery => self.deliver(at, &event),
            Kind::Landing => {
                self.pool.release(at);
                self.land(&event);
            }
            Kind::Clear => {
                self.pool.release(at);
                self.transmit(event.a, event.op, now);
            }
            Kind::ClearArrival => {
                let receiver = self.handshakes[event.a as usize].receiver;
                self.take_in(at, Kind::ClearDelivery, receiver, &event);
            }
            Kind::ClearDelivery => self.deliver_cleared(at, &event),
            Kind::ClearLanding => {
                self.pool.release(at);
                self.land_cleared(event.a, now);
            }
            Kind::Done => {
                self.pool.release(at);
                let ranks = self.program.ranks() as usize;
                self.ends.resize(ranks, T::default());
                let end = &mut self.ends[event.a as usize];
                *end = end.later(now);
                self.finish(event.a, event.b, now, now);
            }
        }
        if !self.ready.is_empty() {
            self.release_ready(now);
        }
    }

    fn begin_op(&mut self, at: u32, event: &Event<T>) {
        let (rank, id, op, now) = (event.a, event.b, event.op, event.time);
        let need = match op.verb {
            Verb::Receive => {
                self.pool.release(at);
                return self.receive(rank, id, op, now);
            }
            Verb::Calculate => Need::Cpu,
            Verb::Send => Need::CpuSend,
        };
        let place = (need, rank, op.cpu, op.nic);
        if !self.acquire(place, at, now) {
            return;
        }
        let now = self.observe(Moment::Begin, (rank, op.cpu), id, now);
        if op.verb == Verb::Calculate {
            let part = if op.tag == COLLECTIVE { Part::Collective } else { Part::Compute };
            let stolen = self.noise.stolen_ps(rank, op.cpu, now.ps(), op.amount);
            let end = now.after(part, op.amount, op.amount).after(Part::Noise, stolen, stolen);
            self.observe(Moment::End, (rank, op.cpu), id, end);
            *self.resources.cpu(rank, op.cpu) = end;
            self.start(rank, id);
            self.finish(rank, id, now, end);
        } else {
            self.send(rank, id, op, now);
        }
        self.proceed(place, at, event);
    }

    fn send(&mut self, rank: u32, id: u32, op: Op, now: T) {
        let s = self.params.segment(op.amount);
        let (end, stolen) = self.occupy((rank, op.cpu), now, s, &s.send, op.amount);
        self.observe(Moment::End, (rank, op.cpu), id, end);
        *self.resources.cpu(rank, op.cpu) = end;
        self.start(rank, id);
        self.messages += 1;
        if self.plain {
            let gap = self.gap(now, s, op.amount);
            *self.resources.sender(rank, op.nic) = gap;
            // The first byte leaves after o, whatever noise and O do.
            let arrival = now.after(Part::Overhead, 1, s.send.first_ps).after(Part::Latency, 1, s.latency_ps);
            self.push(Kind::Arrival, arrival, (rank, id), op);
            if s.protocol == Protocol::Eager {
                self.finish(rank, id, now, now);
            }
            return;
        }
        match s.protocol {
            Protocol::Eager => {
                let gap = self.gap(now.after(Part::Noise, stolen, stolen), s, op.amount);
                *self.resources.sender(rank, op.nic) = gap;
                self.push(Kind::Arrival, end.after(Part::Latency, 1, s.latency_ps), (rank, id), op);
                self.finish(rank, id, now, end);
            }
            Protocol::Rendezvous { handshake_ps } => {
                self.push(Kind::Arrival, end.after(Part::Latency, 1, handshake_ps), (rank, id), op);
            }
        }
    }

    fn receive(&mut self, rank: u32, id: u32, op: Op, now: T) {
        self.start(rank, id);
        let Some(found) = self.meet(&Entry::new(rank, op.peer, op.tag, id, true)) else { return };
        // The message's size decides: an eager send is over already, whatever room its receive has.
        let sent = self.program.op(found.sender, found.op);
        if let Protocol::Rendezvous { handshake_ps } = self.params.segment(sent.amount).protocol {
            if !self.plain {
                let hand = Handshake { sender: found.sender, send: found.op, receiver: rank, receive: id };
                return self.clear(hand, sent, now, handshake_ps);
            }
            self.end_rendezvous(found.sender, found.op, op, now);
        }
        self.finish(rank, id, now, now);
    }

    fn arrive(&mut self, at: u32, event: &Event<T>) {
        let (sender, id, op, now) = (event.a, event.b, event.op, event.time);
        let s = self.params.segment(op.amount);
        if self.plain {
            return self.arrive_plain(at, event, s);
        }
        match s.protocol {
            Protocol::Eager => self.take_in(at, Kind::Delivery, op.peer, event),
            Protocol::Rendezvous { handshake_ps } => {
                self.pool.release(at);
                if let Some(found) = self.meet(&Entry::new(op.peer, sender, op.tag, id, false)) {
                    let hand = Handshake { sender, send: id, receiver: op.peer, receive: found.op };
                    self.clear(hand, op, now, handshake_ps);
                }
            }
        }
    }

    /// Bytes pass the receiver's interface, in the order in which the first ones arrive.
    #[inline(always)]
    pub(super) fn take_in(&mut self, at: u32, next: Kind, receiver: u32, event: &Event<T>) {
        let (op, now) = (event.op, event.time);
        let s = self.params.segment(op.amount);
        let begin = now.later(*self.resources.receiver(receiver, op.nic));
        *self.resources.receiver(receiver, op.nic) = self.gap(begin, s, op.amount);
        let complete = self.further(begin, Part::GapBytes, s, &s.way(), op.amount);
        self.pool.get_mut(at).kind = next;
        if complete.ps() > now.ps() {
            self.pool.get_mut(at).time = complete;
            self.queue.push(&mut self.pool, at);
        } else if next == Kind::Delivery {
            self.deliver(at, event);
        } else {
            self.deliver_cleared(at, event);
        }
    }

    #[inline(always)]
    fn deliver(&mut self, at: u32, event: &Event<T>) {
        let (op, now) = (event.op, event.time);
        let place = (Need::Cpu, op.peer, op.cpu, 0);
        if !self.acquire(place, at, now) {
            return;
        }
        let end = self.handle_message(op.peer, op.cpu, event.b, op.amount, now);
        if self.ends_apart && end.ps() > now.ps() {
            self.push(Kind::Landing, end, (event.a, event.b), op);
        } else {
            self.land(event);
        }
        self.proceed(place, at, event);
    }

    #[inline(always)]
    fn land(&mut self, event: &Event<T>) {
        let (op, now) = (event.op, event.time);
        if let Some(found) = self.meet(&Entry::new(op.peer, event.a, op.tag, event.b, false)) {
            self.finish(op.peer, found.op, now, now);
        }
    }

    #[inline]
    pub(super) fn meet(&mut self, entry: &Entry) -> Option<Met> {
        let program = &*self.program;
        self.matching.meet(entry, &|rank| program.takes_any(rank))
    }

    #[inline]
    pub(super) fn acquire(&mut self, place: (Need, u32, u8, u8), at: u32, now: T) -> bool {
        let free = self.resources.free(place.0, place.1, place.2, place.3);
        if free.ps() <= now.ps() {
            return true;
        }
        self.resources.wait(place, at, free, &mut self.pool, &mut self.queue);
        false
    }

    #[inline(always)]
    pub(super) fn proceed(&mut self, place: (Need, u32, u8, u8), at: u32, event: &Event<T>) {
        if event.is_first {
            self.resources.succeed(place, event.time, &mut self.pool, &mut self.queue);
        }
        self.pool.release(at);
    }

    #[inline]
    pub(super) fn push(&mut self, kind: Kind, time: T, names: (u32, u32), op: Op) {
        let at = self.pool.add(Event::new(kind, time, self.stamp, names, op));
        self.stamp += 1;
        self.queue.push(&mut self.pool, at);
    }

    fn start(&mut self, rank: u32, op: u32) {
        self.program.started(rank, op, &mut self.ready);
    }

    /// An operation is over at `end`.
    #[inline(always)]
    pub(super) fn finish(&mut self, rank: u32, op: u32, now: T, end: T) {
        if self.ends_apart && end.ps() > now.ps() {
            return self.push(Kind::Done, end, (rank, op), Op::calculate(0));
        }
        self.finished += 1;
        self.program.finished(rank, op, &mut self.ready);
    }

    /// Queues what got ready.
    fn release_ready(&mut self, now: T) {
        put_in_order(&mut self.ready);
        for next in 0..self.ready.len() {
            let Ready { rank, id, op } = self.ready[next];
            let mut begin = *self.resources.cpu(rank, op.cpu);
            if op.verb == Verb::Send {
                begin = begin.later(*self.resources.sender(rank, op.nic));
            }
            if !self.plain {
                begin = begin.later(now);
            }
            self.push(Kind::Ready, begin, (rank, id), op);
        }
        self.ready.clear();
    }
}
