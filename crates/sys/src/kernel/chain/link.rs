//! Where the nodes of a chain lie, and how they are linked. Links are made in place: a shuffle swaps the pointers
//! themselves, so that a chain through memory of any size needs no second table of that size.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{ChainSpec, LINE_BYTES, Order};
use crate::pages::{Extent, HUGE_PAGE_BYTES, mix};

const POINTER_BYTES: usize = size_of::<u64>();

/// Swaps of a shuffle whose memory is fetched at a time: about as many misses as processors keep under way.
const AHEAD: usize = 32;

#[derive(Debug)]
pub(super) struct Nodes<'a> {
    words: &'a [AtomicU64],
    base: u64,
    spec: ChainSpec,
    count: usize,
}

impl<'a> Nodes<'a> {
    /// Checks the specification against the extent. The error is what is wrong, in one line.
    pub(super) fn new(extent: Extent<'a>, spec: ChainSpec) -> Result<Self, String> {
        let ChainSpec { working_set_bytes, stride_bytes, order, .. } = spec;
        let has = extent.bytes();
        if working_set_bytes > has {
            return Err(format!("a working set of {working_set_bytes} bytes in an extent of {has} bytes"));
        }
        let (node_bytes, nodes_each, align_bytes) = match order {
            Order::Global | Order::Sequential => (length("a stride", stride_bytes)?, 1, LINE_BYTES),
            Order::PageLocal { page_bytes } => {
                parts(page_bytes, stride_bytes)?;
                (stride_bytes, 1, page_bytes)
            }
            Order::OnePerPage { page_bytes } => {
                parts(page_bytes, stride_bytes)?;
                (page_bytes, 1, page_bytes)
            }
            Order::Second { block_bytes, offset_bytes } => {
                length("a block", block_bytes)?;
                if length("an offset", offset_bytes)? > block_bytes - POINTER_BYTES {
                    return Err(format!(
                        "an offset of {offset_bytes} bytes leaves the block of {block_bytes}"
                    ));
                }
                (block_bytes, 2, LINE_BYTES)
            }
            Order::Conflict { step_bytes } => (length("a step", step_bytes)?, 1, LINE_BYTES),
        };
        let base = extent.address() as u64;
        let align_bytes = align_bytes.min(HUGE_PAGE_BYTES);
        if !base.is_multiple_of(align_bytes as u64) {
            return Err(format!("the extent is not aligned to {align_bytes} bytes"));
        }
        let count = working_set_bytes / node_bytes * nodes_each;
        if count == 0 {
            return Err(format!("a working set of {working_set_bytes} bytes holds no node of {node_bytes}"));
        }
        if u32::try_from(count).is_err() {
            return Err(format!("{count} nodes; {} are the most", u32::MAX));
        }
        Ok(Self { words: extent.atomics(), base, spec, count })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn words(&self) -> &'a [AtomicU64] {
        self.words
    }

    /// The word at an address, if it is one of the extent's.
    pub(super) fn word_at(&self, address: u64) -> Option<usize> {
        let offset = address.checked_sub(self.base)?;
        let word = usize::try_from(offset / POINTER_BYTES as u64).ok()?;
        (offset.is_multiple_of(POINTER_BYTES as u64) && word < self.words.len()).then_some(word)
    }

    /// Links the nodes into as many cycles as `starts` has room for, and puts a node of each there. The error is what is
    /// wrong.
    pub(super) fn link(&self, starts: &mut [u64]) -> Result<(), String> {
        let ways = starts.len();
        let (units, unit) = match self.spec.order {
            Order::PageLocal { page_bytes } => {
                (self.count.div_ceil(page_bytes / self.spec.stride_bytes), "pages")
            }
            Order::Second { .. } => (self.count / 2, "blocks"),
            _ => (self.count, "nodes"),
        };
        if units < ways {
            return Err(format!("{ways} chains through {units} {unit}"));
        }
        let mut random = Random::new(self.spec.seed);
        match self.spec.order {
            Order::Global | Order::OnePerPage { .. } | Order::Conflict { .. } => {
                self.shuffle(starts, 1, &mut random);
            }
            Order::Second { .. } => {
                self.shuffle(starts, 2, &mut random);
                for first in (0..self.count).step_by(2) {
                    let next = self.word(first).swap(self.address(first + 1), Ordering::Relaxed);
                    self.word(first + 1).store(next, Ordering::Relaxed);
                }
            }
            Order::Sequential => {
                for (way, start) in starts.iter_mut().enumerate() {
                    *start = self.cycle(way * units / ways..(way + 1) * units / ways);
                }
            }
            Order::PageLocal { page_bytes } => {
                let nodes_per_page = page_bytes / self.spec.stride_bytes;
                let mut pages: Vec<u32> = (0..units as u32).collect();
                random.shuffle(&mut pages);
                for (way, start) in starts.iter_mut().enumerate() {
                    let part = &pages[way * units / ways..(way + 1) * units / ways];
                    *start = self.cycle(part.iter().flat_map(|&page| {
                        let first = page as usize * nodes_per_page;
                        let mut inside: Vec<u32> =
                            (0..nodes_per_page.min(self.count - first) as u32).collect();
                        random.shuffle(&mut inside);
                        inside.into_iter().map(move |node| first + node as usize)
                    }));
                }
            }
        }
        Ok(())
    }

