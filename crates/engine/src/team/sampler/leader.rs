//! Member 0: it orders batches, finds their length, and writes the samples down.

use std::sync::atomic::Ordering;

use machmeter_stats::random::Random;

use super::judge::{Batch, Observed, disturbance, of_member};
use super::member::Session;
use super::shared::{Report, Seen, What};
use super::{Batches, Clocked, Found, Member, Others, Rule, TeamCell, TeamSample, Trip, Turns};
use crate::calibration::{self, Tried};
use crate::deadline::stop_requested;
use crate::disturbance::Disturbance;
use crate::disturbance::sibling::CoreLooks;
use crate::sampling::Timing;

/// One of so many turns tries the known number, which may be off by this factor: waiters spin or sleep by visit.
const TRIAL_PART: u64 = 64;
const FAR_OFF: f64 = 8.0;
/// One of so many turns warms the rest.
const WARM_PART: u64 = 8;
/// Further tries of a batch that was disturbed while the number of turns is sought.
const TRIES: usize = 4;
/// Looks at the clock in a timed batch, about, and turns between two of them at most.
const LOOKS: f64 = 4.0;
const LOOK_TURNS: u64 = 64;
/// Readings of the clock of which the least is what one takes.
const CLOCK_READINGS: usize = 16;
/// Turns of a timed batch at least, so that the progress of others can be compared.
const TIMED_TURNS: u64 = 8;

pub(super) struct Leader<'a, 'm> {
    session: &'a Session<'a>,
    member: &'a Member<'m>,
    timing: Box<dyn Timing + 'a>,
    report: &'a Report<'a>,
    round: u64,
    random: Random,
    sampling: bool,
    looks: CoreLooks,
    /// Turns of short batches by cell, as this visit found them; 0 before.
    turns: Vec<u64>,
    found: Found,
    /// Clock at the end of each turn of the last batch of trips.
    ends: Vec<u64>,
}

impl<'a, 'm> Leader<'a, 'm> {
    pub(super) fn new(
        session: &'a Session<'a>,
        member: &'a Member<'m>,
        timing: Box<dyn Timing + 'a>,
        report: &'a Report<'a>,
    ) -> Self {
        Self {
            session,
            member,
            timing,
            report,
            round: 0,
            random: Random::new(session.visit.seed),
            sampling: false,
            looks: CoreLooks::default(),
            turns: vec![0; session.cells.len()],
            found: Found::default(),
            ends: Vec::new(),
        }
    }

    /// All laps. A visit that lost a member or its time leaves what it has.
    pub(super) fn lead(mut self) -> Found {
        self.laps();
        self.found
    }

    fn laps(&mut self) {
        let visit = self.session.visit;
        let start_ns = self.timing.now_ns();
        let mut order: Vec<usize> = (0..self.session.cells.len()).collect();
        for lap in 0..visit.laps {
            if lap > 0 {
                self.random.shuffle(&mut order);
                if self.timing.now_ns().saturating_sub(start_ns) > visit.laps_ns {
                    return;
                }
            }
            for index in order.iter().copied() {
                if stop_requested() || self.member.is_late() || self.visit(index, lap).is_none() {
                    return;
                }
            }
        }
    }

    /// One visit of a cell; `None` when a member is missing.
    fn visit(&mut self, index: usize, lap: usize) -> Option<()> {
        let cell = self.session.cells.get(index)?;
        let shared = &self.session.shared;
        self.sampling = false;
        self.order(What::Prepare, index, 0)?;
        self.session.prepare(cell, self.member);
        self.all_arrived()?;
        let turns = if shared.orders.failed.load(Ordering::Relaxed) == 0 {
            if cell.others == Others::Throughout {
                self.begin_throughout(index, cell)?;
            }
            self.turns_for(index, cell)
        } else {
            None
        };
        let Some(turns) = turns else {
            shared.orders.stop.store(self.round, Ordering::Release);
            let disturbance = Some(Disturbance::Failed);
            let failed =
                |member| TeamSample { cell: index, lap, member, disturbance, ..TeamSample::default() };
            self.found.samples.extend((0..cell.timed_members()).map(failed));
            return Some(());
        };
        self.turns[index] = turns;
        self.sampling = true;
        let start_ns = self.timing.now_ns();
        for number in 0..cell.samples {
            let now_ns = self.timing.now_ns();
            if self.member.is_late() || number > 0 && now_ns.saturating_sub(start_ns) > cell.samples_ns {
                break;
            }
            self.sample(index, cell, turns, lap)?;
        }
        shared.orders.stop.store(self.round, Ordering::Release);
        Some(())
    }

