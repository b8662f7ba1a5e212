//! Permutation test of a difference of centers, by single values or by blocks in time.

use crate::error::check;
use crate::quantile::select_median;
use crate::random::Random;
use crate::spread::sum;

/// The center that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Center {
    /// Arithmetic mean.
    Mean,
    /// Median.
    Median,
}

/// Options of [`permutation_test`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermutationOptions {
    /// The center that is compared.
    pub center: Center,
    /// Number of random relabelings; the smallest possible `p` is `1 / (permutations + 1)`.
    pub permutations: usize,
    /// Neighboring values that keep together; 1 for independent draws.
    pub block_len: usize,
    /// Seed of the random stream.
    pub seed: u64,
}

impl Default for PermutationOptions {
    fn default() -> Self {
        Self { center: Center::Median, permutations: 2000, block_len: 1, seed: 0x7065_726d }
    }
}

/// Result of [`permutation_test`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Permutation {
    /// Center of `y` minus center of `x`, in the unit of the values.
    pub difference: f64,
    /// Two-sided probability of a difference at least this large if the labels mean nothing.
    pub p: f64,
}

/// Tests whether the centers of two series differ by exchanging labels of whole blocks.
///
/// `None` if either has fewer than 2 blocks, values are not finite, or an option is zero.
pub fn permutation_test(x: &[f64], y: &[f64], opts: &PermutationOptions) -> Option<Permutation> {
    let block = opts.block_len;
    if block == 0 || opts.permutations == 0 {
        return None;
    }
    let needed = block.checked_add(1)?.max(2);
    check("x", x, needed).ok()?;
    check("y", y, needed).ok()?;
    let difference = center(&mut y.to_vec(), opts.center) - center(&mut x.to_vec(), opts.center);
    if !difference.is_finite() {
        return None;
    }
    let mut blocks: Vec<&[f64]> = x.chunks(block).chain(y.chunks(block)).collect();
    let labeled_x = x.len().div_ceil(block);
    let mut random = Random::new(opts.seed);
    let (mut left, mut right) = (Vec::with_capacity(x.len()), Vec::with_capacity(y.len()));
    let mut extreme = 0_usize;
    // Equal sums in another order differ in the last digits and still count as equal.
    let reached = difference.abs() * (1.0 - 1e-12);
    for _ in 0..opts.permutations {
        random.shuffle(&mut blocks);
        left.clear();
        right.clear();
        blocks[..labeled_x].iter().for_each(|b| left.extend_from_slice(b));
        blocks[labeled_x..].iter().for_each(|b| right.extend_from_slice(b));
        let shuffled = center(&mut right, opts.center) - center(&mut left, opts.center);
        extreme += usize::from(shuffled.abs() >= reached);
    }
    Some(Permutation { difference, p: (extreme + 1) as f64 / (opts.permutations + 1) as f64 })
}

fn center(xs: &mut [f64], center: Center) -> f64 {
    match center {
        Center::Mean => sum(xs) / xs.len() as f64,
        Center::Median => select_median(xs),
    }
}
