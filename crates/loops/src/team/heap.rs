//! A symmetric heap over an [`Arena`], in the manner of SHMEM on the Cray T3D: every rank has a part of the same layout, and
//! any rank puts into and gets from any part. On it: locks, waiting for a word, and a barrier.
//!
//! | here | SHMEM | Sequent |
//! | --- | --- | --- |
//! | `Team::run` with `Seats` of the engine | N copies of main | `m_set_procs`, `m_fork`, `m_kill_procs` |
//! | [`Layout::take`] | symmetric data, `shmalloc` | `shmalloc`, shared sections |
//! | [`Heap::put`], [`Heap::get`] | `shmem_put`, `shmem_get` | plain loads and stores |
//! | [`Heap::quiet`] | `shmem_quiet` | |
//! | [`Heap::set_lock`], [`Heap::test_lock`], [`Heap::clear_lock`] | `shmem_set_lock`, ... | `s_lock`, `s_clock`, `s_unlock` |
//! | [`Heap::wait`] | `shmem_wait` | |
//! | [`Barrier`] | `shmem_barrier_all` | `s_init_barrier`, `s_wait_barrier` |

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::{Arena, Member};

/// Words of a processor's pair of lines: what is taken starts at a multiple of it, so that nothing shares a line by chance.
const LINE_WORDS: usize = 16;

/// Words that every rank has at the same place of its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symmetric {
    start: usize,
    words: usize,
}

impl Symmetric {
    pub fn words(self) -> usize {
        self.words
    }
}

/// The layout of a part: what has been taken so far. Made once, before the team runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layout {
    taken_words: usize,
}

impl Layout {
    /// Takes `words` words in the part of every rank, on lines of their own.
    pub fn take(&mut self, words: usize) -> Symmetric {
        let start = self.taken_words;
        self.taken_words = start.saturating_add(words).next_multiple_of(LINE_WORDS);
        Symmetric { start, words }
    }

    /// What the heap of an [`Arena`] needs for so many ranks, bytes.
    pub fn heap_bytes(self, ranks: usize) -> usize {
        self.taken_words.saturating_mul(8).saturating_mul(ranks)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Heap<'a> {
    words: &'a [AtomicU64],
    part_words: usize,
    ranks: usize,
}

impl<'a> Heap<'a> {
    /// The arena's heap in `ranks` parts; `None` when the layout does not fit.
    pub fn new(arena: &'a Arena, layout: Layout, ranks: usize) -> Option<Self> {
        let words = arena.heap().atomics();
        (layout.heap_bytes(ranks) <= words.len() * 8).then_some(Self {
            words,
            part_words: layout.taken_words,
            ranks,
        })
    }

    /// The words of `at` in the part of `rank`; empty when there is no such rank.
    #[inline]
    pub fn at(&self, rank: usize, at: Symmetric) -> &'a [AtomicU64] {
        if rank >= self.ranks {
            return &[];
        }
        let start = rank * self.part_words + at.start;
        self.words.get(start..start + at.words).unwrap_or(&[])
    }

    /// Writes words as far as both reach; how many. Seen by others after [`Self::quiet`] and something that orders them.
    #[inline]
    pub fn put(&self, rank: usize, at: Symmetric, from: &[u64]) -> usize {
        let to = self.at(rank, at);
        for (to, from) in to.iter().zip(from) {
            to.store(*from, Ordering::Relaxed);
        }
        to.len().min(from.len())
    }

    /// Reads `at` of `rank` into `to`, word by word, as far as both reach; returns how many words.
    #[inline]
    pub fn get(&self, rank: usize, at: Symmetric, to: &mut [u64]) -> usize {
        let from = self.at(rank, at);
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.load(Ordering::Relaxed);
        }
        to.len().min(from.len())
    }

    /// What was put before is visible to everybody before anything put after.
    #[inline]
    pub fn quiet(&self) {
        fence(Ordering::SeqCst);
    }

    /// Sets the lock, whose word lies with rank 0, as soon as it is clear; false when the deadline came first.
    #[inline]
    pub fn set_lock(&self, lock: Symmetric, member: &Member<'_>) -> bool {
        self.test_lock(lock) || member.wait(|| self.test_lock(lock))
    }

    /// Sets the lock if it is clear; whether it was.
    #[inline]
    pub fn test_lock(&self, lock: Symmetric) -> bool {
        let Some(word) = self.at(0, lock).first() else { return false };
        // Looked at first, so that those who wait leave the line with the one who will clear it.
        word.load(Ordering::Relaxed) == 0
            && word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Clears the lock; only for the rank that set it.
    #[inline]
    pub fn clear_lock(&self, lock: Symmetric) {
        if let Some(word) = self.at(0, lock).first() {
            word.store(0, Ordering::Release);
        }
    }

    /// Waits until the first own word of `at` is not `value`; what it is then, `None` when late.
    #[inline]
    pub fn wait(&self, at: Symmetric, value: u64, member: &Member<'_>) -> Option<u64> {
        let word = self.at(member.rank, at).first()?;
        member.wait(|| word.load(Ordering::Acquire) != value).then(|| word.load(Ordering::Acquire))
    }

    /// Puts one word into the part of `rank` so that all puts before it are seen by whoever sees it.
    #[inline]
    pub fn signal(&self, rank: usize, at: Symmetric, value: u64) {
        if let Some(word) = self.at(rank, at).first() {
            word.store(value, Ordering::Release);
        }
    }
}

/// A central spinning barrier with reversing sense, reusable (Mellor-Crummey and Scott, TOCS 9(1), 1991, algorithm 7).
#[derive(Debug, Clone, Copy)]
pub struct Barrier<'a> {
    arrived: &'a AtomicU64,
    sense: &'a AtomicU64,
}

impl<'a> Barrier<'a> {
    /// On two cells that are 0 at first and used for nothing else.
    pub fn new(arrived: &'a AtomicU64, sense: &'a AtomicU64) -> Self {
        Self { arrived, sense }
    }

    /// Waits until all members are here; false when the deadline came first, and the barrier is then of no more use.
    #[inline]
    pub fn wait(&self, member: &Member<'_>) -> bool {
        let sense = self.sense.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == member.members as u64 {
            self.arrived.store(0, Ordering::Relaxed);
            self.sense.store(sense ^ 1, Ordering::Release);
            return true;
        }
        member.wait(|| self.sense.load(Ordering::Acquire) != sense)
    }
}
