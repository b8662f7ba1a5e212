//! What is timed: chains of loads, and the additions that tell the clock of the core.

use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::sampling::{Bench, Subject};
use machmeter_sys::kernel::chain::{Chain, ChainSpec, LOADS_PER_TURN, Order};
use machmeter_sys::kernel::named;
use machmeter_sys::pages::{Backing, Extent};

use super::NAME;
use machmeter_loops::ops::passes::Passes;

/// Base page, bytes: groups of [`Order::PageLocal`] and steps of [`Order::OnePerPage`], whatever backs the memory.
pub(in crate::memory) const PAGE_BYTES: usize = 4_096;
/// Distance of neighboring nodes where the distance is not the question, bytes.
pub(in crate::memory) const STRIDE_BYTES: usize = 64;
/// Blocks in which a second access looks for the end of the line, bytes.
pub(super) const BLOCK_BYTES: usize = 512;

/// Orders by name, as in rows and metrics.
pub(in crate::memory) const GLOBAL: &str = "global";
pub(super) const PAGE_LOCAL: &str = "page_local";
pub(super) const ONE_PER_PAGE: &str = "one_per_page";
/// Node after node upwards, a stride apart.
pub(super) const STRIDED: &str = "strided";
pub(super) const SMALL: &str = "small";
pub(super) const HUGE: &str = "huge";

#[derive(Debug, Clone, Copy)]
pub(in crate::memory) struct Ground<'a> {
    /// The memory, every page of it touched.
    pub(in crate::memory) extent: Extent<'a>,
    /// [`SMALL`] or [`HUGE`].
    pub(in crate::memory) pages: &'static str,
}

/// What memory is mapped with, as in rows and metrics.
pub(in crate::memory) fn pages_name(backing: Backing) -> &'static str {
    if backing == Backing::Huge { HUGE } else { SMALL }
}

/// Chains that exist only during a visit: the memory is used by other rows in between.
struct Chase<'a> {
    extent: Extent<'a>,
    spec: ChainSpec,
    ways: usize,
    chains: Option<Chain<'a>>,
}

impl Subject for Chase<'_> {
    fn prepare(&mut self) -> Result<(), String> {
        // Another order each time, so that no single layout becomes part of the result.
        self.spec.seed =
            self.spec.seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.chains = Some(Chain::parallel(self.extent, &self.spec, self.ways).map_err(|e| e.to_string())?);
        // A walk that goes on has its page tables in the caches; building the chain has driven them out.
        let tables = self.spec.working_set_bytes / PAGE_BYTES / ENTRIES_PER_LINE;
        self.run(TABLE_WALKS * tables as u64 / LOADS_PER_TURN);
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        self.chains.as_mut().map(|chains| chains.chase(turns)).is_some()
    }

    fn leave(&mut self) {
        self.chains = None;
    }
}

/// Entries of a page table in a line of the cache.
const ENTRIES_PER_LINE: usize = 8;
/// Loads per line of the page tables before a visit: enough to meet nearly all of them.
const TABLE_WALKS: u64 = 4;

