//! Runs so many turns of one thing of the kernel, for whoever counts instructions: `count WHAT N`.
//!
//! `pass`: boxes of a static schedule that do nothing; `bare`: the same by a plain loop over function pointers; `activation`: runs of three
//! schedules of one box each with two queues between them; `heap`: the same with heap and copies; `queue`: a box that moves blocks.

use std::hint::black_box;

use machmeter_flow::{
    Choice, Graph, In, Out, Outcome, Primitive, Program, Queues, ReadPort, Reader, Ready, Sampling,
    WritePort, Writer,
};

struct Nop;
impl Primitive for Nop {
    type Ports = ();
    fn apply(&mut self, (): ()) -> Outcome {
        Outcome::Done
    }
}

struct Source;
impl Primitive for Source {
    type Ports = Out<u64>;
    fn apply(&mut self, _: &mut [u64]) -> Outcome {
        Outcome::Done
    }
}

struct Relay;
impl Primitive for Relay {
    type Ports = (In<u64>, Out<u64>);
    fn apply(&mut self, _: (&[u64], &mut [u64])) -> Outcome {
        Outcome::Done
    }
}

struct Sink;
impl Primitive for Sink {
    type Ports = In<u64>;
    fn apply(&mut self, _: &[u64]) -> Outcome {
        Outcome::Done
    }
}

/// Produces blocks as often as asked, in one apply.
struct Give {
    block: usize,
}
impl Primitive for Give {
    type Ports = WritePort<u64>;
    fn apply(&mut self, mut y: Writer<'_, u64>) -> Outcome {
        while y.write(self.block).is_some() {
            y.produce(self.block);
        }
        Outcome::Done
    }
}

struct Take {
    block: usize,
}
impl Primitive for Take {
    type Ports = ReadPort<u64>;
    fn apply(&mut self, mut x: Reader<'_, u64>) -> Outcome {
        while let Some(tokens) = x.read(self.block) {
            black_box(tokens);
            x.consume(self.block);
        }
        Outcome::Done
    }
}

fn passes(boxes: usize) -> Graph {
    let mut g = Graph::new("passes");
    (0..boxes).for_each(|i| g.add(&format!("nop{i}"), Nop, ()));
    g
}

fn activations() -> Graph {
    let mut g = Graph::new("activations");
    g.schedule("source");
    let (a, b) = (g.queue("a", 512), g.queue("b", 512));
    g.add("source", Source, a.output(1));
    g.schedule("relay");
    g.add("relay", Relay, (a.input(1), b.output(1)));
    g.schedule("sink");
    g.add("sink", Sink, b.input(1));
    g
}

fn blocks(block: usize) -> Graph {
    let mut g = Graph::new("blocks");
    g.schedule("give");
    let q = g.queue("q", 64 * block as u64);
    g.add("give", Give { block }, q.writer(block as u32));
    g.schedule("take");
    g.add("take", Take { block }, q.reader(block as u32));
    g
}

/// What a plain loop calls, and its state.
type Bare = (fn(&mut u64, u64) -> u8, u64);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, what, n] = &arguments[..] else { return Err("count WHAT N".into()) };
    let n: u64 = n.parse()?;
    let classic = Choice { queues: Queues::Copying, ready: Ready::Heap, granularity: 1 };
    let (graph, choice) = match what.as_str() {
        "pass" => (passes(64), Choice::FAST),
        "activation" => (activations(), Choice::FAST),
        "heap" => (activations(), classic),
        "queue" => (blocks(8), Choice::FAST),
        "copying" => (blocks(8), classic),
        "bare" => {
            let boxes: Vec<Bare> = (0..64).map(|i| (nop as fn(&mut u64, u64) -> u8, i)).collect();
            let mut boxes = black_box(boxes);
            for _ in 0..n {
                for (apply, state) in &mut boxes {
                    while apply(state, 1) != 0 {}
                }
            }
            return Ok(());
        }
        _ => return Err(format!("no such thing: {what}").into()),
    };
    let mut program = Program::new(graph, choice)?;
    program.run(Sampling::Never, n, 1);
    Ok(())
}

#[inline(never)]
fn nop(_: &mut u64, _: u64) -> u8 {
    0
}
