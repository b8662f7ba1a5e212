//! Draws a matrix with named rows and columns as colored cells that show their values.

use machmeter_data::shape::Matrix;

use super::frame::Size;
use super::levels::Levels;
use crate::label;
use crate::svg::{Anchor, Svg};

/// Room for the names of the rows.
const NAMES: f64 = 92.0;
/// Room for the names of the columns.
const HEADS: f64 = 20.0;
const ROW: f64 = 26.0;

/// Draws the table in the width of `size`. Its height follows the rows, up to the height of `size`.
pub(super) fn draw(m: &Matrix, title: &str, size: Size) -> String {
    let (columns, rows) = (m.width().max(1) as f64, m.rows.len().max(1) as f64);
    let step = ((size.height - HEADS) / rows).clamp(8.0, ROW);
    let width = ((size.width - NAMES) / columns).min(90.0);
    let levels = Levels::of_table(m);
    let mut svg = Svg::new(size.width, HEADS + step * rows, "chart", title);
    // A character of the smallest text is about 5.4 units wide.
    let room = (width / 5.4) as usize;
    for (c, name) in m.column_names.iter().enumerate() {
        let x = NAMES + width * (c as f64 + 0.5);
        svg.text("tick", x, HEADS - 6.0, Anchor::Middle, &cut(name, room));
    }
    for (r, (name, row)) in m.rows.iter().zip(&m.values).enumerate() {
        let y = HEADS + step * r as f64;
        svg.text("tick", NAMES - 8.0, y + step / 2.0 + 3.5, Anchor::End, &cut(name, 16));
        for (c, cell) in row.iter().enumerate() {
            let x = NAMES + width * c as f64;
            let Some(v) = cell else {
                svg.rect("empty", x + 0.5, y + 0.5, width - 2.0, step - 2.0);
                svg.text("tick", x + width / 2.0, y + step / 2.0 + 3.5, Anchor::Middle, "-");
                continue;
            };
            let (letter, level) = (levels.letter(), levels.level(*v));
            svg.rect(&format!("{letter}{level}"), x, y, width - 1.0, step - 1.0);
            let text = label::cell(*v, m.cell.unit);
            let text = if text.chars().count() > room { text.trim_end_matches(" %") } else { &text };
            svg.text(&format!("cell i{level}"), x + width / 2.0, y + step / 2.0 + 3.5, Anchor::Middle, text);
        }
    }
    svg.finish()
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        text.to_owned()
    } else {
        text.chars().take(room.max(2) - 1).chain(['.']).collect()
    }
}
