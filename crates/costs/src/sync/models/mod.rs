//! Programming models beside POSIX threads: forked processes on shared memory (Sequent) and user-level threads on pinned workers
//! (Solaris), with the operations of a symmetric heap (SHMEM on the Cray T3D) between processes. What two threads pay is told by
//! the parts transfer and locks and by `machmeter ops`; the self-test has threads and processes do the same side by side.
//!
//! | row | what a turn is |
//! | --- | --- |
//! | `create_join` | a user thread is made on a stack in use before, does one addition, and is joined; those of the system: `machmeter ops` |
//! | `create_join_new_stack` | the same with a stack that is mapped and unmapped for it |
//! | `switch` | one user thread lets the next of its worker go on |
//! | `barrier` | two members meet at a central barrier that spins |
//! | `hand_over` | one member sets the word another waits for, through the heap (half a round trip); with one CPU this takes a switch |
//! | `ping_pong` | one way of a compare-and-swapped word |
//! | `lock_unlock` | a heap lock nobody else wants |
//! | `put_...`, `get_...` | bytes into or from the other rank's part, word by word; after each put `quiet` |
//! | `get_8b_fresh` | dependent reads of words that the owner wrote just before; `get_8b` reads what nobody has changed |

mod analyze;
mod measure;
mod selftest;
#[cfg(test)]
mod tests;

use super::Params;
use machmeter_engine::part::Part;

pub(super) const PART: Part<Params> = Part {
    codes: &[NO_USER_THREADS],
    selftest: &[
        ("a member that is killed", selftest::killed),
        ("models side by side", selftest::side_by_sides),
    ],
    ..Part::of("models", 15, measure::measure, analyze::analyze)
};

machmeter_data::code! { pub(super) NO_USER_THREADS = "W437" "no user threads",
    what: "This program was built without user-level threads.",
    why: "The rows of user-level threads are missing.",
    how: "The feature user-threads was off at compile time.",
    next: "Build with the default features.",
}
