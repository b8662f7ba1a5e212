//! Two ranks of each MPI there is: clocks with planted offsets and drifts have to lie inside their bounds, and a rank that is held up before
//! every tenth allreduce has to be named with its share of the waiting.

use std::cell::Cell;
use std::ffi::OsString;

use machmeter_engine::Worker;
use machmeter_engine::role::{Role, starter};
use machmeter_engine::selftest::late::Held;
use machmeter_engine::selftest::machine::Machine;
use machmeter_engine::selftest::{Options, SelfCheck, Shown, State, check, percent};
use machmeter_stats::lateness::{Turn, turn};
use machmeter_stats::random::Random;
use machmeter_sys::clock::{OrderedCounter, SourceId, TickRate, TickSource};
use machmeter_sys::mpi::clock::align;
use machmeter_sys::mpi::launcher::{Start, bind, command};
use machmeter_sys::mpi::{Comm, Installed, installed, launched};
use machmeter_sys::process::Spawn;
use machmeter_sys::sched::{self, Policy};
use serde::{Deserialize, Serialize};

use crate::ensemble::{Ensemble, Leader, Setup};
use crate::operations::HELD_UP;
use crate::stage::{Play, Stage, Stamp, Windows};

/// A rank of this self-test.
pub(crate) const WORKER: Worker = Worker { name: "mpi-planted", run };

/// The rank that is held up, before which turns, for how long, ns, and of how many.
const HELD_RANK: usize = 1;
const EVERY: u32 = 10;
const HOLD_NS: u64 = 200_000;
const TURNS: u32 = 4_000;
/// From one turn to the next, ns: an allreduce takes a hundredth.
const PERIOD_NS: u64 = 40_000;

/// Clocks that are planted, and from one look at them to the next, ns.
const CLOCKS: u32 = 200;
const APART_NS: u64 = 2_000_000;
/// Planted offsets are larger than any bound, and up to so many ticks; drifts are up to this, as those of bad quartz.
const OFFSETS: [i64; 2] = [1 << 24, 1 << 44];
const MOST_DRIFT: f64 = 1e-4;
/// Bar: share of the planted clocks inside their bounds.
const INSIDE: f64 = 0.99;

/// Above ordinary real-time daemons' default of 1.
const PRIORITY: u8 = 5;
/// The ranks take two seconds; a busy machine gets more.
const WITHIN_NS: u64 = 30_000_000_000;

/// What the ranks measure with, and the seed of what is planted.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Asked {
    source: SourceId,
    tick_hz: f64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Found {
    /// Moments and drifts of planted clocks inside their bounds, and all of them.
    inside: u32,
    looked_at: u32,
    /// Half of the bounds of an offset, the widest, ticks.
    within_ticks: f64,
    /// Rank, cost and delay of each turn, ticks.
    turns: Vec<(usize, f64, f64)>,
}

