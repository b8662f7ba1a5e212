//! POSIX threads: one placed thread for each member.

use machmeter_sys::sched::Policy;
use machmeter_sys::thread::spawn_placed_scoped;

use super::roster::Roster;
use super::{Seats, Team, TeamError, Work, shares_a_cpu};

/// One thread for each member. Nobody can end a thread from outside: work must keep its deadline.
#[derive(Debug, Clone, Copy)]
pub struct Threads;

impl Team for Threads {
    fn model(&self) -> &'static str {
        "threads"
    }

    fn run(&self, seats: &Seats, limit_ns: u64, work: Work<'_>) -> Result<(), TeamError> {
        let roster = Roster::new(self.model(), seats)?;
        let shared = shares_a_cpu(seats);
        let serve = &|rank| {
            roster.report(rank, Ok(()));
            if let Some(deadline_ns) = roster.enter() {
                // A thread that spins on a CPU keeps the other member there from what it waits for.
                let relax: &dyn Fn() = if shared { &std::thread::yield_now } else { &std::hint::spin_loop };
                roster.perform(rank, deadline_ns, relax, work);
            }
        };
        let threads = (0..).zip(&seats.cpus).map(|(rank, cpu)| (rank, *cpu, Ok(move || serve(rank))));
        run_on_threads(&roster, seats.policy, limit_ns, threads)
    }
}

/// One thread for each of these: the first member it serves, its CPU, and what it does or why it cannot.
pub(super) fn run_on_threads(
    roster: &Roster,
    policy: Policy,
    limit_ns: u64,
    threads: impl Iterator<Item = (usize, usize, Result<impl FnOnce() + Send, String>)>,
) -> Result<(), TeamError> {
    std::thread::scope(|scope| {
        for (rank, cpu, serve) in threads {
            let placed = serve.and_then(|serve| {
                spawn_placed_scoped(scope, "mm-team", Some(cpu), policy, serve).map_err(|e| e.to_string())
            });
            if let Err(why) = placed {
                roster.cancel();
                return Err(roster.not_started(rank, why));
            }
        }
        roster.open(limit_ns);
        Ok(())
    })?;
    roster.result(|_| None)
}
