//! What messages cost CPUs and interfaces.

use crate::noise::Noise;
use crate::params::{Line, Segment};
use crate::program::{Moment, Program};

use super::run::Run;
use super::time::{Part, Time};

impl<T: Time, P: Program, N: Noise> Run<'_, T, P, N> {
    /// The receiver's CPU handles a message; until when.
    pub(super) fn handle_message(&mut self, rank: u32, cpu: u8, op: u32, bytes: u64, now: T) -> T {
        let now = self.observe(Moment::Take, (rank, cpu), op, now);
        let s = self.params.segment(bytes);
        let (end, _) = self.occupy((rank, cpu), now, s, &s.receive, bytes);
        self.observe(Moment::End, (rank, cpu), op, end);
        *self.resources.cpu(rank, cpu) = end;
        end
    }

    /// Until when a CPU is busy with its part of a message, and what noise took of that, ps.
    #[inline]
    pub(super) fn occupy(
        &mut self,
        (rank, cpu): (u32, u8),
        now: T,
        s: &Segment,
        line: &Line,
        bytes: u64,
    ) -> (T, u64) {
        let begun = now.after(Part::Overhead, 1, line.first_ps);
        let handled = self.further(begun, Part::OverheadBytes, s, line, bytes);
        let work_ps = if self.plain { line.first_ps } else { handled.ps() - now.ps() };
        let stolen = self.noise.stolen_ps(rank, cpu, now.ps(), work_ps);
        (handled.after(Part::Noise, stolen, stolen), stolen)
    }

    /// When an interface that begins with a message is free again.
    #[inline]
    pub(super) fn gap(&self, begin: T, s: &Segment, bytes: u64) -> T {
        self.further(begin.after(Part::Gap, 1, s.gap.first_ps), Part::GapBytes, s, &s.gap, bytes)
    }

    /// After the bytes that follow the first, counted as bytes at G.
    #[inline]
    pub(super) fn further(&self, begin: T, part: Part, s: &Segment, line: &Line, bytes: u64) -> T {
        if bytes > 1 {
            begin.after(part, s.at_gap(bytes - 1, line), line.further_ps(bytes - 1))
        } else if bytes == 0 && self.plain {
            begin.before(part, 1, line.further_ps(1))
        } else {
            begin
        }
    }

    /// Tells an observer what a CPU does; that it is a work of its own.
    #[inline(always)]
    pub(super) fn observe(&mut self, moment: Moment, (rank, cpu): (u32, u8), op: u32, at: T) -> T {
        at.of_work(self.noise.observe(moment, rank, cpu, op, at.ps(), at.work()))
    }
}
