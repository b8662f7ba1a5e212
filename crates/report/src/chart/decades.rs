//! Named costs on a logarithmic scale: a dot and its interval per row, whole decades as grid, ten to the power as ticks.

use machmeter_data::Unit;
use machmeter_data::quantity::human;
use machmeter_data::shape::Decades;

use super::frame::Size;
use crate::axis::Scale;
use crate::label;
use crate::svg::{Anchor, Svg};

/// Room for the names of the rows.
const NAMES: f64 = 190.0;
/// Room for exponent and value at the right.
const FIGURES: f64 = 150.0;
/// Room for the ticks above.
const HEADS: f64 = 36.0;

/// The picture: as wide as asked for, rows in the height there is.
pub(super) fn draw(d: &Decades, title: &str, size: Size) -> String {
    let rows: Vec<_> = d.rows.iter().filter_map(|r| Some((r, r.log10(d.value.unit)?))).collect();
    let ends =
        rows.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (_, log)| (a.min(*log), b.max(*log)));
    let (low, high) =
        if rows.is_empty() { (-9.0, 0.0) } else { (ends.0.floor(), ends.1.ceil().max(ends.0.floor() + 1.0)) };
    let (left, right) = (NAMES, size.width - FIGURES);
    let scale = Scale::exact(low, high, false, left, right);
    let step = ((size.height - HEADS) / rows.len().max(1) as f64).clamp(8.0, 18.0);
    let bottom = HEADS + step * rows.len() as f64;
    let mut svg = Svg::new(size.width, bottom + 6.0, "chart", title);
    for decade in low as i32..=high as i32 {
        let x = scale.at(f64::from(decade));
        svg.line("grid", (x, HEADS - 4.0), (x, bottom));
        svg.text("tick", x, HEADS - 10.0, Anchor::Middle, &format!("{decade}"));
        if d.value.unit == Unit::Nanoseconds {
            svg.text(
                "tick",
                x,
                HEADS - 23.0,
                Anchor::Middle,
                &label::tick(10_f64.powi(decade + 9), Unit::Nanoseconds),
            );
        }
    }
    let shift = if d.value.unit == Unit::Nanoseconds { 9.0 } else { 0.0 };
    for (i, (row, log)) in rows.iter().enumerate() {
        let y = HEADS + step * (i as f64 + 0.5);
        svg.line("grid", (left, y), (right, y));
        svg.text("entry", NAMES - 10.0, y + 4.0, Anchor::End, &row.name);
        if let (Some(a), Some(b)) = (row.low.filter(|v| *v > 0.0), row.high.filter(|v| *v > 0.0)) {
            svg.line("line c0", (scale.at(a.log10() - shift), y), (scale.at(b.log10() - shift), y));
        }
        let x = scale.at(*log);
        svg.path("point c0", &format!("M{:.1} {:.1}h6v6h-6z", x - 3.0, y - 3.0));
        svg.text("tick", right + 38.0, y + 4.0, Anchor::End, &format!("{log:.1}"));
        if row.decade(d.value.unit).is_some_and(|(_, edge)| edge) {
            svg.text("tick", right + 42.0, y + 4.0, Anchor::Start, "~");
        }
        svg.text("entry", size.width - 34.0, y + 4.0, Anchor::End, &human(row.value, d.value.unit));
    }
    svg.finish()
}
