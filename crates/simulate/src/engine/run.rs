//! The event loop.

use crate::noise::Noise;
use crate::params::{Dialect, Line, Params, Protocol, Segment};
use crate::program::{Op, Program, Verb};

use super::matching::{Entry, Matching};
use super::queue::{Event, Kind, Pool, Queue};
use super::resources::{Need, Resources};
use super::time::{Part, Time};

/// Events between two looks at whether to stop: about 10 ms.
const EVENTS_PER_LOOK: u64 = 1 << 16;
/// Stamps of operations that are ready at the start lie below all others.
const FIRST_STAMP: u64 = 1 << 40;
/// Waiting receives and messages that a deadlock lists.
const MAX_LISTED: usize = 8;

/// A finished simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished<T> {
    /// When each rank ended.
    pub ends: Vec<T>,
    /// Operations and messages.
    pub events: u64,
    /// Messages that no receive took.
    pub unreceived: usize,
}

impl<T: Time> Finished<T> {
    /// The last rank, and when it ended.
    pub fn last(&self) -> (usize, T) {
        let mut last = (0, T::default());
        for (rank, end) in self.ends.iter().enumerate() {
            if end.ps() > last.1.ps() {
                last = (rank, *end);
            }
        }
        last
    }
}

/// Why a program does not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// Operations that never ended.
    pub unfinished: u64,
    /// Receives that no message came for: the first in the order of ranks.
    pub receives: Vec<Entry>,
    /// All of them.
    pub receives_total: usize,
    /// Messages that no receive took, likewise.
    pub messages: Vec<Entry>,
    /// All of them.
    pub messages_total: usize,
}

impl std::fmt::Display for Deadlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |x: u32| if x == crate::ANY { "any".to_owned() } else { x.to_string() };
        let receive =
            |e: &Entry| format!("rank {} waits for rank {}, tag {}", e.receiver, name(e.sender), name(e.tag));
        let message =
            |e: &Entry| format!("rank {} sent to rank {}, tag {}", e.sender, e.receiver, name(e.tag));
        write!(f, "deadlock: {} operations never end", self.unfinished)?;
        for (what, total, all) in [
            (
                "receives without a message",
                self.receives_total,
                self.receives.iter().map(receive).collect::<Vec<_>>(),
            ),
            ("messages without a receive", self.messages_total, self.messages.iter().map(message).collect()),
        ] {
            if total > 0 {
                let more = if total > all.len() { "; ..." } else { "" };
                write!(f, "; {total} {what}: {}{more}", all.join("; "))?;
            }
        }
        Ok(())
    }
}

/// Why a simulation has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// Ranks wait for each other.
    #[error("{0}")]
    Deadlock(Box<Deadlock>),
    /// The clock ran over.
    #[error("simulated time exceeds 213 days, which the clock of 2^64 ps cannot hold: shorten calculations")]
    TooLong,
    /// `stop` said so.
    #[error("stopped")]
    Stopped,
}

/// Runs a program to its end.
///
/// # Errors
/// A deadlock, with the ranks and messages that wait; a time that cannot be held; `stop`.
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
        stamp: FIRST_STAMP,
        touched: [(0, Vec::new()), (0, Vec::new())],
        touched_ranks: 0,
        ends: Vec::new(),
        finished: 0,
        messages: 0,
    };
    run.begin();
    let mut looked_at = 0u64;
    while let Some(at) = run.queue.pop(&mut run.pool) {
        run.process(at);
        looked_at += 1;
        if looked_at.is_multiple_of(EVENTS_PER_LOOK) && stop() {
            return Err(SimulateError::Stopped);
        }
    }
    run.result()
}

/// A rendezvous under way.
#[derive(Debug, Clone, Copy)]
struct Handshake {
    sender: u32,
    send: u32,
    receiver: u32,
    receive: u32,
}

struct Run<'a, T, P, N> {
    program: &'a mut P,
    params: &'a Params,
    noise: &'a mut N,
    resources: Resources<T>,
    pool: Pool<T>,
    queue: Queue,
    matching: Matching,
    handshakes: Vec<Handshake>,
    free_handshakes: Vec<u32>,
    stamp: u64,
    /// Ranks of an event and their operations that got ready.
    touched: [(u32, Vec<u32>); 2],
    touched_ranks: usize,
    /// Ends of operations that no CPU was busy with; empty without any.
    ends: Vec<T>,
    finished: u64,
    messages: u64,
    ends_apart: bool,
    plain: bool,
}

