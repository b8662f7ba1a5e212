//! Parts of the card.

use std::fmt::Write as _;

use machmeter_data::quantity::human;
use machmeter_data::shape::Cell;
use machmeter_data::{Dataset, Facts, Shape, Unit};

use crate::chart::{self, Size};
use crate::identity::Identity;
use crate::svg::{Anchor, Svg};

pub(super) const LEFT: f64 = 44.0;
pub(super) const RIGHT: f64 = 750.0;
const BOXES: u64 = 64;
const SOURCES: usize = 6;

/// Pairs of a name and a value, one below the other.
#[derive(Debug)]
pub(super) struct Column {
    x: f64,
    y: f64,
}

impl Column {
    pub(super) fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    pub(super) fn pair(&mut self, svg: &mut Svg, name: &str, value: &str) {
        svg.text("key", self.x, self.y, Anchor::Start, name);
        svg.text("value", self.x + 96.0, self.y, Anchor::Start, &clip(value, 56));
        self.y += 19.5;
    }
}

/// Nodes as frames, CPUs as boxes in them; very large machines are given in words.
pub(super) fn topology(svg: &mut Svg, facts: &Facts, id: &Identity) {
    const X: f64 = 490.0;
    const Y: f64 = 120.0;
    let Some(cpus) = id.cpus else {
        svg.text("note", X, Y + 8.0, Anchor::Start, "topology unknown");
        return;
    };
    let nodes = id.nodes.unwrap_or(1).clamp(1, cpus.max(1));
    let per_core = id.cores.filter(|k| *k > 0).map_or(1, |k| (cpus / k).max(1));
    let mut words = format!("{cpus} CPUs");
    if per_core > 1 {
        let _ = write!(words, ", {per_core} per core");
    }
    let memory = match id.nodes {
        Some(1) => "1 memory node".to_owned(),
        Some(n) => format!("{n} memory nodes"),
        None => "memory nodes unknown".to_owned(),
    };
    let words = format!("{words}, {memory}");
    if cpus > BOXES || nodes > 8 {
        svg.text("figure", X, Y + 40.0, Anchor::Start, &format!("{nodes} x {} CPUs", cpus / nodes));
        svg.text("note", X, Y + 62.0, Anchor::Start, &words);
        return;
    }
    let bottom = boxes(svg, (X, Y), cpus, nodes);
    svg.text("note", X, bottom + 16.0, Anchor::Start, &words);
    if let Some(isolated) = facts.get("kernel.isolated").and_then(|f| f.text()).filter(|t| !t.is_empty()) {
        svg.text("note", X, bottom + 31.0, Anchor::Start, &format!("isolated: {isolated}"));
    }
}

/// Frames of nodes around boxes of CPUs, as large as 260 by 140 units allow; returns the lower edge.
fn boxes(svg: &mut Svg, (left, top): (f64, f64), cpus: u64, nodes: u64) -> f64 {
    const GAP: f64 = 6.0;
    let across = if nodes > 1 { 2 } else { 1 };
    let down = nodes.div_ceil(across);
    let (room_x, room_y) = (260.0 / across as f64 - GAP, 140.0 / down as f64 - GAP);
    let per_node = cpus.div_ceil(nodes);
    let columns = (1..=per_node)
        .max_by(|a, b| {
            let side = |c: u64| ((room_x - 7.0) / c as f64).min((room_y - 7.0) / per_node.div_ceil(c) as f64);
            side(*a).total_cmp(&side(*b)).then(b.cmp(a))
        })
        .unwrap_or(1);
    let rows = per_node.div_ceil(columns);
    let side = ((room_x - 7.0) / columns as f64).min((room_y - 7.0) / rows as f64).min(72.0);
    let (w, h) = (side * columns as f64 + 7.0, side * rows as f64 + 7.0);
    for node in 0..nodes {
        let x = left + (w + GAP) * (node % across) as f64;
        let y = top + (h + GAP) * (node / across) as f64;
        svg.rect("node", x, y, w, h);
        let first = node * per_node;
        for k in 0..per_node.min(cpus.saturating_sub(first)) {
            let (bx, by) = (x + 5.0 + side * (k % columns) as f64, y + 5.0 + side * (k / columns) as f64);
            svg.rect("core", bx, by, side - 3.0, side - 3.0);
            if side >= 16.0 {
                let middle = (side - 3.0) / 2.0;
                svg.text("cpu", bx + middle, by + middle + 3.0, Anchor::Middle, &(first + k).to_string());
            }
        }
    }
    top + (h + GAP) * down as f64 - GAP
}

