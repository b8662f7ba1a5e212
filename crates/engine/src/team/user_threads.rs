//! User-level threads on pinned workers (Solaris' M:N threads): every CPU of the seats gets one worker, a thread of the system
//! with its own run queue, and the members seated there are user threads on it. The number of distinct CPUs is what
//! `thr_setconcurrency` sets.
//!
//! Two members on one worker switch without the kernel, in nanoseconds instead of microseconds; in return, one that does not
//! relax while it waits keeps the others of its worker from running.

use machmeter_loops::team::user_threads;
use machmeter_sys::user_threads::Stacks;

use super::roster::Roster;
use super::threads::run_on_threads;
use super::{Seats, Team, TeamError, Work};

/// Stack of a member, bytes; only what is used takes memory.
const STACK_BYTES: usize = 256 * 1024;

/// One user thread for each member. As with threads, nobody can end them from outside: work must keep its deadline.
#[derive(Debug, Clone, Copy)]
pub struct UserThreads;

impl Team for UserThreads {
    fn model(&self) -> &'static str {
        "user-threads"
    }

    fn run(&self, seats: &Seats, limit_ns: u64, work: Work<'_>) -> Result<(), TeamError> {
        let roster = Roster::new(self.model(), seats)?;
        let roster = &roster;
        let threads = workers(seats).into_iter().map(|(cpu, ranks)| {
            let stacks = Stacks::new(ranks.len(), STACK_BYTES).map_err(|e| e.to_string());
            (ranks[0], cpu, stacks.map(|stacks| move || serve(roster, &ranks, stacks, work)))
        });
        run_on_threads(roster, seats.policy, limit_ns, threads)
    }
}

/// The workers: CPU and members, in the order in which the CPUs appear.
fn workers(seats: &Seats) -> Vec<(usize, Vec<usize>)> {
    let mut workers: Vec<(usize, Vec<usize>)> = Vec::new();
    for (rank, cpu) in seats.cpus.iter().enumerate() {
        match workers.iter_mut().find(|(c, _)| c == cpu) {
            Some((_, ranks)) => ranks.push(rank),
            None => workers.push((*cpu, vec![rank])),
        }
    }
    workers
}

fn serve(roster: &Roster, ranks: &[usize], mut stacks: Stacks, work: Work<'_>) {
    for rank in ranks {
        roster.report(*rank, Ok(()));
    }
    let Some(deadline_ns) = roster.enter() else { return };
    user_threads::run(&mut stacks, &|i, relax| {
        if let Some(rank) = ranks.get(i) {
            roster.perform(*rank, deadline_ns, relax, work);
        }
    });
}
