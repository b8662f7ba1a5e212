//! A lock under contention: every member adds 1 to a plain number under it until the number is large enough. The shares of the
//! members show how fair the lock is.

use std::sync::atomic::{AtomicU64, Ordering};

use super::lock::{Kind, Lock, LockMemory, WithLocks, with_locks};
use crate::team::{Arena, Disturbance, JointOperation, Member};

/// Cells: the number that the lock protects, members that are done, and for each member its acquisitions and longest streak.
const NUMBER: usize = 0;
const DONE: usize = 1;
const FIRST_MEMBER: usize = 2;

/// Words of the heap: acquisitions that members counted, the sum of the numbers, longest streak, and indices.
const COUNTED: usize = 0;
const ADDED: usize = 1;
const LONGEST: usize = 2;
const INDICES: usize = 3;
const FIRST_INDEX: usize = 4;
/// Indices that the board keeps at most.
const INDICES_MAX: usize = 64;

/// Fewest turns of a batch whose shares count. Shorter batches are the first trials of the batch length.
const LEAST_TURNS: u64 = 64;

/// The counts of all members, in shared memory.
pub struct Board {
    arena: Arena,
    members: usize,
}

impl Board {
    /// Maps the memory for this number of members.
    pub fn new(members: usize) -> Result<Self, String> {
        let heap_bytes = (FIRST_INDEX + INDICES_MAX) * 8;
        let arena = Arena::new(FIRST_MEMBER + 2 * members, heap_bytes).map_err(|e| e.to_string())?;
        Ok(Self { arena, members })
    }

    /// Acquisitions that the members counted in all batches.
    pub fn counted(&self) -> u64 {
        self.word(COUNTED).load(Ordering::Relaxed)
    }

    /// The same acquisitions as additions to the number that the lock protects.
    pub fn added(&self) -> u64 {
        self.word(ADDED).load(Ordering::Relaxed)
    }

    /// Most acquisitions in a row by one member, in undisturbed batches. 0 for a lock that members share.
    pub fn longest_streak(&self) -> u64 {
        self.word(LONGEST).load(Ordering::Relaxed)
    }

    /// Jain's index of each undisturbed batch, at most 64. Empty for a lock that members share.
    pub fn indices(&self) -> impl Iterator<Item = f64> {
        let n = (self.word(INDICES).load(Ordering::Relaxed) as usize).min(INDICES_MAX);
        (0..n).map(|i| f64::from_bits(self.word(FIRST_INDEX + i).load(Ordering::Relaxed)))
    }

    fn cell(&self, i: usize) -> &AtomicU64 {
        self.arena.cell(i)
    }

    fn word(&self, i: usize) -> &AtomicU64 {
        &self.arena.heap().atomics()[i]
    }

    fn counts(&self) -> Vec<u64> {
        (0..self.members).map(|m| self.cell(FIRST_MEMBER + 2 * m).load(Ordering::Relaxed)).collect()
    }
}

/// All members contend for a lock of this kind; a turn is one acquisition by any member.
pub fn operation<'a>(
    kind: Kind,
    memory: &'a LockMemory,
    board: &'a Board,
) -> Result<Box<dyn JointOperation + 'a>, String> {
    with_locks(kind, 1, memory, Contention(board))?
}

/// The same with a lock that does not exclude, for the test that the meter notices it.
pub fn open_lock(board: &Board) -> Box<dyn JointOperation + '_> {
    Box::new(Contended { lock: Box::new(OpenLock), board })
}

struct OpenLock;

impl Lock for OpenLock {
    type Held<'a> = ();

    fn acquire<'a>(&'a self, _member: &'a Member<'_>) -> Option<()> {
        Some(())
    }
}

struct Contention<'a>(&'a Board);

impl<'a> WithLocks<'a> for Contention<'a> {
    type Output = Result<Box<dyn JointOperation + 'a>, String>;

    fn run<L: Lock + 'a>(self, locks: Vec<L>) -> Self::Output {
        let lock = Box::new(locks.into_iter().next().ok_or("no lock")?);
        Ok(Box::new(Contended { lock, board: self.0 }))
    }
}

struct Contended<'a, L> {
    /// Boxed, so that its memory, which all members write, is not next to the fields that they read.
    lock: Box<L>,
    board: &'a Board,
}

