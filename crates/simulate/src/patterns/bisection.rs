//! Random pairs: all ranks exchange with one partner.

use machmeter_stats::random::Random;

use super::{Pattern, PatternInfo, Peer};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "bisection",
    aliases: &["random-bisection"],
    description: "random pairs of ranks exchange; an unpaired rank waits",
    make: |shape| {
        let mut order: Vec<u32> = (0..shape.ranks).collect();
        Random::new(shape.seed).shuffle(&mut order);
        let mut partner = vec![u32::MAX; order.len()];
        for pair in order.chunks_exact(2) {
            partner[pair[0] as usize] = pair[1];
            partner[pair[1] as usize] = pair[0];
        }
        Box::new(Bisection { partner, bytes: shape.bytes })
    },
};

struct Bisection {
    /// Partner of each rank; `u32::MAX` for none.
    partner: Vec<u32>,
    bytes: u64,
}

impl Pattern for Bisection {
    fn send(&self, rank: u32, _: u32, _: u32) -> Option<Peer> {
        let partner = self.partner[rank as usize];
        (partner != u32::MAX).then_some(Peer { rank: partner, bytes: self.bytes, tag: 0 })
    }

    fn receive(&self, rank: u32, step: u32, lane: u32) -> Option<Peer> {
        self.send(rank, step, lane)
    }

    fn messages(&self) -> u64 {
        (self.partner.len() / 2 * 2) as u64
    }
}
