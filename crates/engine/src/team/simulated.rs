//! A simulated team: members with clocks of their own that only work moves, of whom always the one that is behind goes on. So every
//! protocol of [`super::sampler`] runs unchanged, and the same way each time.
//!
//! Each member is a thread, and one thread at a time has the turn. A member that waits passes it on and is set to the time of
//! the next; one that works moves its clock and passes it on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use machmeter_sys::clock::TickRate;

use super::sampler::{JointOperation, TeamClock};
use super::{Member, Seats, Team, TeamError, Work};
use crate::sampling::{Mark, Timing};

/// What a look at the clock takes, and a turn of a waiting loop at first and at most, ns.
const READ_NS: u64 = 20;
const WAIT_NS: (u64, u64) = (10, 500);

#[derive(Debug, Default)]
struct Sim {
    now_ns: u64,
    mark: Mark,
    wait_ns: u64,
    ended: bool,
}

/// The team and its clock, a tick of which is a nanosecond.
#[derive(Debug, Default)]
pub struct SimulatedTeam {
    members: Mutex<Vec<Sim>>,
    turn: Condvar,
}

impl SimulatedTeam {
    fn lock(&self) -> MutexGuard<'_, Vec<Sim>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of `rank`: nobody who still works is behind it.
    fn await_turn<'a>(
        &'a self,
        mut members: MutexGuard<'a, Vec<Sim>>,
        rank: usize,
    ) -> MutexGuard<'a, Vec<Sim>> {
        let first = |members: &[Sim]| {
            let alive = members.iter().enumerate().filter(|(_, m)| !m.ended);
            alive.min_by_key(|(i, m)| (m.now_ns, *i)).map(|(i, _)| i)
        };
        while first(&members) != Some(rank) {
            self.turn.notify_all();
            members = self.turn.wait(members).unwrap_or_else(PoisonError::into_inner);
        }
        members
    }

    fn with<T>(&self, rank: usize, change: impl FnOnce(&mut Sim) -> T) -> T {
        let mut members = self.lock();
        let result = change(&mut members[rank]);
        drop(self.await_turn(members, rank));
        result
    }

    /// Lets a member work for so long, ns.
    pub fn work(&self, rank: usize, ns: u64) {
        self.with(rank, |m| (m.now_ns, m.wait_ns) = (m.now_ns + ns, 0));
    }

    /// Adds to what the kernel has counted of a member.
    pub fn mark(&self, rank: usize, change: impl FnOnce(&mut Mark)) {
        self.with(rank, |m| change(&mut m.mark));
    }

    /// A turn of a waiting loop: nothing can change before another member has gone on.
    fn relax(&self, rank: usize) {
        let mut members = self.lock();
        let others = members.iter().enumerate().filter(|(i, m)| *i != rank && !m.ended);
        let next_ns = others.map(|(_, m)| m.now_ns + 1).min().unwrap_or(0);
        let own = &mut members[rank];
        own.wait_ns = (2 * own.wait_ns).clamp(WAIT_NS.0, WAIT_NS.1);
        own.now_ns = (own.now_ns + own.wait_ns).max(next_ns.min(own.now_ns + WAIT_NS.1));
        drop(self.await_turn(members, rank));
    }

    fn now_ns(&self, rank: usize) -> u64 {
        self.lock()[rank].now_ns
    }
}

impl Team for SimulatedTeam {
    fn model(&self) -> &'static str {
        "simulated"
    }

    fn run(&self, seats: &Seats, limit_ns: u64, work: Work<'_>) -> Result<(), TeamError> {
        let members = seats.cpus.len();
        let start_ns = self.lock().iter().map(|m| m.now_ns).max().unwrap_or(0);
        *self.lock() = seats
            .cpus
            .iter()
            .map(|cpu| Sim {
                now_ns: start_ns,
                mark: Mark { cpu: Some(*cpu), ..Mark::default() },
                ..Sim::default()
            })
            .collect();
        std::thread::scope(|scope| {
            for rank in 0..members {
                scope.spawn(move || {
                    drop(self.await_turn(self.lock(), rank));
                    work(&Member {
                        rank,
                        members,
                        deadline_ns: start_ns + limit_ns,
                        relax: &|| self.relax(rank),
                        now_ns: &|| self.now_ns(rank),
                    });
                    self.lock()[rank].ended = true;
                    self.turn.notify_all();
                });
            }
        });
        Ok(())
    }
}