    /// Links nodes in this order, the last one to the first, and gives the first one's address (0 if there is none).
    fn cycle(&self, mut nodes: impl Iterator<Item = usize>) -> u64 {
        let Some(first) = nodes.next() else { return 0 };
        let last = nodes.fold(first, |last, node| {
            self.word(last).store(self.address(node), Ordering::Relaxed);
            node
        });
        self.word(last).store(self.address(first), Ordering::Relaxed);
        self.address(first)
    }

    /// Random cycles (Sattolo) over every `step`-th node, dealt out to the ways in turn. Partners of a swap are chosen some
    /// time ahead and read all at once, so that a processor waits for memory once, not each time.
    fn shuffle(&self, starts: &mut [u64], step: usize, random: &mut Random) {
        let ways = starts.len();
        let units = self.count / step;
        for unit in 0..units {
            self.word(unit * step).store(self.address(unit * step), Ordering::Relaxed);
        }
        let mut partners = [&self.words[0]; AHEAD];
        for (way, start) in starts.iter_mut().enumerate() {
            let node = |member: usize| (way + member * ways) * step;
            *start = self.address(node(0));
            let mut last = (units - way).div_ceil(ways) - 1;
            while last > 0 {
                let batch = &mut partners[..last.min(AHEAD)];
                for (partner, before) in batch.iter_mut().zip(0..) {
                    *partner = self.word(node(random.below(last - before)));
                }
                black_box(batch.iter().fold(0, |all, word| all ^ word.load(Ordering::Relaxed)));
                for b in batch {
                    let a = self.word(node(last));
                    let kept = a.load(Ordering::Relaxed);
                    a.store(b.load(Ordering::Relaxed), Ordering::Relaxed);
                    b.store(kept, Ordering::Relaxed);
                    last -= 1;
                }
            }
        }
    }

    #[inline]
    fn offset(&self, node: usize) -> usize {
        let stride_bytes = self.spec.stride_bytes;
        match self.spec.order {
            Order::Global | Order::PageLocal { .. } | Order::Sequential => {
                node * stride_bytes + self.inside_line(node)
            }
            Order::OnePerPage { page_bytes } => {
                let lines = page_bytes / stride_bytes;
                let line = (node + (self.spec.seed % lines as u64) as usize) % lines;
                node * page_bytes + line * stride_bytes + self.inside_line(node)
            }
            Order::Second { block_bytes, offset_bytes } => node / 2 * block_bytes + node % 2 * offset_bytes,
            Order::Conflict { step_bytes } => node * step_bytes,
        }
    }

    /// A place inside the node's line that differs from node to node, so that no hardware guesses pointers from where they
    /// lie (the mixer of multichase).
    #[inline]
    fn inside_line(&self, node: usize) -> usize {
        let places = (self.spec.stride_bytes.min(LINE_BYTES) / POINTER_BYTES) as u64;
        let random = mix(!self.spec.seed, node as u64) >> 32;
        ((random * places) >> 32) as usize * POINTER_BYTES
    }

    #[inline]
    fn word(&self, node: usize) -> &'a AtomicU64 {
        &self.words[self.offset(node) / POINTER_BYTES]
    }

    #[inline]
    fn address(&self, node: usize) -> u64 {
        self.base + self.offset(node) as u64
    }
}

struct Random {
    seed: u64,
    drawn: u64,
}

impl Random {
    fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// Below `bound`, which is at most 2^32; the bias of the multiplication is below 2^-32 per value.
    fn below(&mut self, bound: usize) -> usize {
        let random = mix(self.seed, self.drawn);
        self.drawn += 1;
        ((u128::from(random) * bound as u128) >> 64) as usize
    }

    fn shuffle(&mut self, list: &mut [u32]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }
}

/// A length that pointers can be placed by.
fn length(what: &str, bytes: usize) -> Result<usize, String> {
    if bytes == 0 || !bytes.is_multiple_of(POINTER_BYTES) {
        return Err(format!("{what} of {bytes} bytes is not a multiple of {POINTER_BYTES}"));
    }
    Ok(bytes)
}

fn parts(page_bytes: usize, stride_bytes: usize) -> Result<(), String> {
    length("a stride", stride_bytes)?;
    if page_bytes == 0 || !page_bytes.is_multiple_of(stride_bytes) || !page_bytes.is_power_of_two() {
        return Err(format!(
            "a page of {page_bytes} bytes is not a power of two that is a multiple of the stride of {stride_bytes}"
        ));
    }
    Ok(())
}
