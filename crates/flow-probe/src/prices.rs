//! Prices of single things, by rows of pairs without any timer in the kernel: what a firing, an activation, a block through a queue cost.

use std::hint::black_box;

use machmeter_data::metric::params;
use machmeter_engine::cost::{Kind, Proof, Row, Rows};
use machmeter_engine::experiment::CellList;
use machmeter_engine::part::PartContext;
use machmeter_engine::sampling::{Bench, Pace, Subject};
use machmeter_engine::{Analysis, ProbeError};
use machmeter_flow::{
    Ended, FlowError, Graph, In, Out, Outcome, Primitive, Program, ReadPort, Reader, Sampling, WritePort,
    Writer, chain,
};

use crate::Params;
use crate::info::COST;
use crate::kernels::Kernel;

pub(crate) const PART: &str = "prices";
/// Boxes of a schedule of which single firings are priced, and of a chain that may be fused.
pub(crate) const BOXES: usize = 64;
const CHAIN: usize = 16;
/// Blocks of queues, bytes.
const BLOCKS: [usize; 3] = [64, 4 << 10, 64 << 10];
/// Blocks that a box hands on in one apply.
const BLOCKS_AN_APPLY: usize = 32;
/// Tokens of a firing of the chain.
const TOKENS: [u32; 2] = [1, 64];

const PACE: Pace = Pace::of(Pace::BATCH_NS, 12);

/// Does nothing.
struct Idle;
impl Primitive for Idle {
    type Ports = ();
    fn apply(&mut self, (): ()) -> Outcome {
        Outcome::Done
    }
}

struct Source;
impl Primitive for Source {
    type Ports = Out<u8>;
    fn apply(&mut self, _: &mut [u8]) -> Outcome {
        Outcome::Done
    }
}

struct Relay;
impl Primitive for Relay {
    type Ports = (In<u8>, Out<u8>);
    fn apply(&mut self, _: (&[u8], &mut [u8])) -> Outcome {
        Outcome::Done
    }
}

struct Sink;
impl Primitive for Sink {
    type Ports = In<u8>;
    fn apply(&mut self, _: &[u8]) -> Outcome {
        Outcome::Done
    }
}

/// `y = a x + b`, the same for every token.
struct Line(f32, f32);
impl Primitive for Line {
    type Ports = (In<f32>, Out<f32>);
    #[inline]
    fn apply(&mut self, (x, y): (&[f32], &mut [f32])) -> Outcome {
        for (x, y) in x.iter().zip(y) {
            *y = self.0 * x + self.1;
        }
        Outcome::Done
    }
}

struct Ones;
impl Primitive for Ones {
    type Ports = Out<f32>;
    fn apply(&mut self, y: &mut [f32]) -> Outcome {
        y.fill(black_box(1.0));
        Outcome::Done
    }
}

struct Look;
impl Primitive for Look {
    type Ports = In<f32>;
    fn apply(&mut self, x: &[f32]) -> Outcome {
        black_box(x);
        Outcome::Done
    }
}

/// Produces blocks, in one apply as many as [`BLOCKS_AN_APPLY`].
struct Give(usize);
impl Primitive for Give {
    type Ports = WritePort<u8>;
    fn apply(&mut self, mut y: Writer<'_, u8>) -> Outcome {
        for _ in 0..BLOCKS_AN_APPLY {
            if y.write(self.0).is_some() {
                y.produce(self.0);
            }
        }
        Outcome::Done
    }
}

struct Take(usize);
impl Primitive for Take {
    type Ports = ReadPort<u8>;
    fn apply(&mut self, mut x: Reader<'_, u8>) -> Outcome {
        for _ in 0..BLOCKS_AN_APPLY {
            if x.read(self.0).is_some() {
                x.consume(self.0);
            }
        }
        Outcome::Done
    }
}

pub(crate) fn idle_boxes(n: usize) -> Graph {
    let mut g = Graph::new("idle boxes");
    (0..n).for_each(|i| g.add(&format!("idle{i}"), Idle, ()));
    g
}

fn activations() -> Graph {
    let mut g = Graph::new("activations");
    g.schedule("source");
    let (a, b) = (g.queue("a", 1), g.queue("b", 1));
    g.add("source", Source, a.output(1));
    g.schedule("relay");
    g.add("relay", Relay, (a.input(1), b.output(1)));
    g.schedule("sink");
    g.add("sink", Sink, b.input(1));
    g
}

/// Blocks between two schedules, whose ports are static: with copies twice through the memory of schedules.
fn static_blocks(bytes: u32) -> Graph {
    let mut g = Graph::new("static blocks");
    g.schedule("source");
    let q = g.queue("q", 4 * u64::from(bytes));
    g.add("source", Source, q.output(bytes));
    g.schedule("sink");
    g.add("sink", Sink, q.input(bytes));
    g
}

fn blocks(bytes: usize) -> Graph {
    let mut g = Graph::new("blocks");
    g.schedule("give");
    let q = g.queue("q", (BLOCKS_AN_APPLY * bytes) as u64);
    let all = (BLOCKS_AN_APPLY * bytes) as u32;
    g.add("give", Give(bytes), q.writer(all));
    g.schedule("take");
    g.add("take", Take(bytes), q.reader(all));
    g
}

fn lines(is_fused: bool) -> Graph {
    let mut g = Graph::new("chain").fused(is_fused);
    let (x, y) = (g.edge::<f32>("x"), g.edge::<f32>("y"));
    g.add("ones", Ones, x.output(1));
    chain!(g, x =>
        "1" Line(0.5, 1.0), "2" Line(0.5, 1.0), "3" Line(0.5, 1.0), "4" Line(0.5, 1.0),
        "5" Line(0.5, 1.0), "6" Line(0.5, 1.0), "7" Line(0.5, 1.0), "8" Line(0.5, 1.0),
        "9" Line(0.5, 1.0), "10" Line(0.5, 1.0), "11" Line(0.5, 1.0), "12" Line(0.5, 1.0),
        "13" Line(0.5, 1.0), "14" Line(0.5, 1.0), "15" Line(0.5, 1.0), "16" Line(0.5, 1.0)
        => y, 0.0_f32);
    g.add("look", Look, y.input(1));
    g
}

/// So many turns of a program's scheduler.
pub(crate) struct Turns(pub(crate) Program);
impl Subject for Turns {
    fn run(&mut self, turns: u64) -> bool {
        self.0.run(Sampling::Never, turns, 1) == Ended::Paused
    }
    fn proof(&mut self) -> Option<Proof> {
        None
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
    Row::new(PART, operation, Kind::Latency).with("kernel", kernel)
}

fn bench(row: Row, graph: Graph, kernel: Kernel, granularity: u32) -> Result<Bench<'static>, FlowError> {
    Ok(Bench::new(row, Turns(Program::new(graph, kernel.choice(granularity))?)))
}

fn benches() -> Result<Vec<Bench<'static>>, FlowError> {
    let mut all = vec![Bench::new(row("bare call", "none").per_turn(BOXES as f64), BareCalls::new(BOXES))];
    let kernels = [("fast", Kernel::FAST), ("classic", Kernel::CLASSIC)];
    all.push(bench(row("firing", "fast").per_turn(BOXES as f64), idle_boxes(BOXES), Kernel::FAST, 1)?);
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
            all.push(bench(of_box, lines(is_fused), Kernel::FAST, tokens)?);
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
