//! Spin locks of the literature, on words in shared memory, each on lines of its own: test-and-set and
//! test-and-test-and-set (Rudolph & Segall 1984), ticket (Reed & Kanodia 1979), queue (Mellor-Crummey & Scott 1991).

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::team::Member;

use super::lock::Lock;

/// Words from one line to the next: two lines, since processors fetch lines in pairs.
const LINE_WORDS: usize = 16;

/// Words that all spin locks of so many members need at most: the tail of the queue and a node for each member.
pub(in crate::sync) const fn words(members: usize) -> usize {
    LINE_WORDS * if members < 2 { 2 } else { 1 + members }
}

/// Test-and-set: every waiter writes all the time.
pub(in crate::sync) struct TestAndSet<'m>(&'m AtomicU64);

/// Test-and-test-and-set: waiters read until the lock looks free.
pub(in crate::sync) struct TestTestAndSet<'m>(&'m AtomicU64);

/// A lock word that is set back to 0.
pub(in crate::sync) struct WordHeld<'a>(&'a AtomicU64);

impl Drop for WordHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl<'m> TestAndSet<'m> {
    /// On the first of `words`, which is 0.
    pub(in crate::sync) fn new(words: &'m [AtomicU64]) -> Self {
        Self(&words[0])
    }
}

impl Lock for TestAndSet<'_> {
    type Held<'a>
        = WordHeld<'a>
    where
        Self: 'a;

    #[inline]
    fn acquire<'a>(&'a self, member: &'a Member<'_>) -> Option<WordHeld<'a>> {
        let take = || self.0.swap(1, Ordering::Acquire) == 0;
        (take() || member.wait(take)).then(|| WordHeld(self.0))
    }
}

impl<'m> TestTestAndSet<'m> {
    /// On the first of `words`, which is 0.
    pub(in crate::sync) fn new(words: &'m [AtomicU64]) -> Self {
        Self(&words[0])
    }
}

impl Lock for TestTestAndSet<'_> {
    type Held<'a>
        = WordHeld<'a>
    where
        Self: 'a;

    #[inline]
    fn acquire<'a>(&'a self, member: &'a Member<'_>) -> Option<WordHeld<'a>> {
        let take = || self.0.load(Ordering::Relaxed) == 0 && self.0.swap(1, Ordering::Acquire) == 0;
        (take() || member.wait(take)).then(|| WordHeld(self.0))
    }
}

/// Tickets: holders come in the order of arrival.
pub(in crate::sync) struct Ticket<'m> {
    next: &'m AtomicU64,
    /// On a line of its own, so that arrivals don't disturb those who wait.
    serving: &'m AtomicU64,
}

pub(in crate::sync) struct TicketHeld<'a> {
    serving: &'a AtomicU64,
    mine: u64,
}

impl Drop for TicketHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        self.serving.store(self.mine + 1, Ordering::Release);
    }
}

impl<'m> Ticket<'m> {
    /// On the first two lines of `words`, which are 0.
    pub(in crate::sync) fn new(words: &'m [AtomicU64]) -> Self {
        Self { next: &words[0], serving: &words[LINE_WORDS] }
    }
}

impl Lock for Ticket<'_> {
    type Held<'a>
        = TicketHeld<'a>
    where
        Self: 'a;

    #[inline]
    fn acquire<'a>(&'a self, member: &'a Member<'_>) -> Option<TicketHeld<'a>> {
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        let turn = || self.serving.load(Ordering::Acquire) == mine;
        // Never made in vain: dropping it would call the next.
        (turn() || member.wait(turn)).then(|| TicketHeld { serving: self.serving, mine })
    }
}

/// Queue lock: each waiter spins on a line of its own. Nodes are named by rank + 1, 0 is nobody, so that processes that map
/// the memory elsewhere could use it too.
pub(in crate::sync) struct Queue<'m> {
    tail: &'m AtomicU64,
    /// First word of a member's line: 1 while it waits; second: who comes after it.
    nodes: &'m [AtomicU64],
}

pub(in crate::sync) struct QueueHeld<'a> {
    queue: &'a Queue<'a>,
    member: &'a Member<'a>,
}

impl<'m> Queue<'m> {
    /// On `words` of [`words`] for the team's members, which are 0.
    pub(in crate::sync) fn new(words: &'m [AtomicU64]) -> Self {
        Self { tail: &words[0], nodes: &words[LINE_WORDS..] }
    }

    #[inline]
    fn waits(&self, rank: usize) -> &AtomicU64 {
        &self.nodes[rank * LINE_WORDS]
    }

    #[inline]
    fn after(&self, rank: usize) -> &AtomicU64 {
        &self.nodes[rank * LINE_WORDS + 1]
    }
}

impl Lock for Queue<'_> {
    type Held<'a>
        = QueueHeld<'a>
    where
        Self: 'a;

    #[inline]
    fn acquire<'a>(&'a self, member: &'a Member<'_>) -> Option<QueueHeld<'a>> {
        let me = member.rank;
        self.after(me).store(0, Ordering::Relaxed);
        self.waits(me).store(1, Ordering::Relaxed);
        let before = self.tail.swap(me as u64 + 1, Ordering::AcqRel);
        if before != 0 {
            self.after(before as usize - 1).store(me as u64 + 1, Ordering::Release);
            let turn = || self.waits(me).load(Ordering::Acquire) == 0;
            if !turn() && !member.wait(turn) {
                return None;
            }
        }
        Some(QueueHeld { queue: self, member })
    }
}

impl Drop for QueueHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        let (queue, me) = (self.queue, self.member.rank);
        let mut after = queue.after(me).load(Ordering::Acquire);
        if after == 0 {
            let alone = queue.tail.compare_exchange(me as u64 + 1, 0, Ordering::Release, Ordering::Relaxed);
            if alone.is_ok() {
                return;
            }
            // Somebody stands behind but has not said so yet.
            self.member.wait(|| {
                after = queue.after(me).load(Ordering::Acquire);
                after != 0
            });
            if after == 0 {
                return;
            }
        }
        queue.waits(after as usize - 1).store(0, Ordering::Release);
    }
}
