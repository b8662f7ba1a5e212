//! What is priced: kernels, reads of clocks, loops as the compiler writes them.

use std::hint::black_box;

use machmeter_engine::cost::Proof;
use machmeter_engine::sampling::Subject;
use machmeter_sys::clock::{SourceId, TickSource, WithSource, dispatch};
use machmeter_sys::disk::AlignedBytes;
use machmeter_sys::kernel::Ready;

/// What copies begin at a multiple of.
const PAGE_BYTES: usize = 4_096;
/// The source begins this much after a page begins, the destination at its begin: addresses that agree in their last 12
/// bits slow a copy down by up to ten times on some processors, which is a matter of luck with an allocator.
const APART_BYTES: usize = 1_024;

/// A kernel of which a turn is one pass.
pub(super) struct Passes<'a> {
    ready: Ready<'a>,
    /// Additions in a pass, where the kernel returns their sum.
    additions: Option<u64>,
    expected: u64,
    seen: u64,
}

impl<'a> Passes<'a> {
    /// A kernel that returns nothing of interest.
    pub(super) fn new(ready: Ready<'a>) -> Self {
        Self { ready, additions: None, expected: 0, seen: 0 }
    }

    /// A kernel that adds ones, `additions` per pass, and returns their sum: the proof.
    pub(super) fn adding(ready: Ready<'a>, additions: u64) -> Self {
        Self { additions: Some(additions), ..Self::new(ready) }
    }
}

impl Subject for Passes<'_> {
    fn run(&mut self, turns: u64) -> bool {
        let returned = black_box(self.ready.run(turns));
        if let Some(additions) = self.additions {
            self.expected = self.expected.wrapping_add(additions.wrapping_mul(turns));
            self.seen = self.seen.wrapping_add(returned);
        }
        true
    }

    fn proof(&mut self) -> Option<Proof> {
        (self.expected > 0).then(|| Proof {
            what: "additions in the sum".to_owned(),
            expected: self.expected,
            // A larger sum is as wrong as a smaller one.
            seen: if self.seen > self.expected { 0 } else { self.seen },
        })
    }
}

/// Reads of a clock.
pub(super) struct Reads(pub(super) SourceId);

struct Loop {
    turns: u64,
}

impl WithSource for Loop {
    type Output = bool;

    #[inline(never)]
    fn run<S: TickSource>(self) -> bool {
        let begin = S::now();
        let mut last = begin;
        for _ in 0..self.turns {
            last = black_box(S::now());
        }
        last >= begin
    }
}

impl Subject for Reads {
    fn run(&mut self, turns: u64) -> bool {
        dispatch(self.0, Loop { turns }).unwrap_or(false)
    }
}

/// Copies or fills of bytes by the library's functions.
pub(super) struct Bytes {
    from: AlignedBytes,
    to: AlignedBytes,
    fill: bool,
    last: u8,
}

impl Bytes {
    /// Of `bytes` bytes; copied ones are not all the same, because processors treat zeros differently.
    pub(super) fn new(bytes: usize, fill: bool, seed: u64) -> Self {
        let mut random = machmeter_stats::random::Random::new(seed);
        let mut from = AlignedBytes::new(APART_BYTES + bytes, PAGE_BYTES);
        from.as_mut_slice().fill_with(|| (random.unit() * 256.0) as u8);
        Self { from, to: AlignedBytes::new(bytes, PAGE_BYTES), fill, last: 0 }
    }
}

impl Subject for Bytes {
    fn run(&mut self, turns: u64) -> bool {
        for i in 0..turns {
            if self.fill {
                self.last = i as u8 | 1;
                black_box(self.to.as_mut_slice()).fill(black_box(self.last));
            } else {
                let from = &self.from.as_slice()[APART_BYTES..];
                black_box(self.to.as_mut_slice()).copy_from_slice(black_box(from));
            }
        }
        true
    }

    fn proof(&mut self) -> Option<Proof> {
        let from = &self.from.as_slice()[APART_BYTES..];
        let right = |(i, b): (usize, &u8)| *b == if self.fill { self.last } else { from[i] };
        Some(Proof {
            what: "bytes as they should be at the end".to_owned(),
            expected: self.to.as_slice().len() as u64,
            seen: self.to.as_slice().iter().enumerate().filter(|b| right(*b)).count() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_sys::kernel;
    use machmeter_sys::pages::{Backing, Pages};

    #[test]
    fn additions_are_all_in_the_sum_and_missing_ones_are_seen() {
        let pages = Pages::new(64, Backing::Small).unwrap();
        let ready = kernel::named("adds.16").unwrap().ready(100, [pages.extent(); 3], 0).unwrap();
        let proof = |claimed| {
            let mut passes = Passes::adding(ready, claimed);
            assert!(passes.run(3) && passes.run(7));
            passes.proof().unwrap()
        };
        assert_eq!(
            proof(1_600),
            Proof { what: "additions in the sum".to_owned(), expected: 16_000, seen: 16_000 }
        );
        assert!(proof(1_700).seen < proof(1_700).expected, "a loop that does less than it claims");
        assert!(proof(1_500).seen < proof(1_500).expected, "or more");
    }

    #[test]
    fn loops_do_what_they_say() {
        for id in SourceId::available() {
            assert!(Reads(id).run(1_000));
        }
        for fill in [false, true] {
            let mut bytes = Bytes::new(1_000, fill, 3);
            let before = bytes.proof().unwrap();
            assert!(before.seen < before.expected / 2 || fill);
            assert!(bytes.run(3));
            let p = bytes.proof().unwrap();
            assert_eq!(p.seen, p.expected);
        }
    }
}
