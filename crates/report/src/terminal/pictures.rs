//! Draws small pictures in text: latency over working sets, and the time lost on each CPU. Rows with the same heading are printed beside them.

use machmeter_data::quantity::human;
use machmeter_data::shape::{CurveRow, SeriesRow};
use machmeter_data::summary::Row;
use machmeter_data::{Record, Unit};

use super::TerminalStyle;
use super::glyphs::level;
use super::layout::{flow, indented, length, room};
use super::rows::Signs;
use crate::axis::ends;
use crate::{label, pictures};

/// Heading of the curve, and of the rows with its levels.
pub(super) const LADDER: &str = "LADDER";
/// Heading of the time lines, and of the rows with the sources.
pub(super) const TAKEN: &str = "TAKEN";
/// Most and least columns of a picture, and columns for the text beside it; longer text moves below.
const WIDTH: usize = 48;
const LEAST_WIDTH: usize = 16;
const BESIDE: usize = 28;
/// Number of CPUs that are drawn, those with the largest losses first, and number of sources that are named.
const CPUS: usize = 2;
const SOURCES: usize = 2;
/// Octaves between two numbers of a scale.
const OCTAVES: f64 = 3.0;

fn width(style: &TerminalStyle) -> usize {
    room(style).saturating_sub(BESIDE).clamp(LEAST_WIDTH, WIDTH)
}

/// The curve with the most points, on logarithmic axes.
pub(super) fn ladder(record: &Record, style: &TerminalStyle, signs: &mut Signs) -> Vec<String> {
    let Some((_, curve)) = pictures::curve_of_levels(record) else { return Vec::new() };
    let Some(row) = curve.rows.iter().max_by_key(|r| r.x.len()) else { return Vec::new() };
    let Some((line, scale)) = drawn(row, curve.x.unit, style) else { return Vec::new() };
    let texts: Vec<String> = legend(record, LADDER, signs).into_iter().map(|l| l.1).collect();
    // The name of the curve is below its scale, beside further levels if it fits.
    let (mut left, mut below) = (vec![line, scale], Vec::new());
    if length(&row.name) <= width(style) {
        left.push(row.name.clone());
    } else {
        below.push(row.name.clone());
    }
    let mut lines = beside(&left, &texts, style);
    lines.extend(fitted(&below, style));
    lines
}

/// A glyph per column by the median of its values, and the scale below.
fn drawn(row: &CurveRow, unit: Unit, style: &TerminalStyle) -> Option<(String, String)> {
    let (low, high) = (row.x.first()?.log2(), row.x.last()?.log2());
    if high <= low {
        return None;
    }
    let width = width(style);
    let column = |x: f64| ((x.log2() - low) / (high - low) * (width - 1) as f64).round() as usize;
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); width];
    for (x, y) in row.x.iter().zip(&row.y).filter(|(x, y)| **x > 0.0 && **y > 0.0) {
        columns.get_mut(column(*x))?.push(y.ln());
    }
    let (least, most) = ends(columns.iter().flatten().copied());
    let glyph = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let middle = values.get(values.len().saturating_sub(1) / 2)?;
        Some(level(if most > least { (middle - least) / (most - least) } else { 0.0 }, style.ascii))
    };
    let line = columns.iter_mut().map(|c| glyph(c).unwrap_or(' ')).collect();
    let mut scale = String::new();
    let mut octave = low.ceil();
    while octave <= high {
        let text = label::tick(octave.exp2(), unit);
        let at = column(octave.exp2());
        if at + text.chars().count() <= width && (scale.is_empty() || scale.chars().count() < at) {
            scale = format!("{scale:<at$}{text}");
        }
        octave += OCTAVES;
    }
    Some((line, scale))
}

