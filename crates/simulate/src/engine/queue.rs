//! Events in the order of (time, stamp): a monotone radix heap (Ahuja et al. 1990) of lists in one pool.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::program::Op;

use super::time::Time;

/// No node.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Operation b of rank a is ready.
    Ready,
    /// The first byte of the message of operation b of rank a, or the request to send it, is at the receiver.
    Arrival,
    /// All its bytes are there; a CPU of the receiver is needed.
    Delivery,
    /// The receiver's CPU has done its part for it.
    Landing,
    /// The sender of handshake a may send its bytes.
    Clear,
    /// The first byte of handshake a is at the receiver.
    ClearArrival,
    /// All its bytes are there.
    ClearDelivery,
    /// The receiver's CPU has done its part for handshake a.
    ClearLanding,
    /// Operation b of rank a is over.
    Done,
    /// Replaced.
    Void,
}

/// An event, or an operation or message that waits for a resource. 64 bytes without a gradient.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event<T> {
    pub(super) time: T,
    /// Order of coming into being among all events.
    pub(super) stamp: u64,
    /// The operation; of a message, the one that sent it.
    pub(super) op: Op,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) kind: Kind,
    /// Whether it stands in the queue for others that wait for the same.
    pub(super) is_first: bool,
    next: u32,
    /// First child in a heap of waiting events.
    child: u32,
}

impl<T> Event<T> {
    pub(super) fn new(kind: Kind, time: T, stamp: u64, (a, b): (u32, u32), op: Op) -> Self {
        Self { time, stamp, op, a, b, kind, is_first: false, next: NONE, child: NONE }
    }
}

/// All events in one piece of memory; freed ones are used again.
#[derive(Debug)]
pub(super) struct Pool<T> {
    events: Vec<Event<T>>,
    free: u32,
}

impl<T: Time> Pool<T> {
    pub(super) fn new() -> Self {
        Self { events: Vec::new(), free: NONE }
    }

    pub(super) fn get(&self, at: u32) -> &Event<T> {
        &self.events[at as usize]
    }

    pub(super) fn get_mut(&mut self, at: u32) -> &mut Event<T> {
        &mut self.events[at as usize]
    }

    #[inline]
    pub(super) fn add(&mut self, event: Event<T>) -> u32 {
        if self.free == NONE {
            self.events.push(event);
            return (self.events.len() - 1) as u32;
        }
        let at = self.free;
        let slot = &mut self.events[at as usize];
        self.free = slot.next;
        *slot = event;
        at
    }

    #[inline]
    pub(super) fn release(&mut self, at: u32) {
        self.events[at as usize].next = self.free;
        self.free = at;
    }

    /// One heap of two, by stamp: a pairing heap (Fredman et al. 1986).
    pub(super) fn merge(&mut self, x: u32, y: u32) -> u32 {
        if x == NONE {
            return y;
        }
        if y == NONE {
            return x;
        }
        let (top, below) = if self.get(x).stamp < self.get(y).stamp { (x, y) } else { (y, x) };
        let child = self.get(top).child;
        self.get_mut(below).next = child;
        self.get_mut(top).child = below;
        top
    }

    /// The heap without its oldest event.
    pub(super) fn without_top(&mut self, top: u32) -> u32 {
        let mut rest = std::mem::replace(&mut self.get_mut(top).child, NONE);
        // In pairs from the front, then all pairs from the back.
        let mut pairs = NONE;
        while rest != NONE {
            let first = rest;
            let second = std::mem::replace(&mut self.get_mut(first).next, NONE);
            rest =
                if second == NONE { NONE } else { std::mem::replace(&mut self.get_mut(second).next, NONE) };
            let pair = self.merge(first, second);
            self.get_mut(pair).next = pairs;
            pairs = pair;
        }
        let mut all = NONE;
        while pairs != NONE {
            let next = std::mem::replace(&mut self.get_mut(pairs).next, NONE);
            all = self.merge(all, pairs);
            pairs = next;
        }
        all
    }
}

/// A list in the pool, from its head.
#[derive(Debug, Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
    /// Whether all are of one time and stand by stamp.
    is_even: bool,
}

const EMPTY: List = List { head: NONE, tail: NONE, is_even: true };

impl List {
    #[inline]
    fn append<T: Time>(&mut self, pool: &mut Pool<T>, at: u32) {
        pool.get_mut(at).next = NONE;
        if self.tail == NONE {
            self.head = at;
        } else {
            pool.get_mut(self.tail).next = at;
        }
        self.tail = at;
    }

    fn take_first<T: Time>(&mut self, pool: &Pool<T>) -> u32 {
        let first = self.head;
        self.head = pool.get(first).next;
        if self.head == NONE {
            self.tail = NONE;
        }
        first
    }
}

