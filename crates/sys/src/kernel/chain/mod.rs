//! Chains of pointers: each load gives the address of the next, so that time per load is latency, whatever the processor
//! does at a time. A chain is one cycle over its nodes (Sattolo 1986); several chains over the same memory show how many
//! misses the processor keeps under way.

mod link;
#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering;

use link::Nodes;

use super::{Code, named, unfit};
use crate::Refused;
use crate::pages::Extent;

/// Loads of one chain in a turn of [`Chain::chase`].
pub const LOADS_PER_TURN: u64 = 16;

/// Numbers of parallel chains that there is a kernel for.
pub const WAYS: &[usize] = &[1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24];

/// More than any number in [`WAYS`].
const MOST_WAYS: usize = 24;

/// Smallest cache line of the machines supported, bytes: a pointer moves inside such a line.
const LINE_BYTES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// All nodes in random order: caches and address translation together.
    Global,
    /// In random order inside a group of this size, groups in random order: translation hardly counts (it is amortized
    /// over the group), and prefetchers that work inside a page may help. multichase calls it TLB locality.
    PageLocal { page_bytes: usize },
    /// One line of each page, another from page to page so that all sets take part: translation alone.
    OnePerPage { page_bytes: usize },
    /// Node after node.
    Sequential,
    /// Blocks in random order; in each the first word, then the word at the offset, which hits if both share a line.
    Second { block_bytes: usize, offset_bytes: usize },
    /// The first words of lines this far apart: they compete for one set if that is cache size by ways.
    Conflict { step_bytes: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainSpec {
    /// Memory visited, bytes, from the start of the extent. A rest smaller than a node is left out.
    pub working_set_bytes: usize,
    /// Distance of neighboring nodes, bytes. [`Order::OnePerPage`] takes it as the distance of the lines it chooses from;
    /// [`Order::Second`] and [`Order::Conflict`] bring their own.
    pub stride_bytes: usize,
    pub order: Order,
    /// Seed of the order and of the place inside each line.
    pub seed: u64,
}

/// One chain inside an extent, or several of which no two share a node. As long as it is used, nobody else writes to the
/// extent, nor builds a chain there: its contents are addresses that will be followed.
#[derive(Debug)]
pub struct Chain<'a> {
    nodes: Nodes<'a>,
    ways: usize,
    code: Code,
    /// Where each chain stands: addresses of nodes.
    at: [u64; MOST_WAYS],
}

impl<'a> Chain<'a> {
    /// Writes one chain, in 10 to 20 ns a node in caches, up to 100 beyond. Errors: one line: sizes or distances
    /// that do not fit each other or the extent, or an extent that is not aligned.
    pub fn build(extent: Extent<'a>, spec: &ChainSpec) -> Result<Self, Refused> {
        Self::parallel(extent, spec, 1)
    }

    /// The same chain for a kernel that writes each pointer back to where it was: every line is written.
    pub fn build_written(extent: Extent<'a>, spec: &ChainSpec) -> Result<Self, Refused> {
        Self::with(extent, spec, 1, "chase_store.1")
    }

    /// Writes `ways` (see [`WAYS`]) chains of equal length (give or take one node; a page for [`Order::PageLocal`]).
    /// Errors: as [`Chain::build`]; a number of chains without a kernel, or more than there are nodes or pages.
    pub fn parallel(extent: Extent<'a>, spec: &ChainSpec, ways: usize) -> Result<Self, Refused> {
        Self::with(extent, spec, ways, &format!("chase.{ways}"))
    }

    fn with(extent: Extent<'a>, spec: &ChainSpec, ways: usize, kernel: &str) -> Result<Self, Refused> {
        let wrong = |why: String| unfit("chase", &why);
        let kernel =
            named(kernel).ok_or_else(|| wrong(format!("{ways} chains; there are kernels for {WAYS:?}")))?;
        let nodes = Nodes::new(extent, *spec).map_err(wrong)?;
        let mut at = [0; MOST_WAYS];
        nodes.link(&mut at[..ways]).map_err(wrong)?;
        Ok(Self { nodes, ways, code: kernel.code, at })
    }

    /// Nodes of all chains: of one, the loads until it comes back to where it was.
    pub fn nodes(&self) -> usize {
        self.nodes.count()
    }

    /// [`LOADS_PER_TURN`] loads per turn and chain, from where the last call ended.
    #[inline]
    pub fn chase(&mut self, turns: u64) {
        if turns == 0 {
            return;
        }
        let none = std::ptr::null_mut();
        // SAFETY: the kernel loads and stores `ways` addresses at `at`, which holds at least as many, and follows them through
        // words that `with` linked into cycles and that nobody else writes to; one that stores writes back what it loaded.
        unsafe { (self.code)(1, turns, self.at.as_mut_ptr().cast(), none, none, 0) };
    }

    /// Whether following the chains visits every node once, each coming back; takes a load and a check per node.
    pub fn are_cycles(&self) -> bool {
        let words = self.nodes.words();
        let mut seen = vec![false; words.len()];
        let mut visited = 0;
        for &start in &self.at[..self.ways] {
            let mut at = start;
            loop {
                let Some(word) = self.nodes.word_at(at) else { return false };
                if std::mem::replace(&mut seen[word], true) {
                    return false;
                }
                visited += 1;
                at = words[word].load(Ordering::Relaxed);
                if at == start {
                    break;
                }
            }
        }
        visited == self.nodes.count()
    }
}
