//! What every member does in a visit.

use std::sync::atomic::Ordering;

use super::leader::Leader;
use super::shared::{OVER, Report, Seen, Shared, What};
use super::{Batches, Member, Others, TeamCell, TeamVisit};
use crate::sampling::Timing;

/// A member that hears nothing of member 0 for so long after the deadline leaves by itself, ns.
const GRACE_NS: u64 = 2_000_000_000;
/// Turns between two looks at the time of a member that works throughout, and time between two of its reports, ns.
const LOOK_TURNS: usize = 8;
const REPORT_NS: u64 = 100_000;
/// Part of a batch that is done at once by a member that waits for the last.
const LAST_PARTS: u64 = 4;

pub(super) struct Session<'a> {
    pub(super) visit: &'a TeamVisit<'a>,
    pub(super) cells: &'a [TeamCell<'a>],
    /// Whether all have a CPU of their own, and so wait, running, for the start. Who shares one can't.
    pub(super) gated: bool,
    pub(super) shared: Shared<'a>,
}

impl Session<'_> {
    pub(super) fn work(&self, member: &Member<'_>) {
        let Some(report) = self.shared.report(member.rank) else { return };
        let mut timing = self.visit.clock.of_member(member.rank);
        if member.rank == 0 {
            let found = Leader::new(self, member, timing, report).lead();
            self.shared.orders.round.store(OVER, Ordering::Release);
            self.shared.write_found(&found);
        } else {
            self.follow(member, timing.as_mut(), report);
        }
    }

    fn follow(&self, member: &Member<'_>, timing: &mut dyn Timing, report: &Report<'_>) {
        for round in 1.. {
            self.shared.orders.arrived.fetch_add(1, Ordering::AcqRel);
            if self.next_order(member, round).is_none_or(|said| said == OVER) {
                return;
            }
            self.obey(member, timing, report, round);
        }
    }

    /// The order of a round, or that there is none any more; `None` when member 0 is lost.
    fn next_order(&self, member: &Member<'_>, round: u64) -> Option<u64> {
        let give_up_ns = member.deadline_ns.saturating_add(GRACE_NS);
        loop {
            let mut said = 0;
            let heard = member.wait(|| {
                said = self.shared.orders.round.load(Ordering::Acquire);
                said >= round
            });
            if heard {
                return Some(said);
            }
            if (member.now_ns)() > give_up_ns {
                return None;
            }
        }
    }

    fn obey(&self, member: &Member<'_>, timing: &mut dyn Timing, report: &Report<'_>, round: u64) {
        let orders = &self.shared.orders;
        let cell = self.cells.get(orders.cell.load(Ordering::Relaxed) as usize);
        let Some(cell) = cell.filter(|c| member.rank < c.workers) else { return };
        match What::of(orders.what.load(Ordering::Relaxed)) {
            Some(What::Prepare) => self.prepare(cell, member),
            Some(What::Batch) => {
                let turns = orders.turns.load(Ordering::Relaxed);
                self.batch(cell, member, timing, report, round, turns, &mut Vec::new());
            }
            Some(What::Throughout) => self.throughout(cell, member, timing, report, round),
            None => {}
        }
    }

    pub(super) fn prepare(&self, cell: &TeamCell<'_>, member: &Member<'_>) {
        if !cell.operation.prepare(member) {
            self.shared.orders.failed.store(1, Ordering::Relaxed);
        }
    }

    /// One batch with its times and the switches it took; of trips, `ends` gets the clock at the end of each in member 0.
    #[allow(clippy::too_many_arguments, reason = "what a member has at hand")]
    pub(super) fn batch(
        &self,
        cell: &TeamCell<'_>,
        member: &Member<'_>,
        timing: &mut dyn Timing,
        report: &Report<'_>,
        round: u64,
        turns: u64,
        ends: &mut Vec<u64>,
    ) {
        let orders = &self.shared.orders;
        // Before the common start: that a member lost its CPU while it waited is seen too.
        let before = timing.mark();
        if self.gated && member.rank == 0 {
            let others = cell.workers as u64 - 1;
            member.wait(|| orders.ready.load(Ordering::Acquire) >= others);
            orders.go.store(round, Ordering::Release);
        } else if self.gated {
            orders.ready.fetch_add(1, Ordering::AcqRel);
            // Member 0 always says so, if late.
            while orders.go.load(Ordering::Acquire) < round {
                (member.relax)();
            }
        }
        let in_step = cell.operation.approach(member);
        let start_ticks = timing.ticks();
        let operation = cell.operation;
        let done = in_step
            && match cell.batches {
                Batches::Trips(_) if member.rank == 0 => {
                    operation.trips(member, turns, &mut || ends.push(timing.ticks()))
                }
                Batches::Trips(_) => operation.trips(member, turns, &mut || {}),
                _ => operation.batch(member, turns),
            };
        let end_ticks = timing.ticks();
        if cell.others == Others::UntilLast {
            orders.done.fetch_add(1, Ordering::AcqRel);
            let part = (turns / LAST_PARTS).max(1);
            while orders.done.load(Ordering::Acquire) < cell.workers as u64 && !member.is_late() {
                cell.operation.batch(member, part);
            }
        }
        report.write(&Seen { start_ticks, end_ticks, ..Seen::default() }.since(&before, &timing.mark()));
        if !done {
            orders.failed.store(1, Ordering::Relaxed);
        }
    }

    /// Works until told to stop, and tells meanwhile how many turns it has made and how often it was switched out.
    fn throughout(
        &self,
        cell: &TeamCell<'_>,
        member: &Member<'_>,
        timing: &mut dyn Timing,
        report: &Report<'_>,
        round: u64,
    ) {
        let before = timing.mark();
        let mut turns = report.turns.load(Ordering::Relaxed);
        let mut told_ns = 0;
        loop {
            for _ in 0..LOOK_TURNS {
                cell.operation.batch(member, 1);
                turns += 1;
                report.turns.store(turns, Ordering::Relaxed);
                if self.shared.orders.stop.load(Ordering::Acquire) >= round {
                    return;
                }
            }
            let now_ns = (member.now_ns)();
            if now_ns.saturating_sub(told_ns) >= REPORT_NS {
                report.write(&Seen::default().since(&before, &timing.mark()));
                report.told.fetch_add(1, Ordering::Release);
                told_ns = now_ns;
            }
            if now_ns >= member.deadline_ns {
                return;
            }
        }
    }
}
