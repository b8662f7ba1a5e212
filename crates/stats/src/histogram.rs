//! Log-linear histogram with a fixed size over all of `u64`, for recording in a hot path.
//!
//! Each octave is cut into 32 equal buckets, values below 64 are exact, so a bucket is at most 1/32 (3.2 %) as
//! wide as its lower bound. The layout is that of `HdrHistogram` (Tene, <https://hdrhistogram.org>);
//! the index needs one leading-zero count, one shift and one addition, no division and no branch.

/// Buckets per octave as a power of two.
const SUB_BITS: u32 = 5;
/// Table size: 1920 are used; the next power of two lets a mask prove the index in bounds.
const SLOTS: usize = 2048;

/// Counts of `u64` values (ticks, nanoseconds) in log-linear buckets.
pub struct LogHistogram {
    counts: Box<[u64; SLOTS]>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// One non-empty bucket: `count` values in `low..=high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    pub low: u64,
    pub high: u64,
    pub count: u64,
}

#[inline(always)]
fn slot(value: u64) -> usize {
    let shift = (63 - SUB_BITS) - (value | (1 << SUB_BITS)).leading_zeros();
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

fn bounds(slot: usize) -> (u64, u64) {
    let per_octave = 1_usize << SUB_BITS;
    let shift = (slot / per_octave).saturating_sub(1) as u32;
    let low = ((slot - shift as usize * per_octave) as u64) << shift;
    (low, low + ((1_u64 << shift) - 1))
}

impl LogHistogram {
    /// An empty histogram (16 KiB, allocated and written here, never later).
    pub fn new() -> Self {
        Self { counts: Box::new([0; SLOTS]), count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        let cell = &mut self.counts[slot(value) & (SLOTS - 1)];
        *cell = cell.wrapping_add(1);
        self.count = self.count.wrapping_add(1);
        self.sum = self.sum.wrapping_add(u128::from(value));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.sum, self.min, self.max) = (0, 0, u64::MAX, 0);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Exact smallest value.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// Exact largest value.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Non-empty buckets in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.counts.iter().enumerate().filter(|&(_, &count)| count > 0).map(|(slot, &count)| {
            let (low, high) = bounds(slot);
            Bucket { low, high, count }
        })
    }
}

impl Default for LogHistogram {
    fn default() -> Self {
        Self::new()
    }
}
