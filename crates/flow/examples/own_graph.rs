//! A graph of one's own: numbers, their squares through a queue, sums of four.

use std::cell::Cell;
use std::rc::Rc;

use machmeter_flow::{Choice, Ended, Graph, In, Out, Outcome, Primitive, Program, Sampling};

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

struct Squares;
impl Primitive for Squares {
    type Ports = (In<f32>, Out<f32>);
    fn apply(&mut self, (x, y): (&[f32], &mut [f32])) -> Outcome {
        x.iter().zip(y).for_each(|(x, y)| *y = x * x);
        Outcome::Done
    }
}

struct SumsOfFour(Rc<Cell<f32>>);
impl Primitive for SumsOfFour {
    type Ports = In<f32>;
    fn apply(&mut self, x: &[f32]) -> Outcome {
        x.chunks_exact(4).for_each(|four| self.0.set(self.0.get() + four.iter().sum::<f32>()));
        Outcome::Done
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sum = Rc::new(Cell::new(0.0));
    let mut g = Graph::new("own");
    g.schedule("numbers");
    g.iterations(8);
    let (x, y) = (g.edge("x"), g.queue("y", 64));
    g.add("numbers", Numbers(0.0), x.output(1));
    g.add("squares", Squares, (x.input(1), y.output(1)));
    g.schedule("sums");
    g.add("sums of four", SumsOfFour(Rc::clone(&sum)), y.input(4));
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
