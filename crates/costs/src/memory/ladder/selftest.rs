//! Self-test: chains are followed, neighbors are let loose on the CPUs.

use machmeter_engine::cost::{Cost, Rows};
use machmeter_engine::experiment::{CellList, Enough, sample};
use machmeter_engine::sampling::Pace;
use machmeter_engine::selftest::machine::{Busy, Machine, Steal};
use machmeter_engine::selftest::{Options, SelfCheck, State};
use machmeter_sys::kernel::chain::{ChainSpec, Chains, Order};
use machmeter_sys::pages::{Backing, Pages};
use machmeter_sys::thread::monotonic_ns;

use super::chase::{self, GLOBAL, Ground, STRIDE_BYTES};

pub(super) fn chains(_: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    const ID: &str = "chains.cycle";
    let (what, bar) =
        ("chains in every order, followed node by node", "every node once, and back to the first");
    let pages = match Pages::new(4 << 20, Backing::Unasked) {
        Ok(pages) => pages,
        Err(e) => return vec![SelfCheck::not_shown(ID, what, bar, e)],
    };
    let orders = [
        Order::Global,
        Order::PageLocal { page_bytes: chase::PAGE_BYTES },
        Order::OnePerPage { page_bytes: chase::PAGE_BYTES },
        Order::Sequential,
    ];
    let (mut built, mut nodes, mut broken) = (0, 0, Vec::new());
    for order in orders {
        for working_set_bytes in [4 << 10, 48 << 10, 1 << 20, 4 << 20] {
            for ways in [1, 4] {
                let spec =
                    ChainSpec { working_set_bytes, stride_bytes: STRIDE_BYTES, order, seed: options.seed };
                // One page holds no four chains of pages.
                let Ok(chains) = Chains::build(pages.extent(), &spec, ways) else { continue };
                built += 1;
                nodes += chains.nodes();
                if !chains.are_cycles() {
                    broken.push(format!("{spec:?}"));
                }
            }
        }
    }
    vec![SelfCheck::new(
        ID,
        what,
        bar,
        format!("{built} sets of chains over {nodes} nodes"),
        broken
            .first()
            .map_or_else(|| "all are cycles".to_owned(), |b| format!("{} are not: {b}", broken.len())),
        State::of(broken.is_empty() && built >= 24),
    )]
}

const NEIGHBORS: usize = 8;
/// Most that they may move the median of a cache's latency.
const MOVED: f64 = 0.05;
/// Share of the samples in quiet beside a stranger on the core from which on a miss shows nothing: he empties the caches, too.
const STRANGER: f64 = 0.1;
const TURNS: usize = 3;

pub(super) fn caches(machine: &Machine<'_>, options: &Options) -> Vec<SelfCheck> {
    let what =
        format!("{NEIGHBORS} threads that want the CPUs, beside dependent loads on CPU {}", machine.cpu);
    let bar = "their medians differ by less than 5 %";
    let slice_ns = if options.quick { 500_000_000 } else { 2_000_000_000 };
    let second_bytes = machine
        .topology
        .cache(machine.cpu, 2)
        .and_then(|c| c.size_bytes)
        .map_or(256 << 10, |bytes| bytes as usize / 2);
    let sizes = [("busy.l1", 16 << 10), ("busy.l2", second_bytes.min(256 << 10))];
    let steal = Steal::watch();
    let found = alternate(machine, &sizes.map(|s| s.1), slice_ns, options.seed);
    let stolen = steal.told(&machine.here());
    let (costs, shared) = match found {
        Ok(found) => found,
        Err(why) => return sizes.iter().map(|s| SelfCheck::not_shown(s.0, &what, bar, &why)).collect(),
    };
    let check = |((id, bytes), [quiet, busy]): (&(&str, usize), [Cost; 2])| {
        let (Some(q), Some(b)) = (quiet.known(), busy.known()) else {
            let why = [quiet, busy].into_iter().find_map(|c| match c {
                Cost::Unknown { why } => Some(why),
                Cost::Below { .. } => Some("below what the clock can tell".to_owned()),
                Cost::Known(_) => None,
            });
            return SelfCheck::not_shown(id, &what, bar, why.unwrap_or_default());
        };
        let moved = (b.value_ns / q.value_ns - 1.0).abs();
        let met = moved < MOVED;
        let mut found = format!("{:.3} ns beside them (n {}): {:.1} %", b.value_ns, b.n, moved * 100.0);
        let stranger = shared.filter(|s| *s > STRANGER);
        let stranger = stranger
            .map(|s| format!("somebody else used the core in {:.0} % of the samples alone", s * 100.0));
        let disturbed = stolen.clone().or(stranger);
        if let Some(why) = disturbed.as_ref().filter(|_| !met) {
            found = format!("{found}; {why}");
        }
        SelfCheck::new(
            *id,
            &what,
            bar,
            format!("{} KiB cost {:.3} ns a load alone (n {})", bytes >> 10, q.value_ns, q.n),
            found,
            if !met && disturbed.is_some() { State::NotShown } else { State::of(met) },
        )
    };
    sizes.iter().zip(costs).map(check).collect()
}

/// Costs of a load by working set, alone and beside neighbors, in turns, and the share of the samples alone in which a stranger used the core.
fn alternate(
    machine: &Machine<'_>,
    sizes: &[usize; 2],
    slice_ns: u64,
    seed: u64,
) -> Result<(Vec<[Cost; 2]>, Option<f64>), String> {
    let pages = Pages::new(1 << 20, Backing::Small).map_err(|e| e.to_string())?;
    pages.extent().touch();
    let rows = machine.sample(|sampler| {
        let ground = Ground { extent: pages.extent(), backing: pages.backing() };
        let make = || {
            let benches = sizes.map(|bytes| chase::chase(ground, GLOBAL, bytes, STRIDE_BYTES, seed));
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
    // As in a run: a stranger on the core, who shares its caches, is none of the neighbors that were planted.
    let mut all = Rows { tick_hz: 1e9 / ns_per_tick, step_ticks: step, ..Rows::default() };
    all.rows = rows.into_iter().flatten().collect();
    all.tell_width();
    let (quiet, busy) = all.rows.split_at(sizes.len());
    let costs = quiet.iter().zip(busy).map(|(q, b)| [q, b].map(|r| all.cost(r))).collect();
    // Of the turns in quiet: the planted neighbors may share the core, too.
    all.rows.truncate(sizes.len());
    Ok((costs, all.shared_core().map(|s| s.0)))
}
