//! A broadcast along a chain of ranks, in segments.

use super::{Pattern, PatternInfo, Peer};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "pipelined",
    aliases: &["chain"],
    description: "broadcast along the chain of ranks in segments, each forwarded on arrival",
    make: |shape| {
        let segment = shape.segment_bytes.clamp(1, shape.bytes.max(1));
        let segments = shape.bytes.max(1).div_ceil(segment).min(u64::from(u32::MAX / 4)) as u32;
        Box::new(Pipelined { ranks: shape.ranks, bytes: shape.bytes, segment, segments })
    },
};

struct Pipelined {
    ranks: u32,
    bytes: u64,
    segment: u64,
    segments: u32,
}

impl Pipelined {
    /// Size of a segment; the last one may be smaller.
    fn bytes(&self, segment: u32) -> u64 {
        self.segment.min(self.bytes - (u64::from(segment) * self.segment).min(self.bytes))
    }
}

/// In step k a rank receives segment k and sends on segment k - 1.
impl Pattern for Pipelined {
    fn steps(&self, _: u32) -> u32 {
        self.segments + 1
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        let segment = step.checked_sub(1)?;
        (rank + 1 < self.ranks).then(|| Peer { rank: rank + 1, bytes: self.bytes(segment), tag: segment })
    }

    fn receive(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        (rank > 0 && step < self.segments).then(|| Peer {
            rank: rank - 1,
            bytes: self.bytes(step),
            tag: step,
        })
    }

    fn messages(&self) -> u64 {
        (u64::from(self.ranks) - 1) * u64::from(self.segments)
    }
}
