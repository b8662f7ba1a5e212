//! Teams: several workers that execute one piece of work at once, each on its CPU, in one programming model. Howell's
//! models (POSIX threads, Sequent's forked processes with shared sections, Solaris' user-level threads) are implementations
//! of one trait, so that every measurement with partners runs in each of them.
//!
//! Workers end by themselves at the deadline; nothing waits for a controller that may not get a CPU. All that they share
//! lies in an [`Arena`] of shared memory, in every model, so that models are compared on the same memory.

pub mod processes;
mod roster;
pub mod sampler;
pub mod simulated;
#[cfg(test)]
mod tests;
pub mod threads;
#[cfg(feature = "user-threads")]
pub mod user_threads;

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_sys::sched::Policy;

pub use machmeter_loops::team::{Arena, CELL_BYTES, Member, heap};

/// Writes bytes behind a word with their number. False when there is too little room.
fn write_bytes(words: &[AtomicU64], bytes: &[u8]) -> bool {
    let Some((length, words)) = words.split_first().filter(|(_, w)| w.len() * 8 >= bytes.len()) else {
        return false;
    };
    for (word, chunk) in words.iter().zip(bytes.chunks(8)) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
    }
    length.store(bytes.len() as u64, Ordering::Release);
    true
}

/// What [`write_bytes`] wrote.
fn read_bytes(words: &[AtomicU64]) -> Vec<u8> {
    let Some((length, words)) = words.split_first() else { return Vec::new() };
    let length = length.load(Ordering::Acquire) as usize;
    let words = words.iter().take(length.div_ceil(8));
    let mut bytes: Vec<u8> = words.flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}

/// Where the members sit: member `i` on `cpus[i]`. Several members may share a CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Seats {
    pub cpus: Vec<usize>,
    pub policy: Policy,
}

#[derive(Debug, thiserror::Error)]
pub enum TeamError {
    /// A member could not be started or placed.
    #[error("{model}: member {rank} could not be started: {why}")]
    Start { model: &'static str, rank: usize, why: String },
    /// A member died or did not end in time.
    #[error("{model}: member {rank} {why}")]
    Lost { model: &'static str, rank: usize, why: String },
}

/// The work of a team: called once in every member. What it finds it writes into the arena.
pub type Work<'w> = &'w (dyn Fn(&Member<'_>) + Sync);

pub trait Team: Sync {
    /// `threads`, `processes`, `user-threads`: as in metric parameters.
    fn model(&self) -> &'static str;

    /// Lets every member do `work` once, all at once, within `limit_ns`; the caller waits. Nothing is left running.
    fn run(&self, seats: &Seats, limit_ns: u64, work: Work<'_>) -> Result<(), TeamError>;
}

/// Whether two members sit on one CPU.
pub(crate) fn shares_a_cpu(seats: &Seats) -> bool {
    let mut cpus = seats.cpus.clone();
    cpus.sort_unstable();
    cpus.windows(2).any(|two| two[0] == two[1])
}

/// All models of this program, `user-threads` only where it was built with that feature.
pub fn models() -> &'static [&'static dyn Team] {
    &[
        &threads::Threads,
        &processes::Processes,
        #[cfg(feature = "user-threads")]
        &user_threads::UserThreads,
    ]
}

pub fn named(name: &str) -> Option<&'static dyn Team> {
    models().iter().copied().find(|m| m.model() == name)
}
