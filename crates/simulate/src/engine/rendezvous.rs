//! Messages whose bytes go only when the receiver has a place for them.

use crate::noise::Noise;
use crate::program::{Op, Program};

use super::queue::{Event, Kind};
use super::resources::Need;
use super::run::Run;
use super::time::{Part, Time};

/// A rendezvous under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handshake {
    pub(super) sender: u32,
    pub(super) send: u32,
    pub(super) receiver: u32,
    pub(super) receive: u32,
}

impl<T: Time, P: Program, N: Noise> Run<'_, T, P, N> {
    pub(super) fn deliver_cleared(&mut self, at: u32, event: &Event<T>) {
        let now = event.time;
        let hand = self.handshakes[event.a as usize];
        let cpu = self.program.op(hand.receiver, hand.receive).cpu;
        let place = (Need::Cpu, hand.receiver, cpu, 0);
        if !self.acquire(place, at, now) {
            return;
        }
        let end = self.handle_message(hand.receiver, cpu, hand.send, event.op.amount, now);
        if self.ends_apart && end.ps() > now.ps() {
            self.push(Kind::ClearLanding, end, (event.a, 0), event.op);
        } else {
            self.land_cleared(event.a, now);
        }
        self.proceed(place, at, event);
    }

    pub(super) fn land_cleared(&mut self, index: u32, now: T) {
        let hand = self.handshakes[index as usize];
        self.free_handshakes.push(index);
        self.finish(hand.receiver, hand.receive, now, now);
    }

    /// A request met its receive: the answer goes back.
    pub(super) fn clear(&mut self, hand: Handshake, sent: Op, now: T, handshake_ps: u64) {
        let index = if let Some(index) = self.free_handshakes.pop() {
            self.handshakes[index as usize] = hand;
            index
        } else {
            self.handshakes.push(hand);
            (self.handshakes.len() - 1) as u32
        };
        self.push(Kind::Clear, now.after(Part::Latency, 1, handshake_ps), (index, 0), sent);
    }

    /// The bytes of a rendezvous leave, without the sender's CPU.
    pub(super) fn transmit(&mut self, index: u32, op: Op, now: T) {
        let hand = self.handshakes[index as usize];
        let s = self.params.segment(op.amount);
        let begin = now.later(*self.resources.sender(hand.sender, op.nic));
        *self.resources.sender(hand.sender, op.nic) = self.gap(begin, s, op.amount);
        // The sender is free with the last byte: G holds the next message up, not the sender, where one alone is faster.
        let line = if s.way_per_byte < s.gap.per_byte { s.way() } else { s.gap };
        let out = self.further(begin, Part::GapBytes, s, &line, op.amount);
        self.push(Kind::Done, out, (hand.sender, hand.send), op);
        self.push(Kind::ClearArrival, begin.after(Part::Latency, 1, s.latency_ps), (index, 0), op);
    }
}
