//! Assigns the cells of a matrix to nine color levels and names the levels.

use machmeter_data::Unit;
use machmeter_data::shape::Matrix;

use crate::axis::{Scale, ends};

pub(crate) const LEVELS: usize = 9;

/// Least share of each level of the fixed scale, from 1 downwards. Levels are half a decade of the missing share apart: 99 % and 99.9 % differ as clearly
/// as 90 % and 99 %.
const NINES: [f64; LEVELS - 1] = [1.0, 0.999, 0.997, 0.99, 0.97, 0.9, 0.7, 0.5];

/// Least ratio of the greatest to the least value that the colors of a table span.
const NARROWEST: f64 = 1.5;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Levels {
    /// Even steps (even ratios on a log axis) between the least and the greatest value of this matrix.
    Even(Scale),
    /// Fixed steps by the distance to 100 %. They are the same in every record, so the colors of two pages are comparable.
    Nines,
}

impl Levels {
    /// The scale for a matrix; shares with named columns get the fixed one.
    pub(crate) fn of(m: &Matrix) -> Self {
        let values = || m.values.iter().flatten().flatten().copied().filter(|v| v.is_finite());
        let shares = m.cell.unit == Unit::One && !m.cell.log && values().all(|v| (0.0..=1.0).contains(&v));
        if shares && !m.column_names.is_empty() {
            return Self::Nines;
        }
        let range = m.range.unwrap_or_else(|| Self::range_of(m));
        let (low, high, log) =
            if range.0 > range.1 { (0.0, 1.0, false) } else { (range.0, range.1, m.cell.log) };
        Self::Even(Scale::exact(low, high, log, 0.0, 1.0))
    }

    /// Least and greatest value that the scale of this matrix must include; `(inf, -inf)` if there is none.
    pub(crate) fn range_of(m: &Matrix) -> (f64, f64) {
        let values = m.values.iter().flatten().flatten().copied().filter(|v| v.is_finite());
        let usable = values.filter(|v| !m.cell.log || *v > 0.0);
        ends(usable)
    }

    /// The scale for cells that show their values. It spans at least a factor of 1.5, so nearly equal values get similar colors.
    pub(crate) fn of_table(m: &Matrix) -> Self {
        let scale = match Self::of(m) {
            Self::Even(scale) if scale.low > 0.0 && scale.high < scale.low * NARROWEST => scale,
            other => return other,
        };
        let (middle, half) = ((scale.low * scale.high).sqrt(), NARROWEST.sqrt());
        Self::Even(Scale::exact(middle / half, middle * half, scale.log, 0.0, 1.0))
    }

    /// Level of a value, 0 to 8.
    pub(crate) fn level(&self, value: f64) -> usize {
        match self {
            Self::Even(scale) => ((scale.at(value) * LEVELS as f64) as usize).min(LEVELS - 1),
            Self::Nines => NINES.iter().position(|least| value >= *least).unwrap_or(LEVELS - 1),
        }
    }

    /// Letter of the style classes: `t` darkens with the value, `u` with the missing share.
    pub(crate) fn letter(&self) -> char {
        match self {
            Self::Even(_) => 't',
            Self::Nines => 'u',
        }
    }

    /// Labels of the levels of the fixed scale; empty for an even scale.
    pub(crate) fn words(&self) -> Vec<String> {
        if let Self::Even(_) = self {
            return Vec::new();
        }
        NINES.iter().map(|v| crate::label::share(*v)).chain(["less".to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_data::shape::Axis;

    fn matrix(values: &[f64]) -> Matrix {
        let names = values.iter().map(|v| format!("{v}")).collect();
        let row = values.iter().map(|v| Some(*v)).collect();
        Matrix::named("load", names, vec!["audio".into()], Axis::linear("met", Unit::One), vec![row])
    }

    #[test]
    fn matrices_of_one_range_share_their_colors() {
        let of = |values: &[f64], range| Levels::of(&Matrix { range, ..matrix(values) });
        let shared = Some((10.0, 120.0));
        assert_eq!(of(&[25.0, 26.0], shared).level(25.0), of(&[110.0, 118.0], shared).level(25.0));
        assert_ne!(of(&[25.0, 26.0], None).level(25.0), of(&[10.0, 118.0], None).level(25.0));
    }

    #[test]
    fn shares_are_told_apart_by_what_is_missing() {
        let levels = Levels::of(&matrix(&[1.0, 0.0]));
        assert_eq!(levels, Levels::Nines);
        let found = [1.0, 0.999_99, 0.998, 0.995, 0.98, 0.95, 0.8, 0.6, 0.2, 0.0].map(|v| levels.level(v));
        assert_eq!(found, [0, 1, 2, 3, 4, 5, 6, 7, 8, 8]);
        let words = ["100 %", "99.9 %", "99.7 %", "99 %", "97 %", "90 %", "70 %", "50 %", "less"];
        assert_eq!(levels.words(), words);
    }

    #[test]
    fn other_values_span_the_scale() {
        let levels = Levels::of(&matrix(&[3.0, 12.0]));
        assert_eq!((levels.level(3.0), levels.level(12.0)), (0, 8));
        let levels = Levels::of_table(&matrix(&[92.8, 95.4]));
        assert!(levels.level(95.4) - levels.level(92.8) <= 1, "nearly equal");
        assert!((3..=5).contains(&levels.level(94.0)), "and in the middle");
        assert_eq!(Levels::of_table(&matrix(&[3.0, 12.0])), Levels::of(&matrix(&[3.0, 12.0])));
        let none = Matrix { values: vec![vec![None]], ..matrix(&[1.0]) };
        assert_eq!(Levels::of(&none).level(0.0), 8);
    }
}
