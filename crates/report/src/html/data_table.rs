//! The numbers behind a picture, short enough to be part of every page; the script offers more rows of long series.

use std::fmt::Write as _;

use machmeter_data::quantity::human;
use machmeter_data::shape::{Curve, Distribution, Matrix, Scatter, Series};
use machmeter_data::{Shape, Unit};

use super::esc;
use super::page::{Page, put};
use crate::label;

/// Rows of a long series or curve without the script.
const SHORT_ROWS: usize = 12;
/// Rows of any table at most.
const MOST_ROWS: usize = 200;
/// Columns groups (CPUs, curves) of a short table at most.
const SHORT_GROUPS: usize = 4;
/// Largest points of a scatter that are listed.
const TOP_POINTS: usize = 20;
const PERCENTILES: [f64; 11] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 1.0];

/// Percentiles where figures stand side by side.
const FEW_PERCENTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

/// The table of a shape inside `<details>`.
pub(super) fn details(page: &mut Page, name: &str, shape: &Shape, small: bool) {
    page.raw("<details class=\"data\"><summary>Table</summary><div class=\"holder\">");
    match shape {
        Shape::Series(s) => series(page, name, s),
        Shape::Distribution(d) => {
            distribution(page, name, d, if small { &FEW_PERCENTILES } else { &PERCENTILES });
        }
        Shape::Curve(c) => curve(page, name, c),
        Shape::Scatter(s) => scatter(page, name, s),
        Shape::Matrix(m) => matrix(page, name, m),
        Shape::Decades(d) => {
            let heads = ["operation", "value", "from", "to", "ten to power"].map(str::to_owned);
            let figure = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), |v| human(v, d.value.unit));
            let row = |r: &machmeter_data::shape::DecadeRow| {
                let log = r.log10(d.value.unit).map_or_else(|| "-".to_owned(), |l| format!("{l:.2}"));
                vec![r.name.clone(), figure(Some(r.value)), figure(r.low), figure(r.high), log]
            };
            table(page, name, &heads, &d.rows.iter().map(row).collect::<Vec<_>>(), "");
        }
        Shape::CostTable(_) => {}
    }
    page.raw("</div></details>");
}

/// A table; the first cell of a row is its heading.
fn table(page: &mut Page, name: &str, heads: &[String], rows: &[Vec<String>], remark: &str) {
    put!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}: {}\"><table><thead><tr>",
        esc(name),
        esc(&heads[..heads.len().min(2)].join(", "))
    );
    for (i, h) in heads.iter().enumerate() {
        let class = if i == 0 { "" } else { " class=\"num\"" };
        put!(page, "<th scope=\"col\"{class}>{}", esc(h));
    }
    page.raw("</tr></thead><tbody>");
    for row in rows {
        page.raw("<tr>");
        for (i, cell) in row.iter().enumerate() {
            if i == 0 {
                put!(page, "<th scope=\"row\">{}", esc(cell));
            } else {
                put!(page, "<td class=\"num\">{}", esc(cell));
            }
        }
        page.raw("</tr>");
    }
    page.raw("</tbody></table></div>");
    if !remark.is_empty() {
        put!(page, "<p class=\"quiet\">{}</p>", esc(remark));
    }
}

fn names(fixed: &[&str]) -> Vec<String> {
    fixed.iter().map(|s| (*s).to_owned()).collect()
}

fn series(page: &mut Page, name: &str, s: &Series) {
    let n = s.rows.iter().map(|r| r.mean.len()).max().unwrap_or(0);
    let step = n.div_ceil(SHORT_ROWS).max(1);
    let groups = s.rows.len().min(SHORT_GROUPS);
    let mut heads = names(&["Time after start"]);
    for r in &s.rows[..groups] {
        heads.extend(["least", "mean", "greatest"].map(|w| format!("{} {w}", r.name)));
    }
    let mut rows = Vec::new();
    for from in (0..n).step_by(step) {
        let mut cells = vec![human(s.start_ns + s.step_ns * from as f64, Unit::Nanoseconds)];
        for r in &s.rows[..groups] {
            let to = (from + step).min(r.mean.len());
            if from >= to {
                cells.extend(names(&["-", "-", "-"]));
                continue;
            }
            let least = r.min[from..to].iter().copied().fold(f64::INFINITY, f64::min);
            let mean = r.mean[from..to].iter().sum::<f64>() / (to - from) as f64;
            let greatest = r.max[from..to].iter().copied().fold(f64::NEG_INFINITY, f64::max);
            cells.extend([least, mean, greatest].map(|v| human(v, s.y.unit)));
        }
        rows.push(cells);
    }
    let mut remark = String::new();
    if step > 1 {
        remark = format!("{n} buckets, {step} merged into each line: the extremes are kept.");
    }
    if groups < s.rows.len() {
        let _ = write!(remark, " {} of {} rows.", groups, s.rows.len());
    }
    table(page, name, &heads, &rows, remark.trim());
}

