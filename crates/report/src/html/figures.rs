//! One figure per dataset, by shape: heading, caption, picture, legend and the numbers behind it.

use machmeter_data::shape::{Cell, CostTable, Matrix};
use machmeter_data::{Dataset, Record, Shape, Unit};

use super::data_table;
use super::esc;
use super::page::{Page, put};
use crate::chart::{self, STATIC_ROWS, Size};
use crate::label;

/// Cells up to which a matrix is a table with colors instead of a picture.
const TABLE_CELLS: usize = 400;
const TABLE_COLUMNS: usize = 16;

pub(super) fn section(page: &mut Page, record: &Record) {
    if record.datasets.is_empty() {
        return;
    }
    page.raw(
        "<section id=\"figures\" aria-labelledby=\"h-figures\"><h2 id=\"h-figures\">Figures</h2>\
         <p class=\"quiet js\" hidden>Drag over a chart to zoom, double-click to go back. With the keyboard: Tab to a chart, \
         arrows move the cursor, <kbd>+</kbd> and <kbd>-</kbd> zoom, <kbd>0</kbd> resets.</p>",
    );
    for (index, dataset) in record.datasets.iter().enumerate() {
        figure(page, index, dataset);
    }
    page.raw("</section>");
}

fn figure(page: &mut Page, index: usize, dataset: &Dataset) {
    let shape = shape_name(&dataset.shape);
    put!(
        page,
        "<figure id=\"fig-{index}\" class=\"fig {shape}\" data-dataset=\"{index}\" aria-labelledby=\"fig-t-{index}\">\
         <h3 id=\"fig-t-{index}\">{}",
        esc(&dataset.title)
    );
    let params = label::params(&dataset.params);
    if !params.is_empty() {
        put!(page, " <small>{}</small>", esc(&params));
    }
    put!(page, "</h3><figcaption>{}</figcaption>", esc(&dataset.caption));
    match &dataset.shape {
        Shape::CostTable(t) => cost_table(page, &dataset.title, t),
        Shape::Matrix(m) if is_small(m) => matrix_table(page, &dataset.title, m),
        _ => picture(page, dataset),
    }
    page.raw("</figure>");
}

fn shape_name(shape: &Shape) -> &'static str {
    match shape {
        Shape::Series(_) => "series",
        Shape::Distribution(_) => "distribution",
        Shape::Curve(_) => "curve",
        Shape::Scatter(_) => "scatter",
        Shape::Matrix(m) if is_small(m) => "grid-table",
        Shape::Matrix(_) => "matrix",
        Shape::CostTable(_) => "costs",
    }
}

fn is_small(m: &Matrix) -> bool {
    m.columns.len() <= TABLE_COLUMNS && m.columns.len() * m.rows.len() <= TABLE_CELLS
}

fn picture(page: &mut Page, dataset: &Dataset) {
    let size =
        Size { width: 900.0, height: if matches!(dataset.shape, Shape::Matrix(_)) { 200.0 } else { 320.0 } };
    let reduced = chart::largest_rows(&dataset.shape);
    let shown = reduced.as_ref().map(|(shape, _)| Dataset { shape: shape.clone(), ..dataset.clone() });
    let shown = shown.as_ref().unwrap_or(dataset);
    page.raw("<div class=\"plot\">");
    if let Some(svg) = chart::draw(shown, size) {
        page.raw(&svg);
    }
    page.raw("</div>");
    static_legend(page, &chart::legend(&shown.shape), matches!(dataset.shape, Shape::Scatter(_)));
    if let Some((_, total)) = reduced {
        put!(
            page,
            "<p class=\"quiet static\">Shown: the {STATIC_ROWS} rows of {total} that reach highest.</p>"
        );
    }
    data_table::details(page, &dataset.shape);
}

