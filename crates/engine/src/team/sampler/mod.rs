//! The team sampler: members of a team do batches of a joint operation at the same time. Member 0 orders the batches, and the
//! rule of the cell says which samples count.
//!
//! Nobody leaves a batch that began: operations such as a barrier would never end for the rest. So member 0 alone decides,
//! between batches, that a visit is over. It may be a process of its own, so all that members find lies in shared memory.

mod judge;
mod leader;
mod member;
mod rows;
mod shared;
#[cfg(test)]
mod tests;

use machmeter_sys::clock::{SourceId, TickRate};
use serde::{Deserialize, Serialize};

use super::{Arena, Member, Seats, Team, shares_a_cpu};
use crate::disturbance::Disturbance;
use crate::disturbance::sibling::CoreLook;
use crate::sampling::{HostTiming, Timing};
use member::Session;
use shared::Shared;

pub use machmeter_loops::team::JointOperation;
pub use rows::{SLEEPS, TURNS_SEEN, record_switches};

/// Which samples count. Switches are those of the judged members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    Any,
    /// Nobody was switched out against its will or changed its CPU.
    Undisturbed,
    Awake,
    /// Members sleep so often in a turn, all together; in at most one turn of ten one is switched out against its will.
    Sleeps(u64),
    /// Two members share a CPU, which is switched twice in a turn and no more.
    Switches,
    /// Undisturbed, and all started together and made progress.
    Together,
    /// Awake, and others made between a fifth and five times the progress of member 0.
    Alongside,
}

/// Turns of a batch: as many as take `batch_ns`, between `least` and `most`. Where these are equal nothing is tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turns {
    pub batch_ns: f64,
    pub least: u64,
    pub most: u64,
}

impl Turns {
    pub const fn of(batch_ns: f64) -> Self {
        Self { batch_ns, least: 1, most: u64::MAX }
    }

    pub const fn fixed(turns: u64) -> Self {
        Self { batch_ns: 0.0, least: turns, most: turns }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Batches {
    /// Two batches, of n and of 2 n turns, in either order.
    Pairs(Turns),
    Single(Turns),
    /// One batch of so many turns, each timed by one reading of the clock, which is taken off; judged as a whole.
    Trips(u64),
    /// One batch of so many ns, in which member 0 counts its turns. For members that work [`Others::Throughout`].
    Timed(f64),
}

/// What members other than 0 do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// As many turns as member 0.
    SameTurns,
    /// The same, and all go on until the last has done them, so that nobody is timed without the others.
    UntilLast,
    /// They work from the first sample of a visit to its last, and count their turns.
    Throughout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clocked {
    /// Member 0's.
    Leader,
    /// From the first start to the last end.
    FirstToLast,
    /// Each judged member's own: one sample for each.
    EachMember,
}

#[derive(Clone, Copy)]
pub struct TeamCell<'a> {
    pub operation: &'a dyn JointOperation,
    pub batches: Batches,
    pub others: Others,
    pub clocked: Clocked,
    pub rule: Rule,
    /// Members from 0 on that take part; the rest waits.
    pub workers: usize,
    /// Members from 0 on whose switches count.
    pub judged: usize,
    /// Turns of a short batch as found before; 0 where they were not.
    pub known_turns: u64,
    pub samples: usize,
    /// No sample but the first of a visit begins later than this after its start, ns.
    pub samples_ns: u64,
}

impl<'a> TeamCell<'a> {
    /// Pairs of member 0's time, all `members` doing the same under [`Rule::Undisturbed`].
    pub fn new(operation: &'a dyn JointOperation, members: usize, turns: Turns, samples: usize) -> Self {
        Self {
            operation,
            batches: Batches::Pairs(turns),
            others: Others::SameTurns,
            clocked: Clocked::Leader,
            rule: Rule::Undisturbed,
            workers: members,
            judged: members,
            known_turns: 0,
            samples,
            samples_ns: u64::MAX,
        }
    }

    /// Turns of a sample that are told one by one.
    fn trips(&self) -> usize {
        if let Batches::Trips(turns) = self.batches { turns as usize } else { 0 }
    }

    fn timed_members(&self) -> usize {
        if self.clocked == Clocked::EachMember { self.judged } else { 1 }
    }
}

pub trait TeamClock: Sync {
    /// Time of one member; made in the member.
    fn of_member(&self, rank: usize) -> Box<dyn Timing + '_>;

