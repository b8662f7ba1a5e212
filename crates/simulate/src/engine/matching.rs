//! Messages and receives that wait for each other: a table of lists in one pool, first come first served per (receiver, sender, tag).

/// No node.
const NONE: u32 = u32::MAX;
/// Sender or tag of a receive that takes any.
pub const ANY: u32 = u32::MAX;
const MIN_LISTS: usize = 64;

/// A receive that was posted, or a message that nobody expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) receiver: u32,
    /// Or [`ANY`], as the tag.
    pub(super) sender: u32,
    pub(super) tag: u32,
    /// Operation: of the receiver if posted, of the sender otherwise.
    pub(super) op: u32,
    pub(super) posted: bool,
    next: u32,
}

impl Entry {
    pub(super) fn new(receiver: u32, sender: u32, tag: u32, op: u32, posted: bool) -> Self {
        Self { receiver, sender, tag, op, posted, next: NONE }
    }

    fn meets(&self, other: &Self) -> bool {
        let fits = |x: u32, y: u32| x == y || x == ANY || y == ANY;
        self.receiver == other.receiver
            && self.posted != other.posted
            && fits(self.sender, other.sender)
            && fits(self.tag, other.tag)
    }
}

/// The counterpart that was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) sender: u32,
    pub(super) op: u32,
}

/// All that waits.
#[derive(Debug)]
pub(super) struct Matching {
    entries: Vec<Entry>,
    free: u32,
    /// Last entry of each list, whose `next` is the first.
    tails: Vec<u32>,
    live: usize,
}

impl Matching {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), free: NONE, tails: vec![NONE; MIN_LISTS], live: 0 }
    }

    /// List of an entry. Ranks that take any sender or tag have one list, so that one search sees all of theirs in order.
    fn list(&self, entry: &Entry, takes_any: bool) -> usize {
        let mut hash = u64::from(entry.receiver);
        if !takes_any {
            hash |= u64::from(entry.sender) << 32;
            hash ^= u64::from(entry.tag).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        hash = (hash ^ (hash >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        ((hash >> 32) as usize) & (self.tails.len() - 1)
    }

    /// Takes the oldest counterpart of an entry out, or keeps the entry. `takes_any` tells ranks with wildcards.
    #[inline(always)]
    pub(super) fn meet(&mut self, entry: &Entry, takes_any: &impl Fn(u32) -> bool) -> Option<Met> {
        let list = self.list(entry, takes_any(entry.receiver));
        let tail = self.tails[list];
        if tail != NONE {
            let (mut before, mut at) = (tail, self.entries[tail as usize].next);
            loop {
                let found = &self.entries[at as usize];
                if found.meets(entry) {
                    let met = Met { sender: found.sender, op: found.op };
                    self.remove(list, before, at);
                    return Some(met);
                }
                if at == tail {
                    break;
                }
                (before, at) = (at, found.next);
            }
        }
        self.keep(entry, list, takes_any);
        None
    }

    fn remove(&mut self, list: usize, before: u32, at: u32) {
        if before == at {
            self.tails[list] = NONE;
        } else {
            self.entries[before as usize].next = self.entries[at as usize].next;
            if self.tails[list] == at {
                self.tails[list] = before;
            }
        }
        let entry = &mut self.entries[at as usize];
        (entry.receiver, entry.next) = (NONE, self.free);
        self.free = at;
        self.live -= 1;
    }

    #[inline(never)]
    fn keep(&mut self, entry: &Entry, list: usize, takes_any: &impl Fn(u32) -> bool) {
        let at = if self.free == NONE {
            self.entries.push(*entry);
            (self.entries.len() - 1) as u32
        } else {
            let at = self.free;
            self.free = self.entries[at as usize].next;
            self.entries[at as usize] = *entry;
            at
        };
        self.append(list, at);
        self.live += 1;
        if self.live > self.tails.len() / 2 {
            self.grow(takes_any);
        }
    }

    fn append(&mut self, list: usize, at: u32) {
        let tail = self.tails[list];
        let first =
            if tail == NONE { at } else { std::mem::replace(&mut self.entries[tail as usize].next, at) };
        self.entries[at as usize].next = first;
        self.tails[list] = at;
    }

    #[cold]
    fn grow(&mut self, takes_any: &impl Fn(u32) -> bool) {
        let lists = self.tails.len() * 2;
        let old = std::mem::replace(&mut self.tails, vec![NONE; lists]);
        for tail in old.into_iter().filter(|t| *t != NONE) {
            let mut at = self.entries[tail as usize].next;
            loop {
                let entry = self.entries[at as usize];
                let list = self.list(&entry, takes_any(entry.receiver));
                self.append(list, at);
                if at == tail {
                    break;
                }
                at = entry.next;
            }
        }
    }

    /// What still waits, in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|e| e.receiver != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against one list that is searched from its front, with and without wildcards.
    #[test]
    fn the_oldest_counterpart_is_met() {
        let mut random = machmeter_stats::random::Random::new(3);
        let any = |rank: u32| rank.is_multiple_of(2);
        let (mut table, mut list) = (Matching::new(), Vec::<Entry>::new());
        for op in 0..30_000 {
            let receiver = random.below(5) as u32;
            let posted = random.below(2) == 0;
            let wild = posted && any(receiver);
            let mut field =
                |n: usize| if wild && random.below(3) == 0 { ANY } else { random.below(n) as u32 };
            let entry = Entry::new(receiver, field(30), field(4), op, posted);
            let expected = list.iter().position(|e| e.meets(&entry)).map(|i| list.remove(i));
            if expected.is_none() {
                list.push(entry);
            }
            assert_eq!(table.meet(&entry, &any).map(|e| e.op), expected.map(|e| e.op));
            assert_eq!(table.live, list.len());
        }
        assert_eq!(table.entries().count(), list.len());
        assert!(list.len() > 100);
    }
}