/// A line for each CPU with the largest losses, on one scale.
pub(super) fn taken(record: &Record, style: &TerminalStyle, signs: &mut Signs) -> Vec<String> {
    let Some((_, series)) = pictures::shares(record) else { return Vec::new() };
    let rows = pictures::most_taken(series, CPUS);
    let width = width(style);
    let slices = |r: &SeriesRow| pictures::slices(r, width);
    let most = rows.iter().flat_map(|r| slices(r)).fold(0.0, f64::max);
    if most <= 0.0 {
        return Vec::new();
    }
    let line = |r: &&SeriesRow| slices(r).iter().map(|v| level(v / most, style.ascii)).collect::<String>();
    let (drawn, names): (Vec<String>, Vec<String>) = rows.iter().map(|r| (line(r), r.name.clone())).unzip();
    let mut lines = beside(&drawn, &names, style);
    let length_ns = series.step_ns * rows.first().map_or(0, |r| r.mean.len()) as f64;
    let mut sources = legend(record, TAKEN, signs);
    sources.sort_by(|a, b| b.0.total_cmp(&a.0));
    let sources: Vec<String> = sources.into_iter().take(SOURCES).map(|s| s.1).collect();
    let span = format!("over {}", human(length_ns, Unit::Nanoseconds));
    let last = sources.len().saturating_sub(1);
    let sources = sources.iter().enumerate().map(|(i, s)| if i < last { format!("{s},") } else { s.clone() });
    let span = if sources.len() > 0 { format!("{span}:") } else { span };
    let parts: Vec<String> = std::iter::once(span).chain(sources).collect();
    lines.extend(fitted(&flow(&parts, " ", room(style)), style));
    lines
}

/// Rows under a heading: the first figure, and the text with name, figures and signs of marks.
fn legend(record: &Record, section: &str, signs: &mut Signs) -> Vec<(f64, String)> {
    let mut row = |r: &Row| {
        let (first, text) = (r.shown(&record.metrics).first()?.1.value, r.text(&record.metrics)?);
        signs.see(r, &record.metrics);
        let marks: String = text.marks.iter().map(|m| format!(" {}", signs.sign(*m))).collect();
        Some((first, format!("{} {}{marks}", r.name, text.list())))
    };
    record.summary.rows.iter().filter(|r| r.section == section).filter_map(&mut row).collect()
}

/// Breaks long lines at words.
fn fitted(lines: &[String], style: &TerminalStyle) -> Vec<String> {
    lines.iter().flat_map(|line| indented(line, room(style), 2)).collect()
}

/// Puts texts beside lines, one each, if all of them fit, else below them. Texts without a line go below each other.
fn beside(lines: &[String], texts: &[String], style: &TerminalStyle) -> Vec<String> {
    let width = width(style);
    let fits = texts.iter().all(|t| width + 2 + length(t) <= room(style));
    let text = |i: usize| texts.get(i).filter(|_| fits).map_or("", String::as_str);
    let line = |i: usize| lines.get(i).map_or("", String::as_str);
    let count = if fits { lines.len().max(texts.len()) } else { lines.len() };
    let mut all: Vec<String> =
        (0..count).map(|i| format!("{:<width$}  {}", line(i), text(i)).trim_end().to_owned()).collect();
    if !fits {
        all.extend(fitted(&flow(texts, "; ", room(style)), style));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stand_at_their_place_and_holes_stay_empty() {
        let kib = |k: f64| k * 1024.0;
        let row = CurveRow {
            name: "random".to_owned(),
            x: vec![kib(4.0), kib(32.0), kib(131_072.0)],
            y: vec![1.0, 10.0, 100.0],
        };
        let style = TerminalStyle::default();
        let (line, scale) = drawn(&row, Unit::Bytes, &style).unwrap();
        let at: Vec<(usize, char)> = line.chars().enumerate().filter(|(_, c)| *c != ' ').collect();
        assert_eq!(at, [(0, '_'), (8, '='), (38, '#')], "{line}");
        assert!(scale.starts_with("4 KiB") && scale.contains("32 KiB") && scale.len() <= WIDTH, "{scale}");
        let one = CurveRow { name: String::new(), x: vec![4.0], y: vec![1.0] };
        assert!(drawn(&one, Unit::Bytes, &style).is_none());
    }
}
