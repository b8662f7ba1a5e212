//! What is priced: kernels, reads of clocks, loops as the compiler writes them.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::subject::{Proof, Subject};
use machmeter_sys::call::bytes;
use machmeter_sys::clock::{SourceId, TickSource, WithSource, dispatch};
use machmeter_sys::disk::AlignedBytes;
use machmeter_sys::kernel::Ready;
use machmeter_sys::thread::monotonic_ns;

use super::repeated::Tally;

/// What copies begin at a multiple of.
const PAGE_BYTES: usize = 4_096;
/// Source and destination differ in their last 12 bits: where these agree, copies may be ten times slower.
const APART_BYTES: usize = 1_024;

/// A kernel of which a turn is one pass: it adds ones and returns their sum, the proof.
pub struct Sums {
    ready: Ready<'static>,
    additions: u64,
    expected: u64,
    seen: u64,
}

impl Sums {
    pub fn new(ready: Ready<'static>, additions: u64) -> Self {
        Self { ready, additions, expected: 0, seen: 0 }
    }
}

impl Subject for Sums {
    fn run(&mut self, turns: u64) -> bool {
        let returned = black_box(self.ready.run(turns));
        self.expected = self.expected.wrapping_add(self.additions.wrapping_mul(turns));
        self.seen = self.seen.wrapping_add(returned);
        true
    }

    fn proof(&mut self) -> Option<Proof> {
        // A larger sum is as wrong as a smaller one.
        let seen = if self.seen > self.expected { 0 } else { self.seen };
        Proof::of("additions in the sum", self.expected, seen)
    }
}

/// A kernel of `y = y + 3 x`; all of x must be ones, so that y tells the passes.
pub struct Grows<'a> {
    ready: Ready<'a>,
    y: &'a [AtomicU64],
    passes: u64,
    tally: Tally,
}

impl<'a> Grows<'a> {
    /// What y begins with, and by how much a pass raises it.
    const BEGIN: f64 = 1.0;
    const RISE: f64 = 3.0;

    /// `y` is all that the kernel adds to.
    pub fn new(ready: Ready<'a>, y: &'a [AtomicU64]) -> Self {
        Self { ready, y, passes: 0, tally: Tally::of("elements that grew with every pass") }
    }
}

impl Subject for Grows<'_> {
    fn prepare(&mut self) -> Result<(), String> {
        self.passes = 0;
        self.y.iter().for_each(|y| y.store(Self::BEGIN.to_bits(), Ordering::Relaxed));
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        black_box(self.ready.run(turns));
        self.passes += turns;
        true
    }

    fn leave(&mut self) {
        if self.passes > 0 {
            // Whole numbers far below 2^53: exact.
            let grown = (Self::BEGIN + Self::RISE * self.passes as f64).to_bits();
            let seen = self.y.iter().filter(|y| y.load(Ordering::Relaxed) == grown).count();
            self.tally.add(self.y.len() as u64, seen as u64);
        }
    }

    fn proof(&mut self) -> Option<Proof> {
        self.tally.proof()
    }
}

/// Reads of a clock, none of which waits for the one before.
pub struct Reads {
    id: SourceId,
    tally: Tally,
}

impl Reads {
    /// Batches at least this long last many steps of every clock, ns.
    const LONG_NS: u64 = 20_000;

    pub fn new(id: SourceId) -> Self {
        // How often it was read shows nowhere; that it was, shows in its going on.
        Self { id, tally: Tally::of("batches during which the clock went on") }
    }
}

struct Loop {
    turns: u64,
}

impl WithSource for Loop {
    type Output = Option<u64>;

    /// Ticks from before the first to the last; `None` if the clock went backward.
    #[inline(never)]
    fn run<S: TickSource>(self) -> Option<u64> {
        let begin = S::now();
        let mut last = begin;
        for _ in 0..self.turns {
            last = black_box(S::now());
        }
        last.checked_sub(begin)
    }
}

impl Subject for Reads {
    fn run(&mut self, turns: u64) -> bool {
        let begin_ns = monotonic_ns();
        let Ok(Some(ticks)) = dispatch(self.id, Loop { turns }) else { return false };
        if monotonic_ns() - begin_ns >= Self::LONG_NS {
            self.tally.add(1, u64::from(ticks > 0));
        }
        true
    }

