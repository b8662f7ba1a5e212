//! Graphs of boxes that do next to nothing: what is left is the kernel. For prices, and for whoever counts instructions.

use std::hint::black_box;

use crate::{Graph, In, Out, Outcome, Primitive, ReadPort, Reader, WritePort, Writer};

/// Boxes of [`chain`].
pub const CHAIN: usize = 16;
/// Blocks that a box of [`blocks`] hands on in one apply.
pub const BLOCKS_AN_APPLY: usize = 32;

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

/// A static schedule of boxes without ports.
pub fn idle(boxes: usize) -> Graph {
    let mut g = Graph::new("idle");
    for i in 0..boxes {
        g.add(&format!("idle {i}"), Idle, ());
    }
    g
}

/// Three schedules of one box each with two queues between them: a turn is an activation.
pub fn activations() -> Graph {
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

/// Blocks between two schedules whose ports are static: a block takes two turns, and with copies goes twice through memory.
pub fn static_blocks(bytes: u32) -> Graph {
    let mut g = Graph::new("static blocks");
    g.schedule("source");
    let q = g.queue("q", 4 * u64::from(bytes));
    g.add("source", Source, q.output(bytes));
    g.schedule("sink");
    g.add("sink", Sink, q.input(bytes));
    g
}

/// Blocks by dynamic ports, [`BLOCKS_AN_APPLY`] in an apply: as many take two turns.
pub fn blocks(bytes: usize) -> Graph {
    let mut g = Graph::new("blocks");
    let all = BLOCKS_AN_APPLY * bytes;
    g.schedule("give");
    let q = g.queue("q", all as u64);
    g.add("give", Give(bytes), q.writer(all as u32));
    g.schedule("take");
    g.add("take", Take(bytes), q.reader(all as u32));
    g
}

/// A source, [`CHAIN`] boxes that compute a x + b, a sink.
pub fn chain(is_fused: bool) -> Graph {
    let mut g = Graph::new("chain").fused(is_fused);
    let (x, y) = (g.edge::<f32>("x"), g.edge::<f32>("y"));
    g.add("ones", Ones, x.output(1));
    crate::chain!(g, x =>
        "1" Line(0.5, 1.0), "2" Line(0.5, 1.0), "3" Line(0.5, 1.0), "4" Line(0.5, 1.0),
        "5" Line(0.5, 1.0), "6" Line(0.5, 1.0), "7" Line(0.5, 1.0), "8" Line(0.5, 1.0),
        "9" Line(0.5, 1.0), "10" Line(0.5, 1.0), "11" Line(0.5, 1.0), "12" Line(0.5, 1.0),
        "13" Line(0.5, 1.0), "14" Line(0.5, 1.0), "15" Line(0.5, 1.0), "16" Line(0.5, 1.0)
        => y, 0.0_f32);
    g.add("look", Look, y.input(1));
    g
}