impl<L: Lock> Contended<'_, L> {
    /// A lock that excludes: acquires it until the number is `turns`. Returns the acquisitions, the longest streak, and false if
    /// the deadline came first.
    fn until_full(&self, member: &Member<'_>, turns: u64) -> (u64, u64, bool) {
        let number = self.board.cell(NUMBER);
        let (mut mine, mut streak, mut longest) = (0, 0, 0);
        let mut expected = u64::MAX;
        loop {
            let Some(held) = self.lock.acquire(member) else { return (mine, longest, false) };
            let seen = number.load(Ordering::Relaxed);
            if seen >= turns {
                return (mine, longest, true);
            }
            number.store(seen + 1, Ordering::Relaxed);
            drop(held);
            streak = if seen == expected { streak + 1 } else { 1 };
            expected = seen + 1;
            longest = streak.max(longest);
            mine += 1;
        }
    }

    /// A lock that members share: each member acquires it a fixed number of times and only reads the number.
    fn own_part(&self, member: &Member<'_>, turns: u64) -> (u64, u64, bool) {
        let number = self.board.cell(NUMBER);
        let part = turns.div_ceil(member.members as u64);
        for done in 0..part {
            let Some(held) = self.lock.acquire(member) else { return (done, 0, false) };
            std::hint::black_box(number.load(Ordering::Relaxed));
            drop(held);
        }
        let all = self.board.cell(DONE).fetch_add(1, Ordering::AcqRel) + 1;
        // The time of the batch ends when the last member is done.
        let met = member.rank != 0
            || all == member.members as u64
            || member.wait(|| self.board.cell(DONE).load(Ordering::Acquire) == member.members as u64);
        (part, 0, met)
    }
}

impl<L: Lock> JointOperation for Contended<'_, L> {
    fn reset(&self) {
        self.board.cell(NUMBER).store(0, Ordering::Relaxed);
        self.board.cell(DONE).store(0, Ordering::Relaxed);
    }

    #[inline(never)]
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        let (mine, longest, met) =
            if self.lock.is_shared() { self.own_part(member, turns) } else { self.until_full(member, turns) };
        self.board.cell(FIRST_MEMBER + 2 * member.rank).store(mine, Ordering::Relaxed);
        self.board.cell(FIRST_MEMBER + 2 * member.rank + 1).store(longest, Ordering::Relaxed);
        met
    }

    fn judge(&self, turns: u64, clean: bool) -> Option<Disturbance> {
        let (board, shared) = (self.board, self.lock.is_shared());
        let counts = board.counts();
        let counted: u64 = counts.iter().sum();
        let added = if shared { counted } else { board.cell(NUMBER).load(Ordering::Relaxed) };
        board.word(COUNTED).fetch_add(counted, Ordering::Relaxed);
        board.word(ADDED).fetch_add(added, Ordering::Relaxed);
        if clean && turns >= LEAST_TURNS && !shared {
            for m in 0..board.members {
                let streak = board.cell(FIRST_MEMBER + 2 * m + 1).load(Ordering::Relaxed);
                board.word(LONGEST).fetch_max(streak, Ordering::Relaxed);
            }
            let i = board.word(INDICES).load(Ordering::Relaxed) as usize;
            if let Some(index) = jain(&counts).filter(|_| i < INDICES_MAX) {
                board.word(FIRST_INDEX + i).store(index.to_bits(), Ordering::Relaxed);
                board.word(INDICES).store(i as u64 + 1, Ordering::Relaxed);
            }
        }
        // A member without an acquisition did not contend.
        counts.contains(&0).then_some(Disturbance::Partner)
    }
}

/// Jain's index (DEC-TR-301, 1984): 1 if all counts are equal, 1/n if one member has all. `None` if all counts are 0.
fn jain(counts: &[u64]) -> Option<f64> {
    let sum: f64 = counts.iter().map(|c| *c as f64).sum();
    let squares: f64 = counts.iter().map(|c| *c as f64 * *c as f64).sum();
    (sum > 0.0).then(|| (sum * sum / (counts.len() as f64 * squares)).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_the_index_of_the_definition() {
        assert_eq!(jain(&[5, 5, 5, 5]), Some(1.0));
        assert_eq!(jain(&[9, 0, 0, 0]), Some(0.25));
        assert!((jain(&[3, 1]).unwrap() - 0.8).abs() < 1e-12);
        assert_eq!(jain(&[0, 0]), None);
        assert_eq!(jain(&[]), None);
    }
}