/// Id, what is checked of each MPI, bar, and what came of it.
type Check = (&'static str, &'static str, &'static str, fn(&Found, TickRate) -> Shown);
const CHECKS: [Check; 2] = [
    (
        "clocks",
        "offsets and drifts planted into the clock of one of two MPI ranks",
        "99 % inside their bounds",
        clocks,
    ),
    (
        "late",
        "one of two MPI ranks held up 200 us before every tenth allreduce",
        "named, its share and delay within 10 %",
        late,
    ),
];

pub(crate) fn checks(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    let all = installed(None).unwrap_or_default();
    let mut all: Vec<&Installed> = all.iter().filter(|m| m.launcher.is_some()).collect();
    all.dedup_by_key(|m| m.flavor);
    if all.is_empty() {
        let why = "no MPI library with a launcher was found";
        return CHECKS.map(|(id, what, bar, _)| SelfCheck::not_shown(id, what, bar, why)).to_vec();
    }
    all.into_iter().flat_map(|mpi| of_mpi(machine, options, mpi)).collect()
}

fn of_mpi(machine: &Machine, options: &Options, mpi: &Installed) -> [SelfCheck; 2] {
    let found = played(machine, options, mpi);
    let flavor = mpi.flavor.name().to_lowercase().replace(' ', "_");
    CHECKS.map(|(id, what, bar, of)| {
        let shown = found.as_ref().map_err(Clone::clone).and_then(|found| of(found, machine.rate));
        check(&format!("{id}.{flavor}"), &format!("{what} ({})", mpi.version), bar, shown)
    })
}

#[allow(clippy::unnecessary_wraps, reason = "as the other check")]
fn clocks(found: &Found, rate: TickRate) -> Shown {
    let share = f64::from(found.inside) / f64::from(found.looked_at.max(1));
    let within_ns = found.within_ticks * rate.ns_per_tick();
    let truth = format!("{} offsets and drifts", found.looked_at);
    let told = format!("{} inside, known to {within_ns:.0} ns", percent(share));
    Ok((truth, told, State::of(share >= INSIDE)))
}

fn late(found: &Found, rate: TickRate) -> Shown {
    let turn = |&(last, cost, delay): &(usize, f64, f64)| Turn { cost, delay, last };
    let turns: Vec<Turn> = found.turns.iter().map(turn).collect();
    let delay = rate.ticks(HOLD_NS as f64) as f64;
    Held { rank: HELD_RANK, every: EVERY as usize, delay }.judge(&turns, 2)
}

fn played(machine: &Machine, options: &Options, mpi: &Installed) -> Result<Found, String> {
    let cpus: Vec<usize> = machine.allowed.iter().take(2).collect();
    if cpus.len() < 2 {
        return Err("two CPUs are needed".to_owned());
    }
    let start = Start { ranks: 2, cpus: &cpus, oversubscribe: false };
    let command = command(mpi, &start).map_err(|e| e.to_string())?;
    let part = if options.quick { 2 } else { 1 };
    let spawn = Spawn::worker_under(command, WORKER.name).new_group().die_with_parent().piped();
    let spawn = spawn.arg(&mpi.library).arg(options.seed.to_string()).arg((CLOCKS / part).to_string());
    let mut role = Role::<Asked, Result<Found, String>>::start(spawn).map_err(|e| e.to_string())?;
    let asked = Asked { source: machine.clock.source(), tick_hz: machine.rate.hz() };
    let said = role.ask(&asked, WITHIN_NS).map_err(|e| format!("the ranks {e}"));
    if said.is_err() || role.peer_mut().wait(WITHIN_NS).is_none() {
        role.kill();
    }
    said?
}

/// A rank: rank 0 has the pipes of the starter.
fn run(arguments: &[OsString]) -> u8 {
    let [lib, seed, clocks] = arguments else { return 1 };
    let number = |text: &OsString| text.to_str().and_then(|t| t.parse::<u64>().ok()).unwrap_or(0);
    let Some(place) = launched() else { return 1 };
    let bound = bind(&place).map(drop);
    // Keeps others from delaying the ranks for the seconds it takes; where it is not permitted they may.
    let _ = sched::apply(Policy::Fifo(PRIORITY));
    let start = |asked: Option<Asked>| {
        let of = |Asked { source, tick_hz }| Setup {
            most_bytes: 8,
            collectives: true,
            source,
            tick_hz,
            shmem: false,
        };
        let setup = asked.map(of);
        let ensemble = Ensemble::start(Some(lib.as_ref()), || setup)?;
        let found = planted_clocks(&ensemble.control, number(seed), number(clocks) as u32)?;
        Ok::<_, String>((ensemble, found))
    };
    if place.rank != 0 {
        let followed = bound.and_then(|()| start(None)).and_then(|(ensemble, _)| ensemble.follow());
        return u8::from(followed.is_err());
    }
    let Ok((mut requests, mut replies)) = starter::<Asked, Result<Found, String>>() else { return 1 };
    let asked = bound.and_then(|()| requests.next(None).map_err(|e| e.to_string()));
    let said = asked.and_then(|asked| start(Some(asked))).and_then(|(ensemble, found)| {
        let turns = held_turns(&mut Leader::of(ensemble))?;
        Ok(Found { turns, ..found })
    });
    // A starter that is gone is told nothing.
    u8::from(replies.send(&said).is_err())
}

/// Turns of two ranks, of which one is held up now and then.
fn held_turns(stage: &mut impl Stage) -> Result<Vec<(usize, f64, f64)>, String> {
    let play = Play::of(&HELD_UP, 8, 2);
    let mut all = Vec::new();
    for _ in 0..TURNS / EVERY {
        for (beside_ns, count) in [(HOLD_NS, 1), (0, EVERY - 1)] {
            let windows = Windows { count, period_ns: PERIOD_NS };
            let played = stage.isolated(&Play { beside_ns, ..play }, windows)?;
            let ticks = |of: fn(&Stamp) -> i64, stamps: &[Stamp]| {
                stamps.iter().map(|s| of(s) as f64).collect::<Vec<f64>>()
            };
            let turns = played.iter().filter_map(|s| turn(&ticks(|s| s.begin, s), &ticks(|s| s.end, s)));
            all.extend(turns.map(|t| (t.last, t.cost, t.delay)));
        }
    }
    Ok(all)
}

thread_local! {
    /// Offset of this thread's planted clock, ticks, its drift, and since when it drifts.
    static PLANTED: Cell<(i64, f64, u64)> = const { Cell::new((0, 0.0, 0)) };
}

/// The counter of this machine, which all ranks read, with what is planted.
#[derive(Clone, Copy)]
struct Planted;

impl TickSource for Planted {
    const ID: SourceId = OrderedCounter::ID;

    fn now() -> u64 {
        clock(OrderedCounter::now(), PLANTED.get())
    }
}

fn clock(ticks: u64, (offset, drift, since): (i64, f64, u64)) -> u64 {
    let drifted = (ticks.wrapping_sub(since) as i64 as f64 * drift).round() as i64;
    ticks.wrapping_add_signed(offset + drifted)
}

/// Plants clocks into the second rank, and looks whether what [`align`] says of them is true. Collective; all ranks know the seed.
fn planted_clocks(comm: &Comm, seed: u64, clocks: u32) -> Result<Found, String> {
    let mut random = Random::new(seed);
    let mut found = Found::default();
    for _ in 0..clocks {
        let mut since = [OrderedCounter::now() as i64];
        comm.bcast(&mut since, 0).map_err(|e| e.to_string())?;
        let offset = OFFSETS[0] + (random.unit() * (OFFSETS[1] - OFFSETS[0]) as f64) as i64;
        let sign = if random.unit() < 0.5 { -1 } else { 1 };
        let planted = (sign * offset, MOST_DRIFT * (2.0 * random.unit() - 1.0), since[0] as u64);
        PLANTED.set(if comm.rank() == HELD_RANK { planted } else { (0, 0.0, 0) });
        let known = align::<Planted>(comm, APART_NS).map_err(|e| e.to_string())?;
        let known = known.get(HELD_RANK).ok_or("one rank alone")?;
        let (least, most) = known.drift();
        let mut holds = vec![(least..=most).contains(&planted.1)];
        let now = OrderedCounter::now();
        // Between the looks, after them, and when the drift has had ten times as long.
        for at in [since[0] as u64 / 2 + now / 2, now, now + 10 * now.wrapping_sub(since[0] as u64)] {
            let (here, within) = known.here(at);
            holds.push((here.wrapping_sub(clock(at, planted)) as i64).unsigned_abs() as f64 <= within);
        }
        found.looked_at += holds.len() as u32;
        found.inside += holds.iter().filter(|holds| **holds).count() as u32;
        found.within_ticks = found.within_ticks.max(known.within_ticks());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_clock_is_as_far_off_as_it_says() {
        assert_eq!(clock(1_000_000, (-7, 1e-4, 0)), 1_000_000 - 7 + 100);
        assert_eq!(clock(5, (1 << 40, -1e-4, 5)), (1 << 40) + 5);
    }
}
