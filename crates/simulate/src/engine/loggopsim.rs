//! Rules of `LogGOPSim` (Hoefler et al. 2010) that differ from ours.

use crate::noise::Noise;
use crate::params::{Protocol, Segment};
use crate::program::{Op, Program};

use super::matching::Entry;
use super::queue::Event;
use super::resources::Need;
use super::run::Run;
use super::time::{Part, Time};

impl<T: Time, P: Program, N: Noise> Run<'_, T, P, N> {
    /// A message needs the receiver's CPU and interface together, and the CPU is busy while its bytes come.
    pub(super) fn arrive_plain(&mut self, at: u32, event: &Event<T>, s: &Segment) {
        let (sender, id, op, now) = (event.a, event.b, event.op, event.time);
        let place = (Need::CpuReceive, op.peer, op.cpu, op.nic);
        if !self.acquire(place, at, now) {
            return;
        }
        let stolen = self.noise.stolen_ps(op.peer, op.cpu, now.ps(), s.receive.first_ps);
        let busy = now.after(Part::Overhead, 1, s.receive.first_ps).after(Part::Noise, stolen, stolen);
        *self.resources.cpu(op.peer, op.cpu) = self.received_bytes(busy, s, op.amount);
        *self.resources.receiver(op.peer, op.nic) = self.gap(now, s, op.amount);
        if let Some(found) = self.meet(&Entry::new(op.peer, sender, op.tag, id, false)) {
            if s.protocol != Protocol::Eager {
                self.end_rendezvous(sender, id, op, now);
            }
            self.finish(op.peer, found.op, now, now);
        }
        self.proceed(place, at, event);
    }

    /// The match frees the sender, whose clocks are not behind it from then on.
    pub(super) fn end_rendezvous(&mut self, sender: u32, send: u32, of: Op, now: T) {
        self.finish(sender, send, now, now);
        let cpu = self.resources.cpu(sender, of.cpu);
        *cpu = cpu.later(now);
        let nic = self.resources.sender(sender, of.nic);
        *nic = nic.later(now);
    }

    /// The receiver's CPU is busy with the bytes as long as the larger of O and G says. The comparison
    /// of -1 bytes is one of unsigned numbers.
    fn received_bytes(&self, begin: T, s: &Segment, bytes: u64) -> T {
        let (cpu, link) = (s.receive.further_ps(1), s.gap.further_ps(1));
        let by_cpu = if bytes == 0 { cpu != 0 && (cpu < link || link == 0) } else { cpu > link };
        let (part, line) = if by_cpu { (Part::OverheadBytes, &s.receive) } else { (Part::GapBytes, &s.gap) };
        self.further(begin, part, s, line, bytes)
    }
}
