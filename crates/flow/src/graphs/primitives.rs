//! Graphs of boxes that do next to nothing: what is left is the kernel. For prices, and for whoever counts instructions.

use std::hint::black_box;

use crate::boxes::{Stage, function};
use crate::{Graph, In, Out, Outcome, Primitive, ReadPort, Reader, WritePort, Writer};

/// Boxes of [`chain`].
pub const CHAIN: usize = 16;
/// Blocks that a box of [`blocks`] hands on in one apply.
pub const BLOCKS_AN_APPLY: usize = 32;

/// `y = a x + b`, the same for every token.
fn line(a: f32, b: f32) -> impl Stage<f32, f32> {
    function::<(In<f32>, Out<f32>), _>(move |(x, y): (&[f32], &mut [f32])| {
        for (x, y) in x.iter().zip(y) {
            *y = a * x + b;
        }
        Outcome::Done
    })
}

fn source() -> impl Primitive<Ports = Out<u8>> {
    function::<Out<u8>, _>(|_: &mut [u8]| Outcome::Done)
}

fn sink() -> impl Primitive<Ports = In<u8>> {
    function::<In<u8>, _>(|_: &[u8]| Outcome::Done)
}

/// A static schedule of boxes without ports.
pub fn idle(boxes: usize) -> Graph {
    let mut g = Graph::new("idle");
    for i in 0..boxes {
        g.add(&format!("idle {i}"), function::<(), _>(|()| Outcome::Done), ());
    }
    g
}

/// Three schedules of one box each with two queues between them: a turn is an activation.
pub fn activations() -> Graph {
    let mut g = Graph::new("activations");
    g.schedule("source");
    let (a, b) = (g.queue("a", 1), g.queue("b", 1));
    g.add("source", source(), a.output(1));
    g.schedule("relay");
    let relay = function::<(In<u8>, Out<u8>), _>(|_: (&[u8], &mut [u8])| Outcome::Done);
    g.add("relay", relay, (a.input(1), b.output(1)));
    g.schedule("sink");
    g.add("sink", sink(), b.input(1));
    g
}

/// Blocks between two schedules whose ports are static: a block takes two turns, and with copies goes twice through memory.
pub fn static_blocks(bytes: u32) -> Graph {
    let mut g = Graph::new("static blocks");
    g.schedule("source");
    let q = g.queue("q", 4 * u64::from(bytes));
    g.add("source", source(), q.output(bytes));
    g.schedule("sink");
    g.add("sink", sink(), q.input(bytes));
    g
}

/// Blocks by dynamic ports, [`BLOCKS_AN_APPLY`] in an apply: as many take two turns.
pub fn blocks(bytes: usize) -> Graph {
    let mut g = Graph::new("blocks");
    let all = BLOCKS_AN_APPLY * bytes;
    g.schedule("give");
    let q = g.queue("q", all as u64);
    let give = function::<WritePort<u8>, _>(move |mut y: Writer<'_, u8>| {
        for _ in 0..BLOCKS_AN_APPLY {
            if y.write(bytes).is_some() {
                y.produce(bytes);
            }
        }
        Outcome::Done
    });
    g.add("give", give, q.writer(all as u32));
    g.schedule("take");
    let take = function::<ReadPort<u8>, _>(move |mut x: Reader<'_, u8>| {
        for _ in 0..BLOCKS_AN_APPLY {
            if x.read(bytes).is_some() {
                x.consume(bytes);
            }
        }
        Outcome::Done
    });
    g.add("take", take, q.reader(all as u32));
    g
}

/// A source, [`CHAIN`] boxes that compute a x + b, a sink.
pub fn chain(is_fused: bool) -> Graph {
    let mut g = Graph::new("chain").fused(is_fused);
    let (x, y) = (g.edge::<f32>("x"), g.edge::<f32>("y"));
    let ones = function::<Out<f32>, _>(|y: &mut [f32]| {
        y.fill(black_box(1.0));
        Outcome::Done
    });
    g.add("ones", ones, x.output(1));
    let line = || line(0.5, 1.0);
    crate::chain!(g, x =>
        "1" line(), "2" line(), "3" line(), "4" line(), "5" line(), "6" line(), "7" line(), "8" line(),
        "9" line(), "10" line(), "11" line(), "12" line(), "13" line(), "14" line(), "15" line(), "16" line()
        => y, 0.0_f32);
    let look = function::<In<f32>, _>(|x: &[f32]| {
        black_box(x);
        Outcome::Done
    });
    g.add("look", look, y.input(1));
    g
}