struct SimulatedTiming<'a> {
    team: &'a SimulatedTeam,
    rank: usize,
}

impl Timing for SimulatedTiming<'_> {
    fn ticks(&mut self) -> u64 {
        self.team.work(self.rank, READ_NS);
        self.team.now_ns(self.rank)
    }

    fn mark(&mut self) -> Mark {
        self.team.lock()[self.rank].mark
    }

    fn now_ns(&self) -> u64 {
        self.team.now_ns(self.rank)
    }
}

impl TeamClock for SimulatedTeam {
    fn of_member(&self, rank: usize) -> Box<dyn Timing + '_> {
        Box::new(SimulatedTiming { team: self, rank })
    }

    fn rate(&self) -> TickRate {
        TickRate::NANOSECONDS
    }
}

/// What happens to a member in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It is switched out for so long, ns.
    SwitchedOut(u64),
    Moved,
    /// It comes so late, ns.
    Late(u64),
    Fails,
    /// It is not heard of any more.
    Silent,
}

pub struct SimulatedOperation<'a> {
    pub(super) team: &'a SimulatedTeam,
    pub(super) turn_ns: f64,
    pub(super) constant_ns: u64,
    /// Sleeps of each member in a turn.
    pub(super) sleeps: u64,
    /// What each turn of a batch of trips takes, by its number, ns.
    pub(super) trip_ns: Option<&'a (dyn Fn(u64) -> u64 + Sync)>,
    /// What happens to a member in which of its batches.
    pub(super) events: &'a (dyn Fn(usize, u64) -> Option<Event> + Sync),
    pub(super) batches: [AtomicU64; 4],
}

impl<'a> SimulatedOperation<'a> {
    /// Of at most four members of `team`: a turn costs so much, and a batch so much beside.
    pub fn new(team: &'a SimulatedTeam, turn_ns: f64, constant_ns: u64) -> Self {
        let batches = Default::default();
        Self { team, turn_ns, constant_ns, sleeps: 0, trip_ns: None, events: &|_, _| None, batches }
    }
}

impl SimulatedOperation<'_> {
    /// What happens to a member at the end of a batch.
    fn end(&self, rank: usize, turns: u64) -> bool {
        self.team.mark(rank, |m| m.voluntary_switches += self.sleeps * turns);
        match (self.events)(rank, self.batches[rank].fetch_add(1, Ordering::Relaxed)) {
            Some(Event::SwitchedOut(ns)) => {
                self.team.work(rank, ns);
                self.team.mark(rank, |m| m.involuntary_switches += 1);
            }
            Some(Event::Moved) => self.team.mark(rank, |m| m.cpu = m.cpu.map(|cpu| cpu + 64)),
            Some(Event::Fails) => return false,
            Some(Event::Silent) => self.team.work(rank, 60_000_000_000),
            Some(Event::Late(_)) | None => {}
        }
        true
    }
}

impl JointOperation for SimulatedOperation<'_> {
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        self.team.work(member.rank, self.constant_ns + (self.turn_ns * turns as f64) as u64);
        self.end(member.rank, turns)
    }

    fn trips(&self, member: &Member<'_>, turns: u64, end: &mut dyn FnMut()) -> bool {
        for turn in 0..turns {
            self.team.work(member.rank, self.trip_ns.map_or(self.turn_ns as u64, |ns| ns(turn)));
            end();
        }
        self.end(member.rank, turns)
    }

    fn approach(&self, member: &Member<'_>) -> bool {
        let number = self.batches[member.rank].load(Ordering::Relaxed);
        if let Some(Event::Late(ns)) = (self.events)(member.rank, number) {
            self.team.work(member.rank, ns);
        }
        true
    }
}
