//! The non-decreasing sequence nearest to a sequence: pooling of adjacent violators.
//!
//! Barlow, Bartholomew, Bremner & Brunk, *Statistical Inference under Order Restrictions* (1972), section 1.2. Blocks are
//! represented by their median, which gives the fit of least absolute deviations (Robertson & Wright, "Algorithms in Order
//! Restricted Statistical Inference and the Cauchy Mean Value Property", 1980): a single wild value moves nothing.

use crate::error::{StatsError, check};
use crate::quantile::select_median;

/// The non-decreasing fit of `ys` by medians, one value per value of `ys`.
///
/// # Errors
/// No values, or values that are not finite.
pub fn non_decreasing(ys: &[f64]) -> Result<Vec<f64>, StatsError> {
    check("sequence", ys, 1)?;
    // Blocks of neighbours that are fitted by one value: start, value. Each ends where the next begins.
    let mut blocks: Vec<(usize, f64)> = Vec::with_capacity(ys.len());
    let mut scratch = Vec::with_capacity(ys.len());
    for (i, y) in ys.iter().enumerate() {
        blocks.push((i, *y));
        while let [.., (start, before), (_, last)] = blocks[..] {
            if before <= last {
                break;
            }
            blocks.pop();
            scratch.clear();
            scratch.extend_from_slice(&ys[start..=i]);
            if let Some(pooled) = blocks.last_mut() {
                pooled.1 = select_median(&mut scratch);
            }
        }
    }
    let ends = blocks.iter().skip(1).map(|b| b.0).chain([ys.len()]);
    let fitted = blocks.iter().zip(ends).flat_map(|((start, value), end)| (*start..end).map(move |_| *value));
    Ok(fitted.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn what_ascends_is_kept_and_a_wild_value_moves_nothing() {
        assert_eq!(non_decreasing(&[1.0, 2.0, 2.0, 5.0]).unwrap(), [1.0, 2.0, 2.0, 5.0]);
        assert_eq!(non_decreasing(&[1.0, 1.0, 90.0, 1.0, 1.0, 3.0]).unwrap(), [1.0, 1.0, 1.0, 1.0, 1.0, 3.0]);
        assert_eq!(non_decreasing(&[3.0, 2.0, 1.0]).unwrap(), [2.0; 3]);
    }

    #[test]
    fn no_other_ascending_sequence_is_nearer() {
        let mut random = Random::new(5);
        for _ in 0..50 {
            let ys: Vec<f64> = (0..12).map(|i| f64::from(i) * 0.3 + random.normal()).collect();
            let fit = non_decreasing(&ys).unwrap();
            assert!(fit.windows(2).all(|w| w[0] <= w[1]));
            let far = |xs: &[f64]| xs.iter().zip(&ys).map(|(x, y)| (x - y).abs()).sum::<f64>();
            for _ in 0..200 {
                let mut other: Vec<f64> = fit.iter().map(|f| f + 0.3 * random.normal()).collect();
                other.sort_by(f64::total_cmp);
                assert!(far(&fit) <= far(&other) + 1e-9, "{ys:?}");
            }
        }
    }

    #[test]
    fn nothing_and_nonsense_are_refused() {
        assert!(non_decreasing(&[]).is_err() && non_decreasing(&[1.0, f64::NAN]).is_err());
    }
}
