//! Schedules in the language GOAL (Hoefler, Siebert and Lumsdaine 2009): operations of each rank and what they require.

mod binary;
mod build;
mod program;
mod smpi;
#[cfg(test)]
mod tests;
mod text;
mod write;

pub use binary::read_binary;
pub use build::{Builder, Require};
pub(crate) use program::Gate;
pub use program::Schedule;
pub use smpi::write_smpi;
pub use text::read_text;
pub use write::{write_binary, write_text};

use crate::program::{Op, Verb};

/// First bytes of a binary file, little endian.
const COOKIE: u64 = 4223;
/// The same after a run of the reference that used the file up.
const USED_COOKIE: u64 = 2342;

/// An operation as the file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    /// A calculation has its length in ns.
    pub(crate) op: Op,
    pub(crate) requires: u32,
    /// First of the edges to operations that require its end, among those of the rank.
    pub(crate) end_edges: u32,
    /// First of the edges to operations that require its start; they follow.
    pub(crate) start_edges: u32,
    /// Behind them.
    pub(crate) last_edge: u32,
}

/// A schedule: an acyclic graph of operations for each rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Goal {
    max_cpu: u8,
    max_nic: u8,
    /// First operation of each rank, and the number of all; empty without ranks.
    first_node: Vec<usize>,
    nodes: Vec<Node>,
    /// First edge of each rank, and the number of all.
    first_edge: Vec<usize>,
    /// Operations of the same rank, by number.
    edges: Vec<u32>,
    /// Whether a receive of the rank takes any sender or tag.
    takes_any: Vec<bool>,
}

impl Goal {
    pub fn ranks(&self) -> u32 {
        self.takes_any.len() as u32
    }

    /// Operations of all ranks.
    pub fn operations(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// Messages of all ranks.
    pub fn messages(&self) -> u64 {
        self.nodes.iter().filter(|n| n.op.verb == Verb::Send).count() as u64
    }

    /// Gives calculations another length.
    pub(crate) fn map_calculations(&mut self, length: impl Fn(u64) -> u64) {
        for op in self.nodes.iter_mut().map(|n| &mut n.op).filter(|op| op.verb == Verb::Calculate) {
            op.amount = length(op.amount);
        }
    }

    pub(crate) fn first_node(&self, rank: u32) -> usize {
        self.first_node[rank as usize]
    }

    pub(crate) fn nodes(&self, rank: u32) -> &[Node] {
        &self.nodes[self.first_node[rank as usize]..self.first_node[rank as usize + 1]]
    }

    pub(crate) fn edges(&self, rank: u32) -> &[u32] {
        &self.edges[self.first_edge[rank as usize]..self.first_edge[rank as usize + 1]]
    }
}

/// Reads a schedule, binary or text by its first bytes, or says what is wrong first, and where: in a text line and column (bytes) from 1,
/// in a binary file the byte from 0.
pub fn read(bytes: &[u8]) -> Result<Goal, String> {
    let cookie = bytes.first_chunk().map(|c| u64::from_le_bytes(*c));
    if matches!(cookie, Some(COOKIE | USED_COOKIE)) { read_binary(bytes) } else { read_text(bytes) }
}
