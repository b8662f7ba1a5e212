//! What every rank does: it says where it is, records its windows, and takes part in collective operations.

use std::cell::Cell;
use std::mem::take;

use machmeter_engine::placement::{Placement, Priority, plan};
use machmeter_engine::{Deadline, Host, Level, NoLoads, Silent, host};
use machmeter_stats::lateness::Turn;
use machmeter_sys::affinity;
use machmeter_sys::clock::{OrderedCounter, now, qualify};
use machmeter_sys::mpi::clock::{APART_NS, RankClock, align};
use machmeter_sys::mpi::launched;
use machmeter_sys::sched::{self, Policy};
use machmeter_sys::topology::{CpuSet, Topology};

use super::collective::{Batch, play};
use super::team::{Place, Team, text};
use super::{Order, Ready, Report};
use crate::Params;
use crate::job::{Begin, Job, LEAD_NS};
use crate::on_cpu::Recorded;
use crate::selftest::Planted;
use machmeter_loops::noise::measure::Schedule;

pub(super) struct Member<'a> {
    pub(super) team: &'a Team,
    pub(super) host: &'a Host<'a>,
    pub(super) params: &'a Params,
    pub(super) cpus: [usize; 1],
    pub(super) placement: Placement,
    /// Clocks of all ranks.
    pub(super) clocks: Vec<RankClock>,
}

/// The CPU of this rank: the one that it is bound to, else one by its number on this machine.
pub(super) fn own_cpu(cpus: &CpuSet) -> Result<usize, String> {
    let cpus = cpus.to_vec();
    let local = launched().map_or(0, |l| l.local_rank.unwrap_or(l.rank));
    let of = |n: usize| cpus.get(local % n.max(1)).copied();
    of(cpus.len()).ok_or_else(|| "no CPU to measure".to_owned())
}

impl<'a> Member<'a> {
    pub(super) fn new(
        team: &'a Team,
        host: &'a Host<'a>,
        params: &'a Params,
        policy: Policy,
    ) -> Result<Self, String> {
        let cpus = [own_cpu(&host.cpus)?];
        affinity::pin(cpus[0]).map_err(|e| e.to_string())?;
        let measured = CpuSet::single(cpus[0]);
        let placement = plan(&measured, &measured, &Priority::Asked(policy), &Ok(()));
        Ok(Self { team, host, params, cpus, placement, clocks: Vec::new() })
    }

    pub(super) fn job<'j>(&'j self, begin: Begin<'j>) -> Job<'j> {
        let Self { host, params, cpus, placement, .. } = self;
        Job { host, params, cpus, placement, begin, sums: true }
    }

    pub(super) fn ready(&self) -> Result<Ready, String> {
        let threshold_ticks = self.job(Begin::Soon).threshold().map_err(|e| e.to_string())?;
        let place = Place { node: self.team.node(), cpu: self.cpus[0] };
        Ok(Ready { place, threshold_ticks, tick_hz: self.host.rate.hz() })
    }

    /// Compares the clocks of all ranks; collective. Twice: then what lies in between is known from both.
    pub(super) fn compare_clocks(&mut self) -> Result<(), String> {
        let world = &self.team.world;
        let found = align::<OrderedCounter>(world, APART_NS).map_err(text)?;
        let spanning = |(early, late): (&RankClock, &RankClock)| RankClock::spanning(early, late);
        let both: Option<Vec<RankClock>> = self.clocks.iter().zip(&found).map(spanning).collect();
        self.clocks = both.filter(|b| b.len() == found.len()).unwrap_or(found);
        Ok(())
    }

    fn clock(&self) -> Result<&RankClock, String> {
        self.clocks.get(self.team.world.rank()).ok_or_else(|| "the clocks were not compared".to_owned())
    }

    /// Records the windows; they begin on all ranks at one moment. Collective.
    pub(super) fn record(&self, schedule: &Schedule) -> Result<Recorded, String> {
        let clock = *self.clock()?;
        let has_asked = Cell::new(false);
        let agree = || {
            has_asked.set(true);
            if !self.team.all(true)? {
                return Err("another rank could not start".to_owned());
            }
            let soon =
                now(self.host.source()).map_err(|e| e.to_string())? + self.host.rate.ticks(LEAD_NS as f64);
            Ok(clock.here(self.team.number(soon)?).0)
        };
        // Windows of a counter that runs faster are as much longer.
        let (low, high) = clock.drift();
        let window = schedule.window_ticks as f64 * (1.0 + f64::midpoint(low, high));
        let schedule = Schedule { window_ticks: window.round() as u64, ..*schedule };
        let recorded = self.job(Begin::Agreed(&agree)).record(&schedule, None);
        if !has_asked.get() {
            self.team.all(false)?;
        }
        let (mut recorded, _) = recorded.map_err(|e| e.to_string())?;
        recorded.pop().ok_or_else(|| "nothing was recorded".to_owned())
    }

