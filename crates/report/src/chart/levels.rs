//! Which of nine colors a cell of a matrix gets, and what each color stands for.

use machmeter_data::Unit;
use machmeter_data::shape::Matrix;

use crate::axis::{Scale, ends};

pub(crate) const LEVELS: usize = 9;

/// Least share of each level on the scale of nines, from all that was asked for downwards. Half a decade of what is missing
/// apart, so that 99 % and 99.9 % differ as plainly as 90 % and 99 %.
const NINES: [f64; LEVELS - 1] = [1.0, 0.999, 0.997, 0.99, 0.97, 0.9, 0.7, 0.5];

/// Ratio of greatest to least value that a table's colors span at least.
const NARROWEST: f64 = 1.5;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Levels {
    /// Even steps (on a log axis: even ratios) between the least and the greatest value of this matrix.
    Even(Scale),
    /// Fixed steps by what is missing to 100 %; the same in every record, so that two pages can be compared by eye.
    Nines,
}

impl Levels {
    /// The scale for a matrix: shares of named things get the fixed one.
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

    /// Least and greatest value that a scale of this matrix must hold; the least above the greatest where there is none.
    pub(crate) fn range_of(m: &Matrix) -> (f64, f64) {
        let values = m.values.iter().flatten().flatten().copied().filter(|v| v.is_finite());
        let usable = values.filter(|v| !m.cell.log || *v > 0.0);
        ends(usable)
    }

    /// The scale for cells that show their values: never narrower than a factor of 1.5, so that what is nearly equal looks so.
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

    /// Letter of the style classes: `t` for more of something, `u` for more that is missing.
    pub(crate) fn letter(&self) -> char {
        match self {
            Self::Even(_) => 't',
            Self::Nines => 'u',
        }
    }

    /// Words for the levels of the fixed scale.
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
