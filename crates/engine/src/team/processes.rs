//! Processes with shared sections, as Sequent's `m_fork` made them: what a member writes elsewhere is lost with it.

use machmeter_sys::process;
use machmeter_sys::process::fork::{Ended, Forked, PANICKED, fork_run, limit_real_time};
use machmeter_sys::thread::{self, monotonic_ns};

use super::roster::{Roster, State};
use super::{Seats, Team, TeamError, Work, shares_a_cpu};

/// How long members may take to be placed, ns.
const PLACED_WITHIN_NS: u64 = 5_000_000_000;
/// How long after its deadline a member may still end by itself, ns.
const GRACE_NS: u64 = 300_000_000;
/// Pause between two looks whether a member died before it reported, ns.
const LOOK_NS: u64 = 20_000_000;

/// One forked process for each member (`m_set_procs`, `m_fork`, `m_kill_procs`), killed when late.
#[derive(Debug, Clone, Copy)]
pub struct Processes;

impl Team for Processes {
    fn model(&self) -> &'static str {
        "processes"
    }

    fn run(&self, seats: &Seats, limit_ns: u64, work: Work<'_>) -> Result<(), TeamError> {
        let roster = Roster::new(self.model(), seats)?;
        let mut children = Vec::with_capacity(seats.cpus.len());
        for rank in 0..seats.cpus.len() {
            // On an error the children before are killed as their values are dropped; they sleep at the gate.
            let child = fork_run(&|| serve(&roster, seats, rank, limit_ns, work));
            children.push(child.map_err(|e| roster.not_started(rank, e.to_string()))?);
        }
        let placed = wait_placed(&roster, &mut children).map_err(|(rank, why)| roster.not_started(rank, why));
        let ends_ns = if placed.is_ok() {
            roster.open(limit_ns).saturating_add(GRACE_NS)
        } else {
            roster.cancel();
            monotonic_ns() + GRACE_NS
        };
        let fates: Vec<Option<String>> = children.iter_mut().map(|c| fate(c, ends_ns, limit_ns)).collect();
        placed.and_then(|()| roster.result(|rank| fates.get(rank).cloned().flatten()))
    }
}

/// The whole life of a member; its exit code.
fn serve(roster: &Roster, seats: &Seats, rank: usize, limit_ns: u64, work: Work<'_>) -> u8 {
    limit_real_time(limit_ns.saturating_add(2 * GRACE_NS));
    let cpu = seats.cpus.get(rank).copied();
    let placed = thread::place_current("mm-team", cpu, seats.policy);
    let refused = placed.is_err();
    roster.report(rank, placed.map(|_| ()).map_err(|e| e.to_string()));
    if refused {
        return 1;
    }
    let Some(deadline_ns) = roster.enter() else { return 0 };
    let relax: &dyn Fn() = if shares_a_cpu(seats) { &std::thread::yield_now } else { &std::hint::spin_loop };
    if roster.perform(rank, deadline_ns, relax, work) || roster.state(rank) == State::Alone {
        0
    } else {
        PANICKED
    }
}

/// Sleeps until all members are placed, or one never will be.
fn wait_placed(roster: &Roster, children: &mut [Forked]) -> Result<(), (usize, String)> {
    let until_ns = monotonic_ns() + PLACED_WITHIN_NS;
    let mut reports = 0;
    loop {
        let mut waiting = None;
        for (rank, child) in children.iter_mut().enumerate() {
            match roster.state(rank) {
                State::Refused => return Err((rank, roster.text(rank))),
                State::Absent => {
                    if let Ok(Some(ended)) = child.wait_until(0) {
                        return Err((rank, format!("it {} before it was placed", lost(ended))));
                    }
                    waiting = Some(rank);
                }
                _ => {}
            }
        }
        let Some(rank) = waiting else { return Ok(()) };
        let now_ns = monotonic_ns();
        if now_ns >= until_ns {
            return Err((rank, format!("it was not placed within {} s", PLACED_WITHIN_NS / 1_000_000_000)));
        }
        reports = roster.wait_report(reports, now_ns + LOOK_NS);
    }
}

/// How a member ended before its time.
fn lost(ended: Ended) -> String {
    if matches!(ended, Ended::Killed(_)) {
        process::note_lost();
    }
    ended.to_string()
}

/// Waits for the end of a member and kills it if it is late; `None` when all is well.
fn fate(child: &mut Forked, ends_ns: u64, limit_ns: u64) -> Option<String> {
    match child.wait_until(ends_ns) {
        Ok(Some(Ended::Exited(0 | PANICKED))) => None,
        Ok(Some(ended)) => Some(lost(ended)),
        Ok(None) => {
            child.kill();
            let _ = child.wait();
            Some(format!("did not end within its limit of {:.3} s and was killed", limit_ns as f64 / 1e9))
        }
        Err(e) => Some(format!("cannot be waited for: {e}")),
    }
}
