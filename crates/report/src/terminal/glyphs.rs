//! Draws small pictures in text.

use crate::axis::ends;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const LETTERS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// The glyph of a value between 0 and 1.
pub(super) fn level(share: f64, ascii: bool) -> char {
    let glyphs = if ascii { LETTERS } else { BLOCKS };
    glyphs[((share * 7.0).round() as usize).min(7)]
}

/// Values as at most `width` glyphs, scaled from the least to the greatest value. Several values become one glyph by their maximum, so that no spike is
/// lost. Values that are not finite are left out.
pub(super) fn sparkline(values: &[f64], width: usize, ascii: bool) -> String {
    let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    let (low, high) = ends(finite.iter().copied());
    if finite.is_empty() || width == 0 {
        return String::new();
    }
    finite
        .chunks(finite.len().div_ceil(width))
        .map(|part| {
            let v = part.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            level(if high > low { (v - low) / (high - low) } else { 0.0 }, ascii)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_least_and_greatest_and_keeps_a_spike() {
        assert_eq!(sparkline(&[0.0, 1.0], 10, false), "▁█");
        let mut v = vec![0.0; 1000];
        v[777] = 5.0;
        let line = sparkline(&v, 20, true);
        assert!(line.len() <= 20 && line.contains('#'), "{line}");
        assert_eq!(sparkline(&[f64::NAN], 5, true), "");
        assert_eq!(sparkline(&[3.0, 3.0], 5, true), "__");
    }
}
