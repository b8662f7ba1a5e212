//! A lock that all members want: each adds 1 to a plain number under it until that is large enough. Shares tell fairness.

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::cost::Row;
use machmeter_engine::disturbance::Disturbance;
use machmeter_engine::team::sampler::JointOperation;
use machmeter_engine::team::{Arena, Member};
use machmeter_stats::quantile::{median, quantile_interval, sorted};

use super::lock::{Lock, WithLocks};
use super::measure::LockVisit;

/// Cells: the number that the lock protects, members that are done, and for each member what it got and its longest streak.
const NUMBER: usize = 0;
const DONE: usize = 1;
const FIRST_MEMBER: usize = 2;

/// Words of the heap: acquisitions as members counted them, as the number says, longest streak, and indices.
const COUNTED: usize = 0;
const ADDED: usize = 1;
const LONGEST: usize = 2;
const INDICES: usize = 3;
const FIRST_INDEX: usize = 4;
/// Indices kept of one visit, and of a row.
const MAX_PER_VISIT: usize = 64;
const MAX_OF_ROW: usize = 32;

/// Fewest turns of which shares say something: below are the first steps toward a batch that is long enough.
const LEAST_TURNS: u64 = 64;

/// Names of what is told beside the pairs.
pub(super) const LONGEST_STREAK: &str = "longest_streak";
pub(super) const JAIN: &str = "jain_";
pub(super) const PROOF: &str = "additions under the lock, of those made";

/// One visit of a row in which all members want a lock.
pub(super) struct ContendedVisit<'v, 'r> {
    pub(super) visit: &'v LockVisit<'v>,
    pub(super) row: &'r mut Row,
}

impl<'m> WithLocks<'m> for ContendedVisit<'_, '_> {
    type Output = Result<(), String>;

    fn run<L: Lock + 'm>(self, locks: Vec<L>) -> Self::Output {
        let members = self.visit.members();
        let heap_bytes = (FIRST_INDEX + MAX_PER_VISIT) * 8;
        let board = Arena::new(FIRST_MEMBER + 2 * members, heap_bytes).map_err(|e| e.to_string())?;
        let lock = locks.first().ok_or("no lock")?;
        let contended = Contended { lock, board: &board, heap: board.heap().atomics(), members };
        self.visit.take(self.row, &contended)?;
        contended.tell(self.row);
        Ok(())
    }
}

struct Contended<'a, L> {
    lock: &'a L,
    board: &'a Arena,
    heap: &'a [AtomicU64],
    members: usize,
}

impl<L: Lock> Contended<'_, L> {
    /// Exclusive: until the number is `turns`. (acquisitions, longest streak), and whether the deadline left it alone.
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

    /// Shared: a fixed part for each member; the number is only read.
    fn own_part(&self, member: &Member<'_>, turns: u64) -> (u64, u64, bool) {
        let number = self.board.cell(NUMBER);
        let part = turns.div_ceil(member.members as u64);
        for done in 0..part {
            let Some(held) = self.lock.acquire(member) else { return (done, 0, false) };
            std::hint::black_box(number.load(Ordering::Relaxed));
            drop(held);
        }
        let all = self.board.cell(DONE).fetch_add(1, Ordering::AcqRel) + 1;
        // The time ends when the last of them is through.
        let met = member.rank != 0
            || all == member.members as u64
            || member.wait(|| self.board.cell(DONE).load(Ordering::Acquire) == member.members as u64);
        (part, 0, met)
    }

    fn counts(&self) -> Vec<u64> {
        (0..self.members).map(|m| self.board.cell(FIRST_MEMBER + 2 * m).load(Ordering::Relaxed)).collect()
    }

    /// What the visit says beside its pairs.
    fn tell(&self, row: &mut Row) {
        let word = |i: usize| self.heap[i].load(Ordering::Relaxed);
        row.prove(PROOF, word(COUNTED), word(ADDED));
        if self.lock.is_shared() {
            return;
        }
        let longest = row.extras.entry(LONGEST_STREAK.to_owned()).or_default();
        *longest = longest.max(word(LONGEST) as f64);
        let known = row.extras.keys().filter(|k| k.starts_with(JAIN)).count();
        for i in 0..(word(INDICES) as usize).min(MAX_PER_VISIT).min(MAX_OF_ROW.saturating_sub(known)) {
            row.extras.insert(format!("{JAIN}{:02}", known + i), f64::from_bits(word(FIRST_INDEX + i)));
        }
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
        let counts = self.counts();
        let counted: u64 = counts.iter().sum();
        let added =
            if self.lock.is_shared() { counted } else { self.board.cell(NUMBER).load(Ordering::Relaxed) };
        self.heap[COUNTED].fetch_add(counted, Ordering::Relaxed);
        self.heap[ADDED].fetch_add(added, Ordering::Relaxed);
        if clean && turns >= LEAST_TURNS && !self.lock.is_shared() {
            for m in 0..self.members {
                let streak = self.board.cell(FIRST_MEMBER + 2 * m + 1).load(Ordering::Relaxed);
                self.heap[LONGEST].fetch_max(streak, Ordering::Relaxed);
            }
            let i = self.heap[INDICES].load(Ordering::Relaxed) as usize;
            if let Some(index) = jain(&counts).filter(|_| i < MAX_PER_VISIT) {
                self.heap[FIRST_INDEX + i].store(index.to_bits(), Ordering::Relaxed);
                self.heap[INDICES].store(i as u64 + 1, Ordering::Relaxed);
            }
        }
        // Without a share for everybody the lock was not contended.
        counts.contains(&0).then_some(Disturbance::Partner)
    }
}

/// Jain's index (DEC-TR-301, 1984): 1 when all are equal, 1/n when one has everything. `None` when all are 0.
pub(super) fn jain(counts: &[u64]) -> Option<f64> {
    let sum: f64 = counts.iter().map(|c| *c as f64).sum();
    let squares: f64 = counts.iter().map(|c| *c as f64 * *c as f64).sum();
    (sum > 0.0).then(|| (sum * sum / (counts.len() as f64 * squares)).min(1.0))
}

/// Median of the indices of batches, with its 95 % interval and their number. `None` for fewer than 6.
pub(super) fn center(indices: &[f64]) -> Option<(f64, f64, f64, usize)> {
    let s = sorted(indices).ok()?;
    let ci = quantile_interval(&s, 0.5, 0.95).filter(|_| s.len() >= 6)?;
    Some((median(&s)?, ci.low, ci.high, s.len()))
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

    #[test]
    fn few_batches_have_no_interval() {
        assert_eq!(center(&[0.9; 5]), None);
        let (value, low, high, n) = center(&[0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 0.75]).unwrap();
        assert_eq!((value, n), (0.75, 7));
        assert!(low < value && value < high && low >= 0.5 && high <= 1.0);
        assert_eq!(center(&[f64::NAN; 9]), None);
    }
}
