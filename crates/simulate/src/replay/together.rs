//! Collectives of a replay: of a known cost behind a gate, or as the messages of a pattern.

use crate::goal::Require;
use crate::patterns::{PatternInfo, Shape};
use crate::program::{COLLECTIVE, ENTER, Op};

use super::calls::Calls;
use super::expand::{Front, Options, PATTERN_TAG, Priced, Request, Writer};
use super::matching::{Group, NONE, base, started_together};

/// Bound of the operations and messages of a replay.
pub fn events(calls: &Calls, options: &Options) -> u64 {
    let ranks = u64::from(calls.ranks) * u64::from(options.copies);
    let count = |fits: &dyn Fn(usize) -> bool| {
        calls.threads.iter().flat_map(|t| &t.calls).filter(|c| fits(c.operation)).count() as u64
    };
    // A call is a calculation and an operation or two.
    let together: u64 = calls.threads.iter().map(|t| started_together(&t.calls)).sum();
    let mut all = 3 * (count(&|_| true) + together);
    for (operation, info) in &options.algorithms {
        let shape = Shape::of(u32::try_from(ranks).unwrap_or(u32::MAX), 1);
        // Each message is a send, a receive and itself.
        let of_rank = 3 * (info.make)(shape).messages() / ranks.max(1) + 1;
        all = all.saturating_add(of_rank.saturating_mul(count(&|o| base(o) == Some(operation))));
    }
    all.saturating_mul(u64::from(options.copies))
}

impl<'a> Writer<'a> {
    /// Those of a communicator that is not of all ranks in order.
    fn members(&self, group: &Group) -> Option<&'a Vec<u32>> {
        self.calls.members.get(&group.communicator)
    }

    fn ranks_of(&self, group: &Group) -> u32 {
        self.members(group).map_or(self.calls.ranks * self.options.copies, |m| m.len() as u32)
    }

    fn gate(&self, group: u32) -> usize {
        let copy = self.members(&self.matched.groups[group as usize]).map_or(0, |_| self.copy);
        group as usize * self.options.copies as usize + copy as usize
    }

    fn is_root(&self, group: &Group) -> bool {
        group.root == Some(self.rank) && (self.copy == 0 || self.members(group).is_some())
    }

    fn priced(&self, group: &Group) -> Option<Priced> {
        let operation = base(group.operation)?;
        let traced = self.members(group).map_or(self.calls.ranks as usize, Vec::len);
        // The recorder has what these send to all ranks together.
        let parts = if matches!(operation, "alltoall" | "reduce_scatter") { traced.max(1) } else { 1 };
        let bytes = (group.bytes as f64 / parts as f64 * self.options.bytes_scale).round() as u64;
        Some(Priced { operation, ranks: self.ranks_of(group), bytes })
    }

    pub(super) fn together(&mut self, number: u32, blocks: bool) {
        let group = self.matched.groups[number as usize];
        let priced = self.priced(&group);
        if self.ranks_of(&group) < 2 {
            return;
        }
        let messages = match priced {
            Some(p) => self.options.algorithms.get(p.operation).map(|info| (p, *info)),
            None => self
                .options
                .others
                .map(|info| (Priced { operation: "others", ranks: self.ranks_of(&group), bytes: 0 }, info)),
        };
        if let Some((of, info)) = messages {
            let before = self.front.clone();
            self.pattern(&group, of, info);
            if !blocks {
                let ends = std::mem::replace(&mut self.front, before);
                self.requests.push_back(Request::Operations(ends, NONE));
            }
            return;
        }
        // From the root on, or with all; the others of a reduction wait for nobody.
        let from_root =
            matches!(priced.map(|p| p.operation), Some("bcast" | "scatter")) && group.root.is_some();
        if !from_root || self.is_root(&group) {
            let gate = self.gate(number);
            self.replay.gates[gate].open += 1;
            let enter = Op { tag: ENTER + gate as u32, ..Op::calculate(0) };
            self.then(enter, group.operation as u16);
        }
        if blocks {
            self.leave(number);
        } else {
            self.requests.push_back(Request::Group(number));
        }
    }

    /// The cost of a collective, when those that it waits for have entered.
    pub(super) fn leave(&mut self, number: u32) {
        let group = self.matched.groups[number as usize];
        let priced = self.priced(&group);
        let index = priced.map_or(u64::MAX, |p| {
            let list = &mut self.replay.priced;
            *self.prices.entry(p).or_insert_with(|| {
                list.push(p);
                (list.len() - 1) as u64
            })
        });
        let op = self.then(Op { tag: COLLECTIVE, ..Op::calculate(index) }, group.operation as u16);
        let to_root =
            matches!(priced.map(|p| p.operation), Some("reduce" | "gather")) && group.root.is_some();
        if !to_root || self.is_root(&group) {
            self.builder.hold();
            let gate = self.gate(number);
            let rank = self.rank + self.copy * self.calls.ranks;
            self.replay.gates[gate].exits.push((rank, op));
        }
    }

    /// A collective as messages of a pattern, whose rank 0 is the root.
    fn pattern(&mut self, group: &Group, of: Priced, info: &'static PatternInfo) {
        let make = || (info.make)(Shape::of(of.ranks, of.bytes.max(1)));
        let pattern = self.patterns.remove(&(of.operation, of.ranks, of.bytes)).unwrap_or_else(make);
        let (offset, members) = (self.copy * self.calls.ranks, self.members(group));
        let index = |rank: u32| self.index.get(&(group.communicator, rank)).copied().unwrap_or(0);
        let (own, root) = match members {
            Some(_) => (index(self.rank), group.root.map_or(0, index)),
            None => (self.rank + offset, group.root.unwrap_or(0)),
        };
        let place = (own + of.ranks - root) % of.ranks;
        let peer = |place: u32| {
            let at = ((u64::from(place) + u64::from(root)) % u64::from(of.ranks)) as u32;
            members.map_or(at, |m| m[at as usize] + offset)
        };
        let tag = |tag: u32| PATTERN_TAG | (group.communicator & 0xFFF) << 19 | (tag & 0x7_FFFF);
        for step in 0..pattern.steps(place) {
            let mut next = Front::new();
            for op in pattern.operations(place, step) {
                self.replay.largest_bytes = self.replay.largest_bytes.max(Some(op.amount));
                let op = Op { peer: peer(op.peer), tag: tag(op.tag), ..op };
                next.push((self.add(op, group.operation as u16), Require::End));
            }
            if !next.is_empty() {
                self.front = next;
            }
        }
        self.patterns.insert((of.operation, of.ranks, of.bytes), pattern);
    }
}