impl<T: Time, P: Program, N: Noise> Run<'_, T, P, N> {
    /// Begins what is ready at the start, in the order of ranks: all of it precedes, by stamp, what it leads to.
    fn begin(&mut self) {
        let mut ready = Vec::new();
        let mut stamp = 0;
        for rank in 0..self.program.ranks() {
            ready.clear();
            self.program.begin(rank, &mut ready);
            self.sort(rank, &mut ready);
            for op in &ready {
                let at = self.pool.add(Event::new(Kind::Ready, T::default(), stamp, rank, *op));
                stamp += 1;
                self.process(at);
            }
        }
    }

    fn result(self) -> Result<Finished<T>, SimulateError> {
        let operations = self.program.operations();
        if self.finished < operations {
            let pick = |posted: bool| {
                let mut all: Vec<Entry> =
                    self.matching.entries().filter(|e| e.posted == posted).copied().collect();
                let total = all.len();
                all.sort_by_key(|e| (e.receiver, e.sender, e.tag, e.op));
                all.truncate(MAX_LISTED);
                (all, total)
            };
            let ((receives, receives_total), (messages, messages_total)) = (pick(true), pick(false));
            let unfinished = operations - self.finished;
            let deadlock = Deadlock { unfinished, receives, receives_total, messages, messages_total };
            return Err(SimulateError::Deadlock(Box::new(deadlock)));
        }
        let last = |rank: u32| {
            let cpus = self.resources.last(rank);
            self.ends.get(rank as usize).map_or(cpus, |end| cpus.later(*end))
        };
        let ends: Vec<T> = (0..self.program.ranks()).map(last).collect();
        if ends.iter().any(|e| e.ps() == u64::MAX) {
            return Err(SimulateError::TooLong);
        }
        let events = self.finished + self.messages;
        Ok(Finished { ends, events, unreceived: self.matching.len() })
    }

    fn process(&mut self, at: u32) {
        let event = *self.pool.get(at);
        let now = event.time;
        match event.kind {
            Kind::Void => self.pool.release(at),
            Kind::Ready => self.begin_op(at, event),
            Kind::Arrival => self.arrive(at, event),
            Kind::Delivery => self.deliver(at, event),
            Kind::Landing => {
                self.pool.release(at);
                self.land(event.a, event.b, now);
            }
            Kind::Clear => {
                self.pool.release(at);
                self.transmit(event.a, now);
            }
            Kind::ClearArrival => {
                let hand = self.handshakes[event.a as usize];
                let op = self.program.op(hand.sender, hand.send);
                self.take_in(at, Kind::ClearDelivery, hand.receiver, op, now);
            }
            Kind::ClearDelivery => self.deliver_cleared(at, event),
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
        if self.touched_ranks > 0 {
            self.release_ready(now);
        }
    }

    fn begin_op(&mut self, at: u32, event: Event<T>) {
        let (rank, id, now) = (event.a, event.b, event.time);
        let op = self.program.op(rank, id);
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
        if op.verb == Verb::Calculate {
            let stolen = self.noise.stolen_ps(rank, op.cpu, now.ps(), op.amount);
            let end = now.after(Part::Compute, op.amount, op.amount).after(Part::Noise, stolen, stolen);
            *self.resources.cpu(rank, op.cpu) = end;
            self.start(rank, id);
            self.finish(rank, id, now, end);
        } else {
            self.send(rank, id, op, now);
        }
        self.proceed(place, at, now);
    }

    fn send(&mut self, rank: u32, id: u32, op: Op, now: T) {
        let s = *self.params.segment(op.amount);
        let (end, stolen) = self.occupy(rank, op.cpu, now, &s.send, op.amount);
        *self.resources.cpu(rank, op.cpu) = end;
        self.start(rank, id);
        self.messages += 1;
        if self.plain {
            let gap = self.gap(now, &s, op.amount);
            *self.resources.sender(rank, op.nic) = gap;
            // The first byte leaves after o, whatever noise and O do.
            let arrival = now.after(Part::Overhead, 1, s.send.first_ps).after(Part::Latency, 1, s.latency_ps);
            self.push(Kind::Arrival, arrival, rank, id);
            if s.protocol == Protocol::Eager {
                self.finish(rank, id, now, now);
            }
            return;
        }
        match s.protocol {
            Protocol::Eager => {
                let gap = self.gap(now.after(Part::Noise, stolen, stolen), &s, op.amount);
                *self.resources.sender(rank, op.nic) = gap;
                self.push(Kind::Arrival, end.after(Part::Latency, 1, s.latency_ps), rank, id);
                self.finish(rank, id, now, end);
            }
            Protocol::Rendezvous { handshake_ps } => {
                self.push(Kind::Arrival, end.after(Part::Latency, 1, handshake_ps), rank, id);
            }
        }
    }

    fn receive(&mut self, rank: u32, id: u32, op: Op, now: T) {
        self.start(rank, id);
        let Some(found) = self.meet(Entry::new(rank, op.peer, op.tag, id, true)) else { return };
        if self.plain {
            // Its size decides, not the message's.
            if self.params.segment(op.amount).protocol != Protocol::Eager {
                self.end_rendezvous(found.sender, found.op, op, now);
            }
        } else {
            let sent = self.program.op(found.sender, found.op);
            if let Protocol::Rendezvous { handshake_ps } = self.params.segment(sent.amount).protocol {
                let hand = Handshake { sender: found.sender, send: found.op, receiver: rank, receive: id };
                return self.clear(hand, now, handshake_ps);
            }
        }
        self.finish(rank, id, now, now);
    }

    /// The rule of `LogGopSim`: the match frees the sender, whose clocks are not behind it from then on.
    fn end_rendezvous(&mut self, sender: u32, send: u32, of: Op, now: T) {
        self.finish(sender, send, now, now);
        let cpu = self.resources.cpu(sender, of.cpu);
        *cpu = cpu.later(now);
        let nic = self.resources.sender(sender, of.nic);
        *nic = nic.later(now);
    }

    fn arrive(&mut self, at: u32, event: Event<T>) {
        let (sender, id, now) = (event.a, event.b, event.time);
        let op = self.program.op(sender, id);
        let s = *self.params.segment(op.amount);
        if self.plain {
            let place = (Need::CpuReceive, op.peer, op.cpu, op.nic);
            if !self.acquire(place, at, now) {
                return;
            }
            let stolen = self.noise.stolen_ps(op.peer, op.cpu, now.ps(), s.receive.first_ps);
            let busy = now.after(Part::Overhead, 1, s.receive.first_ps).after(Part::Noise, stolen, stolen);
            *self.resources.cpu(op.peer, op.cpu) = self.received_bytes(busy, &s, op.amount);
            *self.resources.receiver(op.peer, op.nic) = self.gap(now, &s, op.amount);
            if let Some(found) = self.meet(Entry::new(op.peer, sender, op.tag, id, false)) {
                if s.protocol != Protocol::Eager {
                    self.end_rendezvous(sender, id, op, now);
                }
                self.finish(op.peer, found.op, now, now);
            }
            return self.proceed(place, at, now);
        }
        match s.protocol {
            Protocol::Eager => self.take_in(at, Kind::Delivery, op.peer, op, now),
            Protocol::Rendezvous { handshake_ps } => {
                self.pool.release(at);
                if let Some(found) = self.meet(Entry::new(op.peer, sender, op.tag, id, false)) {
                    let hand = Handshake { sender, send: id, receiver: op.peer, receive: found.op };
                    self.clear(hand, now, handshake_ps);
                }
            }
        }
    }

    /// Bytes pass the receiver's interface, in the order in which the first ones arrive.
    fn take_in(&mut self, at: u32, next: Kind, receiver: u32, op: Op, now: T) {
        let s = *self.params.segment(op.amount);
        let begin = now.later(*self.resources.receiver(receiver, op.nic));
        *self.resources.receiver(receiver, op.nic) = self.gap(begin, &s, op.amount);
        let complete = self.further(begin, Part::GapBytes, &s.gap, op.amount);
        let event = self.pool.get_mut(at);
        event.kind = next;
        if complete.ps() > now.ps() {
            event.time = complete;
            self.queue.push(&mut self.pool, at);
        } else {
            let event = *event;
            if next == Kind::Delivery { self.deliver(at, event) } else { self.deliver_cleared(at, event) }
        }
    }

    fn deliver(&mut self, at: u32, event: Event<T>) {
        let (sender, id, now) = (event.a, event.b, event.time);
        let op = self.program.op(sender, id);
        let place = (Need::Cpu, op.peer, op.cpu, 0);
        if !self.acquire(place, at, now) {
            return;
        }
        let end = self.handle_message(op.peer, op.cpu, op.amount, now);
        if self.ends_apart && end.ps() > now.ps() {
            self.push(Kind::Landing, end, sender, id);
        } else {
            self.land(sender, id, now);
        }
        self.proceed(place, at, now);
    }

    fn land(&mut self, sender: u32, id: u32, now: T) {
        let op = self.program.op(sender, id);
        if let Some(found) = self.meet(Entry::new(op.peer, sender, op.tag, id, false)) {
            self.finish(op.peer, found.op, now, now);
        }
    }

    fn deliver_cleared(&mut self, at: u32, event: Event<T>) {
        let now = event.time;
        let hand = self.handshakes[event.a as usize];
        let sent = self.program.op(hand.sender, hand.send);
        let cpu = self.program.op(hand.receiver, hand.receive).cpu;
        let place = (Need::Cpu, hand.receiver, cpu, 0);
        if !self.acquire(place, at, now) {
            return;
        }
        let end = self.handle_message(hand.receiver, cpu, sent.amount, now);
        if self.ends_apart && end.ps() > now.ps() {
            self.push(Kind::ClearLanding, end, event.a, 0);
        } else {
            self.land_cleared(event.a, now);
        }
        self.proceed(place, at, now);
    }

    fn land_cleared(&mut self, index: u32, now: T) {
        let hand = self.handshakes[index as usize];
        self.free_handshakes.push(index);
        self.finish(hand.receiver, hand.receive, now, now);
    }

    /// A request met its receive: the answer goes back.
    fn clear(&mut self, hand: Handshake, now: T, handshake_ps: u64) {
        let index = if let Some(index) = self.free_handshakes.pop() {
            self.handshakes[index as usize] = hand;
            index
        } else {
            self.handshakes.push(hand);
            (self.handshakes.len() - 1) as u32
        };
        self.push(Kind::Clear, now.after(Part::Latency, 1, handshake_ps), index, 0);
    }

    /// The bytes of a rendezvous leave, without the sender's CPU.
    fn transmit(&mut self, index: u32, now: T) {
        let hand = self.handshakes[index as usize];
        let op = self.program.op(hand.sender, hand.send);
        let s = *self.params.segment(op.amount);
        let begin = now.later(*self.resources.sender(hand.sender, op.nic));
        *self.resources.sender(hand.sender, op.nic) = self.gap(begin, &s, op.amount);
        let out = self.further(begin, Part::GapBytes, &s.gap, op.amount);
        self.push(Kind::Done, out, hand.sender, hand.send);
        self.push(Kind::ClearArrival, begin.after(Part::Latency, 1, s.latency_ps), index, 0);
    }

    /// The receiver's CPU handles a message; until when.
    fn handle_message(&mut self, rank: u32, cpu: u8, bytes: u64, now: T) -> T {
        let line = self.params.segment(bytes).receive;
        let (end, _) = self.occupy(rank, cpu, now, &line, bytes);
        *self.resources.cpu(rank, cpu) = end;
        end
    }

    /// Until when a CPU is busy with its part of a message, and what noise took of that, ps.
    fn occupy(&mut self, rank: u32, cpu: u8, now: T, line: &Line, bytes: u64) -> (T, u64) {
        let handled =
            self.further(now.after(Part::Overhead, 1, line.first_ps), Part::OverheadBytes, line, bytes);
        let work_ps = if self.plain { line.first_ps } else { handled.ps() - now.ps() };
        let stolen = self.noise.stolen_ps(rank, cpu, now.ps(), work_ps);
        (handled.after(Part::Noise, stolen, stolen), stolen)
    }

    /// When an interface that begins with a message is free again.
    fn gap(&self, begin: T, s: &Segment, bytes: u64) -> T {
        self.further(begin.after(Part::Gap, 1, s.gap.first_ps), Part::GapBytes, &s.gap, bytes)
    }

    /// After the bytes that follow the first.
    fn further(&self, begin: T, part: Part, line: &Line, bytes: u64) -> T {
        match bytes {
            0 if self.plain => begin.before(part, 1, line.further_ps(1)),
            0 | 1 => begin,
            _ => begin.after(part, bytes - 1, line.further_ps(bytes - 1)),
        }
    }

    /// The rule of `LogGopSim`: the receiver's CPU is busy with the bytes as long as the larger of O and G says. The comparison
    /// of -1 bytes is one of unsigned numbers.
    fn received_bytes(&self, begin: T, s: &Segment, bytes: u64) -> T {
        let (cpu, link) = (s.receive.further_ps(1), s.gap.further_ps(1));
        let by_cpu = if bytes == 0 { cpu != 0 && (cpu < link || link == 0) } else { cpu > link };
        let (part, line) = if by_cpu { (Part::OverheadBytes, &s.receive) } else { (Part::GapBytes, &s.gap) };
        self.further(begin, part, line, bytes)
    }

    fn meet(&mut self, entry: Entry) -> Option<Entry> {
        let program = &*self.program;
        self.matching.meet(entry, &|rank| program.takes_any(rank))
    }

    fn acquire(&mut self, place: (Need, u32, u8, u8), at: u32, now: T) -> bool {
        let free = self.resources.free(place.0, place.1, place.2, place.3);
        if free.ps() <= now.ps() {
            return true;
        }
        self.resources.wait(place, at, free, &mut self.pool, &mut self.queue);
        false
    }

    fn proceed(&mut self, place: (Need, u32, u8, u8), at: u32, now: T) {
        self.resources.proceed(place, at, now, &mut self.pool, &mut self.queue);
        self.pool.release(at);
    }

    fn push(&mut self, kind: Kind, time: T, a: u32, b: u32) {
        let at = self.pool.add(Event::new(kind, time, self.stamp, a, b));
        self.stamp += 1;
        self.queue.push(&mut self.pool, at);
    }

    /// List of what gets ready on a rank by this event.
    fn ready(&mut self, rank: u32) -> usize {
        for slot in 0..self.touched_ranks {
            if self.touched[slot].0 == rank {
                return slot;
            }
        }
        self.touched[self.touched_ranks].0 = rank;
        self.touched_ranks += 1;
        self.touched_ranks - 1
    }

    fn start(&mut self, rank: u32, op: u32) {
        let slot = self.ready(rank);
        self.program.started(rank, op, &mut self.touched[slot].1);
    }

    /// An operation is over at `end`.
    fn finish(&mut self, rank: u32, op: u32, now: T, end: T) {
        if self.ends_apart && end.ps() > now.ps() {
            return self.push(Kind::Done, end, rank, op);
        }
        self.finished += 1;
        let slot = self.ready(rank);
        self.program.finished(rank, op, &mut self.touched[slot].1);
    }

    /// Queues what got ready, in the order of ranks.
    fn release_ready(&mut self, now: T) {
        let both = std::mem::take(&mut self.touched_ranks) == 2;
        if both && self.touched[1].0 < self.touched[0].0 {
            self.touched.swap(0, 1);
        }
        for slot in 0..=usize::from(both) {
            let rank = self.touched[slot].0;
            let mut ops = std::mem::take(&mut self.touched[slot].1);
            self.sort(rank, &mut ops);
            for id in ops.drain(..) {
                let op = self.program.op(rank, id);
                let mut begin = *self.resources.cpu(rank, op.cpu);
                if op.verb == Verb::Send {
                    begin = begin.later(*self.resources.sender(rank, op.nic));
                }
                if !self.plain {
                    begin = begin.later(now);
                }
                self.push(Kind::Ready, begin, rank, id);
            }
            self.touched[slot].1 = ops;
        }
    }

    fn sort(&self, rank: u32, ops: &mut [u32]) {
        if ops.len() > 1 {
            ops.sort_by_key(|op| self.program.op(rank, *op).verb);
        }
    }
}