    /// Waits until all others have come for their next order.
    fn all_arrived(&self) -> Option<()> {
        let arrived = self.session.shared.orders.arrived;
        let all = (self.member.members as u64 - 1) * (self.round + 1);
        self.member.wait(|| arrived.load(Ordering::Acquire) >= all).then_some(())
    }

    fn order(&mut self, what: What, index: usize, turns: u64) -> Option<()> {
        self.all_arrived()?;
        let orders = &self.session.shared.orders;
        for (word, value) in [
            (orders.what, what as u64),
            (orders.cell, index as u64),
            (orders.turns, turns),
            (orders.ready, 0),
            (orders.done, 0),
            (orders.failed, 0),
        ] {
            word.store(value, Ordering::Relaxed);
        }
        self.round += 1;
        orders.round.store(self.round, Ordering::Release);
        Some(())
    }

    /// Lets the others work, and waits until each has told of itself.
    fn begin_throughout(&mut self, index: usize, cell: &TeamCell<'_>) -> Option<()> {
        let before = self.others(cell);
        self.order(What::Throughout, index, 0)?;
        self.all_have_told(cell, &before).then_some(())
    }

    fn others(&self, cell: &TeamCell<'_>) -> Vec<Seen> {
        self.session.shared.read(1, cell.workers)
    }

    fn all_have_told(&self, cell: &TeamCell<'_>, since: &[Seen]) -> bool {
        self.member.wait(|| self.others(cell).iter().zip(since).all(|(now, then)| now.told > then.told))
    }

    /// Turns of a short batch, warmed; `None` when the operation fails or the time is over.
    fn turns_for(&mut self, index: usize, cell: &TeamCell<'_>) -> Option<u64> {
        let wanted = match cell.batches {
            Batches::Timed(batch_ns) => return self.turns_of_a_look(cell, batch_ns),
            Batches::Trips(turns) => return Some(turns + (turns / WARM_PART).max(1)),
            Batches::Pairs(turns) | Batches::Single(turns) => turns,
        };
        if wanted.least == wanted.most {
            self.batch(index, cell, wanted.least)?;
            return Some(wanted.least);
        }
        let known = if self.turns[index] > 0 { self.turns[index] } else { cell.known_turns };
        if known > 0 {
            let part = |of: u64| (known / of).max(wanted.least).max(1);
            let expected_ns = wanted.batch_ns * part(TRIAL_PART) as f64 / known as f64;
            let trial = self.undisturbed_batch(index, cell, part(TRIAL_PART))?;
            if trial.judged == Some(Disturbance::Failed) {
                return None;
            }
            if (expected_ns / FAR_OFF..=expected_ns * FAR_OFF).contains(&self.ns(&trial, cell)) {
                self.batch(index, cell, part(WARM_PART))?;
                return Some(known);
            }
        }
        self.tried_turns(index, cell, wanted)
    }

    fn tried_turns(&mut self, index: usize, cell: &TeamCell<'_>, wanted: Turns) -> Option<u64> {
        let turns = calibration::turns_for(wanted.batch_ns, |turns| {
            let batch = self.undisturbed_batch(index, cell, turns)?;
            let late = turns >= wanted.most || self.member.is_late();
            let tried = Tried { ns: self.ns(&batch, cell), late };
            (batch.judged != Some(Disturbance::Failed)).then_some(tried)
        });
        turns.map(|t| t.min(wanted.most).max(wanted.least))
    }

    /// Turns of which about [`LOOKS`] make a timed batch; the turn that tells warms too.
    fn turns_of_a_look(&mut self, cell: &TeamCell<'_>, batch_ns: f64) -> Option<u64> {
        let start = self.timing.ticks();
        cell.operation.batch(self.member, 1).then_some(())?;
        let turn_ns = self.session.visit.clock.rate().ns(self.timing.ticks().saturating_sub(start).max(1));
        Some(((batch_ns / LOOKS / turn_ns) as u64).clamp(1, LOOK_TURNS))
    }

