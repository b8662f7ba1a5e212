//! A graph of one's own: numbers, their squares through a queue, sums of four.

use std::cell::Cell;
use std::rc::Rc;

use machmeter_flow::boxes::{Blocks, function};
use machmeter_flow::{Choice, Ended, Graph, In, Out, Outcome, Primitive, Program, Sampling};

/// A box with a state is a type; others are functions.
struct Numbers(f32);
impl Primitive for Numbers {
    type Ports = Out<f32>;
    fn apply(&mut self, y: &mut [f32]) -> Outcome {
        for y in y {
            self.0 += 1.0;
            *y = self.0;
        }
        Outcome::Done
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sum = Rc::new(Cell::new(0.0));
    let squares = Blocks::one_to_one(1, 1, |x: &[f32], y: &mut [f32]| y[0] = x[0] * x[0]);
    let all = Rc::clone(&sum);
    let sums = function::<In<f32>, _>(move |x: &[f32]| {
        x.chunks_exact(4).for_each(|four| all.set(all.get() + four.iter().sum::<f32>()));
        Outcome::Done
    });
    let mut g = Graph::new("own");
    g.schedule("numbers");
    g.iterations(8);
    let (x, y) = (g.edge("x"), g.queue("y", 64));
    g.add("numbers", Numbers(0.0), x.output(1));
    g.add("squares", squares, (x.input(1), y.output(1)));
    g.schedule("sums");
    g.add("sums of four", sums, y.input(4));
    let ended = Program::new(g, Choice::FAST)?.run(Sampling::Never, u64::MAX, 1);
    // 1 + 4 + 9 + ... + 64
    assert!(ended == Ended::Over && (sum.get() - 204.0).abs() < 1e-3);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs() {
        super::main().unwrap();
    }
}