/// Height that a matrix of named things takes on the card.
pub(super) fn named_height(dataset: &Dataset) -> f64 {
    let Shape::Matrix(m) = &dataset.shape else { return 0.0 };
    (20.0 + 18.0 * m.rows.len() as f64).min(190.0)
}

/// A chart with its title at a place; returns the height it took.
pub(super) fn chart(
    svg: &mut Svg,
    dataset: &Dataset,
    (x, y): (f64, f64),
    (width, height): (f64, f64),
) -> f64 {
    let mut shown = dataset.clone();
    let values: Vec<String> = dataset.params.values().map(ToString::to_string).collect();
    let name = if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) };
    let mut title = clip(&format!("{}{name}", dataset.title), 44);
    if let Some((reduced, total)) = chart::largest_rows(&dataset.shape) {
        shown.shape = reduced;
        let _ = write!(title, " (highest of {total})");
    }
    if let Shape::Series(s) = &mut shown.shape {
        s.rows.truncate(1);
    }
    svg.text("head", x, y + 12.0, Anchor::Start, &title);
    // A strip takes 1/2.6 of the height it is given.
    let asked = if matches!(shown.shape, Shape::Series(_)) { (height - 46.0) * 2.6 } else { height };
    if let Some(part) = chart::draw(&shown, Size { width, height: asked }) {
        let placed = format!("<svg x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{height}\" ", y + 18.0);
        svg.raw(&part.replacen("<svg xmlns=\"http://www.w3.org/2000/svg\" ", &placed, 1));
    }
    let names = chart::legend(&shown.shape);
    let mut at = x + 62.0;
    if names.len() > 1 {
        for (i, name) in names.iter().enumerate().take(8) {
            let color = i % 8;
            svg.line(
                &format!("line c{color} d{color}"),
                (at, y + height + 24.0),
                (at + 18.0, y + height + 24.0),
            );
            let name = clip(name, 16);
            svg.text("tick", at + 23.0, y + height + 27.5, Anchor::Start, &name);
            at += 36.0 + 6.0 * name.chars().count() as f64;
            if at > x + width - 80.0 {
                break;
            }
        }
        return height + 34.0;
    }
    height + 20.0
}

/// The first rows of a cost table by their first column of shares, with bars; returns the height taken.
pub(super) fn sources(svg: &mut Svg, dataset: &Dataset, x: f64, y: f64) -> f64 {
    let Shape::CostTable(t) = &dataset.shape else { return 0.0 };
    svg.text("head", x, y + 12.0, Anchor::Start, &clip(&dataset.title, 50));
    let column = t.columns.iter().position(|c| c.unit == Some(Unit::One));
    let column = column.or_else(|| t.columns.iter().position(|c| c.unit.is_some()));
    let Some(column) = column else { return 20.0 };
    let unit = t.columns[column].unit.unwrap_or(Unit::Count);
    let mut rows: Vec<(&str, f64)> = t
        .rows
        .iter()
        .filter_map(|r| match r.cells.get(column) {
            Some(Cell::Number(v)) => Some((r.name.as_str(), *v)),
            _ => None,
        })
        .collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    let greatest = rows.first().map_or(0.0, |r| r.1);
    svg.text("key", RIGHT, y + 12.0, Anchor::End, &t.columns[column].label.to_lowercase());
    for (i, (name, v)) in rows.iter().take(SOURCES).enumerate() {
        let line = y + 40.0 + 32.0 * i as f64;
        svg.text("value", x, line, Anchor::Start, &clip(name, 32));
        svg.text("value", RIGHT, line, Anchor::End, &human(*v, unit));
        let share = if greatest > 0.0 { v / greatest } else { 0.0 };
        svg.rect("tile", x, line + 5.0, RIGHT - x, 6.0);
        svg.rect("share", x, line + 5.0, (RIGHT - x) * share.clamp(0.0, 1.0), 6.0);
    }
    44.0 + 32.0 * rows.len().min(SOURCES) as f64
}

/// At most `room` characters; what is cut ends in two dots.
pub(super) fn clip(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(2)).collect::<String>() + ".."
}