    fn ns(&self, batch: &Batch, cell: &TeamCell<'_>) -> f64 {
        self.session.visit.clock.rate().ns(batch.ticks(cell.clocked, 0))
    }

    /// A batch whose members kept CPUs of their own; after a few tries, whatever there is. Without partners operations look quick.
    fn undisturbed_batch(&mut self, index: usize, cell: &TeamCell<'_>, turns: u64) -> Option<Batch> {
        let mut batch = self.batch(index, cell, turns)?;
        for _ in 0..TRIES {
            let lost = self.session.gated && batch.observed(cell.judged).involuntary > 0;
            if !lost || self.member.is_late() {
                break;
            }
            batch = self.batch(index, cell, turns)?;
        }
        Some(batch)
    }

    /// All members do one batch. `None` when one is missing.
    fn batch(&mut self, index: usize, cell: &TeamCell<'_>, turns: u64) -> Option<Batch> {
        let session = self.session;
        let mut done = true;
        let members = if cell.others == Others::Throughout {
            let member = self.member;
            vec![self.own_batch(|_, _| done = cell.operation.batch(member, turns))]
        } else {
            self.all_arrived()?;
            cell.operation.reset();
            self.ends.clear();
            self.ends.reserve(turns as usize * usize::from(cell.trips() > 0));
            self.order(What::Batch, index, turns)?;
            let (timing, ends) = (self.timing.as_mut(), &mut self.ends);
            session.batch(cell, self.member, timing, self.report, self.round, turns, ends);
            self.all_arrived()?;
            done = session.shared.orders.failed.load(Ordering::Relaxed) == 0;
            session.shared.read(0, cell.workers)
        };
        let paused_ns = cell.operation.pause_ns() as f64 * turns as f64;
        let paused_ticks = (paused_ns / session.visit.clock.rate().ns_per_tick()) as u64;
        let mut batch = Batch { members, turns, paused_ticks, judged: None };
        let clean = self.sampling && batch.observed(cell.judged).involuntary == 0;
        let judged = cell.operation.judge(turns, clean);
        let failed = !done || batch.ticks(cell.clocked, 0) == 0;
        batch.judged = if failed { Some(Disturbance::Failed) } else { judged };
        Some(batch)
    }

    /// A batch of member 0 beside others that work throughout.
    fn own_batch(&mut self, work: impl FnOnce(&mut dyn Timing, u64)) -> Seen {
        let before = self.timing.mark();
        let start_ticks = self.timing.ticks();
        work(self.timing.as_mut(), start_ticks);
        let end_ticks = self.timing.ticks();
        Seen { start_ticks, end_ticks, ..Seen::default() }.since(&before, &self.timing.mark())
    }

    /// Turns, so many at a time, until a batch is long enough.
    fn timed_batch(&mut self, cell: &TeamCell<'_>, look_turns: u64, batch_ns: f64) -> Batch {
        let wanted_ticks = self.session.visit.clock.rate().ticks(batch_ns);
        let (mut turns, mut done, member) = (0, true, self.member);
        let own = self.own_batch(|timing, start| {
            while done && (turns < TIMED_TURNS || timing.ticks().saturating_sub(start) < wanted_ticks) {
                done = cell.operation.batch(member, look_turns);
                turns += look_turns;
            }
        });
        let judged = (!done || own.end_ticks <= own.start_ticks).then_some(Disturbance::Failed);
        Batch { members: vec![own], turns, paused_ticks: 0, judged }
    }

    /// Looks at the core, where nobody else of the team can be on it.
    fn look(&mut self) {
        if self.member.members == 1 {
            self.looks.add(self.timing.look_at_core());
        }
    }

    /// One batch of a sample, and a look behind it.
    fn part(&mut self, index: usize, cell: &TeamCell<'_>, turns: u64) -> Option<Batch> {
        let batch = match cell.batches {
            Batches::Timed(batch_ns) => Some(self.timed_batch(cell, turns, batch_ns)),
            _ => self.batch(index, cell, turns),
        };
        self.look();
        batch
    }

