//! Writes tables of named rows: one table with bars for its shares, or several of one kind side by side.

use machmeter_data::Unit;
use machmeter_data::quantity::human;
use machmeter_data::shape::{Cell, CostTable, TableRow};

use super::{END, esc, open_table};
use crate::label;

/// Writes a table; with `bars` its columns of shares get bars. Figures are aligned right, words left. The script sorts by the values of the record.
pub(super) fn table(page: &mut String, title: &str, t: &CostTable, bars: bool) {
    let class = |i: usize| if label::is_numeric(t, i) { "num" } else { "" };
    let heads = t.columns.iter().enumerate().map(|(i, c)| (c.label.as_str(), class(i)));
    open_table(page, title, "sortable costs", std::iter::once(("Name", "")).chain(heads));
    let largest: Vec<f64> =
        (0..t.columns.len()).map(|i| if bars { largest_share(t, i) } else { 0.0 }).collect();
    for row in &t.rows {
        put!(page, "<tr><th scope=\"row\">{}", esc(&row.name));
        for (i, column) in t.columns.iter().enumerate() {
            let is_text = !label::is_numeric(t, i);
            match row.cells.get(i) {
                Some(Cell::Number(v)) => number(page, *v, column.unit.unwrap_or(Unit::Count), largest[i]),
                Some(Cell::Text(text)) if is_text => put!(page, "<td class=\"text\">{}", esc(text)),
                Some(Cell::Text(text)) => put!(page, "<td>{}", esc(text)),
                _ if is_text => page.push_str("<td class=\"text none\">-"),
                _ => page.push_str("<td class=\"none\">-"),
            }
        }
        page.push_str("</tr>");
    }
    page.push_str(END);
}

/// The largest value of a column of shares; zero for other columns, which get no bars.
fn largest_share(t: &CostTable, column: usize) -> f64 {
    let is_share = t.columns[column].unit == Some(Unit::One);
    let value = |r: &TableRow| match r.cells.get(column) {
        Some(Cell::Number(v)) if is_share => *v,
        _ => 0.0,
    };
    t.rows.iter().map(value).fold(0.0, f64::max)
}

/// Writes a number. The bar follows the figure, so that all bars of a column begin at one line.
fn number(page: &mut String, v: f64, unit: Unit, largest: f64) {
    put!(page, "<td>{}", esc(&human(v, unit)));
    if largest > 0.0 {
        let width = (v / largest * 60.0).clamp(0.0, 60.0);
        put!(page, "<svg class=\"share\"><path d=\"M0 4h{width:.0}\"/></svg>");
    }
}
