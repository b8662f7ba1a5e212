//! POSIX threads: one placed thread for each member.

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
        let serve = |rank| {
            roster.report(rank, Ok(()));
            if let Some(deadline_ns) = roster.enter() {
                // A thread that spins on a CPU keeps the other member there from what it waits for.
                let relax: &dyn Fn() = if shared { &std::thread::yield_now } else { &std::hint::spin_loop };
                roster.perform(rank, deadline_ns, relax, work);
            }
        };
        std::thread::scope(|scope| {
            for (rank, cpu) in seats.cpus.iter().enumerate() {
                let placed =
                    spawn_placed_scoped(scope, "mm-team", Some(*cpu), seats.policy, move || serve(rank));
                if let Err(e) = placed {
                    roster.cancel();
                    return Err(roster.not_started(rank, e.to_string()));
                }
            }
            roster.open(limit_ns);
            Ok(())
        })?;
        roster.result(|_| None)
    }
}