    fn sample(&mut self, index: usize, cell: &TeamCell<'_>, turns: u64, lap: usize) -> Option<()> {
        let at_ns = self.timing.now_ns().saturating_sub(self.session.visit.start_ns);
        self.looks = CoreLooks::default();
        self.look();
        let before = self.others(cell);
        let (short, long) = match cell.batches {
            Batches::Pairs(_) if self.random.unit() < 0.5 => {
                let long = self.part(index, cell, 2 * turns)?;
                (Some(self.part(index, cell, turns)?), long)
            }
            Batches::Pairs(_) => (Some(self.part(index, cell, turns)?), self.part(index, cell, 2 * turns)?),
            _ => (None, self.part(index, cell, turns)?),
        };
        let after = self.others(cell);
        let mut seen = long.observed(cell.judged);
        if let Some(short) = &short {
            seen = seen.and(&short.observed(cell.judged));
        }
        let start = short.iter().chain([&long]).map(Batch::first_start).min().unwrap_or(0);
        let end = short.iter().chain([&long]).map(Batch::last_end).max().unwrap_or(0);
        let mut sample = TeamSample {
            cell: index,
            lap,
            at_ns,
            turns: if short.is_some() { turns } else { long.turns },
            window_ticks: end.saturating_sub(start),
            core: self.looks.together(),
            ..TeamSample::default()
        };
        if cell.others == Others::Throughout {
            let made: Vec<u64> =
                after.iter().zip(&before).map(|(a, b)| a.turns.saturating_sub(b.turns)).collect();
            let own = seen.turns;
            sample.least_turns = made.iter().copied().min().unwrap_or(own);
            sample.most_turns = made.iter().copied().max().unwrap_or(own);
            sample.others_turns = made.iter().sum();
            seen.progress = Some([own, sample.least_turns, sample.most_turns]);
            if cell.rule == Rule::Together {
                seen = seen.and(&self.others_since(cell, &before, &after)?);
            }
        }
        (sample.voluntary, sample.involuntary) = (seen.voluntary, seen.involuntary);
        let whole = disturbance(cell.rule, &seen);
        if cell.trips() > 0 {
            self.keep_trips(cell, at_ns, start);
        }
        let ticks = |batch: &Batch, member| batch.ticks(cell.clocked, member);
        for member in 0..cell.timed_members() {
            let own = long
                .members
                .get(member)
                .into_iter()
                .chain(short.iter().filter_map(|s| s.members.get(member)));
            self.found.samples.push(TeamSample {
                member,
                short_ticks: short.as_ref().map_or(0, |s| ticks(s, member)),
                long_ticks: ticks(&long, member),
                disturbance: if cell.clocked == Clocked::EachMember { of_member(whole, own) } else { whole },
                ..sample
            });
        }
        Some(())
    }

    /// Turns of a batch of trips but those that warmed, each from the end of the one before, less a reading of the clock and pauses.
    fn keep_trips(&mut self, cell: &TeamCell<'_>, at_ns: u64, start_ticks: u64) {
        let rate = self.session.visit.clock.rate();
        let mut read = || {
            let before = self.timing.ticks();
            self.timing.ticks().saturating_sub(before)
        };
        let read_ticks = (0..CLOCK_READINGS).map(|_| read()).min().unwrap_or(0);
        let beside_ticks = read_ticks + rate.ticks(cell.operation.pause_ns() as f64);
        let first = self.ends.len().saturating_sub(cell.trips() + 1);
        let sample = self.found.samples.len();
        self.found.trips.extend(self.ends.windows(2).skip(first).take(cell.trips()).map(|ends| Trip {
            sample,
            at_ns: at_ns + rate.ns(ends[0].saturating_sub(start_ticks)) as u64,
            ticks: ends[1].saturating_sub(ends[0]).saturating_sub(beside_ticks).max(1),
        }));
    }

    /// Switches of those that work throughout, which are known once they have told of them after the window.
    fn others_since(&self, cell: &TeamCell<'_>, before: &[Seen], after: &[Seen]) -> Option<Observed> {
        self.all_have_told(cell, after).then_some(())?;
        let now = self.others(cell);
        let involuntary =
            now.iter().zip(before).map(|(n, b)| n.involuntary.saturating_sub(b.involuntary)).sum();
        let moved = now.iter().zip(before).any(|(n, b)| n.moved != b.moved);
        Some(Observed { involuntary, moved, ..Observed::default() })
    }
}