fn static_legend(page: &mut Page, names: &[&str], symbols: bool) {
    if names.is_empty() {
        return;
    }
    page.raw("<ul class=\"legend static\">");
    for (i, name) in names.iter().enumerate().take(24) {
        let color = i % 8;
        put!(page, "<li><svg viewBox=\"0 0 22 12\" aria-hidden=\"true\">");
        if symbols {
            put!(page, "<path class=\"point c{color}\" d=\"{}\"/>", chart_symbol(i));
        } else {
            put!(page, "<path class=\"line c{color} d{color}\" d=\"M0 6h22\"/>");
        }
        put!(page, "</svg>{}</li>", esc(name));
    }
    page.raw("</ul>");
}

fn chart_symbol(i: usize) -> String {
    chart::symbol(i, 11.0, 6.0)
}

/// A table whose share columns carry bars; the script makes it sortable.
fn cost_table(page: &mut Page, title: &str, t: &CostTable) {
    put!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table class=\"sortable\">\
         <thead><tr><th scope=\"col\">Name</th>",
        esc(title)
    );
    for c in &t.columns {
        let class = if c.unit.is_some() { " class=\"num\"" } else { "" };
        put!(page, "<th scope=\"col\"{class}>{}</th>", esc(&c.label));
    }
    page.raw("</tr></thead><tbody>");
    let largest: Vec<f64> = (0..t.columns.len()).map(|i| largest_share(t, i)).collect();
    for row in &t.rows {
        put!(page, "<tr><th scope=\"row\">{}</th>", esc(&row.name));
        for (i, column) in t.columns.iter().enumerate() {
            match (row.cells.get(i), column.unit) {
                (Some(Cell::Number(v)), unit) => {
                    number_cell(page, *v, unit.unwrap_or(Unit::Count), largest[i]);
                }
                (Some(Cell::Text(text)), _) => put!(page, "<td>{}</td>", esc(text)),
                (Some(Cell::Empty(())) | None, _) => page.raw("<td class=\"none\">-</td>"),
            }
        }
        page.raw("</tr>");
    }
    page.raw("</tbody></table></div>");
}

/// The largest value of a column of shares; zero for columns that get no bars.
fn largest_share(t: &CostTable, column: usize) -> f64 {
    if t.columns[column].unit != Some(Unit::One) {
        return 0.0;
    }
    let values = t.rows.iter().filter_map(|r| match r.cells.get(column) {
        Some(Cell::Number(v)) => Some(*v),
        _ => None,
    });
    values.fold(0.0, f64::max)
}

fn number_cell(page: &mut Page, v: f64, unit: Unit, largest: f64) {
    let text = machmeter_data::quantity::human(v, unit);
    put!(page, "<td class=\"num\" data-v=\"{v:e}\">");
    if largest > 0.0 {
        let width = (v / largest * 60.0).clamp(0.0, 60.0);
        put!(
            page,
            "<svg class=\"share\" viewBox=\"0 0 60 8\" aria-hidden=\"true\"><rect class=\"rest\" width=\"60\" height=\"8\"/>\
             <rect class=\"part\" width=\"{width:.1}\" height=\"8\"/></svg>"
        );
    }
    put!(page, "{}</td>", esc(&text));
}

fn matrix_table(page: &mut Page, title: &str, m: &Matrix) {
    let levels = chart::levels_of(m);
    put!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table class=\"heat\">\
         <thead><tr><th scope=\"col\">{}</th>",
        esc(title),
        esc(&m.x.label)
    );
    for c in &m.columns {
        put!(page, "<th scope=\"col\" class=\"num\">{}</th>", esc(&label::tick(*c, m.x.unit)));
    }
    page.raw("</tr></thead><tbody>");
    for (name, row) in m.rows.iter().zip(&m.values) {
        put!(page, "<tr><th scope=\"row\">{}</th>", esc(name));
        for cell in row {
            match cell {
                Some(v) => put!(
                    page,
                    "<td class=\"num t{}\">{}</td>",
                    chart::level(&levels, *v),
                    esc(&label::tick(*v, m.cell.unit))
                ),
                None => page.raw("<td class=\"none\">-</td>"),
            }
        }
        page.raw("</tr>");
    }
    put!(page, "</tbody></table></div><p class=\"quiet\">Cells: {}.</p>", esc(&m.cell.label));
}