    fn proof(&mut self) -> Option<Proof> {
        self.tally.proof()
    }
}

/// Copies or fills of bytes by the library's functions.
pub struct Bytes {
    from: AlignedBytes,
    to: AlignedBytes,
    fill: bool,
    last: u8,
}

impl Bytes {
    /// Of `bytes` bytes; copied ones are not all the same, because processors treat zeros differently.
    pub fn new(bytes: usize, fill: bool, seed: u64) -> Self {
        let mut random = machmeter_stats::random::Random::new(seed);
        let mut from = AlignedBytes::new(APART_BYTES + bytes, PAGE_BYTES);
        from.as_mut_slice().fill_with(|| (random.unit() * 256.0) as u8);
        Self { from, to: AlignedBytes::new(bytes, PAGE_BYTES), fill, last: 0 }
    }
}

impl Subject for Bytes {
    fn run(&mut self, turns: u64) -> bool {
        if self.fill {
            self.last = bytes::fill(self.to.as_mut_slice(), turns);
        } else {
            bytes::copy(self.to.as_mut_slice(), &self.from.as_slice()[APART_BYTES..], turns);
        }
        true
    }

    fn proof(&mut self) -> Option<Proof> {
        let (from, to) = (&self.from.as_slice()[APART_BYTES..], self.to.as_slice());
        let right = |(b, from): &(&u8, &u8)| *b == if self.fill { &self.last } else { from };
        let seen = to.iter().zip(from).filter(right).count() as u64;
        Some(Proof::new("bytes as they should be at the end", to.len() as u64, seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::repeated::filled;
    use machmeter_sys::kernel::{self, Walk};

    #[test]
    fn additions_are_all_in_the_sum_and_missing_ones_are_seen() {
        let ready = kernel::named("adds.16").unwrap().of_registers(100).unwrap();
        let proof = |claimed| {
            let mut sums = Sums::new(ready, claimed);
            assert!(sums.run(3) && sums.run(7));
            sums.proof().unwrap()
        };
        assert_eq!(proof(1_600), Proof::new("additions in the sum", 16_000, 16_000));
        assert!(proof(1_700).seen < proof(1_700).expected, "a loop that does less than it claims");
        assert!(proof(1_500).seen < proof(1_500).expected, "or more");
    }

    #[test]
    fn vectors_say_how_many_passes_there_were() {
        let pages = filled(1 << 16, 1.0_f64.to_bits()).unwrap();
        let half = |at: usize| pages.extent().part(at, 1 << 15).unwrap();
        let mut tried = 0;
        for k in kernel::all().filter(|k| k.name.starts_with("daxpy.") && (k.available)()) {
            let Walk::Forward([turn_bytes, ..]) = k.walk else { panic!("{}", k.name) };
            let ready = k.ready(7, [half(0), half(1 << 15), half(1 << 15)], 0).unwrap();
            let n = 7 * turn_bytes as usize / 8;
            let proof = |y: &[AtomicU64], missing: u64| {
                let mut grows = Grows::new(ready, y);
                for _ in 0..2 {
                    grows.prepare().unwrap();
                    assert!(grows.run(3) && grows.run(1_000));
                    grows.passes += missing;
                    grows.leave();
                }
                grows.proof().map(|p| (p.seen, p.expected))
            };
            let (all, each) = (half(0).atomics(), 2 * n as u64);
            assert_eq!(proof(&all[..n], 0), Some((each, each)), "{}", k.name);
            assert_eq!(proof(&all[..n], 1), Some((0, each)), "a pass that did not take place");
            assert_eq!(proof(&all[..=n], 0), Some((each, each + 2)), "an element that was left out");
            tried += 1;
        }
        assert!(tried > 0);
    }

    #[test]
    fn loops_do_what_they_say() {
        for id in SourceId::available() {
            let mut reads = Reads::new(id);
            assert!(reads.run(1) && reads.run(100_000));
            let p = reads.proof().unwrap();
            assert!(p.seen == p.expected && p.expected >= 1, "{p:?}");
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