fn bench(row: Row, extent: Extent<'_>, spec: ChainSpec, ways: usize) -> Bench<'_> {
    let row = row.of_batches().per_turn((LOADS_PER_TURN * ways as u64) as f64);
    Bench::new(row, Chase { extent, spec, ways, chains: None })
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
        .with("pages", ground.pages)
        .with("working_set_bytes", working_set_bytes)
        .with("stride_bytes", stride_bytes);
    let spec = ChainSpec { working_set_bytes, stride_bytes, order: order_of(order_name), seed };
    bench(row, ground.extent, spec, 1)
}

fn order_of(name: &str) -> Order {
    match name {
        PAGE_LOCAL => Order::PageLocal { page_bytes: PAGE_BYTES },
        ONE_PER_PAGE => Order::OnePerPage { page_bytes: PAGE_BYTES },
        STRIDED => Order::Sequential,
        _ => Order::Global,
    }
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

pub(super) fn conflict(ground: Ground<'_>, lines: usize, step_bytes: usize, seed: u64) -> Bench<'_> {
    let row = Row::new(NAME, "conflict", Kind::Latency).with("lines", lines).with("step_bytes", step_bytes);
    let (order, working_set_bytes) = (Order::Conflict { step_bytes }, lines * step_bytes);
    bench(row, ground.extent, ChainSpec { working_set_bytes, stride_bytes: STRIDE_BYTES, order, seed }, 1)
}

/// Several chains at a time: how many misses the processor keeps under way.
pub(super) fn parallel(ground: Ground<'_>, chains: usize, working_set_bytes: usize, seed: u64) -> Bench<'_> {
    let row = Row::new(NAME, "parallel", Kind::Throughput)
        .with("chains", chains)
        .with("working_set_bytes", working_set_bytes);
    let spec = ChainSpec { working_set_bytes, stride_bytes: STRIDE_BYTES, order: Order::Global, seed };
    bench(row, ground.extent, spec, chains)
}

/// Operation of their rows.
pub(super) const ADDITIONS: &str = "adds";
/// Turns of the kernel per turn of the row: a mispredicted end of the loop is lost among them.
const ADD_TURNS: u64 = 1_024;
/// Additions per turn of the kernel.
const ADDS: u64 = 16;

/// Dependent additions of one cycle each: the clock of the core, as it is while `beside` is visited.
pub(super) fn adds(beside: &Row) -> Option<Bench<'static>> {
    let ready = named("adds.16")?.of_registers(ADD_TURNS)?;
    let mut row = Row::new(NAME, ADDITIONS, Kind::Latency).core_clock().per_turn((ADD_TURNS * ADDS) as f64);
    row.params = beside.params.clone();
    Some(Bench::new(row, Passes(ready)))
}

pub(super) mod selftest {
    use machmeter_engine::cost::{Cost, Rows};
    use machmeter_engine::experiment::{CellList, Enough, sample};
    use machmeter_engine::sampling::Pace;
    use machmeter_engine::selftest::machine::{Busy, Machine, Steal};
    use machmeter_engine::selftest::{Options, SelfCheck, Shown, State, check};
    use machmeter_sys::kernel::chain::{Chain, ChainSpec};
    use machmeter_sys::pages::{Backing, Pages};
    use machmeter_sys::thread::monotonic_ns;

    use super::{
        GLOBAL, Ground, ONE_PER_PAGE, PAGE_LOCAL, STRIDE_BYTES, STRIDED, chase, order_of, pages_name,
    };
    use crate::memory::reported::ReportedCaches;

    pub(in crate::memory::ladder) fn chains(_: &Machine, options: &Options) -> Vec<SelfCheck> {
        let (what, bar) =
            ("chains in every order, followed node by node", "every node once, and back to the first");
        let orders = [GLOBAL, PAGE_LOCAL, ONE_PER_PAGE, STRIDED].map(order_of);
        let sizes = [4 << 10, 48 << 10, 1 << 20, 4 << 20];
        let shown = Pages::new(4 << 20, Backing::Unasked).map_err(|e| e.to_string()).map(|pages| {
            let (mut built, mut nodes, mut broken) = (0, 0, Vec::new());
            for (order, working_set_bytes) in orders.into_iter().flat_map(|order| sizes.map(|s| (order, s))) {
                let (stride_bytes, seed) = (STRIDE_BYTES, options.seed);
                let spec = ChainSpec { working_set_bytes, stride_bytes, order, seed };
                // One page holds no four chains of pages.
                let parallel = |ways| Chain::parallel(pages.extent(), &spec, ways).ok();
                for chains in [1, 4].into_iter().filter_map(parallel) {
                    built += 1;
                    nodes += chains.nodes();
                    if !chains.are_cycles() {
                        broken.push(format!("{spec:?}"));
                    }
                }
            }
            let truth = format!("{built} sets of chains over {nodes} nodes");
            let found = match broken.first() {
                None => "all are cycles".to_owned(),
                Some(first) => format!("{} are not: {first}", broken.len()),
            };
            (truth, found, State::of(broken.is_empty() && built >= 24))
        });
        vec![check("chains.cycle", what, bar, shown)]
    }

    const NEIGHBORS: usize = 8;
    /// Most that they may move the median of a cache's latency.
    const MOVED: f64 = 0.05;
    /// Share of samples beside a stranger on the core from which on a miss shows nothing: he empties caches, too.
    const STRANGER: f64 = 0.1;
    const TURNS: usize = 3;

    pub(in crate::memory::ladder) fn caches(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
        let what =
            format!("{NEIGHBORS} threads that want the CPUs, beside dependent loads on CPU {}", machine.cpu);
        let bar = "their medians differ by less than 5 %";
        let slice_ns = if options.quick { 500_000_000 } else { 2_000_000_000 };
        let second_bytes = ReportedCaches::of(&machine.topology, machine.cpu).level_bytes(2);
        let second_bytes = if second_bytes == 0 { 256 << 10 } else { second_bytes / 2 };
        let sizes = [("busy.l1", 16 << 10), ("busy.l2", second_bytes.min(256 << 10))];
        let steal = Steal::watch();
        let measured = alternate(machine, &sizes.map(|s| s.1), slice_ns, options.seed);
        let stranger =
            measured.as_ref().ok().and_then(|m| m.1).filter(|share| *share > STRANGER).map(|share| {
                format!("the core was shared in {:.0} % of the samples without neighbors", share * 100.0)
            });
        let disturbed = steal.told(&machine.here()).or(stranger);
        let known = |cost: &Cost| match cost {
            Cost::Known(k) => Ok(k.clone()),
            Cost::Unknown { why } => Err(why.clone()),
            Cost::Below { .. } => Err("below the resolution of the clock".to_owned()),
        };
        let shown = |i: usize| -> Shown {
            let [q, b] = &measured.as_ref().map_err(Clone::clone)?.0[i];
            let (q, b) = (known(q)?, known(b)?);
            let moved = (b.value_ns / q.value_ns - 1.0).abs();
            let kib = sizes[i].1 >> 10;
            let truth = format!("{kib} KiB cost {:.3} ns a load alone (n {})", q.value_ns, q.n);
            let found = format!("{:.3} ns beside them (n {}): {:.1} %", b.value_ns, b.n, moved * 100.0);
            Ok((truth, found, State::of(moved < MOVED)))
        };
        let checked = |i: usize| check(sizes[i].0, &what, bar, shown(i)).excused(disturbed.as_deref());
        (0..sizes.len()).map(checked).collect()
    }

    /// Costs of a load by working set, alone and beside neighbors in turns; share of samples alone with a stranger.
    fn alternate(
        machine: &Machine,
        sizes: &[usize; 2],
        slice_ns: u64,
        seed: u64,
    ) -> Result<(Vec<[Cost; 2]>, Option<f64>), String> {
        let pages = Pages::new(1 << 20, Backing::Small).map_err(|e| e.to_string())?;
        pages.extent().touch();
        let rows = machine.sample(|sampler| {
            let ground = Ground { extent: pages.extent(), pages: pages_name(pages.backing()) };
            let make = || {
                let benches = sizes.map(|bytes| chase(ground, GLOBAL, bytes, STRIDE_BYTES, seed));
                CellList::of_benches(benches.into(), Pace::of(200_000.0, 8))
            };
            let mut cells = [make(), make()];
            for turn in 0..2 * TURNS {
                let busy = if turn % 2 == 1 { Some(Busy::start(NEIGHBORS)?) } else { None };
                sample(sampler, &mut cells[turn % 2], Enough::ENDLESS, monotonic_ns() + slice_ns);
                drop(busy);
            }
            Ok::<_, String>(cells.map(CellList::into_rows))
        })??;
        let (ns_per_tick, step) = machine.tick();
        let mut all = Rows { tick_hz: 1e9 / ns_per_tick, step_ticks: step, ..Rows::default() };
        all.rows = rows.into_iter().flatten().collect();
        all.store_core();
        let (quiet, busy) = all.rows.split_at(sizes.len());
        let costs = quiet.iter().zip(busy).map(|(q, b)| [q, b].map(|r| all.cost(r))).collect();
        // Of the turns in quiet: the planted neighbors may share the core, too.
        all.rows.truncate(sizes.len());
        Ok((costs, all.shared_core().map(|s| s.0)))
    }
}