    /// A batch under the policy of the measurement; between batches others may run. Collective.
    pub(super) fn collective(&self, batch: Batch) -> Result<Vec<Turn>, String> {
        let before = sched::current().and_then(|p| sched::apply(self.placement.policy).map(|()| p));
        let turns = play(&self.team.world, self.host.source(), batch, self.clock()?);
        if let Ok(before) = before {
            // Back to what it had, which it may always have again.
            let _ = sched::apply(before);
        }
        turns
    }
}

/// A recording as it is handed to rank 0.
pub(super) fn report(recorded: Recorded) -> Report {
    let mut samples = recorded.samples;
    Report {
        counts: take(&mut samples.counts),
        sums: take(&mut samples.sums),
        gaps: take(&mut samples.gaps),
        buckets: samples.lengths.buckets.iter().map(|b| [b.low, b.high, b.count]).collect(),
        samples,
    }
}

/// A batch with a rank that is held up. Collective.
pub(super) fn planted(team: &Team, order: Option<Planted>) -> Result<Vec<Turn>, String> {
    let order = match order {
        Some(order) => team.tell(&order).map(|()| order)?,
        None => team.heed()?,
    };
    let clocks = align::<OrderedCounter>(&team.world, APART_NS).map_err(text)?;
    let clock = clocks.get(team.world.rank()).ok_or("the clocks were not compared")?;
    play(&team.world, order.source, order.batch, clock)
}

/// Follows rank 0 until it ends. Errors: why it could not; rank 0 has the same.
pub(super) fn follow() -> Result<(), String> {
    let team = Team::start()?;
    let followed = match team.heed()? {
        Order::Begin { params, source, policy, seed } => begin(&team, &params, source, &policy, seed),
        _ => Ok(()),
    };
    // A failed order is known to rank 0, which then ends all.
    while followed.is_err() && !matches!(team.heed()?, Order::End) {}
    team.finish();
    followed
}

fn begin(
    team: &Team,
    params: &Params,
    source: machmeter_sys::clock::SourceId,
    policy: &str,
    seed: u64,
) -> Result<(), String> {
    let made = (|| {
        let policy = policy.parse::<Policy>().map_err(|e| e.to_string())?;
        let allowed = affinity::mask().map_err(|e| e.to_string())?;
        let cpus = CpuSet::single(own_cpu(&allowed)?);
        let clock = qualify(&cpus.to_vec()).map_err(|e| e.to_string())?;
        if clock.source() != source {
            return Err(format!("its clock is {}, that of rank 0 {}", clock.source().name(), source.name()));
        }
        let host = Host {
            cpus,
            allowed,
            topology: Topology::host().map_err(|e| e.to_string())?,
            rate: clock.tick_rate(),
            clock,
            level: Level::Standard,
            priority: Priority::Asked(policy),
            seed,
            dry_run: false,
            budget: Deadline::start(u64::MAX),
            fills_time: false,
            best_ever: &|_| None,
            open_record: &host::nothing_stored,
            loads: &NoLoads,
            progress: &Silent,
        };
        Ok((host, policy))
    })();
    let refuse = |why| team.gather::<Ready>(Err(why)).map(drop);
    let (host, policy) = match made {
        Ok(made) => made,
        Err(why) => return refuse(why),
    };
    let mut member = match Member::new(team, &host, params, policy) {
        Ok(member) => member,
        Err(why) => return refuse(why),
    };
    team.gather(member.ready())?;
    serve(&mut member)
}

/// Does what rank 0 orders. Each order is answered, whatever came of it.
fn serve(member: &mut Member<'_>) -> Result<(), String> {
    let mut is_first = true;
    loop {
        match member.team.heed()? {
            Order::Record(schedule) => {
                if take(&mut is_first) {
                    member.compare_clocks()?;
                }
                let recorded = member.record(&schedule).map(report);
                member.compare_clocks()?;
                member.team.gather(recorded)?;
            }
            Order::Collective(batch) => drop(member.collective(batch)?),
            Order::End | Order::Begin { .. } => return Ok(()),
        }
    }
}
