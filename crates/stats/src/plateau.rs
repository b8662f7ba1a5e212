//! Plateaus of an ascending curve, and where it passes from one to the next.
//!
//! Made for staircases in which every level is one store of a hierarchy (Saavedra-Barrera & Smith, "Measuring Cache and TLB
//! Performance and Their Effect on Benchmark Run Times", 1995): x is the logarithm of a size, y that of a cost.

use crate::error::{StatsError, check, check_pair};
use crate::quantile::median_of;

/// What counts as a plateau.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlateauOptions {
    /// Shortest plateau, in units of x.
    pub least_width: f64,
    /// Steepest slope in any stretch of that width, units of y per unit of x.
    pub most_slope: f64,
    /// Neighbouring plateaus that differ by less in y are one.
    pub least_step: f64,
}

/// A plateau: the points `first..=last`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plateau {
    /// Its first point.
    pub first: usize,
    /// Its last point.
    pub last: usize,
    /// Median of the curve on it.
    pub level: f64,
}

/// Plateaus of `ys`, which never fall, over ascending `xs`, in order.
///
/// # Errors
/// Fewer than 3 points, lengths that differ, values that are not finite, `xs` that do not ascend, `ys` that fall.
pub fn plateaus(xs: &[f64], ys: &[f64], opts: &PlateauOptions) -> Result<Vec<Plateau>, StatsError> {
    check_pair("x and y", xs.len(), ys.len())?;
    check("x", xs, 3)?;
    if let Some(i) = xs.windows(2).position(|w| w[0] >= w[1]) {
        return Err(StatsError::Parameter { name: "x", value: xs[i + 1], allowed: "ascending" });
    }
    check_not_falling(ys)?;
    let mut found: Vec<Plateau> = Vec::new();
    for first in 0..xs.len() {
        // Rounding of logarithms must not make a stretch too short.
        let wide = |last: &usize| xs[*last] - xs[first] >= opts.least_width * (1.0 - 1e-9);
        let Some(last) = (first + 1..xs.len()).find(wide) else { break };
        if ys[last] - ys[first] > opts.most_slope * (xs[last] - xs[first]) {
            continue;
        }
        match found.last_mut() {
            // Flat stretches that overlap are one plateau.
            Some(p) if p.last >= first => p.last = last,
            _ => found.push(Plateau { first, last, level: 0.0 }),
        }
    }
    let level = |p: &Plateau| median_of(&ys[p.first..=p.last]).unwrap_or(ys[p.first]);
    for p in &mut found {
        p.level = level(p);
    }
    let mut out: Vec<Plateau> = Vec::with_capacity(found.len());
    for p in found {
        match out.last_mut() {
            Some(before) if p.level - before.level < opts.least_step => {
                before.last = p.last;
                before.level = level(before);
            }
            _ => out.push(p),
        }
    }
    Ok(out)
}

/// Where `ys`, which never fall, over ascending `xs` first rise above `threshold`: linear between the two points on
/// either side. `None` if they are above from the start, or nowhere, or the input is not usable.
pub fn crossing(xs: &[f64], ys: &[f64], threshold: f64) -> Option<f64> {
    check_pair("x and y", xs.len(), ys.len()).ok()?;
    check_not_falling(ys).ok()?;
    let above = ys.iter().position(|y| *y > threshold)?;
    let below = above.checked_sub(1)?;
    let share = (threshold - ys[below]) / (ys[above] - ys[below]);
    Some(xs[below] + share.clamp(0.0, 1.0) * (xs[above] - xs[below])).filter(|x| x.is_finite())
}

fn check_not_falling(ys: &[f64]) -> Result<(), StatsError> {
    check("y", ys, 1)?;
    match ys.windows(2).find(|w| w[0] > w[1]) {
        Some(w) => Err(StatsError::Parameter { name: "y", value: w[1], allowed: "never falling" }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const OPTIONS: PlateauOptions = PlateauOptions { least_width: 0.75, most_slope: 0.15, least_step: 0.3 };

    /// Levels 0, 1, 3 with steps at 4 and 8 over eight points per unit of x, and noise, lowered to what never falls.
    fn staircase(noise: f64, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut random = Random::new(seed);
        let xs: Vec<f64> = (0..96).map(|i| f64::from(i) / 8.0).collect();
        let level = |x: f64| [0.0, 1.0, 3.0][usize::from(x > 4.0) + usize::from(x > 8.0)];
        let mut ys: Vec<f64> = xs.iter().map(|x| level(*x) + noise * random.normal()).collect();
        for i in (1..ys.len()).rev() {
            ys[i - 1] = ys[i - 1].min(ys[i]);
        }
        (xs, ys)
    }

    #[test]
    fn planted_plateaus_and_their_crossings_are_found() {
        for seed in 0..20 {
            let (xs, ys) = staircase(0.005, seed);
            let found = plateaus(&xs, &ys, &OPTIONS).unwrap();
            assert_eq!(found.len(), 3, "{found:?}");
            for (p, level) in found.iter().zip([0.0, 1.0, 3.0]) {
                assert!((p.level - level).abs() < 0.02, "{found:?}");
            }
            assert_eq!((found[0].last, found[1].first, found[1].last), (32, 33, 64));
            let at = crossing(&xs, &ys, 0.5).unwrap();
            assert!((4.0..=4.125).contains(&at), "{at}");
        }
    }

    #[test]
    fn slopes_are_no_plateaus_and_small_steps_none_of_their_own() {
        let xs: Vec<f64> = (0..64).map(|i| f64::from(i) / 8.0).collect();
        let slope: Vec<f64> = xs.iter().map(|x| 0.3 * x).collect();
        assert!(plateaus(&xs, &slope, &OPTIONS).unwrap().is_empty());
        let small: Vec<f64> = xs.iter().map(|x| if *x < 3.0 { 0.0 } else { 0.25 }).collect();
        assert_eq!(plateaus(&xs, &small, &OPTIONS).unwrap().len(), 1);
    }

    #[test]
    fn unusable_input_is_refused() {
        let (xs, ys) = staircase(0.0, 1);
        assert!(plateaus(&xs[..3], &[0.0, 1.0, 0.5], &OPTIONS).is_err());
        assert_eq!(crossing(&xs[..3], &[0.0, 1.0, 0.5], 0.2), None);
        assert!(plateaus(&[1.0, 1.0, 2.0], &[0.0; 3], &OPTIONS).is_err());
        assert!(plateaus(&[1.0, 2.0], &[0.0; 2], &OPTIONS).is_err());
        assert!(plateaus(&xs, &ys[1..], &OPTIONS).is_err());
        assert_eq!(crossing(&xs, &ys, -1.0), None);
        assert_eq!(crossing(&xs, &ys, 99.0), None);
    }
}
