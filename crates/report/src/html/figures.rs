//! Writes one figure per dataset, by shape: heading, caption, and the parts that need no script.
//!
//! Tables and small matrices are complete without the script. The first pictures of each probe are drawn, here or at the glance; the script draws the rest
//! from the record.

use std::mem::discriminant;

use machmeter_data::shape::CostTable;
use machmeter_data::{Dataset, Record, Shape};

use super::esc;
use super::layout::MOST_BOXES;
use super::{costs, heat, layers};
use crate::chart::{self, STATIC_ROWS, Size};
use crate::graph::{self, Graph};
use crate::label;

/// Most columns of tables that are placed side by side.
const SMALL_COLUMNS: usize = 5;

/// Writes figures one below the other, those of one kind side by side.
pub(super) fn several(page: &mut String, record: &Record, datasets: &[(usize, &Dataset)]) {
    let alike = |(_, a): &(usize, &Dataset), (_, b): &(usize, &Dataset)| {
        let is_one_kind = discriminant(&a.shape) == discriminant(&b.shape);
        a.id == b.id && is_one_kind && is_narrow(&a.shape) && is_narrow(&b.shape)
    };
    for run in datasets.chunk_by(alike) {
        match run {
            [(index, dataset)] => alone(page, record, *index, dataset, false),
            _ => side_by_side(page, record, run),
        }
    }
}

/// True if several of these figures fit side by side.
fn is_narrow(shape: &Shape) -> bool {
    match shape {
        Shape::CostTable(t) => t.columns.len() <= SMALL_COLUMNS,
        Shape::Distribution(_) => true,
        _ => false,
    }
}

/// Writes a figure; with `is_drawn` its picture does not need the script.
pub(super) fn alone(page: &mut String, record: &Record, index: usize, dataset: &Dataset, is_drawn: bool) {
    let params = label::params(&dataset.params);
    let small = if params.is_empty() { String::new() } else { format!(" <small>{}</small>", esc(&params)) };
    open(page, index, dataset);
    put!(page, "<h3 id=\"fig-t-{index}\">{}{small}</h3>", esc(&dataset.title));
    put!(page, "<figcaption>{}</figcaption>", esc(&dataset.caption));
    body(page, record, dataset, false, is_drawn);
}

/// Writes small figures of one kind side by side. A title or caption that all of them share appears once.
fn side_by_side(page: &mut String, record: &Record, datasets: &[(usize, &Dataset)]) {
    let first = datasets[0].1;
    let one_title = datasets.iter().all(|(_, d)| d.title == first.title);
    let one_caption = datasets.iter().all(|(_, d)| d.caption == first.caption);
    if one_title {
        put!(page, "<h3>{}</h3>", esc(&first.title));
    }
    if one_caption {
        put!(page, "<p class=\"quiet caption\">{}</p>", esc(&first.caption));
    }
    page.push_str("<div class=\"multi\">");
    for (index, d) in datasets {
        let values: Vec<String> = d.params.values().map(ToString::to_string).collect();
        let tag = if one_title { "h4" } else { "h3" };
        let name = if one_title && !values.is_empty() { values.join(", ") } else { d.title.clone() };
        open(page, *index, d);
        put!(page, "<{tag} id=\"fig-t-{index}\">{}</{tag}>", esc(&name));
        if !one_caption {
            put!(page, "<figcaption>{}</figcaption>", esc(&d.caption));
        }
        body(page, record, d, true, false);
    }
    page.push_str("</div>");
}

fn open(page: &mut String, index: usize, dataset: &Dataset) {
    put!(
        page,
        "<figure id=\"fig-{index}\" class=\"fig {}\" data-dataset=\"{index}\" aria-labelledby=\"fig-t-{index}\">",
        shape_name(&dataset.shape)
    );
}

fn body(page: &mut String, record: &Record, dataset: &Dataset, small: bool, is_drawn: bool) {
    match &dataset.shape {
        Shape::CostTable(t) if graph(page, record, dataset) => {
            page.push_str("<details><summary>Table</summary>");
            costs::table(page, &name_of(dataset), t, !small);
            page.push_str("</details>");
        }
        Shape::CostTable(t) => costs::table(page, &name_of(dataset), t, !small),
        Shape::Matrix(m) if heat::is_table(m) => heat::table(page, &name_of(dataset), m),
        _ => {
            // Shapes without an interactive form are always drawn.
            if is_drawn || matches!(dataset.shape, Shape::Decades(_)) {
                picture(page, record, dataset);
            } else {
                page.push_str("<div class=\"plot\"><p class=\"need quiet\">The script of this page draws this chart.</p></div>");
            }
            page.push_str("<details class=\"data\" data-js hidden><summary>Table</summary></details>");
        }
    }
    page.push_str("</figure>");
}

