//! User threads on one worker. Their switch is the row `switch`, and a member that waits for another one on its worker relaxes by
//! such a switch, so the run queue and the switch are compiled in this crate.

use machmeter_sys::user_threads::{Stacks, run_all};

/// Runs `work(i, relax)` as user thread `i` on each of the stacks, in turns on the calling thread, until all threads have ended.
/// `relax` lets the other threads run. A panic in `work` ends its own thread only.
pub fn run(stacks: &mut Stacks, work: &dyn Fn(usize, &dyn Fn())) {
    // Panics of a member are recorded by the roster of its team.
    let _ = run_all(stacks, &|i, turn| work(i, &|| turn.yield_now()));
}
