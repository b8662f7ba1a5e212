//! Draws the frame of a chart: grid, ticks, axis names.

use machmeter_data::Unit;

use crate::axis::Scale;
use crate::label;
use crate::svg::{Anchor, Svg};

/// Width and height of a picture, in units of its drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Area {
    pub(crate) fn of(size: Size) -> Self {
        Self { left: 62.0, right: size.width - 12.0, top: 10.0, bottom: size.height - 38.0 }
    }

    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }
}

/// Draws the horizontal grid, tick labels on the left, and the axis name above.
pub(crate) fn y_axis(svg: &mut Svg, area: Area, scale: &Scale, unit: Unit) {
    let wanted = (area.height() / 34.0).clamp(2.0, 8.0) as usize;
    for t in ticks(scale, wanted, unit) {
        let y = scale.at(t);
        svg.line("grid", (area.left, y), (area.right, y));
        svg.text("tick", area.left - 6.0, y + 3.5, Anchor::End, &label::tick(t, unit));
    }
    if !scale.log && scale.low > 0.0 {
        let from = format!("axis from {}", label::tick(scale.low, unit));
        svg.text("name", area.left + 4.0, area.bottom - 4.0, Anchor::Start, &from);
    }
}

/// Draws ticks with the given labels below the area, and the axis name.
pub(crate) fn x_axis(svg: &mut Svg, area: Area, name: &str, ticks: &[(f64, String)]) {
    let mut free_from = f64::NEG_INFINITY;
    for (x, text) in ticks {
        svg.line("grid", (*x, area.top), (*x, area.bottom));
        let half = text.chars().count() as f64 * 3.1;
        if x - half < free_from {
            continue;
        }
        free_from = x + half + 8.0;
        let anchor = if *x > area.right - half { Anchor::End } else { Anchor::Middle };
        svg.text("tick", *x, area.bottom + 14.0, anchor, text);
    }
    svg.line("axis", (area.left, area.bottom), (area.right, area.bottom));
    svg.text("name", f64::midpoint(area.left, area.right), area.bottom + 30.0, Anchor::Middle, name);
}

/// Ticks of a numeric axis in the form that [`x_axis`] takes.
pub(crate) fn numeric_ticks(scale: &Scale, unit: Unit) -> Vec<(f64, String)> {
    ticks(scale, 8, unit).into_iter().map(|t| (scale.at(t), label::tick(t, unit))).collect()
}

/// Round values; powers of two for sizes.
fn ticks(scale: &Scale, wanted: usize, unit: Unit) -> Vec<f64> {
    let powers = if unit == Unit::Bytes { scale.powers_of_two(wanted) } else { None };
    powers.unwrap_or_else(|| scale.ticks(wanted))
}
