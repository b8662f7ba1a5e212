//! Draws the CPU time lost over time, one strip of bars per CPU, and below it one bar divided by source.

use machmeter_data::Unit;
use machmeter_data::quantity::human;
use machmeter_data::shape::Series;

use super::frame::Size;
use crate::axis::Scale;
use crate::label;
use crate::pictures::{self, mean};
use crate::svg::{self, Anchor, Svg};

/// Bars per strip, and most strips; the rows with the largest means are drawn.
const BARS: usize = 160;
const STRIPS: usize = 3;
/// Sources with a name; the rest is one part of the bar.
const NAMED: usize = 4;
const LEFT: f64 = 50.0;
/// Height of the bar of sources with its two lines of names.
const FOOT: f64 = 66.0;

/// Draws the picture. `who` lists each source with its share of all time, the greatest first; `total` is the share of all sources together.
pub(crate) fn draw(series: &Series, who: &[(String, f64)], total: Option<f64>, size: Size) -> String {
    let mut svg = Svg::new(size.width, size.height, "chart", "Share of CPU time lost, by whom");
    let rows = pictures::most_taken(series, STRIPS);
    let bars: Vec<Vec<f64>> = rows.iter().map(|r| pictures::slices(r, BARS)).collect();
    let most = bars.iter().flatten().copied().fold(0.0, f64::max);
    let foot = if who.is_empty() { 0.0 } else { FOOT };
    let right = size.width - 10.0;
    let strip = (size.height - foot - 26.0) / rows.len().max(1) as f64;
    for (i, (row, bars)) in rows.iter().zip(&bars).enumerate() {
        let (top, bottom) = (strip * i as f64 + 18.0, strip * (i + 1) as f64 - 2.0);
        let ys = Scale::exact(0.0, most.max(1e-9), false, bottom, top);
        let width = (right - LEFT) / bars.len().max(1) as f64;
        // One path outlines all bars. Widths have two digits, so that rounding errors do not add up.
        let (bar, gap) = (width * 0.9, width * 0.1);
        let outline = |v: &f64| {
            let height = svg::px(bottom - ys.at(*v));
            format!("v-{height}h{bar:.2}v{height}h{gap:.2}")
        };
        let outlines: String = bars.iter().map(outline).collect();
        svg.path("point c0", &format!("M{LEFT} {}{outlines}", svg::px(bottom)));
        svg.line("axis", (LEFT, bottom), (right, bottom));
        svg.text("row", 0.0, bottom - 4.0, Anchor::Start, &row.name);
        let worst = bars.iter().copied().fold(0.0, f64::max);
        let told = format!("{} lost, most {}", human(mean(&row.mean), Unit::One), human(worst, Unit::One));
        svg.text("tick", right, top - 5.0, Anchor::End, &told);
    }
    let buckets = rows.first().map_or(0, |r| r.mean.len());
    let xs = Scale::exact(0.0, series.step_ns * buckets.max(1) as f64, false, LEFT, right);
    let below = size.height - foot - 10.0;
    for t in xs.ticks(6) {
        let anchor = if xs.at(t) > right - 16.0 { Anchor::End } else { Anchor::Middle };
        svg.text("tick", xs.at(t), below, anchor, &label::tick(t, Unit::Nanoseconds));
    }
    if foot > 0.0 {
        takers(&mut svg, who, total.unwrap_or(0.0), below + 12.0, right);
    }
    svg.finish()
}

/// Draws one bar for the whole lost time and the names of its parts below.
fn takers(svg: &mut Svg, who: &[(String, f64)], total: f64, top: f64, right: f64) {
    let sum: f64 = who.iter().map(|w| w.1).sum();
    let whole = total.max(sum).max(f64::MIN_POSITIVE);
    let mut parts: Vec<(String, f64)> = who.iter().take(NAMED).cloned().collect();
    let named: f64 = parts.iter().map(|p| p.1).sum();
    if whole - named > 0.005 * whole {
        parts.push(("others".to_owned(), whole - named));
    }
    let (mut x, mut at, mut line) = (LEFT, LEFT, top + 30.0);
    for (i, (name, share)) in parts.iter().enumerate() {
        let color = if i == NAMED || i + 1 == parts.len() && name.starts_with("others") { 7 } else { i };
        let width = (right - LEFT) * share / whole;
        svg.rect(&format!("point c{color}"), x, top, width, 14.0);
        x += width;
        let text = format!("{name} {}", human(*share, Unit::One));
        let room = 14.0 + 6.2 * text.chars().count() as f64;
        if at + room > right && at > LEFT {
            (at, line) = (LEFT, line + 15.0);
        }
        svg.rect(&format!("point c{color}"), at, line - 8.0, 8.0, 8.0);
        svg.text("tick", at + 12.0, line, Anchor::Start, &text);
        at += room + 10.0;
    }
}
