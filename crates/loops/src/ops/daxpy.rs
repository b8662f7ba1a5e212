//! `y = a x + y` as the compiler writes it for the least processor of its kind, element by element.

use std::hint::black_box;
use std::sync::atomic::{Ordering, compiler_fence};

use machmeter_sys::buffer::Buffer;

use super::repeated::one_line;
use crate::subject::{Proof, Subject};

/// Both vectors begin a page: where an allocation happens to lie in its pages decides about a tenth of the cost.
pub struct Daxpy {
    x: Buffer<f64>,
    y: Buffer<f64>,
    turns: u64,
}

/// Rise of y a turn, and where x and y begin: sums are exact in doubles for all turns there are.
const A: f64 = 0.5;
const X_STEP: f64 = 0.25;
const BEGIN: f64 = 1.0;

impl Daxpy {
    /// Of `n` elements.
    ///
    /// # Errors
    /// No memory, in one line.
    pub fn new(n: usize) -> Result<Self, String> {
        let vector = || Buffer::new(n, BEGIN).map_err(|e| one_line(&e));
        let (mut x, y) = (vector()?, vector()?);
        for (i, x) in x.iter_mut().enumerate() {
            *x = BEGIN + i as f64 * X_STEP;
        }
        Ok(Self { x, y, turns: 0 })
    }
}

/// Four elements a turn, as LINPACK (1978): single ones take one or two cycles by where code lies.
#[inline(never)]
fn daxpy(a: f64, x: &[f64], y: &mut [f64]) {
    let (x, last_of_x) = x.as_chunks::<4>();
    let (y, last_of_y) = y.as_chunks_mut::<4>();
    for (y, x) in y.iter_mut().zip(x) {
        for i in 0..4 {
            y[i] += a * x[i];
            // No instruction; without it elements of two turns are shuffled into vectors, which takes a tenth longer.
            compiler_fence(Ordering::SeqCst);
        }
    }
    for (y, x) in last_of_y.iter_mut().zip(last_of_x) {
        *y += a * x;
    }
}

impl Subject for Daxpy {
    fn run(&mut self, turns: u64) -> bool {
        let (x, y) = (&*self.x, &mut *self.y);
        for _ in 0..turns {
            daxpy(black_box(A), black_box(x), black_box(&mut *y));
        }
        self.turns += turns;
        true
    }

    /// Every turn has raised y, so what it is says how many there were.
    #[allow(clippy::float_cmp, reason = "all of these sums are exact")]
    fn proof(&mut self) -> Option<Proof> {
        let turns = self.turns as f64;
        let right =
            self.y.iter().zip(&*self.x).filter(|(y, x)| **y == BEGIN + turns * A * **x).count() as u64;
        (turns > 0.0).then(|| Proof::new("elements that grew with every turn", self.y.len() as u64, right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_added_to_and_tells_how_often() {
        for n in [1, 100, 513, 1_000] {
            let mut d = Daxpy::new(n).unwrap();
            assert!(d.proof().is_none() && d.run(1));
            assert!((d.x.len(), d.y.len()) == (n, n) && d.x.as_ptr().align_offset(4_096) == 0);
            for (i, y) in d.y.iter().enumerate() {
                assert_eq!(*y, 1.5 + i as f64 * 0.125);
            }
            assert!(d.run(1_000_000 / n as u64));
            let seen = |d: &mut Daxpy| d.proof().map(|p| (p.seen, p.expected));
            assert_eq!(seen(&mut d), Some((n as u64, n as u64)));
            d.turns += 1;
            assert_eq!(seen(&mut d), Some((0, n as u64)), "a turn that did not take place");
            d.turns -= 1;
            d.y[n - 1] += 0.125;
            assert_eq!(seen(&mut d), Some((n as u64 - 1, n as u64)));
        }
    }
}
