//! Two ranks of the MPI there is: one is held up before every tenth operation, and has to be named with its share of the waiting.

use std::ffi::OsString;

use machmeter_engine::role::{Role, starter};
use machmeter_engine::selftest::late::Held;
use machmeter_stats::lateness::Turn;
use machmeter_sys::clock::SourceId;
use machmeter_sys::mpi::launcher::{Start, bind, command};
use machmeter_sys::mpi::{Installed, launched};
use machmeter_sys::process::Spawn;
use machmeter_sys::sched::{self, Policy};
use machmeter_sys::thread::monotonic_ns;
use serde::{Deserialize, Serialize};

use super::lab::Lab;
use super::{LATE, Options, SelfCheck, Shown, check};
use crate::ranks::{Batch, Collective, Hold, late_turns};

/// The rank that is held up, before which operations, and for how long.
const HELD_RANK: usize = 1;
const EVERY: usize = 10;
const HOLD_NS: f64 = 200_000.0;
const TURNS: usize = 4_000;
/// Units of work between operations: 15 to 50 us.
const UNITS: u64 = 1_000;
/// Above ordinary real-time daemons' default of 1.
const PRIORITY: u8 = 5;
/// The ranks take half a second; a busy machine gets more.
const WITHIN_NS: u64 = 30_000_000_000;

/// What the ranks are to do.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Planted {
    pub(crate) source: SourceId,
    pub(crate) batch: Batch,
}

/// Rank, cost and delay of a turn, ticks.
type Said = Result<Vec<(usize, f64, f64)>, String>;

pub(super) fn checks(lab: &Lab, _options: &Options) -> Vec<SelfCheck> {
    let what = "one of two MPI ranks held up 200 us before every tenth allreduce";
    vec![check("noise.late_rank", what, "named, its share and delay within 10 %", shown(lab))]
}

fn shown(lab: &Lab) -> Shown {
    let cpus: Vec<usize> = lab.machine.allowed.iter().take(2).collect();
    if cpus.len() < 2 {
        return Err("two CPUs are needed".to_owned());
    }
    let mpi = Installed::find(None).map_err(|e| e.to_string())?;
    let start = Start { ranks: 2, cpus: &cpus, oversubscribe: false };
    let command = command(&mpi, &start).map_err(|e| e.to_string())?;
    let hold_ticks = lab.machine.rate.ticks(HOLD_NS);
    let hold = Some(Hold { rank: HELD_RANK, every: EVERY, ticks: hold_ticks });
    let batch = Batch { collective: Collective::Allreduce, turns: TURNS, units: UNITS, hold };
    let planted = Planted { source: lab.machine.clock.source(), batch };
    let spawn = Spawn::worker_under(command, LATE.name).new_group().die_with_parent().piped();
    let mut role = Role::<Planted, Said>::start(spawn).map_err(|e| e.to_string())?;
    let said = role.ask(&planted, WITHIN_NS).map_err(|e| format!("the ranks {e}"));
    if said.is_err() || role.peer_mut().wait(WITHIN_NS).is_none() {
        role.kill();
    }
    let turns: Vec<Turn> = said??.into_iter().map(|(last, cost, delay)| Turn { cost, delay, last }).collect();
    Held { rank: HELD_RANK, every: EVERY, delay: hold_ticks as f64 }.judge(&turns, 2)
}

/// A rank: rank 0 has the pipes of the starter.
pub(super) fn run(_arguments: &[OsString]) -> u8 {
    let Some(place) = launched() else { return 1 };
    let bound = bind(&place).map(drop);
    // Keeps others from delaying the ranks for the half second it takes; where it is not permitted they may.
    let _ = sched::apply(Policy::Fifo(PRIORITY));
    if place.rank != 0 {
        return u8::from(bound.and_then(|()| late_turns(None)).is_err());
    }
    let Ok((mut requests, mut replies)) = starter::<Planted, Said>() else { return 1 };
    let planted = requests.next(Some(monotonic_ns() + WITHIN_NS)).map_err(|e| e.to_string());
    let turns = bound.and(planted).and_then(|p| late_turns(Some(p)));
    let said = turns.map(|all| all.into_iter().map(|t| (t.last, t.cost, t.delay)).collect());
    // A starter that is gone is told nothing.
    u8::from(replies.send(&said).is_err())
}
