//! Prints a dataset as text, by shape.

use std::fmt::Write as _;

use machmeter_data::quantity::human;
use machmeter_data::shape::{Cell, CostTable};
use machmeter_data::{Dataset, Metric, Shape, Unit};

use super::columns::{Columns, cut};
use super::{TerminalStyle, decades, matrix, printable, push_wrapped, sparkline};
use crate::label;

/// Most columns of a matrix that is printed as figures.
const TABLE_COLUMNS: usize = 8;
const PERCENTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

/// The title of a dataset and a table or a small picture.
pub fn dataset(d: &Dataset, metrics: &[Metric], style: &TerminalStyle) -> String {
    let mut title = match &d.shape {
        Shape::Matrix(m) => printable(&label::headed(&d.title, &m.cell.label)),
        _ => printable(&d.title),
    };
    if !d.params.is_empty() {
        let _ = write!(title, " ({})", label::params(&d.params));
    }
    let mut out = String::new();
    push_wrapped(&mut out, style, " ", "   ", &title, Some("1"));
    out + &body(&d.shape, metrics, style)
}

fn body(shape: &Shape, metrics: &[Metric], style: &TerminalStyle) -> String {
    match shape {
        Shape::CostTable(t) => costs(t, style),
        Shape::Decades(d) => decades::ladder(d, metrics, style),
        Shape::Distribution(d) => {
            let heads = [String::new(), "n".to_owned()].into_iter().chain(PERCENTILES.map(label::percentile));
            let mut t = Columns::new(&heads.collect::<Vec<_>>(), &[1, 2, 3, 4, 5, 6]);
            for r in &d.rows {
                let at = |p: f64| {
                    let known = p >= 1.0 || (1.0 - p) * r.n as f64 >= 1.0;
                    let found = r.quantiles.iter().find(|(q, _)| *q >= p - 1e-12).filter(|_| known);
                    found.map_or_else(|| "-".to_owned(), |(_, v)| human(*v, d.value.unit))
                };
                t.row([r.name.clone(), r.n.to_string()].into_iter().chain(PERCENTILES.map(at)).collect());
            }
            t.fit(style)
        }
        Shape::Series(s) => {
            let rows = s.rows.iter().map(|r| (r.name.as_str(), r.max.as_slice()));
            pictures(rows, s.y.unit, &format!("greatest {} per span", s.y.label), style)
        }
        Shape::Curve(c) => {
            let rows = c.rows.iter().map(|r| (r.name.as_str(), r.y.as_slice()));
            let mut out = pictures(rows, c.y.unit, &format!("{} over {}", c.y.label, c.x.label), style);
            for m in &c.marks {
                let text = format!("{}  {}  {}", human(m.x, c.x.unit), m.label, m.detail);
                push_wrapped(&mut out, style, "   ", "     ", &printable(&text), None);
            }
            out
        }
        Shape::Matrix(m) if !m.column_names.is_empty() || m.columns.len() <= TABLE_COLUMNS => {
            matrix::table(m, style)
        }
        Shape::Matrix(m) => {
            let values: Vec<Vec<f64>> =
                m.values.iter().map(|r| r.iter().map(|v| v.unwrap_or(0.0)).collect()).collect();
            let rows = m.rows.iter().map(String::as_str).zip(values.iter().map(Vec::as_slice));
            pictures(rows, m.cell.unit, &format!("{} over {}", m.cell.label, m.x.label), style)
        }
        Shape::Scatter(s) => {
            let [x, y] = [&s.x, &s.y].map(|axis| format!("median {}", axis.label));
            let mut t = Columns::new(&["group", "points", &x, &y], &[1, 2, 3]);
            for g in &s.groups {
                let x = median(g.points.iter().map(|p| p.0), s.x.unit);
                let y = median(g.points.iter().map(|p| p.1), s.y.unit);
                t.row(vec![g.name.clone(), g.points.len().to_string(), x, y]);
            }
            t.fit(style)
        }
    }
}

fn costs(table: &CostTable, style: &TerminalStyle) -> String {
    let heads = std::iter::once("name".to_owned()).chain(table.columns.iter().map(|c| small(&c.label)));
    let numeric = (0..table.columns.len()).filter(|i| label::is_numeric(table, *i)).map(|i| i + 1);
    let mut t = Columns::new(&heads.collect::<Vec<_>>(), &numeric.collect::<Vec<_>>());
    for r in &table.rows {
        let cells = r.cells.iter().zip(&table.columns).map(|(cell, column)| match cell {
            Cell::Number(v) => human(*v, column.unit.unwrap_or(Unit::Count)),
            Cell::Text(text) => text.clone(),
            Cell::Empty(()) => "-".to_owned(),
        });
        t.row(std::iter::once(r.name.clone()).chain(cells).collect());
    }
    t.fit(style)
}

/// A heading in lower case, except names such as L1, DRAM and CPUs, and single letters such as B and Q.
fn small(label: &str) -> String {
    let is_name = |w: &str| w.chars().nth(1).is_none_or(|c| c.is_ascii_digit() || c.is_uppercase());
    let word = |w: &str| if is_name(w) { w.to_owned() } else { w.to_lowercase() };
    label.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn median(values: impl Iterator<Item = f64>, unit: Unit) -> String {
    let mut v: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    v.sort_by(f64::total_cmp);
    v.get(v.len() / 2).map_or_else(|| "-".to_owned(), |m| human(*m, unit))
}

/// One sparkline per row with the greatest value beside it.
fn pictures<'a>(
    rows: impl Iterator<Item = (&'a str, &'a [f64])>,
    unit: Unit,
    what: &str,
    style: &TerminalStyle,
) -> String {
    let rows: Vec<(&str, &[f64])> = rows.collect();
    // A longer name gets its own lines.
    let most = style.width / 2;
    let name_width = rows.iter().map(|(n, _)| n.chars().count()).filter(|n| *n <= most).max().unwrap_or(0);
    let room = style.width.saturating_sub(name_width + 20).clamp(8, 100);
    let mut out = String::new();
    push_wrapped(&mut out, style, "   ", "   ", &printable(what), None);
    for (name, values) in rows {
        let mut name = printable(name);
        if name.chars().count() > name_width {
            for line in cut(&name, style.width.saturating_sub(3)) {
                let _ = writeln!(out, "   {line}");
            }
            name.clear();
        }
        let greatest = values.iter().copied().filter(|v| v.is_finite()).fold(f64::NEG_INFINITY, f64::max);
        let line = sparkline(values, room, style.ascii);
        let _ = writeln!(out, "   {name:<name_width$} {line} max {}", human(greatest, unit));
    }
    out
}