/// The queue. Events earlier than the last one taken are allowed: they come next.
#[derive(Debug)]
pub(super) struct Queue {
    /// Time of the last bucket that was opened, ps.
    last_ps: u64,
    /// Events at `last_ps`, by stamp.
    due: List,
    /// Events at `last_ps` that came later, by stamp.
    fresh: List,
    /// Events up to `last_ps` out of that order: (ps, stamp, event).
    early: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Bucket k has the times that differ from `last_ps` in bit k at most.
    buckets: [List; 64],
    occupied: u64,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            last_ps: 0,
            due: EMPTY,
            fresh: EMPTY,
            early: BinaryHeap::new(),
            buckets: [EMPTY; 64],
            occupied: 0,
        }
    }

    /// Puts an event of the pool in.
    #[inline]
    pub(super) fn push<T: Time>(&mut self, pool: &mut Pool<T>, at: u32) {
        let (ps, stamp) = (pool.get(at).time.ps(), pool.get(at).stamp);
        if ps > self.last_ps {
            self.append(pool, at, ps);
        } else if ps == self.last_ps && (self.fresh.tail == NONE || pool.get(self.fresh.tail).stamp < stamp) {
            self.fresh.append(pool, at);
        } else {
            self.early.push(Reverse((ps, stamp, at)));
        }
    }

    // A call costs 16 instructions an event.
    #[inline(always)]
    fn append<T: Time>(&mut self, pool: &mut Pool<T>, at: u32, ps: u64) {
        #[expect(clippy::manual_ilog2, reason = "its check for zero costs two instructions an event")]
        let bucket = 63 - (ps ^ self.last_ps).leading_zeros();
        let list = &mut self.buckets[bucket as usize];
        if list.tail != NONE {
            let last = pool.get(list.tail);
            list.is_even &= last.time.ps() == ps && last.stamp < pool.get(at).stamp;
        }
        list.append(pool, at);
        self.occupied |= 1 << bucket;
    }

    /// Takes the first event out; it stays in the pool.
    pub(super) fn pop<T: Time>(&mut self, pool: &mut Pool<T>) -> Option<u32> {
        if let Some(Reverse((ps, stamp, at))) = self.early.peek().copied() {
            let before = |list: &List| list.head == NONE || stamp < pool.get(list.head).stamp;
            if ps < self.last_ps || (before(&self.due) && before(&self.fresh)) {
                self.early.pop();
                return Some(at);
            }
        }
        loop {
            match (self.due.head, self.fresh.head) {
                (NONE, NONE) => self.open_bucket(pool)?,
                (_, NONE) => return Some(self.due.take_first(pool)),
                (NONE, _) => return Some(self.fresh.take_first(pool)),
                (due, fresh) => {
                    let list = if pool.get(due).stamp < pool.get(fresh).stamp {
                        &mut self.due
                    } else {
                        &mut self.fresh
                    };
                    return Some(list.take_first(pool));
                }
            }
        }
    }

    /// Advances to the earliest time in the lowest bucket and distributes the rest of that bucket.
    fn open_bucket<T: Time>(&mut self, pool: &mut Pool<T>) -> Option<()> {
        if self.occupied == 0 {
            return None;
        }
        let bucket = self.occupied.trailing_zeros();
        self.occupied &= !(1 << bucket);
        let list = std::mem::replace(&mut self.buckets[bucket as usize], EMPTY);
        if list.is_even {
            self.last_ps = pool.get(list.head).time.ps();
            self.due = list;
            return Some(());
        }
        let mut first_ps = u64::MAX;
        let mut at = list.head;
        while at != NONE {
            let event = pool.get(at);
            first_ps = first_ps.min(event.time.ps());
            at = event.next;
        }
        self.last_ps = first_ps;
        let mut sorted = true;
        let mut at = list.head;
        while at != NONE {
            let event = pool.get(at);
            let (next, ps, stamp) = (event.next, event.time.ps(), event.stamp);
            if ps == first_ps {
                sorted &= self.due.tail == NONE || pool.get(self.due.tail).stamp < stamp;
                self.due.append(pool, at);
            } else {
                self.append(pool, at, ps);
            }
            at = next;
        }
        if !sorted {
            self.sort_due(pool);
        }
        Some(())
    }

    fn sort_due<T: Time>(&mut self, pool: &mut Pool<T>) {
        let mut all = Vec::new();
        let mut at = self.due.head;
        while at != NONE {
            all.push((pool.get(at).stamp, at));
            at = pool.get(at).next;
        }
        all.sort_unstable();
        self.due = EMPTY;
        for (_, at) in all {
            self.due.append(pool, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue against a sorted list: random times, ties, stamps out of order, times in the past.
    #[test]
    fn events_leave_by_time_and_stamp() {
        let mut random = machmeter_stats::random::Random::new(7);
        let (mut pool, mut queue) = (Pool::<u64>::new(), Queue::new());
        let mut expected: Vec<(u64, u64)> = Vec::new();
        let (mut now, mut stamp) = (0u64, 1000u64);
        for _ in 0..20_000 {
            if random.below(5) < 3 {
                stamp += 1;
                let own = if random.below(10) == 0 { random.below(1000) as u64 } else { stamp };
                let ps = match random.below(20) {
                    0 => now.saturating_sub(random.below(50) as u64),
                    1..6 => now,
                    6..15 => now + random.below(100) as u64,
                    _ => now + (random.bits() >> 30),
                };
                if expected.contains(&(ps, own)) {
                    continue;
                }
                let at = pool.add(Event::new(Kind::Ready, ps, own, (0, 0), Op::calculate(0)));
                queue.push(&mut pool, at);
                expected.push((ps, own));
            } else if let Some(at) = queue.pop(&mut pool) {
                let found = (pool.get(at).time, pool.get(at).stamp);
                let least = expected.iter().enumerate().min_by_key(|(_, e)| **e).unwrap();
                assert_eq!(found, *least.1);
                expected.swap_remove(least.0);
                now = found.0;
                pool.release(at);
            } else {
                assert!(expected.is_empty());
            }
        }
    }

    #[test]
    fn waiting_events_leave_their_heap_by_stamp() {
        let mut random = machmeter_stats::random::Random::new(8);
        let mut pool = Pool::<u64>::new();
        let mut stamps: Vec<u64> = (0..500).collect();
        random.shuffle(&mut stamps);
        let mut heap = NONE;
        for s in stamps {
            let at = pool.add(Event::new(Kind::Ready, 0, s, (0, 0), Op::calculate(0)));
            heap = pool.merge(heap, at);
        }
        for s in 0..500 {
            assert_eq!(pool.get(heap).stamp, s);
            heap = pool.without_top(heap);
        }
        assert_eq!(heap, NONE);
    }
}
