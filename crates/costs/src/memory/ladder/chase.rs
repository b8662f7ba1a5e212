//! What is timed: chains of loads, and the additions that tell the clock of the core.

use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::sampling::{Bench, Subject};
use machmeter_sys::kernel::chain::{Chain, ChainSpec, Chains, LOADS_PER_TURN, Order};
use machmeter_sys::kernel::{Ready, named};
use machmeter_sys::pages::{Backing, Extent};

use super::NAME;

/// Base page, bytes: groups of [`Order::PageLocal`] and steps of [`Order::OnePerPage`], whatever backs the memory.
pub(in crate::memory) const PAGE_BYTES: usize = 4_096;
/// Distance of neighbouring nodes where the distance is not the question, bytes.
pub(in crate::memory) const STRIDE_BYTES: usize = 64;
/// Blocks in which a second access looks for the end of the line, bytes.
pub(super) const BLOCK_BYTES: usize = 512;

/// Orders by name, as in rows and metrics.
pub(in crate::memory) const GLOBAL: &str = "global";
/// See [`GLOBAL`].
pub(super) const PAGE_LOCAL: &str = "page_local";
/// See [`GLOBAL`].
pub(super) const ONE_PER_PAGE: &str = "one_per_page";
/// See [`GLOBAL`]. Node after node upwards, a stride apart.
pub(super) const STRIDED: &str = "strided";
pub(super) const SMALL: &str = "small";
/// See [`SMALL`].
pub(super) const HUGE: &str = "huge";

#[derive(Debug, Clone, Copy)]
pub(in crate::memory) struct Ground<'a> {
    /// The memory, every page of it touched.
    pub(in crate::memory) extent: Extent<'a>,
    pub(in crate::memory) backing: Backing,
}

impl Ground<'_> {
    pub(super) fn pages(&self) -> &'static str {
        if self.backing == Backing::Huge { HUGE } else { SMALL }
    }
}

/// Chains that exist only during a visit: the memory is used by other rows in between.
struct Chase<'a> {
    extent: Extent<'a>,
    spec: ChainSpec,
    ways: usize,
    one: Option<Chain<'a>>,
    many: Option<Chains<'a>>,
}

impl Subject for Chase<'_> {
    fn prepare(&mut self) -> Result<(), String> {
        // Another order each time, so that no single layout becomes part of the result.
        self.spec.seed =
            self.spec.seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        if self.ways == 1 {
            self.one = Some(Chain::build(self.extent, &self.spec).map_err(|e| e.to_string())?);
        } else {
            self.many = Some(Chains::build(self.extent, &self.spec, self.ways).map_err(|e| e.to_string())?);
        }
        // A walk that goes on has its page tables in the caches; building the chain has driven them out.
        let tables = self.spec.working_set_bytes / PAGE_BYTES / ENTRIES_PER_LINE;
        self.run(TABLE_WALKS * tables as u64 / LOADS_PER_TURN);
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        match (&mut self.one, &mut self.many) {
            (Some(chain), _) => chain.chase(turns),
            (None, Some(chains)) => chains.chase(turns),
            (None, None) => return false,
        }
        true
    }

    fn leave(&mut self) {
        (self.one, self.many) = (None, None);
    }
}

/// Entries of a page table in a line of the cache.
const ENTRIES_PER_LINE: usize = 8;
/// Loads per line of the page tables before a visit: enough to meet nearly all of them.
const TABLE_WALKS: u64 = 4;

fn bench(row: Row, extent: Extent<'_>, spec: ChainSpec, ways: usize) -> Bench<'_> {
    let row = row.per_turn((LOADS_PER_TURN * ways as u64) as f64);
    Bench::new(row, Chase { extent, spec, ways, one: None, many: None })
}

fn order(name: &str) -> Order {
    match name {
        PAGE_LOCAL => Order::PageLocal { page_bytes: PAGE_BYTES },
        ONE_PER_PAGE => Order::OnePerPage { page_bytes: PAGE_BYTES },
        STRIDED => Order::Sequential,
        _ => Order::Global,
    }
}

/// A dependent chase in one of the named orders.
pub(in crate::memory) fn chase<'a>(
    ground: Ground<'a>,
    order_name: &str,
    working_set_bytes: usize,
    stride_bytes: usize,
    seed: u64,
) -> Bench<'a> {
    let row = Row::new(NAME, "chase", Kind::Latency)
        .with("order", order_name)
        .with("pages", ground.pages())
        .with("working_set_bytes", working_set_bytes)
        .with("stride_bytes", stride_bytes);
    let spec = ChainSpec { working_set_bytes, stride_bytes, order: order(order_name), seed };
    bench(row, ground.extent, spec, 1)
}

/// Pairs of accesses `offset_bytes` apart in blocks of [`BLOCK_BYTES`].
pub(super) fn second(
    ground: Ground<'_>,
    working_set_bytes: usize,
    offset_bytes: usize,
    seed: u64,
) -> Bench<'_> {
    let row = Row::new(NAME, "second", Kind::Latency)
        .with("offset_bytes", offset_bytes)
        .with("working_set_bytes", working_set_bytes);
    let order = Order::Second { block_bytes: BLOCK_BYTES, offset_bytes };
    bench(row, ground.extent, ChainSpec { working_set_bytes, stride_bytes: STRIDE_BYTES, order, seed }, 1)
}

/// Lines `step_bytes` apart.
pub(super) fn conflict(ground: Ground<'_>, lines: usize, step_bytes: usize, seed: u64) -> Bench<'_> {
    let row = Row::new(NAME, "conflict", Kind::Latency).with("lines", lines).with("step_bytes", step_bytes);
    let order = Order::Conflict { step_bytes };
    let spec = ChainSpec { working_set_bytes: lines * step_bytes, stride_bytes: STRIDE_BYTES, order, seed };
    bench(row, ground.extent, spec, 1)
}

/// Several chains at a time: how many misses the processor keeps under way.
pub(super) fn parallel(ground: Ground<'_>, chains: usize, working_set_bytes: usize, seed: u64) -> Bench<'_> {
    let row = Row::new(NAME, "parallel", Kind::Throughput)
        .with("chains", chains)
        .with("working_set_bytes", working_set_bytes);
    let spec = ChainSpec { working_set_bytes, stride_bytes: STRIDE_BYTES, order: Order::Global, seed };
    bench(row, ground.extent, spec, chains)
}

struct Adds<'a>(Ready<'a>);

impl Subject for Adds<'_> {
    fn run(&mut self, turns: u64) -> bool {
        std::hint::black_box(self.0.run(turns));
        true
    }
}

/// Turns of the kernel per turn of the row: a mispredicted end of the loop is lost among them.
const ADD_TURNS: u64 = 1_024;
/// Additions per turn of the kernel.
const ADDS: u64 = 16;

/// Dependent additions of one cycle each: the clock of the core.
pub(super) fn adds(extent: Extent<'_>) -> Result<Bench<'_>, String> {
    let kernel = named("adds.16").ok_or("no kernel adds.16")?;
    let ready = kernel.ready(ADD_TURNS, [extent; 3], 0).map_err(|e| e.to_string())?;
    let row = Row::new(NAME, "adds", Kind::Latency).per_turn((ADD_TURNS * ADDS) as f64);
    Ok(Bench::new(row, Adds(ready)))
}