/// True if a dataset is shown as a graph of boxes.
pub(super) fn is_graph(dataset: &Dataset, t: &CostTable) -> bool {
    graph::is_boxes(dataset) && (1..=MOST_BOXES).contains(&t.rows.len())
}

/// Draws a graph with its key; returns true if it was drawn.
fn graph(page: &mut String, record: &Record, dataset: &Dataset) -> bool {
    let Some(graph) = Graph::of(record, dataset) else { return false };
    let Some(svg) = layers::draw(&graph) else { return false };
    let (name, most) = (esc(graph.name), label::share(graph.levels().1));
    put!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Graph {name}\">{svg}</div>\
         <p class=\"quiet\">A frame is a schedule. Color: share of the time, <span class=\"key t0\">0 %</span> to \
         <span class=\"key t8\">{most}</span>. Thick: queues, with most tokens at once / capacity. Dashed: edges that lead back."
    );
    if graph.lost > 0 {
        put!(page, " Not drawn: {} edges from or to missing rows.", graph.lost);
    }
    page.push_str("</p>");
    true
}

/// Title and parameters, which together are unique.
fn name_of(dataset: &Dataset) -> String {
    let params = label::params(&dataset.params);
    if params.is_empty() { dataset.title.clone() } else { format!("{}, {params}", dataset.title) }
}

fn shape_name(shape: &Shape) -> &'static str {
    match shape {
        Shape::Series(_) => "series",
        Shape::Distribution(_) => "distribution",
        Shape::Curve(_) => "curve",
        Shape::Scatter(_) => "scatter",
        Shape::Matrix(m) if heat::is_table(m) => "grid-table",
        Shape::Matrix(_) => "matrix",
        Shape::CostTable(_) => "costs",
        Shape::Decades(_) => "decades",
    }
}

fn picture(page: &mut String, record: &Record, dataset: &Dataset) {
    let size = match &dataset.shape {
        Shape::Matrix(_) => Size { width: 900.0, height: 200.0 },
        // The height follows the rows.
        Shape::Decades(d) => Size { width: 900.0, height: 56.0 + 18.0 * d.rows.len() as f64 },
        _ => Size { width: 900.0, height: 320.0 },
    };
    let reduced = chart::largest_rows(&dataset.shape);
    let shown = reduced.as_ref().map(|(shape, _)| Dataset { shape: shape.clone(), ..dataset.clone() });
    let shown = shown.as_ref().unwrap_or(dataset);
    if matches!(dataset.shape, Shape::Decades(_)) {
        // Wider than a phone: the picture scrolls.
        let name = esc(&name_of(dataset));
        put!(page, "<div class=\"plot\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\">");
    } else {
        page.push_str("<div class=\"plot\">");
    }
    if let Some(svg) = chart::draw(shown, &record.metrics, size) {
        page.push_str(&svg);
    }
    page.push_str("</div>");
    legend(page, &chart::legend(&shown.shape), matches!(dataset.shape, Shape::Scatter(_)));
    if let Some((_, total)) = reduced {
        let shown = format!("Shown: the {STATIC_ROWS} of {total} rows with the largest values.");
        put!(page, "<p class=\"quiet static\">{shown}</p>");
    }
}

/// Writes names beside the lines or symbols of their colors.
pub(super) fn legend(page: &mut String, names: &[&str], symbols: bool) {
    if names.is_empty() {
        return;
    }
    page.push_str("<ul class=\"legend static\">");
    for (i, name) in names.iter().enumerate().take(24) {
        let color = i % 8;
        page.push_str("<li><svg viewBox=\"0 0 22 12\" aria-hidden=\"true\">");
        if symbols {
            put!(page, "<path class=\"point c{color}\" d=\"{}\"/>", chart::symbol(i, 11.0, 6.0));
        } else {
            put!(page, "<path class=\"{}\" d=\"M0 6h22\"/>", chart::line_class(i));
        }
        put!(page, "</svg>{}</li>", esc(name));
    }
    page.push_str("</ul>");
}
