//! Prices of single things, by rows of pairs without any timer in the kernel: what a firing, an activation, a block through a queue cost.

use std::hint::black_box;

use machmeter_data::metric::params;
use machmeter_engine::cost::{Kind, Row, Rows};
use machmeter_engine::experiment::CellList;
use machmeter_engine::part::PartContext;
use machmeter_engine::sampling::{Bench, Pace, Subject};
use machmeter_engine::{Analysis, ProbeError};
use machmeter_flow::graphs::primitives::{
    BLOCKS_AN_APPLY, CHAIN, activations, blocks, chain, idle, static_blocks,
};
use machmeter_flow::{Ended, FlowError, Graph, Program, Sampling};

use crate::Params;
use crate::info::COST;
use crate::kernels::Kernel;

pub(crate) const PART: &str = "prices";
/// Boxes of a schedule of which single firings are priced.
pub(crate) const BOXES: usize = 64;
/// Blocks of queues, bytes.
const BLOCKS: [usize; 3] = [64, 4 << 10, 64 << 10];
/// Tokens of a firing of the chain.
const TOKENS: [u32; 2] = [1, 64];

pub(crate) const PACE: Pace = Pace::of(Pace::BATCH_NS, 12);

/// So many turns of a program's scheduler.
pub(crate) struct Turns(pub(crate) Program);
impl Subject for Turns {
    fn run(&mut self, turns: u64) -> bool {
        self.0.run(Sampling::Never, turns, 1) == Ended::Paused
    }
}

/// What the loop over boxes comes down to: calls through a table, with a state each, until each is done.
pub(crate) struct BareCalls(Vec<BareCall>);

/// What is called, and its state.
type BareCall = (fn(&mut u64, u32) -> u8, u64);

impl BareCalls {
    pub(crate) fn new(n: usize) -> Self {
        #[inline(never)]
        fn nothing(_state: &mut u64, _times: u32) -> u8 {
            0
        }
        let one = |i| (nothing as fn(&mut u64, u32) -> u8, i);
        Self(black_box((0..n as u64).map(one).collect()))
    }
}
impl Subject for BareCalls {
    fn run(&mut self, turns: u64) -> bool {
        for _ in 0..turns {
            for (apply, state) in &mut self.0 {
                while apply(state, 1) != 0 {}
            }
        }
        true
    }
}

fn row(operation: &str, kernel: &str) -> Row {
    Row::new(PART, operation, Kind::Latency).of_batches().with("kernel", kernel)
}

fn bench(row: Row, graph: Graph, kernel: Kernel, granularity: u32) -> Result<Bench<'static>, FlowError> {
    Ok(Bench::new(row, Turns(Program::new(graph, kernel.choice(granularity))?)))
}

fn benches() -> Result<Vec<Bench<'static>>, FlowError> {
    let mut all = vec![Bench::new(row("bare call", "none").per_turn(BOXES as f64), BareCalls::new(BOXES))];
    let kernels = [("fast", Kernel::FAST), ("classic", Kernel::CLASSIC)];
    all.push(bench(row("firing", "fast").per_turn(BOXES as f64), idle(BOXES), Kernel::FAST, 1)?);
    for (name, kernel) in kernels {
        all.push(bench(row("activation", name), activations(), kernel, 1)?);
        for bytes in BLOCKS {
            let with = |r: Row| r.with("size_bytes", bytes as i64);
            // Two activations hand on a block; many blocks in one apply take two as well.
            let one = with(row("block", name)).per_turn(0.5);
            all.push(bench(one, static_blocks(bytes as u32), kernel, 1)?);
            // Within an apply nothing is copied by either kernel.
            if name == "fast" {
                let many = with(row("produce and consume", name)).per_turn(BLOCKS_AN_APPLY as f64 / 2.0);
                all.push(bench(many, blocks(bytes), kernel, 1)?);
            }
        }
    }
    for tokens in TOKENS {
        for (name, is_fused) in [("table", false), ("fused", true)] {
            let of_box = row("box of a chain", name).with("tokens", i64::from(tokens)).per_turn(CHAIN as f64);
            all.push(bench(of_box, chain(is_fused), Kernel::FAST, tokens)?);
        }
    }
    Ok(all)
}

pub(crate) fn measure(at: &mut PartContext<'_>, _params: &Params) -> Result<(), ProbeError> {
    at.host.begin()?;
    let benches = benches().map_err(|e| ProbeError::Cannot(e.to_string()))?;
    at.run(CellList::of_benches(benches, PACE));
    Ok(())
}

pub(crate) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let mut out = Analysis::default();
    for row in rows.part(PART).filter(|r| r.operation != "part") {
        let mut keys = params([("operation", row.operation.as_str().into())]);
        keys.extend(row.params.clone());
        out.metrics.push(rows.cost(row).metric(&COST, keys));
    }
    out
}