fn distribution(page: &mut Page, name: &str, d: &Distribution, percentiles: &[f64]) {
    let mut heads = names(&["Name", "samples"]);
    heads.extend(
        percentiles.iter().map(|p| if *p == 0.0 { "least".to_owned() } else { label::percentile(*p) }),
    );
    let rows: Vec<Vec<String>> = d
        .rows
        .iter()
        .take(MOST_ROWS)
        .map(|r| {
            let mut cells = vec![r.name.clone(), r.n.to_string()];
            cells.extend(percentiles.iter().map(|p| {
                // A percentile beyond the samples is not known; the maximum always is.
                let within = *p >= 1.0 || (1.0 - p) * r.n as f64 >= 1.0;
                let found = r.quantiles.iter().find(|(q, _)| *q >= *p - 1e-12).filter(|_| within);
                found.map_or_else(|| "-".to_owned(), |(_, v)| human(*v, d.value.unit))
            }));
            cells
        })
        .collect();
    table(page, name, &heads, &rows, &left_out(d.rows.len()));
}

fn left_out(rows: usize) -> String {
    if rows > MOST_ROWS { format!("The first {MOST_ROWS} of {rows} rows.") } else { String::new() }
}

fn curve(page: &mut Page, name: &str, c: &Curve) {
    if !c.marks.is_empty() {
        let rows: Vec<Vec<String>> = c
            .marks
            .iter()
            .take(MOST_ROWS)
            .map(|m| vec![m.label.clone(), human(m.x, c.x.unit), m.detail.clone()])
            .collect();
        table(page, name, &[String::from("Mark"), c.x.label.clone(), String::from("What it is")], &rows, "");
    }
    page.raw("<div class=\"points\">");
    let mut rows = Vec::new();
    for r in c.rows.iter().take(SHORT_GROUPS) {
        let step = r.x.len().div_ceil(SHORT_ROWS).max(1);
        for (x, y) in r.x.iter().zip(&r.y).step_by(step) {
            rows.push(vec![r.name.clone(), human(*x, c.x.unit), human(*y, c.y.unit)]);
        }
    }
    let total: usize = c.rows.iter().map(|r| r.x.len()).sum();
    let remark = if rows.len() < total {
        format!("{} of {total} points, evenly chosen.", rows.len())
    } else {
        String::new()
    };
    table(page, name, &[String::from("Curve"), c.x.label.clone(), c.y.label.clone()], &rows, &remark);
    page.raw("</div>");
}

fn scatter(page: &mut Page, name: &str, s: &Scatter) {
    let mut heads = names(&["Group", "points"]);
    for axis in [&s.x, &s.y] {
        heads.extend(["least", "median", "greatest"].map(|w| format!("{} {w}", axis.label)));
    }
    let spread = |mut v: Vec<f64>, unit: Unit| -> [String; 3] {
        v.sort_by(f64::total_cmp);
        let at = |i: usize| v.get(i).map_or_else(|| "-".to_owned(), |x| human(*x, unit));
        [at(0), at(v.len() / 2), at(v.len().saturating_sub(1))]
    };
    let rows: Vec<Vec<String>> = s
        .groups
        .iter()
        .take(MOST_ROWS)
        .map(|g| {
            let mut cells = vec![g.name.clone(), g.points.len().to_string()];
            cells.extend(spread(g.points.iter().map(|p| p.0).collect(), s.x.unit));
            cells.extend(spread(g.points.iter().map(|p| p.1).collect(), s.y.unit));
            cells
        })
        .collect();
    table(page, name, &heads, &rows, &left_out(s.groups.len()));
    let mut points: Vec<(&str, (f64, f64))> =
        s.groups.iter().flat_map(|g| g.points.iter().map(|p| (g.name.as_str(), *p))).collect();
    points.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let total = points.len();
    points.truncate(TOP_POINTS);
    let rows: Vec<Vec<String>> = points
        .iter()
        .map(|(name, (x, y))| vec![(*name).to_owned(), human(*x, s.x.unit), human(*y, s.y.unit)])
        .collect();
    let remark = format!("The {} largest of {total} points by {}.", rows.len(), s.x.label);
    table(page, name, &[String::from("Group"), s.x.label.clone(), s.y.label.clone()], &rows, &remark);
}

fn matrix(page: &mut Page, name: &str, m: &Matrix) {
    let rows: Vec<Vec<String>> = m
        .rows
        .iter()
        .zip(&m.values)
        .take(MOST_ROWS)
        .map(|(name, row)| {
            let seen: Vec<f64> = row.iter().flatten().copied().collect();
            let mut cells = vec![name.clone(), seen.len().to_string()];
            if seen.is_empty() {
                cells.extend(names(&["-", "-", "-", "-"]));
                return cells;
            }
            let least = seen.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = seen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mean = seen.iter().sum::<f64>() / seen.len() as f64;
            cells.extend([least, mean, greatest].map(|v| human(v, m.cell.unit)));
            let at = row.iter().position(|v| *v == Some(greatest)).and_then(|i| m.columns.get(i));
            cells.push(at.map_or_else(|| "-".to_owned(), |x| human(*x, m.x.unit)));
            cells
        })
        .collect();
    let heads = names(&["Row", "cells seen", "least", "mean", "greatest", "greatest at"]);
    table(page, name, &heads, &rows, &left_out(m.rows.len()));
}
