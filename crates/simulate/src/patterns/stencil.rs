//! Neighbors on a grid of one to three dimensions exchange their faces.

use super::{Pattern, PatternInfo, Peer, Shape};

pub(super) const ONE: PatternInfo = PatternInfo {
    name: "stencil1d",
    aliases: &[],
    description: "ranks on a line exchange with both neighbors",
    make: |shape| Box::new(Stencil::new(shape, 1)),
};

pub(super) const TWO: PatternInfo = PatternInfo {
    name: "stencil2d",
    aliases: &["stencil"],
    description: "ranks on a grid exchange with up to 4 neighbors",
    make: |shape| Box::new(Stencil::new(shape, 2)),
};

pub(super) const THREE: PatternInfo = PatternInfo {
    name: "stencil3d",
    aliases: &[],
    description: "ranks in a cuboid exchange with up to 6 neighbors",
    make: |shape| Box::new(Stencil::new(shape, 3)),
};

struct Stencil {
    /// Ranks along each dimension; rank = x + y * extent of x + ...
    extents: Vec<u32>,
    bytes: u64,
}

impl Stencil {
    /// As even a grid as the divisors of the number of ranks allow.
    fn new(shape: Shape, dimensions: u32) -> Self {
        let mut rest = shape.ranks;
        let extent = |left: u32| {
            let wanted = f64::from(rest).powf(1.0 / f64::from(left)).round() as u32;
            let extent = (1..=wanted).rev().find(|e| rest.is_multiple_of(*e)).unwrap_or(1);
            rest /= extent;
            extent
        };
        Self { extents: (1..=dimensions).rev().map(extent).collect(), bytes: shape.bytes }
    }

    /// Lane 2d goes up along dimension d, lane 2d + 1 down. The tag is the direction of the message.
    fn neighbor(&self, rank: u32, lane: u32, tag: u32) -> Option<Peer> {
        let dimension = (lane / 2) as usize;
        let (stride, extent) = (self.extents[..dimension].iter().product::<u32>(), self.extents[dimension]);
        let (at, up) = (rank / stride % extent, lane.is_multiple_of(2));
        let peer = if up { rank + stride } else { rank.checked_sub(stride)? };
        (if up { at + 1 < extent } else { at > 0 }).then_some(Peer { rank: peer, bytes: self.bytes, tag })
    }
}

impl Pattern for Stencil {
    fn lanes(&self) -> u32 {
        2 * self.extents.len() as u32
    }

    fn send(&self, rank: u32, _: u32, lane: u32) -> Option<Peer> {
        self.neighbor(rank, lane, lane)
    }

    fn receive(&self, rank: u32, _: u32, lane: u32) -> Option<Peer> {
        self.neighbor(rank, lane, lane ^ 1)
    }

    fn messages(&self) -> u64 {
        let ranks: u64 = self.extents.iter().map(|e| u64::from(*e)).product();
        self.extents.iter().map(|e| 2 * (ranks - ranks / u64::from(*e))).sum()
    }
}
