//! Writes a small matrix as a table with colors and a value in every cell.

use machmeter_data::shape::Matrix;

use super::{END, esc, open_table};
use crate::chart::{LEVELS, Levels};
use crate::label;

/// Most cells of a matrix of numbers that is shown as a table instead of a picture.
const CELLS: usize = 400;
const COLUMNS: usize = 16;

/// True if a matrix is shown as a table. A matrix with named columns always is.
pub(super) fn is_table(m: &Matrix) -> bool {
    !m.column_names.is_empty() || m.columns.len() <= COLUMNS && m.columns.len() * m.rows.len() <= CELLS
}

pub(super) fn table(page: &mut String, title: &str, m: &Matrix) {
    let levels = Levels::of_table(m);
    let columns = label::columns(m);
    let heads = columns.iter().map(|name| (name.as_str(), ""));
    open_table(page, title, "heat", std::iter::once((m.x.label.as_str(), "num")).chain(heads));
    for (name, row) in m.rows.iter().zip(&m.values) {
        put!(page, "<tr><th scope=\"row\">{}", esc(name));
        for cell in row {
            match cell {
                Some(v) => put!(
                    page,
                    "<td class=\"{}{}\" title=\"{}\">{}",
                    levels.letter(),
                    levels.level(*v),
                    esc(&label::exact(*v, m.cell.unit)),
                    esc(&label::cell(*v, m.cell.unit))
                ),
                None => page.push_str("<td class=\"none\">-"),
            }
        }
        page.push_str("</tr>");
    }
    page.push_str(END);
    key(page, m, &levels);
}

/// Writes the key: the quantity in the cells and the meaning of the colors.
fn key(page: &mut String, m: &Matrix, levels: &Levels) {
    put!(page, "<p class=\"quiet heatkey\">Cells: {}.", esc(&m.cell.label));
    let words = levels.words();
    if words.len() == LEVELS {
        page.push_str(" At least");
        for (i, word) in words.iter().enumerate() {
            put!(page, " <span class=\"key {}{i}\">{word}</span>", levels.letter());
        }
    }
    if m.values.iter().flatten().any(Option::is_none) {
        page.push_str(" <span class=\"none\">-</span> not measured");
    }
    page.push_str("</p>");
}
