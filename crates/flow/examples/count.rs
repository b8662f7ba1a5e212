//! Runs so many turns of one thing of the kernel, for whoever counts instructions: `count WHAT N`.
//!
//! `pass`: boxes of a static schedule that do nothing; `bare`: the same by a plain loop over function pointers; `activation`: runs of
//! schedules of one box; `heap`: the same with heap and copies; `queue`: blocks of 64 B by dynamic ports; `copying`: the same, copying.

use std::hint::black_box;

use machmeter_flow::graphs::primitives::{activations, blocks, idle};
use machmeter_flow::{Choice, Program, Queues, Ready, Sampling};

/// What a plain loop calls, and its state.
type Bare = (fn(&mut u64, u64) -> u8, u64);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, what, n] = &arguments[..] else { return Err("count WHAT N".into()) };
    let n: u64 = n.parse()?;
    let classic = Choice { queues: Queues::Copying, ready: Ready::Heap, granularity: 1 };
    let (graph, choice) = match what.as_str() {
        "pass" => (idle(64), Choice::FAST),
        "activation" => (activations(), Choice::FAST),
        "heap" => (activations(), classic),
        "queue" => (blocks(64), Choice::FAST),
        "copying" => (blocks(64), classic),
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
    Program::new(graph, choice)?.run(Sampling::Never, n, 1);
    Ok(())
}

#[inline(never)]
fn nop(_: &mut u64, _: u64) -> u8 {
    0
}