    fn rate(&self) -> TickRate;
}

#[derive(Debug, Clone, Copy)]
pub struct HostClock {
    pub source: SourceId,
    pub rate: TickRate,
}

impl HostClock {
    /// The system's own, whose tick is a nanosecond.
    pub const MONOTONIC: Self = Self { source: SourceId::MonotonicRaw, rate: TickRate::NANOSECONDS };
}

impl TeamClock for HostClock {
    fn of_member(&self, _rank: usize) -> Box<dyn Timing + '_> {
        Box::new(HostTiming::new(self.source))
    }

    fn rate(&self) -> TickRate {
        self.rate
    }
}

/// One visit of a team to one or several cells.
#[derive(Clone, Copy)]
pub struct TeamVisit<'a> {
    pub team: &'a dyn Team,
    pub seats: &'a Seats,
    pub clock: &'a dyn TeamClock,
    /// Start of the measurement, which moments of samples count from, ns.
    pub start_ns: u64,
    /// Laps over all cells, at most: the first in their order, each later one in a random order.
    pub laps: usize,
    /// No lap but the first begins later than this after the start of the visit, ns.
    pub laps_ns: u64,
    /// Everything ends by then, ns from the start of the visit.
    pub limit_ns: u64,
    pub seed: u64,
}

/// One sample, kept or not.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TeamSample {
    pub cell: usize,
    pub lap: usize,
    pub member: usize,
    /// Why it does not count; `None` when it does.
    pub disturbance: Option<Disturbance>,
    /// When it began, ns after the start of the measurement.
    pub at_ns: u64,
    /// Turns of the short batch, or of the only one.
    pub turns: u64,
    /// Ticks of the short batch; 0 where there is one batch only.
    pub short_ticks: u64,
    /// Ticks of the long, or only, batch.
    pub long_ticks: u64,
    /// Ticks from the beginning of the first batch to the end of the last.
    pub window_ticks: u64,
    /// Switches of the judged members in all batches, by will and against it.
    pub voluntary: u64,
    pub involuntary: u64,
    /// Turns of the slowest member, of the fastest, and of all members but the first, in the window, where others work throughout.
    pub least_turns: u64,
    pub most_turns: u64,
    pub others_turns: u64,
    /// The core in the window, of a member that is alone.
    pub core: CoreLook,
}

/// One turn of a sample of [`Batches::Trips`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trip {
    /// Index of the sample, which says whether the turn counts.
    pub sample: usize,
    /// When it began, ns after the start of the measurement.
    pub at_ns: u64,
    pub ticks: u64,
}

/// Samples of a visit in order of time, kept or not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Found {
    /// A cell whose operation failed, or whose time ended before its turns were found, has one that says so.
    pub samples: Vec<TeamSample>,
    pub trips: Vec<Trip>,
}

impl<'a> TeamVisit<'a> {
    pub fn new(
        team: &'a dyn Team,
        seats: &'a Seats,
        clock: &'a dyn TeamClock,
        start_ns: u64,
        limit_ns: u64,
        seed: u64,
    ) -> Self {
        Self { team, seats, clock, start_ns, laps: 1, laps_ns: u64::MAX, limit_ns, seed }
    }

    pub fn take(&self, cells: &[TeamCell<'_>]) -> Result<Found, String> {
        let members = self.seats.cpus.len();
        let each = |c: &TeamCell<'_>| c.samples * c.timed_members();
        let samples = cells.iter().map(each).sum::<usize>().saturating_mul(self.laps);
        let trips = cells.iter().map(|c| c.samples * c.trips()).sum::<usize>().saturating_mul(self.laps);
        let bytes = shared::heap_bytes(members, cells.len(), samples, trips);
        let arena = Arena::new(shared::CELLS, bytes).map_err(|e| e.to_string())?;
        let shared = Shared::on(&arena, members).ok_or("the shared memory of the team is too small")?;
        let session = Session { visit: self, cells, gated: !shares_a_cpu(self.seats), shared };
        self.team.run(self.seats, self.limit_ns, &|m| session.work(m)).map_err(|e| e.to_string())?;
        session.shared.found()
    }
}
