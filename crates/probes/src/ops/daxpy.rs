//! `y = a x + y` as the compiler writes it for the least processor of its kind.

use std::hint::black_box;

use machmeter_engine::cost::Proof;
use machmeter_engine::sampling::Subject;

/// Elements per page. Both vectors begin one: where an allocation happens to lie in its pages decides about a tenth of the cost.
const PAGE: usize = 4_096 / size_of::<f64>();

/// The operation, over two vectors of the same length.
pub(super) struct Daxpy {
    room: Vec<f64>,
    x: usize,
    y: usize,
    n: usize,
}

impl Daxpy {
    /// Over `n` elements.
    pub(super) fn new(n: usize) -> Self {
        let pages = n.div_ceil(PAGE);
        let mut room = vec![1.0; (2 * pages + 1) * PAGE];
        let x = room.as_ptr().align_offset(PAGE * size_of::<f64>()).min(PAGE);
        for (i, x) in room[x..x + n].iter_mut().enumerate() {
            *x = 1.0 + i as f64 * 0.25;
        }
        Self { room, x, y: x + pages * PAGE, n }
    }

    fn vectors(&mut self) -> (&[f64], &mut [f64]) {
        let (before, from_y) = self.room.split_at_mut(self.y);
        (&before[self.x..self.x + self.n], &mut from_y[..self.n])
    }
}

#[inline(never)]
fn daxpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

impl Subject for Daxpy {
    fn run(&mut self, turns: u64) -> bool {
        let (x, y) = self.vectors();
        for i in 0..turns {
            // To and fro, so that values stay where they are.
            let a = if i % 2 == 0 { 0.5 } else { -0.5 };
            daxpy(black_box(a), black_box(x), black_box(&mut *y));
        }
        true
    }

    fn proof(&mut self) -> Option<Proof> {
        let (_, y) = self.vectors();
        let finite = y.iter().filter(|y| y.is_finite()).count() as u64;
        Some(Proof { what: "finite results".to_owned(), expected: self.n as u64, seen: finite })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_added_to_and_back() {
        for n in [1, 100, 513, 1_000] {
            let mut d = Daxpy::new(n);
            assert!(d.run(1));
            let (x, y) = d.vectors();
            assert!((x.len(), y.len()) == (n, n) && x.as_ptr().align_offset(4_096) == 0);
            for (i, y) in y.iter().enumerate() {
                assert_eq!(*y, 1.5 + i as f64 * 0.125);
            }
            assert!(d.run(1));
            let proof = d.proof().unwrap();
            assert_eq!((proof.seen, proof.expected), (n as u64, n as u64));
        }
    }
}
