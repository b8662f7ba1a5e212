//! Draws a heat map: the cells are sorted into nine levels, with one path per level to keep the picture small.

use machmeter_data::shape::Matrix;

use super::frame::{Area, Size, numeric_ticks, x_axis};
use super::levels::{LEVELS, Levels};
use crate::axis::Scale;
use crate::label;
use crate::svg::{Anchor, Svg, px};

/// Most cells of a static picture.
const CELLS: usize = 1600;
/// Most rows of a static picture.
const ROWS: usize = 64;

pub(super) fn draw(m: &Matrix, title: &str, size: Size) -> String {
    let rows = m.rows.len().min(m.values.len()).min(ROWS);
    let cell_height = (size.height / rows.max(1) as f64).clamp(5.0, 22.0);
    let height = cell_height * rows as f64 + 76.0;
    let mut svg = Svg::new(size.width, height, "chart", title);
    let area = Area { top: 30.0, bottom: 30.0 + cell_height * rows as f64, ..Area::of(size) };
    let columns = m.columns.len().max(1);
    let per_cell = columns.div_ceil((CELLS / rows.max(1)).clamp(8, 150));
    let shown = columns.div_ceil(per_cell);
    let width = area.width() / shown as f64;
    let levels = Levels::of(m);
    let mut paths: Vec<String> = vec![String::new(); LEVELS];
    for (r, row) in m.values.iter().take(rows).enumerate() {
        let y = area.top + cell_height * r as f64;
        if r % (12.0 / cell_height).ceil() as usize == 0 {
            svg.text("tick", area.left - 6.0, y + cell_height / 2.0 + 3.5, Anchor::End, &m.rows[r]);
        }
        for (c, part) in row.chunks(per_cell).enumerate() {
            // A merged cell takes the largest value, so that no spike is lost.
            let Some(v) = part.iter().flatten().copied().reduce(f64::max) else { continue };
            let (x, wide, high) = (area.left + width * c as f64, px(width - 0.3), px(cell_height - 1.0));
            paths[levels.level(v)] += &format!("M{} {}h{wide}v{high}h-{wide}z", px(x), px(y));
        }
    }
    svg.rect("empty", area.left, area.top, area.width(), area.height());
    for (i, path) in paths.iter().enumerate().filter(|(_, p)| !p.is_empty()) {
        svg.path(&format!("h{i}"), path);
    }
    let first = m.columns.first().copied().unwrap_or(0.0);
    let last = m.columns.last().copied().unwrap_or(1.0);
    let step = if columns > 1 { (last - first) / (columns - 1) as f64 } else { 1.0 };
    let xs = Scale::exact(first, last + step, m.x.log, area.left, area.right);
    x_axis(&mut svg, area, &m.x.label, &numeric_ticks(&xs, m.x.unit));
    scale_bar(&mut svg, area, m, &levels);
    svg.finish()
}

fn scale_bar(svg: &mut Svg, area: Area, m: &Matrix, levels: &Levels) {
    let Levels::Even(levels) = levels else { return };
    let left = area.right - 9.0 * 14.0 - 70.0;
    let from = format!("{}  {}", m.cell.label, label::tick(levels.low, m.cell.unit));
    svg.text("tick", left - 6.0, 18.0, Anchor::End, &from);
    for i in 0..LEVELS {
        svg.rect(&format!("h{i}"), left + 14.0 * i as f64, 9.0, 14.0, 11.0);
    }
    svg.text("tick", left + 9.0 * 14.0 + 6.0, 18.0, Anchor::Start, &label::tick(levels.high, m.cell.unit));
}
