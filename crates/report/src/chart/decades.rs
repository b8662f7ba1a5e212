//! Draws named costs on a logarithmic scale: a dot and its interval per row, a grid line per decade, exponents of ten as ticks.

use machmeter_data::quantity::human;
use machmeter_data::shape::Decades;
use machmeter_data::{Metric, Unit};

use super::frame::Size;
use crate::axis::{Scale, ends};
use crate::label;
use crate::svg::{Anchor, Svg};

/// Room for names (left) and figures (right), in a wide picture and in one below `NARROW`, which has no exponents.
const WIDE_ROOM: (f64, f64) = (190.0, 150.0);
const NARROW_ROOM: (f64, f64) = (136.0, 82.0);
const NARROW: f64 = 700.0;
/// Letters of a name that fit into a narrow picture.
const NARROW_NAME: usize = 17;
/// Room for the ticks at the top.
const HEADS: f64 = 36.0;

/// Draws the picture as wide as `size`; the rows share its height. A doubtful figure is followed by the sign of its mark.
pub(crate) fn draw(d: &Decades, metrics: &[Metric], title: &str, size: Size) -> String {
    let rows: Vec<_> = d.rows.iter().filter_map(|r| Some((r, r.log10(d.value.unit)?))).collect();
    let (least, greatest) =
        if rows.is_empty() { (-9.0, 0.0) } else { ends(rows.iter().map(|(_, log)| *log)) };
    let (low, high) = (least.floor(), greatest.ceil().max(least.floor() + 1.0));
    let is_wide = size.width >= NARROW;
    let room = if is_wide { WIDE_ROOM } else { NARROW_ROOM };
    let (left, right) = (room.0, size.width - room.1);
    let scale = Scale::exact(low, high, false, left, right);
    let step = ((size.height - HEADS) / rows.len().max(1) as f64).clamp(8.0, 18.0);
    let bottom = HEADS + step * rows.len() as f64;
    let mut svg = Svg::new(size.width, bottom + 6.0, "chart", title);
    for decade in low as i32..=high as i32 {
        let x = scale.at(f64::from(decade));
        svg.line("grid", (x, HEADS - 4.0), (x, bottom));
        if is_wide {
            svg.text("tick", x, HEADS - 10.0, Anchor::Middle, &format!("{decade}"));
        }
        // In a narrow picture only every second decade has a name.
        let named = is_wide || (decade - low as i32) % 2 == 0;
        if d.value.unit == Unit::Nanoseconds && named {
            let text = label::tick(10_f64.powi(decade + 9), Unit::Nanoseconds);
            svg.text("tick", x, HEADS - if is_wide { 23.0 } else { 10.0 }, Anchor::Middle, &text);
        }
    }
    let shift = if d.value.unit == Unit::Nanoseconds { 9.0 } else { 0.0 };
    for (i, (row, log)) in rows.iter().enumerate() {
        let y = HEADS + step * (i as f64 + 0.5);
        svg.line("grid", (left, y), (right, y));
        let name: String = row.name.chars().take(if is_wide { usize::MAX } else { NARROW_NAME }).collect();
        svg.text("entry", left - 10.0, y + 4.0, Anchor::End, &name);
        if let (Some(a), Some(b)) = (row.low.filter(|v| *v > 0.0), row.high.filter(|v| *v > 0.0)) {
            svg.line("line c0", (scale.at(a.log10() - shift), y), (scale.at(b.log10() - shift), y));
        }
        let x = scale.at(*log);
        svg.path("point c0", &format!("M{:.1} {:.1}h6v6h-6z", x - 3.0, y - 3.0));
        if is_wide {
            svg.text("tick", right + 38.0, y + 4.0, Anchor::End, &format!("{log:.1}"));
            if row.decade(d.value.unit).is_some_and(|(_, edge)| edge) {
                svg.text("tick", right + 42.0, y + 4.0, Anchor::Start, "~");
            }
        }
        let end = size.width - if is_wide { 34.0 } else { 12.0 };
        svg.text("entry", end, y + 4.0, Anchor::End, &human(row.value, d.value.unit));
        let signs: String = row.marks(metrics).iter().map(|m| m.sign()).collect();
        svg.text("entry", end + 1.0, y + 4.0, Anchor::Start, &signs);
    }
    svg.finish()
}
